"""Least cost by the augmented Lagrangian against linear programs over links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options, Status
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import optimum, optimum_search
from planner_models.traffic.designs.optimum_search import GivenRoutes, OptimumSearch
from planner_models.traffic.designs.path_flows import approximate_cost
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import network, problems


@pytest.mark.slow
@settings(max_examples=20)
@given(problems(max_nodes=6, max_demands=6, costs=True), st.sampled_from([0.3, 1.0, 4.0]))
def test_no_routing_that_delivers_as_much_costs_less_than_the_bound(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    decision = approximate_cost.route(problem, options=Options(gap=1e-3))
    assert decision.plan is not None
    check(problem, decision.plan)
    metrics = measure(problem, decision.plan, None)
    assert metrics["cost"] == pytest.approx(decision.proof.objective, rel=1e-9)
    delivered = metrics["delivered_mbps"]
    upper = optimum.route(problem, objective="total", method="lp").proof.objective
    assert delivered is not None
    assert upper is not None
    assert delivered >= upper * (1 - approximate_cost.SAME_FLOW - 1e-6)
    search = OptimumSearch(problem, GivenRoutes("any", "shortest", None, "lp"), Options())
    lower = search.solve("cost", least_mbps=delivered * (1 - 1e-9)).proof.objective
    assert decision.proof.bound is not None
    assert lower is not None
    assert decision.proof.bound <= lower * (1 + 1e-6) + 1e-6


@pytest.mark.slow
def test_a_wan_costs_what_the_linear_program_finds_to_the_gap() -> None:
    problem = generators.abilene(peak_utilization=1.5)
    price = np.random.default_rng(1).integers(1, 9, len(problem.links)).astype(float)
    problem = Traffic.from_tables({**problem.to_tables(), "links": problem.links.assign(cost=price)})
    decision = approximate_cost.route(problem)
    other = optimum.route(problem, objective="cost", method="lp")
    assert decision.proof.gap is not None
    assert decision.proof.gap <= 3e-3
    assert decision.proof.objective == pytest.approx(other.proof.objective, rel=3e-3)


def test_tiny_rates_on_the_cheapest_path_are_proven_at_once() -> None:
    links = [("s", "a", 1.0), ("a", "t", 1.0), ("s", "t", 1.0)]
    problem = network(links, [("s", "t", 1e-6), ("a", "t", 3e-6)], cost=[1.0, 2.0, 5.0])
    decision = approximate_cost.route(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(1e-6 * 3 + 3e-6 * 2, rel=1e-9)


def test_a_dear_route_is_taken_where_nothing_else_delivers() -> None:
    # the first penalty is 4 times the 2 of the cheapest paths, less than the dear detour of 200
    links = [("s", "a", 1.0), ("a", "t", 10.0), ("s", "b", 9.0), ("b", "t", 9.0)]
    problem = network(links, [("s", "t", 10.0)], cost=[1.0, 1.0, 100.0, 100.0])
    decision = approximate_cost.route(problem)
    assert decision.plan is not None
    assert decision.plan.shed is None
    assert decision.proof.objective == pytest.approx(1 * 2 + 9 * 200, rel=1e-3)


def test_large_problems_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimum_search, "LARGE_DEMANDS", 2)
    monkeypatch.setattr(optimum_search, "LARGE_LINKS", 2)
    links = [("s", "a", 1.0), ("a", "t", 1.0), ("s", "t", 1.0)]
    demands = [("s", "t", 0.5), ("a", "t", 0.1), ("s", "a", 0.2)]
    problem = network(links, demands, cost=[1.0, 2.0, 5.0])
    decision = optimum.route(problem, objective="cost", method="columns")
    assert decision.proof.backend == approximate_cost.BACKEND
    assert decision.proof.objective == pytest.approx(0.5 * 3 + 0.1 * 2 + 0.2, rel=1e-6)
