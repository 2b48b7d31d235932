"""Assignment of demands to candidate paths: against plain searches, and over tunnels with their limits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.errors import InputError
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import hedera, path_assignment
from planner_models.traffic.designs.optimum import optimum
from tests.models.traffic.networks import both_ways, network, problems


def ring(rate: float = 6.0) -> Traffic:
    lines = both_ways([("a", "b", 10.0), ("b", "c", 10.0), ("c", "d", 10.0), ("d", "a", 10.0)])
    return network(lines, [("a", "c", rate), ("a", "b", rate), ("d", "c", rate)])


@settings(deadline=None, max_examples=30)
@given(problems(max_nodes=6, max_demands=6), st.integers(1, 4), st.integers(0, 100))
def test_first_fit_is_a_plain_search(problem: Traffic, count: int, seed: int) -> None:
    assignable = path_assignment.find_assignable(problem.routable, count)
    selected = path_assignment.first_fit(
        problem.routable, assignable, problem.rate_mbps, np.random.default_rng(seed)
    )
    residual = problem.capacity_mbps.copy()
    for k in range(len(problem.demands)):
        paths = np.flatnonzero(assignable.demand == k).tolist()
        if not paths:
            assert selected[k] == -1
            continue
        rate = problem.rate_mbps[k]
        fitting = [p for p in paths if all(residual[e] >= rate * (1 - 1e-9) for e in assignable.links_of(p))]
        if fitting:
            assert selected[k] == fitting[0]
            residual[list(assignable.links_of(fitting[0]))] -= rate
        else:
            assert selected[k] in paths


@settings(deadline=None, max_examples=20)
@given(problems(max_nodes=5, max_demands=4), st.integers(0, 100))
def test_annealing_comes_to_the_least_excess_of_all_assignments(problem: Traffic, seed: int) -> None:
    problem = problem.routable
    assignable = path_assignment.find_assignable(problem, 3)
    selected = path_assignment.anneal(
        problem,
        assignable,
        problem.rate_mbps,
        iterations=3_000,
        temperature=0.3,
        random=np.random.default_rng(seed),
    )

    def excess(paths: tuple[int, ...] | list[int]) -> float:
        load = np.zeros(len(problem.links))
        for p in paths:
            load[list(assignable.links_of(p))] += problem.rate_mbps[assignable.demand[p]]
        return float(np.maximum(load - problem.capacity_mbps, 0).sum())

    options = [np.flatnonzero(assignable.demand == k).tolist() for k in np.unique(assignable.demand)]
    lower = min(excess(combination) for combination in itertools.product(*options))
    assert excess(selected[selected >= 0].tolist()) == pytest.approx(lower, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("design", [hedera.route_first_fit, hedera.route_annealing])
def test_paths_keep_limits_and_never_beat_the_optimum(design: object) -> None:
    problem = planner.load("traffic/wan_routes").make_problem()
    for paths in ("tunnels", 3):
        decision = design(problem, paths=paths)  # type: ignore[operator]
        check(problem, decision.plan)
        metrics = measure(problem, decision.plan, None)
        assert not metrics["rule_violations"]
        assert not metrics["latency_violations"]
        best = optimum.route(problem, paths=paths).proof.bound  # type: ignore[arg-type]
        assert metrics["delivered_mbps"] <= best * (1 + 1e-6)


def test_a_demand_is_not_split_over_its_tunnels() -> None:
    tunnels = pd.DataFrame({"path": ["a > b > c", "a > d > c", "a > b", "d > c"]})
    problem = replace(ring(), tunnels=tunnels)
    decision = hedera.route_first_fit(problem, paths="tunnels")
    routes = decision.plan.routes
    assert routes is not None
    assert routes["path"].tolist() == ['["a", "b", "c"]', '["a", "b"]', '["d", "c"]']
    # whichever way the long demand takes, one link has 12 of 10
    best = hedera.route_annealing(problem, paths="tunnels").plan
    assert measure(problem, best, None)["delivered_mbps"] == pytest.approx(16.0)


def test_demands_without_a_tunnel_are_shed() -> None:
    problem = replace(ring(), tunnels=pd.DataFrame({"path": ["a > b > c"]}))
    plan = hedera.route_first_fit(problem, paths="tunnels").plan
    assert plan.shed is not None
    assert plan.shed["rate_mbps"].sum() == pytest.approx(12.0)
    with pytest.raises(InputError, match="has no table 'tunnels'"):
        hedera.route_first_fit(ring(), paths="tunnels")
