"""Properties of the designs: bounds, monotony, one cluster, the reference model, and guarantees."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends.pyomo import solve_model
from planner.contract.proof import Status
from planner.options import Options
from planner_models.cdnrouting import SYSTEM, Delivery, check, formulation, measure
from planner_models.cdnrouting.designs import bargain, cdn_options, hierarchical, joint, reaction
from planner_models.cdnrouting.plan.check import evaluate
from planner_models.cdnrouting.problem import generators
from tests.models.cdnrouting.deliveries import network, with_capacity

FEW_ROUNDS = {"react_blind": 4, "react_informed": 4, "isp_ranks": 4, "bargain": 3}
SEEDS = st.integers(0, 1_000)


def run(problem: Delivery, name: str, **parameters: Any) -> dict[str, float | None]:
    """Return the metrics of a design's plan, which keeps its guarantees."""
    if name in FEW_ROUNDS:
        parameters = {"rounds": FEW_ROUNDS[name], **parameters}
    decision = SYSTEM.design(name).run(problem, parameters=parameters)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
    return measure(problem, decision.plan, None)


@given(seed=SEEDS)
@settings(max_examples=3)
def test_no_design_beats_the_bound_of_joint(seed: int) -> None:
    problem = network(seed)
    bound = joint.plan(problem).proof.bound
    assert bound is not None
    for design in SYSTEM.designs:
        delay = run(problem, design.name)["mean_delay_ms"]
        assert delay is not None
        assert delay >= bound * (1 - 1e-9), design.name


@given(seed=SEEDS)
@settings(max_examples=3)
def test_joint_has_the_optimum_of_the_reference_model(seed: int) -> None:
    problem = network(seed, nodes=5, clusters=2)
    decision = joint.plan(problem)
    solution = solve_model(formulation(problem, tangents=300), Options(threads=1))
    assert solution.objective is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound is not None
    below = solution.objective / problem.offered_mbps
    assert below <= decision.proof.objective * (1 + 1e-9)
    assert decision.proof.bound >= below * (1 - 1e-3)


@given(seed=SEEDS)
@settings(max_examples=3)
def test_more_options_never_cost_the_network_more(seed: int) -> None:
    problem = network(seed)
    options = Options(gap=1e-6)
    costs = [cdn_options.plan(problem, k=k, options=options).proof.objective for k in (1, 2, 3)]
    best = joint.plan(problem, objective="isp_cost", options=options).proof.objective
    assert None not in costs
    assert best is not None
    found = np.array(costs, dtype=float)
    assert (np.diff(found) <= 1e-5 * found[:-1]).all()
    assert found[-1] == pytest.approx(best, rel=1e-5)  # all clusters on offer


def test_one_cluster_makes_all_designs_that_route_alike_equal() -> None:
    problem = network(3, clusters=1)
    options = Options(gap=1e-7)
    expected = joint.plan(problem, objective="isp_cost", options=options).proof.objective
    for design in (cdn_options.plan, hierarchical.plan):
        assert design(problem, options=options).proof.objective == pytest.approx(expected, rel=1e-6)
    (state,) = evaluate(problem, reaction.plan_informed(problem, options=options).plan)  # type: ignore[arg-type]
    assert state.isp_cost == pytest.approx(expected, rel=1e-3)


def test_a_bargain_is_no_worse_than_the_reaction_for_either() -> None:
    problem = network(1, load=1.0)
    decision = bargain.plan(problem, rounds=3, points=4)
    assert decision.plan is not None
    assert decision.plan.outcome is not None
    (state,) = evaluate(problem, decision.plan)
    start = decision.plan.outcome.iloc[0]
    assert state.isp_cost <= start["isp_cost"] * (1 + 1e-6)
    assert (state.cdn_delay_ms or 0.0) <= start["cdn_delay_ms"] * (1 + 1e-6)
    assert "outcome" in (decision.guarantees or ())


def test_hierarchical_keeps_the_totals_of_the_nearest_clusters() -> None:
    problem = network(2)
    plan = hierarchical.plan(problem).plan
    near = SYSTEM.design("separate").run(problem).plan
    assert plan is not None
    assert near is not None
    totals = [evaluate(problem, each)[0].cluster_mbps for each in (plan, near)]
    assert totals[0] == pytest.approx(totals[1], rel=1e-6)


def test_small_steps_calm_a_reaction() -> None:
    calm, wild = (
        reaction.plan_blind(network(1, nodes=10, clusters=4, step=step), rounds=8).plan for step in (0.2, 1.0)
    )
    problem = network(1, nodes=10, clusters=4)
    assert calm is not None
    assert wild is not None
    swings = [measure(problem, plan, None)["swing"] for plan in (calm, wild)]
    assert swings[0] is not None
    assert swings[1] is not None
    assert swings[0] < swings[1]


def test_short_capacity_is_shed_or_proven() -> None:
    problem = with_capacity(generators.small(), 0.3)
    decision = joint.plan(problem)
    assert decision.plan is not None
    assert decision.plan.shed is not None
    missing = problem.group_mbps.sum() - problem.capacity_mbps.sum()
    assert decision.plan.shed["mbps"].sum() == pytest.approx(missing, rel=1e-4)
    assert not len(check(problem, decision.plan))
    proof = joint.plan(problem, options=Options(service="all")).proof
    assert proof.status is Status.INFEASIBLE
    assert "too few for" in proof.reasons[0]


@pytest.mark.parametrize("name", ["bargain", "isp_ranks", "react_blind", "react_informed"])
def test_a_time_limit_ends_the_rounds_of_a_reaction(name: str) -> None:
    problem = network(1, nodes=10, clusters=4, step=1e-3)
    decision = SYSTEM.design(name).run(
        problem, options=Options(time_limit_s=0.05), parameters={"rounds": 1000}
    )
    assert decision.plan is not None
    assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
    assert decision.plan.rounds is None or len(decision.plan.rounds) < 400


def test_a_network_without_links_that_are_up_serves_clients_in_place() -> None:
    problem = generators.small()
    down = replace(problem, links=problem.links.assign(capacity_mbps=0.0))
    decision = joint.plan(down)
    assert decision.plan is not None
    assert not len(check(down, decision.plan))
    assert (measure(down, decision.plan, None)["unserved_mbps"] or 0.0) > 0


def test_clients_without_any_delay_stay_where_they_are() -> None:
    """All clients are at the node of a cluster, so that no assignment has less delay."""
    problem = generators.small()
    node = str(problem.links["tail"].iloc[0])
    places = problem.places.assign(node=node).drop_duplicates("location").assign(share=1.0)
    slow = problem.links.assign(latency_ms=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = run(replace(problem, places=places, links=slow), "react_informed")
    assert metrics["cdn_delay_ms"] == pytest.approx(0.0)
