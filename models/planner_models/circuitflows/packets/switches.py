"""Racks' queues, the packet switch and the circuit switch."""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.circuitflows.packets.state import (
    BIN_US,
    BINS,
    CIRCUIT_DELAY_TICKS,
    CIRCUIT_PACKETS,
    INSIDE_CAPACITY,
    LOCAL,
    LOST,
    MARK_PACKETS,
    OVERFLOW,
    PACKET_DELAY_TICKS,
    PACKET_PACKETS,
    REPLIES_LOST,
    REPLY_SHARE,
    SMALL_CAPACITY,
    Layout,
)
from planner_models.packets.events import push
from planner_models.packets.receivers import MARKED, acknowledge
from planner_models.packets.senders import owner
from planner_models.packets.state import NOW, TICKS_PER_US, Floats, Ints

# kinds of events of links and switches, not plain numbers: Numba would compile functions anew for each
CIRCUIT_DONE, UPLINK_DONE, DOWNLINK_DONE, ENTER, ARRIVAL = cast("tuple[int, ...]", np.arange(5))

DAY_TOLERANCE: Final = 1e-2
"""Share of a packet's time by which its end may exceed that of the day."""


@inner_without_allocation
def wrap(position: int, ring: int) -> int:
    """Return the place in a ring of `position`, less than twice its length; faster than a division."""
    return position - ring if position >= ring else position


@inner_without_allocation
def sending_ticks(reals: Floats, ticks: float, flow: int) -> float:
    """Return the time that a packet takes on a link, from that of data; a reply's `flow` is negative."""
    return ticks if flow >= 0 else np.floor(ticks * reals[REPLY_SHARE] + 0.5)


@inner_without_allocation
def enqueue(ints: Ints, reals: Floats, layout: Layout, pair: int, flow: int, number: int) -> None:
    """Put a packet into the queue of its pair; lost where it is full, marked where it is long."""
    if ints[layout.queue_length + pair] >= ints[layout.capacity + pair]:
        ints[LOST if flow >= 0 else REPLIES_LOST] += 1
    else:
        if flow >= 0:
            ints[layout.queue_data + pair] += 1
            if ints[layout.queue_length + pair] >= ints[MARK_PACKETS]:
                number |= MARKED
        slot = wrap(ints[layout.queue_first + pair] + ints[layout.queue_length + pair], layout.queue_ring)
        slot_index = pair * layout.queue_ring + slot
        ints[layout.queue_flow + slot_index] = flow
        ints[layout.queue_number + slot_index] = number
        reals[layout.queue_since + slot_index] = reals[NOW]
        ints[layout.queue_length + pair] += 1


@inner_without_allocation
def has_packets(ints: Ints, layout: Layout, pair: int) -> bool:
    """Return whether a pair of racks has a packet to take."""
    return bool(ints[layout.returned_length + pair] + ints[layout.queue_length + pair] > 0)


@inner_without_allocation
def first_flow(ints: Ints, layout: Layout, pair: int) -> int:
    """Return the flow of the first packet of a pair that has any."""
    if ints[layout.returned_length + pair] > 0:
        return int(ints[layout.returned_flow + pair * layout.returned + ints[layout.returned_first + pair]])
    return int(ints[layout.queue_flow + pair * layout.queue_ring + ints[layout.queue_first + pair]])


@inner_without_allocation
def take_first(ints: Ints, reals: Floats, layout: Layout, pair: int) -> tuple[int, int, float]:
    """Take the first packet of a pair, one that was returned before others: flow, number and time."""
    if ints[layout.returned_length + pair] > 0:
        first = ints[layout.returned_first + pair]
        offset = pair * layout.returned + first
        ints[layout.returned_first + pair] = wrap(first + 1, layout.returned)
        ints[layout.returned_length + pair] -= 1
        return (
            ints[layout.returned_flow + offset],
            ints[layout.returned_number + offset],
            reals[layout.returned_since + offset],
        )
    first = ints[layout.queue_first + pair]
    offset = pair * layout.queue_ring + first
    ints[layout.queue_first + pair] = wrap(first + 1, layout.queue_ring)
    ints[layout.queue_length + pair] -= 1
    flow = ints[layout.queue_flow + offset]
    if flow >= 0:
        ints[layout.queue_data + pair] -= 1
        ints[layout.seen + owner(layout, flow)] += 1
    return flow, ints[layout.queue_number + offset], reals[layout.queue_since + offset]


@inner_without_allocation
def send_uplink(ints: Ints, reals: Floats, layout: Layout, rack: int) -> None:
    """Start to send the next packet, in turn, on the rack's link to the packet switch, if there is any."""
    n = layout.ends
    selected_target = -1
    if not ints[layout.uplink_busy + rack] and np.isfinite(reals[layout.packet_ticks + rack]):
        turn = ints[layout.uplink_turn + rack]
        for step in range(n):
            target = turn + step if turn + step < n else turn + step - n
            pair = rack * n + target
            if (
                not ints[layout.detached + pair]
                and has_packets(ints, layout, pair)
                and np.isfinite(reals[layout.packet_ticks + target])
            ):
                selected_target = target
                break
    if selected_target >= 0:
        pair = rack * n + selected_target
        flow, number, since = take_first(ints, reals, layout, pair)
        ints[layout.uplink_busy + rack] = 1
        ints[layout.uplink_pair + rack] = pair
        ints[layout.uplink_packet + rack * 2] = flow
        ints[layout.uplink_packet + rack * 2 + 1] = number
        reals[layout.uplink_since + rack] = since
        ints[layout.uplink_turn + rack] = wrap(selected_target + 1, n)
        finish = reals[NOW] + sending_ticks(reals, reals[layout.packet_ticks + rack], flow)
        push(ints, reals, layout, finish, UPLINK_DONE, rack)


@inner_without_allocation
def leave_uplink(ints: Ints, reals: Floats, layout: Layout, rack: int) -> None:
    """Let a packet leave a rack's uplink; it reaches the packet switch after the link's delay."""
    ints[layout.uplink_busy + rack] = 0
    ring, length = layout.pipe_ring, ints[layout.pipe_length + rack]
    if length >= ring:
        ints[OVERFLOW] = 1
        return
    offset = rack * ring + wrap(ints[layout.pipe_first + rack] + length, ring)
    ints[layout.pipe_flow + offset] = ints[layout.uplink_packet + rack * 2]
    ints[layout.pipe_number + offset] = ints[layout.uplink_packet + rack * 2 + 1]
    ints[layout.pipe_pair + offset] = ints[layout.uplink_pair + rack]
    reals[layout.pipe_since + offset] = reals[layout.uplink_since + rack]
    reals[layout.pipe_ticks + offset] = reals[NOW] + reals[PACKET_DELAY_TICKS]
    ints[layout.pipe_length + rack] = length + 1
    if length == 0:
        push(ints, reals, layout, reals[layout.pipe_ticks + offset], ENTER, rack)


@inner_without_allocation
def enter_packet_switch(ints: Ints, reals: Floats, layout: Layout, rack: int) -> int:
    """Move a packet from a rack into the packet switch; return its pair.

    Where its pair's places are taken, it returns to the rack, which sends it again before others. There it is
    lost where as many wait as `returned`.
    """
    ring, first = layout.pipe_ring, ints[layout.pipe_first + rack]
    source = rack * ring + first
    ints[layout.pipe_first + rack] = wrap(first + 1, ring)
    ints[layout.pipe_length + rack] -= 1
    if ints[layout.pipe_length + rack] > 0:
        push(
            ints,
            reals,
            layout,
            reals[layout.pipe_ticks + rack * ring + ints[layout.pipe_first + rack]],
            ENTER,
            rack,
        )
    pair = ints[layout.pipe_pair + source]
    flow, number = ints[layout.pipe_flow + source], ints[layout.pipe_number + source]
    if ints[layout.inside_length + pair] < ints[INSIDE_CAPACITY]:
        slot = wrap(
            ints[layout.inside_first + pair] + ints[layout.inside_length + pair], ints[INSIDE_CAPACITY]
        )
        offset = pair * ints[INSIDE_CAPACITY] + slot
        ints[layout.inside_flow + offset] = flow
        ints[layout.inside_number + offset] = number
        reals[layout.inside_since + offset] = reals[layout.pipe_since + source]
        ints[layout.inside_length + pair] += 1
    elif ints[layout.returned_length + pair] < layout.returned:
        slot = wrap(ints[layout.returned_first + pair] + ints[layout.returned_length + pair], layout.returned)
        offset = pair * layout.returned + slot
        ints[layout.returned_flow + offset] = flow
        ints[layout.returned_number + offset] = number
        reals[layout.returned_since + offset] = reals[layout.pipe_since + source]
        ints[layout.returned_length + pair] += 1
    else:
        ints[LOST if flow >= 0 else REPLIES_LOST] += 1
    return int(pair)


@inner_without_allocation
def send_downlink(ints: Ints, reals: Floats, layout: Layout, rack: int) -> None:
    """Start to send the next packet, in turn, on the packet switch's link to the rack, if there is any."""
    n = layout.ends
    selected_source = -1
    if not ints[layout.downlink_busy + rack]:
        turn = ints[layout.downlink_turn + rack]
        for step in range(n):
            source = turn + step if turn + step < n else turn + step - n
            if ints[layout.inside_length + source * n + rack]:
                selected_source = source
                break
    if selected_source >= 0:
        pair = selected_source * n + rack
        first = ints[layout.inside_first + pair]
        offset = pair * ints[INSIDE_CAPACITY] + first
        ints[layout.inside_first + pair] = wrap(first + 1, ints[INSIDE_CAPACITY])
        ints[layout.inside_length + pair] -= 1
        ints[layout.downlink_busy + rack] = 1
        ints[layout.downlink_pair + rack] = pair
        ints[layout.downlink_packet + rack * 2] = ints[layout.inside_flow + offset]
        ints[layout.downlink_packet + rack * 2 + 1] = ints[layout.inside_number + offset]
        reals[layout.downlink_since + rack] = reals[layout.inside_since + offset]
        ints[layout.downlink_turn + rack] = wrap(selected_source + 1, n)
        takes = sending_ticks(
            reals, reals[layout.packet_ticks + rack], ints[layout.downlink_packet + rack * 2]
        )
        push(ints, reals, layout, reals[NOW] + takes, DOWNLINK_DONE, rack)


@inner_without_allocation
def send_circuit(ints: Ints, reals: Floats, layout: Layout, rack: int) -> None:
    """Start to send the next packet on the rack's circuit, if it will be through before the day ends."""
    target = ints[layout.circuit_to + rack]
    if not ints[layout.circuit_busy + rack] and target >= 0:
        pair = rack * layout.ends + target
        flow = first_flow(ints, layout, pair)
        takes = reals[layout.circuit_ticks + rack * layout.ends + target]
        finish = reals[NOW] + sending_ticks(reals, takes, flow)
        # the tolerance lets a day as long as k packets carry k, of which each was rounded up
        if (
            has_packets(ints, layout, pair)
            and finish <= reals[layout.up_until_ticks + pair] + DAY_TOLERANCE * takes
        ):
            flow, number, since = take_first(ints, reals, layout, pair)
            ints[layout.circuit_busy + rack] = 1
            ints[layout.circuit_pair + rack] = pair
            ints[layout.circuit_packet + rack * 2] = flow
            ints[layout.circuit_packet + rack * 2 + 1] = number
            reals[layout.circuit_since + rack] = since
            push(ints, reals, layout, finish, CIRCUIT_DONE, rack)


@inner_without_allocation
def leave_switch(
    ints: Ints, reals: Floats, layout: Layout, pair: int, flow: int, number: int, since: float, circuit: int
) -> None:
    """Let a packet or a reply leave a switch for the other rack.

    Where replies go around the switches, the packet and its reply are in flight as one from here on.
    """
    now = reals[NOW]
    delay = reals[CIRCUIT_DELAY_TICKS] if circuit else reals[PACKET_DELAY_TICKS]
    to = pair
    if flow >= 0:
        latency = now + delay - since
        ints[layout.latency + circuit * BINS + min(int(latency / (BIN_US * TICKS_PER_US)), BINS - 1)] += 1
        ints[layout.carried + circuit * layout.ends * layout.ends + pair] += 1
        ints[CIRCUIT_PACKETS if circuit else PACKET_PACKETS] += 1
        if reals[REPLY_SHARE] == 0:
            number = acknowledge(ints, layout, flow, number)
            flow, delay = -1 - flow, 2 * delay if circuit else 3 * delay
    else:
        to = pair % layout.ends * layout.ends + pair // layout.ends  # a reply signals the circuit of the data
    ring = layout.flight_ring
    length = ints[layout.flight_length + pair]
    if number < 0:
        return
    if length >= ring:
        ints[OVERFLOW] = 1
        return
    slot = wrap(ints[layout.flight_first + pair] + length, ring)
    offset = pair * ring + slot
    last = reals[layout.flight_ticks + pair * ring + (slot if slot > 0 else ring) - 1]
    arrival_ticks = max(now + delay, last)  # nothing overtakes
    ints[layout.flight_flow + offset] = flow
    ints[layout.flight_number + offset] = number
    reals[layout.flight_ticks + offset] = arrival_ticks
    is_signalled = (
        reals[layout.up_until_ticks + to] > now or ints[layout.capacity + to] > ints[SMALL_CAPACITY]
    )
    ints[layout.flight_circuit + offset] = 1 if is_signalled else 0
    ints[layout.flight_length + pair] = length + 1
    if length == 0:
        push(ints, reals, layout, arrival_ticks, ARRIVAL, pair)


@inner_without_allocation
def deliver_inside(ints: Ints, reals: Floats, layout: Layout, pair: int, flow: int, mark: int) -> None:
    """Deliver a packet within its rack, over its host's link alone; its reply is there at once."""
    code = acknowledge(ints, layout, flow, mark)
    ints[LOCAL] += 1
    if code < 0:
        return
    ring, length = layout.flight_ring, ints[layout.flight_length + pair]
    if length >= ring:
        ints[OVERFLOW] = 1
        return
    offset = pair * ring + wrap(ints[layout.flight_first + pair] + length, ring)
    ints[layout.flight_flow + offset] = -1 - flow
    ints[layout.flight_number + offset] = code
    reals[layout.flight_ticks + offset] = reals[NOW]
    ints[layout.flight_circuit + offset] = 0
    ints[layout.flight_length + pair] = length + 1
    if length == 0:
        push(ints, reals, layout, reals[NOW], ARRIVAL, pair)
