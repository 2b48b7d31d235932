"""Meaning of rows of links if no table states it: lines for both directions, or one direction each.

Many tables have one row for a line, others have a row for each direction of it. Read as lines for both
directions, the latter count each line twice.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pandas as pd

from planner.contract.notes import add_note
from planner.contract.questions import OpenQuestion
from planner.contract.tables import file_name, row_name, shorten_faults
from planner.errors import InputError
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import Direction, name_by_ends

LINK_TABLES: Final = ("links", "candidates")
NAMED_LINKS: Final = (("modules", "link"), ("failures", "member"))
"""Tables and columns that name links."""


def settle_direction(problem: CapacityPlanning, direction: Direction | None) -> None:
    """Add a note that links are taken as undirected, unless a direction or the table `network` is given.

    raises  InputError where every row of links, or of candidates, has its opposite, and where tables name
            one direction of a link
    """
    if direction is not None or problem.states_direction:
        return
    frames = {name: getattr(problem, name) for name in LINK_TABLES if getattr(problem, name) is not None}
    opposites = {name: _count_opposites(frame) for name, frame in frames.items()}
    faults = [
        _describe_doubled_lines(frame, name)
        for name, frame in frames.items()
        if 0 < len(frame) == opposites[name]
    ]
    faults = faults or _find_names_of_one_direction(problem)
    if faults:
        raise InputError(*faults)
    for name, frame in frames.items():
        if opposites[name]:
            where = file_name(frame, name)
            add_note(
                f"warning: {where}: {opposites[name]:,} of {len(frame):,} rows have an opposite one and are "
                f"read as parallel lines, such as {_name_opposites(frame, name)}; if each row is one "
                'direction, say problem.direction = "directed"'
            )
    add_note(_describe_sharing(problem))


def ask_direction(problem: CapacityPlanning) -> list[OpenQuestion]:
    """Return the question of the meaning of a row of links, if every one of them has its opposite."""
    frames = (getattr(problem, name) for name in LINK_TABLES)
    if problem.states_direction or not any(
        frame is not None and len(frame) and _count_opposites(frame) == len(frame) for frame in frames
    ):
        return []
    return [
        OpenQuestion(
            parameter="direction",
            text="what is a row of the table links, of which every one has its opposite",
            answers={
                "directed": "one direction of a line",
                "undirected": "a line, whose capacity both directions share",
                "bidirected": "a line, whose capacity each direction has",
            },
        )
    ]


def _count_opposites(frame: pd.DataFrame) -> int:
    """Return the number of rows that can be paired with a row of the opposite direction."""
    count = Counter(zip(frame["tail"], frame["head"], strict=True))
    return sum(min(rows, count[head, tail]) for (tail, head), rows in count.items())


def _name_opposites(frame: pd.DataFrame, table: str) -> str:
    """Return the first row with an opposite one, and that one: `row 1 (a to b) and row 2 (b to a)`."""
    ends = list(zip(frame["tail"], frame["head"], strict=True))
    directed = set(ends)
    first = next(row for row, (tail, head) in enumerate(ends) if (head, tail) in directed)
    names = []
    for row in (first, ends.index(ends[first][::-1])):
        number = row_name(frame, table, row).removeprefix(file_name(frame, table)).strip()
        names.append(f"{number} ({ends[row][0]} to {ends[row][1]})")
    return " and ".join(names)


def _describe_doubled_lines(frame: pd.DataFrame, table: str) -> str:
    """Return a fault with the readings of a table in which every row has its opposite, and their settings."""
    rows = _name_opposites(frame, table)
    return (
        f"{file_name(frame, table)}: every row has its opposite, such as {rows}: set problem.direction, or "
        'direction in the table network: "directed" if a row is one direction of a line; "undirected" or '
        '"bidirected" if it is a line of its own, whose capacity both directions share or each has. If a '
        'module serves both directions of a line, keep one row of it and set "bidirected"'
    )


def _find_names_of_one_direction(problem: CapacityPlanning) -> list[str]:
    """Return a fault for each name of one direction of a link, as in a->b, where links are undirected."""
    lines = problem.lines
    one_way = set(name_by_ends(lines["tail"], lines["head"], "directed"))
    one_way -= {*problem.names, *problem.nodes["node"]}
    faults = []
    for table, column in NAMED_LINKS:
        frame = getattr(problem, table)
        if frame is None or column not in frame:
            continue
        named = [
            f"{row_name(frame, table, row)}: {column} '{name}' is one direction, and links are for both: say "
            f"problem.direction = \"directed\", or name it '{problem.names[problem.find_line(name)]}'"
            for row, name in enumerate(frame[column])
            if name in one_way
        ]
        faults += shorten_faults(named, file_name(frame, table), "with one direction of a link")
    return faults


def _describe_sharing(problem: CapacityPlanning) -> str:
    """Return a note that both directions share the capacity of links, and on metrics that depend on it."""
    pairs = set(zip(problem.demands["source"], problem.demands["target"], strict=True))
    both = (
        "demands of both directions add up on"
        if any(pair[::-1] in pairs for pair in pairs)
        else ("traffic of both directions shares")
    )
    return (
        f"assumed: {file_name(problem.links, 'links')}: {both} the capacity of a link; problem.direction = "
        '"bidirected" gives it to each direction, "directed" to traffic from tail to head only'
    )
