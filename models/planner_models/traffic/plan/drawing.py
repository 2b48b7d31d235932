"""Drawings of a routing: a picture of the network and a distribution of link utilization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.contract.drawing import Distribution, Drawing
from planner.io.in_memory import to_graph
from planner_models.traffic.plan.delivery import delivered_rates, dropped_rates
from planner_models.traffic.plan.flow_check import lost_rates
from planner_models.traffic.plan.plan import SHED_TOLERANCE, Routing
from planner_models.traffic.plan.verified_flow import TOLERANCE, verify_flow
from planner_models.traffic.problem.drawing import draw_network
from planner_models.traffic.problem.problem import Traffic

if TYPE_CHECKING:
    import networkx as nx


def add_load(problem: Traffic, plan: Routing) -> nx.MultiDiGraph:
    """Return the network with `load_mbps` and `utilization` of each link under a plan."""
    load = verify_flow(problem, plan).load_mbps
    more = {"load_mbps": load, "utilization": load / problem.capacity_mbps}
    return to_graph(problem.nodes, problem.links, more)


def draw(problem: Traffic, plan: Routing) -> Sequence[Drawing]:
    """Draw the network by utilization and lost traffic, and the distribution of all links' utilization.

    Links lose what they drop; nodes lose what their demands do not send: it is shed for want of capacity,
    slowed down where senders slow down on overloaded links, without a path, or on failed links.
    """
    flow = verify_flow(problem, plan)
    full = problem.capacity_mbps
    # a link that is full but for rounding is not overloaded
    load = np.where(
        flow.load_mbps <= full * (1 + TOLERANCE), np.minimum(flow.load_mbps, full), flow.load_mbps
    )
    sent = delivered_rates(problem, flow) if problem.overload == "max-min" else flow.served_mbps
    unsent = problem.rate_mbps - sent
    failed = np.where(problem.unreachable, unsent, lost_rates(problem, plan))
    picture = draw_network(
        problem,
        "Links by utilization",
        load_mbps=load,
        dropped_mbps=dropped_rates(problem, flow),
        unsent_mbps=np.where(unsent > SHED_TOLERANCE * problem.rate_mbps, unsent, 0.0),
        failed_mbps=failed,
    )
    percent = 100 * load / full
    return (
        picture,
        Distribution(
            title="Utilization of links",
            values={"links": pd.Series(percent)},
            what="utilization",
            unit="%",
            limit=100.0,
        ),
    )
