"""The interior-point method over given paths against HiGHS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options, Status, backends
from planner_models.flows import interior_point, path_flow_program
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs.optimum import optimum, optimum_search
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import problems

SOLVE = {"total": interior_point.solve_total, "utilization": interior_point.solve_utilization}


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    problem=problems(),
    count=st.integers(1, 4),
    goal=st.sampled_from(["total", "utilization"]),
    factor=st.sampled_from([0.3, 1.0, 5.0]),
)
def test_equals_the_linear_program(problem: Traffic, count: int, goal: str, factor: float) -> None:
    problem = problem.scale_demands(factor)
    paths = path_flow_program.find_paths(problem, count=count)
    result = SOLVE[goal](problem, paths, Options())
    best = backends.solve(path_flow_program.build(problem, goal, paths), Options())
    assert result.objective == pytest.approx(best.objective, rel=1e-6)
    assert result.bound == pytest.approx(best.objective, rel=1e-6)
    load = paths.uses.T @ result.x / problem.capacity_mbps
    sent = np.bincount(paths.demand, result.x, minlength=len(problem.demands))
    if goal == "total":
        assert load.max() <= 1 + 1e-9
        assert (sent <= problem.rate_mbps * (1 + 1e-9)).all()
        assert sent.sum() == pytest.approx(result.objective, rel=1e-9)
    else:
        assert sent == pytest.approx(problem.rate_mbps, rel=1e-9)
        assert load.max() == pytest.approx(result.objective)


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["concurrent", "utilization", "total", "delivered"])
@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_the_optimum_over_paths_agrees_with_the_linear_program(
    goal: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = generators.germany50().scale_demands(factor)
    made = optimum.route(problem, objective=goal, paths=2)
    assert made.proof.backend == interior_point.BACKEND
    monkeypatch.setattr(optimum_search, "INTERIOR_POINT_PATHS", 10**9)
    program = optimum.route(problem, objective=goal, paths=2)
    assert made.proof.status is program.proof.status is Status.OPTIMAL
    assert made.proof.objective == pytest.approx(program.proof.objective, rel=2e-6)
    check(problem, made.plan)


@pytest.mark.slow
def test_a_time_limit_leaves_a_plan_and_a_bound() -> None:
    problem = generators.germany50().scale_demands(3.0)
    paths = path_flow_program.find_paths(problem, count=2)
    best = interior_point.solve_total(problem, paths, Options())
    result = interior_point.solve_total(problem, paths, Options(time_limit_s=1e-6))
    assert result.status is Status.FEASIBLE
    assert result.objective <= best.objective <= result.bound
