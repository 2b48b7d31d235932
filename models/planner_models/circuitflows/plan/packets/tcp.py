"""Hosts, TCP senders and TCP receivers."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner_models.circuitflows.plan.packets.events import FLOW_START, HOST_SENT, TIMEOUT, push
from planner_models.circuitflows.plan.packets.state import (
    ALPHA,
    BETA,
    HOST_PACKET_US,
    LEAST_TIMEOUT_US,
    NOW,
    REPLY_EVERY,
    SENT,
    Floats,
    Ints,
    Layout,
)
from planner_models.circuits.plan.compiled import inner

FIRST_WINDOW: Final = 10.0  # packets (RFC 6928)
LEAST_WINDOW: Final = 2.0  # packets, after a loss (RFC 5681)
DUPLICATES: Final = 3  # later packets by which a loss is noticed (RFC 5681)
MOST_BACKOFF: Final = 10  # doublings of the timeout


@inner
def offer_flow(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Put a flow into its host's list of those that may send, if it may."""
    if (
        not ints[at.is_ready + flow]
        and ints[at.unsent + flow] + ints[at.to_retransmit + flow] > 0
        and ints[at.outstanding + flow] < int(reals[at.window + flow])
    ):
        host = ints[at.host + flow]
        ints[at.is_ready + flow] = 1
        ints[at.ready_next + flow] = -1
        if ints[at.ready_tail + host] < 0:
            ints[at.ready_head + host] = flow
        else:
            ints[at.ready_next + ints[at.ready_tail + host]] = flow
        ints[at.ready_tail + host] = flow


@inner
def send_from_host(ints: Ints, reals: Floats, at: Layout, host: int) -> None:
    """Start to send a packet of the host's next flow that may send."""
    found = -1
    while not ints[at.host_busy + host] and ints[at.ready_head + host] >= 0 and found < 0:
        flow = ints[at.ready_head + host]
        ints[at.ready_head + host] = ints[at.ready_next + flow]
        if ints[at.ready_head + host] < 0:
            ints[at.ready_tail + host] = -1
        ints[at.is_ready + flow] = 0
        if ints[at.unsent + flow] + ints[at.to_retransmit + flow] > 0 and ints[at.outstanding + flow] < int(
            reals[at.window + flow]
        ):
            found = flow
    if found >= 0:
        if ints[at.to_retransmit + found] > 0:
            ints[at.to_retransmit + found] -= 1
        else:
            ints[at.unsent + found] -= 1
        if ints[at.outstanding + found] == 0:
            restart_timer(ints, reals, at, found)
        ints[at.outstanding + found] += 1
        ints[at.host_busy + host] = 1
        ints[at.host_flow + host] = found
        waits = ints[at.unsent + found] + ints[at.to_retransmit + found] == 0
        waits = waits or ints[at.outstanding + found] >= int(reals[at.window + found])
        ints[at.host_number + host] = 2 * ints[at.next_number + found] + (1 if waits else 0)
        if ints[at.timed_number + found] < 0:
            ints[at.timed_number + found] = ints[at.next_number + found]
            reals[at.timed_us + found] = reals[NOW]
        ints[at.next_number + found] += 1
        ints[SENT] += 1
        push(ints, reals, at, reals[NOW] + reals[HOST_PACKET_US], HOST_SENT, host)


@inner
def timeout_us(ints: Ints, reals: Floats, at: Layout, flow: int) -> float:
    """Return the time without a reply after which the flow sends again (RFC 6298)."""
    least = reals[LEAST_TIMEOUT_US]
    if reals[at.smooth_rtt_us + flow] >= 0:
        least = max(least, reals[at.smooth_rtt_us + flow] + 4 * reals[at.rtt_deviation_us + flow])
    return float(least * 2.0 ** min(ints[at.backoff + flow], MOST_BACKOFF))


@inner
def restart_timer(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Restart the timeout; a flow has one event for it, which is put off where it comes early."""
    reals[at.deadline_us + flow] = reals[NOW] + timeout_us(ints, reals, at, flow)
    if not ints[at.has_timer + flow]:
        ints[at.has_timer + flow] = 1
        push(ints, reals, at, reals[at.deadline_us + flow], TIMEOUT, flow)


@inner
def expire_timer(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Take all that is outstanding for lost and let one packet go, if no reply came for too long."""
    ints[at.has_timer + flow] = 0
    if np.isnan(reals[at.end_us + flow]) and ints[at.outstanding + flow] > 0:
        if reals[at.deadline_us + flow] > reals[NOW]:
            ints[at.has_timer + flow] = 1
            push(ints, reals, at, reals[at.deadline_us + flow], TIMEOUT, flow)
        else:
            reals[at.threshold + flow] = max(reals[at.window + flow] / 2, LEAST_WINDOW)
            reals[at.window + flow] = 1.0
            ints[at.to_retransmit + flow] += ints[at.outstanding + flow] - ints[at.spurious + flow]
            ints[at.outstanding + flow] = 0
            ints[at.spurious + flow] = 0
            ints[at.missing + flow] = 0
            ints[at.later_arrivals + flow] = 0
            ints[at.restart_number + flow] = ints[at.next_number + flow]
            ints[at.expected_number + flow] = ints[at.next_number + flow]
            ints[at.recovery_number + flow] = ints[at.next_number + flow]
            ints[at.backoff + flow] += 1
            ints[at.timed_number + flow] = -1


@inner
def acknowledge(ints: Ints, at: Layout, flow: int, mark: int) -> int:
    """Return the receiver's reply to a transmission, or -1 where it sends none.

    A reply is the count of transmissions that have arrived, times 2^32, plus the latest number.

    mark  twice the number of the transmission, plus 1 where the sender can send no other after it
    """
    number, waits = mark >> 1, mark & 1
    in_order = number == ints[at.latest_number + flow] + 1
    ints[at.latest_number + flow] = max(ints[at.latest_number + flow], number)
    ints[at.arrived + flow] += 1
    if in_order and not waits and ints[at.arrived + flow] % ints[REPLY_EVERY]:
        return -1
    return int(ints[at.arrived + flow] << 32 | ints[at.latest_number + flow])


@inner
def process_reply(ints: Ints, reals: Floats, at: Layout, flow: int, code: int, circuit: int) -> None:
    """Process a reply that has reached its sender; its flow may end, and others start then."""
    if np.isnan(reals[at.end_us + flow]):
        arrived, number = code >> 32, code & 0xFFFFFFFF
        newly = arrived - ints[at.acknowledged + flow]
        if newly > 0:  # else the reply was overtaken and has nothing new
            ints[at.acknowledged + flow] = arrived
            process_acknowledgement(ints, reals, at, flow, number, newly)
        if circuit != ints[at.circuit_signalled + flow]:
            factor = reals[ALPHA] if circuit else reals[BETA]
            reals[at.window + flow] = max(reals[at.window + flow] * factor, 1.0)
            ints[at.circuit_signalled + flow] = circuit
        if ints[at.delivered + flow] >= ints[at.size + flow]:
            reals[at.end_us + flow] = reals[NOW]
            ints[at.to_retransmit + flow] = 0
            ints[at.unsent + flow] = 0
            waiting = ints[at.first_successor + flow]
            while waiting >= 0:
                push(ints, reals, at, max(reals[NOW], reals[at.start_us + waiting]), FLOW_START, waiting)
                waiting = ints[at.next_successor + waiting]
        elif ints[at.outstanding + flow] > 0:
            restart_timer(ints, reals, at, flow)


@inner
def process_acknowledgement(
    ints: Ints, reals: Floats, at: Layout, flow: int, number: int, newly: int
) -> None:
    """Account for a reply to transmission `number` that acknowledges `newly` more transmissions.

    Numbers that arrived neither now nor before are `missing`. They count as lost once a few later ones
    have arrived, and are sent again. A packet that was only overtaken, by one over a circuit, is no longer
    missing when it arrives. An arrival of a transmission given up at a timeout makes another one that is
    outstanding `spurious`.
    """
    fresh = 0
    if number >= ints[at.restart_number + flow]:
        fresh = max(0, min(newly, number + 1 - ints[at.expected_number + flow]))
    late = newly - fresh
    if late > 0:
        ints[at.delivered + flow] += late
        overtaken = min(ints[at.missing + flow], late)
        ints[at.missing + flow] -= overtaken
        ints[at.outstanding + flow] -= overtaken
        late -= overtaken
        spared = min(ints[at.to_retransmit + flow], late)
        ints[at.to_retransmit + flow] -= spared
        ints[at.spurious + flow] += min(late - spared, ints[at.outstanding + flow] - ints[at.spurious + flow])
    if fresh > 0:
        filled = ints[at.outstanding + flow]
        gap = number + 1 - ints[at.expected_number + flow] - fresh
        ints[at.expected_number + flow] = number + 1
        if gap > 0:
            if ints[at.missing + flow] == 0:
                ints[at.later_arrivals + flow] = 0
            ints[at.missing + flow] += gap
        ints[at.outstanding + flow] -= fresh
        needless = min(ints[at.spurious + flow], fresh)
        ints[at.spurious + flow] -= needless
        ints[at.delivered + flow] += fresh - needless
        update_rtt(ints, reals, at, flow, number)
        update_window(ints, reals, at, flow, number, filled, fresh)


@inner
def update_rtt(ints: Ints, reals: Floats, at: Layout, flow: int, number: int) -> None:
    """Update the estimate of the round trip, by one transmission at a time (RFC 6298)."""
    ints[at.backoff + flow] = 0
    if 0 <= ints[at.timed_number + flow] <= number:
        trip = reals[NOW] - reals[at.timed_us + flow]
        ints[at.timed_number + flow] = -1
        if reals[at.smooth_rtt_us + flow] < 0:
            reals[at.smooth_rtt_us + flow] = trip
            reals[at.rtt_deviation_us + flow] = trip / 2
        else:
            error = abs(trip - reals[at.smooth_rtt_us + flow])
            reals[at.rtt_deviation_us + flow] += (error - reals[at.rtt_deviation_us + flow]) / 4
            reals[at.smooth_rtt_us + flow] += (trip - reals[at.smooth_rtt_us + flow]) / 8


@inner
def update_window(
    ints: Ints, reals: Floats, at: Layout, flow: int, number: int, filled: int, fresh: int
) -> None:
    """Halve the window for losses noticed by now, once a round trip; without any, grow it."""
    if ints[at.missing + flow] > 0:
        ints[at.later_arrivals + flow] += fresh
        if ints[at.later_arrivals + flow] >= DUPLICATES:
            ints[at.outstanding + flow] -= ints[at.missing + flow]
            needless = min(ints[at.spurious + flow], ints[at.missing + flow])
            ints[at.spurious + flow] -= needless
            ints[at.to_retransmit + flow] += ints[at.missing + flow] - needless
            ints[at.missing + flow] = 0
            if number >= ints[at.recovery_number + flow]:
                reals[at.threshold + flow] = max(reals[at.window + flow] / 2, LEAST_WINDOW)
                reals[at.window + flow] = reals[at.threshold + flow]
                ints[at.recovery_number + flow] = ints[at.next_number + flow]
    elif number >= ints[at.recovery_number + flow]:
        if reals[at.window + flow] < reals[at.threshold + flow]:
            if reals[at.window + flow] < 2 * filled:
                reals[at.window + flow] += fresh
        elif filled >= int(reals[at.window + flow]):
            reals[at.window + flow] += fresh / reals[at.window + flow]
