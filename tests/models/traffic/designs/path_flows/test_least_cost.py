"""Least cost and largest total flow by the simplex method over paths, against linear programs over links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import InputError, Options, Status
from planner.contract import progress
from planner_models.flows import path_flow_program
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import optimum
from planner_models.traffic.designs.path_flows import least_cost
from planner_models.traffic.designs.path_flows.path_flow_plan import make_plan
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import network, problems

DIAMOND = [("s", "a", 10.0), ("a", "t", 10.0), ("s", "b", 5.0), ("b", "t", 5.0)]


@pytest.mark.slow
@settings(max_examples=30)
@given(problems(max_nodes=6, max_demands=6, costs=True), st.sampled_from([0.3, 1.0, 4.0]))
def test_it_costs_what_the_linear_program_finds(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    decision = least_cost.route(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    check(problem, decision.plan)
    metrics = measure(problem, decision.plan, None)
    assert metrics["cost"] == pytest.approx(decision.proof.objective, rel=1e-9)
    upper = optimum.route(problem, objective="total", method="lp").proof.objective
    assert metrics["delivered_mbps"] == pytest.approx(upper, rel=1e-7)
    other = optimum.route(problem, objective="cost", method="lp")
    # the linear program may deliver 1e-7 less
    assert decision.proof.objective == pytest.approx(other.proof.objective, rel=1e-5, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=30)
@given(problems(max_nodes=6, max_demands=6), st.sampled_from([1.0, 4.0]))
def test_it_delivers_what_the_linear_program_finds(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    search = LeastCostFlow(problem)
    assert search.deliver_most()
    plan = make_plan(problem, search.order, search.path_flow())
    check(problem, plan)
    upper = optimum.route(problem, objective="total", method="lp").proof.objective
    assert search.delivered_mbps() == pytest.approx(upper, rel=1e-7)
    assert search.total_bound_mbps() == pytest.approx(upper, rel=1e-7)


@settings(max_examples=20)
@given(problems(max_nodes=6, max_demands=6, costs=True), st.integers(1, 3))
def test_over_given_paths_it_costs_what_the_linear_program_finds(problem: Traffic, count: int) -> None:
    problem = problem.scale_demands(2)
    paths = path_flow_program.find_paths(problem, count=count)
    decision = least_cost.route(problem, paths=paths, scope="the paths")
    other = optimum.route(problem, objective="cost", paths=count, method="lp")
    assert decision.proof.bound_scope == "the paths"
    assert decision.proof.objective == pytest.approx(other.proof.objective, rel=1e-5, abs=1e-5)


def test_a_dear_route_is_taken_where_nothing_else_delivers() -> None:
    # leaving traffic out must cost more than the dear link, which the first penalty does not know
    links = [("s", "a", 1.0), ("a", "t", 10.0), ("s", "t", 1.0), ("s", "b", 9.0), ("b", "t", 9.0)]
    problem = network(links, [("s", "t", 12.0), ("a", "t", 10.0)], cost=[1.0, 1.0, 1.0, 1e6, 1e6])
    decision = least_cost.route(problem)
    assert decision.plan is not None
    assert decision.plan.shed is not None
    assert decision.plan.shed["rate_mbps"].sum() == pytest.approx(2.0)
    assert decision.proof.bound_scope == "plans that deliver the most"
    assert decision.proof.objective == pytest.approx(1 + 10 + 9 * 2e6 - 0.0, rel=1e-6)


def priced(problem: Traffic) -> Traffic:
    price = np.random.default_rng(1).integers(1, 9, len(problem.links)).astype(float)
    return Traffic.from_tables({**problem.to_tables(), "links": problem.links.assign(cost=price)})


def test_the_design_takes_it_for_large_problems_and_where_columns_are_asked_for() -> None:
    problem = priced(generators.abilene()).scale_demands(3)
    by_columns = optimum.route(problem, objective="cost", method="columns")
    by_program = optimum.route(problem, objective="cost", method="lp")
    assert by_columns.proof.backend == least_cost.BACKEND
    assert by_columns.proof.status is Status.OPTIMAL
    assert by_columns.proof.objective == pytest.approx(by_program.proof.objective, rel=1e-5)


def test_a_time_limit_leaves_a_plan_within_its_bound() -> None:
    problem = priced(generators.abilene()).scale_demands(3)
    decision = least_cost.route(problem, options=Options(time_limit_s=1e-6))
    assert decision.plan is not None
    check(problem, decision.plan)
    bound = decision.proof.bound
    assert bound is None or bound <= decision.proof.objective


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner_models.flows import simplex

    monkeypatch.setattr(simplex, "PIVOTS_PER_CALL", 5)
    seen: list[progress.Progress] = []
    with progress.observe(seen.append):
        search = LeastCostFlow(generators.abilene().scale_demands(5))
        search.deliver_most()
    assert len(seen) > 3
    value = search.delivered_mbps()
    for state in seen:
        assert state.metric == "delivered_mbps"
        assert state.objective <= value * (1 + 1e-9) <= state.bound * (1 + 1e-6)


def test_another_solver_is_refused() -> None:
    problem = network(DIAMOND, [("s", "t", 12.0)], cost=[1.0, 1.0, 3.0, 3.0])
    with pytest.raises(InputError, match=r"^backend is 'ortools:glop'"):
        least_cost.route(problem, options=Options(backend="ortools:glop"))


@settings(max_examples=15)
@given(
    problems(max_nodes=6, max_demands=6, costs=True),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.sampled_from([None, 2]),
    st.integers(0, 2**16),
)
def test_a_start_from_the_plan_before_does_not_change_the_optimum(
    problem: Traffic, factor: float, count: int | None, seed: int
) -> None:
    problem = problem.scale_demands(factor)
    random = np.random.default_rng(seed)
    other = problem.with_rates(problem.rate_mbps * random.uniform(0.2, 5.0, len(problem.demands)))
    paths = None if count is None else path_flow_program.find_paths(other, count=count)
    cold = least_cost.route(other, paths=paths)
    warm = least_cost.route(other, paths=paths, previous=least_cost.route(problem))
    assert warm.proof.status is cold.proof.status is Status.OPTIMAL
    assert warm.proof.objective == pytest.approx(cold.proof.objective, rel=1e-6, abs=1e-6)
    assert warm.plan is not None
    check(other, warm.plan)


def test_the_largest_flow_begins_at_that_of_other_rates() -> None:
    """Two paths may each carry more than half of a rate that is lower now."""
    random, flow = np.random.default_rng(0), None
    problem = generators.abilene().scale_demands(10.0)
    for _ in range(6):
        other = problem.with_rates(problem.rate_mbps * random.uniform(0.0, 2.0, len(problem.demands)))
        search = LeastCostFlow(other)
        assert search.deliver_most(start=flow)
        assert search.delivered_mbps() == pytest.approx(search.total_bound_mbps(), rel=1e-9)
        flow = search.path_flow()
