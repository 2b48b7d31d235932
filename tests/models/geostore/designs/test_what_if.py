"""Explanations: the region worth opening, solved again here, and steps from the replicas in place."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from planner.contract.design import Decision
from planner.contract.studies import Decided
from planner_models.geostore import Geostore, StorePlan, measure
from planner_models.geostore.designs import DESIGNS, optimum
from planner_models.geostore.designs.what_if import explain
from planner_models.geostore.problem.adjustments import adjust
from tests.models.geostore.stores import store


def decided(decision: Decision[StorePlan]) -> Decided:
    """Return a decision of `optimum`, to explain."""
    return Decided(design=DESIGNS[0], parameters={}, decision=decision, metrics={})


def with_closed_region() -> tuple[Geostore, str]:
    """Return groups that may not be in the region that their best plan uses most, and its name."""
    problem = store(3, regions=5, groups=2, users=3, limit_ms=None)
    plan = optimum.place(problem).plan
    assert plan is not None
    name = str(plan.replicas["region"].value_counts().index[0])
    closed = pd.DataFrame({"group": problem.groups["group"], "region": name})
    return replace(problem, forbidden=closed), name


def test_the_region_worth_opening_saves_what_is_said() -> None:
    problem, name = with_closed_region()
    decision = optimum.place(problem)
    assert decision.plan is not None
    result = explain(problem, decided(decision))
    section = next(part for part in result.sections if "opened to all groups" in part.title)
    first = section.frame.iloc[0]
    opened = adjust(problem, open_regions=(name,))
    again = optimum.place(opened).plan
    assert again is not None
    usd = [measure(*pair, None)["usd_per_month"] or 0 for pair in ((problem, decision.plan), (opened, again))]
    assert first["region"] == name
    assert abs(first["saved"] - (usd[0] - usd[1])) <= 1e-6 * usd[0]
    assert usd[1] < usd[0]
    assert any(f"most worth opening to all groups is {name}" in sentence for sentence in result.sentences)


def test_the_way_from_the_replicas_in_place_is_told() -> None:
    problem = store(2, groups=2, users=2)
    decision = optimum.place(problem)
    assert decision.plan is not None
    placed = decision.plan.replicas[["group", "region"]].reset_index(drop=True)
    for before, words in ((placed, "All replicas of the plan are in place"), (placed.iloc[1:], "is copied")):
        changed = replace(problem, placed=before.reset_index(drop=True))
        result = explain(changed, decided(decision), tried=0)
        assert any(words in sentence for sentence in result.sentences), result.sentences
