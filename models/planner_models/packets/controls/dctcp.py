"""DCTCP: the window is cut by the share of packets that racks' queues have marked (RFC 8257).

A packet is marked where it finds as many packets in its queue as `mark_packets`, or more (3.1). The
receiver replies to every packet, and echoes its mark (3.2, without delayed replies). Growth, and losses,
are Reno's (3.5).
"""

from __future__ import annotations

from typing import Final

from planner.compiled import inner_without_allocation
from planner_models.packets.controls.reno import LEAST_WINDOW
from planner_models.packets.state import Floats, Ints, SenderLayout

GAIN: Final = 1 / 16  # g: weight of the newest window in alpha (RFC 8257, 4.2)
FIRST_ALPHA: Final = 1.0  # (RFC 8257, 3.3)


@inner_without_allocation
def follow_mark(
    ints: Ints, reals: Floats, layout: SenderLayout, sender: int, number: int, newly: int, is_marked: bool
) -> None:
    """Count packets and marks, estimate their share each window, and cut the window by it (RFC 8257, 3.3)."""
    ints[layout.dctcp_acknowledged + sender] += newly
    if is_marked:
        ints[layout.dctcp_marked + sender] += newly
    if number >= ints[layout.dctcp_end + sender]:
        share = ints[layout.dctcp_marked + sender] / ints[layout.dctcp_acknowledged + sender]
        reals[layout.dctcp_alpha + sender] += GAIN * (share - reals[layout.dctcp_alpha + sender])
        ints[layout.dctcp_end + sender] = ints[layout.next_number + sender]
        ints[layout.dctcp_acknowledged + sender] = ints[layout.dctcp_marked + sender] = 0
    recovered = number >= ints[layout.recovery_number + sender]
    if is_marked and recovered and number >= ints[layout.dctcp_cut_number + sender]:
        cut = reals[layout.window + sender] * (1 - reals[layout.dctcp_alpha + sender] / 2)
        reals[layout.window + sender] = max(cut, LEAST_WINDOW)
        reals[layout.threshold + sender] = reals[layout.window + sender]
        ints[layout.dctcp_cut_number + sender] = ints[layout.next_number + sender]
