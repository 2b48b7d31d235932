"""Hosts: which flow sends next, and when flows begin and end."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets.controls import BBR
from planner_models.packets.controls.bbr import record_packets
from planner_models.packets.events import FLOW_START, HOST_SENT, KILL, LOOK, PACE, push
from planner_models.packets.receivers import COMPLETES, MARK_BITS, WAITS
from planner_models.packets.senders import (
    NO_PROBE,
    PROBE_DUE,
    active_sender,
    may_send,
    owner,
    timeout_ticks,
)
from planner_models.packets.state import (
    BATCH,
    BUFFER_PACKETS,
    BUFFER_WINDOWS,
    HOST_PACKET_TICKS,
    LIFE_TICKS,
    LOOK_TICKS,
    NOW,
    SENT,
    Floats,
    Ints,
    Layout,
)
from planner_models.packets.timers import arm_timer

BUFFER_SHARE: Final = 2 / 3  # of a send buffer; with less in it the application may write (Linux 4.4)
GOLDEN_RATIO: Final = 0.6180339887498949


@inner_without_allocation
def offer_flow(ints: Ints, reals: Floats, layout: Layout, flow: int) -> None:
    """Put a flow into its host's list of those that may send, if it may, and when it may if it is paced."""
    if not ints[layout.is_ready + flow] and may_send(
        ints, reals, layout, active_sender(ints, reals, layout, flow)
    ):
        if ints[layout.control + flow] == BBR and reals[layout.bbr_next_ticks + flow] > reals[NOW]:
            if not ints[layout.bbr_waits + flow]:
                ints[layout.bbr_waits + flow] = 1
                push(ints, reals, layout, reals[layout.bbr_next_ticks + flow], PACE, flow)
            return
        host = ints[layout.host + flow]
        ints[layout.is_ready + flow] = 1
        ints[layout.ready_next + flow] = -1
        if ints[layout.ready_tail + host] < 0:
            ints[layout.ready_head + host] = flow
        else:
            ints[layout.ready_next + ints[layout.ready_tail + host]] = flow
        ints[layout.ready_tail + host] = flow


@inner_without_allocation
def send_from_host(ints: Ints, reals: Floats, layout: Layout, host: int) -> None:
    """Start to send a packet, or a batch of new ones, of the host's next flow that may send."""
    selected_sender = -1
    while not ints[layout.host_busy + host] and ints[layout.ready_head + host] >= 0 and selected_sender < 0:
        flow = ints[layout.ready_head + host]
        ints[layout.ready_head + host] = ints[layout.ready_next + flow]
        if ints[layout.ready_head + host] < 0:
            ints[layout.ready_tail + host] = -1
        ints[layout.is_ready + flow] = 0
        sender = active_sender(ints, reals, layout, flow)
        if may_send(ints, reals, layout, sender):
            selected_sender = sender
    if selected_sender >= 0:
        flow = owner(layout, selected_sender)
        is_again = (
            ints[layout.to_retransmit + flow] > 0 and ints[layout.probe_code + selected_sender] != PROBE_DUE
        )
        count = take_packets(ints, reals, layout, selected_sender)
        if ints[layout.control + selected_sender] == BBR:
            record_packets(
                ints, reals, layout, selected_sender, ints[layout.next_number + selected_sender], count
            )
        if ints[layout.outstanding + selected_sender] == 0:
            reals[layout.timeout_ticks + selected_sender] = reals[NOW] + timeout_ticks(
                ints, reals, layout, selected_sender
            )
        ints[layout.outstanding + selected_sender] += count
        ints[layout.host_busy + host] = 1
        ints[layout.host_sender + host] = selected_sender
        waits = not may_send(ints, reals, layout, selected_sender)
        completes = is_again and ints[layout.to_retransmit + flow] == 0
        marks = (WAITS if waits else 0) | (COMPLETES if completes else 0)
        ints[layout.host_number + host] = ints[layout.next_number + selected_sender] << MARK_BITS | marks
        ints[layout.host_count + host] = count
        if ints[layout.timed_number + selected_sender] < 0:
            ints[layout.timed_number + selected_sender] = ints[layout.next_number + selected_sender]
            reals[layout.timed_ticks + selected_sender] = reals[NOW]
        ints[layout.next_number + selected_sender] += count
        ints[SENT] += count
        arm_timer(ints, reals, layout, selected_sender)
        push(ints, reals, layout, reals[NOW] + count * reals[HOST_PACKET_TICKS], HOST_SENT, host)


@inner_without_allocation
def take_packets(ints: Ints, reals: Floats, layout: Layout, sender: int) -> int:
    """Take the next packets of a flow that may send: a probe, one to send again, or a batch of new ones."""
    flow = owner(layout, sender)
    if ints[layout.probe_code + sender] == PROBE_DUE:
        is_copy = ints[layout.unsent + flow] == 0
        ints[layout.probe_code + sender] = 2 * ints[layout.next_number + sender] + (1 if is_copy else 0)
        if is_copy:
            ints[layout.spurious + sender] += 1
        else:
            ints[layout.unsent + flow] -= 1
        return 1
    if ints[layout.to_retransmit + flow] > 0:
        ints[layout.to_retransmit + flow] -= 1
        return 1
    residual = int(reals[layout.window + sender]) - ints[layout.outstanding + sender]
    count = min(ints[BATCH], ints[layout.unsent + flow], residual)
    ints[layout.unsent + flow] -= count
    return int(count)


@inner_without_allocation
def fill_buffer(ints: Ints, reals: Floats, layout: Layout, flow: int, window: float) -> None:
    """Let the application hand over more data where a third of its send buffer is free.

    window  of the sender that has got a reply

    The buffer holds some times the flow's largest window, up to a limit (Linux 4.4).
    """
    widest = max(reals[layout.widest + flow], window)
    reals[layout.widest + flow] = widest
    buffer = min(reals[BUFFER_WINDOWS] * widest, reals[BUFFER_PACKETS])
    if ints[layout.handed + flow] - ints[layout.delivered + flow] <= buffer * BUFFER_SHARE:
        upper = min(ints[layout.delivered + flow] + buffer, float(ints[layout.flow_size + flow]))
        ints[layout.handed + flow] = max(ints[layout.handed + flow], int(upper))


@inner_without_allocation
def begin_flow(ints: Ints, reals: Floats, layout: Layout, flow: int) -> bool:
    """Begin a flow, and set when it is killed; return whether its host sees it at once."""
    host = ints[layout.host + flow]
    ints[layout.host_flows + host] += 1
    reals[layout.start_ticks + flow] = reals[NOW]
    if np.isfinite(reals[LIFE_TICKS]):
        push(ints, reals, layout, reals[NOW] + reals[LIFE_TICKS], KILL, flow)
    if reals[LOOK_TICKS] == 0 or ints[layout.host_flows + host] > 1:
        return True
    # hosts look at different times: their phases are spread evenly
    phase = np.floor((host * GOLDEN_RATIO) % 1.0 * reals[LOOK_TICKS])
    looks = np.ceil((reals[NOW] - phase) / reals[LOOK_TICKS])
    push(ints, reals, layout, max(phase + looks * reals[LOOK_TICKS], reals[NOW]), LOOK, flow)
    return False


@inner_without_allocation
def end_flow(ints: Ints, reals: Floats, layout: Layout, flow: int) -> None:
    """End a flow, if it has not ended; those that wait for it start."""
    if np.isnan(reals[layout.end_ticks + flow]):
        reals[layout.end_ticks + flow] = reals[NOW]
        ints[layout.host_flows + ints[layout.host + flow]] -= 1
        ints[layout.to_retransmit + flow] = 0
        ints[layout.unsent + flow] = 0
        for sender in range(flow, layout.senders, layout.flows):
            ints[layout.probe_code + sender] = NO_PROBE
        waiting = ints[layout.first_successor + flow]
        while waiting >= 0:
            push(
                ints, reals, layout, max(reals[NOW], reals[layout.start_ticks + waiting]), FLOW_START, waiting
            )
            waiting = ints[layout.next_successor + waiting]
