"""Column generation over the routes that keep latency limits and rules, for every objective.

A column is a path of one demand, and its variable the share of the demand on it. The restricted master
problem is a linear program, solved by HiGHS from the basis of the round before. Its dual prices of capacity
are the lengths of links under which each demand gets its cheapest path (`constrained_paths`), a new column
where its reduced cost is negative. With these prices y the Lagrangian relaxation of the capacities has a
bound that holds for all routes, whatever the columns so far:

    total         y c - m M + sum over demands of d max(0, v + m w - dist(y))   at least the largest flow
    utilization   sum over demands of d dist(y) / y c                          at most the least one
    cost          m M - y c - sum over demands of d max(0, m w - dist(p + y))   at most the least cost

with rates d, capacities c, distances of the cheapest routes, price p of links, value v of a Mbit/s of a
demand, and the dual price m of delivering at least M, with weight w of a Mbit/s; there may be several such
amounts. Largest concurrent flow is 1 over least utilization.

source  Dantzig-Wolfe decomposition; Lagrangian bound: Ahuja, Magnanti and Orlin 1993, chapter 17
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram, Rows
from planner.backends.solution import Solution
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import MINIMUM_S, NEVER, Deadline
from planner.search.tolerances import IMPROVEMENT, OPTIMALITY
from planner_models.flows.constrained_paths import CheapestPaths, ConstrainedPathSearch, RoutePool
from planner_models.flows.link_flow_program import Objective, link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.problem import FlowProblem
from planner_models.flows.route_limits import RouteLimits

DEFAULT_GAP: Final = OPTIMALITY  # relative, where options give none
MAX_ROUNDS: Final = 2_000
REDUCED_COST_TOLERANCE: Final = IMPROVEMENT  # relative to a demand's dual value
BACKEND: Final = "column generation"


@dataclass(frozen=True, kw_only=True, eq=False)
class LeastDelivery:
    """Least value of the delivery: `value`, (K,), of a Mbit/s of each demand, adds up to `amount`.

    tolerance  share of the amount that solutions may miss; bounds hold for plans that deliver all of it
    """

    value: Floats
    amount: float
    tolerance: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class RestrictedSolution:
    """A solution and the paths that `x`, (P,) Mbit/s, is the traffic of."""

    solution: Solution
    paths: CandidatePaths


class RestrictedFlow:
    """The routes found so far, kept from one objective to the next."""

    def __init__(
        self, problem: FlowProblem, limits: RouteLimits, start: PreviousRoutes | None = None
    ) -> None:
        """Find a first route of each demand; `start` are more, of which those that keep the limits count."""
        self.problem, self.limits = problem, limits
        demands = np.flatnonzero(problem.rate_mbps > 0)
        self._search = ConstrainedPathSearch(problem, limits, demands)
        first = self._search.search(problem.weight)
        self.is_proven = first.is_proven
        self.without_path = np.zeros(len(problem.demands), dtype=bool)
        self.without_path[demands] = True
        self.without_path[first.found.demand] = False
        self.demand = np.flatnonzero((problem.rate_mbps > 0) & ~self.without_path)
        self._search = ConstrainedPathSearch(problem, limits, self.demand)
        self._columns = RoutePool(len(problem.links))
        self._columns.add(first.found, np.arange(len(first.found.demand)))
        if start is not None:
            paths = start.paths
            keeps = [
                not self.without_path[k]
                and limits.keeps(problem, k, paths.link[paths.start[p] : paths.start[p + 1]].tolist())
                for p, k in enumerate(paths.demand.tolist())
            ]
            self._columns.add(paths, np.flatnonzero(keeps))

    def solve(
        self,
        objective: Objective,
        options: Options,
        minimums: Sequence[LeastDelivery] = (),
        value: Floats | None = None,
    ) -> RestrictedSolution:
        """Return the best routing for an objective other than `delivered`, of the demands that have a path.

        Stops at `options.gap`, by default 1e-6; at a time limit it has the incumbent and its bound.

        minimums  what must be delivered; for `total` and `cost`, which then serves demands in part too
        value  (K,) of a Mbit/s of each demand, for `total`; None: 1
        """
        deadline = Deadline.of(options)
        gap = DEFAULT_GAP if options.gap is None else options.gap
        weight = np.ones(len(self.problem.demands)) if value is None else value
        master = _Master(self.problem, self.demand, objective, self._columns, options, minimums, weight)
        best_bound, status = -np.inf, Status.FEASIBLE
        x, least_value = np.zeros(0), np.inf
        for round_ in range(MAX_ROUNDS):
            if round_ and deadline.is_over:
                break
            solved = master.solve(deadline if round_ else NEVER)
            if solved is None:
                break
            x, least_value = solved.x, solved.value
            cheapest = self._search.search(solved.length)
            best_bound = max(best_bound, master.bound(solved, cheapest))
            if least_value - best_bound <= gap * max(abs(least_value), abs(best_bound), 1e-12):
                status = Status.OPTIMAL
                break
            if not master.add(solved, cheapest, self._columns):
                break
        return self._result(objective, x, least_value, best_bound, status)

    def _result(
        self, objective: Objective, x: Floats, value: float, bound: float, status: Status
    ) -> RestrictedSolution:
        """Return the solution in the terms of the objective: a maximum has its signs turned."""
        if not np.isfinite(value):
            status = Status.UNDECIDED
        paths_found, order = self._columns.paths(len(x))
        rate = (x * self.problem.rate_mbps[self._columns.demand[: len(x)]])[order]
        objective_value: float | None = value if np.isfinite(value) else None
        limit: float | None = bound if np.isfinite(bound) else None
        if objective == "total":
            objective_value, limit = (None if item is None else -item for item in (objective_value, limit))
        elif objective == "concurrent":
            objective_value, limit = (None if not item else 1 / item for item in (objective_value, limit))
        solution = Solution(
            status=status,
            backend=BACKEND,
            x=rate if np.isfinite(value) else None,
            objective=objective_value,
            bound=limit,
        )
        paths = CandidatePaths(found=paths_found, width=len(self.problem.links))
        return RestrictedSolution(solution=solution, paths=paths)


@dataclass(frozen=True, kw_only=True, eq=False)
class _MasterSolution:
    """A solution of the master problem.

    x       (P,) share of its demand on each path
    value   the objective, to minimize
    price   (E,) dual price of capacity, at least 0, in the objective per Mbit/s
    length  (E,) cost of links under which paths are sought
    dual    (n,) length below which a path of each demand has a negative reduced cost
    gain    (n,) what a Mbit/s of each demand brings: its value, and that of the least deliveries it is in
    least   price times amount of the least deliveries
    """

    x: Floats
    value: float
    price: Floats
    length: Floats
    dual: Floats
    gain: Floats
    least: float


class _Master:
    """The master problem in one session of HiGHS: minimize over shares of demands on paths.

    Rows are those of links, scaled by their capacities, then those of demands and of least deliveries.
    """

    def __init__(
        self,
        problem: FlowProblem,
        demand: Ints,
        objective: Objective,
        columns: RoutePool,
        options: Options,
        minimums: Sequence[LeastDelivery],
        value: Floats,
    ) -> None:
        from planner.backends import highs  # imports the solver, so only where it is needed

        self._highs = highs
        self.problem, self.demand, self.objective = problem, demand, objective
        self.capacity = problem.capacity_mbps
        self.row_of = np.full(len(problem.demands), -1, dtype=np.int64)
        self.row_of[demand] = np.arange(len(demand))
        self.link_price = link_cost(problem) if objective == "cost" else np.zeros(len(self.capacity))
        self.value = value if objective == "total" else np.zeros(len(value))
        # a row is the share of the least amount
        self.least = [minimum for minimum in minimums if minimum.amount > 0]
        self.is_partial = objective == "total" or bool(minimums)
        self.minimizes_utilization = objective in ("concurrent", "utilization")
        links, count = len(self.capacity), len(demand)
        self.unit = float(problem.rate_mbps[demand].max())
        self.utilization_unit = self._first_utilization(columns) if self.minimizes_utilization else 1.0
        path = self._path_columns(columns, 0)
        extra = np.zeros((links + count + len(self.least), int(self.minimizes_utilization)))
        extra[:links] = -1.0
        matrix = sp.hstack([sp.csr_array(extra), path[1]], format="csr")
        upper = np.r_[np.full(links, 0.0 if self.minimizes_utilization else 1.0), np.ones(count)]
        lower = np.r_[np.full(links, -np.inf), np.zeros(count) if self.is_partial else np.ones(count)]
        lower = np.r_[lower, np.array([1 - minimum.tolerance for minimum in self.least])]
        upper = np.r_[upper, np.full(len(self.least), np.inf)]
        program = LinearProgram.build(
            sense="min",
            cost=np.r_[np.ones(extra.shape[1]), path[0]],
            rows=[Rows("rows", sp.csr_array(matrix), lower=lower, upper=upper)],
            name=f"traffic {objective} over routes under limits",
        )
        self._session = highs.load(program, replace(options, gap=None, time_limit_s=None))
        self._session.setOptionValue("solver", "simplex")

    def _first_utilization(self, columns: RoutePool) -> float:
        """Return the utilization where each demand takes its first path: the unit of utilization."""
        _, first = np.unique(columns.demand, return_index=True)
        load = columns.uses().T[:, first] @ self.problem.rate_mbps[columns.demand[first]]
        return float((load / self.capacity).max())

    def _path_columns(self, columns: RoutePool, first: int) -> tuple[Floats, sp.csc_array]:
        """Return costs and coefficients of the paths from `first` on."""
        demand, uses = columns.demand[first:], columns.uses(first)
        rate = self.problem.rate_mbps[demand]
        count = len(demand)
        load = sp.diags_array(rate) @ uses @ sp.diags_array(1 / (self.capacity * self.utilization_unit))
        share = sp.csr_array(
            (np.ones(count), (np.arange(count), self.row_of[demand])), shape=(count, len(self.demand))
        )
        blocks = [load, share]
        blocks += [
            sp.csr_array((rate * minimum.value[demand] / minimum.amount)[:, None]) for minimum in self.least
        ]
        price = uses @ self.link_price - self.value[demand]
        return rate * price / self.unit, sp.csc_array(sp.hstack(blocks, format="csr").T)

    def solve(self, deadline: Deadline) -> _MasterSolution | None:
        """Return the solution over the paths so far; None where the time limit came first."""
        if not deadline.is_never:
            limit_s = max(deadline.left_s, MINIMUM_S)
            self._session.setOptionValue("time_limit", self._session.getRunTime() + limit_s)
        status = self._highs.run(self._session, self._highs.NAME)
        if status is not Status.OPTIMAL:
            return None
        solution = self._session.getSolution()
        values, dual = np.array(solution.col_value), np.array(solution.row_dual)
        links, count = len(self.capacity), len(self.demand)
        scale = self.utilization_unit if self.minimizes_utilization else self.unit
        x = np.clip(values[int(self.minimizes_utilization) :], 0.0, 1.0)
        value = float(self._session.getInfo().objective_function_value) * scale
        # a row "at most" has a dual of at most 0 in a minimum; prices are per Mbit/s
        price = np.maximum(-dual[:links], 0.0) / self.capacity
        price = price if self.minimizes_utilization else price * self.unit
        dual_value = dual[links : links + count] * scale / self.problem.rate_mbps[self.demand]
        gain, min_gain = self.value[self.demand], 0.0
        for row, minimum in enumerate(self.least, start=links + count):
            at_amount = max(float(dual[row]), 0.0) * scale
            gain, min_gain = (
                gain + at_amount / minimum.amount * minimum.value[self.demand],
                min_gain + at_amount,
            )
        if self.minimizes_utilization:
            price = price / max(float(price @ self.capacity), 1e-300)
        return _MasterSolution(
            x=x,
            value=value,
            price=price,
            length=price + self.link_price,
            dual=dual_value,
            gain=gain,
            least=min_gain,
        )

    def bound(self, solved: _MasterSolution, cheapest: CheapestPaths) -> float:
        """Return the Lagrangian bound of the prices, at most the objective of every routing."""
        rate, price = self.problem.rate_mbps[self.demand], solved.price
        if self.minimizes_utilization:
            return float(rate @ cheapest.cost)  # the prices times capacities add up to 1
        at_capacity = float(price @ self.capacity)
        if not self.is_partial:
            return float(rate @ cheapest.cost) - at_capacity
        gains = float(rate @ np.maximum(solved.gain - cheapest.cost, 0.0))
        return solved.least - at_capacity - gains

    def add(self, solved: _MasterSolution, cheapest: CheapestPaths, columns: RoutePool) -> bool:
        """Add the paths with negative reduced cost; return whether there were any."""
        paths = cheapest.found
        row = self.row_of[paths.demand]
        length = cheapest.cost[row] - solved.gain[row]
        dual_value = solved.dual[row]
        margin = REDUCED_COST_TOLERANCE * np.maximum(np.maximum(np.abs(dual_value), np.abs(length)), 1e-12)
        selected = np.flatnonzero(length < dual_value - margin)
        first = len(columns.links)
        if not columns.add(paths, selected):
            return False
        cost, matrix = self._path_columns(columns, first)
        count = len(cost)
        self._session.addCols(
            count,
            cost,
            np.zeros(count),
            np.full(count, np.inf),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )
        return True
