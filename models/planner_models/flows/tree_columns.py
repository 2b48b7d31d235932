"""Column generation for concurrent flow: shortest-path trees are columns, full links are rows.

Largest concurrent flow and smallest utilization U are one problem, lambda = 1 / U. It is solved on
the reduced network, with all demands of one root together (`reduced_problem`):

0. Where roots have few pairs, `gradient_projection` balances the pairs' paths; mostly that is optimal.
1. `coordinate_descent` gives trees, weights and prices near the optimum.
2. The master problem (`master_problem`) finds the best weights of the trees so far, with rows only for
   links that are nearly full; links that its solution overfills become rows.
3. Under its dual prices every root gets its shortest tree, which becomes a column where its reduced
   cost is negative. The sum over pairs of rate times distance, over the sum of prices times
   capacity, is a lower bound on U for any prices: the bound holds at every step, exact master or not.

Prices are smoothed a little towards the present load: among trees of about the same reduced cost,
those that fill no other links are the ones to add. The incumbent moves by an exact line search towards
the master's solution, which overfills links that have no row.

A decision before may have left its trees (`previous_trees`). They take the place of the first ones, and one
pass of coordinate descent gives prices, and trees besides.

source  Dantzig-Wolfe decomposition; price and bound: Shahrokhi and Matula 1990, section 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.search.deadline import NEVER, Deadline, Stopwatch
from planner.search.tolerances import NEGLIGIBLE, OPTIMALITY, SOLVED_SHARE
from planner_models.flows import coordinate_descent, gradient_projection, master_problem
from planner_models.flows.problem import MIN_GAP
from planner_models.flows.reduced_problem import FlowSplit, ReducedProblem, WeightedPaths, WeightedTrees
from planner_models.graphs import shortest_path_trees
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.shortest_path_trees import Graph

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none

PAIRS_PER_ROOT_LIMIT: Final = 16  # up to so many on average, gradient projection runs first
PAIR_LIMIT: Final = 30_000  # of gradient projection, which keeps the paths of every pair
MAX_PROJECTION_PASSES: Final = 1_000

MAX_DESCENT_PASSES: Final = 40
INITIAL_SMOOTHING_ERROR: Final = 0.5  # of the smoothed maximum, relative to the maximum
SMOOTHING_DECAY: Final = 0.75  # of that error per pass of coordinate descent
FINAL_SMOOTHING_ERROR: Final = 0.01
WARM_PASSES: Final = 1  # of coordinate descent after a start from a plan before
WARM_SMOOTHING_ERROR: Final = 0.02

INITIAL_ROW_UTILIZATION: Final = 0.85  # of the largest: links above it are the master's first rows
ROW_TOLERANCE: Final = 0.02  # links this close to the master's utilization, or above it, become rows
MAX_PRICE_SMOOTHING: Final = 0.02  # largest share of the present load's prices in those for new trees
REDUCED_COST_LIMIT: Final = 0.05  # of the mean dual value of a root: unused columns above it are removed
MIN_WEIGHT: Final = SOLVED_SHARE  # of a column that counts as used
DROPPED_WEIGHT: Final = NEGLIGIBLE  # weights of the incumbent up to this are set to 0
ROOTS_PER_BATCH: Final = 64  # between two checks of the time limit


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """The state of the search after one iteration.

    phase        "fixed", "projection", "start", "descent" or "columns"; of the scheme `fptas`: "phase"
    utilization  of the busiest link under the incumbent
    bound        lower bound on the utilization of all routings
    """

    seconds: float
    phase: str
    utilization: float
    bound: float
    columns: int
    rows: int


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchResult:
    """The incumbent, None where time was too short for one; its utilization and the proven bound."""

    split: FlowSplit | None
    utilization: float
    bound: float
    trace: tuple[Iteration, ...]


def search(
    reduced: ReducedProblem,
    *,
    start: WeightedTrees | None = None,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    deadline: Deadline = NEVER,
    enough: float = np.inf,
    observe: Callable[[Iteration], None] | None = None,
) -> SearchResult:
    """Run column generation to a relative `gap`, a bound above `enough`, or a deadline.

    start    trees to start from
    observe  called after each iteration
    """
    state = _Search(reduced, gap, seed, deadline, enough)
    state.previous = start
    trace: list[Iteration] = []
    for iteration in state.iterate():
        trace.append(iteration)
        if observe is not None:
            observe(iteration)
    return SearchResult(
        split=state.incumbent(), utilization=state.utilization(), bound=state.bound, trace=tuple(trace)
    )


def uses_paths(reduced: ReducedProblem) -> bool:
    """Return whether roots have few pairs, with paths that are balanced first."""
    return len(reduced.pairs[0]) <= min(PAIRS_PER_ROOT_LIMIT * len(reduced.roots), PAIR_LIMIT)


class _Search:
    """Columns with their weights in the master's solution and in the incumbent, prices and bound."""

    def __init__(
        self, reduced: ReducedProblem, gap: float, seed: int, deadline: Deadline, enough: float = np.inf
    ) -> None:
        self.graph, self.capacity = reduced.graph, reduced.capacity_mbps
        self.previous: WeightedTrees | None = None
        self.has_few_pairs = uses_paths(reduced)
        self.roots, self.amount, self.pairs = reduced.roots, reduced.amount_mbps, reduced.pairs
        self.fixed_utilization = reduced.fixed_utilization
        self.gap, self.deadline, self.enough = max(gap, MIN_GAP), deadline, enough
        self.random = np.random.default_rng(seed)
        self.watch = Stopwatch(is_wall=True)
        arcs = len(self.capacity)
        self.bound = self.fixed_utilization
        self.parent = np.zeros((0, self.graph.nodes), dtype=np.int32)  # trees of the start
        self.trees = TreePool(self.graph)  # trees that are columns
        self.slot: Ints | None = None  # of each column there; None before there are columns
        self.owner = np.zeros(0, dtype=np.int64)
        self.weight, self.best_weight = np.zeros(0), np.zeros(0)  # in the master, in the incumbent
        self.best_load = np.zeros(arcs)
        self.tree_utilization = np.inf  # of the best weights of trees
        self.best_paths: WeightedPaths | None = None  # while no weights of trees are better
        self.path_utilization = np.inf
        self.rows = np.zeros(0, dtype=np.int64)
        self.price = np.zeros(arcs)

    def iterate(self) -> Iterator[Iteration]:
        if not len(self.roots):  # nothing to decide
            self.tree_utilization = self.fixed_utilization
            self.best_paths = WeightedPaths(pair=self.owner, arc=self.owner, share=self.weight)
            yield self._iteration("fixed")
            return
        if self.has_few_pairs:
            for _ in self._project():
                yield self._iteration("projection")
            if self._is_done():
                return
        root_load = self._start()
        if root_load is None:
            return
        yield self._iteration("start")
        for sharpness in self._sharpnesses():
            if self._is_done():
                return
            self._descend(root_load, sharpness)
            yield self._iteration("descent")
        del root_load
        self._choose_first_rows()
        while not self._is_done():
            changed = self._generate()
            yield self._iteration("columns")
            if not changed:
                return

    def incumbent(self) -> FlowSplit | None:
        """Return the best trees with weights that add up to 1 for each root, or better paths."""
        if self.best_paths is not None:
            return self.best_paths
        if np.isinf(self.tree_utilization):
            return None
        used = self.best_weight > 0
        owner, weight = self.owner[used], self.best_weight[used]
        weight = weight / sum_by_index(owner, weight, len(self.roots))[owner]
        parent = self.parent[used] if self.slot is None else self.trees.parent[self.slot[used]]
        return WeightedTrees(parent=parent, owner=owner, weight=weight)

    def _iteration(self, phase: str) -> Iteration:
        return Iteration(
            seconds=self.watch.seconds,
            phase=phase,
            utilization=self.utilization(),
            bound=self.bound,
            columns=len(self.owner),
            rows=len(self.rows),
        )

    def utilization(self) -> float:
        """Return the utilization of the busiest link under the incumbent, links of fixed load included."""
        return max(min(self.tree_utilization, self.path_utilization), self.fixed_utilization)

    def _is_late(self) -> bool:
        return self.deadline.is_over

    def _relative_gap(self) -> float:
        """Return the gap so far, links of fixed load included."""
        value = self.utilization()
        return (value - self.bound) / value if value > 0 else 0.0

    def _is_done(self) -> bool:
        return self._relative_gap() <= self.gap or self.bound > self.enough or self._is_late()

    # --- pricing --------------------------------------------------------------------------

    def _solve_pricing(self, price: Floats) -> Ints32 | None:
        """Return the shortest tree of every root under the prices and update the bound; None when late.

        The first trees are always found: they are a plan.
        """
        length = price / price.sum() / self.capacity
        trees, values = [], []
        for start in range(0, len(self.roots), ROOTS_PER_BATCH):
            if len(self.owner) and self._is_late():
                return None
            batch = slice(start, start + ROOTS_PER_BATCH)
            parent, value = shortest_path_trees.shortest_trees(
                self.graph, length, self.roots[batch], self.amount[batch]
            )
            trees.append(parent)
            values.append(value)
        self.bound = max(self.bound, float(np.concatenate(values).sum()))
        return np.concatenate(trees)

    def _start(self) -> Floats | None:
        """Route every root over its shortest tree by 1 / capacity, or over the trees of the decision before.

        Returns the load of each root, (R, A).
        """
        if self.previous is not None:
            return self._start_from(self.previous)
        parent = self._solve_pricing(np.ones(len(self.capacity)))
        if parent is None:
            return None
        self.parent, self.owner = parent, np.arange(len(self.roots))
        self.weight = self.best_weight = np.ones(len(self.roots))
        flow = shortest_path_trees.tree_flows(self.graph, self.parent, self.amount, self.owner)
        root_load = shortest_path_trees.tree_loads(self.graph, self.parent, flow)
        self._set_load(root_load.sum(axis=0))
        return root_load

    def _start_from(self, trees: WeightedTrees) -> Floats:
        """Take trees with their weights; return the load of each root (R, A)."""
        self.parent, self.owner = trees.parent, trees.owner
        self.weight = self.best_weight = trees.weight
        columns = np.arange(len(self.owner))
        root_load = shortest_path_trees.weighted_load_by_row(
            self.graph, self.parent, self.amount, columns, self.owner, self.weight
        )
        self._set_load(root_load.sum(axis=0))
        return root_load

    def _set_load(self, load: Floats) -> None:
        self.best_load, self.tree_utilization = load, float((load / self.capacity).max())
        if self.tree_utilization < self.path_utilization:
            self.best_paths = None
            self.path_utilization = np.inf

    # --- gradient projection --------------------------------------------------------------

    def _project(self) -> Iterator[None]:
        """Run passes of gradient projection until the gap hardly improves."""
        flows = gradient_projection.PathFlows.of(self.graph, self.roots, *self.pairs)
        flows.run_pass(self.graph, self.capacity, 1.0)
        error, gaps = INITIAL_SMOOTHING_ERROR, [1.0]
        for round_ in range(MAX_PROJECTION_PASSES):
            if self._is_late():
                break
            busiest = float((flows.load / self.capacity).max())
            sharpness = float(np.log(len(self.capacity) + 1)) / (error * busiest)
            excess = flows.run_pass(self.graph, self.capacity, sharpness)
            if excess < 0.3 * error or round_ % 10 == 9:
                error = max(0.8 * error, 0.1 * self.gap)
            if round_ % 5 != 4:
                continue
            busiest = float((flows.load / self.capacity).max())
            if busiest < self.path_utilization:
                self.path_utilization, self.best_paths = busiest, flows.weighted_paths()
            self._solve_pricing(coordinate_descent.link_prices(flows.load, self.capacity, sharpness))
            yield
            gaps.append(self._relative_gap())
            if self._is_done() or (len(gaps) > 20 and gaps[-1] > 0.7 * gaps[-20]):
                break

    # --- coordinate descent ---------------------------------------------------------------

    def _sharpnesses(self) -> Iterator[float]:
        """Yield the sharpness of each pass, increasing, until the utilization hardly improves."""
        if self.previous is not None:
            for _ in range(WARM_PASSES):
                yield np.log(len(self.capacity) + 1) / (WARM_SMOOTHING_ERROR * self.tree_utilization)
            return
        past = [self.tree_utilization]
        for round_ in range(MAX_DESCENT_PASSES):
            error = max(INITIAL_SMOOTHING_ERROR * SMOOTHING_DECAY**round_, FINAL_SMOOTHING_ERROR)
            yield np.log(len(self.capacity) + 1) / (error * self.tree_utilization)
            past.append(self.tree_utilization)
            if round_ >= 5 and past[-4] - past[-1] < 0.01 * past[-1]:
                return

    def _descend(self, root_load: Floats, sharpness: float) -> None:
        """Run a pass of coordinate descent over the roots in random order; changes `root_load`."""
        load = root_load.sum(axis=0)
        batches = len(self.roots) // ROOTS_PER_BATCH + 1
        remaining = np.ones(len(self.roots))
        new: list[tuple[Ints32, Ints, Floats]] = []
        for batch in np.array_split(self.random.permutation(len(self.roots)), batches):
            batch_load = root_load[batch]
            parent, share = coordinate_descent.run_pass(
                self.graph,
                self.capacity,
                self.roots[batch],
                self.amount[batch],
                sharpness=sharpness,
                root_load=batch_load,
                load=load,
            )
            root_load[batch] = batch_load
            remaining[batch] -= share
            moved = share > 0
            new.append((parent[moved], batch[moved], share[moved]))
            if self._is_late():
                break
        parents, owners, shares = zip(*new, strict=True)
        self.weight = np.concatenate([self.weight * remaining[self.owner], *shares])
        self.parent = np.concatenate([self.parent, *parents])
        self.owner = np.concatenate([self.owner, *owners])
        self.best_weight = self.weight
        self._set_load(root_load.sum(axis=0))
        self.price = coordinate_descent.link_prices(self.best_load, self.capacity, sharpness)
        self._solve_pricing(self.price)

    # --- columns --------------------------------------------------------------------------

    def _choose_first_rows(self) -> None:
        """Keep the trees in use as columns, and the links that are nearly full as rows."""
        parent = self.parent[self._keep(self.weight > MIN_WEIGHT)]
        self.parent = self.parent[:0]
        flow = shortest_path_trees.tree_flows(self.graph, parent, self.amount, self.owner)
        self.slot = self.trees.add(parent, flow)
        utilization = self.best_load / self.capacity
        self.rows = np.flatnonzero(utilization > INITIAL_ROW_UTILIZATION * utilization.max())

    def _generate(self) -> bool:
        """Solve the master, improve the incumbent, add columns and rows; return whether that helps on."""
        assert self.slot is not None
        on_rows = self.trees.loads(self.slot, self.rows)
        column = np.ascontiguousarray((on_rows / self.capacity[self.rows]).T)
        gap = (self.tree_utilization - self.bound) / self.tree_utilization
        master = master_problem.solve(
            column,
            self.owner,
            weight=self.weight,
            price=self.price[self.rows],
            gap=max(min(0.1 * gap, 1e-2), 0.05 * self.gap),
            deadline=self.deadline,
        )
        self.weight = master.weight
        utilization = self._improve_incumbent() / self.capacity

        # dual prices, smoothed towards the prices of the incumbent's load
        error = 0.1 * self.tree_utilization
        load_price = coordinate_descent.link_prices(
            self.best_load, self.capacity, np.log(len(utilization) + 1) / error
        )
        smoothing = min(0.2 * gap, MAX_PRICE_SMOOTHING)
        self.price = smoothing * 0.5 * (load_price + 1 / len(utilization))
        self.price[self.rows] += (1 - smoothing) * master.price
        parent = self._solve_pricing(self.price)
        if parent is None:
            return False
        cost = master.price @ column
        dual_value = np.minimum.reduceat(cost, np.searchsorted(self.owner, np.arange(len(self.roots))))
        flow = shortest_path_trees.tree_flows(self.graph, parent, self.amount, np.arange(len(parent)))
        new_load = shortest_path_trees.tree_loads(self.graph, parent, flow, self.rows)
        new_cost = (new_load / self.capacity[self.rows]) @ master.price
        new = np.flatnonzero(new_cost < dual_value - 1e-9 * master.bound / len(self.roots))
        retained_rows = self._keep(
            (self.weight > MIN_WEIGHT)
            | (self.best_weight > 0)
            | (cost - dual_value[self.owner] < REDUCED_COST_LIMIT * master.value / len(dual_value))
        )
        self.trees.remove(np.delete(self.slot, retained_rows))
        self._add(self.slot[retained_rows], self.trees.add(parent[new], flow[new]), new)
        over = np.setdiff1d(np.flatnonzero(utilization > master.value * (1 - ROW_TOLERANCE)), self.rows)
        self.rows = np.sort(np.concatenate([self.rows, over]))
        return bool(len(new) or len(over)) or master.value - master.bound > MIN_GAP * master.value

    def _improve_incumbent(self) -> Floats:
        """Move the incumbent by line search towards the master's solution; return the latter's load (A,)."""
        assert self.slot is not None
        load = self.trees.weighted_load(self.slot, self.weight)
        share = _line_search(self.best_load / self.capacity, load / self.capacity)
        if share > 0:
            weight = (1 - share) * self.best_weight + share * self.weight
            weight = np.where(weight > DROPPED_WEIGHT, weight, 0.0)
            weight /= sum_by_index(self.owner, weight, len(self.roots))[self.owner]
            self.best_weight = weight
            self._set_load(self.trees.weighted_load(self.slot, weight))
        return load

    def _keep(self, mask: Bools) -> Ints:
        """Keep only the chosen columns, in the order of their roots; return their former places.

        Scales weights to add up to 1 again.
        """
        columns = np.flatnonzero(mask)
        columns = columns[np.argsort(self.owner[columns], kind="stable")]
        self.owner = self.owner[columns]
        self.weight, self.best_weight = self.weight[columns], self.best_weight[columns]
        for weight in (self.weight, self.best_weight):
            weight /= sum_by_index(self.owner, weight, len(self.roots))[self.owner]
        return columns

    def _add(self, retained: Ints, new: Ints, owner: Ints) -> None:
        """Add columns without weight, by slots and roots, in the order of their roots."""
        owner, zero = np.concatenate([self.owner, owner]), np.zeros(len(new))
        order = np.argsort(owner, kind="stable")
        self.owner, self.slot = owner[order], np.concatenate([retained, new])[order]
        self.weight = np.concatenate([self.weight, zero])[order]
        self.best_weight = np.concatenate([self.best_weight, zero])[order]


def _line_search(start: Floats, end: Floats) -> float:
    """Return the t at which (1 - t) * start + t * end has the smallest maximum, by golden section."""

    def largest(t: float) -> float:
        return float(((1 - t) * start + t * end).max())

    low, high = 0.0, 1.0
    inner = (np.sqrt(5.0) - 1) / 2
    a, b = high - inner, low + inner
    at_a, at_b = largest(a), largest(b)
    for _ in range(40):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - inner * (high - low)
            at_a = largest(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + inner * (high - low)
            at_b = largest(b)
    return min((largest(t), t) for t in (0.0, (low + high) / 2, 1.0))[1]


class TreePool:
    """Trees with the traffic on them.

    parent  (C, N) int32 arc by which each node leaves, -1 for none; flow (C, N) traffic on that arc
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parent = np.empty((0, graph.nodes), dtype=np.int32)
        self.flow = np.empty((0, graph.nodes))
        self._free = np.zeros(0, dtype=np.int64)

    def add(self, parent: Ints32, flow: Floats) -> Ints:
        """Keep trees, (P, N), with their flows as of `tree_flows`; return their slots, (P,)."""
        if len(parent) > len(self._free):
            self._extend(2 * len(parent))
        slot, self._free = self._free[: len(parent)], self._free[len(parent) :]
        self.parent[slot], self.flow[slot] = parent, flow
        return slot

    def _extend(self, more: int) -> None:
        """Allocate more slots; memory that no tree has used yet costs nothing."""
        size, nodes = self.parent.shape
        former = self.parent, self.flow
        self.parent = np.empty((size + more, nodes), dtype=np.int32)
        self.flow = np.empty((size + more, nodes))
        self.parent[:size], self.flow[:size] = former
        self._free = np.concatenate([self._free, np.arange(size, size + more)])

    def remove(self, slot: Ints) -> None:
        """Free slots."""
        self._free = np.concatenate([slot, self._free])

    def loads(self, slot: Ints, arcs: Ints) -> Floats:
        """Return the load of each tree on each of `arcs`, shape (P, arcs)."""
        return shortest_path_trees.tree_loads(self.graph, self.parent, self.flow, arcs, slot)

    def weighted_load(self, slot: Ints, weight: Floats) -> Floats:
        """Return the sum over trees of weight times load, shape (A,)."""
        return shortest_path_trees.weighted_load(self.graph, self.parent, self.flow, weight, slot)
