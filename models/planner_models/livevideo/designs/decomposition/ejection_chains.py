"""Ejection chains: an object gets its best tree, objects in its way are removed and inserted elsewhere.

The reduced cost of an object's tree is the value of its best tree at the dual prices less its own
value. An object of high reduced cost is given its best tree; from each full link of it other objects
are ejected until it fits, and inserted again afterwards. The move stays if the value does not fall.

source  Glover, "Ejection chains, reference structures and alternating path methods" (1996)
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.livevideo.designs.decomposition.insertion import (
    START,
    TreeState,
    call_for_none,
    clear_tree,
    object_value,
    occupy,
    remove_tree,
    sort_by_key,
    tree_value,
    undo_move,
)
from planner_models.livevideo.designs.decomposition.layered_problem import LayeredProblem
from planner_models.livevideo.designs.decomposition.pricing import fits, used_links
from planner_models.livevideo.designs.tree.indirect_call import allocating_kernel, inner_kernel
from planner_models.livevideo.designs.tree.local_network import NetworkArrays, ObjectArrays, PerLayer

MAX_OBJECTS: Final = 30  # objects of a move, at most
MAX_DRAWS: Final = 30  # random draws of an object to eject from a link, at most
NEGLIGIBLE_SHARE: Final = 3e-3
"""Reduced cost that is taken for 0, as a share of the mean value of an object's tree."""


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
