"""Discretized coflow-aware least-attained service on the packet switch (Aalo)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.coflows.designs.decision import decide_on_packets
from planner_models.coflows.designs.sebf import Interval, tabulate_priorities
from planner_models.coflows.plan.completion import order_by_priority
from planner_models.coflows.plan.flow_groups import group_flows
from planner_models.coflows.plan.packet_switch import PacketSwitch
from planner_models.coflows.plan.plan import Service, make_settings
from planner_models.coflows.problem.problem import CoflowsInTime

Queues = Annotated[int, Field(ge=1, le=64, description="number of queues")]
FirstQueue = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False, description="data after which a coflow leaves the first queue, MB"),
]
Growth = Annotated[
    float, Field(gt=1, allow_inf_nan=False, description="ratio of the next queue's data to that of the last")
]
CROSSED = ROUNDING


def schedule(
    problem: CoflowsInTime,
    *,
    queues: Queues = 10,
    first_mb: FirstQueue = 10.0,
    growth: Growth = 10.0,
    interval_ms: Interval = 10.0,
    options: Options = Options(),
) -> Decision[Service]:
    """Send the coflow first that has sent the least, by queues, on the packet switch; no size is known.

    A coflow moves to the next queue when it has sent that queue's data. Lower queues are sent first, and
    within one the coflows that arrived first; a coflow's flows have equal shares. What is left of links
    then goes to flows in the same order. Queues have strict priority here.

    source  Chowdhury, Stoica 2015 (Aalo): D-CLAS
    """
    groups = group_flows(problem)
    switch = PacketSwitch.of(problem, groups, "fair", interval_ms)
    limits = np.append(8e6 * first_mb * growth ** np.arange(queues - 1), np.inf)
    queue = np.zeros(len(problem.coflows), dtype=np.int64)
    priority = np.full(len(problem.coflows), np.inf)
    rows: list[tuple[float, np.ndarray, np.ndarray]] = []
    arrivals = np.unique(problem.arrival_ms[problem.can_complete])
    now = float(arrivals[0]) if len(arrivals) else np.inf
    while np.isfinite(now):
        arrived = (problem.arrival_ms <= now) & problem.can_complete
        queue = np.searchsorted(limits * (1 - CROSSED), switch.state.sent, side="right")
        active = np.flatnonzero(arrived & (switch.state.unsent > 0))
        later = arrivals[arrivals > now]
        if not len(active):
            now = float(later[0]) if len(later) else np.inf
            continue
        changed = active[priority[active] != queue[active]]
        # the switch shares its links again at every stop, which the plan says by a row at least
        changed = changed if len(changed) else active[:1]
        priority[changed] = queue[changed]
        rows.append((now, changed, priority[changed]))
        order = order_by_priority(priority, problem.arrival_ms, switch.state.unsent, now)
        until = float(later[0]) if len(later) else np.inf
        now = switch.run(now, until, order, limits[np.minimum(queue, queues - 1)])
    return decide_on_packets(
        problem,
        Service(priorities=tabulate_priorities(problem, rows), settings=make_settings("fair", interval_ms)),
        options,
    )
