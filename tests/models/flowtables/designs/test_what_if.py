"""Forced bits and costs of rules, against rules that are changed by hand and decided again."""

from __future__ import annotations

import pytest

import planner
from planner_models.flowtables import SYSTEM, measure
from planner_models.flowtables.designs.what_if import leave_out, move_last
from tests.models.flowtables.switches import classify_plainly, every_header, make

RULES = [(9, "a=5 c=1", "drop"), (8, "a=4/1", "out:1"), (7, "b=2 c=3", "out:2"), (1, "", "out:3")]
MOVED = [RULES[1], RULES[2], (6, "a=5 c=1", "drop"), RULES[3]]


def test_a_rule_moves_behind_all_but_those_that_match_all_packets() -> None:
    changed, by_hand = move_last(make(RULES), 0), make(MOVED)
    assert changed is not None
    for text in every_header():
        header = changed.layout.parse_header(text)
        assert classify_plainly(changed, header) == classify_plainly(by_hand, header)
    assert move_last(make(RULES), 2) is None  # is there already
    assert move_last(make(RULES), 3) is None
    assert leave_out(make([(1, "", "goto:1", 0), (1, "a=1", "drop", 1)]), 1) is None


def test_what_a_rule_costs_is_that_of_deciding_again() -> None:
    problem = make(RULES)
    explanation = planner.explain(problem, design="least_specific", rules=3)
    [section] = [item for item in explanation.explanation.sections if item.title == "Rules that force bits"]
    frame = section.frame
    before = [classify_plainly(problem, problem.layout.parse_header(text)) for text in every_header()]
    by_hand = {"left out": make(RULES[1:]), "moved last": make(MOVED)}
    for change, other in by_hand.items():
        [row] = frame[(frame["rule"] == 1) & (frame["change"] == change)].to_dict("records")
        plan = SYSTEM.design("least_specific").run(other).plan
        assert plan is not None
        assert row["time"] == pytest.approx(measure(other, plan, None)["cpu_per_connection_us"])
        after = [classify_plainly(other, other.layout.parse_header(text)) for text in every_header()]
        changed = sum(item != two for item, two in zip(before, after, strict=True))
        assert row["differ"] == pytest.approx(100 * changed / len(before))
