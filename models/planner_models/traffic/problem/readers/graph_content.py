"""Graphs of files of any format, and the tables of nodes and links that they are.

A format's parser returns nodes and edges with attributes as texts; what they mean is decided here, as for
GraphML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.cell_units import read_amounts
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.graphml import (
    CAPACITIES,
    EdgeSettings,
    note_unread,
    read_columns,
    read_positions,
)
from planner_models.traffic.problem.readers.table_building import build_table, make_unique, position_columns

AMOUNT_NAMES = (*CAPACITIES, "speed", "rate", "bw", "label")
"""Attributes of edges that may have a capacity with its unit, as `10G`."""


@dataclass(frozen=True)
class GraphNode:
    """A node: where the file has it, its id, and its attributes as texts."""

    location: str
    id: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GraphEdge:
    """An edge: where the file has it, the ids of its ends, and its attributes as texts."""

    location: str
    tail: str
    head: str
    is_directed: bool
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass
class GraphContent:
    """Nodes and edges of a file.

    label  attribute of nodes with the name; None: the id is the name
    """

    nodes: list[GraphNode] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)
    label: str | None = None


def _number_nodes(content: GraphContent, faults: FileErrors) -> dict[str, int]:
    """Return the row of each node by its id; add the errors of repeated ids."""
    code: dict[str, int] = {}
    for node in content.nodes:
        if node.id in code:
            faults.add(
                node.location, f": node '{shorten(node.id)}' is there already", rule="a node is there already"
            )
        else:
            code[node.id] = len(code)
    return code


def build_network(
    content: GraphContent, settings: EdgeSettings, faults: FileErrors
) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.intp], NDArray[np.intp]]:
    """Return the tables of nodes and links, and the tails and heads of links; an undirected edge gives two.

    Links have no names of ends yet where `faults` has some.
    """
    code = _number_nodes(content, faults)
    if not content.nodes:
        faults.add(faults.file, ": has no node")
    nodes = _build_nodes(content, list(code), faults)
    ends, copies = [], []
    for edge in content.edges:
        for what, id_ in (("source", edge.tail), ("target", edge.head)):
            if id_ not in code:
                fault = f": {what} is '{shorten(id_)}', must be a node"
                faults.add(edge.location, fault, rule=f"{what} must be a node", near=(id_, code))
        if edge.tail == edge.head:
            fault = f": source and target are both '{shorten(edge.tail)}', must differ; delete the edge"
            faults.add(edge.location, fault, rule="source and target must differ")
        pair = [code.get(edge.tail, 0), code.get(edge.head, 0)]
        copies.append(1 if edge.is_directed else 2)
        ends += [pair] if edge.is_directed else [pair, pair[::-1]]
    rows = [(edge.location, _with_units(edge.attributes, settings)) for edge in content.edges]
    read = read_columns(rows, settings, faults)
    note_unread("edge", [name for _, values in rows for name in values], read.used, faults.file)
    tail, head = np.array(ends, dtype=np.intp).reshape(-1, 2).T
    links = build_table(**{name: np.repeat(values, copies) for name, values in read.columns.items()})
    return nodes, links, tail, head


def _build_nodes(content: GraphContent, ids: Sequence[str], faults: FileErrors) -> pd.DataFrame:
    rows = [(node.location, node.attributes) for node in content.nodes]
    position = read_positions(rows, content.label, faults)
    if len(ids) < len(rows):  # a fault
        return build_table(node=[])
    names = (
        ids
        if content.label is None
        else make_unique([values.get(content.label, "") for _, values in rows], ids)
    )
    columns = position_columns(position["longitude"], position["latitude"], geographical=True, faults=faults)
    return build_table(node=list(names), **columns)


def _with_units(attributes: Mapping[str, str], settings: EdgeSettings) -> dict[str, str]:
    """Return attributes with a capacity that has a unit, as `10G`, in Mbit/s under our name."""
    names: Sequence[str] = AMOUNT_NAMES if settings.capacity is None else (settings.capacity,)
    for name in names:
        text = attributes.get(name, "").strip()
        if not text or not text[-1].isalpha() or not text[0].isdigit():
            continue
        amounts, _ = read_amounts("capacity_mbps", pd.Series([text], dtype=object))
        if not isinstance(amounts.iloc[0], str):
            others = {key: value for key, value in attributes.items() if key != name}
            key = "capacity_mbps" if settings.capacity is None else settings.capacity
            return {**others, key: repr(float(amounts.iloc[0]))}
    return dict(attributes)
