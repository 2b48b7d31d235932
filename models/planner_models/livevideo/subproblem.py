"""The best tree of one object at given link prices: exact for few requests, bounded for many.

An object asked for by k groups may be served to any of them. Its tree opens reflectors (each at the
price of the cheapest link from a source), links from reflectors to edges, and links from edges to
groups; a group that is served brings its value. Up to `EXACT` requests the best tree is found by
dynamic programming over sets of requests (Dreyfus and Wagner 1971 in a layered graph). Beyond,
dual ascent (Wong 1984) bounds the value of every tree and branching on reflectors tightens it.

A tree is held per request as the three links (a, b, c) on the way down to its group, or -1: the
trees of all objects together are one (Q, 3) array.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

EXACT = 6
"""Requests up to which the dynamic program is used: its work grows as 3 to their number."""

EPS = 1e-12

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@nb.njit(cache=True)  # type: ignore[untyped-decorator]
def one_request(
    value: float,
    cf: int,
    cl: int,
    c_edge: Ints,
    c_price: Floats,
    b_first: Ints,
    b_reflector: Ints,
    b_price: Floats,
    a_price: Floats,
    a_link: Ints,
    choice: Ints,
) -> float:
    """The best path for a single request; c_edge[cf:cl] are the links into its group."""
    best = 0.0
    choice[0] = -1
    choice[1] = -1
    choice[2] = -1
    for c in range(cf, cl):
        if c_price[c] >= value - best:
            continue
        e = c_edge[c]
        for b in range(b_first[e], b_first[e + 1]):
            gain = value - c_price[c] - b_price[b] - a_price[b_reflector[b]]
            if gain > best:
                best = gain
                choice[0] = a_link[b_reflector[b]]
                choice[1] = b
                choice[2] = c
    return best
