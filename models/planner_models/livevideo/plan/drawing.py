"""Drawings of distribution trees: a picture of the tiers, a map of clusters, and utilization by tier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner.io.in_memory import to_graph
from planner_models.livevideo.plan.check import Delivery, compute_delivery, is_overloaded
from planner_models.livevideo.plan.metrics import losing_requests
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.problem.drawing import CLUSTER, LINK, draw_network, find_coordinates, name_links
from planner_models.livevideo.problem.problem import LiveVideo

if TYPE_CHECKING:
    import networkx as nx

LOSS_WORDS: Final = {
    "unserved_clients": "not served",
    "degraded_clients": "degraded",
    "lower_bitrate_clients": "at a lower bitrate",
}
"""Words at a node by the metric that counts the clients."""


def add_load(problem: LiveVideo, plan: Trees) -> nx.MultiDiGraph:
    """Return the network with `load_mbps` and `utilization` of each link under a plan."""
    load = compute_delivery(problem, plan).load_mbps
    more = {"load_mbps": load, "utilization": problem.utilization(load)}
    return to_graph(problem.clusters, problem.links, more)


def draw(problem: LiveVideo, plan: Trees) -> Sequence[Drawing]:
    """Draw the tiers with the clients that lose, the clusters on a map, and utilization by tier.

    Clients lose where no tree reaches them, where a link before them is overloaded, or where they receive a
    lower bitrate than they requested.
    """
    delivery = compute_delivery(problem, plan)
    load, full = delivery.load_mbps, problem.capacity_mbps
    # a link that is full but for rounding is not overloaded
    load = np.where(is_overloaded(problem, load), load, np.minimum(load, full))
    percent = 100 * problem.utilization(load)
    level = problem.level[problem.tail]
    return (
        draw_network(
            problem, "Video from sources to clients", load_mbps=load, losses=find_losses(problem, delivery)
        ),
        *_draw_map(problem, percent),
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


def find_losses(problem: LiveVideo, delivery: Delivery) -> dict[str, Floats]:
    """Return the losing clients of each request, by the words of the loss: each (Q,), disjoint."""
    losing = losing_requests(problem, delivery)
    return {words: np.where(losing[name], problem.clients, 0.0) for name, words in LOSS_WORDS.items()}


def _draw_map(problem: LiveVideo, percent: Floats) -> Iterator[NetworkMap]:
    """Yield a map of the links between clusters, where these have places."""
    if find_coordinates(problem) is None:
        return
    named = problem.clusters.rename(columns={"cluster": "node", "tier": "group"}).astype(
        {"node": str, "group": str}
    )
    ends = problem.links[["tail", "head"]].astype(str)
    is_inner = problem.level[problem.tail] < max(problem.group_level - 1, 1)
    inner = ends.assign(value=percent, element=name_links(problem))[is_inner]
    nodes = named[named["node"].isin({*inner["tail"], *inner["head"]})]
    is_group = nodes["group"] == problem.tiers[problem.group_level]
    yield NetworkMap(
        title="Links between clusters by utilization",
        nodes=nodes.assign(element=nodes["node"].where(~is_group, "")).reset_index(drop=True),
        links=inner.reset_index(drop=True),
        value="utilization",
        unit="%",
        limit=100.0,
        link_kind=LINK,
        node_kind=CLUSTER,
    )
