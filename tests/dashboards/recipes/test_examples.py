"""Measured examples: each opens its scenario, designs and degradation, and the nearest one is found."""

from __future__ import annotations

from planner.coordination import measurement
from planner_dashboard.question import form_fields, unchanged_scenario
from planner_dashboard.recipes import examples


def test_every_measured_point_has_a_question_that_the_first_page_accepts() -> None:
    designs, curves = measurement.load_release()
    every = [*examples.of_designs(designs), *examples.of_curves(curves)]
    for item in every:
        question = item.question()
        scenario = unchanged_scenario(question.scenario)
        question.check(form_fields(scenario))
        labels = [entry.label for entry in scenario.designs]
        assert set(question.designs) <= set(labels)
        assert question.designs[0] == labels[0], "compared with the baseline"
        assert question.designs[-1] == item.design
        assert bool(question.changes) == bool(item.parameter and item.value)
    assert sum(bool(item.question().changes) for item in every) > 100


def test_the_nearest_example_has_the_mechanism_and_the_age() -> None:
    designs, curves = measurement.load_release()
    best = examples.nearest(["transparency"], designs, curves, None)
    assert best is not None
    assert best.mechanism == "transparency"
    shares = designs.loc[designs["mechanism"] == "transparency", "share"].dropna()
    assert best.share == max(shares)
    aged = examples.nearest(["transparency"], designs, curves, 290.0)
    assert aged is not None
    assert (aged.kind, aged.value, aged.unit) == ("age", 300.0, "s")
    assert "with age 5 min" in aged.words()
    assert examples.nearest(["none of them"], designs, curves, 1.0) is None
