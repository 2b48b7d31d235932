"""The heap of events, by time and then in the order in which they were put there.

An event is one number: its place in that order, the index that it is for, and its kind; so numbers
compare as events of one instant follow each other.
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from planner_models.circuitflows.plan.packets.state import (
    EVENT_COUNT,
    HEAP_SIZE,
    TIMERS,
    Floats,
    Ints,
    Layout,
)
from planner_models.circuits.plan.compiled import inner

# not plain numbers, of each of which Numba would compile functions anew
HOST_SENT, UPLINK_DONE, ENTER, DOWNLINK_DONE, CIRCUIT_DONE, ARRIVAL, FLOW_START, LOOK, KILL = cast(
    "tuple[int, ...]", np.arange(9)
)
KIND_BITS: Final = 4
INDEX_BITS: Final = 24  # leaves 35 bits for the order of events: 34 thousand million
KIND_MASK: Final = (1 << KIND_BITS) - 1
INDEX_MASK: Final = (1 << INDEX_BITS) - 1


@inner
def push(ints: Ints, reals: Floats, at: Layout, us: float, kind: int, index: int) -> None:
    """Put an event into the heap."""
    slot = ints[HEAP_SIZE]
    sequence = ints[EVENT_COUNT]
    ints[HEAP_SIZE] = slot + 1
    ints[EVENT_COUNT] = sequence + 1
    while slot > 0:
        above = (slot - 1) >> 1
        if reals[at.heap_us + above] <= us:  # an event put there before at the same time stays before
            break
        reals[at.heap_us + slot] = reals[at.heap_us + above]
        ints[at.heap_event + slot] = ints[at.heap_event + above]
        slot = above
    reals[at.heap_us + slot] = us
    ints[at.heap_event + slot] = (sequence << (INDEX_BITS + KIND_BITS)) | (index << KIND_BITS) | kind


@inner
def pop(ints: Ints, reals: Floats, at: Layout) -> None:
    """Take the first event out of the heap."""
    ints[HEAP_SIZE] -= 1
    last = ints[HEAP_SIZE]
    us, event = reals[at.heap_us + last], ints[at.heap_event + last]
    slot = 0
    while True:
        below = 2 * slot + 1
        if below >= last:
            break
        first, other = reals[at.heap_us + below], reals[at.heap_us + below + 1]
        if below + 1 < last and (
            other < first
            or (other == first and ints[at.heap_event + below + 1] < ints[at.heap_event + below])
        ):
            below += 1
            first = other
        if first > us or (first == us and ints[at.heap_event + below] > event):
            break
        reals[at.heap_us + slot] = first
        ints[at.heap_event + slot] = ints[at.heap_event + below]
        slot = below
    reals[at.heap_us + slot] = us
    ints[at.heap_event + slot] = event


@inner
def place_timer(ints: Ints, reals: Floats, at: Layout, slot: int, flow: int) -> None:
    """Put a flow into the heap of timers at a place that is free, or above or below it in order."""
    us = reals[at.timer_us + flow]
    while slot > 0:
        above = (slot - 1) >> 1
        other = ints[at.timer_heap + above]
        if reals[at.timer_us + other] <= us:
            break
        ints[at.timer_heap + slot] = other
        ints[at.timer_place + other] = slot
        slot = above
    while True:
        below = 2 * slot + 1
        if below >= ints[TIMERS]:
            break
        other = ints[at.timer_heap + below]
        if below + 1 < ints[TIMERS]:
            right = ints[at.timer_heap + below + 1]
            if reals[at.timer_us + right] < reals[at.timer_us + other]:
                below += 1
                other = right
        if reals[at.timer_us + other] >= us:
            break
        ints[at.timer_heap + slot] = other
        ints[at.timer_place + other] = slot
        slot = below
    ints[at.timer_heap + slot] = flow
    ints[at.timer_place + flow] = slot


@inner
def set_timer(ints: Ints, reals: Floats, at: Layout, flow: int, us: float) -> None:
    """Let a flow's timer go off at `us`, or earlier, where it was set to: then it is put off."""
    place = ints[at.timer_place + flow]
    if place < 0:
        ints[TIMERS] += 1
        reals[at.timer_us + flow] = us
        place_timer(ints, reals, at, ints[TIMERS] - 1, flow)
    elif us < reals[at.timer_us + flow]:
        reals[at.timer_us + flow] = us
        place_timer(ints, reals, at, place, flow)


@inner
def drop_timer(ints: Ints, reals: Floats, at: Layout, flow: int) -> None:
    """Take a flow out of the heap of timers."""
    place = ints[at.timer_place + flow]
    ints[at.timer_place + flow] = -1
    ints[TIMERS] -= 1
    last = ints[at.timer_heap + ints[TIMERS]]
    if last != flow:
        place_timer(ints, reals, at, place, last)
