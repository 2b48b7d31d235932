"""Hosts, TCP senders and TCP receivers."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner_models.circuitflows.plan.packets.events import (
    FLOW_START,
    HOST_SENT,
    KILL,
    LOOK,
    drop_timer,
    place_timer,
    push,
    set_timer,
)
from planner_models.circuitflows.plan.packets.state import (
    ALPHA,
    BATCH,
    BETA,
    BUFFER_PACKETS,
    BUFFER_WINDOWS,
    HOST_PACKET_TICKS,
    LEAST_TIMEOUT_TICKS,
    LIFE_TICKS,
    LOOK_TICKS,
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
DUPLICATES: Final = 3  # packets that may be overtaken before a loss is noticed (RFC 5681, RFC 6675)
BUFFER_SHARE: Final = 2 / 3  # of a send buffer; with less in it the application may write (Linux 4.4)
MOST_REORDERING: Final = 300  # packets (Linux 4.4)
RACK_SHARE: Final = (
    1 / 200
)  # time for which a packet may be overtaken, in shortest timeouts (RACK, Linux 4.4)
MOST_BACKOFF: Final = 10  # doublings of the timeout
PROBE_SHARE: Final = 10 / 200  # shortest time to a tail loss probe, in shortest timeouts (Linux 4.4)
EARLY_SHARE: Final = 2 / 200  # shortest delay of an early retransmission, in shortest timeouts (Linux 4.4)

GOLDEN_RATIO: Final = 0.6180339887498949
MARK_BITS: Final = 2
WAITS, COMPLETES = 1, 2
"""Marks of a packet: its sender can send no other after it; it is the last of those that are sent again."""
TIMEOUT, PROBE, EARLY = 0, 1, 2
"""What a flow's timer is for: a timeout, a tail loss probe, or an early retransmission."""
NO_PROBE, PROBE_DUE = -1, -2
"""Values of `probe_code`, which else is twice the probe's number, plus 1 where it is a copy."""


@inner
def may_send(ints: Ints, reals: Floats, at: Layout, flow: int) -> bool:
    """Return whether a flow may send a packet."""
    if ints[at.probe_code + flow] == PROBE_DUE:
        return True
    return bool(
        ints[at.unsent + flow] + ints[at.to_retransmit + flow] > 0
        and ints[at.outstanding + flow] < int(reals[at.window + flow])
    )


@inner
def offer_flow(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Put a flow into its host's list of those that may send, if it may."""
    if not ints[at.is_ready + flow] and may_send(ints, reals, at, flow):
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
    """Start to send a packet, or a batch of new ones, of the host's next flow that may send."""
    found = -1
    while not ints[at.host_busy + host] and ints[at.ready_head + host] >= 0 and found < 0:
        flow = ints[at.ready_head + host]
        ints[at.ready_head + host] = ints[at.ready_next + flow]
        if ints[at.ready_head + host] < 0:
            ints[at.ready_tail + host] = -1
        ints[at.is_ready + flow] = 0
        if may_send(ints, reals, at, flow):
            found = flow
    if found >= 0:
        is_again = ints[at.to_retransmit + found] > 0 and ints[at.probe_code + found] != PROBE_DUE
        count = take_packets(ints, reals, at, found)
        if ints[at.outstanding + found] == 0:
            reals[at.timeout_ticks + found] = reals[NOW] + timeout_ticks(ints, reals, at, found)
        ints[at.outstanding + found] += count
        ints[at.host_busy + host] = 1
        ints[at.host_flow + host] = found
        waits = not may_send(ints, reals, at, found)
        completes = is_again and ints[at.to_retransmit + found] == 0
        marks = (WAITS if waits else 0) | (COMPLETES if completes else 0)
        ints[at.host_number + host] = ints[at.next_number + found] << MARK_BITS | marks
        ints[at.host_count + host] = count
        if ints[at.timed_number + found] < 0:
            ints[at.timed_number + found] = ints[at.next_number + found]
            reals[at.timed_ticks + found] = reals[NOW]
        ints[at.next_number + found] += count
        ints[SENT] += count
        arm_timer(ints, reals, at, found)
        push(ints, reals, at, reals[NOW] + count * reals[HOST_PACKET_TICKS], HOST_SENT, host)


@inner
def take_packets(ints: Ints, reals: Floats, at: Layout, flow: int) -> int:
    """Take the next packets of a flow that may send: a probe, one to send again, or a batch of new ones."""
    if ints[at.probe_code + flow] == PROBE_DUE:
        is_copy = ints[at.unsent + flow] == 0
        ints[at.probe_code + flow] = 2 * ints[at.next_number + flow] + (1 if is_copy else 0)
        if is_copy:
            ints[at.spurious + flow] += 1
        else:
            ints[at.unsent + flow] -= 1
        return 1
    if ints[at.to_retransmit + flow] > 0:
        ints[at.to_retransmit + flow] -= 1
        return 1
    room = int(reals[at.window + flow]) - ints[at.outstanding + flow]
    count = min(ints[BATCH], ints[at.unsent + flow], room)
    ints[at.unsent + flow] -= count
    return int(count)


@inner
def timeout_ticks(ints: Ints, reals: Floats, at: Layout, flow: int) -> float:
    """Return the time without a reply after which the flow sends again (RFC 6298)."""
    least = reals[LEAST_TIMEOUT_TICKS]
    if reals[at.smooth_rtt_ticks + flow] >= 0:
        least = max(least, reals[at.smooth_rtt_ticks + flow] + 4 * reals[at.rtt_deviation_ticks + flow])
    return float(np.floor(least * 2.0 ** min(ints[at.backoff + flow], MOST_BACKOFF)))


@inner
def is_open(ints: Ints, at: Layout, flow: int) -> bool:
    """Return whether a flow misses nothing and has recovered from all losses."""
    recovered = ints[at.expected_number + flow] >= ints[at.recovery_number + flow]
    return bool(recovered and ints[at.missing + flow] == 0)


@inner
def arm_timer(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Set the timer of a flow with packets outstanding to what comes first.

    That is the timeout; a tail loss probe after two round trips, where nothing is lost and nothing more can
    be sent; or an early retransmission a quarter of a round trip after a loss that too few packets follow
    to show.
    """
    least, rtt = reals[LEAST_TIMEOUT_TICKS], max(reals[at.smooth_rtt_ticks + flow], 0.0)
    ticks, kind = reals[at.timeout_ticks + flow], TIMEOUT
    waits = not may_send(ints, reals, at, flow)
    few = ints[at.outstanding + flow] + ints[at.later_arrivals + flow] <= DUPLICATES
    few = few and ints[at.reordering + flow] == DUPLICATES
    may_probe = ints[at.probe_code + flow] == NO_PROBE and ints[at.backoff + flow] == 0
    if waits and may_probe and is_open(ints, at, flow):
        probe = max(2 * rtt, PROBE_SHARE * least)
        if ints[at.outstanding + flow] == 1:
            probe = max(probe, 1.5 * rtt + least)
        ticks, kind = min(ticks, np.floor(reals[NOW] + probe)), PROBE
    elif waits and few and ints[at.missing + flow] > 0 and ints[at.later_arrivals + flow] > 0:
        ticks, kind = min(ticks, np.floor(reals[NOW] + max(rtt / 4, EARLY_SHARE * least))), EARLY
    reals[at.deadline_ticks + flow] = ticks
    ints[at.timer + flow] = kind
    set_timer(ints, reals, at, flow, ticks)


@inner
def expire_timer(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Do what a flow's timer is for; put it off where it goes off early."""
    if not np.isnan(reals[at.end_ticks + flow]) or ints[at.outstanding + flow] == 0:
        drop_timer(ints, reals, at, flow)
    elif reals[at.deadline_ticks + flow] > reals[NOW]:
        reals[at.timer_ticks + flow] = reals[at.deadline_ticks + flow]
        place_timer(ints, reals, at, ints[at.timer_place + flow], flow)
    else:
        drop_timer(ints, reals, at, flow)
        if ints[at.timer + flow] == PROBE:
            ints[at.probe_code + flow] = PROBE_DUE
            if reals[at.timeout_ticks + flow] <= reals[NOW]:
                reals[at.timeout_ticks + flow] = reals[NOW] + timeout_ticks(ints, reals, at, flow)
        elif ints[at.timer + flow] == EARLY:
            notice_losses(ints, reals, at, flow)
            arm_timer(ints, reals, at, flow)
        else:
            time_out(ints, reals, at, flow)


@inner
def time_out(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Take all that is outstanding for lost and let one packet go.

    What was is kept, since the next reply may show that nothing was lost (F-RTO, RFC 5682).
    """
    is_first = ints[at.backoff + flow] == 0 and ints[at.missing + flow] == 0
    reals[at.undo_window + flow] = reals[at.window + flow] if is_first else 0.0
    reals[at.undo_threshold + flow] = reals[at.threshold + flow]
    ints[at.undo_outstanding + flow] = ints[at.outstanding + flow]
    ints[at.undo_spurious + flow] = ints[at.spurious + flow]
    ints[at.undo_expected + flow] = ints[at.expected_number + flow]
    ints[at.undo_restart + flow] = ints[at.restart_number + flow]
    ints[at.undo_retransmit + flow] = ints[at.to_retransmit + flow]
    reals[at.threshold + flow] = max(reals[at.window + flow] / 2, LEAST_WINDOW)
    reals[at.window + flow] = 1.0
    ints[at.to_retransmit + flow] += ints[at.outstanding + flow] - ints[at.spurious + flow]
    ints[at.outstanding + flow] = 0
    ints[at.spurious + flow] = 0
    if ints[at.later_arrivals + flow] >= DUPLICATES:  # so many were overtaken for a loss, not by reordering
        ints[at.reordering + flow] = DUPLICATES
    ints[at.missing + flow] = 0
    ints[at.later_arrivals + flow] = 0
    ints[at.restart_number + flow] = ints[at.next_number + flow]
    ints[at.expected_number + flow] = ints[at.next_number + flow]
    ints[at.recovery_number + flow] = ints[at.next_number + flow]
    ints[at.unproven + flow] = 0
    ints[at.backoff + flow] += 1
    ints[at.timed_number + flow] = -1
    ints[at.probe_code + flow] = NO_PROBE


@inner
def undo_timeout(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Take a timeout back: what was sent since then are copies of packets that are still on their way."""
    copies = ints[at.next_number + flow] - ints[at.restart_number + flow]
    needed = ints[at.undo_outstanding + flow] - ints[at.undo_spurious + flow]
    if copies <= needed:
        reals[at.window + flow] = reals[at.undo_window + flow]
        reals[at.threshold + flow] = reals[at.undo_threshold + flow]
        ints[at.outstanding + flow] = ints[at.undo_outstanding + flow] + copies
        ints[at.spurious + flow] = ints[at.undo_spurious + flow] + copies
        ints[at.expected_number + flow] = ints[at.undo_expected + flow]
        ints[at.recovery_number + flow] = ints[at.undo_expected + flow]
        ints[at.restart_number + flow] = ints[at.undo_restart + flow]
        ints[at.to_retransmit + flow] = ints[at.undo_retransmit + flow]


@inner
def acknowledge(ints: Ints, at: Layout, flow: int, mark: int) -> int:
    """Return the receiver's reply to a transmission, or -1 where it sends none.

    A reply is the count of transmissions that have arrived, times 2^32, plus the latest number.

    mark  number of the transmission, and whether the sender can send no other after it, and whether it is
          the last one to be sent again
    """
    number, ends = mark >> MARK_BITS, ints[at.is_incomplete + flow] and mark & COMPLETES
    in_order = number == ints[at.latest_number + flow] + 1
    ints[at.latest_number + flow] = max(ints[at.latest_number + flow], number)
    ints[at.arrived + flow] += 1
    if not in_order:
        ints[at.is_incomplete + flow] = 1
    at_once = ints[at.is_incomplete + flow] or mark & WAITS
    if in_order and ends:
        ints[at.is_incomplete + flow] = 0
    if not at_once and ints[at.arrived + flow] % ints[REPLY_EVERY]:
        return -1
    return int(ints[at.arrived + flow] << 32 | ints[at.latest_number + flow])


@inner
def fill_buffer(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Let the application hand over more data where a third of its send buffer is free.

    The buffer holds some times the flow's largest window, up to a limit (Linux 4.4).
    """
    widest = max(reals[at.widest + flow], reals[at.window + flow])
    reals[at.widest + flow] = widest
    room = min(reals[BUFFER_WINDOWS] * widest, reals[BUFFER_PACKETS])
    if ints[at.handed + flow] - ints[at.delivered + flow] <= room * BUFFER_SHARE:
        most = min(ints[at.delivered + flow] + room, float(ints[at.size + flow]))
        ints[at.handed + flow] = max(ints[at.handed + flow], int(most))


@inner
def begin_flow(ints: Ints, reals: Floats, at: Layout, flow: int) -> bool:
    """Begin a flow, and set when it is killed; return whether its host sees it at once."""
    host = ints[at.host + flow]
    ints[at.host_flows + host] += 1
    reals[at.start_ticks + flow] = reals[NOW]
    if np.isfinite(reals[LIFE_TICKS]):
        push(ints, reals, at, reals[NOW] + reals[LIFE_TICKS], KILL, flow)
    if reals[LOOK_TICKS] == 0 or ints[at.host_flows + host] > 1:
        return True
    # hosts look at different times: their phases are spread evenly
    phase = np.floor((host * GOLDEN_RATIO) % 1.0 * reals[LOOK_TICKS])
    looks = np.ceil((reals[NOW] - phase) / reals[LOOK_TICKS])
    push(ints, reals, at, max(phase + looks * reals[LOOK_TICKS], reals[NOW]), LOOK, flow)
    return False


@inner
def end_flow(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """End a flow, if it has not ended; those that wait for it start."""
    if np.isnan(reals[at.end_ticks + flow]):
        reals[at.end_ticks + flow] = reals[NOW]
        ints[at.host_flows + ints[at.host + flow]] -= 1
        ints[at.to_retransmit + flow] = 0
        ints[at.unsent + flow] = 0
        ints[at.probe_code + flow] = NO_PROBE
        waiting = ints[at.first_successor + flow]
        while waiting >= 0:
            push(ints, reals, at, max(reals[NOW], reals[at.start_ticks + waiting]), FLOW_START, waiting)
            waiting = ints[at.next_successor + waiting]


@inner
def process_reply(ints: Ints, reals: Floats, at: Layout, flow: int, code: int, circuit: int) -> None:
    """Process a reply that has reached its sender; its flow may end, and others start then."""
    if np.isnan(reals[at.end_ticks + flow]):
        arrived, number = code >> 32, code & 0xFFFFFFFF
        newly = arrived - ints[at.acknowledged + flow]
        if newly > 0:  # else the reply was overtaken and has nothing new
            ints[at.acknowledged + flow] = arrived
            process_acknowledgement(ints, reals, at, flow, number, newly)
            follow_signal(ints, reals, at, flow, circuit)
            fill_buffer(ints, reals, at, flow)
        if ints[at.delivered + flow] >= ints[at.size + flow]:
            end_flow(ints, reals, at, flow)
        elif ints[at.outstanding + flow] > 0:
            reals[at.timeout_ticks + flow] = reals[NOW] + timeout_ticks(ints, reals, at, flow)
            arm_timer(ints, reals, at, flow)


@inner
def follow_signal(ints: Ints, reals: Floats, at: Layout, flow: int, circuit: int) -> None:
    """Multiply the window when a circuit is signalled, and divide it when it is no more (reTCP).

    Only a flow that misses nothing does, and it divides only after it has multiplied.
    """
    if circuit != ints[at.circuit_signalled + flow] and is_open(ints, at, flow):
        factor = reals[ALPHA] if circuit else reals[BETA]
        reals[at.window + flow] = max(reals[at.window + flow] * factor, 1.0)
        ints[at.circuit_signalled + flow] = circuit


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
    if reals[at.undo_window + flow] > 0:
        if number < ints[at.restart_number + flow]:
            undo_timeout(ints, reals, at, flow)
        reals[at.undo_window + flow] = 0.0
    fresh = 0
    if number >= ints[at.restart_number + flow]:
        fresh = max(0, min(newly, number + 1 - ints[at.expected_number + flow]))
    late = newly - fresh
    if late > 0:
        overtaken = min(ints[at.missing + flow], late)
        ints[at.missing + flow] -= overtaken
        ints[at.outstanding + flow] -= overtaken
        spared = min(ints[at.to_retransmit + flow], late - overtaken)
        ints[at.to_retransmit + flow] -= spared
        rest = late - overtaken - spared
        needless = min(rest, ints[at.outstanding + flow] - ints[at.spurious + flow])
        ints[at.spurious + flow] += needless
        ints[at.delivered + flow] += overtaken + spared + needless  # others are copies of what had arrived
        if number >= ints[at.restart_number + flow]:
            notice_reordering(ints, reals, at, flow, overtaken, spared + needless)
    if fresh > 0:
        filled = ints[at.outstanding + flow]
        gap = number + 1 - ints[at.expected_number + flow] - fresh
        ints[at.expected_number + flow] = number + 1
        gap -= answer_probe(ints, reals, at, flow, number, gap)
        if gap > 0:
            if ints[at.missing + flow] == 0:
                ints[at.later_arrivals + flow] = 0
                reals[at.hole_ticks + flow] = reals[NOW]
            ints[at.missing + flow] += gap
        ints[at.outstanding + flow] -= fresh
        needless = min(ints[at.spurious + flow], fresh)
        ints[at.spurious + flow] -= needless
        ints[at.delivered + flow] += fresh - needless
        update_rtt(ints, reals, at, flow, number)
        update_window(ints, reals, at, flow, number, filled, fresh)


@inner
def answer_probe(ints: Ints, reals: Floats, at: Layout, flow: int, number: int, gap: int) -> int:
    """Return 1 where the probe arrived in place of a lost packet, which halves the window; else 0."""
    code = ints[at.probe_code + flow]
    if code < 0 or number < code >> 1:
        return 0
    ints[at.probe_code + flow] = NO_PROBE
    if gap == 0 or not code & 1 or ints[at.spurious + flow] == 0:
        return 0
    ints[at.spurious + flow] -= 1
    ints[at.outstanding + flow] -= 1
    reals[at.threshold + flow] = max(reals[at.window + flow] / 2, LEAST_WINDOW)
    reals[at.window + flow] = reals[at.threshold + flow]
    ints[at.recovery_number + flow] = ints[at.next_number + flow]
    return 1


@inner
def update_rtt(ints: Ints, reals: Floats, at: Layout, flow: int, number: int) -> None:
    """Update the estimate of the round trip, by one transmission at a time (RFC 6298)."""
    ints[at.backoff + flow] = 0
    if 0 <= ints[at.timed_number + flow] <= number:
        trip = reals[NOW] - reals[at.timed_ticks + flow]
        ints[at.timed_number + flow] = -1
        if reals[at.smooth_rtt_ticks + flow] < 0:
            reals[at.smooth_rtt_ticks + flow] = trip
            reals[at.rtt_deviation_ticks + flow] = trip / 2
        else:
            error = abs(trip - reals[at.smooth_rtt_ticks + flow])
            reals[at.rtt_deviation_ticks + flow] += (error - reals[at.rtt_deviation_ticks + flow]) / 4
            reals[at.smooth_rtt_ticks + flow] += (trip - reals[at.smooth_rtt_ticks + flow]) / 8


@inner
def update_window(
    ints: Ints, reals: Floats, at: Layout, flow: int, number: int, filled: int, fresh: int
) -> None:
    """Halve the window for losses noticed by now, once a round trip; without any, grow it."""
    if ints[at.missing + flow] > 0:
        ints[at.later_arrivals + flow] += fresh
        # holes count as overtaken until a packet was (FACK); then only what arrived does
        is_in_order = ints[at.reordering + flow] == DUPLICATES
        passed = ints[at.later_arrivals + flow] + (ints[at.missing + flow] - 1 if is_in_order else 0)
        recovers = ints[at.expected_number + flow] <= ints[at.recovery_number + flow]
        late_ticks = reals[NOW] - reals[at.hole_ticks + flow] - RACK_SHARE * reals[LEAST_TIMEOUT_TICKS]
        if passed >= ints[at.reordering + flow] or (recovers and late_ticks >= 0):
            notice_losses(ints, reals, at, flow)
    elif number >= ints[at.recovery_number + flow]:
        if reals[at.window + flow] < reals[at.threshold + flow]:
            if reals[at.window + flow] < 2 * filled:
                reals[at.window + flow] += fresh
        elif filled >= int(reals[at.window + flow]):
            reals[at.window + flow] += fresh / reals[at.window + flow]


@inner
def notice_losses(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Take what is missing for lost, and halve the window, once a round trip."""
    ints[at.outstanding + flow] -= ints[at.missing + flow]
    needless = min(ints[at.spurious + flow], ints[at.missing + flow])
    lost = ints[at.missing + flow] - needless
    ints[at.spurious + flow] -= needless
    ints[at.to_retransmit + flow] += lost
    ints[at.missing + flow] = 0
    ints[at.later_arrivals + flow] = 0
    ints[at.unproven + flow] += lost
    if ints[at.expected_number + flow] > ints[at.recovery_number + flow]:
        ints[at.unproven + flow] = lost
        reals[at.loss_window + flow] = reals[at.window + flow]
        reals[at.loss_threshold + flow] = reals[at.threshold + flow]
        reals[at.threshold + flow] = max(reals[at.window + flow] / 2, LEAST_WINDOW)
        reals[at.window + flow] = reals[at.threshold + flow]
        ints[at.recovery_number + flow] = ints[at.next_number + flow]


@inner
def notice_reordering(
    ints: Ints, reals: Floats, at: Layout, flow: int, overtaken: int, returned: int
) -> None:
    """Wait longer for packets that are overtaken; take a recovery back in which none was lost (RFC 3522).

    overtaken  packets that arrived late, before they were taken for lost
    returned   packets that arrived after that
    """
    if overtaken + returned > 0:
        seen = ints[at.missing + flow] + overtaken + ints[at.later_arrivals + flow]
        more = max(ints[at.reordering + flow] + 1, seen)
        ints[at.reordering + flow] = min(more, MOST_REORDERING)
    if returned > 0 and ints[at.unproven + flow] > 0:
        ints[at.unproven + flow] = max(ints[at.unproven + flow] - returned, 0)
        if ints[at.unproven + flow] == 0:
            reals[at.window + flow] = max(reals[at.window + flow], reals[at.loss_window + flow])
            reals[at.threshold + flow] = max(reals[at.threshold + flow], reals[at.loss_threshold + flow])
            ints[at.recovery_number + flow] = ints[at.expected_number + flow]
