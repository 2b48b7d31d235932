"""Equal-cost multipath: worked examples, and what its variants share."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic, check, measure
from planner_models.traffic.designs import ecmp
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import as_graph, both_ways, network, problems

DIAMOND = both_ways([("s", "a", 1.0), ("s", "b", 1.0), ("a", "t", 1.0), ("b", "t", 1.0)])


def loads(decision: Decision[Any]) -> list[float]:
    assert decision.plan is not None
    return [float(load) for load in decision.plan.links["load_mbps"]]


def test_ecmp_halves_over_two_equal_paths() -> None:
    assert loads(ecmp.route(network(DIAMOND, [("s", "t", 1.0)])))[:4] == [0.5] * 4


def test_hashing_keeps_a_flow_whole() -> None:
    result = {
        tuple(loads(ecmp.route_hashed(network(DIAMOND, [("s", "t", 1.0)]), seed=seed))[:4])
        for seed in range(20)
    }
    assert result == {(1.0, 0.0, 1.0, 0.0), (0.0, 1.0, 0.0, 1.0)}


def test_a_single_path_is_the_first_of_the_table() -> None:
    assert loads(ecmp.route_single(network(DIAMOND, [("s", "t", 1.0)])))[:4] == [1.0, 0.0, 1.0, 0.0]


def test_weights_decide_which_paths_are_equal() -> None:
    problem = network(DIAMOND, [("s", "t", 1.0)], weight=[2.0, *([1.0] * 7)])
    assert loads(ecmp.route(problem))[:4] == [0.0, 1.0, 0.0, 1.0]


@given(problems(), st.integers(0, 50))
def test_every_demand_is_served_over_shortest_paths(problem: Traffic, seed: int) -> None:
    decisions = [
        ecmp.route(problem),
        ecmp.route_hashed(problem, seed=seed),
        ecmp.route_single(problem),
    ]
    for decision in decisions:
        assert decision.plan is not None
        assert check(problem, decision.plan).of_limits({"demand"}).frame.empty
        assert measure(problem, decision.plan, None)["mean_path_stretch"] == pytest.approx(1.0)


@pytest.mark.slow
def test_hashing_many_flows_comes_close_to_splitting() -> None:
    """The mean over many hashes is the even split."""
    problem = generators.fat_tree(k=4)
    mean = np.mean([loads(ecmp.route_hashed(problem, seed=seed)) for seed in range(300)], axis=0)
    assert mean == pytest.approx(np.array(loads(ecmp.route(problem))), abs=250.0)


@pytest.mark.parametrize("route", [ecmp.route, ecmp.route_single])
@given(problem=problems())
def test_flows_per_target_are_the_sums_of_those_of_demands(route: Any, problem: Traffic) -> None:
    by_demand = route(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ecmp, "MAX_PAIR_ROWS", -1)
        by_target = route(problem)
    assert len(check(problem, by_target.plan).of_limits(by_target.guarantees)) == 0
    assert loads(by_target) == pytest.approx(loads(by_demand), rel=1e-9)
    assert "source" not in by_target.plan.flows or not len(by_target.plan.flows)
    expected, result = (measure(problem, decision.plan, None) for decision in (by_demand, by_target))
    for name in ("delivered_mbps", "lost_mbps", "shed_mbps", "mean_path_stretch", "min_rate_share"):
        assert result[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-9)


@given(problem=problems())
def test_flows_are_the_fewest_links_of_all_demands(problem: Traffic) -> None:
    hops = dict(nx.all_pairs_shortest_path_length(as_graph(problem)))
    demands = problem.demands[problem.rate_mbps > 0]
    expected = sum(
        hops.get(source, {}).get(target, 0)
        for source, target in zip(demands["source"], demands["target"], strict=True)
    )
    assert ecmp.count_flows(problem) == expected


@pytest.mark.parametrize("design", ["ecmp_hash", "mptcp", "drain", "ffc"])
def test_a_design_says_that_the_limit_is_too_short_and_how_long_it_takes(
    design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ecmp, "S_PER_FLOW", 0.1)
    problem = generators.abilene()
    entry = Entry(label=design, design=SYSTEM.design(design))
    flows = ecmp.count_flows(problem)
    run = evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=0.09 * flows))
    assert run.plan is None
    assert run.proof.status is Status.UNDECIDED
    assert f"on {flows:,} links in all take {0.1 * flows:.0f} s or more" in run.proof.reasons[0]
    monkeypatch.setattr(ecmp, "S_PER_FLOW", 1e-6)
    assert evaluate(SYSTEM, problem, entry, options=Options(time_limit_s=30.0)).plan is not None
