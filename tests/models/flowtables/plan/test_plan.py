"""The plan table `layout`: the fewest tables within the limit, and what is no layout of the switch."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.flowtables import SYSTEM, Cache, FlowTables, measure
from planner_models.flowtables.problem.goto_merging import find_mergings
from tests.models.flowtables.switches import make

CHAIN = [
    (9, "a=1/1", "goto:1", 0), (8, "b=1", "goto:2", 0), (1, "", "out:1", 0), (5, "b=2/2", "goto:2", 1),
    (4, "c=1", "drop", 1), (3, "a=7", "out:2", 2), (2, "b=3", "goto:4", 2), (7, "c=2", "out:3", 4),
]  # fmt: skip


def plan_of(problem: FlowTables) -> Cache:
    plan = SYSTEM.design("all").run(problem).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("limit", [0, 5, 8, 12, 14, 100])
def test_the_layout_has_the_fewest_tables_within_the_limit(limit: int) -> None:
    problem = make(CHAIN, table_limit=float(limit))
    plan = plan_of(problem)
    assert plan.layout is not None
    sizes = {merging.lookups: sum(merging.entries) for merging in find_mergings(problem)}
    upper = limit or sizes[len(problem.table_numbers)]
    fitting = [lookups for lookups, entries in sizes.items() if entries <= upper]
    entries = plan.layout["entries"].sum()
    assert len(plan.layout) == min(fitting, default=min(sizes, key=lambda lookups: sizes[lookups]))
    assert entries == sizes[len(plan.layout)]
    assert not len(SYSTEM.plan.check(problem, plan))
    metrics = measure(problem, plan, None)
    assert (metrics["tables"], metrics["table_entries"]) == (len(plan.layout), entries)


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (0, "entries", 3.0, "layout row 1: entries is 3, the merged table has"),
        (0, "first_table", 1.0, "layout row 1: tables 1 to 4, must start at table 0"),
        (0, "last_table", 2.0, "layout row 1: entries is"),
        (0, "last_table", 3.0, "layout row 1: last_table is 3, the switch has no such table"),
    ],
)
def test_what_is_no_layout_is_rejected(row: int, column: str, value: float, message: str) -> None:
    problem = make(CHAIN, table_limit=100.0)
    tables = plan_of(problem).to_tables()
    tables["layout"] = tables["layout"].copy()
    tables["layout"].loc[row, column] = value
    with pytest.raises(PlanRejected, match=message):
        SYSTEM.plan.from_tables(problem, tables)


def test_tables_that_are_left_out_are_named() -> None:
    problem = make(CHAIN, table_limit=100.0)
    layout = pd.DataFrame({"first_table": [0.0], "last_table": [1.0], "entries": [5.0]})
    tables = {**plan_of(problem).to_tables(), "layout": layout}
    with pytest.raises(PlanRejected, match="table 2 is in no row"):
        SYSTEM.plan.from_tables(problem, tables)
    del tables["layout"]  # of a plan without it, tables stay as they are
    assert measure(problem, SYSTEM.plan.from_tables(problem, tables), None)["tables"] == 4
