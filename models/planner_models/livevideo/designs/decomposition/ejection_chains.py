"""Ejection chains: an object gets its best tree, objects in its way are removed and inserted elsewhere.

The reduced cost of an object's tree is the value of its best tree at the dual prices less its own
value. An object of high reduced cost is given its best tree; from each full link of it other objects
are ejected until it fits, and inserted again afterwards. The move stays if the value does not fall.

source  Glover, "Ejection chains, reference structures and alternating path methods" (1996)

Insertion: the best tree of one object that fits the residual capacities, and its removal and return.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from planner.arrays import Floats, Ints
from planner_models.livevideo.designs.decomposition.layered_problem import LayeredProblem
from planner_models.livevideo.designs.decomposition.pricing import add_tree_rate, fits, used_links
from planner_models.livevideo.designs.tree import local_network as at
from planner_models.livevideo.designs.tree.local_network import (
    LocalNetwork,
    NetworkArrays,
    ObjectArrays,
    PerLayer,
    address_of,
    allocating_kernel,
    caller_of,
    gather_network,
    inner_kernel,
    kernel,
)
from planner_models.livevideo.designs.tree.single_tree import solve_tree

MAX_OBJECTS: Final = 30  # objects of a move, at most
MAX_DRAWS: Final = 30  # random draws of an object to eject from a link, at most
NEGLIGIBLE_SHARE: Final = 3e-3
"""Reduced cost that is taken for 0, as a share of the mean value of an object's tree."""
STEPS: Final[Any] = np.int64(6)
NODES: Final[Any] = np.int64(1)  # effort for the tree of an object with many requests; typed, as START
call_for_none: Final[Callable[..., None]] = caller_of(nb.types.none)
START: Final[Any] = np.int64(0)
"""First row; typed, since a kernel is compiled anew for each plain number that another passes to it."""


class LagrangianSolution(NamedTuple):
    """The best tree of each object at some prices, whatever fits together.

    prices  (K, n) of the links of each layer, costs included
    paths   (Q, 3) links of each object's best tree
    value   (O,) its value at the prices
    """

    prices: PerLayer
    paths: Ints
    value: Floats

    def negligible_reduced_cost(self) -> float:
        """Return the reduced cost up to which a tree counts as best."""
        return NEGLIGIBLE_SHARE * float(self.value.sum()) / max(int((self.value > 0).sum()), 1)

    def reduced_costs(self, layered: LayeredProblem, paths: Ints) -> Floats:
        """Return the reduced cost (O,) of each object's tree in paths (Q, 3), at least 0 but for rounding."""
        objects = layered.objects
        item, link = used_links(layered, paths)
        price = np.concatenate(self.prices, axis=1)
        value = layered.sum_by_object(np.where(paths[:, 2] >= 0, objects.value, 0.0))
        value -= np.bincount(item, price[objects.object_class[item], link], minlength=len(value))
        return np.asarray(self.value - value)


class Lists(NamedTuple):
    """Lists of numbers in one array: list n is number[first[n]:first[n + 1]]."""

    number: Ints
    first: Ints


@inner_kernel
def uses_link(o: int, objects: ObjectArrays, paths: Ints, column: int, link: int) -> bool:
    """Return whether the tree of object o uses a link of layer `column`."""
    for i in range(objects.first[o], objects.first[o + 1]):  # noqa: SIM110
        if paths[i, column] == link:
            return True
    return False


@inner_kernel
def find_parallel_link(link: int, required: float, network: NetworkArrays, residual: Floats) -> int:
    """Return `link`, or another link of layer a to the same reflector, with the residual capacity; or -1."""
    if residual[link] >= required:
        return link
    reflector = network.a_head[link]
    for other in range(network.a_first[reflector], network.a_first[reflector + 1]):
        if residual[other] >= required:
            return other
    return -1


@allocating_kernel
def run_ejection_chains(  # noqa: C901
    rounds: int,
    random: Any,
    seeds: Ints,
    negligible: float,
    solution: LagrangianSolution,
    users: Lists,
    price: PerLayer,
    state: TreeState,
) -> float:
    """Make ejection chain moves that begin with one of `seeds`, drawn by reduced cost; return the gain.

    negligible  reduced cost below which a seed is passed over
    users       objects that use each link, which may be out of date
    price       (K, n) at which ejected objects are inserted

    A move that loses value is undone.
    """
    total = 0.0
    removed = np.zeros(MAX_OBJECTS, dtype=np.int64)
    keys = np.zeros(MAX_OBJECTS)
    order = np.zeros(MAX_OBJECTS, dtype=np.int64)
    paths, residual, marked = state.paths, state.residual, state.marked
    objects, network = state.objects, state.network
    best_paths = solution.paths
    n_a, n_b = len(residual.a), len(residual.b)
    for _ in range(rounds):
        o = seeds[int(random.random() * len(seeds))]
        first, last, k = objects.first[o], objects.first[o + 1], objects.object_class[o]
        own_price = PerLayer(solution.prices.a[k], solution.prices.b[k], solution.prices.c[k])
        own_value = tree_value(first, last, 1.0, objects.value, own_price, paths)
        if solution.value[o] - own_value < negligible:
            continue
        before = object_value(o, state)
        rows = remove_tree(o, state, START)
        clear_tree(o, state)
        count, has_space = 1, True
        removed[0] = o
        marked[o] = 1
        required = objects.bitrate[o] * (1 - 1e-9)
        for i in range(first, last):
            if best_paths[i, 2] < 0:
                continue
            for column in range(3):
                link, offset = best_paths[i, column], 0
                layer_residual = residual.a
                if column == 0:
                    if find_parallel_link(link, required, network, residual.a) >= 0:
                        continue
                    r = network.a_head[link]
                    choice = int(random.random() * (network.a_first[r + 1] - network.a_first[r]))
                    link = network.a_first[r] + choice
                elif column == 1:
                    layer_residual, offset = residual.b, n_a
                else:
                    layer_residual, offset = residual.c, n_a + n_b
                start = users.first[offset + link]
                size = users.first[offset + link + 1] - start
                draws = 0
                while layer_residual[link] < required:
                    draws += 1
                    if size == 0 or draws > MAX_DRAWS or count == MAX_OBJECTS:
                        has_space = False
                        break
                    m = users.number[start + int(random.random() * size)]
                    if marked[m] == 1 or not uses_link(m, objects, paths, column, link):
                        continue
                    if rows + objects.first[m + 1] - objects.first[m] > len(state.saved):
                        continue
                    before += object_value(m, state)
                    rows = remove_tree(m, state, rows)
                    clear_tree(m, state)
                    removed[count] = m
                    marked[m] = 1
                    count += 1
                if not has_space:
                    break
            if not has_space:
                break
        for n in range(count):
            marked[removed[n]] = 0
            keys[n] = -objects.value_per_mbps[removed[n]] * (0.5 + random.random())
        keys[0] = -np.inf
        after = -np.inf
        if has_space:
            after = 0.0
            for i in range(first, last):
                for column in range(3):
                    paths[i, column] = best_paths[i, column]
                if paths[i, 0] >= 0:
                    a = find_parallel_link(paths[i, 0], required, network, residual.a)
                    if a >= 0 and price.a[k, a] < np.inf:
                        paths[i, 0] = a
            sort_by_key(keys, count, order)
            for n in range(count):
                m = removed[order[n]]
                if m != o or not fits(first, last, objects.bitrate[o], paths, residual):
                    call_for_none(state.inserter, (m, price, state))
                occupy(m, state)
                after += object_value(m, state)
        if after >= before:
            total += after - before
            continue
        undo_move(removed[:count], state)
    return total


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
