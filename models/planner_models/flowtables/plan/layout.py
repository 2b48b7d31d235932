"""Plan table `layout`: which flow tables of the switch are merged, so that a miss passes fewer of them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.contract.table import Table, number
from planner.errors import PlanRejected
from planner_models.flowtables.problem.goto_merging import Group, Paths, choose_merging, count_rules
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.schema import MOST_ENTRIES, MOST_TABLES

LAYOUT: Final = Table(
    name="layout",
    about="flow tables of the switch that become one table; all of them, in order",
    columns={
        "first_table": number("number of the first of them", at_least=0, at_most=MOST_TABLES - 1, whole=True),
        "last_table": number("number of the last of them", at_least=0, at_most=MOST_TABLES - 1, whole=True),
        "entries": number(
            "entries of the one table, with one for packets without a match",
            at_least=0,
            at_most=MOST_ENTRIES,
            whole=True,
        ),
    },
    key=("first_table",),
)


def make_layout(problem: FlowTables) -> pd.DataFrame:
    """Return the table `layout`: the fewest tables with entries within the limit of the switch."""
    numbers = np.array(problem.table_numbers, dtype=float)
    merging = choose_merging(problem)
    first, last = np.array(merging.groups).T
    return pd.DataFrame(
        {
            "first_table": numbers[first],
            "last_table": numbers[last],
            "entries": np.array(merging.entries, dtype=float),
        }
    )


def read_groups(problem: FlowTables, layout: pd.DataFrame) -> list[Group]:
    """Return the first and last place of the tables of each group.

    raises  PlanRejected where groups are not all flow tables in order, or their entries are not those counted
    """
    index_of = {float(number): row for row, number in enumerate(problem.table_numbers)}
    frame = layout.sort_values("first_table", kind="stable")
    paths = Paths(problem) if problem.is_plain else None
    sizes = () if problem.is_plain else count_rules(problem)
    groups: list[Group] = []
    following = 0
    for row, group in frame.iterrows():
        where = f"layout row {int(str(row)) + 1}"
        for column in ("first_table", "last_table"):
            if group[column] not in index_of:
                raise PlanRejected(f"{where}: {column} is {group[column]:g}, the switch has no such table")
        first, last = index_of[group["first_table"]], index_of[group["last_table"]]
        if first != following or last < first:
            raise PlanRejected(
                f"{where}: tables {group['first_table']:g} to {group['last_table']:g}, must start at table "
                f"{problem.table_numbers[min(following, len(index_of) - 1)]} and end at it or after it"
            )
        if paths is None and first != last:
            raise PlanRejected(
                f"{where}: merges tables {group['first_table']:g} to {group['last_table']:g}, each must stay "
                "alone: rules write registers or headers, or packets come back"
            )
        entries = sizes[first] if paths is None else paths.count(first, last)
        if entries != group["entries"]:
            counted = "too many" if entries is None else f"{entries:,}"
            raise PlanRejected(f"{where}: entries is {group['entries']:g}, the merged table has {counted}")
        groups.append((first, last))
        following = last + 1
    if following < len(index_of):
        raise PlanRejected(f"layout: table {problem.table_numbers[following]} is in no row")
    return groups
