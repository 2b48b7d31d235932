"""Fixed splitting: routers send each demand over its tunnels by their weights, without a controller."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools
from planner.contract.design import Decision
from planner_models.flows import path_flow_program
from planner_models.flows.route_limits import RouteLimits
from planner_models.traffic.designs import ecmp
from planner_models.traffic.designs.routable import shed_demands, shed_unreachable_within_limits
from planner_models.traffic.designs.route_choice import find_tunnels, split_by_weight
from planner_models.traffic.plan.flow_decision import Rates, route_shares
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.segments import segment_shares
from planner_models.traffic.problem.problem import Traffic

WithoutTunnel = Annotated[
    Literal["igp", "shed"],
    Field(
        description="demands without a tunnel that is up and keeps their limits: igp (shortest paths with "
        "ECMP, as routers do) or shed"
    ),
]


@shed_unreachable_within_limits
def route(
    problem: Traffic, *, without_tunnel: WithoutTunnel = "igp", rates: Rates = "given"
) -> Decision[Routing]:
    """Split each demand over its tunnels by their weights, as routers do that no controller tells the load.

    A tunnel is left out while a link of it is down, and where it breaks a latency limit or a rule of its
    demand; the others share its part. Without a table of tunnels all traffic follows the shortest paths.

    source  RFC 3209 (RSVP-TE), RFC 9256 (segment routing policies, weighted segment lists)
    """
    if problem.tunnels is None and without_tunnel == "igp":
        return ecmp.route(problem, rates=rates)
    limits = RouteLimits.of(problem)
    if problem.tunnels is None:
        problem = replace(problem, tunnels=pd.DataFrame({"path": []}, dtype=str))
    paths = find_tunnels(problem, limits)
    others = paths.without_path(problem)
    left_out = others if without_tunnel == "shed" else np.zeros(len(others), dtype=bool)
    served = problem if not left_out.any() else problem.with_rates(np.where(left_out, 0.0, problem.rate_mbps))
    rate = split_by_weight(served, paths)
    share = sp.csr_array(
        (rate / served.rate_mbps[paths.demand], (paths.demand, np.arange(len(rate)))),
        shape=(len(problem.demands), len(rate)),
    )
    by_igp, igp_routes = _follow_igp(problem, others & ~left_out)
    decision = route_shares(served, sp.csr_array(share @ paths.uses + by_igp), rates)
    if rates == "given" and decision.plan is not None:
        table = path_flow_program.route_table(served, paths, rate)
        routes = table if not len(igp_routes) else pd.concat([table, igp_routes], ignore_index=True)
        plan = replace(
            decision.plan, routes=routes.fillna({"kind": "explicit", "tunnel": "", "parallel": ""})
        )
        decision = replace(decision, plan=plan)
    return shed_demands(problem, left_out, decision) if left_out.any() else decision


def _follow_igp(problem: Traffic, is_selected: Bools) -> tuple[sp.csr_array, pd.DataFrame]:
    """Return the share of the chosen demands on each link, (K, E), and their routes: shortest paths, ECMP."""
    demand = np.flatnonzero(is_selected)
    ends = list(zip(problem.source[demand].tolist(), problem.target[demand].tolist(), strict=True))
    shares, _ = segment_shares(problem, ends)
    spread = sp.csr_array(
        (np.ones(len(demand)), (demand, np.arange(len(demand)))), shape=(len(problem.demands), len(demand))
    )
    names = problem.demands[problem.demand_key].astype(str).iloc[demand].reset_index(drop=True)
    pairs = names[["source", "target"]].to_numpy().tolist()
    listed = [json.dumps(pair, ensure_ascii=False) for pair in pairs]
    routes = names.assign(path=listed, rate_mbps=problem.rate_mbps[demand], tunnel="", kind="segments")
    return sp.csr_array(spread @ shares), routes
