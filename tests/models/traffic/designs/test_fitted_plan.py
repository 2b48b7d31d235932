"""Plans that heuristics fit into capacities: they deliver no less than what they are made from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import Options, Status, backends
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic, check, measure
from planner_models.traffic.designs import ecmp, fitted_plan
from planner_models.traffic.designs.fitted_plan import fit_plan
from planner_models.traffic.designs.optimum import optimum, optimum_search
from planner_models.traffic.plan.delivery import delivered_rates, surviving_flow
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import network, problems


@pytest.mark.slow
@given(problem=problems(), factor=st.sampled_from([1.0, 3.0, 10.0]))
def test_what_survives_is_a_plan_that_delivers_as_much(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    plan = ecmp.route(problem).plan
    assert plan is not None
    flow = verify_flow(problem, plan)
    surviving = surviving_flow(problem, flow)
    load = np.asarray(surviving.sum(axis=0)).ravel()
    assert (load <= problem.capacity_mbps * (1 + 1e-9)).all()
    surplus = (surviving @ problem.incidence.T).tolil()
    sent = [surplus[k, problem.source[k]] for k in range(len(problem.demands))]
    assert sent == pytest.approx(delivered_rates(problem, flow).tolist(), rel=1e-6, abs=1e-9)


@pytest.mark.slow
@given(
    problem=problems(), factor=st.sampled_from([1.0, 3.0, 10.0]), rates=st.lists(st.floats(-8, 2), min_size=5)
)
def test_a_fitted_plan_is_no_worse_than_those_it_is_made_from(
    problem: Traffic, factor: float, rates: list[float]
) -> None:
    problem = problem.scale_demands(factor)
    problem = problem.with_rates(problem.rate_mbps * 10 ** np.resize(rates, len(problem.demands)))
    full = optimum.route(problem, objective="utilization").plan
    fitted = fit_plan(problem, full)
    assert fitted is not None
    assert not len(check(problem, fitted))
    delivered = measure(problem, fitted, None)["delivered_mbps"]
    assert delivered is not None
    for plan in (full, ecmp.route(problem).plan):
        lowest_metrics = measure(problem, plan, None)["delivered_mbps"]
        assert delivered >= lowest_metrics * (1 - 1e-6)
    best = optimum.route(problem).proof.bound
    assert delivered <= best * (1 + 1e-6)


def test_at_the_time_limit_the_plan_is_no_worse_than_equal_cost_multipath() -> None:
    problem = SYSTEM.problem.presets["germany50"]().scale_demands(2.0)
    entry = Entry(label="optimum", design=SYSTEM.design("optimum"))
    run = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=0.001))
    assert run.proof.status is Status.FEASIBLE
    assert run.constraints.met
    lowest_metrics = measure(problem, ecmp.route(problem).plan, None)["delivered_mbps"]
    assert run.metrics["delivered_mbps"] >= lowest_metrics > 0
    best = optimum.route(problem).proof.objective
    assert best <= run.proof.bound * (1 + 1e-9) <= problem.rate_mbps.sum() * (1 + 2e-9)


def test_a_solver_that_ends_with_an_empty_plan_is_not_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SYSTEM.problem.presets["abilene"]().scale_demands(3.0)
    exact = backends.solve

    def stop_early(program: Any, options: Options) -> Any:
        solution = exact(program, options)
        if "total" not in program.name:
            return solution
        return replace(solution, status=Status.FEASIBLE, x=0.0 * solution.x, objective=0.0)

    monkeypatch.setattr(backends, "solve", stop_early)
    decision = optimum.route(problem)
    assert decision.proof.status is Status.FEASIBLE
    assert decision.proof.gap is not None
    assert decision.proof.gap < 0.1


def test_too_large_a_program_is_left_to_the_heuristic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimum_search, "MAX_PROGRAM_FLOWS", 10)
    problem = SYSTEM.problem.presets["abilene"]().scale_demands(3.0)
    run = evaluate(SYSTEM, problem, Entry(label="optimum", design=SYSTEM.design("optimum")))
    assert run.proof.status is Status.FEASIBLE
    share = optimum.route(problem, objective="concurrent").proof.objective
    assert share is not None
    assert run.metrics["delivered_mbps"] > 1.2 * share * problem.rate_mbps.sum()


def test_demands_are_cut_at_the_tightest_link_of_their_path() -> None:
    links = [("a", "b", 10.0), ("b", "c", 4.0), ("c", "d", 100.0), ("b", "d", 5.0)]
    problem = network(links, [("a", "c", 8.0), ("b", "d", 5.0), ("a", "b", 2.0)])
    plan, value = fitted_plan.fit_ecmp(problem)
    assert value == pytest.approx(4.0 + 5.0 + 2.0)
    assert plan.links["load_mbps"].tolist() == pytest.approx([6.0, 4.0, 0.0, 5.0])


@given(problem=problems())
def test_plans_are_within_the_capacities_and_no_better_than_the_optimum(problem: Traffic) -> None:
    problem = problem.routable
    if not len(problem.targets):
        return
    for objective in ("total", "concurrent", "utilization"):
        decision = fitted_plan.route(problem, objective)
        best = optimum.route(problem, objective=objective).proof.objective
        plan, proof = decision.plan, decision.proof
        assert plan is not None
        assert proof.objective is not None
        assert proof.bound is not None
        assert best is not None
        assert not len(SYSTEM.plan.check(problem, plan).of_limits(decision.guarantees))
        measured = SYSTEM.plan.measure(problem, plan, None)[str(proof.metric)]
        assert measured == pytest.approx(proof.objective, rel=1e-6, abs=1e-9)
        sign = -1.0 if objective == "utilization" else 1.0
        assert sign * proof.objective <= sign * best + 1e-6 * abs(best)
        assert sign * best <= sign * proof.bound + 1e-6 * abs(best)


def test_loads_are_those_of_ecmp_where_everything_fits() -> None:
    problem = generators.abilene().scale_demands(0.01)
    plan, value = fitted_plan.fit_ecmp(problem)
    alone = ecmp.route(problem).plan
    assert alone is not None
    assert value == pytest.approx(problem.rate_mbps.sum())
    assert plan.links["load_mbps"].to_numpy() == pytest.approx(alone.links["load_mbps"].to_numpy())
    assert plan.shed is None


@pytest.mark.parametrize("objective", ["delivered", "concurrent", "utilization"])
def test_optimum_takes_shortest_paths_where_no_search_ends_in_time(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimum_search, "LARGE_DEMANDS", 0)
    monkeypatch.setattr(optimum_search, "COLUMN_GENERATION_FLOWS", 0)
    monkeypatch.setattr(optimum_search, "TOTAL_COLUMN_GENERATION_FLOWS", 0)
    problem = generators.abilene().scale_demands(3)
    entry = Entry(label="optimum", design=SYSTEM.design("optimum"), parameters={"objective": objective})
    late = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=1e-4))
    assert late.proof.status is Status.FEASIBLE
    assert late.plan is not None
    assert late.proof.backend == fitted_plan.BACKEND
    assert "all traffic takes shortest paths" in late.proof.reasons[0]
    free = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=60.0))
    assert free.proof.backend != fitted_plan.BACKEND
    assert not free.proof.reasons
    assert np.isfinite(late.proof.gap or 0.0)
    assert (late.proof.gap or 0.0) > (free.proof.gap or 0.0)
