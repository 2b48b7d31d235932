"""Upgrades of a system whose plans say what to buy: the list, its costs, and what budgets reach."""

from __future__ import annotations

import itertools
import json

import pytest

import planner
from planner.errors import InputError
from planner.sweeps.upgrade_list import Upgrades
from planner_models.capacity.problem.generators import backbone

PROBLEM = backbone(cities=6, classes=True, tunnels=1)
CHANGES = {"problem.scale": 1.5, "problem.failures": "links"}


@pytest.fixture(scope="module")
def found() -> Upgrades:
    return planner.upgrades(PROBLEM, changes=CHANGES)


@pytest.mark.slow
def test_the_list_is_the_plan(found: Upgrades) -> None:
    plan = found.run.plan
    assert found.cost == pytest.approx(found.run.metrics["purchase_cost"])
    assert {step.element for step in found.steps} == set(plan.purchases["link"])
    for step in found.steps:
        current = plan.purchases[plan.purchases["link"] == step.element]
        assert step.cost == pytest.approx(current["cost"].sum() + current["setup_cost"].sum())
    assert found.metrics == found.run.metrics


@pytest.mark.slow
def test_each_step_reaches_as_much_and_the_last_one_all(found: Upgrades) -> None:
    reached = [found.first["delivered_mbps"], *(step.metrics["delivered_mbps"] for step in found.steps)]
    assert all(after >= before for before, after in itertools.pairwise(reached))  # type: ignore[operator]
    assert reached[-1] == pytest.approx(found.run.metrics["delivered_mbps"])
    assert found.shares()[-1] == pytest.approx(1.0)
    assert found.steps[0].losses or len(found.steps) == 1


def test_no_budget_reaches_more_than_its_bound(found: Upgrades) -> None:
    assert len(found.points) > 1
    values = [point.value for point in found.points]
    assert values == sorted(values)
    for point in found.points:
        assert point.bound is not None
        assert point.value <= point.bound * (1 + 1e-9)


def test_the_proof_is_said_and_the_result_is_plain_data(found: Upgrades) -> None:
    assert "costs less than" in found.caveat
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(plain["steps"]) == len(found.steps)
    assert plain["curve"]["points"][0]["bound"] is not None
    assert len(found.to_frame()) == len(found.steps)


def test_a_budget_limits_the_list() -> None:
    result = planner.upgrades(PROBLEM, changes=CHANGES, budget=5.0, steps=1)
    assert result.cost <= 5.0
    assert len(result.steps) == 1
    assert result.adjustments == {"budget": 5.0}


def test_a_plan_that_buys_nothing_says_so() -> None:
    result = planner.upgrades(PROBLEM, budget=0.0)
    assert not result.steps
    assert "no upgrade is bought: its plan buys nothing" in result.verdict


def test_settings_of_single_upgrades_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        planner.upgrades(PROBLEM, kinds="link", candidates=3)
    why = "plans of capacity choose all purchases together, without a search among single ones"
    assert list(caught.value.faults) == [f"kinds: {why}", f"candidates: {why}"]
