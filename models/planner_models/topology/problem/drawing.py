"""Picture of a fabric: its blocks on a circle, links as wide as their capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.drawing import Curve, Drawing, NetworkMap
from planner.formatting import amount, amount_of
from planner_models.topology.problem.problem import Fabric

BLOCK: Final = "block"
MOST_LINKS_DRAWN: Final = 2_000


def draw(problem: Fabric) -> Sequence[Drawing]:
    """Draw the links of today, or the demand of blocks where there are none."""
    if problem.present is None or not problem.present.any():
        return (draw_blocks(problem),)
    return (draw_fabric(problem, "Links of today", problem.present),)


def draw_blocks(problem: Fabric) -> Curve:
    """Return the bars of the blocks' sent and received traffic, and the rate of their ports."""
    rate = problem.ports * problem.blocks["port_mbps"].to_numpy(float)
    frame = pd.DataFrame(
        {
            "block": problem.names,
            "sent_gbps": problem.demand_mbps.sum(axis=1) / 1e3,
            "received_gbps": problem.demand_mbps.sum(axis=0) / 1e3,
            "ports_gbps": rate / 1e3,
        }
    )
    units = dict.fromkeys(frame.columns[1:], "Gbit/s")
    return Curve(title="Demand of blocks, and the rate of their ports", frame=frame, units=units, bars=True)


def draw_fabric(
    problem: Fabric, title: str, links: Ints, load: Floats | None = None, unserved: Floats | None = None
) -> NetworkMap:
    """Return the picture of (n, n) links, coloured by the utilization of (n, n) loads if there are any.

    unserved  (n,) traffic that blocks send and that is not served, Mbit/s; None: none
    """
    capacity = links * problem.link_mbps
    tail, head = np.nonzero(links)
    order = np.argsort(-capacity[tail, head], kind="stable")[:MOST_LINKS_DRAWN]
    tail, head = tail[np.sort(order)], head[np.sort(order)]
    full = capacity[tail, head]
    value = np.full(len(tail), np.nan) if load is None else 100 * load[tail, head] / full
    names = np.array(problem.names, dtype=object)
    notes = [
        f"{links[i, j]:,} links, "
        + (amount(rate, "Mbit/s") if load is None else amount_of(float(load[i, j]), rate, "Mbit/s"))
        for i, j, rate in zip(tail.tolist(), head.tolist(), full.tolist(), strict=True)
    ]
    angle = 2 * np.pi * np.arange(len(names)) / max(len(names), 1)
    sent, received = problem.demand_mbps.sum(axis=1), problem.demand_mbps.sum(axis=0)
    nodes = pd.DataFrame(
        {
            "node": names,
            "x": np.sin(angle),
            "y": np.cos(angle),
            "size": problem.ports.astype(float),
            "lost": np.zeros(len(names)) if unserved is None else unserved,
            "lost_as": "not served",
            "note": [
                f"{ports:,} ports, sends {amount(out, 'Mbit/s')}, receives {amount(into, 'Mbit/s')}"
                for ports, out, into in zip(
                    problem.ports.tolist(), sent.tolist(), received.tolist(), strict=True
                )
            ],
        }
    )
    return NetworkMap(
        title=title,
        nodes=nodes,
        links=pd.DataFrame(
            {"tail": names[tail], "head": names[head], "value": value, "width": full, "note": notes}
        ),
        value="utilization",
        unit="%",
        limit=100.0,
        width_unit="Mbit/s",
        lost_unit="Mbit/s",
        node_kind=BLOCK,
    )
