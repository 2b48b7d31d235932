"""Binary heap of numbers by their keys, compiled: the queue of all searches for shortest paths.

A heap is an array of numbers, of which the first `size` are in it. `key` has the key of each number; of equal
keys the one with the smaller `tie` comes first, where this is given. `place` has the place of each number in
the heap, -1 where it is not in it, so that a number whose key falls can rise; None where keys do not fall.

All are inlined and do without reference counts, which take a fifth of the time of a search otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from planner.compiled import njit, run_small_in_python

OPTIONS: Final[dict[str, Any]] = {"cache": True, "forceinline": True, "_nrt": False}
inlined: Final[Callable[[Any], Any]] = njit(**OPTIONS)


@run_small_in_python(max_elements=1_000)
@inlined
def push_heap(heap, key, position, size, number, tie=None):  # type: ignore[no-untyped-def]
    """Insert a number by its key, or move it up where it is in the heap; return the new size."""
    i = size
    if position is not None and position[number] >= 0:
        i = position[number]
    else:
        size += 1
    rise(heap, key, position, i, number, tie)
    return size


@inlined
def rise(heap, key, position, i, number, tie=None):  # type: ignore[no-untyped-def]
    """Put a number at place i, or as far above as it comes before the entries there."""
    while i > 0:
        above = heap[(i - 1) // 2]
        if not _is_before(number, above, key, tie):
            break
        heap[i] = above
        if position is not None:
            position[above] = i
        i = (i - 1) // 2
    heap[i] = number
    if position is not None:
        position[number] = i


@run_small_in_python(max_elements=1_000)
@inlined
def pop_heap(heap, key, position, size, tie=None):  # type: ignore[no-untyped-def]
    """Take out the number with the smallest key; return it and the new size."""
    top = heap[0]
    if position is not None:
        position[top] = -1
    size -= 1
    if size > 0:
        sink(heap, key, position, np.int64(0), size, heap[size], tie)
    return top, size


@run_small_in_python(max_elements=1_000)
@inlined
def sink(heap, key, position_of, i, size, number, tie=None):  # type: ignore[no-untyped-def]
    """Put a number at place i, or as far below as entries there come before it."""
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _is_before(heap[child + 1], heap[child], key, tie):
            child += 1
        if not _is_before(heap[child], number, key, tie):
            break
        heap[i] = heap[child]
        if position_of is not None:
            position_of[heap[i]] = i
        i = child
    heap[i] = number
    if position_of is not None:
        position_of[number] = i


@inlined
def _is_before(first, other, key, tie):  # type: ignore[no-untyped-def]
    if tie is None:
        return key[first] < key[other]
    return key[first] < key[other] or (key[first] == key[other] and tie[first] < tie[other])
