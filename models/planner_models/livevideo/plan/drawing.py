"""Drawings of distribution trees: utilization of links, on a map and by tier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner.io.in_memory import to_graph
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.problem.problem import LiveVideo

if TYPE_CHECKING:
    import networkx as nx


def add_load(problem: LiveVideo, plan: Trees) -> nx.MultiDiGraph:
    """Return the network with `load_mbps` and `utilization` of each link under a plan."""
    load = compute_delivery(problem, plan).load_mbps
    more = {"load_mbps": load, "utilization": problem.utilization(load)}
    return to_graph(problem.clusters, problem.links, more)


def draw(problem: LiveVideo, plan: Trees) -> Sequence[Drawing]:
    """Return a map of the links between clusters by utilization, and utilization by tier."""
    found = compute_delivery(problem, plan)
    percent = 100 * problem.utilization(found.load_mbps)
    links = problem.links[["tail", "head"]].astype(str).assign(value=percent)
    level = problem.level[problem.tail]
    last = problem.group_level - 1
    inner = links[level < last] if last > 0 else links
    named = problem.clusters.rename(columns={"cluster": "node", "tier": "group"})
    nodes = named.astype({"node": str, "group": str}).dropna(axis="columns", how="all")
    ends = {*inner["tail"], *inner["head"]}
    return (
        NetworkMap(
            title="Links between clusters by utilization",
            nodes=nodes[nodes["node"].isin(ends)],
            links=inner,
            value="utilization",
            unit="%",
            limit=100.0,
        ),
        Distribution(
            title="Utilization of links by tier",
            values={
                f"{problem.tiers[tier]} to {problem.tiers[tier + 1]}": pd.Series(percent[level == tier])
                for tier in range(problem.group_level)
            },
            what="utilization",
            unit="%",
            limit=100.0,
        ),
    )
