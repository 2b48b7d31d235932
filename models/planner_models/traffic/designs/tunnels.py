"""Fixed splitting: routers send each demand over its tunnels by their weights, without a controller."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from planner.contract.design import Decision
from planner_models.traffic.designs import path_flow_program
from planner_models.traffic.designs.restricted_routes.candidates import find_tunnels, split_by_weight
from planner_models.traffic.designs.restricted_routes.limits import RouteLimits
from planner_models.traffic.designs.routable import shed_demands, shed_unreachable
from planner_models.traffic.plan import tcp_rates as tcp
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.tcp_rates import Rates
from planner_models.traffic.problem.problem import Traffic


@shed_unreachable
def route(problem: Traffic, *, rates: Rates = "given") -> Decision[Routing]:
    """Split each demand over its tunnels by their weights, as routers do that no controller tells the load.

    A tunnel is left out while a link of it is down, and where it breaks a latency limit or a rule of its
    demand; the others share its part. A demand without a tunnel is shed.

    source  RFC 3209 (RSVP-TE), RFC 9256 (segment routing policies, weighted segment lists)
    """
    paths = find_tunnels(problem, RouteLimits.of(problem))
    left_out = paths.without_path(problem)
    served = problem if not left_out.any() else problem.with_rates(np.where(left_out, 0.0, problem.rate_mbps))
    rate = split_by_weight(served, paths)
    share = sp.csr_array(
        (rate / served.rate_mbps[paths.demand], (paths.demand, np.arange(len(rate)))),
        shape=(len(problem.demands), len(rate)),
    )
    decision = tcp.route_shares(served, share @ paths.uses, rates)
    if rates == "given" and decision.plan is not None:
        routes = path_flow_program.route_table(served, paths, rate)
        decision = replace(decision, plan=replace(decision.plan, routes=routes))
    return shed_demands(problem, left_out, decision) if left_out.any() else decision
