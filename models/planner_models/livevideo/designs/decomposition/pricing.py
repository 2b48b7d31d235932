"""Pricing: the best tree of each object at given prices of links, in parallel, by single-tree algorithms."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner_models.livevideo.designs.decomposition.layered_problem import LayeredProblem
from planner_models.livevideo.designs.tree.local_network import (
    LocalNetwork,
    NetworkArrays,
    ObjectArrays,
    PerLayer,
    gather_network,
    inner_kernel,
    kernel,
)
from planner_models.livevideo.designs.tree.single_tree import create_workspace, solve_tree

CHUNK: Final = 32  # objects between two checks of the time limit
UNLIMITED: Final = 1e300  # finite capacity of links without a limit, Mbit/s


class Effort(NamedTuple):
    """Subgradient steps and branch and bound nodes for the tree of an object with many requests."""

    steps: int
    nodes: int


class PricedTrees(NamedTuple):
    """A tree of each object, as found by pricing.

    paths  (Q, 3) links of layers a, b and c on the path to each request, -1 where it is not served
    dual   (Q,) multipliers to start from in the pricing of an object; becomes those that it ends at
    value  (O,) value of each object's tree at the prices
    bound  (O,) bound on the value of every tree of the object
    """

    paths: Ints
    dual: Floats
    value: Floats
    bound: Floats

    def copy(self) -> PricedTrees:
        """Return a copy that can change on its own."""
        return PricedTrees(self.paths.copy(), self.dual.copy(), self.value.copy(), self.bound.copy())


@kernel
def solve_trees(
    selected: Ints,
    price: PerLayer,
    residual: PerLayer,
    objects: ObjectArrays,
    network: NetworkArrays,
    net: LocalNetwork,
    trees: PricedTrees,
    steps: int,
    nodes: int,
) -> None:
    """Solve the pricing problems of the selected objects, over links with enough residual capacity."""
    for o in selected:
        first, last = objects.first[o], objects.first[o + 1]
        trees.value[o] = 0.0
        trees.bound[o] = 0.0
        if first == last:
            continue
        edges, reflectors = gather_network(o, price, residual, objects, network, net)
        paths, dual = trees.paths[first:last], trees.dual[first:last]
        trees.value[o], trees.bound[o] = solve_tree(
            last - first, edges, reflectors, net, paths, dual, steps, nodes
        )


@inner_kernel
def add_tree_rate(first: int, last: int, rate: float, paths: Ints, total: PerLayer) -> None:
    """Add `rate` (negative: subtract) to each link of the tree of requests first:last, once a link."""
    for i in range(first, last):
        c = paths[i, 2]
        if c < 0:
            continue
        total.c[c] += rate
        b = paths[i, 1]
        a = paths[i, 0]
        new_b, new_a = True, True
        for other in range(first, i):
            if paths[other, 2] < 0:
                continue
            if paths[other, 1] == b:
                new_b = False
                new_a = False
                break
            if paths[other, 0] == a:
                new_a = False
        if new_b:
            total.b[b] += rate
        if new_a:
            total.a[a] += rate


@inner_kernel
def fits(first: int, last: int, rate: float, paths: Ints, residual: PerLayer) -> bool:
    """Return whether every link of a tree has enough residual capacity."""
    required = rate * (1 - 1e-9)
    for i in range(first, last):
        c = paths[i, 2]
        if c >= 0 and (
            residual.c[c] < required
            or residual.b[paths[i, 1]] < required
            or residual.a[paths[i, 0]] < required
        ):
            return False
    return True


class Pricer:
    """Solves the pricing problems of all objects; keeps its threads and workspaces between calls.

    capacity   (n,) of the links of each layer, finite
    unlimited  (n,) residual capacities that leave no link out
    """

    def __init__(self, layered: LayeredProblem, threads: int) -> None:
        self.layered = layered
        layers = layered.layers
        self.capacity = PerLayer(*(np.minimum(layer.capacity, UNLIMITED) for layer in layers))
        self.unlimited = PerLayer(*(np.full(len(layer.tail), UNLIMITED) for layer in layers))
        # work grows faster than requests: spread the objects with many over the threads
        order = np.argsort(-layered.request_count, kind="stable")
        step = np.arange(len(order)) % (2 * threads)
        thread = np.where(step < threads, step, 2 * threads - 1 - step)
        self.parts = [np.sort(order[thread == t]).astype(np.int64) for t in range(threads)]
        self.workspaces = [self.create_workspace() for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

    def create_workspace(self) -> LocalNetwork:
        """Return a workspace for one thread."""
        layered = self.layered
        return create_workspace(
            requests=int(layered.request_count.max(initial=1)),
            degree=int(np.diff(layered.c.first).max(initial=1)),
            edges=len(layered.b.first) - 1,
            reflectors=len(layered.a.first) - 1,
            edge_degree=int(np.diff(layered.b.first).max(initial=1)),
        )

    def price_all(
        self,
        prices: PerLayer,
        dual: Floats,
        effort: Effort,
        start: Ints | None = None,
        deadline: Deadline = NEVER,
    ) -> PricedTrees:
        """Return the best trees of all objects at prices (K, n) of links, over all links.

        dual   (Q,) multipliers to start from, negative: none; changed
        start  (Q, 3) paths of trees that are good at other prices
        deadline  from which objects keep their trees in `start`, at value 0 and with
               a loose bound
        """
        objects = self.layered.objects
        count = len(objects.bitrate)
        paths = np.full((len(dual), 3), -1, dtype=np.int64) if start is None else start.copy()
        trees = PricedTrees(paths=paths, dual=dual, value=np.zeros(count), bound=np.zeros(count))

        def solve_part(thread: int) -> None:
            chunk = self.parts[thread]
            for first in range(0, len(chunk), CHUNK):
                if deadline.is_over:
                    late = chunk[first:]
                    trees.bound[late] = self.loose_bound(prices.c)[late]
                    return
                self._solve(chunk[first : first + CHUNK], prices, self.unlimited, trees, effort, thread)

        self._run(solve_part)
        return trees

    def price_some(
        self, selected: Ints, prices: PerLayer, residual: PerLayer, trees: PricedTrees, effort: Effort
    ) -> None:
        """Find the best trees of some objects, in their order, over links with enough residual capacity.

        The trees of these objects in `trees` are where the search starts, and become the best ones.
        """

        def solve_part(thread: int) -> None:
            # contiguous: kernels would be compiled anew for a stride
            chunk = np.ascontiguousarray(selected[thread :: len(self.workspaces)])
            self._solve(chunk, prices, residual, trees, effort, thread)

        self._run(solve_part)

    def _solve(
        self,
        chunk: Ints,
        prices: PerLayer,
        residual: PerLayer,
        trees: PricedTrees,
        effort: Effort,
        thread: int,
    ) -> None:
        layered = self.layered
        net = self.workspaces[thread]
        solve_trees(chunk, prices, residual, layered.objects, layered.network, net, trees, *effort)

    def _run(self, solve_part: Callable[[int], None]) -> None:
        """Call the function with the number of each thread, in that thread."""
        if self.pool is None:
            solve_part(0)
            return
        others = [self.pool.submit(solve_part, thread) for thread in range(1, len(self.workspaces))]
        solve_part(0)
        for other in others:
            other.result()

    def loose_bound(self, price: Floats) -> Floats:
        """Return bounds (O,) on all trees: requests pay only a cheapest link of layer c, price (K, n)."""
        layered, objects = self.layered, self.layered.objects
        padded = np.concatenate([price, np.full((len(price), 1), np.inf)], axis=1)
        cheapest = np.minimum.reduceat(padded, layered.c.first[:-1], axis=1)
        cheapest[:, np.diff(layered.c.first) == 0] = np.inf
        paid = cheapest[objects.object_class[layered.request_object], objects.group]
        return layered.sum_by_object(np.maximum(0.0, objects.value - paid))


def used_links(layered: LayeredProblem, paths: Ints) -> tuple[Ints, Ints]:
    """Return object and link of each link that a tree uses; links are numbered through layers a, b, c."""
    n_a, n_b, _ = layered.sizes
    served = paths[:, 2] >= 0
    o = layered.request_object[served]
    keys_a = np.unique(o * n_a + paths[served, 0])
    keys_b = np.unique(o * n_b + paths[served, 1])
    objects = np.concatenate([keys_a // n_a, keys_b // n_b, o])
    return objects, np.concatenate([keys_a % n_a, n_a + keys_b % n_b, n_a + n_b + paths[served, 2]])
