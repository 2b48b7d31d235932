"""Topologies that are no chain of tiers: links without cycles, which relays turn into a chain.

The level of a cluster is the number of links on the longest path to it from a source; groups are all on the
last level. A link over several levels passes a relay on each level between: a cluster without limits of its
own, which receives from this link only. What a link carries, and its cost, stay the same, so that trees,
bounds and integer program hold for the given topology. The thesis leaves such topologies open (Mukerjee 2018,
4.8).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.tables import file_name, row_name
from planner.errors import InputError
from planner.formatting import counted
from planner.io.table_files import find_tables, read_tables
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import OPTIONAL_TABLES, TABLES

if TYPE_CHECKING:
    import networkx as nx

Link = tuple[str, str]  # tail and head

MAX_RELAYS: Final = 1_000_000
FREE: Final = {"cost": 0.0, "latency_ms": 0.0, "bill": ""}
"""Columns of the pieces of a link above the last one."""


def read_any_topology(
    *, path: Annotated[Path, Field(description="folder with the tables, links from any cluster to any other")]
) -> LiveVideo:
    """Read a problem with links from any cluster to any other, without cycles.

    raises  InputError for faulty tables, cycles, or clusters that are neither source nor fed
    """
    tables = read_tables(list(TABLES), find_tables(list(TABLES), path, OPTIONAL_TABLES))
    return LiveVideo.from_tables(add_relays(tables))


def add_relays(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables of a problem with relays, so that links lead from a level to the next.

    Clusters without a link into them are sources; those that request are groups. Where nothing changes,
    tiers keep their names. The last piece of a link has its capacity, cost, delay and bill; those above it
    have its capacity, and cost nothing. Pinned links are pinned on all pieces, forbidden ones on the last.
    """
    import networkx as nx

    clusters, links = tables["clusters"], tables["links"]
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(clusters["cluster"].astype(str))
    graph.add_edges_from(zip(links["tail"].astype(str), links["head"].astype(str), strict=True))
    groups = _find_groups(graph, tables)
    _require_levels(graph, groups, tables)
    level = _find_levels(graph, groups)
    rows: list[dict[str, Any]] = []
    relays: list[tuple[str, int]] = []
    pieces: dict[Link, list[Link]] = {}
    for row in _list_rows(links):
        tail, head = str(row["tail"]), str(row["head"])
        names = _name_relays(tail, head, level[head] - level[tail] - 1)
        chain = [tail, *names, head]
        pieces[tail, head] = list(itertools.pairwise(chain))
        relays += [(name, level[tail] + step + 1) for step, name in enumerate(names)]
        free = {name: value for name, value in FREE.items() if name in row}
        rows += [{**row, **free, "tail": a, "head": b} for a, b in pieces[tail, head][:-1]]
        rows.append({**row, "tail": chain[-2]})
    if len(relays) > MAX_RELAYS:
        raise InputError(f"links: need {len(relays):,} relays, at most {MAX_RELAYS:,} are possible")
    taken = {name for name, _ in relays} & set(graph)
    if taken:
        where = file_name(clusters, "clusters")
        raise InputError(f"{where}: '{min(taken)}' is the name of a relay here; name the cluster differently")
    names_of = _name_levels(clusters, level)
    added = pd.DataFrame(relays, columns=["cluster", "tier"])
    tiers = clusters["cluster"].astype(str).map(level).map(names_of)
    made = pd.concat(
        [clusters.assign(tier=tiers), added.assign(tier=added["tier"].map(names_of))], ignore_index=True
    )
    if relays:
        add_note(
            f"assumed: links over several levels pass {counted(len(relays), 'relays')}, clusters "
            "without limits or costs, named after the link; Algorithm 1 counts them as hops"
        )
    return {
        **tables,
        "clusters": made,
        "links": pd.DataFrame(rows, columns=list(links)),
        **{
            name: _divide_rules(tables[name], pieces, name)
            for name in ("pinned", "forbidden")
            if name in tables
        },
    }


def _find_groups(graph: nx.MultiDiGraph, tables: Mapping[str, pd.DataFrame]) -> set[str]:
    """Return the groups: clusters that request, and those of their tiers that send to nobody."""
    requesting = set(tables["requests"]["group"].astype(str))
    tier_of = dict(zip(*(tables["clusters"][name].astype(str) for name in ("cluster", "tier")), strict=True))
    tiers = {tier_of.get(name) for name in requesting}
    idle = {name for name, tier in tier_of.items() if tier in tiers and not graph.out_degree(name)}
    return requesting | idle


def _require_levels(graph: nx.MultiDiGraph, groups: set[str], tables: Mapping[str, pd.DataFrame]) -> None:
    """Raise InputError for a cycle, a link out of a group, or a cluster that is no source and is not fed."""
    import networkx as nx

    links, clusters = tables["links"], tables["clusters"]
    names = set(clusters["cluster"].astype(str))
    ends = zip(links["tail"].astype(str), links["head"].astype(str), strict=True)
    faults = []
    for row, (tail, head) in enumerate(ends):
        where = row_name(links, "links", row)
        faults += [f"{where}: '{end}' is no cluster" for end in (tail, head) if end not in names]
        if tail in groups:
            faults.append(f"{where}: leads out of the group '{tail}': groups only receive")
    if faults:
        raise InputError(*faults[:5])
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        raise InputError(
            f"{file_name(links, 'links')}: links form a cycle: {' -> '.join([*cycle, cycle[0]])}; streams go "
            "one way, leave out one of these links"
        )
    unfed = sorted(group for group in groups & names if graph.in_degree(group) == 0)
    if unfed:
        raise InputError(f"{file_name(links, 'links')}: no link leads to the group '{unfed[0]}'")
    _require_sources(graph, clusters)


def _require_sources(graph: nx.MultiDiGraph, clusters: pd.DataFrame) -> None:
    """Raise InputError for a cluster without a link into it in a tier of clusters that receive."""
    is_fed = np.array([graph.in_degree(name) > 0 for name in clusters["cluster"].astype(str)], dtype=bool)
    receiving = set(clusters["tier"][is_fed])
    for row in np.flatnonzero(~is_fed).tolist():
        name, tier = clusters["cluster"].iloc[row], clusters["tier"].iloc[row]
        if tier in receiving:
            raise InputError(
                f"{row_name(clusters, 'clusters', row)}: '{name}' has no link into it, as sources have, and "
                f"other clusters of its tier '{tier}' have: give sources a tier of their own"
            )


def _find_levels(graph: nx.MultiDiGraph, groups: set[str]) -> dict[str, int]:
    """Return the links on the longest path to each cluster; groups are on one level below all others."""
    import networkx as nx

    level: dict[str, int] = {}
    for name in nx.topological_sort(graph):
        level[name] = max((level[above] + 1 for above in graph.predecessors(name)), default=0)
    last = 1 + max((value for name, value in level.items() if name not in groups), default=0)
    return {name: last if name in groups else value for name, value in level.items()}


def _list_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _name_relays(tail: str, head: str, count: int) -> list[str]:
    """Return the names of the relays of a link."""
    return [f"{tail}~{head}"] if count == 1 else [f"{tail}~{head}~{n + 1}" for n in range(count)]


def _name_levels(clusters: pd.DataFrame, level: Mapping[str, int]) -> dict[int, str]:
    """Return a name for each level: the tier of its clusters where no other level has it, else its number."""
    tiers_of: dict[int, set[str]] = {}
    for name, tier in zip(clusters["cluster"].astype(str), clusters["tier"].astype(str), strict=True):
        tiers_of.setdefault(level[name], set()).add(tier)
    levels = range(max(level.values(), default=0) + 1)
    single = {value: next(iter(tiers)) for value, tiers in tiers_of.items() if len(tiers) == 1}
    counts = pd.Series([tier for tiers in tiers_of.values() for tier in tiers]).value_counts()
    return {
        value: single[value] if value in single and counts[single[value]] == 1 else f"level {value}"
        for value in levels
    }


def _divide_rules(rules: pd.DataFrame, pieces: Mapping[Link, Iterable[Link]], name: str) -> pd.DataFrame:
    """Return rules on links as rules on their pieces: all of them where pinned, the last where forbidden.

    raises  InputError for a rule with * for an end, where its links have several pieces
    """
    rows: list[dict[str, Any]] = []
    has_relays = any(len(list(chain)) > 1 for chain in pieces.values())
    for number, row in enumerate(_list_rows(rules)):
        ends = (str(row["tail"]), str(row["head"]))
        if "*" in ends and has_relays:
            where = row_name(rules, name, number)
            raise InputError(f"{where}: name tail and head; * is not possible where links pass relays")
        chain = list(pieces.get(ends, [ends]))
        rows += [{**row, "tail": a, "head": b} for a, b in (chain if name == "pinned" else chain[-1:])]
    return pd.DataFrame(rows, columns=list(rules))
