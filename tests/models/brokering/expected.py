"""Expected outcomes of the reproduction targets, beside the numbers of their verdicts."""

from __future__ import annotations

from planner.runs.reproduction import UNJUDGED, Reproduction, Verdict
from planner_models.brokering import SYSTEM


def check_all_reproduced(done: Reproduction) -> None:
    """Assert that every row is reproduced: equations, tables of choices and messages."""
    assert {row.verdict for row in done.rows} == {Verdict.REPRODUCED}


def check_all_judged(done: Reproduction) -> None:
    """Assert that every row with a number to compare has a value of ours."""
    judged = [row for row in done.rows if row.verdict not in UNJUDGED]
    assert len(judged) == len(done.target.rows) - len(done.target.numberless)
    assert all(row.ours is not None for row in judged) or done.target.name == "figure_3_18"


SMALL = ("table_3_2", "overbooking", "figure_3_10", "messages", "profits")
EXPECTED = {
    f"brokering/{target.name}": check_all_reproduced if target.name in SMALL else check_all_judged
    for target in SYSTEM.studies.targets
}
