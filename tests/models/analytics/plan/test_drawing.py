"""Drawings show what metrics count."""

from __future__ import annotations

import pytest

from planner.contract.drawing import Curve
from planner_models.analytics import SYSTEM, measure
from planner_models.analytics.plan.drawing import draw
from planner_models.analytics.problem.generators import small


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
