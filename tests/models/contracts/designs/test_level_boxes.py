"""The bound by boxes of levels: never above a plan, and close to it where contracts are few."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings

from planner import backends, clock
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.contracts import Month
from planner_models.contracts.designs import free_windows, level_boxes, optimum, program
from planner_models.contracts.designs.program import Region
from planner_models.contracts.problem import generators
from tests.models.contracts.months import months

BOXES = 150


def count_boxes(patch: pytest.MonkeyPatch) -> Deadline:
    """Let the clock count its readings; return the deadline that is over after those of some boxes."""
    readings = itertools.count()
    patch.setattr(clock, "now", lambda: float(next(readings)))
    return Deadline(0.0, float(BOXES))


@settings(max_examples=6)
@given(months(windows=20))
def test_the_bound_is_below_the_least_bill(problem: Month) -> None:
    tight = problem.with_contracts(min_share=0.1, max_share=0.8)
    for month in (problem, tight):
        region = Region.of(month, 0)
        if not level_boxes.is_suitable(region):
            continue
        decision = optimum.plan(month, method="exact", options=Options(gap=1e-6, threads=1))
        assert decision.plan is not None
        lower = decision.proof.ranks[1].objective
        with pytest.MonkeyPatch.context() as patch:
            deadline = count_boxes(patch)
            bound = level_boxes.find_bound(region, lower=0.0, enough=1.2 * lower, deadline=deadline)
        assert 0.5 * lower < bound.bound <= lower * (1 + 1e-6) + 0.02


def test_a_free_window_is_not_shared_out() -> None:
    region = Region.of(generators.month(cdns=4, days=2, window_minutes=30, seed=1), 0)
    names = backends.solve(program.build(region).program, Options(threads=1)).bound
    plan = free_windows.complete(region, region.level_limits[0], Options(threads=1))
    assert names is not None
    assert plan is not None
    with pytest.MonkeyPatch.context() as patch:
        bound = level_boxes.find_bound(region, lower=names, enough=plan.cost, deadline=count_boxes(patch))
    assert 1.03 * names < bound.bound <= plan.cost
