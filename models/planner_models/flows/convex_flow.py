"""Flows of least convex cost with selectable sources: column generation with tangents, and a bound.

The restricted master problem is a linear program. Its columns are trees of shortest paths to a target,
for the fixed traffic, and traffic of a group from a source on the shortest paths of a round. The cost of
a link is the largest of its tangents so far: segments of load, each dearer than the one before. Dual
prices of links are the lengths under which trees and paths are sought; each round adds tangents at the
loads of its solution. First, steps of Frank-Wolfe give columns, tangents and an incumbent.

Two bounds hold for all flows. With the dual prices, the reduced costs of all columns that are not there
are taken off the value of the master problem, in which tangents are below the cost. The other one is that of
the tangent plane at any load.

Large networks are first solved by Frank-Wolfe with conjugate directions.

source  Dantzig-Wolfe decomposition; disaggregate simplicial decomposition: Larsson and Patriksson 1992;
        Kelley 1960 (cutting planes); Frank and Wolfe 1956
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Floats, Ints, Ints32
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import COARSE_GAP, NEGLIGIBLE
from planner_models.flows.conjugate_flow import solve_by_conjugate_directions
from planner_models.flows.convex_flow_problem import (
    ConvexFlow,
    ConvexFlowProblem,
    Prices,
    find_step,
    is_within_gap,
    measure_prices,
    tangent_bound,
)
from planner_models.flows.link_cost import tangent_segments
from planner_models.flows.source_choice import (
    cheapest_sources,
    gain_of_small_sources,
    ones,
    source_limits,
    source_prices,
    source_scale,
    usable_sources,
)
from planner_models.graphs.shortest_path_trees import tree_flows, walk_to_root

LARGE: Final = 200_000
"""Targets times links from which conjugate directions come first."""
FIRST_STEPS: Final = 3
"""Steps of Frank-Wolfe before the first master problem."""
MAX_ROUNDS: Final = 200
COLUMNS_PER_GROUP: Final = 2
"""Sources of a group that a round adds columns of."""
MAX_IDLE_ROUNDS: Final = 6
"""Rounds after which a column without traffic is dropped."""
BACKEND: Final = "column generation with tangents"


def solve_convex_flow(
    problem: ConvexFlowProblem,
    *,
    options: Options = Options(),
    gap: float = COARSE_GAP,
    deadline: Deadline = NEVER,
    start: tuple[Ints32, Ints] | None = None,
    observe: Callable[[float, float], None] | None = None,
) -> ConvexFlow:
    """Return a flow of least cost within a relative gap of its bound, or the incumbent at the deadline.

    start    trees and the targets that they lead to, the first columns
    observe  receives each round's incumbent and bound
    """
    if len(problem.targets) * len(problem.graph.tail) < LARGE:
        return _Search(problem, options, start).run(gap, deadline, observe)
    solver = replace(options, gap=None, time_limit_s=None)
    first = solve_by_conjugate_directions(
        problem, options=solver, gap=gap, deadline=deadline, observe=observe
    )
    if first.is_cut or is_within_gap(first.objective, first.bound, gap):
        return first
    solved = _Search(problem, options, start or first.trees).run(gap, deadline, observe)
    best = min(first, solved, key=lambda flow: flow.objective)
    bound = max(first.bound, solved.bound)
    return replace(best, bound=min(bound, best.objective), is_cut=solved.is_cut)


@dataclass(kw_only=True, eq=False)
class _Pool:
    """Columns: traffic on links by target, in a sparse row each, of one unit of the column.

    owner   (C,) target of trees; T + group of others
    source  (C,) -1 for trees
    key     (C, T * E) traffic to a target on a link, by target * E + link
    load    (C, E) the same on links
    idle    (C,) rounds without traffic
    """

    owner: Ints
    source: Ints
    key: sp.csr_array
    load: sp.csr_array
    tree: list[Ints32 | None] = field(default_factory=list)
    idle: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Master:
    """A solution of the master problem: weights of columns, value, and dual prices.

    link, group, source  (E,), (T + G,), (S,)
    """

    weight: Floats
    value: float
    link: Floats
    owner: Floats
    source: Floats
    backend: str


def _with_rows(matrix: sp.csr_array, more: sp.csr_array) -> sp.csr_array:
    """Return a matrix with more rows at its end; `vstack` checks and copies each block more often."""
    return sp.csr_array(
        (
            np.concatenate([matrix.data, more.data]),
            np.concatenate([matrix.indices, more.indices]),
            np.concatenate([matrix.indptr, matrix.indptr[-1] + more.indptr[1:]]),
        ),
        shape=(matrix.shape[0] + more.shape[0], matrix.shape[1]),
    )


class _Search:
    """One search: its columns, tangents, incumbent and bound."""

    def __init__(
        self, problem: ConvexFlowProblem, options: Options, start: tuple[Ints32, Ints] | None
    ) -> None:
        self.problem, self.options = problem, replace(options, gap=None, time_limit_s=None)
        self.links = len(problem.graph.tail)
        self.count = len(problem.targets)
        self.has_fixed = problem.fixed.sum(axis=1) > 0
        self.usable = usable_sources(problem.choice)
        width = self.count * self.links
        self.pool = _Pool(
            owner=np.zeros(0, dtype=np.int64),
            source=np.zeros(0, dtype=np.int64),
            key=sp.csr_array((0, width)),
            load=sp.csr_array((0, self.links)),
        )
        self.bound = -np.inf
        self.multiplier = np.zeros(problem.choice.allowed.shape[1])
        self.points: list[tuple[Ints, Floats]] = [self._first_points()]
        self.backend = ""
        self.weight = np.zeros(0)
        if start is not None and len(start[0]):
            row_of = np.full(problem.graph.nodes, -1, dtype=np.int64)
            row_of[problem.targets] = np.arange(self.count)
            rows = np.flatnonzero((row_of[start[1]] >= 0) & self.has_fixed[row_of[start[1]]])
            self._add_trees(start[0][rows], row_of[start[1][rows]])

    def _first_points(self) -> tuple[Ints, Floats]:
        points = self.problem.cost.points
        return np.repeat(np.arange(self.links), len(points)), np.tile(points, self.links)

    # --- columns --------------------------------------------------------------------------

    def _append(self, owner: Ints, source: Ints, key: sp.csr_array, trees: list[Ints32 | None]) -> None:
        pool = self.pool
        load = sp.csr_array(
            (key.data.copy(), key.indices % self.links, key.indptr.copy()), shape=(key.shape[0], self.links)
        )
        load.sum_duplicates()
        pool.owner = np.concatenate([pool.owner, owner])
        pool.source = np.concatenate([pool.source, source])
        pool.key, pool.load = _with_rows(pool.key, key), _with_rows(pool.load, load)
        pool.tree += trees
        pool.idle = np.concatenate([pool.idle, np.zeros(len(owner), dtype=np.int64)])
        self.weight = np.concatenate([self.weight, np.zeros(len(owner))])

    def _add_trees(self, parent: Ints32, target: Ints) -> Ints:
        """Add trees to targets by row, all of a target's fixed traffic on each; return their columns."""
        if not len(parent):
            return np.zeros(0, dtype=np.int64)
        flow = tree_flows(self.problem.graph, parent, self.problem.fixed, target)
        row, node = np.nonzero((parent >= 0) & (flow > 0))
        key = sp.csr_array(
            (flow[row, node], (row, target[row] * self.links + parent[row, node])),
            shape=(len(parent), self.count * self.links),
        )
        first = len(self.pool.owner)
        self._append(target, np.full(len(parent), -1, dtype=np.int64), key, list(parent))
        return np.arange(first, first + len(parent))

    def _add_options(self, parent: Ints32, group: Ints, source: Ints) -> Ints:
        """Add traffic of groups from sources on trees; return the columns, each all traffic of its group."""
        if not len(group):
            return np.zeros(0, dtype=np.int64)
        choice = self.problem.choice
        rows, node, target, share = [], [], [], []
        ends, starts = choice.target_share, choice.source_share
        for row, (g, s) in enumerate(zip(group.tolist(), source.tolist(), strict=True)):
            end = slice(ends.indptr[g], ends.indptr[g + 1])
            begin = slice(starts.indptr[s], starts.indptr[s + 1])
            to, of = np.meshgrid(ends.indices[end], starts.indices[begin], indexing="ij")
            amount = np.multiply.outer(ends.data[end], starts.data[begin]) * choice.amount[g]
            rows.append(np.full(to.size, row))
            node.append(of.ravel())
            target.append(to.ravel())
            share.append(amount.ravel())
        end_row = np.concatenate(target).astype(np.int64)
        pair, arc = walk_to_root(self.problem.graph, parent, end_row, np.concatenate(node).astype(np.int64))
        key = sp.csr_array(
            (
                np.concatenate(share)[pair],
                (np.concatenate(rows)[pair], end_row[pair] * self.links + arc),
            ),
            shape=(len(group), self.count * self.links),
        )
        key.sum_duplicates()
        first = len(self.pool.owner)
        self._append(self.count + group, source, key, [None] * len(group))
        return np.arange(first, first + len(group))

    # --- Frank-Wolfe ----------------------------------------------------------------------

    def _begin(self, steps: int, gap: float, deadline: Deadline) -> None:
        """Take steps of Frank-Wolfe from the flow on idle links."""
        price = self.problem.cost.slope(np.zeros(self.links))
        for step in range(steps + 1):
            load = self._load(self.weight)
            if step:
                price = self.problem.cost.slope(load)
            measured = measure_prices(self.problem, price)
            columns, amount = self._cheapest(measured)
            if step:
                self._improve_bound(load, measured)
                if self._is_done(gap) or deadline.is_over:
                    return
            target = np.zeros(len(self.pool.owner))
            np.add.at(target, columns, amount)
            self._move(target, 1.0 if not step else None)
            self._add_points(self._load(self.weight))

    def _cheapest(self, measured: Prices) -> tuple[Ints, Floats]:
        """Add the columns of the cheapest flow under prices; return them with their weights."""
        choice = self.problem.choice
        trees = self._add_trees(measured.parent[self.has_fixed], np.flatnonzero(self.has_fixed))
        solved = cheapest_sources(choice, measured.cost, self.options)
        if solved is None:
            raise SolverFailure("convex flow: the capacities of sources do not suffice")
        assigned, self.multiplier = solved
        group, source = np.nonzero(assigned > NEGLIGIBLE * choice.amount[:, None])
        options = self._add_options(measured.parent, group, source)
        share = assigned[group, source]
        total = np.bincount(group, weights=share, minlength=len(choice.amount))
        return np.concatenate([trees, options]), np.concatenate([np.ones(len(trees)), share / total[group]])

    def _move(self, target: Floats, step: float | None) -> None:
        """Move the incumbent towards weights of columns, by the best step where None is given."""
        change = target - self.weight
        if step is None:
            here, there = self._load(self.weight), self._load(target)
            step = find_step(self.problem.cost, here, there - here)
        self.weight = self.weight + step * change

    def _load(self, weight: Floats) -> Floats:
        rows = self.pool.load
        amount = rows.data * np.repeat(weight, np.diff(rows.indptr))
        return np.maximum(np.bincount(rows.indices, weights=amount, minlength=self.links), 0.0)

    def _value(self, load: Floats) -> float:
        return float(self.problem.cost.value(load).sum())

    def _improve_bound(self, load: Floats, measured: Prices) -> None:
        """Improve the bound by the tangent plane of the cost at a load."""
        bound = tangent_bound(self.problem, load, measured, self.usable, self.multiplier)
        self.bound = max(self.bound, bound)

    def _is_done(self, gap: float) -> bool:
        return is_within_gap(self._value(self._load(self.weight)), self.bound, gap)

    # --- master problem -------------------------------------------------------------------

    def _add_points(self, load: Floats) -> None:
        """Add tangents at the loads of a solution."""
        self.points.append((np.arange(self.links), load / self.problem.cost.capacity))

    def _solve_master(self) -> _Master | None:
        """Solve the master problem over the columns and tangents so far."""
        pool, choice = self.pool, self.problem.choice
        capacity = self.problem.cost.capacity
        segments_of = tangent_segments(
            self.problem.cost,
            np.concatenate([links for links, _ in self.points]),
            np.concatenate([points for _, points in self.points]),
        )
        link, width, slope = segments_of.link, segments_of.width, segments_of.slope
        columns, segments = len(pool.owner), len(link)
        unit = max(self._value(self._load(self.weight)), 1e-300)
        load = sp.csr_array((pool.load @ sp.diags_array(1 / capacity)).T)
        segment = sp.csr_array(
            (-np.ones(segments), (link, np.arange(segments))), shape=(self.links, segments)
        )
        owners = self.count + len(choice.amount)
        is_owner = np.concatenate([self.has_fixed, np.ones(len(choice.amount), dtype=bool)])
        owner = ones(pool.owner, owners, columns)
        is_option = pool.source >= 0
        sources = choice.allowed.shape[1]
        amount = np.concatenate([np.zeros(self.count), choice.amount])[pool.owner]
        scale = source_scale(choice)
        lower, upper = source_limits(choice, scale)
        served = sp.csr_array(
            (
                amount[is_option] / scale[pool.source[is_option]],
                (pool.source[is_option], np.flatnonzero(is_option)),
            ),
            shape=(sources, columns),
        )

        def wide(matrix: sp.csr_array) -> sp.csr_array:
            return sp.csr_array(sp.hstack([matrix, sp.csr_array((matrix.shape[0], segments))], format="csr"))

        program = LinearProgram.build(
            cost=np.concatenate([np.zeros(columns), slope / unit]),
            rows=[
                Rows("link", sp.csr_array(sp.hstack([load, segment], format="csr")), lower=0.0, upper=0.0),
                Rows("owner", wide(owner), lower=is_owner * 1.0, upper=is_owner * 1.0),
                Rows("source", wide(served), lower=lower, upper=upper),
            ],
            upper=np.concatenate([np.full(columns, np.inf), width]),
            columns=[Columns("column", columns), Columns("segment", segments)],
            name="convex flow",
        )
        solution = backends.solve(program, self.options)
        if solution.status is not Status.OPTIMAL or solution.x is None or solution.row_duals is None:
            return None
        dual = solution.row_duals * unit
        assert solution.objective is not None
        return _Master(
            weight=np.maximum(solution.x[:columns], 0.0),
            value=solution.objective * unit + segments_of.at_zero,
            link=np.maximum(-dual[: self.links], 0.0) / capacity,
            owner=dual[self.links : self.links + owners],
            source=source_prices(choice, -dual[self.links + owners :] / scale),
            backend=solution.backend,
        )

    def _price_columns(self, master: _Master) -> None:
        """Add columns of negative reduced cost, and improve the bound."""
        choice = self.problem.choice
        measured = measure_prices(self.problem, master.link)
        reduced = np.where(self.has_fixed, measured.value - master.owner[: self.count], 0.0)
        bound = master.value + float(np.minimum(reduced, 0.0).sum())
        tolerance = NEGLIGIBLE * max(abs(master.value), 1e-300)
        trees = np.flatnonzero(reduced < -tolerance)
        group, source = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if len(choice.amount):
            every_cost = measured.cost + master.source
            cost = np.where(self.usable, every_cost, np.inf)
            bound -= gain_of_small_sources(choice, self.usable, every_cost, cost.min(axis=1))
            reduced_cost = choice.amount[:, None] * cost - master.owner[self.count :, None]
            bound += float(np.minimum(reduced_cost.min(axis=1), 0.0).sum())
            best = np.argsort(reduced_cost, axis=1, kind="stable")[:, :COLUMNS_PER_GROUP]
            is_good = np.take_along_axis(reduced_cost, best, axis=1) < -tolerance
            group, column = np.nonzero(is_good)
            source = best[group, column]
        self.bound = max(self.bound, bound)
        self._add_trees(measured.parent[trees], trees)
        self._add_options(measured.parent, group, source)

    def _drop_idle(self, weight: Floats) -> None:
        """Drop columns that neither the incumbent nor recent solutions use."""
        pool = self.pool
        used = (weight > NEGLIGIBLE) | (self.weight > NEGLIGIBLE)
        pool.idle = np.where(used, 0, pool.idle + 1)
        keep = np.flatnonzero(pool.idle <= MAX_IDLE_ROUNDS)
        if len(keep) == len(pool.idle):
            return
        pool.owner, pool.source, pool.idle = pool.owner[keep], pool.source[keep], pool.idle[keep]
        pool.key, pool.load = sp.csr_array(pool.key[keep]), sp.csr_array(pool.load[keep])
        pool.tree = [pool.tree[row] for row in keep.tolist()]
        self.weight = self.weight[keep]

    def run(
        self, gap: float, deadline: Deadline, observe: Callable[[float, float], None] | None
    ) -> ConvexFlow:
        """Search until the gap or the deadline is reached."""
        is_warm = bool(len(self.pool.owner))
        self._begin(1 if is_warm else FIRST_STEPS, gap, deadline)
        is_cut = False
        for _ in range(MAX_ROUNDS):
            if observe is not None:
                observe(self._value(self._load(self.weight)), self.bound)
            if self._is_done(gap):
                break
            if deadline.is_over:
                is_cut = True
                break
            master = self._solve_master()
            if master is None:
                break
            self.backend = master.backend
            self.multiplier = master.source
            load = self._load(master.weight)
            self._move(master.weight, None)
            self._drop_idle(master.weight)
            self._add_points(load)
            incumbent = self._load(self.weight)
            self._add_points(incumbent)
            if self._is_done(gap):
                continue
            self._price_columns(master)
            price = self.problem.cost.slope(incumbent)
            self._improve_bound(incumbent, measure_prices(self.problem, price))
        return self._result(is_cut)

    def _result(self, is_cut: bool) -> ConvexFlow:
        pool, choice = self.pool, self.problem.choice
        load = self._load(self.weight)
        flow = np.asarray(pool.key.T @ self.weight)
        used = np.flatnonzero(flow > 0)
        by_target = sp.csr_array(
            (flow[used], (used // self.links, used % self.links)), shape=(self.count, self.links)
        )
        assigned = np.zeros(choice.allowed.shape)
        option = np.flatnonzero(pool.source >= 0)
        group = pool.owner[option] - self.count
        np.add.at(assigned, (group, pool.source[option]), choice.amount[group] * self.weight[option])
        tree = [row for row in np.flatnonzero(self.weight > NEGLIGIBLE).tolist() if pool.source[row] < 0]
        trees = np.array([pool.tree[row] for row in tree], dtype=np.int32)
        objective = self._value(load)
        return ConvexFlow(
            flow=by_target,
            assigned=assigned,
            objective=objective,
            bound=min(self.bound, objective),
            price=self.problem.cost.slope(load),
            is_cut=is_cut,
            trees=(
                trees.reshape(len(tree), self.problem.graph.nodes),
                self.problem.targets[pool.owner[tree]] if tree else np.zeros(0, dtype=np.int64),
            ),
            backend=f"{BACKEND}, {self.backend}" if self.backend else BACKEND,
        )
