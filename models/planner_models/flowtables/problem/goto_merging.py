"""Tables of a switch that packets pass by `goto`, merged into fewer tables.

A merged table has an entry for each path through its tables whose cubes meet, in the order of the first table
and then of those after it, so that the first match is that of the paths. It has a copy for each of its tables
that another group goes to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner_models.flowtables.problem.actions import DROP
from planner_models.flowtables.problem.entries import GOTO
from planner_models.flowtables.problem.pipeline import Merging, choose_groups
from planner_models.flowtables.problem.problem import FlowTables

MOST_ENTRIES: Final = 100_000
Path = tuple[int, int, int]
"""Value and mask of a cube, and the entry that ends its path; -1 where no rule matches."""
Group = tuple[int, int]


class Paths:
    """The entries of each table of a problem, and the paths through groups of tables."""

    def __init__(self, problem: FlowTables, max_entries: int = MOST_ENTRIES) -> None:
        self.problem, self.most = problem, max_entries
        entries = problem.entries
        value, mask = (problem.layout.to_numbers(words) for words in (entries.value, entries.mask))
        self.following = entries.next.tolist()
        self.tables: list[list[Path]] = []
        for start, end in zip(entries.start.tolist(), entries.start[1:].tolist(), strict=False):
            rows = [(value[row], mask[row], row) for row in range(start, end)]
            catch_all = next((index for index, row in enumerate(rows) if not row[1]), None)
            self.tables.append([*rows, (0, 0, -1)] if catch_all is None else rows[: catch_all + 1])
        self.table_of = np.searchsorted(entries.start, np.arange(len(entries.action)), side="right") - 1

    def find_entrances(self, group: Group) -> list[int]:
        """Return the tables of a group that packets come to from outside of it."""
        first, last = group
        entrances = {0} if first == 0 else set()
        for row, target in enumerate(self.following):
            if first <= target <= last and not first <= self.table_of[row] <= last:
                entrances.add(target)
        return sorted(entrances)

    def walk(self, group: Group, table: int, value: int = 0, mask: int = 0) -> Iterator[Path]:
        """Yield the paths from a table to the ends of its group with cubes that meet, in matching order."""
        for own_value, own_mask, row in self.tables[table]:
            if (value ^ own_value) & mask & own_mask:
                continue
            joint = (value | own_value, mask | own_mask)
            target = self.following[row] if row >= 0 else -1
            if group[0] <= target <= group[1]:
                yield from self.walk(group, target, *joint)
            else:
                yield *joint, row

    def list_paths(self, group: Group, table: int, limit: int) -> list[Path] | None:
        """Return the paths from a table with different cubes; None for more than `limit`."""
        paths: dict[tuple[int, int], Path] = {}
        for path in self.walk(group, table):
            paths.setdefault(path[:2], path)  # a later path of the same cube never matches
            if len(paths) > limit:
                return None
        return list(paths.values())

    def count(self, first: int, last: int) -> int | None:
        """Return the entries of the tables from a first to a last one in one table; None: too many.

        A table alone is never too large: it is in the switch already.
        """
        total, limit = 0, self.most if first < last else len(self.tables[first])
        for table in self.find_entrances((first, last)):
            paths = self.list_paths((first, last), table, limit - total)
            if paths is None:
                return None
            total += len(paths)
        return total


def find_mergings(problem: FlowTables, *, memory: int | None = None) -> list[Merging]:
    """Return for each number of tables that packets pass at most the groups with the fewest entries.

    Tables stay as they are where rules write what others read, or packets come back from tables.

    memory  most entries of all tables together; a table never has more than 100,000
    """
    if not problem.is_plain:
        count = len(problem.table_numbers)
        return [Merging(groups=tuple((row, row) for row in range(count)), entries=count_rules(problem))]
    limit = MOST_ENTRIES if memory is None else min(memory, MOST_ENTRIES)
    return choose_groups(len(problem.table_numbers), Paths(problem, limit).count, memory=memory)


def count_rules(problem: FlowTables) -> tuple[int, ...]:
    """Return the entries of each flow table as it is, with one for packets that no rule matches."""
    pipeline = problem.compiled.pipeline
    counts = []
    for start, end in zip(pipeline.start, pipeline.start[1:], strict=False):
        catch_all = next((row for row in range(start, end) if not pipeline.cube[row][1]), end)
        counts.append(catch_all - start + 1)
    return tuple(counts)


def choose_merging(problem: FlowTables) -> Merging:
    """Return the groups with the fewest tables for a miss within `table_limit` entries.

    Where none fits, those with the fewest entries. They are found once for each problem.
    """
    cached = problem.__dict__.get("_merging")
    if isinstance(cached, Merging):
        return cached
    count = len(problem.table_numbers)
    if not problem.is_plain:
        [merging] = find_mergings(problem)
    elif count == 1:
        merging = Merging(groups=((0, 0),), entries=(Paths(problem).count(0, 0) or 0,))
    else:
        limit = int(problem.cost("table_limit")) or sum(len(table) for table in Paths(problem).tables)
        fitting = find_mergings(problem, memory=limit)
        merging = fitting[0] if fitting else min(find_mergings(problem), key=lambda item: sum(item.entries))
    problem.__dict__["_merging"] = merging
    return merging


def merge_groups(problem: FlowTables, groups: Sequence[Group]) -> FlowTables:
    """Return the problem with the tables of each group merged; packets get the same actions."""
    paths = Paths(problem)
    entrances = [(group, table) for group in groups for table in paths.find_entrances(group)]
    number = {table: index for index, (_, table) in enumerate(entrances)}
    rows = []
    names = problem.rules["action"].astype(str).tolist()
    for group, table in entrances:
        paths_found = paths.list_paths(group, table, MOST_ENTRIES) or []
        for index, (value, mask, row) in enumerate(paths_found):
            action = DROP
            if row >= 0:
                target = paths.following[row]
                action = names[problem.entries.rule[row]] if target < 0 else f"{GOTO}{number[target]}"
            match = problem.layout.format_match(value, mask)
            rows.append((float(len(paths_found) - index), match, action, float(number[table])))
    rules = pd.DataFrame(rows, columns=["priority", "match", "action", "table"])
    return FlowTables(rules=rules, flows=problem.flows, fields=problem.fields, costs=problem.costs)
