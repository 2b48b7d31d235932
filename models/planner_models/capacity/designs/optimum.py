"""The least-cost purchases with which all demands fit, or the most demand that fits within a budget.

Least-cost purchases of one year in which all demands fit, by the solver of network design.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.contract import progress
from planner.contract.design import Decision
from planner.options import Options, Service
from planner.search.deadline import Deadline
from planner.search.judged import infeasible
from planner.search.tolerances import STATED_GAP
from planner_models.capacity.designs.cutting_planes import Master
from planner_models.capacity.designs.decision import Proven, decide
from planner_models.capacity.designs.greedy import PurchaseSearch, serve_small_demands
from planner_models.capacity.designs.network_design.instance import Instance, Solution, Tunnels
from planner_models.capacity.designs.rounding import round_up
from planner_models.capacity.plan.check import least_shed
from planner_models.capacity.plan.metrics import measure
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import FITS
from planner_models.capacity.routing import make_plan

GAP = STATED_GAP
"""Relative gap of the cost at which a plan counts as optimal, unless the user says otherwise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Answer:
    """Purchases with the bounds of both ranks."""

    counts: Floats
    least_unserved: float
    least_cost: float | None


def plan(problem: CapacityPlanning, *, options: Options = Options()) -> Decision[Purchases]:
    """Buy at the least cost so that all demands fit in every state; within a budget, so that most does.

    Cutting planes over whole modules: each failure under which not all fits cuts off the purchases. One year
    without a budget is solved by network design, with rounded rows and a large neighbourhood search. At a
    time limit the plan is the best one found, and the bound that of the cuts.
    """
    gap = GAP if options.gap is None else options.gap
    must = float(least_shed(problem).max(initial=0.0))
    offered = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    if options.service == "all" and must > FITS * offered:
        return _infeasible(problem, must, offered)
    is_one_year = problem.budget is None and problem.years is None
    # network design takes no failure that requires more than the state without
    is_one_year &= bool((problem.utilization_limit >= problem.utilization_limit[0]).all())
    if is_one_year and must <= FITS * offered and options.backend == "highs":
        decided = _network_design(problem, options, gap, must)
        if decided is not None:
            return decided
    master = Master(problem, options)
    if problem.budget is None:
        answer = _least_cost(master)
    else:
        answer = _within_budget(master, must, offered)
        if options.service == "all" and answer.least_unserved > FITS * offered:
            reason = (
                f"the budget of {problem.budget:,.6g} leaves at least {answer.least_unserved:,.6g} of "
                f"{offered:,.6g} Mbit/s unserved in the worst case"
            )
            return Decision(plan=None, proof=infeasible(reason))
    return decide(
        problem,
        serve_small_demands(problem, answer.counts),
        options=options,
        proven=Proven(
            least_unserved=answer.least_unserved,
            least_cost=answer.least_cost,
            gap=gap,
            backend="cutting planes",
            is_cut=master.deadline.is_over,
        ),
    )


def _network_design(
    problem: CapacityPlanning, options: Options, gap: float, must: float
) -> Decision[Purchases] | None:
    """Return the cheapest purchases of one year in which all fits; None where no plan was found."""
    deadline = Deadline.of(options)
    solution = buy_at_least_cost(problem, replace(options, gap=gap))
    if solution.counts is None:
        return None
    lower_bound = None if solution.bound is None else solution.bound + problem.installed_cost
    return decide(
        problem,
        serve_small_demands(problem, solution.counts[None, :]),
        options=options,
        proven=Proven(
            least_unserved=must,
            least_cost=lower_bound,
            gap=gap,
            backend="network design",
            is_cut=deadline.is_over,
        ),
    )


def _infeasible(problem: CapacityPlanning, must: float, offered: float) -> Decision[Purchases]:
    """Return the proof that the modules that can be bought are too few."""
    year, state = np.unravel_index(int(np.argmax(least_shed(problem))), least_shed(problem).shape)
    where = "without failures" if state == 0 else f"under failure {problem.states.names[state - 1]}"
    when = f" in {problem.year_numbers[year]}" if problem.years is not None else ""
    reason = (
        f"{where}{when}, {must:,.6g} of {offered:,.6g} Mbit/s do not fit with all modules that may be bought"
    )
    return Decision(plan=None, proof=infeasible(reason))


def _least_cost(master: Master) -> _Answer:
    """Return the least-cost purchases that leave no more unserved than must be."""
    problem = master.problem
    must = least_shed(problem)
    relaxed = master.iterate(allowed=must, integer=False)
    start = PurchaseSearch.start(problem, master.program)
    if relaxed is not None:
        start.counts = round_up(problem, relaxed.counts)
    start.climb()
    start.drop()
    best, bound = start.counts, None if relaxed is None else relaxed.bound
    if not master.deadline.is_over:
        solution = master.iterate(allowed=must)
        if solution is not None:
            bound = solution.bound if bound is None else max(bound, solution.bound or bound)
            if solution.is_final and _rank(problem, solution.counts) < _rank(problem, best):
                best = solution.counts
    return _Answer(counts=best, least_unserved=float(must.max(initial=0.0)), least_cost=bound)


def _within_budget(master: Master, must: float, offered: float) -> _Answer:
    """Return the purchases within the budget that leave the least unserved, then at the least cost."""
    problem = master.problem
    start = PurchaseSearch.start(problem, master.program)
    start.climb()
    start.drop()
    best, least_unserved = start.counts, must
    solution = master.iterate(objective="unserved")
    if solution is not None:
        least_unserved = max(must, solution.bound or 0.0)
        if solution.is_final and _rank(problem, solution.counts) < _rank(problem, best):
            best = solution.counts
    reached = _rank(problem, best)[0]
    if reached > least_unserved + FITS * offered or master.deadline.is_over:
        return _Answer(counts=best, least_unserved=least_unserved, least_cost=None)
    final = master.iterate(allowed=reached + FITS * offered / 2)  # to which ranks are rounded
    if final is None:
        return _Answer(counts=best, least_unserved=least_unserved, least_cost=None)
    if final.is_final and _rank(problem, final.counts) < _rank(problem, best):
        best = final.counts
    return _Answer(counts=best, least_unserved=least_unserved, least_cost=final.bound)


def _rank(problem: CapacityPlanning, counts: Floats) -> tuple[float, float]:
    """Return the worst unserved rate, without rounding errors, and the total cost."""
    figures = measure(problem, make_plan(problem, counts), None)
    offered, unserved = figures["offered_mbps"] or 0.0, figures["unserved_mbps"] or 0.0
    step = max(FITS * offered, 1e-300)
    return round(unserved / step) * step, float(figures["total_cost"] or 0.0)


def model(problem: CapacityPlanning, *, service: Service = "best") -> LinearProgram:
    """Return the master program with the cuts of its linear relaxation."""
    master = Master(problem, Options(time_limit_s=20.0))
    if problem.budget is not None and service == "best":
        master.iterate(objective="unserved", integer=False)
        about = (
            "unserved traffic in the worst case, by the cuts of the relaxation: a lower bound on the model's"
        )
        return master.build(objective="unserved").describe(about)
    must = least_shed(problem)
    master.iterate(allowed=must, integer=False)
    about = "the cost of all capacity, by the cuts of the relaxation: a bound that no plan's cost is below"
    return master.build(objective="cost", allowed=must).describe(about, metric="cost_of_all")


def buy_at_least_cost(problem: CapacityPlanning, options: Options) -> Solution:
    """Return the cheapest purchases of a problem with one year; their cost is without installed capacity."""
    from planner_models.capacity.designs.network_design.design import solve  # loads HiGHS

    def report(cost: float | None, bound: float) -> None:
        there = problem.installed_cost
        progress.report("cost_of_all", None if cost is None else cost + there, bound + there)

    return solve(make_instance(problem), options, report=report, with_flows=False)


def make_instance(problem: CapacityPlanning) -> Instance:
    """Return the first year of a problem as arrays, with the share of demands that each failure requires.

    Demands that share tunnels are one demand.
    """
    modules, price = problem.options, float(problem.price_factor[0])
    pairs = _join_demands(problem)
    limit = problem.utilization_limit  # in failures links carry more: as if demands were smaller
    return Instance(
        nodes=len(problem.nodes),
        tail=problem.tail,
        head=problem.head,
        direction=problem.direction,
        installed=problem.installed_mbps * limit[0],
        setup_cost=problem.setup_cost * price,
        routing_cost=problem.routing_cost * price,
        module_edge=modules.link,
        module_size=modules.size * limit[0],
        module_cost=modules.cost * price,
        module_limit=np.floor(modules.limit),
        explicit=problem.one_module,
        source=pairs.source,
        target=pairs.target,
        rate=pairs.rate,
        failures=problem.states.link_down,
        required=pairs.required * (limit[0] / limit[1:])[:, None],
        tunnels=pairs.tunnels,
    )


class _Joined(NamedTuple):
    """Demands of an instance, of which those with the same tunnels are joined."""

    source: Ints
    target: Ints
    rate: Floats
    required: Floats
    tunnels: Tunnels | None


def _join_demands(problem: CapacityPlanning) -> _Joined:
    """Return the demands of the first year."""
    rate, share, paths = problem.rate_mbps[0], problem.required_share[1:], problem.tunnel_paths
    if paths is None:
        return _Joined(problem.source, problem.target, rate, share, None)
    demands = len(rate)
    key = np.where(paths.pair_of < 0, paths.pairs + np.arange(demands), paths.pair_of)
    pairs, first, row = np.unique(key, return_index=True, return_inverse=True)
    total: Floats = np.bincount(row, weights=rate).astype(float)
    needed = np.zeros((len(share), len(pairs)))
    np.add.at(needed.T, row, (share * rate).T)
    required = np.divide(needed, total, out=np.zeros_like(needed), where=total > 0)
    tunnels = Tunnels(demand=np.searchsorted(pairs, paths.pair), arcs=paths.arcs)
    return _Joined(problem.source[first], problem.target[first], total, required, tunnels)
