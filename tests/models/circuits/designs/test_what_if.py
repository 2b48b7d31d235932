"""Explanations: their figures are those of solving again and of adding up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.contract.studies import Decided, Explanation
from planner_models.circuits import SYSTEM, Circuits, Schedule, explain, measure
from planner_models.circuits.designs import eclipse, solstice
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.problem import generators


def explain_plan(
    problem: Circuits, name: str = "eclipse", baseline: Schedule | None = None, **more: object
) -> Explanation:
    design = SYSTEM.design(name)
    decision = design.decide(problem)
    metrics = measure(problem, decision.plan, None)
    decided = Decided(design=design, parameters={}, decision=decision, metrics=metrics, baseline=baseline)
    return explain(problem, decided, **more)  # type: ignore[arg-type]


def test_the_time_of_a_single_ring_goes_to_one_night_and_one_day() -> None:
    problem = generators.rings(racks=4, load=0.5, packet_mbps=0.0)
    result = explain_plan(problem)
    frame = result.sections[0].frame.set_index("time")["us"]
    assert frame["circuits up and carrying"] == pytest.approx(1_000)
    assert frame["nights"] == pytest.approx(20)
    assert frame.sum() == pytest.approx(2_000)
    assert "Nothing is left over." in result.sentences


def test_demand_left_over_adds_up_and_has_its_reason() -> None:
    problem = generators.skewed(racks=16, seed=1, load=1.5)
    result = explain_plan(problem, shown=1_000)
    sections = {section.title: section.frame for section in result.sections}
    pairs = sections["Pairs with the most left over"]
    plan = eclipse.schedule(problem).plan
    assert plan is not None
    carried = derive_carried(problem, plan)
    remaining = problem.bits - carried.circuit_bits - carried.packet_bits
    assert pairs["left_over"].sum() * 1e6 == pytest.approx(remaining.sum(), rel=1e-4)
    none = {f"{problem.names[i]}->{problem.names[j]}" for i, j in np.argwhere(carried.circuit_bits == 0)}
    for row in pairs.itertuples():
        assert ("no circuit" in row.why) == (row.pair in none)


@pytest.mark.parametrize("name", ["eclipse", "solstice"])
def test_gains_of_more_resources_are_those_of_solving_again(name: str) -> None:
    problem = generators.skewed(racks=16, large=2, small=4, seed=2, load=1.2)
    result = explain_plan(problem, name, step=0.05)
    frame = next(section.frame for section in result.sections if section.title == "Gains of more resources")
    gains = frame.set_index("change")["gain"]
    schedule = {"eclipse": eclipse.schedule, "solstice": solstice.schedule}[name]
    longer = replace(problem, switch=problem.switch.assign(window_us=2_100.0))
    twice = problem.with_switch(circuit_switches=2)
    for change, changed in (("a week longer by 100 us", longer), ("another circuit switch", twice)):
        now, then = (schedule(item).proof.objective for item in (problem, changed))
        assert now is not None
        assert then is not None
        week = changed.window_us or 0.0
        assert gains[change] == pytest.approx(then * week - now * 2_000.0)
    best = frame.iloc[0]
    assert best["gain"] == gains.max()
    assert any(best["change"] in sentence for sentence in result.sentences)


def test_without_a_week_gains_are_in_time() -> None:
    problem = generators.skewed(racks=8, large=2, small=2, bounded=False)
    frame = next(
        section.frame
        for section in explain_plan(problem).sections
        if section.title == "Gains of more resources"
    )
    assert not frame["change"].str.contains("week").any()
    assert frame.set_index("change")["gain"]["another circuit switch"] > 0


def test_a_previous_plan_is_compared_pair_by_pair() -> None:
    problem = generators.skewed(racks=8, large=2, small=2, seed=1, load=1.5)
    before = SYSTEM.design("hotspot").run(problem).plan
    now = eclipse.schedule(problem).plan
    assert before is not None
    assert now is not None
    result = explain_plan(problem, baseline=before, shown=1_000)
    frame = result.sections[-1].frame
    worth = [measure(problem, plan, None)["served_bits"] or 0.0 for plan in (before, now)]
    assert frame["change"].sum() * 1e6 == pytest.approx(worth[1] - worth[0], rel=1e-3)


def test_no_demand_needs_no_explanation() -> None:
    problem = generators.rings(racks=4, load=0.0)
    assert "Nothing is left over." in explain_plan(problem).sentences
