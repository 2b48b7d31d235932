"""Least-cost network design by cutting planes in the space of capacities.

A master program over modules takes rounded cutset rows and rounded metric rows; branch and bound on it gives
the bound. A plan is feasible where the overload program of each state has no overload; else its dual values
give the next row. Plans come from rounding, and from a large neighbourhood search from several starts: most
links keep their modules, the others are searched by branch and bound on the same master program.

Reference: Bienstock, Chopra, Gunluk and Tsai, "Minimum cost capacity installation for multicommodity network
flows", Mathematical Programming 81, 1998; Raack, Koster, Orlowski and Wessaely, "On cut-based inequalities
for capacitated network design polyhedra", Networks 57, 2011.

Flow of each demand from the flow of commodities, each of which has one root.

Reduction of an instance to the modules and demands that matter, in units that suit solvers.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from planner.contract.proof import Status
from planner.options import Options
from planner.search.tolerances import NEGLIGIBLE
from planner_models.capacity.designs.network_design.cutsets import CutsetSeparator
from planner_models.capacity.designs.network_design.feasibility import Feasibility
from planner_models.capacity.designs.network_design.incumbent import Incumbent, Plan, Report
from planner_models.capacity.designs.network_design.instance import Instance, Solution, Tunnels
from planner_models.capacity.designs.network_design.lagrangian_relaxation import MultiplierSearch
from planner_models.capacity.designs.network_design.master import Master, Search
from planner_models.capacity.designs.network_design.neighbourhoods import Neighbourhoods
from planner_models.capacity.designs.network_design.network import Floats, Ints, Network
from planner_models.capacity.designs.network_design.plan_building import PlanBuilder
from planner_models.capacity.designs.network_design.plan_search import PlanSearch
from planner_models.capacity.designs.network_design.relaxation import Relaxation
from planner_models.capacity.designs.network_design.states import States
from planner_models.capacity.plan.module_limits import largest_unit

MAX_SEARCHES = 16
"""Branch and bounds on the whole master program; the nodes of the last one are enough for any."""

FLOW_LIMIT_S = 60.0
"""Time limit of the flow of the final plan, which a plan was feasible with before."""

MAX_FLOW_COLUMNS = 12000
"""Flow columns up to which a network without failures is searched with its flow, too."""

MAX_STEADY_COLUMNS = 3000
"""Flow columns up to which one branch and bound with flow runs to the end: it has many nodes a second, and
a new one would begin again at its root."""

SEARCH_SHARE = 0.35
LAST_SEARCH_SHARE = 0.1
"""Share of the time that is left that neighbourhoods may compute before a branch and bound on the whole
program, and before the one that runs to the end.
"""

SHORT_NODES = 20
SHORT_SHARE = 0.05
"""Nodes of a short branch and bound before multipliers are searched, which many networks do not need, and its
share of the time that is left."""

FIRST_NODES = 200
"""Nodes of the first longer branch and bound on the whole master program; each next one has more."""

NODE_GROWTH = 2.0
LEAST_GAIN = 0.02
"""Share of the distance between plan and bound by which a branch and bound is to raise the bound, else no
longer one follows."""

WHOLE_SHARE = 0.15
"""Share of the time that is left that one branch and bound with a limit of nodes may compute."""

ITERATIONS_PER_NODE = 0.25
"""Simplex iterations per row that a node of a branch and bound with flow takes, before one was seen."""
MOST_UNIT = 50.0
"""Most capacity that is one unit, in mean demands: else demands are too small for solvers' tolerances."""


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


class _Search:
    """One search: the master program with its rows, the best plan and the bound, and their improvements."""

    def __init__(
        self, reduction: Reduction, options: Options, budget: float | None, report: Report | None = None
    ) -> None:
        self.reduction, self.budget, self.with_flows = reduction, budget, True
        self.rng = np.random.default_rng(options.seed or 0)
        self.instance = instance = reduction.instance
        self.network = network = Network(instance)
        self.states = States.build(instance)
        self.master = Master(instance, network, budget)
        self.compact = self._compact_master()
        self.incumbent = Incumbent(
            bound=0.0 if budget is None else -float(instance.rate.sum()),
            step=self._cost_step(),
            gap=options.gap or 0.0,
            time_limit_s=options.time_limit_s,
            report=None if report is None else self._report_to(report),
        )
        self.cutsets = CutsetSeparator(instance, network, self.states, self.master)
        self.feasibility = Feasibility(
            self.master, self.states, self.cutsets, self.incumbent, self.rng, reduction.unit
        )
        neighbourhoods = Neighbourhoods(network, self.rng)
        self.relaxation = Relaxation(self.feasibility, is_compact=self.compact is not self.master)
        self.multipliers = MultiplierSearch(self.relaxation)
        self.plans = PlanBuilder(self.feasibility, neighbourhoods)
        self.search = PlanSearch(self.plans, self.compact, neighbourhoods)
        self.last_searches: dict[bool, Search | None] = {False: None, True: None}
        self.last_gain = 1.0  # of the bound, in the last one, as a share of its distance from the plan

    def _report_to(self, report: Report) -> Report:
        """Return the report of values of the master program that reports objective values."""

        def converted(best: float | None, bound: float) -> None:
            report(None if best is None else self._objective(best), self._objective(bound))

        return converted

    def run(self) -> Solution:
        """Return the best plan and bound within the time limit."""
        shortage = self.feasibility.find_shortage()
        if shortage is not None:
            return Solution(status=Status.INFEASIBLE, reason=shortage[0])
        self.cutsets.add_node_rows()
        self.plans.plan_first()
        relaxed = self.relaxation.tighten()
        if relaxed is None:
            is_infeasible = self.master.is_relaxation_infeasible()
            return Solution(status=Status.INFEASIBLE) if is_infeasible else self._answer()
        self.plans.round_up(relaxed)
        self.search.anneal_routes()
        if not self.incumbent.is_done():
            self.relaxation.tighten_split()
        if not self.incumbent.is_done() and not self._search_all(SHORT_NODES, relaxed):
            self._search_in_turns(self.multipliers.raise_bound(relaxed))
        return self._answer()

    def _search_in_turns(self, relaxed: Floats) -> None:
        """Improve plans and search the whole program in turns, each with more nodes than the last."""
        for count in range(MAX_SEARCHES):
            nodes = None if self._is_steady() else int(FIRST_NODES * NODE_GROWTH**count)
            share = SEARCH_SHARE if nodes else LAST_SEARCH_SHARE
            if nodes and self._is_repeating():
                self.search.improve(relaxed, math.inf, 1.0)
                break
            self.search.improve(relaxed, self._expected_work(nodes), share)
            if self.incumbent.is_done() or self._search_all(nodes, relaxed):
                break
            tightened = self.relaxation.tighten(rounds=2)
            if tightened is None or self.incumbent.is_done():
                break
            relaxed = tightened

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

    def _is_repeating(self) -> bool:
        """Return whether the next branch and bound on the whole program is expected to find little new.

        It begins again at its root: with less time than the last one, which time ended, it is of no use; and
        where the last one hardly raised the bound, neighbourhoods use a long time better.
        """
        last = self.last_searches[self._whole_program().has_flow]
        if last is None or self.incumbent.best is None:
            return False
        left_s = WHOLE_SHARE * (1.0 - SEARCH_SHARE) * self.incumbent.left_s()
        is_long = NODE_GROWTH * last.seconds > left_s
        return (is_long and self.last_gain < LEAST_GAIN) or (last.is_cut_short and left_s <= last.seconds)

    def _expected_work(self, nodes: int | None) -> float:
        """Return the work that the next branch and bound on the whole program is expected to take."""
        master = self._whole_program()
        last = self.last_searches[master.has_flow]
        if last is None:
            return (nodes or FIRST_NODES) * ITERATIONS_PER_NODE * float(master.static_rows) ** 2
        growth_limit = NODE_GROWTH * last.nodes
        return last.work / last.nodes * min(growth_limit, nodes or growth_limit)

    def _search_all(self, nodes: int | None, relaxed: Floats) -> bool:
        """Search the whole master program within nodes, None for any; return whether it is finished."""
        gap = self.incumbent.gap
        best, bound = self.incumbent.best, self.incumbent.bound
        if best is not None and nodes is not None:
            gap = max(gap, 0.3 * (best.value - bound) / max(abs(best.value), 1e-9))
        master = self._whole_program()
        share = 1.0 if nodes is None else WHOLE_SHARE if nodes >= FIRST_NODES else SHORT_SHARE
        previous, self.incumbent.current = self.incumbent.current, best
        result = master.search(
            time_limit_s=self.incumbent.left_s(),
            cpu_limit_s=share * self.incumbent.left_s(),
            nodes=nodes,
            gap=gap,
            around=None if best is None else best.point,
            relaxed=relaxed,
        )
        self.last_searches[master.has_flow] = result
        if result.is_infeasible:
            if self.incumbent.best is None:
                self.incumbent.bound = math.inf
            return True
        open_gap = math.inf if best is None else best.value - bound
        self.incumbent.raise_bound(result.bound)
        self.last_gain = (self.incumbent.bound - bound) / max(open_gap, 1e-9)
        is_late = not self.plans.take_points([point[: self.master.columns] for point in result.points])
        if self.incumbent.best is best:
            self.incumbent.current = previous
        return is_late

    def _compact_master(self) -> Master:
        """Return the master program with flow where there is one state and few columns, else without."""
        flows = self.network.flow_columns
        if self.master.has_flow or len(self.states) > 1 or flows > MAX_FLOW_COLUMNS:
            return self.master
        compact = Master(self.instance, self.network, self.budget, with_flow=True)
        compact.share_pool(self.master)
        return compact

    def _cost_step(self) -> float:
        """Return a number that all costs of plans are multiples of, 0 where there is none."""
        if self.master.has_flow:
            return 0.0
        costs = np.round(np.r_[self.instance.module_cost, self.instance.setup_cost] * 100)
        exact = np.r_[self.instance.module_cost, self.instance.setup_cost] * 100
        if not len(costs) or np.abs(costs - exact).max() > 1e-6 or costs.max() > 1e12:
            return 0.0
        return float(np.gcd.reduce(costs.astype(np.int64))) / 100

    # --- the answer

    def _objective(self, value: float) -> float:
        """Return a value of the master program as cost, or with a budget as delivered traffic."""
        if self.budget is None:
            return value
        original = self.reduction.original
        at_home = float(original.rate[original.source == original.target].sum())
        return at_home - value * self.reduction.unit

    def _answer(self) -> Solution:
        if self.incumbent.bound == math.inf:
            return Solution(status=Status.INFEASIBLE)
        bound = self._objective(self.incumbent.bound) if math.isfinite(self.incumbent.bound) else None
        if self.incumbent.best is None:
            return Solution(status=Status.UNDECIDED, bound=bound)
        best, original = self.incumbent.best, self.reduction.original
        delivered = self._delivered(best)
        counts = self.reduction.expand(np.round(best.point[: self.instance.modules]))
        optimal = best.value - self.incumbent.bound <= self.incumbent.tolerance(best.value)
        return Solution(
            status=Status.OPTIMAL if optimal else Status.FEASIBLE,
            counts=counts,
            cost=float(self.master.spent @ best.point),
            objective=self._objective(best.value),
            bound=bound,
            delivered=original.rate if self.budget is None else delivered,
            flows=self._flows(best) if self.with_flows else None,
        )

    def _delivered(self, plan: Plan) -> Floats:
        """Return the traffic that each original demand delivers, shape (D,)."""
        pair, original = self.reduction.pair, self.reduction.original
        delivered = np.where(original.source == original.target, original.rate, 0.0)
        rates = self.cutsets.rates(plan.point)
        delivered[pair >= 0] = np.minimum(rates[pair] * self.reduction.unit, original.rate)[pair >= 0]
        return delivered

    def _flows(self, plan: Plan) -> sp.csr_array | None:
        """Return the flow of each original demand in the normal state; None where there are tunnels, or it
        was not solved.
        """
        master, network, rates = self.master, self.network, self.cutsets.rates(plan.point)
        feasibility = self.feasibility
        if self.instance.tunnels is not None:
            return None
        if master.has_flow:
            flows = plan.point[master.pooled :].reshape(len(network.roots), network.arcs)
        elif feasibility.oracle.solve(feasibility.capacity(plan.point), rates, FLOW_LIMIT_S) is None:
            return None
        else:
            flows = feasibility.oracle.flows()
        return demand_flows(self.reduction, network, flows, rates)


def demand_flows(reduction: Reduction, network: Network, flows: Floats, delivered: Floats) -> sp.csr_array:
    """Return the flow of each original demand, shape (D, 2 E): along the links, then against them.

    flows      (K, A) of each commodity on each arc, in reduced units
    delivered  (D',) traffic of each reduced demand
    """
    original, edges = reduction.original, network.instance.edges
    split = np.zeros((len(delivered), 2 * edges))
    for commodity, root in enumerate(network.roots):
        remaining = flows[commodity].copy()
        for demand in np.flatnonzero(network.commodity == commodity):
            used = _strip(
                network, remaining, int(root), int(network.target[demand]), float(delivered[demand])
            )
            along = np.bincount(
                network.arc_edge, weights=used * (np.arange(network.arcs) < edges), minlength=edges
            )
            against = np.bincount(network.arc_edge, weights=used, minlength=edges) - along
            split[demand] = np.r_[along, against]
    real = reduction.pair >= 0
    pair = reduction.pair[real]
    total = network.instance.rate[pair] * reduction.unit
    split_of = sp.csr_array(split[pair] * (original.rate[real] / total * reduction.unit)[:, None])
    rows = np.flatnonzero(real)
    incidence = sp.csr_array(
        (np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(len(original.rate), len(rows))
    )
    routed = sp.csr_array(incidence @ split_of)
    turned = np.zeros(len(original.rate), dtype=bool)
    turned[rows] = original.source[rows] != network.source[pair]
    swap = sp.csr_array(sp.hstack([routed[:, edges:], routed[:, :edges]]))
    keep = sp.diags_array((~turned).astype(float))
    return sp.csr_array(keep @ routed + sp.diags_array(turned.astype(float)) @ swap)


def _strip(network: Network, remaining: Floats, root: int, target: int, rate: float) -> Floats:
    """Take paths of `rate` from a root to a target out of `remaining` (A,); return their flow (A,)."""
    used = np.zeros(network.arcs)
    smallest = NEGLIGIBLE * max(1.0, rate)
    while rate > smallest:
        path = _path(network, remaining > smallest, root, target)
        if path is None:
            break
        amount = min(rate, float(remaining[path].min()))
        remaining[path] -= amount
        used[path] += amount
        rate -= amount
    return used


def _path(network: Network, usable: np.ndarray, root: int, target: int) -> np.ndarray | None:
    """Return the arcs of a path with fewest arcs among usable ones; None where there is none."""
    arcs = np.flatnonzero(usable)
    leaving: dict[int, list[int]] = {}
    for arc in arcs.tolist():
        leaving.setdefault(int(network.arc_tail[arc]), []).append(arc)
    reached_by = {root: -1}
    waiting = deque([root])
    while waiting and target not in reached_by:
        for arc in leaving.get(waiting.popleft(), []):
            head = int(network.arc_head[arc])
            if head not in reached_by:
                reached_by[head] = arc
                waiting.append(head)
    if target not in reached_by:
        return None
    path = []
    node = target
    while node != root:
        path.append(reached_by[node])
        node = int(network.arc_tail[path[-1]])
    return np.array(path[::-1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction:
    """A smaller instance with the same optimal cost.

    kept  (M',) modules of the original instance that remain
    pair  (D,) demand of the reduced instance that carries each original one, -1 for none
    unit  capacity and traffic of the reduced instance are in this unit
    """

    original: Instance
    instance: Instance
    kept: Ints
    pair: Ints
    unit: float

    def expand(self, counts: Floats) -> Floats:
        """Return the modules of the original instance, (M',) to (M,)."""
        expanded = np.zeros(self.original.modules)
        expanded[self.kept] = counts
        return expanded


def reduce_instance(instance: Instance, *, merge: bool) -> Reduction:
    """Drop modules that another one replaces at no higher cost, and merge demands of equal ends.

    merge  whether demands of equal ends become one, but for those with tunnels
    """
    explicit = instance.explicit
    setup, module_cost = instance.setup_cost, instance.module_cost
    upper = instance.module_limit
    if explicit:  # one module a link: the setup cost belongs to it
        module_cost, setup = module_cost + setup[instance.module_edge], np.zeros(instance.edges)
        upper = np.minimum(upper, 1.0)
    useful_kinds = _undominated(instance, module_cost, upper, explicit)
    pair, source, target, rate, required = _merge_demands(instance, merge)
    sizes = instance.module_size[useful_kinds]
    mean = float(rate[rate > 0].mean()) if (rate > 0).any() else 1.0
    unit = min(float(np.median(sizes)), MOST_UNIT * mean) if len(sizes) else mean
    unit = min(unit, largest_unit(sizes, upper[useful_kinds], float(instance.rate.sum())))
    useful = np.ceil(instance.rate.sum() / instance.module_size[useful_kinds] - 1e-9)
    return Reduction(
        original=instance,
        instance=replace(
            instance,
            installed=instance.installed / unit,
            setup_cost=setup,
            routing_cost=instance.routing_cost * unit,
            module_edge=instance.module_edge[useful_kinds],
            module_size=sizes / unit,
            module_cost=module_cost[useful_kinds],
            module_limit=np.floor(np.minimum(upper[useful_kinds], useful) + 1e-9),
            source=source,
            target=target,
            rate=rate / unit,
            required=required,
            tunnels=_move_tunnels(instance, pair),
        ),
        kept=useful_kinds,
        pair=pair,
        unit=unit,
    )


def _undominated(instance: Instance, cost: Floats, upper: Floats, explicit: bool) -> Ints:
    alive = upper >= 1.0
    size, edge = instance.module_size, instance.module_edge
    useful = np.ceil(instance.rate.sum() / size - 1e-9)
    for m in np.flatnonzero(alive):
        others = np.flatnonzero((edge == edge[m]) & alive)
        others = others[others != m]
        if explicit:
            copies = np.ones(len(others))
            can = size[others] >= size[m]
        else:
            copies = np.maximum(np.ceil(size[m] / size[others] - 1e-9), 1.0)
            can = upper[others] >= useful[others]
        price = copies * cost[others]
        better = price < cost[m]
        same = (price == cost[m]) & ((copies * size[others] > size[m]) | (size[others] <= size[m]))
        alive[m] = not (can & (better | same)).any()
    return np.flatnonzero(alive)


def _merge_demands(instance: Instance, merge: bool) -> tuple[Ints, Ints, Ints, Floats, Floats | None]:
    source, target = instance.source, instance.target
    if instance.direction == "undirected":
        source, target = np.minimum(source, target), np.maximum(source, target)
    bound = np.full(len(source), -1)
    if instance.tunnels is not None:
        bound[instance.tunnels.demand] = instance.tunnels.demand
    key = np.column_stack([source, target, bound])
    if not merge:
        key = np.column_stack([key, np.arange(len(source))])
    real = (instance.rate > 0) & (source != target)
    pair: Ints = np.full(len(source), -1)
    if real.any():
        _, first, pair[real] = np.unique(key[real], axis=0, return_index=True, return_inverse=True)
    else:
        first = np.zeros(0, dtype=np.int64)
    rate = np.zeros(len(first))
    np.add.at(rate, pair[real], instance.rate[real])
    first = np.flatnonzero(real)[first]
    if instance.required is None:
        return pair, source[first], target[first], rate, None
    required = np.zeros((len(instance.failures), len(first)))
    rows = np.flatnonzero(real)
    np.add.at(required.T, pair[rows], (instance.required[:, rows] * instance.rate[rows]).T)
    return pair, source[first], target[first], rate, required / rate


def _move_tunnels(instance: Instance, pair: Ints) -> Tunnels | None:
    """Return the tunnels of the reduced demands; None where no demand that is left has one."""
    if instance.tunnels is None:
        return None
    demand = pair[instance.tunnels.demand]
    rows = np.flatnonzero(demand >= 0)
    return Tunnels(demand=demand[rows], arcs=instance.tunnels.arcs[rows]) if len(rows) else None
