"""Hosts: which flow sends next, and when flows begin and end."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner
from planner_models.circuitflows.plan.packets.controls import BBR
from planner_models.circuitflows.plan.packets.controls.bbr import record_packets
from planner_models.circuitflows.plan.packets.events import FLOW_START, HOST_SENT, KILL, LOOK, PACE, push
from planner_models.circuitflows.plan.packets.receivers import COMPLETES, MARK_BITS, WAITS
from planner_models.circuitflows.plan.packets.senders import (
    NO_PROBE,
    PROBE_DUE,
    active_sender,
    may_send,
    owner,
    timeout_ticks,
)
from planner_models.circuitflows.plan.packets.state import (
    BATCH,
    BUFFER_PACKETS,
    BUFFER_WINDOWS,
    CONTROL,
    HOST_PACKET_TICKS,
    LIFE_TICKS,
    LOOK_TICKS,
    NOW,
    SENT,
    Floats,
    Ints,
    Layout,
)
from planner_models.circuitflows.plan.packets.timers import arm_timer

BUFFER_SHARE: Final = 2 / 3  # of a send buffer; with less in it the application may write (Linux 4.4)
GOLDEN_RATIO: Final = 0.6180339887498949


@inner
def offer_flow(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Put a flow into its host's list of those that may send, if it may, and when it may if it is paced."""
    if not ints[at.is_ready + flow] and may_send(ints, reals, at, active_sender(ints, reals, at, flow)):
        if ints[CONTROL] == BBR and reals[at.bbr_next_ticks + flow] > reals[NOW]:
            if not ints[at.bbr_waits + flow]:
                ints[at.bbr_waits + flow] = 1
                push(ints, reals, at, reals[at.bbr_next_ticks + flow], PACE, flow)
            return
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
        sender = active_sender(ints, reals, at, flow)
        if may_send(ints, reals, at, sender):
            found = sender
    if found >= 0:
        flow = owner(at, found)
        is_again = ints[at.to_retransmit + flow] > 0 and ints[at.probe_code + found] != PROBE_DUE
        count = take_packets(ints, reals, at, found)
        if ints[CONTROL] == BBR:
            record_packets(ints, reals, at, found, ints[at.next_number + found], count)
        if ints[at.outstanding + found] == 0:
            reals[at.timeout_ticks + found] = reals[NOW] + timeout_ticks(ints, reals, at, found)
        ints[at.outstanding + found] += count
        ints[at.host_busy + host] = 1
        ints[at.host_sender + host] = found
        waits = not may_send(ints, reals, at, found)
        completes = is_again and ints[at.to_retransmit + flow] == 0
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
def take_packets(ints: Ints, reals: Floats, at: Layout, sender: int) -> int:
    """Take the next packets of a flow that may send: a probe, one to send again, or a batch of new ones."""
    flow = owner(at, sender)
    if ints[at.probe_code + sender] == PROBE_DUE:
        is_copy = ints[at.unsent + flow] == 0
        ints[at.probe_code + sender] = 2 * ints[at.next_number + sender] + (1 if is_copy else 0)
        if is_copy:
            ints[at.spurious + sender] += 1
        else:
            ints[at.unsent + flow] -= 1
        return 1
    if ints[at.to_retransmit + flow] > 0:
        ints[at.to_retransmit + flow] -= 1
        return 1
    residual = int(reals[at.window + sender]) - ints[at.outstanding + sender]
    count = min(ints[BATCH], ints[at.unsent + flow], residual)
    ints[at.unsent + flow] -= count
    return int(count)


@inner
def fill_buffer(ints: Ints, reals: Floats, at: Layout, flow: int, window: float) -> None:
    """Let the application hand over more data where a third of its send buffer is free.

    window  of the sender that has got a reply

    The buffer holds some times the flow's largest window, up to a limit (Linux 4.4).
    """
    widest = max(reals[at.widest + flow], window)
    reals[at.widest + flow] = widest
    buffer = min(reals[BUFFER_WINDOWS] * widest, reals[BUFFER_PACKETS])
    if ints[at.handed + flow] - ints[at.delivered + flow] <= buffer * BUFFER_SHARE:
        most = min(ints[at.delivered + flow] + buffer, float(ints[at.size + flow]))
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
        for sender in range(flow, at.senders, at.flows):
            ints[at.probe_code + sender] = NO_PROBE
        waiting = ints[at.first_successor + flow]
        while waiting >= 0:
            push(ints, reals, at, max(reals[NOW], reals[at.start_ticks + waiting]), FLOW_START, waiting)
            waiting = ints[at.next_successor + waiting]


@inner
def wake_pair(ints: Ints, reals: Floats, at: Layout, pair: int) -> None:
    """Let the flows of a pair of racks send over the path that is there now (TDTCP)."""
    for place in range(ints[at.pair_first + pair], ints[at.pair_first + pair + 1]):
        flow = ints[at.pair_flow + place]
        has_begun = ints[at.next_number + flow] + ints[at.next_number + flow + at.flows] > 0
        if has_begun and np.isnan(reals[at.end_ticks + flow]):
            offer_flow(ints, reals, at, flow)
            send_from_host(ints, reals, at, ints[at.host + flow])
