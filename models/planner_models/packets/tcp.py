"""TCP senders: processing of replies."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets import controls
from planner_models.packets.controls import BBR, DCTCP, RENO, reno
from planner_models.packets.controls.bbr import follow_reply
from planner_models.packets.controls.dctcp import follow_mark
from planner_models.packets.hosts import end_flow, fill_buffer
from planner_models.packets.losses import (
    DUPLICATES,
    answer_probe,
    notice_losses,
    notice_reordering,
    undo_timeout,
)
from planner_models.packets.receivers import ECHO
from planner_models.packets.senders import active_sender, is_open, owner, timeout_ticks
from planner_models.packets.state import (
    ALPHA,
    BETA,
    LEAST_TIMEOUT_TICKS,
    NOW,
    Floats,
    Ints,
    Layout,
)
from planner_models.packets.timers import arm_timer

RACK_SHARE: Final = 1 / 200
"""Time for which a packet may be overtaken, in shortest timeouts (RACK, Linux 4.4)."""


@inner_without_allocation
def process_reply(ints: Ints, reals: Floats, layout: Layout, sender: int, code: int, circuit: int) -> None:
    """Process a reply that has reached its sender; its flow may end, and others start then."""
    flow = owner(layout, sender)
    if np.isnan(reals[layout.end_ticks + flow]):
        arrived, number = code >> 32, code & (ECHO - 1)
        newly = arrived - ints[layout.acknowledged + sender]
        if newly > 0:  # else the reply was overtaken and has nothing new
            ints[layout.acknowledged + sender] = arrived
            before, delivered = ints[layout.outstanding + sender], ints[layout.delivered + flow]
            if ints[layout.control + sender] == DCTCP:
                follow_mark(ints, reals, layout, sender, number, newly, code & ECHO != 0)
            process_acknowledgement(ints, reals, layout, sender, number, newly)
            if ints[layout.control + sender] == BBR:
                follow_reply(
                    ints, reals, layout, sender, number, before, ints[layout.delivered + flow] - delivered
                )
            elif ints[layout.control + sender] == RENO:
                follow_signal(ints, reals, layout, sender, circuit)
            fill_buffer(ints, reals, layout, flow, reals[layout.window + sender])
        if ints[layout.delivered + flow] >= ints[layout.flow_size + flow]:
            end_flow(ints, reals, layout, flow)
        elif ints[layout.outstanding + sender] > 0:
            reals[layout.timeout_ticks + sender] = reals[NOW] + timeout_ticks(ints, reals, layout, sender)
            arm_timer(ints, reals, layout, sender)


@inner_without_allocation
def follow_signal(ints: Ints, reals: Floats, layout: Layout, sender: int, circuit: int) -> None:
    """Multiply the window when a circuit is signalled, and divide it when it is no more (reTCP).

    Only a sender that misses nothing does, and it divides only after it has multiplied.
    """
    if circuit != ints[layout.circuit_signalled + sender] and is_open(ints, layout, sender):
        reno.follow_signal(ints, reals, layout, sender, circuit, reals[ALPHA] if circuit else reals[BETA])


@inner_without_allocation
def process_acknowledgement(
    ints: Ints, reals: Floats, layout: Layout, sender: int, number: int, newly: int
) -> None:
    """Account for a reply to transmission `number` that acknowledges `newly` more transmissions.

    Numbers that arrived neither now nor before are `missing`. They count as lost once a few later ones
    have arrived, and are sent again. A packet that was only overtaken, by one over a circuit, is no longer
    missing when it arrives. An arrival of a transmission given up at a timeout makes another one that is
    outstanding `spurious`.
    """
    flow = owner(layout, sender)
    if reals[layout.undo_window + sender] > 0:
        if number < ints[layout.restart_number + sender]:
            undo_timeout(ints, reals, layout, sender)
        reals[layout.undo_window + sender] = 0.0
    fresh = 0
    if number >= ints[layout.restart_number + sender]:
        fresh = max(0, min(newly, number + 1 - ints[layout.expected_number + sender]))
    late = newly - fresh
    if late > 0:
        overtaken = min(ints[layout.missing + sender], late)
        ints[layout.missing + sender] -= overtaken
        ints[layout.outstanding + sender] -= overtaken
        spared = min(ints[layout.to_retransmit + flow], late - overtaken)
        ints[layout.to_retransmit + flow] -= spared
        remainder = late - overtaken - spared
        needless = min(remainder, ints[layout.outstanding + sender] - ints[layout.spurious + sender])
        ints[layout.spurious + sender] += needless
        ints[layout.delivered + flow] += (
            overtaken + spared + needless
        )  # others are copies of what had arrived
        if number >= ints[layout.restart_number + sender]:
            notice_reordering(ints, reals, layout, sender, overtaken, spared + needless)
    if fresh > 0:
        filled = ints[layout.outstanding + sender]
        gap = number + 1 - ints[layout.expected_number + sender] - fresh
        ints[layout.expected_number + sender] = number + 1
        gap -= answer_probe(ints, reals, layout, sender, number, gap)
        if gap > 0:
            if ints[layout.missing + sender] == 0:
                ints[layout.later_arrivals + sender] = 0
                reals[layout.hole_ticks + sender] = reals[NOW]
            ints[layout.missing + sender] += gap
        ints[layout.outstanding + sender] -= fresh
        needless = min(ints[layout.spurious + sender], fresh)
        ints[layout.spurious + sender] -= needless
        ints[layout.delivered + flow] += fresh - needless
        update_rtt(ints, reals, layout, sender, number)
        update_window(ints, reals, layout, sender, number, filled, fresh)


@inner_without_allocation
def update_rtt(ints: Ints, reals: Floats, layout: Layout, sender: int, number: int) -> None:
    """Update the estimate of the round trip, by one transmission at a time (RFC 6298)."""
    ints[layout.backoff + sender] = 0
    if 0 <= ints[layout.timed_number + sender] <= number:
        trip = reals[NOW] - reals[layout.timed_ticks + sender]
        ints[layout.timed_number + sender] = -1
        if sender != active_sender(ints, reals, layout, owner(layout, sender)):
            return
        if reals[layout.smooth_rtt_ticks + sender] < 0:
            reals[layout.smooth_rtt_ticks + sender] = trip
            reals[layout.rtt_deviation_ticks + sender] = trip / 2
        else:
            error = abs(trip - reals[layout.smooth_rtt_ticks + sender])
            reals[layout.rtt_deviation_ticks + sender] += (
                error - reals[layout.rtt_deviation_ticks + sender]
            ) / 4
            reals[layout.smooth_rtt_ticks + sender] += (trip - reals[layout.smooth_rtt_ticks + sender]) / 8


@inner_without_allocation
def may_grow(ints: Ints, layout: Layout, sender: int, number: int) -> bool:
    """Return whether a reply may grow the window: BBR's has other rules, and a mark has just cut DCTCP's."""
    if ints[layout.control + sender] == DCTCP:
        return bool(number >= ints[layout.dctcp_cut_number + sender])
    return bool(ints[layout.control + sender] != BBR)


@inner_without_allocation
def update_window(
    ints: Ints, reals: Floats, layout: Layout, sender: int, number: int, filled: int, fresh: int
) -> None:
    """Reduce the window for losses noticed by now, once a round trip; without any, grow it."""
    if ints[layout.missing + sender] > 0:
        ints[layout.later_arrivals + sender] += fresh
        # holes count as overtaken until a packet was (FACK); then only what arrived does
        is_in_order = ints[layout.reordering + sender] == DUPLICATES
        passed = ints[layout.later_arrivals + sender] + (
            ints[layout.missing + sender] - 1 if is_in_order else 0
        )
        recovers = ints[layout.expected_number + sender] <= ints[layout.recovery_number + sender]
        late_ticks = reals[NOW] - reals[layout.hole_ticks + sender] - RACK_SHARE * reals[LEAST_TIMEOUT_TICKS]
        if passed >= ints[layout.reordering + sender] or (recovers and late_ticks >= 0):
            notice_losses(ints, reals, layout, sender)
    elif number >= ints[layout.recovery_number + sender] and may_grow(ints, layout, sender, number):
        if reals[layout.window + sender] < reals[layout.threshold + sender]:
            if reals[layout.window + sender] < 2 * filled:
                reals[layout.window + sender] += fresh
        elif filled >= int(reals[layout.window + sender]):
            controls.grow_window(ints, reals, layout, sender, fresh)
