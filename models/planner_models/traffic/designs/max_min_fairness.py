"""Max-min fairness as a design: measures, given paths, and the plan with its levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.contract.proof import relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged, optimal
from planner.search.tolerances import OPTIMALITY
from planner_models.flows.max_min_flow import Level, MaxMinFlow
from planner_models.flows.problem import MIN_GAP
from planner_models.graphs.indexing import sum_by_index
from planner_models.graphs.path_search import PathChoice
from planner_models.traffic.designs.route_choice import RouteChoice
from planner_models.traffic.plan.flow_decision import refuse_solver_options, routing_of_paths
from planner_models.traffic.plan.plan import Routing, routing_by_target
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = OPTIMALITY  # relative, of every level, where options give none
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
    gap = DEFAULT_GAP if options.gap is None else options.gap
    gaps = [relative_gap(level.value, level.bound) or 0.0 for level in levels]
    is_optimal = is_complete and max(gaps, default=0.0) <= max(gap, MIN_GAP)
    objective, bound = None, None
    if of == "share":
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
        metric="min_rate_share" if of == "share" else None,
        bound_scope=None if routes is None else routes.scope,
        backend="primal simplex over paths",
    )
    table = pd.DataFrame(
        {
            "level": np.arange(len(levels)) + 1,
            "value": [level.value for level in levels],
            "bound": [level.bound for level in levels],
            "demands": [level.demands for level in levels],
        }
    )
    return Decision(plan=replace(plan, levels=table), proof=proof, guarantees=frozenset({"capacity"}))


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
