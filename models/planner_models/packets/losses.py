"""Losses, timeouts, and both taken back where nothing was lost."""

from __future__ import annotations

from typing import Final

from planner.compiled import inner_without_allocation
from planner_models.packets import controls
from planner_models.packets.controls import BBR
from planner_models.packets.senders import NO_PROBE, owner
from planner_models.packets.state import Floats, Ints, Layout

DUPLICATES: Final = 3  # packets that may be overtaken before a loss is noticed (RFC 5681, RFC 6675)
MOST_REORDERING: Final = 300  # packets (Linux 4.4)


@inner_without_allocation
def notice_losses(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Count missing packets as lost, and reduce the window, once a round trip."""
    flow = owner(layout, sender)
    ints[layout.outstanding + sender] -= ints[layout.missing + sender]
    needless = min(ints[layout.spurious + sender], ints[layout.missing + sender])
    lost = ints[layout.missing + sender] - needless
    ints[layout.spurious + sender] -= needless
    ints[layout.to_retransmit + flow] += lost
    ints[layout.missing + sender] = 0
    ints[layout.later_arrivals + sender] = 0
    ints[layout.unproven + sender] += lost
    if ints[layout.control + sender] == BBR:
        ints[layout.bbr_lost + sender] += lost
    if ints[layout.expected_number + sender] > ints[layout.recovery_number + sender]:
        ints[layout.unproven + sender] = lost
        reals[layout.loss_window + sender] = reals[layout.window + sender]
        reals[layout.loss_threshold + sender] = reals[layout.threshold + sender]
        controls.cut_window(ints, reals, layout, sender)
        ints[layout.recovery_number + sender] = ints[layout.next_number + sender]


@inner_without_allocation
def notice_reordering(
    ints: Ints, reals: Floats, layout: Layout, sender: int, overtaken: int, returned: int
) -> None:
    """Wait longer for packets that are overtaken; take a recovery back in which none was lost (RFC 3522).

    overtaken  packets that arrived late, before they were taken for lost
    returned   packets that arrived after that
    """
    if overtaken + returned > 0:
        seen = ints[layout.missing + sender] + overtaken + ints[layout.later_arrivals + sender]
        more = max(ints[layout.reordering + sender] + 1, seen)
        ints[layout.reordering + sender] = min(more, MOST_REORDERING)
    if returned > 0 and ints[layout.unproven + sender] > 0:
        ints[layout.unproven + sender] = max(ints[layout.unproven + sender] - returned, 0)
        if ints[layout.unproven + sender] == 0:
            controls.undo_cut(ints, reals, layout, sender)
            reals[layout.window + sender] = max(
                reals[layout.window + sender], reals[layout.loss_window + sender]
            )
            reals[layout.threshold + sender] = max(
                reals[layout.threshold + sender], reals[layout.loss_threshold + sender]
            )
            ints[layout.recovery_number + sender] = ints[layout.expected_number + sender]


@inner_without_allocation
def answer_probe(ints: Ints, reals: Floats, layout: Layout, sender: int, number: int, gap: int) -> int:
    """Return 1 where the probe arrived in place of a lost packet, which reduces the window; else 0."""
    code = ints[layout.probe_code + sender]
    if code < 0 or number < code >> 1:
        return 0
    ints[layout.probe_code + sender] = NO_PROBE
    if gap == 0 or not code & 1 or ints[layout.spurious + sender] == 0:
        return 0
    ints[layout.spurious + sender] -= 1
    ints[layout.outstanding + sender] -= 1
    controls.cut_window(ints, reals, layout, sender)
    ints[layout.recovery_number + sender] = ints[layout.next_number + sender]
    return 1


@inner_without_allocation
def time_out(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Take all that is outstanding for lost and let one packet go.

    What was is kept, since the next reply may show that nothing was lost (F-RTO, RFC 5682).
    """
    flow = owner(layout, sender)
    is_first = ints[layout.backoff + sender] == 0 and ints[layout.missing + sender] == 0
    reals[layout.undo_window + sender] = reals[layout.window + sender] if is_first else 0.0
    reals[layout.undo_threshold + sender] = reals[layout.threshold + sender]
    ints[layout.undo_outstanding + sender] = ints[layout.outstanding + sender]
    ints[layout.undo_spurious + sender] = ints[layout.spurious + sender]
    ints[layout.undo_expected + sender] = ints[layout.expected_number + sender]
    ints[layout.undo_restart + sender] = ints[layout.restart_number + sender]
    controls.time_out(ints, reals, layout, sender)
    ints[layout.to_retransmit + flow] += ints[layout.outstanding + sender] - ints[layout.spurious + sender]
    ints[layout.outstanding + sender] = 0
    ints[layout.spurious + sender] = 0
    if (
        ints[layout.later_arrivals + sender] >= DUPLICATES
    ):  # so many were overtaken for a loss, not by reordering
        ints[layout.reordering + sender] = DUPLICATES
    ints[layout.missing + sender] = 0
    ints[layout.later_arrivals + sender] = 0
    ints[layout.restart_number + sender] = ints[layout.next_number + sender]
    ints[layout.expected_number + sender] = ints[layout.next_number + sender]
    ints[layout.recovery_number + sender] = ints[layout.next_number + sender]
    ints[layout.unproven + sender] = 0
    ints[layout.backoff + sender] += 1
    ints[layout.timed_number + sender] = -1
    ints[layout.probe_code + sender] = NO_PROBE


@inner_without_allocation
def undo_timeout(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Revert a timeout: packets sent since then are copies of packets that are still on their way."""
    flow = owner(layout, sender)
    copies = ints[layout.next_number + sender] - ints[layout.restart_number + sender]
    needed = ints[layout.undo_outstanding + sender] - ints[layout.undo_spurious + sender]
    # what was not sent since waits to be sent again, unless the other path has sent it
    if copies <= needed <= copies + ints[layout.to_retransmit + flow]:
        controls.undo_cut(ints, reals, layout, sender)
        reals[layout.window + sender] = reals[layout.undo_window + sender]
        reals[layout.threshold + sender] = reals[layout.undo_threshold + sender]
        ints[layout.outstanding + sender] = ints[layout.undo_outstanding + sender] + copies
        ints[layout.spurious + sender] = ints[layout.undo_spurious + sender] + copies
        ints[layout.expected_number + sender] = ints[layout.undo_expected + sender]
        ints[layout.recovery_number + sender] = ints[layout.undo_expected + sender]
        ints[layout.restart_number + sender] = ints[layout.undo_restart + sender]
        ints[layout.to_retransmit + flow] -= needed - copies
