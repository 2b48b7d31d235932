"""Insertion: the best tree of one object that fits the residual capacities, and its removal and return."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.designs.decomposition.pricing import add_tree_rate, solve_tree
from planner_models.livevideo.designs.tree.local_network import (
    LocalNetwork,
    NetworkArrays,
    ObjectArrays,
    PerLayer,
    gather_network,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS: Final[Any] = np.int64(6)
NODES: Final[Any] = np.int64(1)
"""Effort for the tree of an object with many requests; typed, as plain numbers are compiled anew."""


class TreeState(NamedTuple):
    """Trees that fit together, and what moves need to change them.

    paths     (Q, 3) links of layers a, b and c on the path to each request, -1 where it is not served
    dual      (Q,) multipliers to start from in the pricing of objects
    residual  (n,) residual capacity of the links of each layer, Mbit/s
    saved     (S, 3) paths of removed trees, S at least the requests of a move
    marked    (O,) 1 for objects of the move that is being made
    """

    paths: Ints
    dual: Floats
    residual: PerLayer
    saved: Ints
    marked: Ints


@nb.njit(cache=True, nogil=True)
def tree_value(first: int, last: int, rate: float, value: Floats, cost: PerLayer, paths: Ints) -> float:
    """Return the value of the requests first:last that are served, less rate x cost of their tree's links."""
    total = 0.0
    for i in range(first, last):
        c = paths[i, 2]
        if c < 0:
            continue
        total += value[i] - rate * cost.c[c]
        new_b, new_a = True, True
        for other in range(first, i):
            if paths[other, 2] < 0:
                continue
            if paths[other, 1] == paths[i, 1]:
                new_b = False
                new_a = False
                break
            if paths[other, 0] == paths[i, 0]:
                new_a = False
        if new_b:
            total -= rate * cost.b[paths[i, 1]]
        if new_a:
            total -= rate * cost.a[paths[i, 0]]
    return total


@nb.njit(cache=True, nogil=True)
def object_tree_value(o: int, objects: ObjectArrays, cost: PerLayer, paths: Ints) -> float:
    """Return the value of the tree of object o less its cost."""
    return tree_value(objects.first[o], objects.first[o + 1], objects.bitrate[o], objects.value, cost, paths)


@nb.njit(cache=True, nogil=True)
def total_value(objects: ObjectArrays, cost: PerLayer, paths: Ints) -> float:
    """Return the value of all trees less their cost."""
    total = 0.0
    for o in range(len(objects.bitrate)):
        total += object_tree_value(o, objects, cost, paths)
    return total


@nb.njit(cache=True, nogil=True)
def occupy(o: int, objects: ObjectArrays, paths: Ints, residual: PerLayer) -> None:
    """Subtract the bitrate of object o from the residual capacity of its tree's links."""
    add_tree_rate(objects.first[o], objects.first[o + 1], -objects.bitrate[o], paths, residual)


@nb.njit(cache=True, nogil=True)
def insert_tree(
    o: int,
    price: PerLayer,
    objects: ObjectArrays,
    network: NetworkArrays,
    net: LocalNetwork,
    state: TreeState,
) -> None:
    """Give object o, which occupies no link, the best tree that fits at prices (K, n); residuals stay."""
    first, last = objects.first[o], objects.first[o + 1]
    if first == last:
        return
    edges, reflectors = gather_network(o, price, state.residual, objects, network, net)
    if edges == 0 or reflectors == 0:
        for i in range(first, last):
            for column in range(3):
                state.paths[i, column] = -1
        return
    for i in range(first, last):
        net.insertion_dual[i - first] = state.dual[i]
    solve_tree(
        last - first, edges, reflectors, net, state.paths[first:last], net.insertion_dual, STEPS, NODES
    )


@nb.njit(cache=True, nogil=True)
def remove_tree(o: int, objects: ObjectArrays, state: TreeState, row: int, is_cleared: bool) -> int:
    """Release the links of object o and save its paths from `row` on; return the next free row.

    is_cleared  whether its paths become -1, else they stay as a start for pricing
    """
    first, last = objects.first[o], objects.first[o + 1]
    add_tree_rate(first, last, objects.bitrate[o], state.paths, state.residual)
    for i in range(first, last):
        for column in range(3):
            state.saved[row, column] = state.paths[i, column]
            if is_cleared:
                state.paths[i, column] = -1
        row += 1
    return row


@nb.njit(cache=True, nogil=True)
def undo_move(removed: Ints, objects: ObjectArrays, state: TreeState) -> None:
    """Give the removed objects, which all have trees again, their saved trees back."""
    for o in removed:
        first, last = objects.first[o], objects.first[o + 1]
        add_tree_rate(first, last, objects.bitrate[o], state.paths, state.residual)
    row = 0
    for o in removed:
        for i in range(objects.first[o], objects.first[o + 1]):
            for column in range(3):
                state.paths[i, column] = state.saved[row, column]
            row += 1
        occupy(o, objects, state.paths, state.residual)
