"""Least cost and largest total flow by the simplex method over paths, against linear programs over links."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import InputError, Options, Status, load
from planner.contract import progress
from planner.contract.design import Decision
from planner_models.flows import path_flow_program
from planner_models.flows.least_cost_flow import LeastCostFlow
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import column_generation, optimum
from planner_models.traffic.designs.path_flows import least_cost
from planner_models.traffic.designs.path_flows.least_cost import shorten
from planner_models.traffic.plan.flow_decision import routing_of_paths
from planner_models.traffic.plan.plan import Routing
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
    plan = routing_of_paths(problem, search.order, search.path_flow())
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


def least_length(problem: Traffic, utilization: float) -> float:
    """Return the least sum of routing metric times load within that utilization, by a program of its own."""
    nodes, links, demands = len(problem.nodes), len(problem.links), len(problem.demands)
    incidence = np.zeros((nodes, links))
    np.add.at(incidence, (problem.tail, np.arange(links)), 1.0)
    np.add.at(incidence, (problem.head, np.arange(links)), -1.0)
    supply = np.zeros((demands, nodes))
    np.add.at(supply, (np.arange(demands), problem.source), problem.rate_mbps)
    np.add.at(supply, (np.arange(demands), problem.target), -problem.rate_mbps)
    solution = linprog(
        np.tile(problem.weight, demands),
        A_ub=sp.hstack([sp.eye_array(links)] * demands),
        b_ub=problem.capacity_mbps * utilization,
        A_eq=sp.block_diag([incidence] * demands),
        b_eq=supply.ravel(),
    )
    return float(solution.fun)


def length(problem: Traffic, decision: Decision[Routing]) -> float:
    """Return the sum of routing metric times load of a plan."""
    assert decision.plan is not None
    return float(problem.weight @ decision.plan.links["load_mbps"].to_numpy(float))


@settings(max_examples=15)
@given(problems(max_nodes=6, max_demands=6))
def test_no_plan_of_the_same_utilization_is_shorter(problem: Traffic) -> None:
    problem = problem.scale_demands(0.05)
    before = column_generation.route(problem)
    assume((before.proof.objective or 0.0) >= 1 and before.plan is not None)
    assert before.plan is not None
    after = shorten(problem, before)
    assert after.plan is not None
    check(problem, after.plan)
    assert measure(problem, after.plan, None)["delivered_mbps"] == pytest.approx(problem.rate_mbps.sum())
    busiest = float(before.plan.links["utilization"].max())
    assert float(after.plan.links["utilization"].max()) <= busiest * (1 + 1e-9)
    assert length(problem, after) <= length(problem, before)
    assert length(problem, after) <= least_length(problem, busiest * (1 + 1e-7)) * (1 + 1e-5) + 1e-6
    assert after.proof == before.proof


def test_only_what_the_busiest_link_needs_takes_a_detour() -> None:
    links = [("s", "t", 10.0), ("s", "a", 10.0), ("a", "t", 10.0), ("t", "u", 2.0)]
    problem = network(links, [("s", "t", 6.0), ("t", "u", 1.0)])
    before = column_generation.route(problem)
    after = shorten(problem, before)
    assert after.plan is not None
    # half of the last link's capacity is used, so the direct link may carry 5, and 1 takes two links
    assert after.plan.links["load_mbps"].tolist() == pytest.approx([5, 1, 1, 1])


def test_on_too_many_links_the_plan_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_cost, "MAX_SIMPLEX_LINKS", 3)
    links = [("s", "t", 10.0), ("s", "a", 10.0), ("a", "t", 10.0), ("t", "u", 2.0)]
    problem = network(links, [("s", "t", 6.0), ("t", "u", 1.0)])
    before = column_generation.route(problem)
    assert shorten(problem, before) is before


def test_plans_of_a_backbone_are_shorter_than_those_of_the_linear_program() -> None:
    problem = load("traffic/germany50").make_problem()
    ours, other = optimum.route(problem), optimum.route(problem, method="lp")
    assert ours.plan is not None
    assert other.plan is not None
    check(problem, ours.plan)
    ends = [measure(problem, item.plan, None) for item in (ours, other)]
    assert ends[0]["mean_path_stretch"] < ends[1]["mean_path_stretch"]
    assert ends[0]["max_utilization"] == pytest.approx(ends[1]["max_utilization"], rel=1e-6)
    assert ours.proof.objective == ours.proof.bound == pytest.approx(problem.rate_mbps.sum())
