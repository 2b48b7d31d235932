"""Binary heap of numbers by their keys, compiled: the queue of all shortest-path searches."""

from __future__ import annotations

import numba


@numba.njit(cache=True, nogil=True)
def push_heap(heap, key, place, size, node):  # type: ignore[no-untyped-def]
    """Insert a node into the heap by its key, or move it up where it is in it."""
    i = place[node]
    if i < 0:
        i = size
        size += 1
    while i > 0:
        above = (i - 1) // 2
        if key[heap[above]] <= key[node]:
            break
        heap[i] = heap[above]
        place[heap[i]] = i
        i = above
    heap[i] = node
    place[node] = i
    return size


@numba.njit(cache=True, nogil=True)
def pop_heap(heap, key, place, size):  # type: ignore[no-untyped-def]
    """Take the node with the smallest key out of the heap."""
    top = heap[0]
    place[top] = -1
    size -= 1
    if size:
        moved = heap[size]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
                child += 1
            if key[heap[child]] >= key[moved]:
                break
            heap[i] = heap[child]
            place[heap[i]] = i
            i = child
        heap[i] = moved
        place[moved] = i
    return top, size
