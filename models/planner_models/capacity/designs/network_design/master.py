"""The master program: modules bought, and rows that they must satisfy, in capacities only.

Columns: `counts` (M,) of modules; `opened` (Y,), whether a link with a setup cost buys; with a budget the
`delivered` traffic (D,); where routing costs or a budget need it, the flow (F,) of the normal state.
The pool holds rows that were separated, over the columns before the flow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from planner import clock
from planner.search.deadline import Deadline, Stopwatch
from planner.search.tolerances import FEASIBILITY
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Bools, Floats, Network

NEAR_ROWS = 1.0
"""Slack of a separated row in the linear relaxation, in modules, up to which branch and bound takes it."""

VIOLATION = FEASIBILITY

CUT_OFF = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kObjectiveBound)
"""Ends of a search with a cutoff that found no point below it: there is none."""

OUT_OF_TIME = (highspy.HighsModelStatus.kInterrupt, highspy.HighsModelStatus.kTimeLimit)
"""Ends of a search by its limit of time."""

HEURISTIC_EFFORT = {True: 0.02, False: 0.05}
"""Share of a branch and bound that the solver's heuristics take, on all columns and on some: plans come from
those on some."""


ROOT_ITERATIONS = 2500.0
"""Simplex iterations that take as long as the rest of the work at a root, where all columns are free."""

PRESOLVED_SHARE = 0.1
"""Share of this work where presolving ends the search, without any iteration."""


class Search(NamedTuple):
    """Result of a branch and bound.

    points         points that it found, the best first
    bound          lower bound, inf where no point exists
    is_infeasible  whether it proved that no point exists
    work           simplex iterations times rows, which unlike seconds are the same on every machine; the
                   rest of the work at the root counts as iterations
    nodes          nodes of its tree
    seconds        time that it computed
    is_cut_short   whether its limit of time ended it
    """

    points: list[Floats]
    bound: float
    is_infeasible: bool
    work: float
    nodes: int
    seconds: float
    is_cut_short: bool


class Master:
    """The master program of an instance; a maximum of delivered traffic is a minimum of its negative."""

    def __init__(
        self, instance: Instance, network: Network, budget: float | None, *, with_flow: bool = False
    ) -> None:
        self.instance, self.network, self.budget = instance, network, budget
        self.setup_edges = np.flatnonzero(instance.setup_cost > 0)
        self.has_flow = with_flow or budget is not None or bool((instance.routing_cost > 0).any())
        demands = 0 if budget is None else len(instance.rate)
        self.modules = instance.modules
        self.opened = slice(self.modules, self.modules + len(self.setup_edges))
        self.delivered = slice(self.opened.stop, self.opened.stop + demands)
        self.pooled = self.delivered.stop
        flows = network.flow_columns if self.has_flow else 0
        self.columns = self.pooled + flows
        routing = network.flow_cost(instance.routing_cost)
        spent = np.r_[
            instance.module_cost,
            instance.setup_cost[self.setup_edges],
            np.zeros(demands),
            routing[:flows],
        ]
        upper = np.r_[
            instance.module_limit,
            np.ones(len(self.setup_edges)),
            instance.rate[:demands],
            np.full(flows, np.inf),
        ]
        self.spent, self.upper = spent, upper
        self.cost = spent
        if budget is not None:
            self.cost = np.zeros(self.columns)
            self.cost[self.delivered] = -1.0
        self.integer = np.arange(self.columns) < self.opened.stop
        self._build_static_rows()
        self._pool: list[tuple[np.ndarray, np.ndarray, float]] = []
        self._known: set[bytes] = set()
        self._matrix: sp.csr_array | None = None
        self._in_program = 0
        self._needed: set[int] = set()
        self.program = self._load(self._static, self._static_lower, self._static_upper, self.upper)
        for option, value in (("solver", "simplex"), ("presolve", "off")):
            self.program.setOptionValue(option, value)

    def _build_static_rows(self) -> None:
        instance, network = self.instance, self.network
        modules, edge = self.modules, instance.module_edge
        blocks: list[sp.csr_array] = []
        lower: list[Floats] = []
        upper: list[Floats] = []

        def add(matrix: sp.sparray, low: Floats, high: Floats) -> None:
            blocks.append(sp.csr_array(matrix))
            lower.append(low)
            upper.append(high)

        on_edge = sp.csr_array(
            (np.ones(modules), (edge, np.arange(modules))), shape=(instance.edges, modules)
        )
        if instance.explicit:
            kinds = np.bincount(edge, minlength=instance.edges)
            choice = sp.hstack([on_edge, sp.csr_array((instance.edges, self.columns - modules))]).tocsr()
            choice = choice[kinds > 1]
            add(choice, np.full(choice.shape[0], -np.inf), np.ones(choice.shape[0]))
        if len(self.setup_edges):
            position = np.full(instance.edges, -1)
            position[self.setup_edges] = np.arange(len(self.setup_edges))
            kinds = np.flatnonzero(position[edge] >= 0)
            row = np.arange(len(kinds))
            link = sp.csr_array(
                (
                    np.r_[np.ones(len(kinds)), -self.most_useful()[kinds]],
                    (np.r_[row, row], np.r_[kinds, modules + position[edge[kinds]]]),
                ),
                shape=(len(kinds), self.columns),
            )
            add(link, np.full(len(kinds), -np.inf), np.zeros(len(kinds)))
        if self.has_flow:
            rows = network.conservation.shape[0]
            before = sp.csr_array((rows, self.pooled))
            balance = np.zeros(rows)
            if self.budget is None:
                balance = network.supply @ instance.rate
            else:
                before = sp.hstack([sp.csr_array((rows, self.delivered.start)), -network.supply])
            add(sp.hstack([before, network.conservation]), balance, balance)
            size = sp.csr_array(on_edge @ sp.diags_array(instance.module_size))[network.capacity_edge]
            remainder = sp.csr_array((network.capacities, self.pooled - modules))
            add(
                sp.hstack([-size, remainder, network.load]),
                np.full(network.capacities, -np.inf),
                instance.installed[network.capacity_edge],
            )
        if self.budget is not None:
            add(sp.csr_array(self.spent[None, :]), np.array([-np.inf]), np.array([self.budget]))
        if not blocks:
            blocks, lower, upper = [sp.csr_array((0, self.columns))], [np.zeros(0)], [np.zeros(0)]
        self._static = sp.csr_array(sp.vstack(blocks))
        self._static_lower, self._static_upper = np.concatenate(lower), np.concatenate(upper)

    def most_useful(self) -> Floats:
        """Return the modules of each kind that carry all traffic, at most the limit, shape (M,)."""
        upper: Floats = np.minimum(
            np.ceil(self.instance.rate.sum() / self.instance.module_size), self.instance.module_limit
        )
        return upper

    def _load(
        self,
        matrix: sp.csr_array,
        lower: Floats,
        upper: Floats,
        limits: Floats,
        cost: Floats | None = None,
    ) -> highspy.Highs:
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.passModel(
            self.columns,
            matrix.shape[0],
            matrix.nnz,
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            self.cost if cost is None else cost,
            np.zeros(self.columns),
            limits,
            lower,
            upper,
            matrix.indptr.astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
            np.zeros(self.columns, dtype=np.int32),
        )
        return highs

    def share_pool(self, other: Master) -> None:
        """Take the separated rows of another master program, now and later."""
        self._pool, self._known = other._pool, other._known

    def add_row(self, coefficients: Floats, limit: float) -> bool:
        """Add the row `coefficients x >= limit` over the columns before the flow; False where it is known."""
        columns = np.flatnonzero(coefficients)
        key = np.r_[columns, np.round(coefficients[columns] * 1e6), round(limit * 1e6)].tobytes()
        if key in self._known:
            return False
        self._known.add(key)
        self._pool.append((columns.astype(np.int32), coefficients[columns], limit))
        self._matrix = None
        return True

    def add_flow_row(self, columns: np.ndarray, values: Floats, limit: float) -> None:
        """Add the row `values x >= limit` over columns `columns`, with flow among them, to the relaxation."""
        self.program.addRow(limit, np.inf, len(columns), columns.astype(np.int32), values)

    @property
    def static_rows(self) -> int:
        """Number of rows without those that were separated."""
        return int(self._static.shape[0])

    @property
    def pool(self) -> tuple[sp.csr_array, Floats]:
        """Separated rows, shape (P, columns before the flow), and their right-hand sides (P,)."""
        if self._matrix is None or self._matrix.shape[0] != len(self._pool):
            indptr = np.r_[0, np.cumsum([len(columns) for columns, _, _ in self._pool])]
            indices = (
                np.concatenate([columns for columns, _, _ in self._pool])
                if self._pool
                else np.zeros(0, np.int32)
            )
            data = np.concatenate([value for _, value, _ in self._pool]) if self._pool else np.zeros(0)
            self._matrix = sp.csr_array((data, indices, indptr), shape=(len(self._pool), self.pooled))
            self._limits = np.array([limit for _, _, limit in self._pool])
        return self._matrix, self._limits

    def relaxation_duals(self) -> Floats:
        """Return dual values of the pool's rows in the last linear relaxation, (P,), 0 where it has none."""
        duals: Floats = np.zeros(len(self._pool))
        values = np.array(self.program.getSolution().row_dual)[self.static_rows :]
        count = min(len(values), self._in_program)
        duals[:count] = np.maximum(0.0, values[:count])
        return duals

    def is_cut_off(self, point: Floats) -> bool:
        """Return whether a point violates a row of the pool."""
        matrix, limits = self.pool
        return bool((matrix @ point[: self.pooled] < limits - VIOLATION).any())

    def _need_violated(self, points: list[Floats]) -> None:
        """Take the rows of the pool that points violate in all later searches."""
        matrix, limits = self.pool
        for point in points:
            violated = matrix @ point[: self.pooled] < limits - VIOLATION
            self._needed.update(np.flatnonzero(violated).tolist())

    def solve_relaxation(self, time_limit_s: float) -> tuple[Floats, float] | None:
        """Return the optimal point and value of the linear relaxation; None where none was found."""
        highs = self.program
        for columns, values, limit in self._pool[self._in_program :]:
            highs.addRow(limit, np.inf, len(columns), columns, values)
        self._in_program = len(self._pool)
        highs.setOptionValue("time_limit", max(0.0, time_limit_s) + highs.getRunTime())
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return np.array(highs.getSolution().col_value), float(highs.getInfo().objective_function_value)

    def solve_flow(self, point: Floats, time_limit_s: float) -> Floats | None:
        """Return the cheapest point with the modules of a point; None where there is none in time."""
        matrix, limits = self.pool
        wide = sp.hstack([matrix, sp.csr_array((len(limits), self.columns - self.pooled))]).tocsr()
        highs = self._load(
            sp.csr_array(sp.vstack([self._static, wide])),
            np.r_[self._static_lower, limits],
            np.r_[self._static_upper, np.full(len(limits), np.inf)],
            self.upper,
        )
        fixed = np.arange(self.opened.stop, dtype=np.int32)
        highs.changeColsBounds(len(fixed), fixed, point[fixed], point[fixed])
        highs.setOptionValue("time_limit", max(0.01, time_limit_s))
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        completed = np.array(highs.getSolution().col_value)
        completed[fixed] = point[fixed]
        return completed

    def is_relaxation_infeasible(self) -> bool:
        """Return whether the last linear relaxation was proven infeasible."""
        return bool(self.program.getModelStatus() == highspy.HighsModelStatus.kInfeasible)

    def _rows_near(
        self, relaxed: Floats, around: Floats | None, *, is_whole: bool
    ) -> tuple[sp.csr_array, Floats]:
        """Return the rows of the pool for a search: all, or where it is on all columns those near points."""
        matrix, limits = self.pool
        if not len(limits) or not is_whole:
            return matrix, limits
        slack = matrix @ relaxed[: self.pooled] - limits
        near = slack <= NEAR_ROWS * np.maximum(1.0, abs(matrix).max(axis=1).toarray().ravel())
        if around is not None:
            near |= matrix @ around[: self.pooled] - limits <= NEAR_ROWS
        near[list(self._needed)] = True
        return matrix[near], limits[near]

    def _stay_near(self, highs: highspy.Highs, around: Floats, radius: int) -> None:
        """Limit the modules together by which points differ from a point (local branching)."""
        modules, first = self.modules, highs.getNumCol()
        highs.addVars(modules, np.zeros(modules), np.full(modules, np.inf))
        columns = np.arange(modules, dtype=np.int32)
        both = np.column_stack([columns, first + columns])
        for sign in (1.0, -1.0):
            highs.addRows(
                modules,
                sign * around[:modules],
                np.full(modules, np.inf),
                2 * modules,
                2 * columns,
                both.ravel(),
                np.tile([sign, 1.0], modules),
            )
        highs.addRow(-np.inf, float(radius), modules, first + columns, np.ones(modules))

    def _begin_around(
        self, highs: highspy.Highs, around: Floats, free: Bools | None, radius: int | None
    ) -> None:
        """Fix columns that are not free to a point, or begin the search there; limit the distance from it."""
        if free is None:
            columns = np.arange(min(len(around), self.columns), dtype=np.int32)
            highs.setSolution(len(columns), columns, around[columns])
        else:
            fixed = np.flatnonzero(~free).astype(np.int32)
            highs.changeColsBounds(len(fixed), fixed, around[fixed], around[fixed])
        if radius is not None:
            self._stay_near(highs, around, radius)

    def _close_arcs(self, highs: highspy.Highs, arcs: Bools) -> None:
        """Keep flow off all but some arcs (K, A)."""
        closed = (self.pooled + np.flatnonzero(~arcs)).astype(np.int32)
        highs.changeColsBounds(len(closed), closed, np.zeros(len(closed)), np.zeros(len(closed)))

    def search(
        self,
        *,
        time_limit_s: float,
        cpu_limit_s: float = math.inf,
        nodes: int | None = None,
        gap: float = 0.0,
        free: Bools | None = None,
        around: Floats | None = None,
        radius: int | None = None,
        cutoff: float | None = None,
        cost: Floats | None = None,
        arcs: Bools | None = None,
        relaxed: Floats,
    ) -> Search:
        """Return the result of branch and bound within limits.

        cpu_limit_s  limit of CPU seconds, which unlike seconds on the wall are the same on a busy machine
        free    (M + Y,) columns that may differ from `around`; None for all
        around  a point: columns that are not free keep its values, and the search starts from it
        radius  most modules together by which points may differ from `around`; None for any
        cutoff  value below which points are searched for, at `cost`
        cost    (columns,) in place of the program's, of which the bound then is; None for the program's
        arcs    (K, A) arcs that the flow of each root may take, None for all; with fewer, the bound is not of
                the program
        relaxed optimal point of the linear relaxation, near whose rows the search takes
        """
        highs = self._prepare(relaxed, around, free, cost)
        if arcs is not None:
            self._close_arcs(highs, arcs)
        columns = np.flatnonzero(self.integer).astype(np.int32)
        kind = np.full(len(columns), highspy.HighsVarType.kInteger)
        highs.changeColsIntegrality(len(columns), columns, kind)
        if around is not None:
            self._begin_around(highs, around, free, radius)
        _set_limits(
            highs,
            time_limit=max(0.01, clock.wall_limit_s(time_limit_s)),
            mip_rel_gap=max(gap, 1e-9),
            mip_abs_gap=1e-9,
            mip_heuristic_effort=HEURISTIC_EFFORT[free is None],
            objective_bound=cutoff,
            mip_max_nodes=nodes,
        )
        if clock.is_counting_cpu():
            cpu_limit_s = min(cpu_limit_s, time_limit_s)
        points, seconds = self._run(highs, cpu_limit_s)
        status = highs.getModelStatus()
        infeasible = status == highspy.HighsModelStatus.kInfeasible
        if cutoff is not None:  # the solver may end with a point above it, and says optimal
            price = self.cost if cost is None else cost
            points = [point for point in points if float(price @ point) <= cutoff]
            infeasible |= not points and status in CUT_OFF
        self._need_violated(points)
        information = highs.getInfo()
        return Search(
            points=points[::-1],
            bound=np.inf if infeasible else float(information.mip_dual_bound),
            is_infeasible=infeasible,
            work=self._work_of(highs, free),
            nodes=max(1, int(information.mip_node_count)),
            seconds=seconds,
            is_cut_short=status in OUT_OF_TIME,
        )

    def _run(self, highs: highspy.Highs, cpu_limit_s: float) -> tuple[list[Floats], float]:
        """Run branch and bound; return the points that it found, the best last, and its CPU seconds."""
        points: list[Floats] = []
        highs.cbMipImprovingSolution.subscribe(
            lambda event: points.append(np.array(event.data_out.mip_solution)[: self.columns])
        )
        watch, deadline = Stopwatch(is_cpu=True), Deadline.after(cpu_limit_s, is_cpu=True)
        if not deadline.is_never:
            highs.cbMipInterrupt.subscribe(lambda event: event.interrupt() if deadline.is_over else None)
        highs.run()
        seconds = watch.seconds
        for point in points:
            point[self.integer] = np.round(point[self.integer])
        return points, seconds

    def _prepare(
        self, relaxed: Floats, around: Floats | None, free: Bools | None, cost: Floats | None
    ) -> highspy.Highs:
        """Return the solver with the rows near a point, as `search` takes them."""
        matrix, limits = self._rows_near(relaxed, around, is_whole=free is None)
        if self.columns > self.pooled:
            matrix = sp.hstack([matrix, sp.csr_array((len(limits), self.columns - self.pooled))]).tocsr()
        blocks, lower, upper = [self._static, matrix], [self._static_lower, limits], [self._static_upper]
        upper.append(np.full(len(limits), np.inf))
        return self._load(
            sp.csr_array(sp.vstack(blocks)), np.concatenate(lower), np.concatenate(upper), self.upper, cost
        )

    def _work_of(self, highs: highspy.Highs, free: Bools | None) -> float:
        """Return the work of a search: its iterations, and those at its root, times the rows."""
        share = 1.0 if free is None else float(free[: self.opened.stop].mean())
        iterations = float(highs.getInfo().simplex_iteration_count)
        at_root = ROOT_ITERATIONS * share * (1.0 if iterations else PRESOLVED_SHARE)
        return (iterations + at_root) * int(highs.getNumRow())


def _set_limits(highs: highspy.Highs, **limits: float | None) -> None:
    """Set options of the solver by name; None leaves one as it is."""
    for option, value in limits.items():
        if value is not None:
            highs.setOptionValue(option, value)
