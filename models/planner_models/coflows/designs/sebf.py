"""Smallest effective bottleneck first on the packet switch, with rates in proportion (Varys)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.coflows.designs.decision import decide_on_packets
from planner_models.coflows.designs.sunflow import busiest_port_ms
from planner_models.coflows.plan.completion import order_by_priority
from planner_models.coflows.plan.flow_groups import FlowGroups, group_flows
from planner_models.coflows.plan.packet_switch import PacketSwitch
from planner_models.coflows.plan.plan import Service, make_settings, no_priorities
from planner_models.coflows.problem.problem import CoflowsInTime

Interval = Annotated[
    float,
    Field(ge=0, allow_inf_nan=False, description="least time between changes of rates because flows end, ms"),
]


def schedule(
    problem: CoflowsInTime, *, interval_ms: Interval = 10.0, options: Options = Options()
) -> Decision[Service]:
    """Send the coflow first with the least remaining data on its busiest link, on the packet switch.

    What remains counts over the coflow's weight, as in Smith's rule for one machine. Priorities are set when
    a coflow arrives or is complete. A coflow's flows have rates in proportion to what is left of them, so
    that they end together, as fast as the links allow that coflows before it leave; what is left of links
    then goes to flows in the same order.

    source  Chowdhury, Zhong, Stoica 2014 (Varys): SEBF with MADD
    """
    plan = Service(
        priorities=prioritize(problem, group_flows(problem), interval_ms),
        settings=make_settings("proportional", interval_ms),
    )
    return decide_on_packets(problem, plan, options)


def prioritize(problem: CoflowsInTime, groups: FlowGroups, interval_ms: float) -> pd.DataFrame:
    """Return the table `priorities` of the flows that the packet switch carries, or parts of flows."""
    switch = PacketSwitch.of(problem, groups, "proportional", interval_ms)
    # a link is as slow as the slower end of the flow, for the order alone
    link = np.minimum(problem.packet_rate[groups.source], problem.packet_rate[groups.target])
    need = np.full(len(link), np.inf)
    rows: list[tuple[float, np.ndarray, np.ndarray]] = []
    priority = np.full(len(problem.coflows), np.inf)
    arrivals = np.unique(problem.arrival_ms[problem.can_complete])
    now = float(arrivals[0]) if len(arrivals) else np.inf
    while np.isfinite(now):
        arrived = (problem.arrival_ms <= now) & problem.can_complete
        active = np.flatnonzero(arrived & (switch.state.unsent > 0))
        later = arrivals[arrivals > now]
        if not len(active):
            now = float(later[0]) if len(later) else np.inf
            continue
        np.divide(switch.state.left, link, out=need, where=link > 0)
        length = busiest_port_ms(active, groups.first, groups.source, groups.target, need, len(problem.racks))
        length = np.where(np.isfinite(length), length / problem.relative_weight[active], 1e300)
        priority[active] = length
        rows.append((now, active, length))
        order = order_by_priority(priority, problem.arrival_ms, switch.state.unsent, now)
        now = switch.run(now, float(later[0]) if len(later) else np.inf, order)
    return tabulate_priorities(problem, rows)


def tabulate_priorities(
    problem: CoflowsInTime, rows: list[tuple[float, np.ndarray, np.ndarray]]
) -> pd.DataFrame:
    """Return the table `priorities` of times, coflows and their priorities."""
    if not rows:
        return no_priorities()
    coflow = np.concatenate([coflows for _, coflows, _ in rows])
    return pd.DataFrame(
        {
            "at_ms": np.repeat([time_ms for time_ms, _, _ in rows], [len(coflows) for _, coflows, _ in rows]),
            "coflow": problem.coflow_names[coflow],
            "priority": np.concatenate([values for _, _, values in rows]),
        }
    )
