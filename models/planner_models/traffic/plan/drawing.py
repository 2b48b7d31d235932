"""Drawings of a routing: a map and a distribution of link utilization."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner_models.traffic.plan.check import verify_flow
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic


def draw(problem: Traffic, plan: Routing) -> Sequence[Drawing]:
    """Draw a map of the network by utilization, and the distribution of all links' utilization."""
    percent = 100 * verify_flow(problem, plan).load_mbps / problem.capacity_mbps
    links = problem.links[["tail", "head"]].assign(value=percent)
    nodes = problem.nodes.dropna(axis="columns", how="all")
    return (
        NetworkMap(
            title="Links by utilization", nodes=nodes, links=links, value="utilization", unit="%", limit=100.0
        ),
        Distribution(
            title="Utilization of links",
            values={"links": pd.Series(percent)},
            what="utilization",
            unit="%",
            limit=100.0,
        ),
    )
