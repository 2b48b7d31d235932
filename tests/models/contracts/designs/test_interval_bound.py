"""The bound by branching on the sum of levels: never above a plan, never below the relaxation."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from planner import backends
from planner.options import Options
from planner.search.deadline import NEVER
from planner_models.contracts import Month
from planner_models.contracts.designs import free_windows, interval_bound, optimum, program
from planner_models.contracts.designs.program import Region
from planner_models.contracts.problem import generators
from tests.models.contracts.months import months

OPTIONS = Options(gap=1e-6, threads=1)


def bound_of(problem: Month) -> tuple[float, float]:
    """Return the bound of the relaxation, and that of intervals."""
    region = Region.of(problem, 0)
    names = backends.solve(program.build(region, groups=30).program, OPTIONS).bound
    assert names is not None
    bound = interval_bound.find_bound(
        region, lower=names, enough=1.06 * names, options=OPTIONS, deadline=NEVER
    )
    return names, bound.bound


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(months(windows=22))
def test_the_bound_is_below_the_least_bill(problem: Month) -> None:
    tight = problem.with_contracts(min_share=0.1, max_share=0.8)
    for month in (problem, tight):
        names, bound = bound_of(month)
        decision = optimum.plan(
            month, method="exact", options=Options(gap=1e-6, time_limit_s=20.0, threads=1)
        )
        lower = decision.proof.ranks[1].objective
        assert names <= bound <= lower * (1 + 1e-6) + 0.02


@pytest.mark.slow
def test_a_free_window_is_not_shared_out() -> None:
    problem = generators.month(cdns=4, days=2, window_minutes=30, seed=1)
    names, bound = bound_of(problem)
    plan = free_windows.complete(Region.of(problem, 0), Region.of(problem, 0).level_limits[0], OPTIONS)
    assert plan is not None
    assert 1.05 * names < bound <= plan.cost
