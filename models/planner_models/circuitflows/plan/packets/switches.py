"""Racks' queues, the packet switch and the circuit switch."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner
from planner_models.circuitflows.plan.packets.events import (
    ARRIVAL,
    CIRCUIT_DONE,
    DOWNLINK_DONE,
    ENTER,
    UPLINK_DONE,
    push,
)
from planner_models.circuitflows.plan.packets.receivers import MARKED, acknowledge
from planner_models.circuitflows.plan.packets.senders import owner
from planner_models.circuitflows.plan.packets.state import (
    BIN_US,
    BINS,
    CIRCUIT_DELAY_TICKS,
    CIRCUIT_PACKETS,
    INSIDE_CAPACITY,
    LOCAL,
    LOST,
    MARK_PACKETS,
    NOW,
    OVERFLOW,
    PACKET_DELAY_TICKS,
    PACKET_PACKETS,
    REPLIES_LOST,
    REPLY_SHARE,
    SMALL_CAPACITY,
    TICKS_PER_US,
    Floats,
    Ints,
    Layout,
)

DAY_TOLERANCE: Final = 1e-2
"""Share of a packet's time by which its end may exceed that of the day."""


@inner
def wrap(place: int, ring: int) -> int:
    """Return the place in a ring of `place`, less than twice its length; faster than a division."""
    return place - ring if place >= ring else place


@inner
def sending_ticks(reals: Floats, ticks: float, flow: int) -> float:
    """Return the time that a packet takes on a link, from that of data; a reply's `flow` is negative."""
    return ticks if flow >= 0 else np.floor(ticks * reals[REPLY_SHARE] + 0.5)


@inner
def enqueue(ints: Ints, reals: Floats, at: Layout, pair: int, flow: int, number: int) -> None:
    """Put a packet into the queue of its pair; lost where it is full, marked where it is long."""
    if ints[at.queue_length + pair] >= ints[at.capacity + pair]:
        ints[LOST if flow >= 0 else REPLIES_LOST] += 1
    else:
        if flow >= 0:
            ints[at.queue_data + pair] += 1
            if ints[at.queue_length + pair] >= ints[MARK_PACKETS]:
                number |= MARKED
        slot = wrap(ints[at.queue_first + pair] + ints[at.queue_length + pair], at.queue_ring)
        place = pair * at.queue_ring + slot
        ints[at.queue_flow + place] = flow
        ints[at.queue_number + place] = number
        reals[at.queue_since + place] = reals[NOW]
        ints[at.queue_length + pair] += 1


@inner
def has_packets(ints: Ints, at: Layout, pair: int) -> bool:
    """Return whether a pair of racks has a packet to take."""
    return bool(ints[at.returned_length + pair] + ints[at.queue_length + pair] > 0)


@inner
def first_flow(ints: Ints, at: Layout, pair: int) -> int:
    """Return the flow of the first packet of a pair that has any."""
    if ints[at.returned_length + pair] > 0:
        return int(ints[at.returned_flow + pair * at.returned + ints[at.returned_first + pair]])
    return int(ints[at.queue_flow + pair * at.queue_ring + ints[at.queue_first + pair]])


@inner
def take_first(ints: Ints, reals: Floats, at: Layout, pair: int) -> tuple[int, int, float]:
    """Take the first packet of a pair, one that was returned before others: flow, number and time."""
    if ints[at.returned_length + pair] > 0:
        first = ints[at.returned_first + pair]
        place = pair * at.returned + first
        ints[at.returned_first + pair] = wrap(first + 1, at.returned)
        ints[at.returned_length + pair] -= 1
        return (
            ints[at.returned_flow + place],
            ints[at.returned_number + place],
            reals[at.returned_since + place],
        )
    first = ints[at.queue_first + pair]
    place = pair * at.queue_ring + first
    ints[at.queue_first + pair] = wrap(first + 1, at.queue_ring)
    ints[at.queue_length + pair] -= 1
    flow = ints[at.queue_flow + place]
    if flow >= 0:
        ints[at.queue_data + pair] -= 1
        ints[at.seen + owner(at, flow)] += 1
    return flow, ints[at.queue_number + place], reals[at.queue_since + place]


@inner
def send_uplink(ints: Ints, reals: Floats, at: Layout, rack: int) -> None:
    """Start to send the next packet, in turn, on the rack's link to the packet switch, if there is any."""
    n = at.racks
    found = -1
    if not ints[at.uplink_busy + rack] and np.isfinite(reals[at.packet_ticks + rack]):
        turn = ints[at.uplink_turn + rack]
        for step in range(n):
            target = turn + step if turn + step < n else turn + step - n
            pair = rack * n + target
            if (
                not ints[at.detached + pair]
                and has_packets(ints, at, pair)
                and np.isfinite(reals[at.packet_ticks + target])
            ):
                found = target
                break
    if found >= 0:
        pair = rack * n + found
        flow, number, since = take_first(ints, reals, at, pair)
        ints[at.uplink_busy + rack] = 1
        ints[at.uplink_pair + rack] = pair
        ints[at.uplink_packet + rack * 2] = flow
        ints[at.uplink_packet + rack * 2 + 1] = number
        reals[at.uplink_since + rack] = since
        ints[at.uplink_turn + rack] = wrap(found + 1, n)
        done = reals[NOW] + sending_ticks(reals, reals[at.packet_ticks + rack], flow)
        push(ints, reals, at, done, UPLINK_DONE, rack)


@inner
def leave_uplink(ints: Ints, reals: Floats, at: Layout, rack: int) -> None:
    """Let a packet leave a rack's uplink; it reaches the packet switch after the link's delay."""
    ints[at.uplink_busy + rack] = 0
    ring, length = at.pipe_ring, ints[at.pipe_length + rack]
    if length >= ring:
        ints[OVERFLOW] = 1
        return
    place = rack * ring + wrap(ints[at.pipe_first + rack] + length, ring)
    ints[at.pipe_flow + place] = ints[at.uplink_packet + rack * 2]
    ints[at.pipe_number + place] = ints[at.uplink_packet + rack * 2 + 1]
    ints[at.pipe_pair + place] = ints[at.uplink_pair + rack]
    reals[at.pipe_since + place] = reals[at.uplink_since + rack]
    reals[at.pipe_ticks + place] = reals[NOW] + reals[PACKET_DELAY_TICKS]
    ints[at.pipe_length + rack] = length + 1
    if length == 0:
        push(ints, reals, at, reals[at.pipe_ticks + place], ENTER, rack)


@inner
def enter_packet_switch(ints: Ints, reals: Floats, at: Layout, rack: int) -> int:
    """Move a packet from a rack into the packet switch; return its pair.

    Where its pair's places are taken, it returns to the rack, which sends it again before others. There it is
    lost where as many wait as `returned`.
    """
    ring, first = at.pipe_ring, ints[at.pipe_first + rack]
    source = rack * ring + first
    ints[at.pipe_first + rack] = wrap(first + 1, ring)
    ints[at.pipe_length + rack] -= 1
    if ints[at.pipe_length + rack] > 0:
        push(ints, reals, at, reals[at.pipe_ticks + rack * ring + ints[at.pipe_first + rack]], ENTER, rack)
    pair = ints[at.pipe_pair + source]
    flow, number = ints[at.pipe_flow + source], ints[at.pipe_number + source]
    if ints[at.inside_length + pair] < ints[INSIDE_CAPACITY]:
        slot = wrap(ints[at.inside_first + pair] + ints[at.inside_length + pair], ints[INSIDE_CAPACITY])
        place = pair * ints[INSIDE_CAPACITY] + slot
        ints[at.inside_flow + place] = flow
        ints[at.inside_number + place] = number
        reals[at.inside_since + place] = reals[at.pipe_since + source]
        ints[at.inside_length + pair] += 1
    elif ints[at.returned_length + pair] < at.returned:
        slot = wrap(ints[at.returned_first + pair] + ints[at.returned_length + pair], at.returned)
        place = pair * at.returned + slot
        ints[at.returned_flow + place] = flow
        ints[at.returned_number + place] = number
        reals[at.returned_since + place] = reals[at.pipe_since + source]
        ints[at.returned_length + pair] += 1
    else:
        ints[LOST if flow >= 0 else REPLIES_LOST] += 1
    return int(pair)


@inner
def send_downlink(ints: Ints, reals: Floats, at: Layout, rack: int) -> None:
    """Start to send the next packet, in turn, on the packet switch's link to the rack, if there is any."""
    n = at.racks
    found = -1
    if not ints[at.downlink_busy + rack]:
        turn = ints[at.downlink_turn + rack]
        for step in range(n):
            source = turn + step if turn + step < n else turn + step - n
            if ints[at.inside_length + source * n + rack]:
                found = source
                break
    if found >= 0:
        pair = found * n + rack
        first = ints[at.inside_first + pair]
        place = pair * ints[INSIDE_CAPACITY] + first
        ints[at.inside_first + pair] = wrap(first + 1, ints[INSIDE_CAPACITY])
        ints[at.inside_length + pair] -= 1
        ints[at.downlink_busy + rack] = 1
        ints[at.downlink_pair + rack] = pair
        ints[at.downlink_packet + rack * 2] = ints[at.inside_flow + place]
        ints[at.downlink_packet + rack * 2 + 1] = ints[at.inside_number + place]
        reals[at.downlink_since + rack] = reals[at.inside_since + place]
        ints[at.downlink_turn + rack] = wrap(found + 1, n)
        takes = sending_ticks(reals, reals[at.packet_ticks + rack], ints[at.downlink_packet + rack * 2])
        push(ints, reals, at, reals[NOW] + takes, DOWNLINK_DONE, rack)


@inner
def send_circuit(ints: Ints, reals: Floats, at: Layout, rack: int) -> None:
    """Start to send the next packet on the rack's circuit, if it will be through before the day ends."""
    target = ints[at.circuit_to + rack]
    if not ints[at.circuit_busy + rack] and target >= 0:
        pair = rack * at.racks + target
        flow = first_flow(ints, at, pair)
        takes = reals[at.circuit_ticks + rack * at.racks + target]
        done = reals[NOW] + sending_ticks(reals, takes, flow)
        # the tolerance lets a day as long as k packets carry k, of which each was rounded up
        if has_packets(ints, at, pair) and done <= reals[at.up_until_ticks + pair] + DAY_TOLERANCE * takes:
            flow, number, since = take_first(ints, reals, at, pair)
            ints[at.circuit_busy + rack] = 1
            ints[at.circuit_pair + rack] = pair
            ints[at.circuit_packet + rack * 2] = flow
            ints[at.circuit_packet + rack * 2 + 1] = number
            reals[at.circuit_since + rack] = since
            push(ints, reals, at, done, CIRCUIT_DONE, rack)


@inner
def leave_switch(
    ints: Ints, reals: Floats, at: Layout, pair: int, flow: int, number: int, since: float, circuit: int
) -> None:
    """Let a packet or a reply leave a switch for the other rack.

    Where replies go around the switches, the packet and its reply are in flight as one from here on.
    """
    now = reals[NOW]
    delay = reals[CIRCUIT_DELAY_TICKS] if circuit else reals[PACKET_DELAY_TICKS]
    to = pair
    if flow >= 0:
        latency = now + delay - since
        ints[at.latency + circuit * BINS + min(int(latency / (BIN_US * TICKS_PER_US)), BINS - 1)] += 1
        ints[at.carried + circuit * at.racks * at.racks + pair] += 1
        ints[CIRCUIT_PACKETS if circuit else PACKET_PACKETS] += 1
        if reals[REPLY_SHARE] == 0:
            number = acknowledge(ints, at, flow, number)
            flow, delay = -1 - flow, 2 * delay if circuit else 3 * delay
    else:
        to = pair % at.racks * at.racks + pair // at.racks  # a reply signals the circuit of the data
    ring = at.flight_ring
    length = ints[at.flight_length + pair]
    if number < 0:
        return
    if length >= ring:
        ints[OVERFLOW] = 1
        return
    slot = wrap(ints[at.flight_first + pair] + length, ring)
    place = pair * ring + slot
    last = reals[at.flight_ticks + pair * ring + (slot if slot > 0 else ring) - 1]
    arrival_ticks = max(now + delay, last)  # nothing overtakes
    ints[at.flight_flow + place] = flow
    ints[at.flight_number + place] = number
    reals[at.flight_ticks + place] = arrival_ticks
    is_signalled = reals[at.up_until_ticks + to] > now or ints[at.capacity + to] > ints[SMALL_CAPACITY]
    ints[at.flight_circuit + place] = 1 if is_signalled else 0
    ints[at.flight_length + pair] = length + 1
    if length == 0:
        push(ints, reals, at, arrival_ticks, ARRIVAL, pair)


@inner
def deliver_inside(ints: Ints, reals: Floats, at: Layout, pair: int, flow: int, mark: int) -> None:
    """Deliver a packet within its rack, over its host's link alone; its reply is there at once."""
    code = acknowledge(ints, at, flow, mark)
    ints[LOCAL] += 1
    if code < 0:
        return
    ring, length = at.flight_ring, ints[at.flight_length + pair]
    if length >= ring:
        ints[OVERFLOW] = 1
        return
    place = pair * ring + wrap(ints[at.flight_first + pair] + length, ring)
    ints[at.flight_flow + place] = -1 - flow
    ints[at.flight_number + place] = code
    reals[at.flight_ticks + place] = reals[NOW]
    ints[at.flight_circuit + place] = 0
    ints[at.flight_length + pair] = length + 1
    if length == 0:
        push(ints, reals, at, reals[NOW], ARRIVAL, pair)
