"""Drawings of plans, and what pages of elements show."""

from __future__ import annotations

import pytest

import planner
from planner.contract.drawing import Curve
from planner.contract.elements import ElementReport
from planner.contract.studies import Decided
from planner.errors import InputError
from planner.options import Options
from planner_models.analytics import SYSTEM, Analytics, measure
from planner_models.analytics.plan.presentation import describe_uplink, draw
from planner_models.analytics.problem.generators import small
from tests.models.analytics.problems import tables


@pytest.mark.parametrize("design", ["static_policy", "backhaul_all"])
def test_curves_add_up_to_the_value_in_time_and_uplinks_to_their_load(design: str) -> None:
    problem = small()
    plan = SYSTEM.design(design).run(problem).plan
    assert plan is not None
    figures = measure(problem, plan, None)
    curves = [item.frame for item in draw(problem, plan) if isinstance(item, Curve)]
    by_name = {name: frame for frame in curves for name in frame}
    assert by_name["answers"]["answers"].sum() == pytest.approx(figures["value"])
    assert by_name["full quality"]["full quality"].sum() == pytest.approx(figures["offered_value"])
    highest = by_name["utilization"]["utilization"]
    assert highest.is_monotonic_decreasing
    assert (highest.max() > 100) == (design == "backhaul_all")


def describe(problem: Analytics, name: str, design: str = "optimum") -> ElementReport:
    levels = SYSTEM.design(design)
    decision = levels.run(problem)
    assert decision.plan is not None
    metrics = SYSTEM.plan.measure(problem, decision.plan, None)
    return describe_uplink(
        problem, Decided(design=levels, parameters={}, decision=decision, metrics=metrics), name, Options()
    )


def test_an_uplink_is_described_by_its_load_and_what_uses_it() -> None:
    problem = Analytics.from_tables(tables(sites=2, intervals=2, combine=("coarsest",)))
    of_site = describe(problem, "s0")
    facts = {fact.label: fact.value for fact in of_site.facts}
    (queries,) = of_site.sections
    assert queries.frame["query"].tolist() == ["q0"]
    assert facts["Sent"] == pytest.approx(queries.frame["sent"].sum())
    assert facts["Point of presence"] == "p"
    (sites,) = describe(problem, "p").sections
    assert sorted(sites.frame["site"]) == ["s0", "s1"]
    with pytest.raises(InputError, match="s9: no such uplink; valid: p, s0, s1"):
        describe(problem, "s9")


def test_the_loss_of_a_point_of_presence_leaves_the_answers_without_data() -> None:
    problem = Analytics.from_tables(tables(sites=2, intervals=2, combine=("coarsest",)))
    before, after = (
        planner.solve(problem, design="optimum", changes=changes)
        for changes in ({}, {"problem.fail_links": ["p"]})
    )
    assert before.metrics["value"] > 0
    assert after.metrics["value"] == 0
