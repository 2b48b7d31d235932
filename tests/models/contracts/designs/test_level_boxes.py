"""The bound by boxes of levels: never above a plan, and close to it where contracts are few."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings

from planner import backends, clock
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.contracts import Month
from planner_models.contracts.designs import free_windows, level_boxes, optimum, program
from planner_models.contracts.designs.program import Region
from planner_models.contracts.problem import generators
from tests.models.contracts.months import months

BOXES = 150
OPTIONS = Options(gap=1e-6, threads=1)


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


def bound_of(problem: Month) -> tuple[float, float]:
    """Return the bound of the relaxation, and that of intervals."""
    region = Region.of(problem, 0)
    names = backends.solve(program.build(region, groups=30).program, OPTIONS).bound
    assert names is not None
    bound = level_boxes.find_interval_bound(
        region, lower=names, enough=1.06 * names, options=OPTIONS, deadline=NEVER
    )
    return names, bound.bound


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(months(windows=22))
def test_the_bound_is_below_the_least_bill_of_interval_bound(problem: Month) -> None:
    tight = problem.with_contracts(min_share=0.1, max_share=0.8)
    for month in (problem, tight):
        names, bound = bound_of(month)
        decision = optimum.plan(
            month, method="exact", options=Options(gap=1e-6, time_limit_s=20.0, threads=1)
        )
        lower = decision.proof.ranks[1].objective
        assert names <= bound <= lower * (1 + 1e-6) + 0.02


@pytest.mark.slow
def test_a_free_window_is_not_shared_out_of_interval_bound() -> None:
    problem = generators.month(cdns=4, days=2, window_minutes=30, seed=1)
    names, bound = bound_of(problem)
    plan = free_windows.complete(Region.of(problem, 0), Region.of(problem, 0).level_limits[0], OPTIONS)
    assert plan is not None
    assert 1.05 * names < bound <= plan.cost
