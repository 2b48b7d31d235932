"""Column generation under limits: agreement with a linear program over all routes, and properties."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs import (
    concurrent_flow_fptas,
    ecmp,
    hedera,
    mptcp,
    tunnels,
    utility_maximization,
)
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.check import check
from tests.models.traffic.networks import both_ways, network
from tests.models.traffic.restricted_networks import (
    divide_demands,
    draw_network,
    find_paths,
    solve_by_priority,
    solve_over_paths,
)

OBJECTIVES = ("total", "concurrent", "utilization", "cost", "delivered")
seeds = st.integers(0, 1_000_000)


@pytest.mark.slow
@given(seeds)
@settings(max_examples=12, deadline=None)
def test_agrees_with_a_program_over_all_routes(seed: int) -> None:
    problem = draw_network(seed)
    paths = find_paths(problem)
    if not any(paths):
        return
    for objective in OBJECTIVES:
        decision = optimum.route(problem, objective=objective)
        expected = solve_over_paths(problem, paths, objective)
        assert decision.proof.status is Status.OPTIMAL, objective
        assert decision.proof.objective == pytest.approx(expected, rel=1e-5, abs=1e-6), objective
        assert decision.proof.bound == pytest.approx(expected, rel=1e-5, abs=1e-6), objective
        assert not {"latency", "rules"} & set(check(problem, decision.plan).frame["limit"])


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_looser_limits_and_more_capacity_never_hurt(seed: int) -> None:
    problem = draw_network(seed)

    def value(item: Traffic) -> float:
        return optimum.route(item, objective="total").proof.objective or 0.0

    base = value(problem)
    looser = problem.demands.assign(max_latency_ms=problem.demands["max_latency_ms"] * 2)
    for better in (
        replace(problem, demands=looser),
        replace(problem, rules=None),
        problem.scale_capacity(1.5),
    ):
        assert value(better) >= base - 1e-6 * max(base, 1.0)


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_no_plan_that_keeps_limits_exceeds_the_bound(seed: int) -> None:
    problem = draw_network(seed)
    bound = optimum.route(problem, objective="total").proof.bound
    for decision in (ecmp.route(problem), optimum.route(problem, paths=3, objective="total")):
        violations = check(problem, decision.plan)
        metrics = SYSTEM.plan.measure(problem, decision.plan, None)
        if not {"latency", "rules"} & set(violations.frame["limit"]):
            assert metrics["delivered_mbps"] <= (bound or 0.0) + 1e-6


@pytest.mark.slow
@given(seeds)
@settings(max_examples=6, deadline=None)
def test_classes_with_limits_of_their_own_get_what_programs_of_all_routes_give(seed: int) -> None:
    problem = divide_demands(draw_network(seed), seed)
    paths = find_paths(problem)
    if not any(paths):
        return
    expected = solve_by_priority(problem, paths)
    for objective in ("delivered", "cost"):
        decision = optimum.route(problem, objective=objective)
        assert decision.proof.status is Status.OPTIMAL
        for level, value in zip(decision.proof.levels, expected, strict=True):
            assert level.objective == pytest.approx(value, rel=1e-5, abs=1e-5)
            assert level.bound == pytest.approx(value, rel=1e-5, abs=1e-5)
        assert not len(check(problem, decision.plan))
    for objective in ("concurrent", "utilization"):
        decision = optimum.route(problem, objective=objective)
        assert decision.proof.objective == pytest.approx(
            solve_over_paths(problem, paths, objective), rel=1e-5, abs=1e-6
        )


@pytest.mark.slow
@given(seeds)
@settings(max_examples=3, deadline=None)
def test_designs_under_limits_by_class_stay_within_the_proven_bounds(seed: int) -> None:
    problem = divide_demands(draw_network(seed, tunnels=True), seed)
    if not any(find_paths(problem)):
        return
    together = optimum.route(problem, objective="concurrent").proof.bound
    total = optimum.route(problem, objective="total", classes="ignored").proof.bound
    designs = (
        partial(optimum.route, paths="tunnels"),
        partial(optimum.route, paths=2),
        partial(utility_maximization.route, fairness="max-min"),
        concurrent_flow_fptas.route,
        tunnels.route,
        partial(hedera.route_first_fit, paths=2),
        partial(mptcp.route, paths=2),
    )
    for decide in designs:
        plan = decide(problem).plan
        if plan is None or {"latency", "rules"} & set(check(problem, plan).frame["limit"]):
            assert decide is tunnels.route or plan is None  # demands without a tunnel follow shortest paths
            continue
        metrics = SYSTEM.plan.measure(problem, plan, None)
        assert metrics["delivered_mbps"] <= total * (1 + 1e-6) + 1e-6
        assert (metrics["min_rate_share"] or 0.0) <= together * (1 + 1e-6) + 1e-6


def test_the_limit_of_one_class_leaves_the_routes_of_another() -> None:
    """Voice must arrive within 5 ms and fills the short route; bulk may take the long one."""
    problem = limited()
    demands = pd.DataFrame(
        [("a", "d", "voice", 9.0, 5.0), ("a", "d", "bulk", 5.0, np.nan)],
        columns=["source", "target", "class", "rate_mbps", "max_latency_ms"],
    )
    classes = pd.DataFrame({"class": ["voice", "bulk"], "priority": [1, 2]})
    problem = replace(problem, demands=demands, classes=classes)
    decision = optimum.route(problem, options=Options(service="all"))
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(14.0)
    assert not len(check(problem, decision.plan))


LINKS = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 4.0), ("c", "d", 4.0)])


def limited(**tables: pd.DataFrame) -> Traffic:
    problem = network(LINKS, [("a", "d", 12.0)], latency_ms=[1.0, 1.0, 5.0, 5.0] * 2)
    demands = problem.demands.assign(max_latency_ms=5.0)
    return replace(problem, demands=demands, **tables)


def test_a_limit_closes_the_longer_route() -> None:
    decision = optimum.route(limited())
    assert decision.proof.objective == pytest.approx(10.0)
    assert decision.proof.bound == pytest.approx(10.0)
    assert decision.proof.bound_scope == "routes that keep latency limits and rules"
    assert decision.plan is not None
    assert decision.plan.routes is not None
    assert decision.plan.routes["path"].tolist() == ['["a", "b", "d"]']


def test_a_rule_that_no_route_keeps_sheds_its_demand() -> None:
    rules = pd.DataFrame({"rule": ["use"], "node": ["c"]})
    decision = optimum.route(limited(rules=rules))
    assert decision.plan is not None
    assert decision.plan.shed is not None
    assert decision.plan.shed["rate_mbps"].tolist() == [12.0]
    refused = optimum.route(limited(rules=rules), options=Options(service="all"))
    assert refused.proof.status is Status.INFEASIBLE
    assert refused.proof.reasons == ("demand a->d has no path that keeps its latency limit and its rules",)


def test_service_all_proves_that_limits_leave_too_little() -> None:
    decision = optimum.route(limited(), options=Options(service="all"))
    assert decision.proof.status is Status.INFEASIBLE
    assert "at most 83.3333% of every demand fits" in decision.proof.reasons[0]


def test_ecmp_breaks_limits_and_is_told() -> None:
    problem = replace(limited(), rules=pd.DataFrame({"rule": ["avoid"], "node": ["b"]}))
    links = problem.links.assign(latency_ms=problem.links["latency_ms"] * 10)
    problem = replace(problem, links=links)
    decision = ecmp.route(problem)
    result = check(problem, decision.plan).frame.set_index("limit")
    assert result.loc["latency", "amount"] == pytest.approx(100.0)
    assert result.loc["rules", "where"] == "a->d: avoid b"
    metrics = SYSTEM.plan.measure(problem, decision.plan, None)
    assert metrics["latency_violations"] == metrics["rule_violations"] == 1.0
    free = network(LINKS, [("a", "d", 12.0)])
    unlimited = SYSTEM.plan.measure(free, ecmp.route(free).plan, None)
    assert unlimited["latency_violations"] is None
    assert unlimited["rule_violations"] is None


def test_an_incumbent_and_a_bound_at_any_time_limit() -> None:
    problem = limited()
    decision = optimum.route(problem, objective="total", options=Options(time_limit_s=1e-3))
    assert decision.plan is not None
    assert decision.proof.bound is not None
    assert decision.proof.bound >= 10.0 - 1e-6


def test_other_solvers_are_refused() -> None:
    with pytest.raises(InputError):
        optimum.route(limited(), options=Options(backend="ortools:glop"))
    with pytest.raises(InputError, match="no latency limits and rules"):
        optimum.model(limited())
    with pytest.raises(InputError, match="which the formal model does not know"):
        SYSTEM.formulation(limited())


def test_metrics_of_a_plan_without_routes_follow_its_flows() -> None:
    decision = optimum.route(limited())
    plan = replace(decision.plan, routes=None)
    assert SYSTEM.plan.measure(limited(), plan, None)["latency_violations"] == 0.0
    assert np.isfinite(decision.proof.objective or np.nan)


@pytest.mark.slow
@given(seeds)
@settings(max_examples=6, deadline=None)
def test_a_start_from_the_plan_before_does_not_change_the_optimum(seed: int) -> None:
    problem = draw_network(seed)
    other = problem.scale_demands(1.5)
    for objective in ("total", "utilization", "cost"):
        before = optimum.route(problem, objective=objective)
        cold, warm = (optimum.route(other, objective=objective, previous=start) for start in (None, before))
        assert warm.proof.status is cold.proof.status
        if cold.proof.objective is not None:
            assert warm.proof.objective == pytest.approx(cold.proof.objective, rel=1e-5, abs=1e-6)
        assert warm.plan is None or not {"latency", "rules"} & set(check(other, warm.plan).frame["limit"])
