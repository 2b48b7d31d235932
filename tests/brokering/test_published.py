"""Published values: every row that a target judges exists, and the small targets come out."""

from __future__ import annotations

import pytest

from planner.reproduce import Verdict, find_targets, published, reproduce
from planner_models.brokering import SYSTEM

SMALL = ("table_3_2", "overbooking", "figure_3_10", "messages", "profits")


def test_every_row_is_published_and_judged_once() -> None:
    rows = [row for target in SYSTEM.targets for row in target.rows]
    assert len(rows) == len(set(rows))
    assert set(rows) <= set(published("brokering"))
    for target in SYSTEM.targets:
        assert {row for group in target.orders for row in group} <= set(target.rows)


def test_every_value_is_a_fact_of_the_paper() -> None:
    for row in published("brokering").values():
        assert row["quantity"]
        assert row["value"]
        assert "line" not in row["note"].split()


@pytest.mark.parametrize("name", SMALL)
def test_equations_tables_of_choices_and_messages_come_out(name: str) -> None:
    [(system, target)] = find_targets([f"brokering/{name}"])
    done = reproduce(system, target, quick=True)
    assert done.error is None
    assert {row.verdict for row in done.rows} == {Verdict.REPRODUCED}


@pytest.mark.slow
@pytest.mark.parametrize("name", [target.name for target in SYSTEM.targets if target.name not in SMALL])
def test_every_target_can_be_run(name: str) -> None:
    [(system, target)] = find_targets([f"brokering/{name}"])
    done = reproduce(system, target, quick=True)
    assert done.error is None
    judged = [row for row in done.rows if row.verdict is not Verdict.NOT_AVAILABLE]
    assert len(judged) == len(target.rows)
    assert all(row.ours is not None for row in judged) or name == "figure_3_18"
