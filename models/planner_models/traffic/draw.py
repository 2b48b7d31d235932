"""What shows a routing best: where links are full, and how many."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.drawing import Distribution, Drawing, NetworkMap
from planner_models.traffic.check import carried
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing


def draw(problem: Traffic, plan: Routing) -> Sequence[Drawing]:
    """A map of the network by utilization, and the utilization of all links."""
    percent = 100 * carried(problem, plan).load_mbps / problem.capacity_mbps
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
