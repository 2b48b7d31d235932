"""Drawing of the fabric: cores above pods of aggregation and edge switches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Drawing, NetworkMap
from planner.formatting import counted
from planner_models.multicast.problem.failures import working_links
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import Wiring

SWITCH: Final = "switch"
MOST_LINKS: Final = 600  # of a fabric that is drawn in tiers, with its links
HEIGHT: Final = 0.5  # of the tiers, as a share of their width
GAP: Final = 1.5  # between pods in a tier, in distances between switches
BLOCK_GAP: Final = 2.0  # half of that between blocks of pods
FRAME_SHAPE: Final = 1.4  # width to height


def draw_fabric(problem: Multicast) -> Sequence[Drawing]:
    """Draw the switches of the fabric by pods, without a plan."""
    nodes = list_nodes(problem)
    return (fabric_map(problem, nodes, nodes["node"].map(lambda _: ""), title="Switches by pod"),)


def list_nodes(problem: Multicast) -> pd.DataFrame:
    """Return node, x, y and group of every switch that works, by the row of `wiring.switches`."""
    wires = problem.wiring
    positions = _tiers(wires) if has_links(wires) else _grids(wires)
    pods = np.concatenate([wires.aggregation_pod, wires.edge_pod])
    group = ["core"] * len(wires.cores) + [f"pod {pod}" for pod in pods]
    names = pd.Series(wires.switches.astype(str))
    nodes = pd.DataFrame({"node": names, "x": positions[:, 0], "y": positions[:, 1], "group": group})
    if not problem.is_tree:
        nodes["label"] = names.str.replace("aggregation-", "agg-")
    return nodes[~nodes["node"].isin(problem.failed_names)]


def has_links(wires: Wiring) -> bool:
    """Return whether the fabric is small enough to draw its links."""
    edges = np.bincount(wires.edge_pod, minlength=wires.pods)
    return int(wires.up.sum()) + int(edges[wires.aggregation_pod].sum()) <= MOST_LINKS


def fabric_map(
    problem: Multicast,
    nodes: pd.DataFrame,
    notes: pd.Series,
    *,
    title: str,
    up_mbps: Floats | None = None,
    down_mbps: Floats | None = None,
) -> NetworkMap:
    """Return the map of some nodes, with the links that work where the fabric is small.

    up_mbps    (aggregation switches, cores) load of links; None for unknown
    down_mbps  (aggregation switches, edge switches)
    """
    wires = problem.wiring
    if not has_links(wires):
        edges = np.bincount(wires.edge_pod, minlength=wires.pods)
        count = int(wires.up.sum()) + int(edges[wires.aggregation_pod].sum())
        title += f"; {counted(count, 'links', 'are')} not drawn"
        links = pd.DataFrame({"tail": [], "head": [], "value": []}).astype({"value": float})
    else:
        state = working_links(problem)
        parts = []
        for works, below, load in ((state.up, wires.cores, up_mbps), (state.down, wires.edges, down_mbps)):
            aggregation, other = np.nonzero(works)
            ends = wires.aggregations[aggregation].astype(str), below[other].astype(str)
            tail, head = ends if below is wires.edges else ends[::-1]
            block = pd.DataFrame({"tail": tail, "head": head, "value": np.nan})
            if load is not None:
                block["width"] = load[aggregation, other]
                block["note"] = [f"{mbps:,.4g} Mbit/s of groups with entries" for mbps in block["width"]]
            parts.append(block)
        links = pd.concat(parts, ignore_index=True)
    return NetworkMap(
        title=title,
        nodes=nodes.assign(note=notes).reset_index(drop=True),
        links=links,
        value="table fill",
        unit="%",
        limit=100.0,
        width_unit="Mbit/s",
        lost_unit="Mbit/s",
        node_kind=SWITCH,
    )


def _tiers(wires: Wiring) -> Floats:
    """Return x and y of each switch, (switches, 2): cores on top, edge switches at the bottom, pod by pod."""
    sizes = np.array(
        [np.bincount(pod, minlength=wires.pods) for pod in (wires.aggregation_pod, wires.edge_pod)]
    )
    widths = sizes.max(axis=0) - 1 + GAP
    begin = np.cumsum(widths) - widths
    total = float(widths.sum()) - GAP
    height = HEIGHT * max(total, 1.0)
    tiers = [np.column_stack([_spread(len(wires.cores), total), np.full(len(wires.cores), height)])]
    for pod, counts, level in ((wires.aggregation_pod, sizes[0], 0.4), (wires.edge_pod, sizes[1], 0.0)):
        nth = np.arange(len(pod)) - np.searchsorted(pod, pod)
        x = begin[pod] + nth + (widths[pod] - GAP - (counts[pod] - 1)) / 2
        tiers.append(np.column_stack([x, np.full(len(pod), level * height)]))
    return np.concatenate(tiers)


def _spread(count: int, width: float) -> Floats:
    """Return places of so many switches, evenly over a width."""
    return width * (np.arange(count) + 0.5) / count


def _grids(wires: Wiring) -> Floats:
    """Return x and y of each switch, (switches, 2): a block of cores above blocks of pods, row by row."""
    sizes = np.array(
        [np.bincount(pod, minlength=wires.pods) for pod in (wires.aggregation_pod, wires.edge_pod)]
    )
    columns = int(np.ceil(np.sqrt(1.5 * sizes.max())))
    rows = np.ceil(sizes / columns).astype(int).max(axis=1)
    width, height = columns - 1 + 2 * BLOCK_GAP, float(rows.sum()) + 2 * BLOCK_GAP
    across = _choose_columns(wires, width, height)
    total = across * width - 2 * BLOCK_GAP
    core_columns, core_rows = _core_grid(wires, total)
    nth = np.arange(len(wires.cores))
    step = total / max(1, min(core_columns, len(wires.cores)) - 1)
    y = core_rows - 1 + 2 * BLOCK_GAP - nth // core_columns
    blocks = [np.column_stack([nth % core_columns * step, y])]
    for pod, first in ((wires.aggregation_pod, 0.0), (wires.edge_pod, rows[0] + GAP / 2)):
        nth = np.arange(len(pod)) - np.searchsorted(pod, pod)
        x = pod % across * width + nth % columns
        blocks.append(np.column_stack([x, -(pod // across) * height - first - nth // columns]))
    return np.concatenate(blocks)


def _core_grid(wires: Wiring, total: float) -> tuple[int, int]:
    """Return columns and rows of the block of cores within a width."""
    columns = max(1, int(total) + 1)
    return columns, -(-len(wires.cores) // columns)


def _choose_columns(wires: Wiring, width: float, height: float) -> int:
    """Return the number of pods in a row, such that the picture has nearly the shape of its frame."""

    def excess(across: int) -> float:
        total = across * width - 2 * BLOCK_GAP
        tall = -(-wires.pods // across) * height + _core_grid(wires, total)[1]
        return abs(float(np.log(total / tall / FRAME_SHAPE)))

    return min(range(1, wires.pods + 1), key=excess)
