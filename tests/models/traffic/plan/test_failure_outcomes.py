"""Delivered traffic in failures while nobody plans again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from planner_models.traffic import Traffic, measure
from planner_models.traffic.designs import ecmp, tunnels
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.availability import measure_failures
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.failure_outcomes import deliver_in_failures, find_restoration
from planner_models.traffic.plan.metrics import break_down
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.rerouting import Rerouting
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.adjustments import adjust
from planner_models.traffic.problem.failure_sets import build_failure_set
from tests.models.traffic.networks import both_ways, class_problems, network, problems

SQUARE = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 6.0), ("c", "d", 6.0)])
EVEN = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)])


def restoration_of(problem: Traffic, plan: Routing) -> str:
    return find_restoration(problem, plan)


def arrives_in(problem: Traffic, plan: Routing) -> dict[str, list[float]]:
    failures = build_failure_set(problem, "links")
    result = deliver_in_failures(problem, plan, failures)
    return dict(zip(failures.names, result.round(9).tolist(), strict=True))


def test_sources_split_over_the_paths_of_flows_that_survive() -> None:
    problem = network(SQUARE, [("a", "d", 12.0)])
    plan = optimum.route(replace(problem, links=problem.links.assign(weight=[1.0, 1, 2, 2] * 2))).plan
    assert plan is not None
    assert restoration_of(problem, plan) == "reconverge"  # equal weights here: all of it is on shortest paths
    uneven = replace(problem, links=problem.links.assign(weight=[1.0, 1, 2, 2] * 2))
    assert restoration_of(uneven, plan) == "local"
    # 12 Mbit/s on one path of 10 or of 6
    assert arrives_in(uneven, plan) == {"a<->b": [6.0], "b<->d": [6.0], "a<->c": [10.0], "c<->d": [10.0]}


def test_tunnels_share_what_lost_tunnels_carried() -> None:
    paths = pd.DataFrame({"path": ["a > b > d", "a > c > d"], "weight": [3.0, 1.0]})
    problem = replace(network(SQUARE, [("a", "d", 8.0)]), tunnels=paths)
    plan = tunnels.route(problem).plan
    assert plan is not None
    assert restoration_of(problem, plan) == "local"
    assert arrives_in(problem, plan) == {"a<->b": [6.0], "b<->d": [6.0], "a<->c": [8.0], "c<->d": [8.0]}


def test_a_plan_with_link_weights_finds_shortest_paths_by_them() -> None:
    problem = network(SQUARE, [("a", "d", 8.0)])
    heavy = replace(problem, links=problem.links.assign(weight=[1.0, 1, 2, 2] * 2))
    plan = ecmp.route(heavy).plan
    assert plan is not None
    weights = plan.links[["tail", "head", "parallel"]].assign(weight=heavy.weight)
    plan = replace(plan, weights=weights)
    assert restoration_of(problem, plan) == "reconverge"
    assert arrives_in(problem, plan) == {"a<->b": [6.0], "b<->d": [6.0], "a<->c": [8.0], "c<->d": [8.0]}


@settings(max_examples=8)
@given(problems(max_nodes=5, parallel=False))
def test_shortest_paths_are_those_of_the_network_that_is_left(problem: Traffic) -> None:
    for design in (ecmp.route, ecmp.route_single):
        plan = design(problem).plan
        assert plan is not None
        failures = build_failure_set(problem, "links")
        result = deliver_in_failures(problem, plan, failures)
        if design is ecmp.route_single:
            assert (result <= problem.rate_mbps * (1 + 1e-9)).all()
            continue
        for name, arrives in zip(failures.names, result, strict=True):
            remaining_problem = adjust(problem, fail_links=(name,))
            again = ecmp.route(remaining_problem).plan
            assert again is not None
            expected = delivered_rates(remaining_problem, verify_flow(remaining_problem, again))
            assert arrives == pytest.approx(expected, rel=1e-6, abs=1e-9)


@settings(max_examples=10)
@given(problems(max_nodes=5, parallel=False))
def test_rerouting_delivers_the_largest_total_flow(problem: Traffic) -> None:
    failures = build_failure_set(problem, "links")
    rerouting = Rerouting(problem, problem.rate_mbps)
    for name, down in zip(failures.names, failures.link_down, strict=True):
        remaining_problem = adjust(problem, fail_links=(name,))
        upper = 0.0
        if len(remaining_problem.routable.targets):
            upper = optimum.route(remaining_problem, objective="total").proof.objective or 0.0
        assert rerouting.deliver(np.flatnonzero(down)).sum() == pytest.approx(upper, rel=1e-6, abs=1e-6)


def test_availability_is_the_time_in_which_all_of_a_demand_arrives() -> None:
    table = pd.DataFrame({"failure": ["x", "y"], "member": ["a<->b", "a<->c"], "probability": [0.1, 0.02]})
    problem = replace(network(EVEN, [("a", "d", 12.0), ("a", "b", 2.0)]), failures=table)
    plan = ecmp.route(problem).plan
    assert plan is not None
    figures = measure_failures(problem, plan)
    assert figures is not None
    by_demand = figures.by_demand()
    assert by_demand is not None
    # without a-b, 14 Mbit/s share a-c, and 12 without a-c
    assert by_demand.tolist() == pytest.approx([0.88, 0.88])
    metrics = measure(problem, plan, None)
    assert metrics["worst_delivered_mbps"] == pytest.approx(10.0)
    assert metrics["availability"] == pytest.approx(0.88)
    assert metrics["min_availability"] == pytest.approx(0.88)
    assert metrics["traffic_risk"] == pytest.approx(4 / 14)
    assert metrics["guaranteed_mbps"] is None


@settings(max_examples=8)
@given(class_problems())
def test_classes_have_their_own_availability(problem: Traffic) -> None:
    line = f"{problem.links['tail'].iloc[0]}->{problem.links['head'].iloc[0]}"
    table = pd.DataFrame({"failure": ["x"], "member": [line], "probability": [0.25]})
    problem = replace(problem, failures=table)
    plan = ecmp.route(problem).plan
    assert plan is not None
    frame = break_down(problem, plan).frame  # type: ignore[union-attr]
    overall = measure(problem, plan, None)["availability"]
    weight = frame["offered_mbps"]
    assert float((frame["availability"] * weight).sum() / weight.sum()) == pytest.approx(overall)
    assert (frame["worst_delivered_mbps"] <= frame["delivered_mbps"] * (1 + 1e-9)).all() or len(frame) > 1
