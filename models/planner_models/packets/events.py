"""The heap of events: by time, then by when they were caused, then by kind, then by the index they are for.

An event is one number: what is left of the longest wait, its kind, and its index; so numbers compare as
events of one instant follow each other. The one that was caused first comes first; of one cause, what
leaves a link or a switch comes before what arrives, and frees its place. No two events of one instant are
the same number: a link, a pair or a flow waits for one event of a kind at a time. So the order of events is
a rule about the network, and not about the code that puts them here.
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets.state import (
    EVENT_COUNT,
    HEAP_SIZE,
    NOW,
    TIMERS,
    Floats,
    Ints,
    Layout,
    SenderLayout,
)

# not plain numbers, of each of which Numba would compile functions anew
HOST_SENT, FLOW_START, LOOK, PACE, KILL = cast("tuple[int, ...]", np.arange(5, 10))
"""Kinds of events of hosts; those of links and switches are below `HOST_SENT`."""
INDEX_BITS: Final = 24
KIND_BITS: Final = 4
INDEX_MASK: Final = (1 << INDEX_BITS) - 1
KIND_MASK: Final = (1 << KIND_BITS) - 1
LONGEST_WAIT: Final = (1 << 34) - 1
"""Ticks between cause and event from which on events of one instant count as caused together: 0.17 s."""


@inner_without_allocation
def push(ints: Ints, reals: Floats, layout: Layout, ticks: float, kind: int, index: int) -> None:
    """Put an event into the heap, caused now."""
    slot = ints[HEAP_SIZE]
    wait = int(min(ticks - reals[NOW], float(LONGEST_WAIT)))
    event = ((LONGEST_WAIT - wait) << KIND_BITS | kind) << INDEX_BITS | index
    ints[HEAP_SIZE] = slot + 1
    ints[EVENT_COUNT] += 1
    while slot > 0:
        above = (slot - 1) >> 1
        other = reals[layout.heap_ticks + above]
        if other < ticks or (other == ticks and ints[layout.heap_event + above] < event):
            break
        reals[layout.heap_ticks + slot] = other
        ints[layout.heap_event + slot] = ints[layout.heap_event + above]
        slot = above
    reals[layout.heap_ticks + slot] = ticks
    ints[layout.heap_event + slot] = event


@inner_without_allocation
def pop(ints: Ints, reals: Floats, layout: Layout) -> None:
    """Take the first event out of the heap."""
    ints[HEAP_SIZE] -= 1
    last = ints[HEAP_SIZE]
    ticks, event = reals[layout.heap_ticks + last], ints[layout.heap_event + last]
    slot = 0
    while True:
        below = 2 * slot + 1
        if below >= last:
            break
        first, other = reals[layout.heap_ticks + below], reals[layout.heap_ticks + below + 1]
        if below + 1 < last and (
            other < first
            or (other == first and ints[layout.heap_event + below + 1] < ints[layout.heap_event + below])
        ):
            below += 1
            first = other
        if first > ticks or (first == ticks and ints[layout.heap_event + below] > event):
            break
        reals[layout.heap_ticks + slot] = first
        ints[layout.heap_event + slot] = ints[layout.heap_event + below]
        slot = below
    reals[layout.heap_ticks + slot] = ticks
    ints[layout.heap_event + slot] = event


@inner_without_allocation
def is_timer_before(reals: Floats, layout: SenderLayout, first: int, other: int) -> bool:
    """Return whether the timer of one flow goes off before that of another: by time, then by number."""
    difference = reals[layout.timer_ticks + first] - reals[layout.timer_ticks + other]
    return bool(difference < 0 or (difference == 0 and first < other))


@inner_without_allocation
def place_timer(ints: Ints, reals: Floats, layout: SenderLayout, slot: int, flow: int) -> None:
    """Put a flow into the heap of timers at a place that is free, or above or below it in order."""
    while slot > 0:
        above = (slot - 1) >> 1
        other = ints[layout.timer_heap + above]
        if is_timer_before(reals, layout, other, flow):
            break
        ints[layout.timer_heap + slot] = other
        ints[layout.timer_place + other] = slot
        slot = above
    while True:
        below = 2 * slot + 1
        if below >= ints[TIMERS]:
            break
        other = ints[layout.timer_heap + below]
        if below + 1 < ints[TIMERS]:
            right = ints[layout.timer_heap + below + 1]
            if is_timer_before(reals, layout, right, other):
                below += 1
                other = right
        if is_timer_before(reals, layout, flow, other):
            break
        ints[layout.timer_heap + slot] = other
        ints[layout.timer_place + other] = slot
        slot = below
    ints[layout.timer_heap + slot] = flow
    ints[layout.timer_place + flow] = slot


@inner_without_allocation
def set_timer(ints: Ints, reals: Floats, layout: SenderLayout, flow: int, ticks: float) -> None:
    """Let a flow's timer go off at `ticks`, or earlier, where it was set to: then it is put off."""
    slot = ints[layout.timer_place + flow]
    if slot < 0:
        ints[TIMERS] += 1
        reals[layout.timer_ticks + flow] = ticks
        place_timer(ints, reals, layout, ints[TIMERS] - 1, flow)
    elif ticks < reals[layout.timer_ticks + flow]:
        reals[layout.timer_ticks + flow] = ticks
        place_timer(ints, reals, layout, slot, flow)


@inner_without_allocation
def drop_timer(ints: Ints, reals: Floats, layout: SenderLayout, flow: int) -> None:
    """Take a flow out of the heap of timers."""
    slot = ints[layout.timer_place + flow]
    ints[layout.timer_place + flow] = -1
    ints[TIMERS] -= 1
    last = ints[layout.timer_heap + ints[TIMERS]]
    if last != flow:
        place_timer(ints, reals, layout, slot, last)
