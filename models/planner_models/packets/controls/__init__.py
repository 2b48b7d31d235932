"""Congestion controls of a host: one file for each, with the rules that differ from Reno's.

`grow_window` is called for packets that have arrived in order, once slow start is over and where the sender
uses its window; `cut_window` where a recovery begins, `time_out` at a timeout, and `undo_cut` where either
is taken back. What else a control needs it is called for by its number: marks (DCTCP), replies and the pace
(BBR), paths (TDTCP, which keeps a whole Reno sender for each, see `senders`).
"""

from __future__ import annotations

from typing import Final

from planner.compiled import inner_without_allocation
from planner_models.packets.controls import bbr, cubic, reno
from planner_models.packets.state import Floats, Ints, SenderLayout

CONTROLS: Final = ("reno", "cubic", "dctcp", "bbr", "tdtcp")
"""Names of the controls, in the order of their numbers."""

RENO, CUBIC, DCTCP, BBR, TDTCP = range(len(CONTROLS))


@inner_without_allocation
def grow_window(ints: Ints, reals: Floats, layout: SenderLayout, sender: int, fresh: int) -> None:
    """Grow the window in congestion avoidance by packets that have arrived."""
    if ints[layout.control + sender] == CUBIC:
        cubic.grow_window(reals, layout, sender, fresh)
    else:
        reno.grow_window(reals, layout, sender, fresh)


@inner_without_allocation
def cut_window(ints: Ints, reals: Floats, layout: SenderLayout, sender: int) -> None:
    """Reduce the window and the threshold of slow start after a loss."""
    if ints[layout.control + sender] == CUBIC:
        cubic.cut_window(reals, layout, sender)
    elif ints[layout.control + sender] == BBR:
        bbr.cut_window(ints, reals, layout, sender)
    else:
        reno.cut_window(reals, layout, sender)


@inner_without_allocation
def time_out(ints: Ints, reals: Floats, layout: SenderLayout, sender: int) -> None:
    """Reduce the window to one packet, and the threshold of slow start, at a timeout."""
    cut_window(ints, reals, layout, sender)
    reals[layout.window + sender] = 1.0
    if ints[layout.control + sender] == CUBIC:
        cubic.forget_most(reals, layout, sender)
    elif ints[layout.control + sender] == BBR:
        ints[layout.bbr_conserves + sender] = 0


@inner_without_allocation
def undo_cut(ints: Ints, reals: Floats, layout: SenderLayout, sender: int) -> None:
    """Restore the state of a control from before the last reduction, in which nothing was lost."""
    if ints[layout.control + sender] == CUBIC:
        cubic.undo_cut(reals, layout, sender)
    elif ints[layout.control + sender] == BBR:
        ints[layout.bbr_recovers + sender] = ints[layout.bbr_conserves + sender] = 0
