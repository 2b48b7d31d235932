"""Insertion: the best tree of one object that fits the residual capacities, and its removal and return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from planner.arrays import Floats, Ints
from planner_models.livevideo.designs.decomposition.pricing import add_tree_rate, fits
from planner_models.livevideo.designs.tree import local_network as at
from planner_models.livevideo.designs.tree.indirect_call import address_of, caller_of, inner_kernel, kernel
from planner_models.livevideo.designs.tree.local_network import (
    LocalNetwork,
    NetworkArrays,
    ObjectArrays,
    PerLayer,
    gather_network,
)
from planner_models.livevideo.designs.tree.single_tree import solve_tree

STEPS: Final[Any] = np.int64(6)
NODES: Final[Any] = np.int64(1)  # effort for the tree of an object with many requests; typed, as START

call_for_none: Final[Callable[..., None]] = caller_of(nb.types.none)

START: Final[Any] = np.int64(0)
"""First row; typed, since a kernel is compiled anew for each plain number that another passes to it."""


class TreeState(NamedTuple):
    """Trees that fit together, the problem, and the data of moves that change them.

    paths     (Q, 3) links of layers a, b and c on the path to each request, -1 where it is not served
    dual      (Q,) multipliers to start from in the pricing of objects
    residual  (n,) residual capacity of the links of each layer, Mbit/s
    saved     (S, 3) paths of removed trees, S at least the requests of a move
    marked    (O,) 1 for objects of the move that is being made
    inserter  address of `insert_tree`
    """

    objects: ObjectArrays
    network: NetworkArrays
    net: LocalNetwork
    paths: Ints
    dual: Floats
    residual: PerLayer
    saved: Ints
    marked: Ints
    inserter: int = 0

    def with_inserter(self) -> TreeState:
        """Return the state with the address of `insert_tree`."""
        price = PerLayer(*[np.zeros((1, 1))] * 3)
        return self._replace(inserter=address_of(insert_tree, 0, price, self))


@inner_kernel
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


@inner_kernel
def object_value(o: int, state: TreeState) -> float:
    """Return the value of the tree of object o less its cost."""
    objects = state.objects
    first, last = objects.first[o], objects.first[o + 1]
    return tree_value(first, last, objects.bitrate[o], objects.value, state.network.cost, state.paths)


@inner_kernel
def occupy(o: int, state: TreeState) -> None:
    """Subtract the bitrate of object o from the residual capacity of its tree's links."""
    objects = state.objects
    add_tree_rate(objects.first[o], objects.first[o + 1], -objects.bitrate[o], state.paths, state.residual)


@kernel
def occupy_all(state: TreeState) -> float:
    """Occupy the links of all trees; return their value less their cost."""
    total = 0.0
    for o in range(len(state.objects.bitrate)):
        occupy(o, state)
        total += object_value(o, state)
    return total


@inner_kernel
def insert_tree(o: int, price: PerLayer, state: TreeState) -> None:
    """Give object o, which occupies no link, the best tree that fits at prices (K, n); residuals stay."""
    objects, net = state.objects, state.net
    first, last = objects.first[o], objects.first[o + 1]
    if first == last:
        return
    edges, reflectors = gather_network(o, price, state.residual, objects, state.network, net)
    if edges == 0 or reflectors == 0:
        clear_tree(o, state)
        return
    dual = net.floats[at.INSERTION_DUAL]
    for i in range(first, last):
        dual[i - first] = state.dual[i]
    paths = state.paths[first:last]
    solve_tree(last - first, edges, reflectors, net, paths, dual, STEPS, NODES)


@kernel
def insert_objects(order: Ints, price: PerLayer, is_new: bool, state: TreeState) -> float:
    """Insert objects in order and occupy their links; return the gain in value.

    is_new  whether no object occupies a link yet, and one keeps a tree in state.paths that fits; else
            only objects that lack some requests are inserted anew, if that gains value
    """
    gain = 0.0
    for o in order:
        first, last = state.objects.first[o], state.objects.first[o + 1]
        served = 0
        for i in range(first, last):
            if state.paths[i, 2] >= 0:
                served += 1
        if is_new:
            if not (served > 0 and fits(first, last, state.objects.bitrate[o], state.paths, state.residual)):
                call_for_none(state.inserter, (o, price, state))
        elif served == last - first:
            continue
        else:
            before = object_value(o, state)
            remove_tree(o, state, START)
            call_for_none(state.inserter, (o, price, state))
            after = object_value(o, state)
            if after < before:
                copy_rows(state.saved, START, last - first, state.paths, first)
                after = before
            gain += after - before
        occupy(o, state)
    return gain


@inner_kernel
def remove_tree(o: int, state: TreeState, row: int) -> int:
    """Release the links of object o and save its paths from `row` on; return the next free row."""
    first, last = state.objects.first[o], state.objects.first[o + 1]
    add_tree_rate(first, last, state.objects.bitrate[o], state.paths, state.residual)
    copy_rows(state.paths, first, last - first, state.saved, row)
    next_row: int = row + last - first
    return next_row


@inner_kernel
def copy_rows(source: Ints, first: int, count: int, target: Ints, row: int) -> None:
    """Copy `count` paths from row `first` on to another array, from `row` on."""
    for i in range(count):
        for column in range(3):
            target[row + i, column] = source[first + i, column]


@inner_kernel
def clear_tree(o: int, state: TreeState) -> None:
    """Leave all requests of object o, which occupies no link, without a path."""
    for i in range(state.objects.first[o], state.objects.first[o + 1]):
        for column in range(3):
            state.paths[i, column] = -1


@inner_kernel
def sort_by_key(keys: Floats, count: int, order: Ints) -> None:
    """Write the order of the first `count` keys, the smallest first, to `order`."""
    for n in range(count):
        index = n
        while index > 0 and keys[order[index - 1]] > keys[n]:
            order[index] = order[index - 1]
            index -= 1
        order[index] = n


@inner_kernel
def undo_move(removed: Ints, state: TreeState) -> None:
    """Give the removed objects, which all have trees again, their saved trees back."""
    first, paths = state.objects.first, state.paths
    for o in removed:
        add_tree_rate(first[o], first[o + 1], state.objects.bitrate[o], paths, state.residual)
    row = START
    for o in removed:
        copy_rows(state.saved, row, first[o + 1] - first[o], paths, first[o])
        row += first[o + 1] - first[o]
        occupy(o, state)
