"""Changes of a network's tables: nodes, links and demands are added, moved, set and removed.

Each function returns new tables; whether they are a valid problem is checked as for files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.system import System
from planner.contract.table import Table
from planner_dashboard.own_data.drafts import Frames

NODES, LINKS, DEMANDS = "nodes", "links", "demands"
ENDS: Final = ("tail", "head")
ASKED: Final = ("capacity_mbps", "latency_ms", "length_km", "weight", "cost", "upgrade_cost")
"""Columns of links that the editor asks for, where the table may have them."""


NAMING: Final = {NODES: ("node",), LINKS: ENDS, "candidates": ENDS, DEMANDS: ("source", "target")}
"""Columns of each table that name nodes."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a node is: latitude and longitude, or x and y; None where neither is known."""

    latitude: float | None = None
    longitude: float | None = None
    x: float | None = None
    y: float | None = None

    def columns(self) -> dict[str, float]:
        """Return the columns of a node's row that say it."""
        return {name: value for name, value in vars(self).items() if value is not None}


def has_network(system: System, frames: Frames) -> bool:
    """Return whether the tables have links between nodes, which a map can change."""
    return LINKS in system.problem.table_by_name and LINKS in frames and set(ENDS) <= set(frames[LINKS])


def node_names(frames: Frames) -> list[str]:
    """Return the names of all nodes: those of the table of nodes, else the ends of links."""
    if NODES in frames and "node" in frames[NODES]:
        names = frames[NODES]["node"]
    else:
        links = frames[LINKS]
        names = pd.concat([links[end] for end in ENDS if end in links], ignore_index=True)
    return list(dict.fromkeys(names.dropna().astype(str)))


def link_names(frames: Frames) -> list[str]:
    """Return the names of links: a<->b where both directions have a row each, else a->b; without numbers."""
    pairs = _pairs(frames[LINKS])
    names: dict[str, None] = {}
    for tail, head in pairs:
        if f"{head}<->{tail}" not in names:  # the first row of both gives the name
            names[f"{tail}{'<->' if (head, tail) in pairs else '->'}{head}"] = None
    return list(names)


def _pairs(links: pd.DataFrame) -> dict[tuple[str, str], None]:
    return dict.fromkeys(zip(links["tail"].astype(str), links["head"].astype(str), strict=True))


def rows_of_link(frames: Frames, name: str) -> list[int]:
    """Return the rows of a link, of both directions for a<->b; of #2, the second row of each direction."""
    plain, _, number = name.partition("#")
    links = frames[LINKS].reset_index(drop=True)
    tails, heads = links["tail"].astype(str), links["head"].astype(str)
    forward = (tails + "->" + heads == plain) | (tails + "<->" + heads == plain)
    backward = heads + "<->" + tails == plain
    rows: list[int] = []
    for is_here in (forward, backward):
        here = np.flatnonzero(is_here.to_numpy()).tolist()
        if number.isdecimal() and "parallel" in links:
            here = [row for row in here if links["parallel"].iloc[row] == int(number)]
        elif number.isdecimal():
            here = here[int(number) - 1 : int(number)]
        rows += [row for row in here if row not in rows]
    return sorted(rows)


def number_columns(system: System, frames: Frames) -> list[str]:
    """Return the columns of links with numbers that the editor sets."""
    table: Table = system.problem.table_by_name[LINKS]
    return [
        name
        for name, column in table.columns.items()
        if not column.is_label and (name in ASKED or (name in frames[LINKS] and name != "parallel"))
    ]


def add_node(frames: Frames, name: str, place: Place) -> dict[str, pd.DataFrame]:
    """Return the tables with one more node."""
    nodes = frames.get(NODES)
    if nodes is None:
        nodes = pd.DataFrame({"node": node_names(frames)})
    return {**frames, NODES: _with_row(nodes, {"node": name, **place.columns()})}


def remove_node(frames: Frames, name: str) -> dict[str, pd.DataFrame]:
    """Return the tables without a node, its links and its demands."""
    result = dict(frames)
    for table, columns in NAMING.items():
        if table in result:
            result[table] = _without(result[table], columns, name)
    return result


def rename_node(frames: Frames, name: str, other: str) -> dict[str, pd.DataFrame]:
    """Return the tables with another name of a node, in its links and demands too."""
    result = dict(frames)
    for table, columns in NAMING.items():
        if table in result:
            named = [column for column in columns if column in result[table]]
            frame = result[table]
            result[table] = frame.assign(
                **{column: frame[column].where(frame[column].astype(str) != name, other) for column in named}
            )
    return result


def _without(frame: pd.DataFrame, columns: Sequence[str], name: str) -> pd.DataFrame:
    is_here = np.zeros(len(frame), dtype=bool)
    for column in columns:
        if column in frame:
            is_here |= (frame[column].astype(str) == name).to_numpy()
    return frame[~is_here].reset_index(drop=True)


def move_node(frames: Frames, name: str, place: Place) -> dict[str, pd.DataFrame]:
    """Return the tables with a node at another place."""
    nodes = frames[NODES].copy()
    here = nodes["node"].astype(str) == name
    for column, value in place.columns().items():
        figures = nodes[column] if column in nodes else pd.Series(np.nan, index=nodes.index)
        nodes[column] = figures.where(~here, value)
    return {**frames, NODES: nodes}


def add_link(
    frames: Frames, tail: str, head: str, values: Mapping[str, float], *, both_ways: bool
) -> dict[str, pd.DataFrame]:
    """Return the tables with one more link, in both directions where asked for."""
    ends = [(tail, head), (head, tail)] if both_ways else [(tail, head)]
    links = frames[LINKS]
    for start, end in ends:
        links = _with_row(links, {"tail": start, "head": end, **values})
    return {**frames, LINKS: _numbered(links, ends)}


def _numbered(links: pd.DataFrame, ends: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return links with the next number for new ones beside others, where the table numbers them."""
    if "parallel" not in links:
        return links
    links = links.copy()
    for row in range(len(links) - len(ends), len(links)):
        same = (links["tail"] == links["tail"].iloc[row]) & (links["head"] == links["head"].iloc[row])
        before = links["parallel"][same].iloc[:-1]
        links.loc[row, "parallel"] = 0.0 if before.empty else max(1.0, float(before.max())) + 1
    return links


def remove_link(frames: Frames, name: str) -> dict[str, pd.DataFrame]:
    """Return the tables without a link."""
    links = frames[LINKS].reset_index(drop=True)
    return {**frames, LINKS: links.drop(index=rows_of_link(frames, name)).reset_index(drop=True)}


def set_link(frames: Frames, name: str, values: Mapping[str, float | None]) -> dict[str, pd.DataFrame]:
    """Return the tables with other figures of a link, of both its directions."""
    links = frames[LINKS].reset_index(drop=True)
    rows = rows_of_link(frames, name)
    for column, value in values.items():
        if column not in links and value is None:
            continue
        figures = links[column].astype(float) if column in links else pd.Series(np.nan, index=links.index)
        figures.iloc[rows] = np.nan if value is None else value
        links = links.assign(**{column: figures})
    return {**frames, LINKS: links}


def link_values(frames: Frames, name: str, columns: Sequence[str]) -> dict[str, float | None]:
    """Return the figures of a link's first row; None where one is blank or its column is absent."""
    rows = rows_of_link(frames, name)
    links = frames[LINKS]
    values: dict[str, float | None] = {}
    for column in columns:
        value = links[column].iloc[rows[0]] if rows and column in links else None
        values[column] = None if value is None or pd.isna(value) else float(value)
    return values


def usual_values(frames: Frames, columns: Sequence[str]) -> dict[str, float | None]:
    """Return the median of each column of links, for a new one; None where there are no figures."""
    links, values = frames[LINKS], dict[str, float | None]()
    for column in columns:
        figures = pd.to_numeric(links[column], errors="coerce").dropna() if column in links else pd.Series()
        values[column] = float(figures.median()) if len(figures) else None
    return values


def is_usually_both_ways(frames: Frames) -> bool:
    """Return whether most links have a row for each direction."""
    pairs = _pairs(frames[LINKS])
    return bool(pairs) and 2 * sum((head, tail) in pairs for tail, head in pairs) >= len(pairs)


def demand_names(frames: Frames, node: str = "") -> list[tuple[int, str]]:
    """Return the row and the ends of each demand, of one node where it is named, the largest first."""
    demands = frames.get(DEMANDS)
    if demands is None or not {"source", "target"} <= set(demands):
        return []
    shown = demands.reset_index(drop=True)
    if node:
        shown = shown[(shown["source"].astype(str) == node) | (shown["target"].astype(str) == node)]
    if "rate_mbps" in shown:
        rates = pd.to_numeric(shown["rate_mbps"], errors="coerce")
        shown = shown.loc[rates.sort_values(ascending=False, kind="stable").index]
    return [
        (int(row), f"{source} → {target}")
        for row, source, target in zip(shown.index, shown["source"], shown["target"], strict=True)
    ]


def set_demand(
    frames: Frames, row: int | None, source: str, target: str, rate_mbps: float
) -> dict[str, pd.DataFrame]:
    """Return the tables with a demand at other ends or of another rate; None for `row` adds one.

    A demand that moves to ends that have one already (of the same class) joins it: a pair has one row.
    """
    demands = frames.get(DEMANDS, pd.DataFrame({"source": [], "target": [], "rate_mbps": []}))
    demands = demands.reset_index(drop=True)
    values: dict[str, Any] = {"source": source, "target": target, "rate_mbps": rate_mbps}
    if row is not None:
        values = {**row_values(demands, row), **values}
    others = demands if row is None else demands.drop(index=row)
    same = (others["source"].astype(str) == source) & (others["target"].astype(str) == target)
    if "class" in others:
        same &= others["class"].astype(str) == str(values.get("class"))
    if same.any():
        demands.loc[others.index[same][0], "rate_mbps"] += rate_mbps
        changed = demands if row is None else demands.drop(index=row)
    elif row is None:
        changed = _with_row(demands, values)
    else:
        changed = demands
        for name, value in values.items():
            changed.loc[row, name] = value
    return {**frames, DEMANDS: changed.reset_index(drop=True)}


def row_values(frame: pd.DataFrame, row: int) -> dict[str, Any]:
    """Return the cells of a row by column."""
    return {str(name): value for name, value in frame.iloc[row].items()}


def remove_demand(frames: Frames, row: int) -> dict[str, pd.DataFrame]:
    """Return the tables without a demand."""
    return {**frames, DEMANDS: frames[DEMANDS].reset_index(drop=True).drop(index=row).reset_index(drop=True)}


def _with_row(frame: pd.DataFrame, values: Mapping[str, Any]) -> pd.DataFrame:
    """Return a table with one more row; new columns are blank in the others."""
    columns = {}
    for name in [*frame.columns, *(name for name in values if name not in frame)]:
        before = frame[name].tolist() if name in frame else [None] * len(frame)
        after = values.get(name)
        cells = pd.Series([*before, after])
        numbers = pd.to_numeric(cells, errors="coerce")
        was_number = name not in frame or pd.api.types.is_numeric_dtype(frame[name])
        is_number = was_number and not isinstance(after, str)
        columns[name] = numbers.astype(float) if is_number else cells.astype(object)
    return pd.DataFrame(columns)
