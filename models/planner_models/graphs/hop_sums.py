"""Sums along the hops of traffic without cycles, compiled: each hop once, in topological order.

A hop leads from one place to another, and a place is a commodity at a node.
"""

from __future__ import annotations

import numpy as np

from planner.compiled import njit


@njit(cache=True)
def order_hops(tail, head, cells):  # type: ignore[no-untyped-def]
    """Return the hops in an order in which those into a place come before those out of it, shape (H,).

    Hops in cycles and behind them are left out.

    tail, head  (H,) places, from 0 to places - 1
    """
    hops = len(tail)
    first = np.zeros(cells + 1, dtype=np.int64)
    entering = np.zeros(cells, dtype=np.int64)
    for h in range(hops):
        first[tail[h] + 1] += 1
        entering[head[h]] += 1
    for p in range(cells):
        first[p + 1] += first[p]
    next_place = first[:-1].copy()
    by_tail = np.empty(hops, dtype=np.int64)
    for h in range(hops):
        by_tail[next_place[tail[h]]] = h
        next_place[tail[h]] += 1
    order = np.empty(hops, dtype=np.int64)
    stack = np.empty(cells, dtype=np.int64)
    is_start = entering == 0
    size = 0
    for start in range(cells):  # one commodity after the other: their places are next to each other
        if not is_start[start]:
            continue
        stack[0], depth = start, 1
        while depth > 0:
            depth -= 1
            p = stack[depth]
            for i in range(first[p], first[p + 1]):
                h = by_tail[i]
                order[size] = h
                size += 1
                entering[head[h]] -= 1
                if entering[head[h]] == 0:
                    stack[depth] = head[h]
                    depth += 1
    return order[:size].copy()


@njit(cache=True)
def add_forward(tail, head, share, total):  # type: ignore[no-untyped-def]
    """Add the share of each hop of the amount at its tail to its head; hops in the order of `order_hops`."""
    for h in range(len(tail)):
        total[head[h]] += share[h] * total[tail[h]]


@njit(cache=True)
def add_backward(tail, head, share, total):  # type: ignore[no-untyped-def]
    """Add the share of each hop of the amount at its head to its tail, against that order."""
    for h in range(len(tail) - 1, -1, -1):
        total[tail[h]] += share[h] * total[head[h]]


@njit(cache=True)
def add_loads(tail, head, link, share, passed, total, load):  # type: ignore[no-untyped-def]
    """Add the traffic of each hop to the load of its link, and the passed amount to the hop's head.

    total  (places,) traffic that begins at each place, overwritten by all that is there
    """
    for h in range(len(tail)):
        amount = share[h] * total[tail[h]]
        load[link[h]] += amount
        total[head[h]] += passed[link[h]] * amount
