"""What the targets come to, beside the numbers of their verdicts."""

from __future__ import annotations

from planner.reproduce import Reproduction, Verdict
from planner_models.brokering import SYSTEM


def comes_out(done: Reproduction) -> None:
    """Equations, tables of choices and messages do, all of them."""
    assert {row.verdict for row in done.rows} == {Verdict.REPRODUCED}


def is_judged(done: Reproduction) -> None:
    """Every row has a value of ours."""
    judged = [row for row in done.rows if row.verdict is not Verdict.NOT_AVAILABLE]
    assert len(judged) == len(done.target.rows)
    assert all(row.ours is not None for row in judged) or done.target.name == "figure_3_18"


SMALL = ("table_3_2", "overbooking", "figure_3_10", "messages", "profits")
EXPECTED = {
    f"brokering/{target.name}": comes_out if target.name in SMALL else is_judged for target in SYSTEM.targets
}
