"""Picture of hosts as boxes of NUMA nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Drawing, NetworkMap
from planner.formatting import amount, counted
from planner_models.consolidation.problem.problem import Consolidation

TYPE: Final = "host type"
ZONE: Final = "zone"


def draw(problem: Consolidation) -> Sequence[Drawing]:
    """Draw a host of each type."""
    rows = []
    for host_type, name in enumerate(problem.type_index):
        shape = problem.host_shapes[host_type]
        for index, node in enumerate(problem.node_names(host_type)):
            rows.append(
                {
                    "host": str(name),
                    "label": node,
                    "value": np.nan,
                    "size": float(shape.node[index, 0]),
                    "note": f"{shape.node[index, 0]:g} threads, {amount(float(shape.node[index, 1]), 'GB')}",
                    "element": str(name),
                }
            )
    return (draw_hosts(rows, "Types of hosts, by NUMA node", TYPE),)


def draw_hosts(rows: list[dict[str, object]], title: str, kind: str) -> NetworkMap:
    """Return the picture of hosts in a grid, each a box of its nodes.

    rows  host, label, value (percent of the threads in use), size, note and element of each node
    """
    frame = pd.DataFrame(rows, columns=["host", "label", "value", "size", "note", "element"])
    host, names = pd.factorize(frame["host"])
    columns = max(1, int(np.ceil(np.sqrt(max(len(names), 1) * 1.6))))
    position = frame.groupby("host", sort=False).cumcount().to_numpy(float)
    widest = float(position.max(initial=0.0)) + 1
    nodes = pd.DataFrame(
        {
            "node": frame["host"].astype(str) + " / " + frame["label"].astype(str),
            "x": (host % columns) * (widest + 2) + position,
            "y": -(widest + 1) * (host // columns),
            "label": frame["label"].astype(str),
            "group": frame["host"].astype(str),
            "value": frame["value"].astype(float),
            "size": frame["size"].astype(float),
            "note": frame["note"].astype(str),
            "element": frame["element"].astype(str),
        }
    )
    return NetworkMap(
        title=title,
        nodes=nodes,
        links=pd.DataFrame({"tail": [], "head": [], "value": [], "element": []}),
        value="threads in use",
        unit="%",
        limit=100.0,
        node_kind=kind,
        one_scale=True,
    )


def say_machines(machines: dict[str, float]) -> str:
    """Return the machines of a node in words, the most frequent first."""
    ordered = sorted(machines.items(), key=lambda item: (-item[1], item[0]))
    texts = [f"{number:g} x {name}" for name, number in ordered[:6]]
    more = len(ordered) - len(texts)
    return ", ".join(texts) + (f", {counted(more, 'more shapes')}" if more > 0 else "")
