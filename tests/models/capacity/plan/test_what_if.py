"""Explanation of a plan: the ladder of purchases, failures, and smaller budgets."""

from __future__ import annotations

import planner
from planner_models.capacity.problem.adjustments import adjust
from tests.models.capacity.networks import ring


def test_each_step_costs_and_brings_something() -> None:
    explained = planner.explain(adjust(ring(), failures="links"), design="optimum").explanation
    ladder = next(section for section in explained.sections if section.title == "Ladder of purchases").frame
    assert ladder["purchase"].iloc[0] == "before"
    assert ladder["cost"].is_monotonic_increasing
    assert ladder["delivered_mbps"].is_monotonic_increasing
    assert ladder["delivered_mbps"].iloc[-1] == 15.0
    assert ladder["survives"].iloc[-1] == 3
    assert explained.sentences[0].endswith("proven.")
    assert any("checked one by one" in sentence for sentence in explained.sentences)


def test_budgets_have_what_they_deliver_and_a_bound() -> None:
    explained = planner.explain(adjust(ring(), failures="links"), design="optimum", budgets=2).explanation
    curve = explained.sections[-1].frame
    assert curve["budget"].is_monotonic_increasing
    assert curve["delivered_mbps"].is_monotonic_increasing
    assert (curve["delivered_mbps"] <= curve["at_most_mbps"] + 1e-6).all()
    assert (curve["spent"] <= curve["budget"] + 1e-9).all()
