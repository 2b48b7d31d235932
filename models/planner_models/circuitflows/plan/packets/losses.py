"""Losses, timeouts, and both taken back where nothing was lost."""

from __future__ import annotations

from typing import Final

from planner.compiled import inner
from planner_models.circuitflows.plan.packets import controls
from planner_models.circuitflows.plan.packets.controls import BBR
from planner_models.circuitflows.plan.packets.senders import NO_PROBE, owner
from planner_models.circuitflows.plan.packets.state import CONTROL, Floats, Ints, Layout

DUPLICATES: Final = 3  # packets that may be overtaken before a loss is noticed (RFC 5681, RFC 6675)
MOST_REORDERING: Final = 300  # packets (Linux 4.4)


@inner
def notice_losses(ints: Ints, reals: Floats, at: Layout, sender: int) -> None:
    """Take what is missing for lost, and reduce the window, once a round trip."""
    flow = owner(at, sender)
    ints[at.outstanding + sender] -= ints[at.missing + sender]
    needless = min(ints[at.spurious + sender], ints[at.missing + sender])
    lost = ints[at.missing + sender] - needless
    ints[at.spurious + sender] -= needless
    ints[at.to_retransmit + flow] += lost
    ints[at.missing + sender] = 0
    ints[at.later_arrivals + sender] = 0
    ints[at.unproven + sender] += lost
    if ints[CONTROL] == BBR:
        ints[at.bbr_lost + sender] += lost
    if ints[at.expected_number + sender] > ints[at.recovery_number + sender]:
        ints[at.unproven + sender] = lost
        reals[at.loss_window + sender] = reals[at.window + sender]
        reals[at.loss_threshold + sender] = reals[at.threshold + sender]
        controls.cut_window(ints, reals, at, sender)
        ints[at.recovery_number + sender] = ints[at.next_number + sender]


@inner
def notice_reordering(
    ints: Ints, reals: Floats, at: Layout, sender: int, overtaken: int, returned: int
) -> None:
    """Wait longer for packets that are overtaken; take a recovery back in which none was lost (RFC 3522).

    overtaken  packets that arrived late, before they were taken for lost
    returned   packets that arrived after that
    """
    if overtaken + returned > 0:
        seen = ints[at.missing + sender] + overtaken + ints[at.later_arrivals + sender]
        more = max(ints[at.reordering + sender] + 1, seen)
        ints[at.reordering + sender] = min(more, MOST_REORDERING)
    if returned > 0 and ints[at.unproven + sender] > 0:
        ints[at.unproven + sender] = max(ints[at.unproven + sender] - returned, 0)
        if ints[at.unproven + sender] == 0:
            controls.undo_cut(ints, reals, at, sender)
            reals[at.window + sender] = max(reals[at.window + sender], reals[at.loss_window + sender])
            reals[at.threshold + sender] = max(
                reals[at.threshold + sender], reals[at.loss_threshold + sender]
            )
            ints[at.recovery_number + sender] = ints[at.expected_number + sender]


@inner
def answer_probe(ints: Ints, reals: Floats, at: Layout, sender: int, number: int, gap: int) -> int:
    """Return 1 where the probe arrived in place of a lost packet, which reduces the window; else 0."""
    code = ints[at.probe_code + sender]
    if code < 0 or number < code >> 1:
        return 0
    ints[at.probe_code + sender] = NO_PROBE
    if gap == 0 or not code & 1 or ints[at.spurious + sender] == 0:
        return 0
    ints[at.spurious + sender] -= 1
    ints[at.outstanding + sender] -= 1
    controls.cut_window(ints, reals, at, sender)
    ints[at.recovery_number + sender] = ints[at.next_number + sender]
    return 1


@inner
def time_out(ints: Ints, reals: Floats, at: Layout, sender: int) -> None:
    """Take all that is outstanding for lost and let one packet go.

    What was is kept, since the next reply may show that nothing was lost (F-RTO, RFC 5682).
    """
    flow = owner(at, sender)
    is_first = ints[at.backoff + sender] == 0 and ints[at.missing + sender] == 0
    reals[at.undo_window + sender] = reals[at.window + sender] if is_first else 0.0
    reals[at.undo_threshold + sender] = reals[at.threshold + sender]
    ints[at.undo_outstanding + sender] = ints[at.outstanding + sender]
    ints[at.undo_spurious + sender] = ints[at.spurious + sender]
    ints[at.undo_expected + sender] = ints[at.expected_number + sender]
    ints[at.undo_restart + sender] = ints[at.restart_number + sender]
    controls.time_out(ints, reals, at, sender)
    ints[at.to_retransmit + flow] += ints[at.outstanding + sender] - ints[at.spurious + sender]
    ints[at.outstanding + sender] = 0
    ints[at.spurious + sender] = 0
    if ints[at.later_arrivals + sender] >= DUPLICATES:  # so many were overtaken for a loss, not by reordering
        ints[at.reordering + sender] = DUPLICATES
    ints[at.missing + sender] = 0
    ints[at.later_arrivals + sender] = 0
    ints[at.restart_number + sender] = ints[at.next_number + sender]
    ints[at.expected_number + sender] = ints[at.next_number + sender]
    ints[at.recovery_number + sender] = ints[at.next_number + sender]
    ints[at.unproven + sender] = 0
    ints[at.backoff + sender] += 1
    ints[at.timed_number + sender] = -1
    ints[at.probe_code + sender] = NO_PROBE


@inner
def undo_timeout(ints: Ints, reals: Floats, at: Layout, sender: int) -> None:
    """Take a timeout back: what was sent since then are copies of packets that are still on their way."""
    flow = owner(at, sender)
    copies = ints[at.next_number + sender] - ints[at.restart_number + sender]
    needed = ints[at.undo_outstanding + sender] - ints[at.undo_spurious + sender]
    # what was not sent since waits to be sent again, unless the other path has sent it
    if copies <= needed <= copies + ints[at.to_retransmit + flow]:
        controls.undo_cut(ints, reals, at, sender)
        reals[at.window + sender] = reals[at.undo_window + sender]
        reals[at.threshold + sender] = reals[at.undo_threshold + sender]
        ints[at.outstanding + sender] = ints[at.undo_outstanding + sender] + copies
        ints[at.spurious + sender] = ints[at.undo_spurious + sender] + copies
        ints[at.expected_number + sender] = ints[at.undo_expected + sender]
        ints[at.recovery_number + sender] = ints[at.undo_expected + sender]
        ints[at.restart_number + sender] = ints[at.undo_restart + sender]
        ints[at.to_retransmit + flow] -= needed - copies
