"""Drawings of an assignment: traffic between places, and load of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem.problem import Brokering

MAX_PAIRS: Final = 600  # of client and cluster locations, by traffic; more would not be readable on a map


def draw(problem: Brokering, plan: Assignment) -> Sequence[Drawing]:
    """Return a map of the traffic between places, and the load of clusters with background traffic."""
    done = read_assignment(problem, plan)
    flows = pd.DataFrame(
        {
            "tail": problem.cluster_location[done.cluster],
            "head": done.location,
            "value": done.count * done.bitrate_mbps,
        }
    )
    remote = flows[flows["tail"] != flows["head"]]
    by_pair = remote.groupby(["tail", "head"], as_index=False).agg({"value": "sum"})
    largest = by_pair.sort_values("value", ascending=False).head(MAX_PAIRS)
    names = problem.locations["location"].astype(str).to_numpy()
    links = largest.assign(tail=names[largest["tail"]], head=names[largest["head"]])
    nodes = problem.locations.rename(columns={"location": "node"})
    shown_nodes = nodes[nodes["node"].astype(str).isin({*links["tail"], *links["head"]})]
    capacity = problem.capacity_mbps
    load = 100 * (problem.background_mbps + done.load_mbps) / capacity
    used = done.load_mbps > 0
    title = f"The {len(links):,} largest of {len(by_pair):,} flows from clusters to clients elsewhere"
    loads = Distribution(
        title="Load of the clusters that serve clients, background included",
        values={"clusters": pd.Series(load[used])},
        what="load",
        unit="%",
        limit=100.0,
    )
    if not len(links):
        return (loads,)
    places = NetworkMap(
        title=title,
        nodes=shown_nodes[["node", "latitude", "longitude"]].astype({"node": str}),
        links=links,
        value="traffic",
        unit="Mbit/s",
    )
    return (places, loads)
