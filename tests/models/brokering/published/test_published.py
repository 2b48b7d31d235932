"""Published values: every row that a target judges exists. What comes out is in `expected`."""

from __future__ import annotations

from planner.runs.reproduction import read_published
from planner_models.brokering import SYSTEM


def test_every_row_is_published_and_judged_once() -> None:
    rows = [row for target in SYSTEM.studies.targets for row in target.rows]
    assert len(rows) == len(set(rows))
    assert set(rows) <= set(read_published("brokering"))
    for target in SYSTEM.studies.targets:
        assert {row for group in target.orders for row in group} <= set(target.rows)


def test_every_value_is_a_fact_of_the_paper() -> None:
    for row in read_published("brokering").values():
        assert row["quantity"]
        assert row["value"]
        assert "line" not in row["note"].split()
