"""The heading of an answer: what it keeps of a long sentence."""

from __future__ import annotations

import pytest

from planner.contract.metrics import less
from planner.runs.verdict import Sentence
from planner_dashboard.what_if import headline

SERVED = "Video delivery network serves 130 of 140 clients at the requested bitrate, at a traffic cost of "
SERVED += "1,846 (link cost x Mbit/s)"
REACHED = "it reaches a service minus cost of 129.8 of 140 points (92.7%)"
POSSIBLE = "at most 131.9 points are possible, of which this is 98.4%."


def test_a_heading_keeps_the_first_clauses_that_fit() -> None:
    first, beyond = headline.split_clauses(f"{SERVED}; {REACHED}; {POSSIBLE}")
    assert first == f"{SERVED}."
    assert beyond == [f"It{REACHED[2:]}; {POSSIBLE}"]
    short = "Least schedule completes coflows in 250.8 ms in the mean; no less than 226.5 ms is possible."
    assert headline.split_clauses(short) == (short, [])


def test_losses_stand_beside_the_first_clause() -> None:
    sentences = [Sentence(f"{SERVED}; {REACHED}."), Sentence("It cannot serve 6 clients.", is_loss=True)]
    text = headline.verdict_text(sentences, ["S1 at double capacity"])
    assert text == f"With S1 at double capacity, {SERVED}. It cannot serve 6 clients."


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.6e-05, "0.000016"), (8.6e-22, "under 0.000001"), (0.0, "0"), (0.25, "0.25"), (32.37, "32.37")],
)
def test_small_figures_have_no_exponent(value: float, shown: str) -> None:
    metric = less("false_alarms", "a day", "leaders suspected though they are up")
    assert headline._split(metric, value) == (shown, "a day")
