"""Decisions for the largest total flow, by the search of `augmented_lagrangian`."""

from __future__ import annotations

import time
from typing import Final

import numba
import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.contract.progress import report
from planner.contract.proof import Proof, Status, relative_gap
from planner.options import Options
from planner_models.traffic.designs.column_generation.decision import MIN_GAP, refuse_solver_options
from planner_models.traffic.designs.column_generation.reduced_problem import MAX_PAIR_ROWS
from planner_models.traffic.designs.path_flows.augmented_lagrangian import PathFlow, TotalFlow
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = 1e-6  # relative, where options give none
PLAN_S_PER_DEMAND: Final = 3e-6  # of the time limit, reserved for the tables of the plan


def route(problem: Traffic, *, options: Options = Options()) -> Decision[Routing]:
    """Search for the largest total flow over all routes.

    Stops at `options.gap`, by default 1e-6, or where the gap stalls; at a time limit it returns the incumbent
    with its bound. `problem` must have a demand with a rate and a path.

    returns  Decision with a Routing within the capacities; the bound holds for all routings
    raises   InputError for a backend or an algorithm: it is its own solver
    """
    refuse_solver_options("columns", options)
    until = None
    if options.time_limit_s is not None:
        reserved = min(options.time_limit_s / 2, PLAN_S_PER_DEMAND * len(problem.demands))
        until = time.perf_counter() + options.time_limit_s - reserved
    gap = DEFAULT_GAP if options.gap is None else options.gap
    search = TotalFlow(problem)
    for state in search.run(gap=gap, until=until):
        report("delivered_mbps", state.value, state.bound)
    flow = search.path_flow()
    plan = make_plan(problem, search.order, flow)
    value, bound = float(flow.flow.sum()), search.bound
    if bound <= value * (1 + MIN_GAP):  # rounding may put it on the wrong side of the value
        bound = value
    reached = relative_gap(value, bound)
    is_optimal = reached is not None and reached <= max(gap, MIN_GAP)
    proof = Proof(
        status=Status.OPTIMAL if is_optimal else Status.FEASIBLE,
        objective=value,
        bound=bound,
        metric="delivered_mbps",
        backend="augmented Lagrangian",
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


def make_plan(problem: Traffic, order: Ints, flow: PathFlow) -> Routing:
    """Return the routing of traffic on paths: per demand up to `MAX_PAIR_ROWS` rows, else per target.

    order  demand of the problem for each demand of the flow
    """
    demand = order[flow.demand]
    if int((flow.end - flow.start).sum()) <= MAX_PAIR_ROWS:
        hops = flow.end - flow.start
        which = np.repeat(np.arange(len(hops)), hops)
        place = np.arange(len(which)) - np.repeat(np.cumsum(hops) - hops, hops) + flow.start[which]
        shape = (len(problem.demands), len(problem.links))
        by_demand = sp.coo_array((flow.flow[which], (demand[which], flow.link[place])), shape=shape)
        return routing.routing_by_demand(problem, by_demand)
    commodity, row = problem.targets, problem.target_row[demand]
    if problem.has_classes:
        commodity, row = np.unique(problem.commodity[demand], return_inverse=True)
    by_target = np.zeros((len(commodity), len(problem.links)))
    _add_flow(row, flow.flow, flow.start, flow.end, flow.link, by_target)
    return routing.routing_by_target(problem, sp.csr_array(by_target), commodity)


@numba.njit(cache=True)
def _add_flow(row, flow, start, end, link, total: Floats):  # type: ignore[no-untyped-def]
    for p in range(len(flow)):
        for i in range(start[p], end[p]):
            total[row[p], link[i]] += flow[p]
