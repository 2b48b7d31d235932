"""Network utility maximization: joint rates and routes by linear programs, with a bound.

Max-min fairness has a search of its own over many demands (`planner_models.flows.max_min_flow`), whose plan
lists its levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends import Solution
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status, relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline, Stopwatch
from planner.search.judged import judged, optimal, undecided
from planner.search.tolerances import OPTIMALITY, STATED_GAP
from planner_models.flows import link_flow_program, path_flow_program, split_ratios
from planner_models.flows.max_min_flow import Level, MaxMinFlow
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.problem import MIN_GAP
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.path_search import PathChoice
from planner_models.traffic.designs import fitted_plan
from planner_models.traffic.designs.fitted_plan import fit_plan
from planner_models.traffic.designs.routable import shed_unreachable_by_demand
from planner_models.traffic.designs.route_choice import Choice, HopLimit, PathCount, RouteChoice
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import refuse_solver_options, routing_of_paths
from planner_models.traffic.plan.plan import Routing, routing_by_target
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic

Fairness = Literal["proportional", "max-min"]

DEFAULT_GAP: Final = STATED_GAP  # relative, where options give none
LEAST_SHARE: Final = 1e-300  # whose logarithm is finite
MAX_ROUNDS: Final = 300  # each round adds tangents, and routes where they are found as needed
TANGENT_ERROR: Final = 0.1  # of the gap: a demand whose tangents are nearer to its utility gets no more
PROGRAM_S_PER_FLOW: Final = 2.5e-6
"""CPU seconds per flow variable for making the linear program and passing it to its solver, as measured."""
INITIAL_TANGENTS: Final = (
    0.001,
    0.01,
    0.03,
    0.1,
    0.2,
    0.35,
    0.5,
    0.65,
    0.8,
    1.0,
)  # shares with tangents from the start
LEVEL_GAP: Final = OPTIMALITY  # relative, of every level, where options give none
PLAN_S_PER_DEMAND: Final = (
    6e-6  # of the time limit, reserved to fill main paths and for the tables of the plan
)
Measure = Annotated[
    Literal["share", "rate", "weighted"],
    Field(
        description="with max-min, what is shared fairly: the served share of demands (share), Mbit/s "
        "(rate), or Mbit/s over the weight of each demand (weighted)"
    ),
]


@shed_unreachable_by_demand
def route(
    problem: Traffic,
    *,
    fairness: Annotated[
        Fairness,
        Field(
            description="proportional: the largest product of the demands' served shares; "
            "max-min: the largest smallest share, then the next smallest, and so on"
        ),
    ] = "proportional",
    of: Measure = "share",
    paths: PathCount = "any",
    path_choice: Choice = "shortest",
    max_hops: HopLimit = None,
    options: Options = Options(),
) -> Decision[Routing]:
    """Solve for routes and rates of elastic demands of largest utility, alpha-fair with alpha 1 or infinite.

    The rate of a demand is a cap, and utilities are of the served share of it. Proportional fairness
    replaces utilities by tangents above them (outer approximation): each linear program bounds the
    utility of all routings, and tangents at its rates are added. Where making the program over all routes
    would take longer than the time limit, a heuristic shares capacities instead (`fitted_plan`; on large
    networks `fitted_plan`). Max-min fairness (`max_min_flow`) proves every level of rates; other
    measures than the share are for it alone. Routes are tunnels, a number of paths, or all routes, and keep
    latency limits and rules in each case.

    returns  Decision with rates that fit all capacities; its metric is `geometric_rate_share` or
             `min_rate_share`
    raises   InputError for a measure under proportional fairness; under max-min fairness, which is its own
             solver, for a backend or an algorithm, and for tunnels by segments
    source   Sen et al. 2013, equation (1); Mo and Walrand 2000 (alpha-fairness)
    """
    watch, deadline = Stopwatch(), Deadline.of(options)
    if not len(problem.targets):
        empty = sp.coo_array((len(problem.demands), len(problem.links)))
        return Decision(plan=routing.routing_by_demand(problem, empty), proof=optimal())
    if fairness == "max-min":
        return share_fairly(
            problem, of=of, paths=paths, path_choice=path_choice, max_hops=max_hops, options=options
        )
    if of != "share":
        raise InputError(f"of is '{of}', but fairness is 'proportional': only 'max-min' knows it")
    routes = RouteChoice.of(problem, paths, path_choice, max_hops)
    if routes is None:
        flows = len(problem.targets) * len(problem.links)
        if options.time_limit_s is not None and PROGRAM_S_PER_FLOW * flows > options.time_limit_s:
            return _share_by_heuristic(problem, flows, options.time_limit_s)
        return _solve_proportional(problem, options, watch, deadline)
    if routes.limits is not None:
        refuse_solver_options("utility over routes under limits", options)
    return routes.route_rest(
        lambda remainder: _solve_proportional(remainder, options, watch, deadline, routes), options, max_hops
    )


def _solve_proportional(
    problem: Traffic,
    options: Options,
    watch: Stopwatch,
    deadline: Deadline,
    routes: RouteChoice | None = None,
) -> Decision[Routing]:
    demands = np.flatnonzero(problem.rate_mbps > 0)
    if not len(demands):
        empty = sp.coo_array((len(problem.demands), len(problem.links)))
        return Decision(plan=routing.routing_by_demand(problem, empty), proof=optimal())
    rate, count = problem.rate_mbps[demands], len(demands)
    network: _Network | None = None
    demand = np.repeat(np.arange(count), len(INITIAL_TANGENTS))
    points = np.tile(np.array(INITIAL_TANGENTS), count)
    best: tuple[float, Floats, Callable[[Floats], tuple[Routing, Floats]]] | None = None
    bound = np.inf
    last: Solution | None = None
    for _ in range(MAX_ROUNDS):
        if deadline.is_over:
            break
        network = _make_network(problem, routes, network)
        program = _tangent_program(network, rate, demand, points)
        last = backends.solve(program, _program_options(options, deadline))
        limit, added = _bound_utility(problem, demands, routes, last)
        bound = min(bound, limit)
        if last.x is None:
            break
        shares = np.clip(last.x[network.flows : network.flows + count] / rate, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            utility = np.log(shares)
        value = float(np.exp(utility.mean()))
        if best is None or value > best[0]:
            best = (value, shares, partial(network.make_plan, last.x))
        if bound - best[0] <= _gap(options) * bound:
            break
        new = np.flatnonzero(last.x[-count:] - utility > TANGENT_ERROR * _gap(options))
        if not len(new) and not added:
            break
        # there is no tangent at 0: approach it from above
        demand = np.r_[demand, new]
        points = np.r_[points, np.maximum(shares[new], INITIAL_TANGENTS[0] * 0.1 * min(bound, 1.0))]
    finite = float(min(bound, 1.0)) if np.isfinite(bound) else None
    if best is None or best[0] <= 0:
        proof = _without_plan(last, finite, None if routes is None else routes.scope)
        return Decision(plan=None, proof=replace(proof, seconds=watch.seconds))
    _, shares, make_plan = best
    served = np.zeros(len(problem.demands))
    served[demands] = shares * rate
    plan, served = make_plan(served)
    proof = _prove(_mean_share(served[demands] / rate), finite, last, routes, options)
    return Decision(
        plan=plan, proof=replace(proof, seconds=watch.seconds), guarantees=frozenset({"capacity"})
    )


def _prove(
    value: float, bound: float | None, last: Solution | None, routes: RouteChoice | None, options: Options
) -> Proof:
    """Return the proof of a plan whose geometric mean of shares is a value."""
    return judged(
        "max",
        value,
        bound,
        is_optimal=bound is not None and bound - value <= _gap(options) * bound,
        metric="geometric_rate_share",
        bound_scope=None if routes is None else routes.scope,
        backend=None if last is None else last.backend,
    )


def _mean_share(share: Floats) -> float:
    """Return the geometric mean of the shares of demands that are served, none taken for less than tiny."""
    return float(np.exp(np.log(np.maximum(share, LEAST_SHARE)).mean()))


def _share_by_heuristic(problem: Traffic, flows: int, limit_s: float) -> Decision[Routing]:
    """Return a heuristic's plan within the capacities, where that serves every demand in part.

    Its bound is that no demand has more than its rate.

    flows  flow variables that the linear program would have
    """
    limit = f"the limit of {limit_s:g} s"
    reason = f"making the linear program, with {flows:,} flow variables, takes longer than {limit}"
    proof = undecided(reason, bound=1.0, metric="geometric_rate_share")
    plan, backend = fit_plan(problem, None), "equal-cost multipath, filled"
    if plan is None:
        plan, backend = fitted_plan.fit_ecmp(problem)[0], fitted_plan.BACKEND
    has_rate = problem.rate_mbps > 0
    share = np.minimum(verify_flow(problem, plan).served_mbps[has_rate] / problem.rate_mbps[has_rate], 1.0)
    if not (share > LEAST_SHARE).all():
        return Decision(plan=None, proof=proof)
    value = float(np.exp(np.log(share).mean()))
    is_optimal = value >= 1.0 - DEFAULT_GAP
    proof = replace(
        proof,
        status=Status.OPTIMAL if is_optimal else Status.FEASIBLE,
        objective=value,
        backend=backend,
        reasons=() if is_optimal else proof.reasons,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


def _without_plan(last: Solution | None, bound: float | None, scope: str | None) -> Proof:
    """Return the proof of a search that found no rates; `last` is its last linear program's solution."""
    status = last.status if last is not None and last.x is None else Status.UNDECIDED
    return Proof(
        status=Status.UNDECIDED if status is Status.OPTIMAL else status,
        bound=bound,
        metric="geometric_rate_share",
        bound_scope=scope,
        backend=None if last is None else last.backend,
    )


def _bound_utility(
    problem: Traffic, demands: Ints, routes: RouteChoice | None, solution: Solution
) -> tuple[float, int]:
    """Return a bound on the geometric mean of shares, and the number of newly found routes.

    Where routes are found as needed, that is the bound of the Lagrangian relaxation of the capacities.
    """
    count = len(demands)
    if routes is None or routes.limits is None:
        return np.inf if solution.bound is None else float(np.exp(solution.bound / count)), 0
    if solution.row_duals is None:
        return np.inf, 0
    price = np.maximum(solution.row_duals[count : count + len(problem.links)], 0.0)
    distance, added = routes.find_cheapest(demands, price)
    upper = float(price @ problem.capacity_mbps) + _largest_surplus(problem.rate_mbps[demands] * distance)
    return float(np.exp(upper / count)), added


def _largest_surplus(price: Floats) -> float:
    """Return the most that utility log(share) less the price of traffic can be, summed over demands.

    price  of a share of 1, (K,)
    """
    return float(np.where(price <= 1.0, -price, -np.log(np.maximum(price, 1.0)) - 1.0).sum())


class _Network(NamedTuple):
    """The linear program of the largest total flow: flows, then the rate served of each demand.

    make_plan  the plan of a solution with the rates (K,) that demands are served, and these rates, reduced
               where rounding of the solver exceeds capacities
    """

    program: LinearProgram
    flows: int
    make_plan: Callable[[Floats, Floats], tuple[Routing, Floats]]


def _make_network(problem: Traffic, routes: RouteChoice | None, before: _Network | None) -> _Network:
    """Return the program over all routes, or over those that are known now; that of before if it is it."""
    if routes is None:
        if before is not None:
            return before
        model = link_flow_program.build(problem, "total")
        return _Network(
            model.program,
            len(model.link),
            lambda x, served: _plan_over_links(problem, model.flow_mbps(x), served),
        )
    if before is not None and before.flows == len(routes.demand):
        return before
    paths, _ = routes.routes(np.zeros(len(routes.demand)))
    count = len(paths.demand)
    return _Network(
        path_flow_program.build(problem, "total", paths),
        count,
        lambda x, served: _plan_over_paths(problem, paths, x[:count], served),
    )


def _tangent_program(network: _Network, rate: Floats, demand: Ints, point: Floats) -> LinearProgram:
    """Maximize the sum of u, u at most every tangent of log(share) at the points, shares at most 1.

    u_k <= log(p) + (x_k / r_k - p) / p, for point p of demand k.
    """
    m = ProgramBuilder.extend(network.program, name="traffic proportional", has_cost=False)
    u = m.variables("utility", len(rate), lower=-np.inf, upper=0.0, cost=1.0)
    share = m["served"][demand] / (point * rate[demand])
    m.constrain("tangent", u[demand] - share, upper=np.log(point) - 1.0)
    return m.build()


def _plan_over_links(problem: Traffic, flow_mbps: sp.coo_array, served: Floats) -> tuple[Routing, Floats]:
    """Return the plan that serves these rates with the split ratios of the solver's flow, and the rates.

    Both are reduced where rounding of the solver exceeds capacities.
    """
    flow = flow_mbps.copy()
    flow.data[flow.data <= 1e-9 * problem.rate_mbps.max()] = 0.0
    ratios = split_ratios.complete_ratios(
        problem, split_ratios.compute_ratios(problem, split_ratios.remove_cycles(problem, flow))
    )
    share = _fitting_shares(problem, split_ratios.apply_ratios(problem, ratios, served))
    served = share * served
    return routing.routing_by_demand(problem, split_ratios.apply_ratios(problem, ratios, served)), served


def _plan_over_paths(
    problem: Traffic, paths: CandidatePaths, x: Floats, served: Floats
) -> tuple[Routing, Floats]:
    """Return the plan that serves these rates with the shares of paths of the solver's flow, and the rates.

    Both are reduced where rounding of the solver exceeds capacities.
    """
    flow = np.where(x > 1e-9 * problem.rate_mbps[paths.demand], x, 0.0)
    total = sum_by_index(paths.demand, flow, len(problem.demands))
    rate = flow * (served / np.where(total > 0, total, 1.0))[paths.demand]
    by_demand = sp.csr_array(
        (rate, (paths.demand, np.arange(len(rate)))), shape=(len(problem.demands), len(rate))
    )
    share = _fitting_shares(problem, by_demand @ paths.uses)
    flow = sp.csr_array(sp.diags_array(share) @ by_demand @ paths.uses)
    table = path_flow_program.route_table(problem, paths, share[paths.demand] * rate)
    return routing.routing_by_demand(problem, flow, table), share * served


def _fitting_shares(problem: Traffic, flow_mbps: sp.csr_array) -> Floats:
    """Return the share of each demand's flow (K, E) with which no link exceeds its capacity, (K,)."""
    load, capacity = np.asarray(flow_mbps.sum(axis=0)).ravel(), problem.capacity_mbps
    excess = np.ones(len(capacity))
    np.divide(load, capacity, out=excess, where=load > capacity)
    on_links = sp.csr_array((flow_mbps != 0) * excess[None, :])
    return np.asarray(1.0 / np.maximum(on_links.max(axis=1).toarray(), 1.0)).ravel()


def _gap(options: Options) -> float:
    return DEFAULT_GAP if options.gap is None else options.gap


def _program_options(options: Options, deadline: Deadline) -> Options:
    # each program exactly: the gap of the options is that of the whole search
    return deadline.options(replace(options, gap=None))


def share_fairly(
    problem: Traffic,
    *,
    of: Measure,
    paths: int | Literal["any", "tunnels"],
    path_choice: PathChoice,
    max_hops: int | None,
    options: Options,
) -> Decision[Routing]:
    """Search for the max-min fair rates of all demands, with a bound on every level.

    The plan has the table `levels`. At a time limit, demands that are not fixed yet have at least the
    present level, and fill the residual capacity of their main paths.

    returns  Decision with rates that fit all capacities; with the measure "share" its metric is
             `min_rate_share`, with value and bound of the lowest level. It is optimal where every level is
    raises   InputError for a backend or an algorithm: it is its own solver
    """
    refuse_solver_options("max-min", options)
    deadline = Deadline.of(options).reserve(PLAN_S_PER_DEMAND * len(problem.demands))
    routes = RouteChoice.of(problem, paths, path_choice, max_hops)
    if routes is None:
        return _search(problem, of, None, deadline, options)
    if routes.given is not None and routes.given.share is not None:
        raise InputError("paths is 'tunnels', of which some are segments: max-min knows explicit ones only")
    return routes.route_rest(
        lambda remainder: _search(remainder, of, routes, deadline, options), options, max_hops
    )


def _search(
    problem: Traffic,
    of: Measure,
    routes: RouteChoice | None,
    deadline: Deadline,
    options: Options,
) -> Decision[Routing]:
    if not (problem.rate_mbps > 0).any():
        empty = sp.csr_array((len(problem.targets), len(problem.links)))
        return Decision(plan=routing_by_target(problem, empty), proof=optimal())
    search = MaxMinFlow(problem, _weights(problem, of), routes, deadline)
    is_complete = search.run(deadline, report_as="min_rate_share" if of == "share" else None)
    flow = search.path_flow()
    hops = flow.end - flow.start
    entry = np.arange(hops.sum()) + np.repeat(flow.start - np.cumsum(hops) + hops, hops)
    load = sum_by_index(flow.link[entry], np.repeat(flow.flow, hops), len(problem.links))
    scale = 1.0 / max(1.0, float((load / problem.capacity_mbps).max()))  # rounding of many pivots
    flow.flow[:] *= scale
    plan = routing_of_paths(problem, search.order, flow)
    levels = _list_levels(search, scale)
    gap = LEVEL_GAP if options.gap is None else options.gap
    gaps = [relative_gap(level.value, level.bound) or 0.0 for level in levels]
    is_optimal = is_complete and max(gaps, default=0.0) <= max(gap, MIN_GAP)
    objective, bound, metric = None, None, None
    if of == "share":
        metric = "min_rate_share"
        served = sum_by_index(search.order[flow.demand], flow.flow, len(problem.demands))
        is_positive = problem.rate_mbps > 0
        objective = min(float((served[is_positive] / problem.rate_mbps[is_positive]).min()), 1.0)
        first = levels[0].bound if levels else min(search.bound, search.first_bound)
        bound = max(min(first, 1.0), objective)
    proof = judged(
        "max",
        objective,
        bound,
        is_optimal=is_optimal,
        metric=metric,
        bound_scope=None if routes is None else routes.scope,
        backend="primal simplex over paths",
    )
    table = _tabulate_levels(levels)
    return Decision(plan=replace(plan, levels=table), proof=proof, guarantees=frozenset({"capacity"}))


def _tabulate_levels(levels: Sequence[Level]) -> pd.DataFrame:
    """Return the table of the levels of the max-min allocation, the lowest first."""
    return pd.DataFrame(
        {
            "level": np.arange(len(levels)) + 1,
            "value": [level.value for level in levels],
            "bound": [level.bound for level in levels],
            "demands": [level.demands for level in levels],
        }
    )


def _weights(problem: Traffic, of: Measure) -> Floats:
    """Return the divisors of the rates of demands, (K,)."""
    if of == "share":
        return problem.rate_mbps
    return problem.demand_weight if of == "weighted" else np.ones(len(problem.demands))


def _list_levels(search: MaxMinFlow, scale: float) -> list[Level]:
    """Return the levels with a demand, ascending, the same ones together, as the scaled plan has them."""
    merged: list[Level] = []
    for level in search.levels:
        value = level.value * scale
        if merged and value <= merged[-1].value * (1 + MIN_GAP):
            last = merged.pop()
            bound, count = max(last.bound, level.bound), last.demands + level.demands
            merged.append(Level(value=last.value, bound=bound, demands=count))
        else:
            merged.append(Level(value=value, bound=level.bound, demands=level.demands))
    return merged
