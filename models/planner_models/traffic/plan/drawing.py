"""Drawings of a routing: a map and a distribution of link utilization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner.io.in_memory import to_graph
from planner_models.traffic.plan.check import verify_flow
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

if TYPE_CHECKING:
    import networkx as nx


def add_load(problem: Traffic, plan: Routing) -> nx.MultiDiGraph:
    """Return the network with `load_mbps` and `utilization` of each link under a plan."""
    load = verify_flow(problem, plan).load_mbps
    more = {"load_mbps": load, "utilization": load / problem.capacity_mbps}
    return to_graph(problem.nodes, problem.links, more)


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
