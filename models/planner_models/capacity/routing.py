"""Routing of demands within given capacities: the served traffic of each state, and failure-free routes.

A linear program with one commodity for each target, a rate for each tunnel and a shed rate for each demand;
states differ in limits only, so that each starts from the basis of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from planner.arrays import Bools, Floats, Ints
from planner.errors import SolverFailure
from planner.search.tolerances import ROUNDING
from planner_models.capacity.plan.plan import TRACE, Purchases, tabulate_purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.schema import FLOWS, TUNNEL_FLOWS, UNSERVED
from planner_models.capacity.problem.tables import FITS
from planner_models.capacity.problem.tunnels import TunnelPaths

if TYPE_CHECKING:
    import highspy

FINE_RANGE: Final = 1e4
"""Largest demand, in units of the program, where some demands are small beside the others."""
SEARCH_SHARE: Final = 0.5
"""Rounding at which a search stops, as a share of what a check allows, which solves the program again."""
FINE_TOLERANCE: Final = ROUNDING
"""Feasibility tolerance of the solver in these units."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Arcs:
    """Directed arcs of the links: both ways, or from tail to head only where links are directed.

    line   (A,) link of each arc
    start  (A,) node where it starts
    end    (A,) node where it ends
    shares (C, A) 1 where an arc uses the capacity of a row; row_line (C,) is the link of each row
    """

    line: Ints
    start: Ints
    end: Ints
    shares: sp.csr_array
    row_line: Ints

    @classmethod
    def of(cls, problem: CapacityPlanning) -> Arcs:
        """Return the arcs of a problem's links."""
        count = len(problem.lines)
        line = np.arange(count)
        if problem.direction == "directed":
            eye = sp.eye_array(count, format="csr")
            return cls(line=line, start=problem.tail, end=problem.head, shares=eye, row_line=line)
        start = np.concatenate([problem.tail, problem.head])
        end = np.concatenate([problem.head, problem.tail])
        both = np.concatenate([line, line])
        if problem.direction == "bidirected":
            eye = sp.eye_array(2 * count, format="csr")
            return cls(line=both, start=start, end=end, shares=eye, row_line=both)
        shared = sp.csr_array((np.ones(2 * count), (both, np.arange(2 * count))), shape=(count, 2 * count))
        return cls(line=both, start=start, end=end, shares=shared, row_line=line)


class Flows(NamedTuple):
    """Flows of all demands, Mbit/s.

    arcs     (K, A) to each target on each arc
    tunnels  (T,) in each tunnel
    shed     (D,) what each demand sheds
    """

    arcs: Floats
    tunnels: Floats
    shed: Floats


class FlowProgram:
    """Flows of all demands within capacities, as a linear program with limits that change by state.

    Variables are the flows to each target on each arc, target by target, then the rate of each tunnel, then
    what each demand sheds. Demands with tunnels have no other flows.
    """

    def __init__(self, problem: CapacityPlanning) -> None:
        self.problem = problem
        self.arcs = arcs = Arcs.of(problem)
        nodes, demands = len(problem.nodes), len(problem.demands)
        self.tunnels = problem.tunnel_paths
        is_free = np.ones(demands, dtype=bool) if self.tunnels is None else self.tunnels.pair_of < 0
        free = np.flatnonzero(is_free)
        self.targets, row = np.unique(problem.target[free], return_inverse=True)
        kinds, count = len(self.targets), len(arcs.line)
        self.arc_columns = kinds * count
        self.flow_columns = self.arc_columns + (0 if self.tunnels is None else len(self.tunnels.names))
        arc = np.arange(count)
        balance = sp.csr_array(
            (
                np.concatenate([np.ones(count), -np.ones(count)]),
                (np.concatenate([arcs.start, arcs.end]), np.concatenate([arc, arc])),
            ),
            shape=(nodes, count),
        )
        flows = sp.block_diag([balance] * kinds, format="csr") if kinds else sp.csr_array((0, 0))
        starts = sp.csr_array(
            (np.ones(len(free)), (row * nodes + problem.source[free], free)), shape=(kinds * nodes, demands)
        )
        at_target = np.arange(kinds) * nodes + self.targets
        conserved = np.setdiff1d(
            np.arange(kinds * nodes), at_target
        )  # a target's row follows from the others
        none = sp.csr_array((arcs.shares.shape[0], demands))
        if self.tunnels is None:
            self._of_demand = starts[conserved]
            conserve = sp.hstack([flows[conserved], self._of_demand])
            load = sp.hstack([*[arcs.shares] * kinds, none])
        else:
            of_pair, on_arcs = self._tunnel_rows(self.tunnels)
            self._of_demand = sp.csr_array(sp.vstack([starts[conserved], of_pair]))
            rates = sp.block_diag([flows[conserved], on_arcs])
            conserve = sp.hstack([rates, self._of_demand])
            load = sp.hstack([*[arcs.shares] * kinds, arcs.shares @ self.tunnels.arcs.T, none])
        self.matrix = sp.csr_array(sp.vstack([conserve, load]))
        self.first_load = conserve.shape[0]
        self.levels = np.unique(problem.priority)
        self._limits: sp.csr_array | None = None
        if len(self.levels) > 1:
            levels = [problem.priority == level for level in self.levels]
            self._limits = sp.csr_array(np.array([np.ones(demands, dtype=bool), *levels], dtype=float))
        self._highs: highspy.Highs | None = None
        self._without_path: dict[bytes, Bools] = {}

    def _tunnel_rows(self, tunnels: TunnelPaths) -> tuple[sp.csr_array, sp.csr_array]:
        """Return the demands (P, D) and the tunnels (P, T) of each pair of nodes with tunnels."""
        bound = np.flatnonzero(tunnels.pair_of >= 0)
        of_pair = sp.csr_array(
            (np.ones(len(bound)), (tunnels.pair_of[bound], bound)),
            shape=(tunnels.pairs, len(tunnels.pair_of)),
        )
        count = len(tunnels.names)
        own_pair = sp.csr_array(
            (np.ones(count), (tunnels.pair, np.arange(count))), shape=(tunnels.pairs, count)
        )
        return of_pair, own_pair

    def column_cost(self, price: Floats) -> Floats:
        """Return the cost of a unit in each flow column at a price of each arc, (A,) to (flow_columns,)."""
        on_arcs = np.tile(price, len(self.targets))
        return on_arcs if self.tunnels is None else np.concatenate([on_arcs, self.tunnels.arcs @ price])

    def _load(self, cost: Floats) -> highspy.Highs:
        """Return the solver with the program, made at the first call."""
        import highspy

        if self._highs is None:
            matrix = self.matrix
            if self._limits is not None:
                before = sp.csr_array((self._limits.shape[0], self.flow_columns))
                matrix = sp.csr_array(sp.vstack([matrix, sp.hstack([before, self._limits])]))
            rows, columns = matrix.shape
            model = highspy.HighsLp()
            model.num_col_, model.num_row_ = columns, rows
            model.col_cost_ = cost
            model.col_lower_ = np.zeros(columns)
            model.col_upper_ = np.full(columns, highspy.kHighsInf)
            model.row_lower_ = np.zeros(rows)
            model.row_upper_ = np.zeros(rows)
            model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
            model.a_matrix_.start_ = matrix.indptr
            model.a_matrix_.index_ = matrix.indices
            model.a_matrix_.value_ = matrix.data
            solver = highspy.Highs()
            solver.setOptionValue("output_flag", False)
            solver.setOptionValue("threads", 1)
            solver.setOptionValue("solver", "simplex")
            if self.problem.rounding_share < FITS:
                solver.setOptionValue("primal_feasibility_tolerance", FINE_TOLERANCE)
            solver.passModel(model)
            self._highs = solver
        else:
            columns = np.arange(len(cost), dtype=np.int32)
            self._highs.changeColsCost(len(cost), columns, cost)
        return self._highs

    def supply(self, rate: Floats) -> Floats:
        """Return the traffic from each node to each target, a row of conservation each, in units of rates."""
        return np.asarray(self._of_demand @ rate)

    def solve(
        self, capacity: Floats, rate: Floats, cost: Floats | None = None, *, limits: Floats | None = None
    ) -> Flows:
        """Return the flows and shed rates of the least cost.

        capacity  (L,) of the links, Mbit/s
        rate      (D,) of the demands, Mbit/s
        cost      (flow_columns + D,) of the variables; None: only what is shed counts
        limits    (1 + P,) most that all demands may shed, and those of each priority, Mbit/s; None for any
        raises    SolverFailure where the solver fails
        """
        import highspy

        demands = len(rate)
        shape = len(self.targets), len(self.arcs.line)
        if not demands or not self.flow_columns:
            none = np.zeros(self.flow_columns - self.arc_columns)
            return Flows(np.zeros(shape), none, rate.copy())
        is_wide = self.problem.rounding_share < FITS
        unit = max(float(rate.max(initial=0.0)), 1e-300) / (FINE_RANGE if is_wide else 1.0)
        if cost is None:
            cost = np.concatenate([np.zeros(self.flow_columns), np.ones(demands)])
        solver = self._load(cost)
        supply = self.supply(rate / unit)
        largest = np.minimum(capacity[self.arcs.row_line] / unit, 1e9)
        lower = np.concatenate([supply, np.full(len(largest), -highspy.kHighsInf)])
        upper = np.concatenate([supply, largest])
        rows = np.arange(len(lower), dtype=np.int32)
        solver.changeRowsBounds(len(rows), rows, lower, upper)
        if self._limits is not None:
            if limits is None:
                limits = np.full(self._limits.shape[0], np.inf)
            rows = np.arange(len(lower), len(lower) + len(limits), dtype=np.int32)
            solver.changeRowsBounds(len(rows), rows, np.full(len(rows), -highspy.kHighsInf), limits / unit)
        shed_columns = np.arange(self.flow_columns, self.flow_columns + demands, dtype=np.int32)
        solver.changeColsBounds(demands, shed_columns, np.zeros(demands), rate / unit)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            solver.clearSolver()
            solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverFailure(f"routing within capacities: HiGHS ends with {solver.getModelStatus()}")
        values = np.maximum(np.asarray(solver.getSolution().col_value), 0.0) * unit
        return Flows(
            values[: self.arc_columns].reshape(shape),
            values[self.arc_columns : self.flow_columns],
            values[self.flow_columns :],
        )

    def price(self, capacity: Floats, rate: Floats) -> tuple[float, Floats]:
        """Return the least total rate to shed, and the saving by one more Mbit/s of each link, (L,).

        A cutting plane follows: no capacities c shed less than the rate shed less `price @ (c - capacity)`.
        """
        lower = float(self.solve(capacity, rate).shed.sum())
        price = np.zeros(len(capacity))
        if lower > SEARCH_SHARE * self.problem.rounding_share * float(rate.sum()):
            assert self._highs is not None
            dual = np.asarray(self._highs.getSolution().row_dual)[self.first_load : self.matrix.shape[0]]
            np.add.at(price, self.arcs.row_line, np.maximum(-dual, 0.0))
            return lower, price
        price[self._missing_links(capacity, rate)] = 1.0
        return float(rate[self.without_path(capacity, rate)].sum()), price

    def shed(self, capacity: Floats, rate: Floats) -> float:
        """Return the least total rate that must be shed, Mbit/s; 0 where it is rounding.

        Demands without a path are no rounding, however small they are beside the others.
        """
        lower = float(self.solve(capacity, rate).shed.sum())
        if lower > self.problem.rounding_share * float(rate.sum()):
            return lower
        return float(rate[self.without_path(capacity, rate)].sum())

    def without_path(self, capacity: Floats, rate: Floats) -> Bools:
        """Return the demands without a path over links with capacity, a mask (D,); solvers overlook some."""
        is_small = (rate > 0) & (rate <= 2 * self.problem.rounding_share * float(rate.sum()))
        if not is_small.any():
            return is_small
        up = capacity > 0
        key = up.tobytes()
        if key not in self._without_path:
            self._without_path[key] = self.problem.without_path(up)
        return self._without_path[key] & (rate > 0)

    def _missing_links(self, capacity: Floats, rate: Floats) -> Ints:
        """Return links without capacity of which each demand without a path needs one or more."""
        up = capacity > 0
        lacking = self.without_path(capacity, rate)
        if not lacking.any():
            return np.zeros(0, dtype=np.int64)
        is_missing = np.zeros(len(capacity), dtype=bool)
        if self.tunnels is not None:
            pairs = np.unique(self.tunnels.pair_of[lacking & (self.tunnels.pair_of >= 0)])
            on_paths = self.tunnels.uses[np.flatnonzero(np.isin(self.tunnels.pair, pairs))].sum(axis=0) > 0
            is_missing |= on_paths & ~up
            lacking = lacking & (self.tunnels.pair_of < 0)
        count, arc_up = len(self.problem.nodes), up[self.arcs.line]
        ends = self.arcs.start[arc_up], self.arcs.end[arc_up]
        graph = sp.csr_array((np.ones(len(ends[0])), ends), shape=(count, count))
        for source in np.unique(self.problem.source[lacking]).tolist():
            reached = np.zeros(count, dtype=bool)
            reached[breadth_first_order(graph, source, return_predecessors=False)] = True
            leaves = reached[self.arcs.start] & ~reached[self.arcs.end]
            is_missing[self.arcs.line[leaves]] = True
        return np.flatnonzero(is_missing)


def capacity_by_year(problem: CapacityPlanning, counts: Floats) -> Floats:
    """Return the capacity of each link in each year, (Y, L), with (Y, M) modules bought in each year."""
    options = problem.options
    added = np.zeros((len(counts), len(problem.lines)))
    for index, present in enumerate(options.in_force(counts)):
        np.add.at(added[index], options.link, present * options.size)
    return problem.installed_mbps + added


def usable_share(problem: CapacityPlanning, state: int) -> Floats:
    """Return the share of each link's capacity that a state may use, (L,): 0 where it is down."""
    limit = float(problem.utilization_limit[state])
    return np.where(down_links(problem, state), 0.0, limit)


def required_rate(problem: CapacityPlanning, year: int, state: int) -> Floats:
    """Return the rate of each demand that must fit in a state, (D,); state 0 is without failures.

    A demand that a state cuts off need not fit, nor what its class leaves unprotected in failures.
    """
    return np.where(problem.cut_off[0], 0.0, problem.rate_mbps[year] * problem.required_share[state])


def down_links(problem: CapacityPlanning, state: int) -> Bools:
    """Return the links that are down in a state, (L,); state 0 is without failures."""
    return problem.states.link_down[state - 1] if state else np.zeros(len(problem.lines), dtype=bool)


def shed_by_state(problem: CapacityPlanning, capacity: Floats, program: FlowProgram | None = None) -> Floats:
    """Return the least rate that must be shed in each year and state, (Y, 1 + S), Mbit/s.

    Demands that a state cuts off whatever is bought are not counted.

    capacity  (Y, L) of the links in each year, Mbit/s
    """
    program = program or FlowProgram(problem)
    states = 1 + len(problem.states.names)
    shed = np.zeros((len(capacity), states))
    for year in range(len(capacity)):
        for state in range(states):
            usable = usable_share(problem, state) * capacity[year]
            shed[year, state] = program.shed(usable, required_rate(problem, year, state))
    return shed


def route_year(problem: CapacityPlanning, program: FlowProgram, capacity: Floats, year: int) -> Flows:
    """Return the flows without failures: the least shed, the lowest priority first, then the least cost."""
    rate = required_rate(problem, year, 0)
    rate = np.where(program.without_path(capacity, rate), 0.0, rate)
    lost = problem.rate_mbps[year] - rate
    routing = problem.routing_cost[program.arcs.line]
    length = np.where(np.isnan(problem.length_km), 1.0, problem.length_km)[program.arcs.line]
    # a little for each hop, so that no flow runs in a circle
    base = routing if routing.any() else np.maximum(length / max(float(length.max(initial=0.0)), 1e-9), 1e-3)
    price = base + 1e-6 * float(base.max(initial=0.0))
    price = price / max(float(price.max(initial=0.0)), 1e-300)
    big = 4.0 * (len(problem.nodes) + 1)  # more than any route without a circle costs
    cost = np.concatenate([program.column_cost(price), np.full(len(rate), big)])
    flows = program.solve(capacity, rate, cost)
    rounding = problem.rounding_share * rate.sum()
    if len(program.levels) > 1 and flows.shed.sum() > rounding:
        limits = limit_by_priority(program, capacity, rate, limit=float(flows.shed.sum()))
        flows = program.solve(capacity, rate, cost, limits=limits)
    shed = flows.shed if flows.shed.sum() > rounding else np.zeros_like(rate)
    shed = np.where(shed > TRACE * max(float(rate.max(initial=0.0)), 1e-300), shed, 0.0) + lost
    return flows._replace(shed=shed)


def limit_by_priority(
    program: FlowProgram, capacity: Floats, rate: Floats, *, limit: float = np.inf
) -> Floats:
    """Return the least that all demands shed within `limit`, and those of each priority, (1 + P,), Mbit/s.

    The highest priority sheds the least that it can, then the next.
    """
    limits = np.full(1 + len(program.levels), np.inf)
    slack = 1e-9 * max(float(rate.max(initial=0.0)), 1e-300)
    limits[0] = limit + slack
    for index, level in enumerate(program.levels.tolist()):
        of_level = program.problem.priority == level
        cost = np.concatenate([np.zeros(program.flow_columns), of_level.astype(float)])
        flows = program.solve(capacity, rate, cost, limits=limits)
        limits[1 + index] = float(flows.shed[of_level].sum()) + slack
    return limits


def make_plan(problem: CapacityPlanning, counts: Floats) -> Purchases:
    """Return the plan that buys (Y, M) modules in each year, with its routes."""
    return route(problem, _without_routes(problem, counts), capacity_by_year(problem, counts))


def plan_flows(
    problem: CapacityPlanning, program: FlowProgram, counts: Floats, years: Sequence[Flows]
) -> Purchases:
    """Return the plan that buys (Y, M) modules in each year, with given flows without failures in each."""
    return _tabulate_flows(problem, _without_routes(problem, counts), program, years)


def _without_routes(problem: CapacityPlanning, counts: Floats) -> Purchases:
    return Purchases(
        purchases=tabulate_purchases(problem, counts),
        flows=pd.DataFrame(columns=list(FLOWS.columns)),
        unserved=pd.DataFrame(columns=list(UNSERVED.columns)),
        tunnel_flows=None,
    )


def route(problem: CapacityPlanning, plan: Purchases, capacity: Floats) -> Purchases:
    """Return a plan with new routes within a capacity (Y, L): the least unserved, then the least cost."""
    program = FlowProgram(problem)
    capacity = usable_share(problem, 0) * capacity
    years = [
        route_year(problem, program, capacity[index], index) for index in range(len(problem.year_numbers))
    ]
    return _tabulate_flows(problem, plan, program, years)


def _tabulate_flows(
    problem: CapacityPlanning, plan: Purchases, program: FlowProgram, years: Sequence[Flows]
) -> Purchases:
    """Return a plan with the tables of flows in each year."""
    arcs = program.arcs
    flow_rows: list[dict[str, Any]] = []
    shed_rows: list[dict[str, Any]] = []
    tunnel_rows: list[dict[str, Any]] = []
    node = problem.nodes["node"].tolist()
    class_name = problem.class_table["class"].astype(str).tolist() if problem.has_classes else [""]
    for index, year in enumerate(problem.year_numbers):
        flows, tunnels, shed = years[index]
        smallest = TRACE * max(float(problem.rate_mbps[index].max(initial=0.0)), 1e-300)
        for kind, arc in np.argwhere(flows > smallest).tolist():
            flow_rows.append(
                {
                    "target": node[program.targets[kind]],
                    "link": problem.names[arcs.line[arc]],
                    "tail": node[arcs.start[arc]],
                    "rate_mbps": float(flows[kind, arc]),
                    "year": float(year),
                }
            )
        if program.tunnels is not None:
            tunnel_rows += [
                {
                    "tunnel": program.tunnels.names[tunnel],
                    "rate_mbps": float(tunnels[tunnel]),
                    "year": float(year),
                }
                for tunnel in np.flatnonzero(tunnels > smallest).tolist()
            ]
        shed_rows += [
            {
                "source": node[problem.source[demand]],
                "target": node[problem.target[demand]],
                "class": class_name[problem.class_of[demand]],
                "rate_mbps": float(shed[demand]),
                "year": float(year),
            }
            for demand in np.flatnonzero(shed > 0).tolist()
        ]
    more = [] if problem.years is not None else ["year"]
    no_class = [] if problem.has_classes else ["class"]
    return replace(
        plan,
        flows=pd.DataFrame(flow_rows, columns=list(FLOWS.columns)).drop(columns=more),
        unserved=pd.DataFrame(shed_rows, columns=list(UNSERVED.columns)).drop(columns=more + no_class),
        tunnel_flows=None
        if program.tunnels is None
        else pd.DataFrame(tunnel_rows, columns=list(TUNNEL_FLOWS.columns)).drop(columns=more),
    )
