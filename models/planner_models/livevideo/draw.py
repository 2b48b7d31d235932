"""What shows distribution trees best: which links are full, tier by tier."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.drawing import Distribution, Drawing, NetworkMap
from planner_models.livevideo.check import delivered
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees


def draw(problem: LiveVideo, plan: Trees) -> Sequence[Drawing]:
    """A map of the links between clusters by utilization, and utilization by tier."""
    found = delivered(problem, plan)
    percent = 100 * found.load_mbps / problem.capacity_mbps
    links = problem.links[["tail", "head"]].astype(str).assign(value=percent)
    level = problem.level[problem.tail]
    last = len(problem.tiers) - 2
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
                for tier in range(len(problem.tiers) - 1)
            },
            what="utilization",
            unit="%",
            limit=100.0,
        ),
    )
