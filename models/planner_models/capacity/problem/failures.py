"""Sets of failures to survive: every link, every node, or every two links."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Final, Literal

import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner_models.capacity.problem.problem import CapacityPlanning

FailureSet = Annotated[
    Literal["table", "none", "links", "nodes", "double_links"],
    Field(
        description="failures to survive; table: those of the table; none; links: each link alone, both "
        "directions together; nodes: each node alone; double_links: each link alone and every two together"
    ),
]
MOST_FAILURES: Final = 100_000


def list_failures(problem: CapacityPlanning, chosen: FailureSet) -> pd.DataFrame | None:
    """Return the table of a set of failures; None for no failure.

    raises  InputError for more failures than a plan can be checked for
    """
    if chosen == "table":
        return problem.failures
    if chosen == "none":
        return None
    lines = list(_group_directions(problem).values())
    sets: list[tuple[str, ...]]
    if chosen == "nodes":
        sets = [(name,) for name in problem.nodes["node"]]
    else:
        sets = [tuple(line) for line in lines]
        if chosen == "double_links":
            count = len(lines) * (len(lines) + 1) // 2
            if count > MOST_FAILURES:
                raise InputError(f"failures: double_links are {count:,}, must be at most {MOST_FAILURES:,}")
            sets += [(*one, *other) for one, other in itertools.combinations(lines, 2)]
    rows = [(_name(names), member) for names in sets for member in names]
    return pd.DataFrame(rows, columns=["failure", "member"])


def _group_directions(problem: CapacityPlanning) -> dict[tuple[int, int, int], list[str]]:
    """Return the names of links that fail together: a directed link and the opposite one."""
    groups: dict[tuple[int, int, int], list[str]] = {}
    for place, (tail, head, nth) in enumerate(_numbered_ends(problem)):
        key = (place, 0, 0) if problem.direction != "directed" else (min(tail, head), max(tail, head), nth)
        groups.setdefault(key, []).append(problem.names[place])
    return groups


def _numbered_ends(problem: CapacityPlanning) -> Iterator[tuple[int, int, int]]:
    """Yield the ends of each link, and which of the links with these ends it is."""
    counts: dict[tuple[int, int], int] = {}
    for ends in zip(problem.tail.tolist(), problem.head.tolist(), strict=True):
        counts[ends] = counts.get(ends, 0) + 1
        yield *ends, counts[ends]


def _name(members: tuple[str, ...]) -> str:
    return " + ".join(members)
