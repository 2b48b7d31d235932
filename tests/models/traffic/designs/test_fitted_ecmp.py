"""Equal-cost multipath within the capacities, against ECMP's own loads and the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from planner.contract.proof import Status
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs import ecmp, fitted_ecmp
from planner_models.traffic.designs.optimum import optimum, optimum_search
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import network, problems


def test_demands_are_cut_at_the_tightest_link_of_their_path() -> None:
    links = [("a", "b", 10.0), ("b", "c", 4.0), ("c", "d", 100.0), ("b", "d", 5.0)]
    problem = network(links, [("a", "c", 8.0), ("b", "d", 5.0), ("a", "b", 2.0)])
    plan, value = fitted_ecmp.fit_ecmp(problem)
    assert value == pytest.approx(4.0 + 5.0 + 2.0)
    assert plan.links["load_mbps"].tolist() == pytest.approx([6.0, 4.0, 0.0, 5.0])


@given(problem=problems())
def test_plans_are_within_the_capacities_and_no_better_than_the_optimum(problem: Traffic) -> None:
    problem = problem.routable
    if not len(problem.targets):
        return
    for objective in ("total", "concurrent", "utilization"):
        decision = fitted_ecmp.route(problem, objective)
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
    plan, value = fitted_ecmp.fit_ecmp(problem)
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
    assert late.proof.backend == fitted_ecmp.BACKEND
    assert "all traffic takes shortest paths" in late.proof.reasons[0]
    free = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=60.0))
    assert free.proof.backend != fitted_ecmp.BACKEND
    assert not free.proof.reasons
    assert np.isfinite(late.proof.gap or 0.0)
    assert (late.proof.gap or 0.0) > (free.proof.gap or 0.0)
