"""The approximation scheme keeps its ratio, against the plain linear program."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options, Status
from planner.errors import InputError
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.flows.reduced_problem import ReducedProblem
from planner_models.traffic import SYSTEM, Traffic, check
from planner_models.traffic.designs import concurrent_flow_fptas
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.readers import topohub
from tests.models.traffic.networks import both_ways, network, problems


def best(problem: Traffic) -> float:
    value = optimum.route(problem, objective="concurrent", method="lp").proof.objective
    assert value is not None
    return value


@pytest.mark.slow
@given(problems(max_nodes=6, max_demands=5), st.sampled_from([0.05, 0.1, 0.3]))
@settings(max_examples=30, deadline=None)
def test_all_phases_reach_the_ratio_and_every_bound_holds(problem: Traffic, epsilon: float) -> None:
    largest = best(problem)
    match = concurrent_flow_fptas.search(ReducedProblem.of(problem), epsilon=epsilon)
    assert 1 / match.utilization >= (1 - epsilon) ** 3 * largest * (1 - 1e-9)
    for step in match.trace:
        assert 1 / step.bound >= largest * (1 - 1e-9)
        assert 1 / step.utilization <= largest * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 0.1])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_it_stops_once_the_ratio_is_proven_at_any_scale(epsilon: float, scale: float) -> None:
    unscaled = Traffic.from_tables(topohub.read("sndlib/abilene"))
    problem = unscaled.scale_demands(scale)
    entry = Entry(label="fptas", design=SYSTEM.design("fptas"), parameters={"epsilon": epsilon})
    run = evaluate(SYSTEM, problem, entry)
    assert run.proof.status is Status.FEASIBLE  # the ratio alone proves no optimum
    assert run.proof.gap is not None
    assert run.proof.gap <= 1 - (1 - epsilon) ** 3
    assert run.proof.objective is not None
    assert run.proof.bound is not None
    largest = best(unscaled) / scale  # solvers' tolerances are absolute: unscaled
    assert run.proof.objective <= largest * (1 + 1e-9) <= run.proof.bound * (1 + 1e-8)


def test_the_gap_of_the_options_is_reached() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/abilene"))
    proof = concurrent_flow_fptas.route(problem, epsilon=0.05, options=Options(gap=0.05)).proof
    assert proof.status is Status.OPTIMAL
    assert proof.gap is not None
    assert proof.gap <= 0.05


@pytest.mark.slow
def test_lengths_may_underflow() -> None:
    # delta is 1e-400 here, and lengths grow by as much
    problem = network(
        both_ways([("a", "b", 3.0), ("b", "c", 3.0), ("a", "c", 1.0)]), [("a", "c", 1.0), ("b", "a", 1.0)]
    )
    match = concurrent_flow_fptas.search(ReducedProblem.of(problem), epsilon=0.002, gap=0.003)
    assert 1 / match.utilization == pytest.approx(best(problem), rel=3e-3)


def test_a_time_limit_may_leave_no_plan() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/germany50"))
    none = concurrent_flow_fptas.route(problem, options=Options(time_limit_s=1e-9))
    assert none.plan is None
    assert none.proof.status is Status.UNDECIDED


def test_a_tree_network_leaves_nothing_to_decide() -> None:
    problem = network(both_ways([("a", "b", 4.0), ("b", "c", 2.0)]), [("a", "c", 1.0)])
    proof = concurrent_flow_fptas.route(problem).proof
    assert proof.status is Status.OPTIMAL
    assert proof.objective == pytest.approx(2.0)


def test_other_solvers_are_refused_by_name() -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 1.0)])
    with pytest.raises(InputError) as error:
        concurrent_flow_fptas.route(problem, options=Options(backend="ortools"))
    assert str(error.value) == "backend is 'ortools': 'fptas' is a solver of its own, leave it out"


@pytest.mark.parametrize("paths", ["any", 2])
def test_a_bound_on_the_utilization_is_of_plans_that_serve_all(paths: Literal["any"] | int) -> None:
    problem = network(both_ways([("a", "b", 4.0), ("b", "c", 2.0), ("a", "c", 1.0)]), [("a", "c", 1.0)])
    proof = concurrent_flow_fptas.route(problem, objective="utilization", paths=paths).proof
    half = concurrent_flow_fptas.route(problem.scale_demands(0.5), objective="utilization", paths=paths)
    assert half.plan is not None
    assert proof.bound is not None
    assert half.plan.links["utilization"].max() < proof.bound
    over = "" if paths == "any" else ", over the 2 shortest paths of each demand"
    assert proof.bound_scope == f"plans that serve all demand that has a path{over}"
    assert concurrent_flow_fptas.route(problem).proof.bound_scope is None


@pytest.mark.parametrize("objective", ["concurrent", "utilization"])
def test_large_problems_have_equal_cost_multipath_where_a_phase_takes_longer_than_the_limit(
    objective: Literal["concurrent", "utilization"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent_flow_fptas, "LARGE_DEMANDS", 0)
    problem = generators.abilene().scale_demands(3)
    late = concurrent_flow_fptas.route(problem, objective=objective, options=Options(time_limit_s=1e-4))
    assert late.plan is not None
    assert "the time limit is 0.0001 s: all traffic takes shortest paths" in late.proof.reasons[0]
    assert len(check(problem, late.plan).of_limits(late.guarantees)) == 0
    best = concurrent_flow_fptas.route(problem, objective=objective).proof
    sign = 1.0 if objective == "concurrent" else -1.0
    assert sign * (late.proof.objective or 0.0) <= sign * (best.bound or 0.0)
    assert sign * (best.objective or 0.0) <= sign * (late.proof.bound or 0.0)
