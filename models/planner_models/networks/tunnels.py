"""Tunnels as arrays, read from tables of the paths that operators have configured."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.table import label
from planner.contract.tables import abbreviate
from planner.errors import did_you_mean
from planner_models.networks.node_lists import LinkNames, RowFaults, parse_nodes, parse_numbers

KINDS: Final = ("explicit", "segments")
TUNNEL_COLUMNS: Final = {
    "source": label("node where it starts; blank: as its path", optional=True, may_be_blank=True),
    "target": label("node where it ends; blank: as its path", optional=True, may_be_blank=True),
    "path": label("its nodes in order, A > B > C, or as a JSON list"),
    "parallel": label(
        "which of parallel links each step takes, as a JSON list; blank: the first that is up",
        optional=True,
        may_be_blank=True,
    ),
    "name": label("its name; blank: its path", optional=True, may_be_blank=True),
}
"""Columns of tables of tunnels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tunnels:
    """The tunnels of a problem, as arrays; T of them.

    name         (T,) names
    source, target  (T,) nodes by row
    is_segments  (T,) whether it is a list of segments
    weight       (T,)
    nodes        the nodes of each
    links        the links of each explicit one, -1 for those that are down; () for segments
    """

    name: list[str]
    source: Ints
    target: Ints
    is_segments: Bools
    weight: Floats
    nodes: list[tuple[int, ...]]
    links: list[tuple[int, ...]]


def read_paths(
    frame: pd.DataFrame, names: Sequence[str], links_known: LinkNames
) -> tuple[Tunnels, list[str]]:
    """Return the tunnels of a table `tunnels`, and all faults in its rows.

    frame  source?, target?, path, parallel?, kind?, weight?, name?
    names  of the nodes
    """
    count = len(frame)
    columns = _list_columns(frame)
    node_of = {name: node for node, name in enumerate(names)}
    faults = RowFaults(frame, "tunnels")
    nodes: list[tuple[int, ...]] = []
    links: list[tuple[int, ...]] = []
    listed: list[list[str]] = []
    for row, text in enumerate(frame["path"].tolist()):
        path = parse_nodes(text)
        listed.append(path)
        node_rows = tuple(node_of.get(name, -1) for name in path)
        nodes.append(node_rows)
        _add_row_faults(faults, row, path, node_rows, columns, names)
        if columns["kind"][row] != "segments" and faults.lines.get(row) is None:
            links.append(_find_steps(links_known, path, node_rows, columns["parallel"][row], faults, row))
        else:
            links.append(())
    tunnel_names = _name_tunnels(columns["name"], listed)
    _add_repeats(tunnel_names, columns, nodes, links, faults)
    tunnels = Tunnels(
        name=tunnel_names,
        source=np.array([path[0] for path in nodes], dtype=np.int64),
        target=np.array([path[-1] for path in nodes], dtype=np.int64),
        is_segments=np.array([kind == "segments" for kind in columns["kind"]], dtype=bool),
        weight=np.ones(count) if "weight" not in frame else frame["weight"].fillna(1.0).to_numpy(float),
        nodes=nodes,
        links=links,
    )
    return tunnels, faults.report()


def _list_columns(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the texts of each column but the path and the weight; empty texts where it is not there."""
    return {
        name: frame[name].tolist() if name in frame else [""] * len(frame)
        for name in ("source", "target", "kind", "parallel", "name")
    }


def _name_tunnels(stated: list[str], paths: list[list[str]]) -> list[str]:
    """Return the given names, and for the others their paths, numbered where several have the same."""
    taken = Counter(name for name in stated if name)
    names = []
    for name, path in zip(stated, paths, strict=True):
        if not name:
            text = " > ".join(path)
            taken[text] += 1
            name = text if taken[text] == 1 else f"{text} ({taken[text]})"
        names.append(name)
    return names


def _add_row_faults(
    faults: RowFaults,
    row: int,
    path: list[str],
    node_rows: tuple[int, ...],
    columns: dict[str, list[str]],
    names: Sequence[str],
) -> None:
    """Add the faults of a row in itself: of its path, its nodes, its kind and its parallel links."""
    for text_fault in _path_faults(path, node_rows, columns, row):
        faults.add(row, text_fault)
    for name, node in zip(path, node_rows, strict=True):
        if node < 0:
            faults.add_unknown_node(row, name, "path", names)
    kind = columns["kind"][row]
    if kind not in ("", *KINDS):
        faults.add(row, f"kind '{kind}' is not explicit or segments{did_you_mean(kind, KINDS)}")
    if kind == "segments" and columns["parallel"][row]:
        faults.add(row, "parallel is given, but a list of segments names no links")


def _path_faults(
    path: list[str], node_rows: tuple[int, ...], columns: dict[str, list[str]], row: int
) -> Iterator[str]:
    """Yield the faults of a path in itself."""
    if len(path) < 2:
        yield f"path is '{abbreviate(path[0] if path else '')}', must be two nodes at least, such as A > B"
        return
    if "" in path:
        yield "path has an empty name"
        return
    for end, name in (("source", path[0]), ("target", path[-1])):
        if columns[end][row] not in ("", name):
            verb = "starts" if end == "source" else "ends"
            yield f"path {verb} at '{name}', but {end} is '{columns[end][row]}'"
    seen: set[int] = set()
    for name, node in zip(path, node_rows, strict=True):
        if node >= 0 and node in seen:
            yield f"path passes '{name}' twice"
        seen.add(node)


def _find_steps(
    link_names: LinkNames,
    path: list[str],
    node_rows: tuple[int, ...],
    parallel: str,
    faults: RowFaults,
    row: int,
) -> tuple[int, ...]:
    """Return the link of each step, -1 where it is down; add a fault for a step without a link."""
    fault = link_names.missing_step(path, node_rows)
    if fault is not None:
        faults.add(row, fault)
        return ()
    if not parallel:
        return tuple(link_names.find_any(*ends) or 0 for ends in itertools.pairwise(node_rows))
    numbers = parse_numbers(parallel)
    if numbers is None or len(numbers) != len(node_rows) - 1:
        steps = len(node_rows) - 1
        faults.add(row, f"parallel is '{abbreviate(parallel)}', must be a JSON list of {steps} numbers")
        return ()
    links: list[int] = []
    for step, nth in enumerate(numbers):
        link = link_names.find(node_rows[step], node_rows[step + 1], nth)
        if link is None:
            faults.add(row, f"parallel: there is no link {path[step]} > {path[step + 1]} with number {nth}")
            return ()
        links.append(link)
    return tuple(links)


def _add_repeats(
    tunnel_names: list[str],
    columns: dict[str, list[str]],
    nodes: list[tuple[int, ...]],
    links: list[tuple[int, ...]],
    faults: RowFaults,
) -> None:
    """Add a fault for each tunnel with the path or the name of one before."""
    paths: dict[object, int] = {}
    names: dict[str, int] = {}
    first = faults.frame.attrs.get("first_row", 1)
    for row, name in enumerate(tunnel_names):
        if row in faults.lines:
            continue
        key = (columns["kind"][row] == "segments", nodes[row], columns["parallel"][row] and links[row])
        before = paths.setdefault(key, row)
        if before != row:
            faults.add(row, f"path is there already in row {first + int(faults.frame.index[before])}")
            continue
        before = names.setdefault(name, row)
        if before != row:
            where = first + int(faults.frame.index[before])
            faults.add(row, f"name '{abbreviate(name)}' is there already in row {where}")
