"""Measured examples: each opens its scenario, designs and degradation on the first page."""

from __future__ import annotations

from typing import Any

from planner.coordination import measured_examples, measurement
from planner_dashboard.question import form_fields, unchanged_scenario
from planner_dashboard.recipes.examples import question_of


def test_every_measured_point_has_a_question_that_the_first_page_accepts() -> None:
    designs, curves = measurement.load_release()
    every = [*measured_examples.of_designs(designs), *measured_examples.of_curves(curves)]
    opened: dict[str, Any] = {}
    changed = 0
    for item in every:
        question = question_of(item)
        if question.scenario not in opened:
            scenario = unchanged_scenario(question.scenario)
            opened[question.scenario] = scenario, form_fields(scenario)
        scenario, fields = opened[question.scenario]
        question.check(fields)
        labels = [entry.label for entry in scenario.designs]
        assert set(question.designs) <= set(labels)
        assert question.designs[0] == labels[0], "compared with the baseline"
        assert question.designs[-1] == item.design
        assert bool(question.changes) == bool(item.parameter and item.value)
        changed += bool(question.changes)
    assert changed > 100
