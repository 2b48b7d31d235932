"""Map of a market: the clusters of CDNs, and the places of their clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Drawing, NetworkMap
from planner.formatting import amount, amount_of, counted
from planner_models.brokering.problem.problem import Brokering

CLUSTER: Final = "cluster"  # kind of the elements that nodes are
APART: Final = 0.006  # distance between clusters of one place, in the extent of the map
GOLDEN_ANGLE: Final = math.pi * (3 - math.sqrt(5))  # of a spiral, on which points are spread evenly


def draw(problem: Brokering) -> Sequence[Drawing]:
    """Draw the market without a plan."""
    return (draw_market(problem, "Clusters by capacity, and clients by place"),)


def draw_market(
    problem: Brokering,
    title: str,
    *,
    load_mbps: Floats | None = None,
    congested: Floats | None = None,
    shed: Floats | None = None,
    flows: pd.DataFrame | None = None,
) -> NetworkMap:
    """Return the map of the market: clusters by load, and flows to clients by the load of their cluster.

    load_mbps  (C,) load of each cluster, background included; None without a plan
    congested  (C,) clients in clusters with more load than capacity
    shed       (L,) clients of each place that have no cluster
    flows      cluster and location, by row, and mbps, of the flows that are drawn
    """
    names, place_names = problem.clusters["cluster"].astype(str).tolist(), name_places(problem)
    clients = np.bincount(problem.location, weights=problem.count, minlength=len(place_names)).astype(float)
    percent = np.full(len(names), np.nan)
    if load_mbps is not None:
        capacity = problem.capacity_mbps
        percent = np.divide(100 * load_mbps, capacity, out=np.full(len(names), np.nan), where=capacity > 0)
    clusters = _tabulate_clusters(problem, load_mbps).assign(
        value=percent, lost=0.0 if congested is None else congested
    )
    places = _tabulate_places(problem, clients).assign(lost=0.0 if shed is None else shed)
    drawn = pd.DataFrame({"cluster": [], "location": [], "mbps": []}) if flows is None else flows
    sender, receiver = (drawn[end].to_numpy(dtype=np.int64) for end in ("cluster", "location"))
    links = pd.DataFrame(
        {
            "tail": np.array(names, dtype=object)[sender],
            "head": np.array(place_names, dtype=object)[receiver],
            "value": percent[sender],
            "width": drawn["mbps"].to_numpy(float),
            "note": [amount(mbps, "Mbit/s") for mbps in drawn["mbps"].tolist()],
        }
    )
    return NetworkMap(
        title=title,
        nodes=pd.concat([clusters, places[clients > 0]], ignore_index=True),
        links=links,
        value="load",
        unit="%",
        limit=100.0,
        width_unit="Mbit/s",
        lost_unit="clients",
        node_kind=CLUSTER,
    )


def _tabulate_clusters(problem: Brokering, load_mbps: Floats | None) -> pd.DataFrame:
    """Return the nodes of clusters; they are as large as their load, or without a plan as their capacity."""
    capacity = problem.capacity_mbps
    size = capacity if load_mbps is None else load_mbps
    latitude, longitude = _spread(problem)
    names = problem.clusters["cluster"].astype(str).tolist()
    return pd.DataFrame(
        {
            "node": names,
            "label": names,
            "element": names,
            "latitude": latitude,
            "longitude": longitude,
            "group": problem.clusters["cdn"].astype(str),
            "value": np.nan,
            "size": size / (size.max(initial=0.0) or 1.0),
            "lost": 0.0,
            "note": [
                amount(full, "Mbit/s") if load_mbps is None else amount_of(load, full, "Mbit/s")
                for load, full in zip(size.tolist(), capacity.tolist(), strict=True)
            ],
        }
    )


def _tabulate_places(problem: Brokering, clients: Floats) -> pd.DataFrame:
    """Return the nodes of places, as large as their number of clients, (L,)."""
    locations = problem.locations
    return pd.DataFrame(
        {
            "node": name_places(problem),
            "label": locations["location"].astype(str),
            "element": "",
            "latitude": locations["latitude"].astype(float),
            "longitude": locations["longitude"].astype(float),
            "group": "",
            "value": np.nan,
            "size": clients / (clients.max(initial=0.0) or 1.0),
            "lost": 0.0,
            "note": [counted(count, "clients") for count in clients.tolist()],
        }
    )


def name_places(problem: Brokering) -> list[str]:
    """Return the node of the clients of each location, (L,), which no cluster has."""
    taken = set(problem.clusters["cluster"].astype(str))
    names = []
    for location in problem.locations["location"].astype(str):
        name = f"clients in {location}"
        while name in taken:
            name += "'"
        names.append(name)
    return names


def _spread(problem: Brokering) -> tuple[Floats, Floats]:
    """Return latitude and longitude of each cluster, (C,): those of one place stand beside each other."""
    location, axes = problem.cluster_location, ("latitude", "longitude")
    latitude, longitude = (problem.locations[name].to_numpy(float)[location] for name in axes)
    extent = max(float(np.ptp(problem.locations[name])) for name in axes) or 1.0
    number_here = pd.Series(location).groupby(location).cumcount().to_numpy(float)
    distance = APART * extent * np.sqrt(number_here + 1.0)
    angle = GOLDEN_ANGLE * number_here
    narrow = np.maximum(np.cos(np.radians(latitude)), 0.2)
    return (
        np.clip(latitude + distance * np.sin(angle), -90.0, 90.0),
        np.clip(longitude + distance * np.cos(angle) / narrow, -180.0, 180.0),
    )
