"""Plans of traffic on paths."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.flows.augmented_lagrangian import PathFlow
from planner_models.traffic.designs.column_generation.reduced_problem import MAX_PAIR_ROWS
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic


def make_plan(problem: Traffic, order: Ints, flow: PathFlow) -> Routing:
    """Return the routing of traffic on paths: per demand up to `MAX_PAIR_ROWS` rows, else per target.

    order  demand of the problem for each demand of the flow
    """
    demand = order[flow.demand]
    if int((flow.end - flow.start).sum()) <= MAX_PAIR_ROWS:
        hops = flow.end - flow.start
        which = np.repeat(np.arange(len(hops)), hops)
        entry = np.arange(len(which)) - np.repeat(np.cumsum(hops) - hops, hops) + flow.start[which]
        shape = (len(problem.demands), len(problem.links))
        by_demand = sp.coo_array((flow.flow[which], (demand[which], flow.link[entry])), shape=shape)
        return routing.routing_by_demand(problem, by_demand)
    commodity, row = problem.targets, problem.target_row[demand]
    if problem.has_classes:
        commodity, row = np.unique(problem.commodity[demand], return_inverse=True)
    by_target = np.zeros((len(commodity), len(problem.links)))
    _add_flow(row, flow.flow, flow.start, flow.end, flow.link, by_target)
    return routing.routing_by_target(problem, sp.csr_array(by_target), commodity)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _add_flow(row, flow, start, end, link, total: Floats):  # type: ignore[no-untyped-def]
    for p in range(len(flow)):
        for i in range(start[p], end[p]):
            total[row[p], link[i]] += flow[p]
