"""Drawings of plans: the front of a bargain with the reaction and the selected plan."""

from __future__ import annotations

import pytest

from planner.contract.drawing import NetworkMap, Points
from planner_models.cdnrouting.designs import bargain, joint
from planner_models.cdnrouting.plan.check import evaluate
from planner_models.cdnrouting.plan.presentation import draw
from tests.models.cdnrouting.deliveries import network


def test_a_bargain_is_drawn_beside_the_front_and_the_reaction() -> None:
    problem = network(1, load=1.0)
    plan = bargain.plan(problem, rounds=3, points=4).plan
    assert plan is not None
    chart = draw(problem, plan)[-1]
    assert isinstance(chart, Points)
    assert list(chart.frame["plan"]) == [
        *("front 1", "front 0.67", "front 0.33", "front 0"),
        *("reaction", "bargain"),
    ]
    (state,) = evaluate(problem, plan)
    assert chart.frame["isp_cost"].iloc[-1] == pytest.approx(state.isp_cost)
    costs = chart.frame["isp_cost"].to_numpy()[:4]
    assert (costs[0] <= costs * (1 + 1e-3)).all(), "the first is the ISP's optimum"


def test_other_plans_have_no_front() -> None:
    problem = network(1)
    plan = joint.plan(problem).plan
    assert plan is not None
    assert [type(drawing) for drawing in draw(problem, plan)] == [NetworkMap]
