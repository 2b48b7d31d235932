"""Drawings and elements of plans, and explanations."""

from __future__ import annotations

from planner.contract.drawing import Curve, NetworkMap
from planner.contract.studies import Decided
from planner.options import Options
from planner_models.geostore import SYSTEM, Geostore, measure
from planner_models.geostore.designs.what_if import explain
from planner_models.geostore.plan.presentation import REGIONS, draw
from planner_models.geostore.problem import generators


def decided(problem: Geostore, name: str = "optimum") -> Decided:
    """Return a design's decision."""
    design = SYSTEM.design(name)
    decision = design.run(problem)
    assert decision.plan is not None
    return Decided(
        design=design, parameters={}, decision=decision, metrics=measure(problem, decision.plan, None)
    )


def test_regions_are_drawn_with_what_misses_goals() -> None:
    problem = generators.small()
    picture, bill = draw(problem, decided(problem, "near_users").plan)
    assert isinstance(picture, NetworkMap)
    assert isinstance(bill, Curve)
    assert picture.nodes["lost"].sum() > 0
    assert bill.frame["cost"].sum() > 0


def test_a_region_says_what_is_lost_with_it() -> None:
    problem = generators.small()
    assert REGIONS.describe is not None
    report = REGIONS.describe(problem, decided(problem), "ireland", Options())
    labels = [fact.label for fact in report.facts]
    assert "Writes lost with it" in labels


def test_explanations_name_the_cost_of_constraints() -> None:
    problem = generators.small()
    explanation = explain(problem, decided(problem), tried=8)
    text = " ".join(explanation.sentences)
    assert "USD a month" in text
    assert "outside the store" in text
    titles = [section.title for section in explanation.sections]
    assert "The design again with one constraint relaxed" in titles
    missed = explain(problem, decided(problem, "near_users"), tried=0)
    assert any("cannot check the order" in sentence for sentence in missed.sentences)
