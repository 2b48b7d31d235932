"""The order of the tiers, which the links tell: a chain from the sources to the groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.tables import few, file_name, row_name

if TYPE_CHECKING:
    from planner_models.livevideo.problem import LiveVideo

Pair = tuple[str, str]


def joined(problem: LiveVideo) -> dict[Pair, int]:
    """The pairs of tiers that links join, with the first link of each."""
    tier = problem.clusters["tier"].to_numpy()
    pairs = pd.DataFrame({"one": tier[problem.tail], "other": tier[problem.head]})
    places = np.flatnonzero(~pairs.duplicated().to_numpy()).tolist()
    return {(str(pairs["one"].iloc[row]), str(pairs["other"].iloc[row])): row for row in places}


def chain(pairs: Iterable[Pair]) -> list[str] | None:
    """The tiers in the order of the links between them; None where they form no single chain."""
    pairs = list(pairs)
    after = dict(pairs)
    if len(after) != len(pairs):
        return None
    first = set(after) - set(after.values())
    if len(first) != 1:
        return None
    found = [first.pop()]
    while found[-1] in after and len(found) <= len(after):
        found.append(after[found[-1]])
    return found if len(found) == len(after) + 1 and len(set(found)) == len(found) else None


def cycle(pairs: Iterable[Pair]) -> list[str] | None:
    """Tiers that lead back to the first of them."""
    after: dict[str, list[str]] = {}
    for one, other in pairs:
        after.setdefault(one, []).append(other)
    for start in after:
        paths = [[start]]
        seen: set[str] = set()
        while paths:
            path = paths.pop()
            for tier in after.get(path[-1], []):
                if tier == start:
                    return [*path, tier]
                if tier not in seen:
                    seen.add(tier)
                    paths.append([*path, tier])
    return None


def faults(problem: LiveVideo) -> Iterator[str]:
    """Links that do not lead from a tier to the next, and clusters of a tier where they must not be."""
    pairs = joined(problem)
    where = file_name(problem.links, "links")
    for (one, other), row in pairs.items():
        if one == other:
            where = row_name(problem.links, "links", row)
            yield f"{where}: joins two clusters of tier '{one}', must lead to the next"
            return
    if found := cycle(pairs):
        yield f"{where}: the tiers form a cycle: " + " -> ".join(found)
        return
    order = chain(pairs)
    if order is None:
        yield _no_chain(problem, pairs, where)
        return
    alone = sorted(set(problem.clusters["tier"]) - set(order))
    if alone:
        yield f"{file_name(problem.clusters, 'clusters')}: no link joins tier '{alone[0]}' to another"
        return
    yield from _misplaced(problem, order, "requests", "group", len(order) - 1)
    yield from _misplaced(problem, order, "holders", "source", 0)


def _no_chain(problem: LiveVideo, pairs: dict[Pair, int], where: str) -> str:
    for (one, other), row in pairs.items():
        longer = [p for p in pairs if p[0] == one and p[1] != other]
        if longer:
            return (
                f"{row_name(problem.links, 'links', row)}: "
                f"leads from tier '{one}' to '{other}', other links "
                f"from '{one}' to '{longer[0][1]}': a tier must lead to one next tier only"
            )
    return f"{where}: the tiers must form one chain, found " + ", ".join(f"{a}->{b}" for a, b in pairs)


def _misplaced(problem: LiveVideo, order: list[str], table: str, column: str, wanted: int) -> Iterator[str]:
    frame: pd.DataFrame = getattr(problem, table)
    places = problem.places(frame[column])
    rows = np.flatnonzero(problem.level[places] != wanted).tolist()
    found = [
        f"{row_name(frame, table, row)}: {column} '{frame[column].iloc[row]}' is of tier "
        f"'{order[problem.level[places[row]]]}', must be of tier '{order[wanted]}'"
        for row in rows
    ]
    yield from few(found, file_name(frame, table), f"with a {column} of another tier")
