"""The heap of events, by time and then in the order in which they were put there.

An event is one number: its place in that order, the index that it is for, and its kind; so numbers
compare as events of one instant follow each other.
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from planner_models.circuitflows.plan.packets.state import EVENT_COUNT, HEAP_SIZE, Floats, Ints, Layout
from planner_models.circuits.plan.compiled import inner

# not plain numbers, of each of which Numba would compile functions anew
HOST_SENT, UPLINK_DONE, DOWNLINK_DONE, CIRCUIT_DONE, ARRIVAL, FLOW_START, TIMEOUT = cast(
    "tuple[int, ...]", np.arange(7)
)
KIND_BITS: Final = 3
INDEX_BITS: Final = 24  # leaves 36 bits for the order of events: 68 thousand million
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
