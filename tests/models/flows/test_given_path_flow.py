"""Flows over given paths from the plan before: the optimum of the linear program, in fewer steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.contract.design import Decision
from planner_models.flows import given_path_flow
from planner_models.flows.path_flow_program import find_paths
from planner_models.flows.previous_routes import PreviousRoutes, find_among
from planner_models.flows.simplex import PathSimplex
from planner_models.flows.simplex_state import PIVOTS
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs.optimum import optimum, optimum_search
from planner_models.traffic.plan.plan import routing_from_tables
from planner_models.traffic.problem.readers import topohub
from tests.models.traffic.networks import problems
from tests.models.traffic.restricted_networks import draw_network


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(problems(max_nodes=6, max_demands=5), st.sampled_from(["total", "concurrent"]), st.integers(0, 2**16))
def test_the_start_does_not_change_the_optimum(problem: Traffic, objective: str, seed: int) -> None:
    before = optimum.route(problem, objective=objective, paths=2)  # type: ignore[arg-type]
    assert before.plan is not None
    read = routing_from_tables(problem, before.plan.to_tables())
    random = np.random.default_rng(seed)
    now = problem.with_rates(problem.rate_mbps * random.uniform(0.2, 5.0, len(problem.demands)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum_search, "INTERIOR_POINT_PATHS", 0)
        start = Decision(plan=read, proof=before.proof)
        warm = optimum.route(now, objective=objective, paths=3, previous=start)  # type: ignore[arg-type]
    cold = optimum.route(now, objective=objective, paths=3, method="lp")  # type: ignore[arg-type]
    assert warm.proof.backend == given_path_flow.BACKEND
    assert warm.proof.objective == pytest.approx(cold.proof.objective, rel=1e-6)
    assert warm.proof.bound == pytest.approx(cold.proof.objective, rel=1e-6)
    assert warm.plan is not None
    assert check(now, warm.plan).of_limits(warm.guarantees).frame.empty


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1_000_000))
def test_over_tunnels(seed: int) -> None:
    problem = draw_network(seed, tunnels=True)
    problem = Traffic.from_tables({k: v for k, v in problem.to_tables().items() if k != "rules"})
    if "kind" in problem.tunnels:  # type: ignore[operator]
        selected = problem.tunnels[problem.tunnels["kind"] != "segments"]  # type: ignore[index]
        problem = Traffic.from_tables({**problem.to_tables(), "tunnels": selected})
    before = optimum.route(problem, objective="total", paths="tunnels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum_search, "INTERIOR_POINT_PATHS", 0)
        warm = optimum.route(problem, objective="total", paths="tunnels", previous=before)
    assert warm.proof.objective == pytest.approx(before.proof.objective, rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_a_plan_before_saves_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/germany50", seed=1))
    before = optimum.route(problem, objective="concurrent", paths=4).plan
    assert before is not None
    random = np.random.default_rng(1)
    now = problem.with_rates(problem.rate_mbps * random.lognormal(0, 0.05, len(problem.demands)))
    paths = find_paths(now, count=4)
    routes = PreviousRoutes.of(now, before)
    assert (find_among(paths.found, paths) == np.arange(len(paths.demand))).all()
    pivots: list[int] = []
    run = PathSimplex.run

    def count(simplex: PathSimplex) -> object:
        stop = run(simplex)
        pivots[-1] += int(simplex.state.number[PIVOTS])
        simplex.state.number[PIVOTS] = 0
        return stop

    monkeypatch.setattr(PathSimplex, "run", count)
    nothing = PreviousRoutes(paths=find_paths(now, count=1).found, share=np.ones(len(now.demands)))
    result = []
    for start in (nothing, routes.among(paths)):
        pivots.append(0)
        result.append(given_path_flow.solve_utilization(now, paths, start, Options()))
    assert result[0] is not None
    assert result[1] is not None
    assert result[1].objective == pytest.approx(result[0].objective, rel=1e-7)
    assert pivots[1] < pivots[0] / 2
