"""Picture of a network: its links as wide as their capacity, and the links that can be built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Drawing, NetworkMap
from planner.contract.layout import place_nodes
from planner.formatting import amount, amount_of
from planner_models.capacity.problem.problem import CapacityPlanning

LINK: Final = "link"  # kinds of elements
NODE: Final = "node"


def draw(problem: CapacityPlanning) -> Sequence[Drawing]:
    """Draw the network without a plan."""
    return (draw_network(problem, "Links and candidates by capacity", problem.installed_mbps),)


def _draw_nodes(problem: CapacityPlanning, unserved: Floats | None) -> pd.DataFrame:
    """Return the nodes with their sent, received and lost traffic, all with a position."""
    rate = problem.rate_mbps[-1]
    count = len(problem.nodes)
    sent = np.bincount(problem.source, weights=rate, minlength=count)
    received = np.bincount(problem.target, weights=rate, minlength=count)
    nodes = problem.nodes.dropna(axis="columns", how="all").reset_index(drop=True)
    if not {"x", "y"} <= set(nodes):
        nodes = nodes.assign(size=sent + received)
    nodes = nodes.assign(
        note=[
            f"{amount(out, 'Mbit/s')} start here, {amount(into, 'Mbit/s')} end here"
            for out, into in zip(sent.tolist(), received.tolist(), strict=True)
        ]
    )
    if unserved is not None:
        nodes["lost"] = np.bincount(problem.source, weights=unserved, minlength=count)
        no_path = np.bincount(problem.source, weights=unserved * problem.cut_off[0], minlength=count)
        nodes["lost_as"] = np.select(
            [no_path == 0, no_path >= nodes["lost"]],
            ["not served (capacity)", "not served (no path)"],
            "not served (capacity, no path)",
        )
    if not {"latitude", "longitude"} <= set(nodes):
        nodes[["x", "y"]] = place_nodes(nodes, problem.lines).to_numpy()
    return nodes


def draw_network(
    problem: CapacityPlanning,
    title: str,
    capacity: Floats,
    *,
    load: Floats | None = None,
    unserved: Floats | None = None,
) -> NetworkMap:
    """Return the picture of the network: links by utilization, as wide as their capacity.

    capacity  (L,) of the links, Mbit/s
    load      (L,) largest load of a direction, or of both where they share; None without a plan
    unserved  (D,) what is left out of each demand
    """
    installed = problem.installed_mbps
    value = np.full(len(capacity), np.nan)
    if load is not None:
        value = np.divide(100 * load, capacity, out=value, where=capacity > 0)
    notes = []
    for line, (full, old) in enumerate(zip(capacity.tolist(), installed.tolist(), strict=True)):
        words = "not built" if full <= 0 else amount(full, "Mbit/s")
        if load is not None and full > 0:
            words = amount_of(float(load[line]), full, "Mbit/s")
        if full > old:
            words += f", {amount(full - old, 'Mbit/s')} of it bought"
        notes.append(words)
    links = pd.DataFrame(
        {
            "tail": problem.lines["tail"].to_numpy(),
            "head": problem.lines["head"].to_numpy(),
            "value": value,
            "element": problem.names,
            "width": capacity,
            "added": np.maximum(capacity - installed, 0.0),
            "note": notes,
        }
    )
    nodes = _draw_nodes(problem, unserved)
    return NetworkMap(
        title=title,
        nodes=nodes,
        links=links,
        value="utilization",
        unit="%",
        limit=100.0,
        width_unit="Mbit/s",
        lost_unit="Mbit/s",
        link_kind=LINK,
        directed=problem.direction == "directed",
    )
