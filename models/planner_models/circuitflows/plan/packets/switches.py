"""Racks' queues, the packet switch and the circuit switch."""

from __future__ import annotations

import numpy as np

from planner_models.circuitflows.plan.packets.events import (
    ARRIVAL,
    CIRCUIT_DONE,
    DOWNLINK_DONE,
    UPLINK_DONE,
    push,
)
from planner_models.circuitflows.plan.packets.state import (
    BIN_US,
    BINS,
    CIRCUIT_DELAY_US,
    CIRCUIT_PACKETS,
    INSIDE_CAPACITY,
    LOST,
    NOW,
    OVERFLOW,
    PACKET_DELAY_US,
    PACKET_PACKETS,
    REPLIES_LOST,
    REPLY_SHARE,
    Floats,
    Ints,
    Layout,
)
from planner_models.circuitflows.plan.packets.tcp import acknowledge
from planner_models.circuits.plan.compiled import inner


@inner
def wrap(place: int, ring: int) -> int:
    """Return the place in a ring of `place`, less than twice its length; faster than a division."""
    return place - ring if place >= ring else place


@inner
def packet_share(reals: Floats, flow: int) -> float:
    """Return the time that a packet takes, in that of one with data; a reply has a negative `flow`."""
    return 1.0 if flow >= 0 else reals[REPLY_SHARE]


@inner
def enqueue(ints: Ints, reals: Floats, at: Layout, pair: int, flow: int, number: int) -> None:
    """Put a packet into the queue of its pair; it is lost where the queue is full."""
    if ints[at.queue_length + pair] >= ints[at.capacity + pair]:
        ints[LOST if flow >= 0 else REPLIES_LOST] += 1
    else:
        if flow >= 0:
            ints[at.queue_data + pair] += 1
        slot = wrap(ints[at.queue_first + pair] + ints[at.queue_length + pair], at.queue_ring)
        place = pair * at.queue_ring + slot
        ints[at.queue_flow + place] = flow
        ints[at.queue_number + place] = number
        reals[at.queue_since + place] = reals[NOW]
        ints[at.queue_length + pair] += 1


@inner
def take_first(ints: Ints, reals: Floats, at: Layout, pair: int) -> tuple[int, int, float]:
    """Take the first packet out of a queue; return its flow, its number and when it came."""
    first = ints[at.queue_first + pair]
    ints[at.queue_first + pair] = wrap(first + 1, at.queue_ring)
    ints[at.queue_length + pair] -= 1
    flow = ints[at.queue_flow + pair * at.queue_ring + first]
    if flow >= 0:
        ints[at.queue_data + pair] -= 1
    return (
        flow,
        ints[at.queue_number + pair * at.queue_ring + first],
        reals[at.queue_since + pair * at.queue_ring + first],
    )


@inner
def send_uplink(ints: Ints, reals: Floats, at: Layout, rack: int) -> None:
    """Start to send the next packet, in turn, on the rack's link to the packet switch, if there is any."""
    n = at.racks
    found = -1
    if not ints[at.uplink_busy + rack] and np.isfinite(reals[at.packet_us + rack]):
        turn = ints[at.uplink_turn + rack]
        for step in range(n):
            target = turn + step if turn + step < n else turn + step - n
            pair = rack * n + target
            if (
                ints[at.queue_length + pair]
                and not ints[at.detached + pair]
                and ints[at.inside_taken + pair] < ints[INSIDE_CAPACITY]
                and np.isfinite(reals[at.packet_us + target])
            ):
                found = target
                break
    if found >= 0:
        pair = rack * n + found
        flow, number, since = take_first(ints, reals, at, pair)
        ints[at.inside_taken + pair] += 1
        ints[at.uplink_busy + rack] = 1
        ints[at.uplink_pair + rack] = pair
        ints[at.uplink_packet + rack * 2] = flow
        ints[at.uplink_packet + rack * 2 + 1] = number
        reals[at.uplink_since + rack] = since
        ints[at.uplink_turn + rack] = wrap(found + 1, n)
        done = reals[NOW] + reals[at.packet_us + rack] * packet_share(reals, flow)
        push(ints, reals, at, done, UPLINK_DONE, rack)


@inner
def enter_packet_switch(ints: Ints, reals: Floats, at: Layout, rack: int) -> int:
    """Move a packet from a rack's uplink inside the packet switch; return the rack that it goes to."""
    pair = ints[at.uplink_pair + rack]
    slot = wrap(ints[at.inside_first + pair] + ints[at.inside_length + pair], ints[INSIDE_CAPACITY])
    place = pair * ints[INSIDE_CAPACITY] + slot
    ints[at.inside_flow + place] = ints[at.uplink_packet + rack * 2]
    ints[at.inside_number + place] = ints[at.uplink_packet + rack * 2 + 1]
    reals[at.inside_since + place] = reals[at.uplink_since + rack]
    ints[at.inside_length + pair] += 1
    ints[at.uplink_busy + rack] = 0
    return int(pair % at.racks)


@inner
def send_downlink(ints: Ints, reals: Floats, at: Layout, rack: int) -> int:
    """Start to send the next packet, in turn, on the packet switch's link to the rack.

    Return the rack that it came from, of which a place inside is free now; -1 where there is no packet.
    """
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
        ints[at.inside_taken + pair] -= 1
        ints[at.downlink_busy + rack] = 1
        ints[at.downlink_pair + rack] = pair
        ints[at.downlink_packet + rack * 2] = ints[at.inside_flow + place]
        ints[at.downlink_packet + rack * 2 + 1] = ints[at.inside_number + place]
        reals[at.downlink_since + rack] = reals[at.inside_since + place]
        ints[at.downlink_turn + rack] = wrap(found + 1, n)
        share = packet_share(reals, ints[at.downlink_packet + rack * 2])
        push(ints, reals, at, reals[NOW] + reals[at.packet_us + rack] * share, DOWNLINK_DONE, rack)
    return found


@inner
def send_circuit(ints: Ints, reals: Floats, at: Layout, rack: int) -> None:
    """Start to send the next packet on the rack's circuit, if it will be through before the day ends."""
    target = ints[at.circuit_to + rack]
    if not ints[at.circuit_busy + rack] and target >= 0:
        pair = rack * at.racks + target
        flow = ints[at.queue_flow + pair * at.queue_ring + ints[at.queue_first + pair]]
        done = reals[NOW] + reals[at.circuit_us + rack * at.racks + target] * packet_share(reals, flow)
        # the tolerance lets a day as long as k packets carry k
        if ints[at.queue_length + pair] and done <= reals[at.up_until_us + pair] + 1e-9 * max(done, 1.0):
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
    delay = reals[CIRCUIT_DELAY_US] if circuit else 2 * reals[PACKET_DELAY_US]
    to = pair
    if flow >= 0:
        latency = now + delay - since
        ints[at.latency + circuit * BINS + min(int(latency / BIN_US), BINS - 1)] += 1
        ints[at.carried + circuit * at.racks * at.racks + pair] += 1
        ints[CIRCUIT_PACKETS if circuit else PACKET_PACKETS] += 1
        if reals[REPLY_SHARE] == 0:
            number = acknowledge(ints, at, flow, number)
            flow, delay = -1 - flow, 2 * delay
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
    last = reals[at.flight_us + pair * ring + (slot if slot > 0 else ring) - 1]
    arrival_us = max(now + delay, last)  # nothing overtakes
    ints[at.flight_flow + place] = flow
    ints[at.flight_number + place] = number
    reals[at.flight_us + place] = arrival_us
    ints[at.flight_circuit + place] = 1 if reals[at.up_until_us + to] > now else 0
    ints[at.flight_length + pair] = length + 1
    if length == 0:
        push(ints, reals, at, arrival_us, ARRIVAL, pair)
