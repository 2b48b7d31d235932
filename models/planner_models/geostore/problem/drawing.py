"""Picture of the regions: who uses them, and which hold replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Drawing, NetworkMap
from planner.formatting import amount
from planner_models.geostore.problem.problem import Geostore

REGION: Final = "region"


def draw(problem: Geostore) -> Sequence[Drawing]:
    """Draw the regions by the requests of their users."""
    return (draw_regions(problem, "Regions by requests of their users"),)


def requests_of(problem: Geostore) -> Floats:
    """Return the requests a second of the users of each region, (N,)."""
    count = len(problem.regions)
    return np.asarray(np.bincount(problem.user_region, problem.requests_per_s, count), dtype=np.float64)


def draw_regions(
    problem: Geostore,
    title: str,
    traffic: Floats | None = None,
    notes: Sequence[str] = (),
    missed: Floats | None = None,
) -> NetworkMap:
    """Return the map of regions, with arrows from users to the datacenters that serve them.

    traffic  (N, N) requests a second from users of one region to the datacenter of another
    notes    (N) what a region holds, in words
    missed   (N,) requests a second that miss a goal
    """
    requests = requests_of(problem)
    names = problem.region_index.to_numpy(object)
    nodes = pd.DataFrame({"node": names})
    if "latitude" in problem.regions and "longitude" in problem.regions:
        nodes = nodes.assign(latitude=problem.regions["latitude"], longitude=problem.regions["longitude"])
    else:
        angle = 2 * np.pi * np.arange(len(nodes)) / max(len(nodes), 1)
        nodes = nodes.assign(x=np.sin(angle), y=np.cos(angle))
    words = [f"users send {amount(rate, 'requests/s')}" if rate > 0 else "" for rate in requests.tolist()]
    held = list(notes) or [""] * len(nodes)
    nodes = nodes.assign(
        size=1.0 + requests,
        note=["; ".join(filter(None, pair)) for pair in zip(held, words, strict=True)],
        element=names,
    )
    if missed is not None:
        nodes = nodes.assign(lost=missed, lost_as="miss a goal")
    flow = np.zeros((len(nodes), len(nodes))) if traffic is None else traffic
    source, target = np.nonzero((flow > 0) & ~np.eye(len(nodes), dtype=bool))
    rate = flow[source, target]
    return NetworkMap(
        title=title,
        nodes=nodes,
        links=pd.DataFrame(
            {
                "tail": names[source],
                "head": names[target],
                "value": problem.rtt_ms[source, target],
                "width": rate,
                "note": [amount(value, "requests/s") for value in rate.tolist()],
            }
        ),
        value="round-trip time",
        unit="ms",
        width_unit="requests/s",
        lost_unit="requests/s",
        node_kind=REGION,
    )
