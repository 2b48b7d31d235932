"""Least-cost network design by cutting planes in the space of capacities.

A master program over modules takes rounded cutset rows and rounded metric rows; branch and bound on it gives
the bound. A plan is feasible where the overload program of each state has no overload; else its dual values
give the next row. Plans come from rounding, and from a large neighbourhood search: most links keep their
modules, the others are searched by branch and bound on the same master program.

Reference: Bienstock, Chopra, Gunluk and Tsai, "Minimum cost capacity installation for multicommodity network
flows", Mathematical Programming 81, 1998; Raack, Koster, Orlowski and Wessaely, "On cut-based inequalities
for capacitated network design polyhedra", Networks 57, 2011.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from planner.contract.proof import Status
from planner.options import Options
from planner_models.capacity.designs.network_design.cutsets import CutsetSeparator
from planner_models.capacity.designs.network_design.flow_rows import FlowRowSeparator
from planner_models.capacity.designs.network_design.instance import Instance, Shortage, Solution
from planner_models.capacity.designs.network_design.lagrangian_bound import LagrangianBound
from planner_models.capacity.designs.network_design.master import Master, Search
from planner_models.capacity.designs.network_design.metric_rows import add_metric_row
from planner_models.capacity.designs.network_design.neighbourhoods import Neighbourhoods
from planner_models.capacity.designs.network_design.network import Bools, Floats, Network
from planner_models.capacity.designs.network_design.overload_program import OverloadProgram
from planner_models.capacity.designs.network_design.partitions import PartitionSeparator
from planner_models.capacity.designs.network_design.purchase import Purchase
from planner_models.capacity.designs.network_design.reduction import Reduction, reduce_instance
from planner_models.capacity.designs.network_design.route_search import RouteSearch
from planner_models.capacity.designs.network_design.routes import demand_flows
from planner_models.capacity.designs.network_design.states import States

OVERLOAD_TOLERANCE = 1e-6
"""Overload of all links together, relative to all traffic, up to which capacities carry it."""

NUMERICAL_GAP = 4e-6
"""Relative gap that rounding of the solvers leaves, at which a plan counts as optimal in any case."""

MAX_SEARCHES = 16
"""Branch and bounds on the whole master program; the nodes of the last one are enough for any."""

FLOW_LIMIT_S = 60.0
"""Time limit of the flow of the final plan, which a plan was feasible with before."""

MAX_FLOW_COLUMNS = 12000
"""Flow columns up to which a network without failures is searched with its flow, too."""

MAX_SPLIT_COLUMNS = 8000
"""Flow columns up to which the relaxation is solved with a flow for each demand."""

FLOW_ROUNDS = 30
"""Rounds of rows with flow at the linear relaxation."""

FLOW_STALL = 3
FLOW_GAIN = 1e-4
"""Relative gain of FLOW_STALL rounds with which the search for more goes on."""

MAX_STEADY_COLUMNS = 3000
"""Flow columns up to which one branch and bound with flow runs to the end: it has many nodes a second, and
a new one would begin again at its root."""

FIRST_NODES = 200
"""Nodes of the first branch and bound on the whole master program; each next one has more."""

NODE_GROWTH = 2.0
WHOLE_SHARE = 0.35
"""Share of the time that is left that one branch and bound with a limit of nodes may compute."""

LEAST_NEIGHBOURHOODS = 4
"""Neighbourhoods that are searched between two branch and bounds on the whole master program; more where
they take less work."""

NEIGHBOURHOOD_NODES = {False: 200, True: 60}
"""Nodes of the branch and bound on one neighbourhood, without and with flow."""

NEIGHBOURHOOD_SHARE = 0.05
"""Share of the time that is left that one branch and bound on a neighbourhood may compute."""

EXPLORED_SHARE = 0.25
"""Share of neighbourhoods for which chance chooses the model; half as often for each time without gain."""

MAX_FRUITLESS = 5
"""Times without gain that count."""


IDLE_SHARE = 0.3
"""Work of neighbourhoods per work that the next branch and bound on the whole program is expected to take,
where the last ones gained nothing; else 1."""

ITERATIONS_PER_NODE = 0.25
"""Simplex iterations per row that a node of a branch and bound with flow takes, before one was seen."""

MEMORY = 0.8
"""Share of the past that counts in what a model gained and what work it took."""

NEIGHBOURHOOD_ROUNDS = 10
"""Candidates that one neighbourhood tries before the best of them is repaired."""

FIRST_FREE_LINKS = 14
LEAST_FREE_LINKS = 6
FREE_LINKS_GROWTH = 1.2
"""Growth of neighbourhoods that hold no better plan."""

FREE_LINKS_DECREASE = 0.9
"""Decrease of neighbourhoods that are too large to search."""

STALL_ROUNDS = 4
"""Rounds of cutset separation without a row after which the search for them ends."""

PARTITION_ROUNDS = 4
"""Rounds of partition rows at the linear relaxation, for modules of several sizes: with one size, branch and
bound finds most of these rows itself."""

METRIC_ROUNDS = 15
"""Rounds of metric rows at the linear relaxation."""

LAGRANGIAN_ASCENTS = ((500, 1.0), (700, 0.3), (700, 0.1))
"""Iterations and pace of the ascents of Lagrangian multipliers, with new rows after each; of the first to see
whether it raises the bound."""

LAGRANGIAN_GAIN = 2e-3
"""Relative gain of an ascent with which the next one follows."""

LAGRANGIAN_ROUNDS = 20
"""Rounds of rows at the linear relaxation after each ascent."""

LAGRANGIAN_SHARE = 0.1
"""Share of the time that is left that one ascent may take."""

LAGRANGIAN_LEAST_LEFT_S = 20.0
"""Time that is left from which multipliers are searched: their first use compiles for some seconds."""

MAX_MULTIPLIERS = 5_000_000
"""Potentials of demands at nodes up to which flow conservation is relaxed; memory is a few times as much."""

NEARLY_TIGHT = 1e-6
"""Slack, in modules, up to which a row of the linear relaxation gets a multiplier."""

MAX_VIOLATED_STATES = 6
"""States that give metric rows to one candidate."""


PATH_SEARCHES_PER_LINK = 2_000
"""Searches for paths of the first annealing of routes."""

FIRST_SEARCHES_GROWTH = 4
FIRST_SEARCHES_GAIN = 0.005
"""Relative gain of an annealing far from the plan with which one follows that is as much longer."""

FIRST_SEARCHES_SHARE = 0.25
"""Share of the time that is left that the next one may take."""

MAX_PATH_SEARCHES = 2_000_000
PATH_SEARCHES_GROWTH = 1.5
PATHS_PER_S = 100_000.0
"""Searches for paths in a second, before they were timed."""
WORK_PER_PATH = 8.0
"""Work of one search for a path, in simplex iterations times rows."""

MAX_COOLING = 1.5
"""Powers of ten by which an annealing from the best plan may start cooler than the first one."""

Model = Literal["capacities", "flow", "routes"]
"""What a neighbourhood of a plan is searched in: the master program, the one with flow, or single routes."""

Report = Callable[[float | None, float], None]
"""Takes the objective value of the best plan so far, None without one, and the bound."""


def solve(
    instance: Instance,
    options: Options = Options(),
    budget: float | None = None,
    report: Report | None = None,
    *,
    with_flows: bool = True,
) -> Solution:
    """Return the modules to buy at least cost, or within a budget for the most delivered traffic.

    options  the time limit, the gap and the seed count; HiGHS solves
    budget   most cost of modules, setup and routing; None for least cost
    report   called with each better plan and bound
    with_flows  whether the plan's flows are found, too, after the search and outside its time limit
    """
    reduction = reduce_instance(instance, merge=budget is None)
    if not len(reduction.pair) or reduction.pair.max() < 0:
        return _buy_nothing(instance, budget)
    search = _Search(reduction, options, budget, report)
    search.with_flows = with_flows
    return search.run()


def _buy_nothing(instance: Instance, budget: float | None) -> Solution:
    """Return the plan for demands of which none leaves its node."""
    value = 0.0 if budget is None else float(instance.rate.sum())
    return Solution(
        status=Status.OPTIMAL,
        counts=np.zeros(instance.modules),
        cost=0.0,
        objective=value,
        bound=value,
        delivered=instance.rate,
        flows=sp.csr_array((len(instance.rate), 2 * instance.edges)),
    )


@dataclass
class _Plan:
    """A point of the master program that every state can route, and its value there."""

    point: Floats
    value: float


class _Search:
    """State of one search: the master program with its rows, the best plan and the bound."""

    def __init__(
        self, reduction: Reduction, options: Options, budget: float | None, report: Report | None = None
    ) -> None:
        self.reduction, self.options, self.budget = reduction, options, budget
        self.report = report
        self.with_flows = True
        limit = math.inf if options.time_limit_s is None else options.time_limit_s
        self.deadline = time.perf_counter() + limit
        self.gap = options.gap or 0.0
        self.rng = np.random.default_rng(options.seed or 0)
        self.instance = instance = reduction.instance
        self.network = network = Network(instance)
        self.states = States.build(instance)
        self.master = Master(instance, network, budget)
        self.compact = self._compact_master()
        self.cutsets = CutsetSeparator(instance, network, self.states, self.master)
        self.has_sizes = budget is None and len(self.cutsets.sizes) > 1
        self.partitions = PartitionSeparator(instance, network, self.master, self.cutsets)
        self.purchase = Purchase(instance)
        self.oracle = OverloadProgram(network, np.ones(instance.edges))
        self.repairing = OverloadProgram(network, self._unit_costs())
        self.best: _Plan | None = None
        self.neighbourhoods = Neighbourhoods(network, self.rng)
        self.bound = 0.0 if budget is None else -float(instance.rate.sum())
        self.step = self._cost_step()
        self.recent = np.zeros(len(self.states))
        self.free_links: dict[Model, int] = dict.fromkeys(("capacities", "flow"), FIRST_FREE_LINKS)
        self.models = self._models()
        self.work: dict[Model, float] = dict.fromkeys(self.models, 0.0)
        self.fruitless: dict[Model, int] = dict.fromkeys(self.models, 0)
        self.gained: dict[Model, float] = dict.fromkeys(self.models, 0.0)
        self.routes = RouteSearch(instance, network) if "routes" in self.models else None
        self.path_searches = PATH_SEARCHES_PER_LINK * instance.edges
        self.paths_per_s = PATHS_PER_S
        self.neighbourhood_work = 0.0
        self.is_improving = True
        self.last_searches: dict[bool, Search | None] = {False: None, True: None}
        self.most = instance.capacity(self._most_counts())

    def _models(self) -> list[Model]:
        """Return the models that neighbourhoods of plans are searched in."""
        models: list[Model] = ["capacities"]
        if self.compact is not self.master:
            models.append("flow")
        if self.budget is None and len(self.states) == 1 and self.instance.tunnels is None:
            models.append("routes")
        return models

    def _compact_master(self) -> Master:
        """Return the master program with flow where there is one state and few columns, else without."""
        flows = self.network.flow_columns
        if self.master.has_flow or len(self.states) > 1 or flows > MAX_FLOW_COLUMNS:
            return self.master
        compact = Master(self.instance, self.network, self.budget, with_flow=True)
        compact.share_pool(self.master)
        return compact

    # --- the whole search

    def run(self) -> Solution:
        """Return the best plan and bound within the time limit."""
        shortage = self._find_shortage()
        if shortage is not None:
            return Solution(status=Status.INFEASIBLE, reason=shortage[0])
        self.cutsets.add_node_rows()
        self._plan_first()
        relaxed = self._tighten_relaxation()
        if relaxed is None and self.master.is_relaxation_infeasible():
            return Solution(status=Status.INFEASIBLE)
        if relaxed is not None:
            self._round_up(relaxed)
            self._anneal_routes()
        if relaxed is not None and not self._is_done():
            self._tighten_split()
        if relaxed is None or self._is_done() or self._search_all(20, relaxed):
            return self._answer()
        relaxed = self._raise_by_multipliers(relaxed)
        for count in range(MAX_SEARCHES):
            nodes = None if self._is_steady() else int(FIRST_NODES * NODE_GROWTH**count)
            self._search_neighbourhoods(relaxed, nodes)
            if self._is_done() or self._search_all(nodes, relaxed):
                break
            relaxed = self._tighten_relaxation(rounds=2)
            if relaxed is None or self._is_done():
                break
        return self._answer()

    def _whole_program(self) -> Master:
        """Return the program with the better last bound, with flow or without; an untried one is better."""
        last = {
            kind: math.inf if search is None else search.bound for kind, search in self.last_searches.items()
        }
        return self.compact if last[True] > last[False] else self.master

    def _is_steady(self) -> bool:
        """Return whether one branch and bound should run to its end: it is small and needs no more rows."""
        master = self._whole_program()
        return len(self.states) == 1 and 0 < master.columns - master.pooled <= MAX_STEADY_COLUMNS

    def _left_s(self) -> float:
        return self.deadline - time.perf_counter()

    def _is_done(self) -> bool:
        if self._left_s() <= 0.0:
            return True
        return self.best is not None and self.best.value - self.bound <= self._tolerance(self.best.value)

    def _tolerance(self, value: float) -> float:
        return max(self.gap, NUMERICAL_GAP) * abs(value) + 1e-9

    def _raise_bound(self, value: float) -> None:
        """Take a bound of the master program, rounded up to what plans can cost."""
        if not math.isfinite(value):
            return
        if self.step:
            value = self.step * math.ceil(value / self.step - 1e-6)
        if self.best is not None:
            value = min(value, self.best.value)
        if value > self.bound:
            self.bound = value
            self._report()

    def _report(self) -> None:
        if self.report is not None:
            best = None if self.best is None else self._objective(self.best.value)
            self.report(best, self._objective(self.bound))

    def _cost_step(self) -> float:
        """Return a number that all costs of plans are multiples of, 0 where there is none."""
        if self.master.has_flow:
            return 0.0
        costs = np.round(np.r_[self.instance.module_cost, self.instance.setup_cost] * 100)
        exact = np.r_[self.instance.module_cost, self.instance.setup_cost] * 100
        if not len(costs) or np.abs(costs - exact).max() > 1e-6 or costs.max() > 1e12:
            return 0.0
        return float(np.gcd.reduce(costs.astype(np.int64))) / 100

    def _unit_costs(self) -> Floats:
        """Return the least module cost per unit of capacity of each link, high where none can be bought."""
        instance = self.instance
        ratio = instance.module_cost / instance.module_size
        price = np.full(instance.edges, np.inf)
        np.minimum.at(price, instance.module_edge, ratio)
        finite = np.isfinite(price)
        worst = float(price[finite].max(initial=1.0))
        price[~finite] = 1e3 * max(worst, 1e-6)
        return price / max(float(price[finite].mean()) if finite.any() else 1.0, 1e-9) + 1e-3

    # --- feasibility

    def _capacity(self, point: Floats) -> Floats:
        return self.instance.capacity(point[: self.instance.modules])

    def _unreached(self, capacity: Floats, rates: Floats) -> Iterator[tuple[int, int, Bools]]:
        """Yield demands without a path in a state: state, demand, and the links of which it needs one (E,).

        Solvers take demands that are tiny beside the others for none.
        """
        network, states = self.network, self.states
        for state in range(len(states)):
            for demand, links in network.unreached(capacity > 0, states.up[state]):
                if states.required[state, demand] > 0 and rates[demand] > 0:
                    yield state, demand, links

    def _separate_unreached(self, point: Floats) -> bool:
        """Add a row for each demand without a path, which needs one of some links; return whether it did."""
        if self.budget is not None:
            return False
        found = False
        for _, _, links in self._unreached(self._capacity(point), self.instance.rate):
            found = True
            row = np.zeros(self.master.pooled)
            row[: self.master.modules] = links[self.instance.module_edge]
            self.master.add_row(row, 1.0)
        return found

    def _violated_states(self, point: Floats, limit: int) -> list[tuple[int, Floats]] | None:
        """Return states that a point cannot carry, with lengths that prove it; None where time runs out."""
        rates, capacity = self.cutsets.rates(point), self._capacity(point)
        tolerance = OVERLOAD_TOLERANCE * max(float(self.instance.rate.sum()), 1e-9)
        found: list[tuple[int, Floats]] = []
        for state in np.argsort(-self.recent, kind="stable").tolist():
            solved = self.oracle.solve(
                capacity * self.states.up[state], rates * self.states.required[state], self._left_s()
            )
            if solved is None:
                return None
            if solved[0] > tolerance:
                found.append((state, solved[2]))
                self.recent[state] += 1.0
                if len(found) >= limit:
                    break
        self.recent *= 0.95
        return found

    def _separate(self, point: Floats) -> bool | None:
        """Add rows that a point violates; return whether there were any, None where time runs out."""
        if self._separate_unreached(point):
            return True
        violated = self._violated_states(point, MAX_VIOLATED_STATES)
        if violated is None:
            return None
        for state, lengths in violated:
            add_metric_row(
                self.instance,
                self.network,
                self.states,
                self.master,
                state=state,
                lengths=lengths,
                point=point,
            )
        if violated:
            self.cutsets.separate(point, self.rng)
        return bool(violated)

    def _find_shortage(self) -> tuple[Shortage | None] | None:
        """Return a proof that even all modules do not carry the demands; None where they do."""
        if self.budget is not None:
            return None
        point = np.zeros(self.master.columns)
        point[: self.instance.modules] = self._most_counts()
        violated = self._violated_states(point, 1)
        if not violated:
            return None
        return (self._cut_of(point, violated[0][0]),)

    def _most_counts(self) -> Floats:
        """Return the modules that give each link its largest capacity, shape (M,)."""
        instance = self.instance
        if not instance.explicit:
            return instance.module_limit
        counts = np.zeros(instance.modules)
        for edge in range(instance.edges):
            kinds = np.flatnonzero(instance.module_edge == edge)
            if len(kinds):
                counts[kinds[instance.module_size[kinds].argmax()]] = 1.0
        return counts

    def _cut_of(self, point: Floats, state: int) -> Shortage | None:
        """Return a cut whose demand exceeds its capacity in a state, where local search finds one."""
        instance, network, states = self.instance, self.network, self.states
        sets = [np.eye(network.nodes, dtype=bool), ~np.eye(network.nodes, dtype=bool)]
        lengths = np.where(self._capacity(point) > 0, 1.0, 1e6)[network.capacity_edge]
        near = network.distances(lengths, states.up[state])
        sets += [near < 1e6, (near < 1e6).T]
        for _ in range(5):
            found = self.cutsets.find_sets(point, self.rng)
            if len(found):
                sets.append(found)
        nodes = np.vstack(sets)
        up, required = states.up[state], states.required[state]
        demand = (network.demand_crosses(nodes) * instance.rate) @ required
        have = (network.crosses(nodes) * self._capacity(point)) @ up.astype(float)
        worst = int((demand - have).argmax())
        if demand[worst] <= have[worst] * (1 + 1e-9):
            return None
        failure = int(states.failure[state])
        unit = self.reduction.unit
        return Shortage(
            nodes=tuple(np.flatnonzero(nodes[worst]).tolist()),
            failure=None if failure < 0 else failure,
            capacity=float(have[worst]) * unit,
            demand=float(demand[worst]) * unit,
        )

    # --- the linear relaxation

    def _tighten_relaxation(self, rounds: int | None = None) -> Floats | None:
        """Return the optimal point of the linear relaxation with cutset and metric rows."""
        stalled, metric, partition, count = 0, 0, 0, 0
        point: Floats | None = None
        while True:
            solved = self.master.solve_relaxation(self._left_s())
            if solved is None:
                return None if self.master.is_relaxation_infeasible() else point
            point = solved[0]
            self._raise_bound(solved[1])
            count += 1
            if self._left_s() <= 0.0 or (rounds is not None and count > rounds):
                return point
            added = self.cutsets.separate(point, self.rng)
            stalled = 0 if added else stalled + 1
            if stalled < STALL_ROUNDS and (stalled == 0 or rounds is None):
                continue
            tried = 0 if self.budget is not None else self.partitions.separate_trees(point, self.rng)
            if not tried and self.has_sizes and partition < PARTITION_ROUNDS:
                tried = self.partitions.separate(point, self.rng, self._left_s())
                partition += 1
            if not tried and (metric >= METRIC_ROUNDS or not self._separate(point)):
                return point
            metric += 0 if tried else 1
            stalled = STALL_ROUNDS - 1

    def _tighten_split(self) -> None:
        """Raise the bound by the relaxation in which each demand has a flow of its own, where it is small.

        Its rows over single flows are stronger than those over capacities, but branch and bound on it has few
        nodes a second.
        """
        columns = len(self.instance.rate) * self.network.arcs
        if self.compact is self.master or self.budget is not None or columns > MAX_SPLIT_COLUMNS:
            return
        if self.instance.tunnels is not None:
            return
        network = Network(self.instance, split=True)
        program = Master(self.instance, network, None, with_flow=True)
        program.share_pool(self.master)
        rows = FlowRowSeparator(self.instance, network, program)
        values: list[float] = []
        for _ in range(FLOW_ROUNDS):
            solved = program.solve_relaxation(self._left_s())
            if solved is None or self._is_done():
                return
            point, value = solved
            self._raise_bound(value)
            values.append(value)
            is_stalled = len(values) > FLOW_STALL and value <= values[-1 - FLOW_STALL] * (1 + FLOW_GAIN)
            if is_stalled or not rows.separate(point) + self.cutsets.separate(point, self.rng):
                return

    def _raise_by_multipliers(self, relaxed: Floats) -> Floats:
        """Raise the bound by Lagrangian multipliers, and add their row; return the relaxation's new point."""
        instance, master = self.instance, self.master
        size = len(instance.rate) * instance.nodes
        if self.budget is not None or len(self.states) > 1 or size > MAX_MULTIPLIERS:
            return relaxed
        if self._left_s() < LAGRANGIAN_LEAST_LEFT_S:
            return relaxed
        program = LagrangianBound(instance)
        potentials: dict[int, tuple[float, Floats]] = {}  # by row of the pool, with the scale of the row
        for iterations, pace in LAGRANGIAN_ASCENTS:
            before = self.bound
            matrix, limits = master.pool
            duals = master.relaxation_duals()
            modules = matrix[:, : master.modules].tocsr()
            is_plain = np.diff(matrix.indptr) == np.diff(modules.indptr)  # no column of a setup
            start = program.zero()
            for at, (scale, potential) in potentials.items():
                is_plain[at] = False
                start += duals[at] / scale * potential
            slack = matrix @ relaxed[: master.pooled] - limits
            kept = np.flatnonzero(is_plain & ((slack <= NEARLY_TIGHT) | (duals > 0)))
            found = program.ascend(
                start,
                modules[kept],
                limits[kept],
                duals[kept],
                pace=pace,
                iterations=iterations,
                time_limit_s=LAGRANGIAN_SHARE * self._left_s(),
            )
            if found is None:
                return relaxed
            self._raise_bound(found.bound)
            is_raised = self.bound > before + LAGRANGIAN_GAIN * abs(before)
            if self._is_done() or not is_raised or master.has_flow or not found.gain.any():
                return relaxed  # the row of potentials has no routing costs
            scale = float(found.gain.max())
            row = np.zeros(master.pooled)
            row[: master.modules] = found.gain / scale
            if master.add_row(row, found.limit / scale * (1 - 1e-9)):
                potentials[len(master.pool[1]) - 1] = scale, found.potential
            tightened = self._tighten_relaxation(rounds=LAGRANGIAN_ROUNDS)
            relaxed = relaxed if tightened is None else tightened
        return relaxed

    # --- plans

    def _offer(self, point: Floats) -> bool:
        """Take a feasible point of the master program as the best plan if it is better."""
        value = float(self.master.cost @ point)
        if self.best is not None and value >= self.best.value - 1e-9 * max(1.0, abs(value)):
            return False
        self.best = _Plan(point, value)
        self._remember(point[: self.instance.modules])
        self._report()
        return True

    def _remember(self, counts: Floats | None) -> None:
        """Keep a plan to be combined with others, where capacities alone say what it costs."""
        if counts is not None and not self.master.has_flow:
            cost = self.instance.purchase_cost(counts)
            self.neighbourhoods.remember(self.instance.capacity(counts), cost)

    def _complete(self, counts: Floats) -> Floats | None:
        """Return the point with these modules, and with the cheapest flow where it has a cost."""
        master = self.master
        point = np.zeros(master.columns)
        point[: master.modules] = counts
        bought = np.bincount(self.instance.module_edge, weights=counts, minlength=self.instance.edges) > 0
        point[master.opened] = bought[master.setup_edges]
        if not master.has_flow:
            return point
        return master.solve_flow(point, self._left_s())

    def _plan_first(self) -> None:
        """Offer the plans that need no relaxation: all modules, and what the overload of nothing needs."""
        counts = np.zeros(self.instance.modules)
        if self.budget is not None:
            self._deliver_most(counts)
            return
        point = self._complete(self._most_counts())
        if point is not None and self._violated_states(point, 1) == []:
            self._offer(point)
        self._repair(counts)

    def _round_up(self, relaxed: Floats) -> None:
        """Offer plans that add to rounded capacities what the overload of each state needs."""
        if self.budget is not None:
            self._plan_within_budget(relaxed)
            return
        for share in (1.0, 0.7, 0.3):
            whole = np.floor(relaxed[: self.instance.modules] + share - 1e-6)
            if self.instance.explicit:
                whole = np.minimum(whole, 1.0)
            if not self._repair(np.minimum(np.maximum(whole, 0.0), self.instance.module_limit)):
                break

    def _repair(self, counts: Floats) -> bool:
        """Offer the plan that buys what the overload of each state needs; False where time runs out."""
        capacity = self.instance.capacity(counts)
        for state in np.argsort(-self.recent, kind="stable").tolist():
            while True:
                up = self.states.up[state]
                rates = self.instance.rate * self.states.required[state]
                most = np.where(up, self.most - capacity, 0.0)
                solved = self.repairing.solve(capacity * up, rates, self._left_s(), np.maximum(0.0, most))
                if solved is None:
                    return False
                over = np.where(up, solved[1], 0.0)
                if solved[0] <= OVERLOAD_TOLERANCE * float(self.instance.rate.sum()):
                    break
                bought = self.purchase.cheapest(np.where(over > 1e-9, capacity + over, 0.0))
                if bought is None:
                    return True
                edges = over > 1e-9
                capacity = np.where(edges, np.maximum(capacity, self.instance.capacity(bought)), capacity)
        self._offer_capacity(capacity)
        return True

    def _offer_capacity(self, capacity: Floats) -> None:
        """Offer the plan that buys at least a capacity (E,), where all states can route it."""
        counts = self.purchase.cheapest(self._connect(capacity))
        if counts is None or (
            self.best is not None and self.instance.purchase_cost(counts) >= self.best.value
        ):
            return
        point = self._complete(counts)
        if point is None or self._separate_unreached(point):
            return
        if self._violated_states(point, 1) == []:
            self._offer(point)

    def _connect(self, capacity: Floats) -> Floats:
        """Return capacities (E,) with the cheapest new links over which each demand has a path."""
        instance, network, capacity = self.instance, self.network, capacity.copy()
        for state, demand, _ in list(self._unreached(capacity, instance.rate)):
            usable = self.states.up[state] & (self.most > 0)
            price = np.where(capacity > 0, 0.0, self.repairing.weights_by_link)[network.arc_edge]
            links = network.cheapest_links(demand, price + 1e-9, usable)
            capacity[links] = np.maximum(capacity[links], 1e-6 * self.most[links])
        return capacity

    def _plan_within_budget(self, relaxed: Floats) -> None:
        """Offer the plan that delivers most over modules rounded down."""
        self._deliver_most(np.floor(relaxed[: self.instance.modules] + 1e-6))

    def _deliver_most(self, counts: Floats) -> None:
        while self._left_s() > 0.0:
            point = self._complete(counts)
            if point is None:
                return
            violated = self._separate(point)
            if violated is None:
                return
            if not violated:
                self._offer(point)
                return

    # --- searches by branch and bound

    def _cutoff(self) -> float | None:
        if self.best is None:
            return None
        value = self.best.value
        return value - max(self.step * 0.5, max(self.gap * 0.5, 1e-7) * abs(value), 1e-9)

    def _expected_work(self, nodes: int | None) -> float:
        """Return the work that the next branch and bound on the whole program is expected to take."""
        master = self._whole_program()
        last = self.last_searches[master.has_flow]
        if last is None:
            return (nodes or FIRST_NODES) * ITERATIONS_PER_NODE * float(master.static_rows) ** 2
        most = NODE_GROWTH * last.nodes
        return last.work / last.nodes * min(most, nodes or most)

    def _search_neighbourhoods(self, relaxed: Floats, nodes: int | None) -> None:
        """Search neighbourhoods of the best plan, of a size at which they are neither empty nor hard.

        nodes  of the branch and bound on the whole program that comes next
        """
        least = LEAST_NEIGHBOURHOODS if self.is_improving else 1
        enough = self._expected_work(nodes) * (1.0 if self.is_improving else IDLE_SHARE)
        self.is_improving = False
        self.neighbourhood_work = 0.0
        for count in itertools.count():
            if self.best is None or self._is_done():
                return
            if count >= least and self.neighbourhood_work > enough:
                return
            model = self._choose_model()
            before, value = self.neighbourhood_work, self.best.value
            if model == "routes":
                self._search_routes(heat=10.0 ** (-MAX_COOLING * self.rng.random()))
            else:
                self._search_links(relaxed, model)
            is_better = self.best.value < value
            self.is_improving |= is_better
            self.fruitless[model] = 0 if is_better else min(MAX_FRUITLESS, self.fruitless[model] + 1)
            self.work[model] = MEMORY * self.work[model] + self.neighbourhood_work - before
            self.gained[model] = MEMORY * self.gained[model] + value - self.best.value

    def _choose_model(self) -> Model:
        """Return the model to search in: mostly the one that gained most for its work lately.

        Each time without gain since then halves its rate, or else a large gain long ago would keep it chosen.
        """
        if self.rng.random() < EXPLORED_SHARE:
            weight = np.array([0.5 ** self.fruitless[model] for model in self.models])
            return self.models[self.rng.choice(len(weight), p=weight / weight.sum())]
        rate = [
            0.5 ** self.fruitless[model] * self.gained[model] / max(self.work[model], 1.0)
            for model in self.models
        ]
        best = [model for model, each in zip(self.models, rate, strict=True) if each == max(rate)]
        return best[self.rng.integers(len(best))]

    def _anneal_routes(self) -> None:
        """Search routes far from the plan, again and again longer while that lowers the cost."""
        shortest = self.path_searches
        while self.routes is not None:
            before = math.inf if self.best is None else self.best.value
            self._search_routes(heat=1.0)
            longer = FIRST_SEARCHES_GROWTH * self.path_searches
            is_better = self.best is not None and self.best.value < (1.0 - FIRST_SEARCHES_GAIN) * before
            if not is_better or longer > FIRST_SEARCHES_SHARE * self._left_s() * self.paths_per_s:
                break
            self.path_searches = longer
        self.path_searches = shortest

    def _search_routes(self, heat: float) -> None:
        """Search the routes of the best plan by annealing; longer where that finds nothing.

        heat  of the temperature, 1 for a search far from the plan
        """
        if self.routes is None or self._left_s() <= 0.0:
            return
        start = np.zeros(self.instance.edges) if self.best is None else self._capacity(self.best.point)
        begin = time.perf_counter()
        before = None if self.best is None else self.best.value
        left = self.paths_per_s * self._left_s()
        count = self.path_searches if left >= self.path_searches else max(1, int(left))
        if self.routes.start(start):
            self.routes.improve(count, heat, self.rng)
            self.paths_per_s = count / max(time.perf_counter() - begin, 1e-6)
            self._remember(self.purchase.cheapest(self.routes.capacity()))
            self._offer_capacity(self.routes.capacity())
        self.neighbourhood_work += WORK_PER_PATH * count
        if self.best is not None and self.best.value == before:
            self.path_searches = int(min(MAX_PATH_SEARCHES, PATH_SEARCHES_GROWTH * self.path_searches))

    def _search_links(self, relaxed: Floats, model: Model) -> None:
        """Search modules of some links by branch and bound."""
        assert self.best is not None
        here, aim = self._capacity(self.best.point), self._capacity(relaxed)
        edges = self.neighbourhoods.choose(here, aim, self.free_links[model])
        outcome = self._search_neighbourhood(edges, relaxed, with_flow=model == "flow")
        links = self.free_links[model]
        if outcome == "none":
            self.free_links[model] = min(self.instance.edges, math.ceil(FREE_LINKS_GROWTH * links))
        elif outcome == "limit":
            self.free_links[model] = max(LEAST_FREE_LINKS, int(FREE_LINKS_DECREASE * links))

    def _search_neighbourhood(self, edges: Bools, relaxed: Floats, *, with_flow: bool) -> str:
        """Search modules of some links; return "better", "none" or "limit"."""
        master = self.compact if with_flow else self.master
        assert self.best is not None
        free = np.ones(master.columns, dtype=bool)
        free[: master.modules] = edges[self.instance.module_edge]
        free[master.opened] = edges[master.setup_edges]
        around = self.best.point
        for _ in range(NEIGHBOURHOOD_ROUNDS):
            result = master.search(
                time_limit_s=self._left_s(),
                cpu_limit_s=NEIGHBOURHOOD_SHARE * self._left_s(),
                nodes=NEIGHBOURHOOD_NODES[with_flow],
                gap=0.002,
                free=free,
                around=around,
                cutoff=self._cutoff(),
                relaxed=relaxed,
            )
            self.neighbourhood_work += result.work
            if not result.points:
                return "none" if result.is_infeasible else "limit"
            candidate = result.points[0][: self.master.columns]
            violated = self._separate(candidate)
            if violated is None:
                return "limit"
            if not violated:
                self._take(candidate)
                return "better"
        self._repair_candidate(candidate)
        return "limit"

    def _take(self, candidate: Floats) -> None:
        point = self._complete(candidate[: self.master.modules])
        if point is not None and self.master.has_flow and self.budget is not None:
            self._deliver_most(candidate[: self.master.modules])
        elif point is not None:
            self._offer(point)

    def _search_all(self, nodes: int | None, relaxed: Floats) -> bool:
        """Search the whole master program within nodes, None for any; return whether it is finished."""
        gap = self.gap
        if self.best is not None and nodes is not None:
            gap = max(gap, 0.3 * (self.best.value - self.bound) / max(abs(self.best.value), 1e-9))
        master = self._whole_program()
        share = 1.0 if nodes is None else WHOLE_SHARE
        result = master.search(
            time_limit_s=self._left_s(),
            cpu_limit_s=share * self._left_s(),
            nodes=nodes,
            gap=gap,
            around=None if self.best is None else self.best.point,
            relaxed=relaxed,
        )
        self.last_searches[master.has_flow] = result
        if result.is_infeasible:
            if self.best is None:
                self.bound = math.inf
            return True
        self._raise_bound(result.bound)
        return not self._take_points([point[: self.master.columns] for point in result.points])

    def _take_points(self, points: list[Floats]) -> bool:
        """Take the best of the points that all states can route, and repair the best; False out of time."""
        for candidate in points[:3]:
            if not self._is_candidate(candidate):
                continue
            violated = self._separate(candidate)
            if violated is None:
                return False
            if not violated:
                self._take(candidate)
                break
        if points and (self.best is None or self.master.cost @ points[0] < self.best.value):
            self._repair_candidate(points[0])
        return True

    def _repair_candidate(self, candidate: Floats) -> None:
        """Offer the plan that a candidate becomes once all states can route it."""
        if self.budget is None:
            self._repair(candidate[: self.master.modules])
        else:
            self._deliver_most(candidate[: self.master.modules])

    def _is_candidate(self, point: Floats) -> bool:
        """Return whether a point keeps all rows of the pool and is better than the best plan."""
        if self.best is not None and self.master.cost @ point >= self.best.value - 1e-9:
            return False
        return not self.master.is_cut_off(point)

    # --- the answer

    def _objective(self, value: float) -> float:
        """Return a value of the master program as cost, or with a budget as delivered traffic."""
        if self.budget is None:
            return value
        original = self.reduction.original
        at_home = float(original.rate[original.source == original.target].sum())
        return at_home - value * self.reduction.unit

    def _answer(self) -> Solution:
        if self.bound == math.inf:
            return Solution(status=Status.INFEASIBLE)
        bound = self._objective(self.bound) if math.isfinite(self.bound) else None
        if self.best is None:
            return Solution(status=Status.UNDECIDED, bound=bound)
        best, original = self.best, self.reduction.original
        delivered = self._delivered(best)
        counts = self.reduction.expand(np.round(best.point[: self.instance.modules]))
        optimal = best.value - self.bound <= self._tolerance(best.value)
        return Solution(
            status=Status.OPTIMAL if optimal else Status.FEASIBLE,
            counts=counts,
            cost=float(self.master.spent @ best.point),
            objective=self._objective(best.value),
            bound=bound,
            delivered=original.rate if self.budget is None else delivered,
            flows=self._flows(best) if self.with_flows else None,
        )

    def _delivered(self, plan: _Plan) -> Floats:
        """Return the traffic that each original demand delivers, shape (D,)."""
        pair, original = self.reduction.pair, self.reduction.original
        delivered = np.where(original.source == original.target, original.rate, 0.0)
        rates = self.cutsets.rates(plan.point)
        delivered[pair >= 0] = np.minimum(rates[pair] * self.reduction.unit, original.rate)[pair >= 0]
        return delivered

    def _flows(self, plan: _Plan) -> sp.csr_array | None:
        """Return the flow of each original demand in the normal state; None where there are tunnels, or it
        was not solved.
        """
        master, network, rates = self.master, self.network, self.cutsets.rates(plan.point)
        if self.instance.tunnels is not None:
            return None
        if master.has_flow:
            flows = plan.point[master.pooled :].reshape(len(network.roots), network.arcs)
        elif self.oracle.solve(self._capacity(plan.point), rates, FLOW_LIMIT_S) is None:
            return None
        else:
            flows = self.oracle.flows()
        return demand_flows(self.reduction, network, flows, rates)
