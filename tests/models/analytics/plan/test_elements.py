"""Descriptions of uplinks, and the cost of their failures."""

from __future__ import annotations

import pytest

import planner
from planner.contract.elements import ElementReport
from planner.contract.studies import Decided
from planner.errors import InputError
from planner.options import Options
from planner_models.analytics import SYSTEM, Analytics
from planner_models.analytics.plan.elements import describe_uplink
from tests.models.analytics.problems import tables


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
