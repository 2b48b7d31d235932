"""Messages between clients and servers: logical clocks, delays, and the queue of arrivals."""

from __future__ import annotations

from planner_models.geostore.protocol.state import (
    CLOCK,
    DATACENTER,
    DRAW,
    FREE,
    HEAP_SIZE,
    IS_FULL,
    M_ARGUMENT,
    M_HOPS,
    M_ITEM,
    M_KIND,
    M_NEXT,
    M_OPERATION,
    M_SOURCE,
    M_STAMP,
    M_TARGET,
    NONE,
    SEQUENCE,
    STAMP_BASE,
    State,
    step,
)
from planner_models.graphs.binary_heap import pop_heap, push_heap

Pair = tuple[int, int]


@step
def stamp_of(s: State, node: int) -> int:
    """Return the current logical time of a node, with its number in the low-order bits."""
    return int(s.table[s.clock + node, CLOCK] * STAMP_BASE + node)


@step
def tick(s: State, node: int, stamp: int) -> int:
    """Advance a node's clock beyond a stamp that it receives; return its new logical time."""
    s.table[s.clock + node, CLOCK] = max(s.table[s.clock + node, CLOCK], stamp // STAMP_BASE) + 1
    return stamp_of(s, node)


@step
def datacenter_of(s: State, node: int) -> int:
    """Return the datacenter of a server or of a client."""
    servers = s.servers
    count = s.datacenters * servers
    if node >= count:
        return int(s.table[s.clients + node - count, DATACENTER])
    return node // servers


@step
def draw(s: State) -> float:
    """Return the next draw of an exponential with mean 1."""
    s.table[0, DRAW] = (s.table[0, DRAW] + 1) % len(s.draws)
    return float(s.draws[s.table[0, DRAW]])


@step
def arrival_ms(s: State, source: int, target: int) -> float:
    """Return the time at which a message that is sent now arrives; outages hold it back."""
    now = s.now_ms[0]
    if source == target:
        return float(now)
    start, end = datacenter_of(s, source), datacenter_of(s, target)
    delay = s.delays[0, start, end] + s.delays[1, start, end] * draw(s)
    if source >= s.datacenters * s.servers:
        delay += s.delays[2, start, end] * draw(s)
    departure = now
    if start != end:
        for row in range(len(s.outages)):
            lost = int(s.outages[row, 0])
            is_met = departure < s.outages[row, 2] and departure + delay >= s.outages[row, 1]
            if is_met and lost in (start, end):
                departure = s.outages[row, 2]
    return float(departure + delay)


@step
def take_slot(s: State) -> int:
    """Return a free row of the messages; NONE where there is none, which ends the run."""
    slot = s.table[0, FREE]
    if slot == NONE:
        s.table[0, IS_FULL] = 1
    else:
        s.table[0, FREE] = s.table[s.messages + slot, M_NEXT]
    return int(slot)


@step
def free_slot(s: State, slot: int) -> None:
    """Return a row of the messages to those that are free."""
    s.table[s.messages + slot, M_NEXT] = s.table[0, FREE]
    s.table[0, FREE] = slot


@step
def push(s: State, slot: int, at_ms: float) -> None:
    """Queue a message for a time; of equal times the first one queued comes first."""
    s.time_ms[slot] = at_ms
    s.table[0, SEQUENCE] += 1
    s.tie[slot] = s.table[0, SEQUENCE]
    s.table[0, HEAP_SIZE] = push_heap(s.heap, s.time_ms, None, s.table[0, HEAP_SIZE], slot, s.tie)


@step
def pop(s: State) -> int:
    """Take the next message out of the queue, and advance time to it; return its row."""
    slot, size = pop_heap(s.heap, s.time_ms, None, s.table[0, HEAP_SIZE], s.tie)
    s.table[0, HEAP_SIZE] = size
    s.now_ms[0] = s.time_ms[slot]
    return int(slot)


@step
def send(s: State, kind: int, operation: int, route: Pair, item: int, value: Pair) -> None:
    """Send a message.

    route  its source and target
    value  its argument, and the messages in a row that led to it, itself included
    """
    slot = take_slot(s)
    if slot == NONE:
        return
    source, target = route
    s.table[s.messages + slot, M_KIND] = kind
    s.table[s.messages + slot, M_OPERATION] = operation
    s.table[s.messages + slot, M_SOURCE] = source
    s.table[s.messages + slot, M_TARGET] = target
    s.table[s.messages + slot, M_STAMP] = stamp_of(s, source)
    s.table[s.messages + slot, M_ITEM] = item
    s.table[s.messages + slot, M_ARGUMENT] = value[0]
    s.table[s.messages + slot, M_HOPS] = value[1]
    if source != target:
        s.table[s.sent + kind, int(datacenter_of(s, source) != datacenter_of(s, target))] += 1
    push(s, slot, arrival_ms(s, source, target))
