"""Picture of a network: links by utilization, and nodes with clusters and clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Drawing, NetworkMap
from planner.formatting import amount, amount_of
from planner_models.cdnrouting.problem.problem import Delivery

LINK: Final = "link"


def draw(problem: Delivery) -> Sequence[Drawing]:
    """Draw the network with its clusters and clients."""
    return (draw_network(problem, "Network, clusters and clients"),)


def draw_network(
    problem: Delivery, title: str, load: Floats | None = None, served: Floats | None = None
) -> NetworkMap:
    """Return the picture of the links, coloured by the utilization of (E,) loads if there are any.

    served  (S,) traffic of clusters, Mbit/s
    """
    network, names = problem.network, problem.node_index.to_numpy(object)
    value = np.full(len(network.tail), np.nan) if load is None else 100 * load / network.capacity
    notes = [
        amount(rate, "Mbit/s") if load is None else amount_of(float(load[link]), rate, "Mbit/s")
        for link, rate in enumerate(network.capacity.tolist())
    ]
    labels = np.array(problem.link_labels, dtype=object)
    columns = [name for name in ("latitude", "longitude", "x", "y") if name in problem.nodes]
    nodes = problem.nodes[["node", *columns]].copy()
    if not columns:
        angle = 2 * np.pi * np.arange(len(nodes)) / max(len(nodes), 1)
        nodes = nodes.assign(x=np.sin(angle), y=np.cos(angle))
    requested = np.asarray(problem.location_share[problem.group_location].T @ problem.group_mbps)
    nodes = nodes.assign(size=1.0 + requested, note=_note_nodes(problem, requested, served))
    return NetworkMap(
        title=title,
        nodes=nodes,
        links=pd.DataFrame(
            {
                "tail": names[network.tail],
                "head": names[network.head],
                "value": value,
                "element": labels[problem.up],
                "width": network.capacity,
                "note": notes,
            }
        ),
        value="utilization",
        unit="%",
        limit=100.0,
        width_unit="Mbit/s",
        link_kind=LINK,
    )


def _note_nodes(problem: Delivery, requested: Floats, served: Floats | None) -> list[str]:
    """Return the clusters and the clients' traffic at each node in words."""
    hosts: dict[int, list[str]] = {}
    share = problem.source_share
    for cluster, name in enumerate(problem.cluster_index.tolist()):
        capacity = float(problem.capacity_mbps[cluster])
        size = amount(capacity, "Mbit/s")
        if served is not None:
            size = amount_of(float(served[cluster]), capacity, "Mbit/s")
        for node in share.indices[share.indptr[cluster] : share.indptr[cluster + 1]].tolist():
            hosts.setdefault(node, []).append(f"{name} ({size})")
    return [
        "; ".join(
            [
                *hosts.get(node, []),
                *([f"clients request {amount(rate, 'Mbit/s')}"] if rate > 0 else []),
            ]
        )
        for node, rate in enumerate(requested.tolist())
    ]
