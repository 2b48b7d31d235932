"""What shows an assignment best: who is served from where, and how full clusters are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from planner.drawing import Distribution, Drawing, NetworkMap
from planner_models.brokering.assignment import Assignment
from planner_models.brokering.check import served
from planner_models.brokering.problem import Brokering

MOST_PAIRS: Final = 600
"""Of client and cluster locations, those with the most traffic: a map of all of them shows nothing."""


def draw(problem: Brokering, plan: Assignment) -> Sequence[Drawing]:
    """A map of the traffic between places, and the load of clusters with background traffic."""
    found = served(problem, plan)
    flows = pd.DataFrame(
        {
            "tail": problem.cluster_location[found.cluster],
            "head": found.location,
            "value": found.count * found.bitrate_mbps,
        }
    )
    apart = flows[flows["tail"] != flows["head"]]
    by_pair = apart.groupby(["tail", "head"], as_index=False).agg({"value": "sum"})
    most = by_pair.sort_values("value", ascending=False).head(MOST_PAIRS)
    names = problem.locations["location"].astype(str).to_numpy()
    links = most.assign(tail=names[most["tail"]], head=names[most["head"]])
    nodes = problem.locations.rename(columns={"location": "node"})
    shown = nodes[nodes["node"].astype(str).isin({*links["tail"], *links["head"]})]
    capacity = problem.capacity_mbps
    load = 100 * (problem.background_mbps + found.load_mbps) / capacity
    used = found.load_mbps > 0
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
        nodes=shown[["node", "latitude", "longitude"]].astype({"node": str}),
        links=links,
        value="traffic",
        unit="Mbit/s",
    )
    return (places, loads)
