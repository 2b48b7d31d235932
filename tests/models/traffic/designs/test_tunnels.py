"""Tunnels: fixed splitting, and the optimum over them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.errors import InputError, PlanRejected
from planner_models.networks.tunnels import Tunnels
from planner_models.traffic import SYSTEM, Routing, Traffic
from planner_models.traffic.designs import ecmp, tunnels
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.check import check
from planner_models.traffic.plan.deployment import deployment_tables
from planner_models.traffic.problem.adjustments import adjust
from tests.models.traffic.networks import both_ways, network
from tests.models.traffic.restricted_networks import draw_network, is_legal, solve_program

LINKS = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0), ("d", "e", 20.0)])


def with_tunnels(*rows: dict[str, object], rate: float = 12.0) -> Traffic:
    problem = network(LINKS, [("a", "d", rate), ("b", "e", 3.0)])
    return replace(problem, tunnels=pd.DataFrame(list(rows)))


def test_demands_split_by_weight() -> None:
    problem = with_tunnels(
        {"path": "a > b > d", "weight": 3, "name": "north"},
        {"path": "a > c > d", "weight": 1, "name": "south"},
    )
    decision = tunnels.route(problem, without_tunnel="shed")
    plan = decision.plan
    assert plan is not None
    assert plan.routes is not None
    assert plan.shed is not None
    assert plan.routes[["tunnel", "rate_mbps"]].to_numpy().tolist() == [["north", 9.0], ["south", 3.0]]
    assert plan.shed[["source", "target", "rate_mbps"]].to_numpy().tolist() == [["b", "e", 3.0]]
    assert not len(check(problem, plan))


def test_segments_follow_shortest_paths_with_ecmp() -> None:
    problem = with_tunnels({"path": "a > d", "kind": "segments"}, {"path": "b > d > e", "kind": "segments"})
    plan = tunnels.route(problem).plan
    assert plan is not None
    assert plan.routes is not None
    load = dict(zip(problem.link_labels, plan.links["load_mbps"], strict=True))
    assert load["a->b"] == load["a->c"] == 6.0
    assert load["b->d"] == 9.0
    assert plan.routes["kind"].tolist() == ["segments", "segments"]
    assert plan.routes["path"].tolist() == ['["a", "d"]', '["b", "d", "e"]']
    assert not len(check(problem, plan))
    paths = deployment_tables(problem, plan)["paths"]
    assert paths[["share", "tunnel", "kind"]].to_numpy().tolist() == [
        [1.0, "a > d", "segments"],
        [1.0, "b > d > e", "segments"],
    ]
    swapped = replace(plan, routes=plan.routes.assign(tunnel=["b > d > e", "a > d"]))
    with pytest.raises(PlanRejected, match="its path is not that of tunnel 'b > d > e'"):
        check(problem, swapped)


def test_a_failed_link_moves_traffic_to_the_tunnels_that_are_up() -> None:
    problem = with_tunnels({"path": "a > b > d"}, {"path": "a > c > d"}, {"path": "b > d > e"})
    failed = adjust(problem, fail_links=("b->d",))
    plan = tunnels.route(failed, without_tunnel="shed").plan
    assert plan is not None
    assert plan.routes is not None
    assert plan.shed is not None
    assert plan.routes["tunnel"].tolist() == ["a > c > d"]
    assert plan.shed[["source", "rate_mbps"]].to_numpy().tolist() == [["b", 3.0]]
    nothing = tunnels.route(adjust(problem, fail_nodes=("d",))).plan
    assert nothing is not None
    assert nothing.shed is not None
    assert nothing.shed["rate_mbps"].sum() == 15.0


def test_tunnels_beyond_a_limit_are_left_out() -> None:
    problem = with_tunnels(
        {"path": "a > b > d"}, {"path": "a > c > d"}, {"path": "a > d", "kind": "segments"}
    )
    links = problem.links.assign(latency_ms=[1.0, 1.0, 9.0, 9.0, 1.0] * 2)
    problem = replace(problem, links=links, demands=problem.demands.assign(max_latency_ms=5.0))
    decision = optimum.route(problem, paths="tunnels")
    assert decision.plan is not None
    assert decision.plan.routes is not None
    assert decision.plan.routes["tunnel"].tolist() == ["a > b > d"]
    assert decision.proof.bound_scope == "the tunnels of each demand that keep latency limits and rules"
    assert decision.proof.objective == pytest.approx(10.0)


def test_demands_without_a_tunnel_follow_shortest_paths() -> None:
    problem = with_tunnels({"path": "a > b > d"})
    plan = tunnels.route(problem).plan
    assert plan is not None
    assert plan.routes is not None
    assert plan.routes[["path", "tunnel", "kind"]].to_numpy().tolist() == [
        ['["a", "b", "d"]', "a > b > d", "explicit"],
        ['["b", "e"]', "", "segments"],
    ]
    assert {row["limit"] for row in check(problem, plan).frame.to_dict("records")} == {"capacity"}
    free = network(LINKS, [("a", "d", 1.0)])
    assert tunnels.route(free).plan.links.equals(ecmp.route(free).plan.links)
    none = tunnels.route(free, without_tunnel="shed").plan
    assert none.shed["rate_mbps"].tolist() == [1.0]


def test_a_problem_without_tunnels_is_refused() -> None:
    with pytest.raises(InputError, match="has no table 'tunnels'"):
        optimum.route(network(LINKS, [("a", "d", 1.0)]), paths="tunnels")


def segment_load(problem: Traffic, nodes: list[int]) -> np.ndarray:
    """Return the share of a list of segments on each link, hop by hop, by Floyd and Warshall."""
    count, load = len(problem.nodes), np.zeros(len(problem.links))
    distance = np.full((count, count), np.inf)
    np.fill_diagonal(distance, 0.0)
    for link in range(len(problem.links)):
        ends = problem.tail[link], problem.head[link]
        distance[ends] = min(distance[ends], problem.weight[link])
    for middle in range(count):
        distance = np.minimum(distance, distance[:, [middle]] + distance[[middle], :])
    for start, end in itertools.pairwise(nodes):
        index = np.zeros(count)
        index[start] = 1.0
        for node in sorted(range(count), key=lambda item: -distance[item, end]):
            out = [
                link
                for link in np.flatnonzero(problem.tail == node).tolist()
                if abs(problem.weight[link] + distance[problem.head[link], end] - distance[node, end]) < 1e-9
            ]
            if node != end and index[node] > 0:
                for link in out:
                    load[link] += index[node] / len(out)
                    index[problem.head[link]] += index[node] / len(out)
    return load


def tunnels_of(problem: Traffic) -> Tunnels:
    names = problem.parsed_tunnels
    assert names is not None
    return names


def columns(problem: Traffic) -> tuple[np.ndarray, np.ndarray]:
    """Return loads (E, n) and demands (K, n) of the tunnels that keep the limits, apart from the designs."""
    loads, serves = [], []
    names = tunnels_of(problem)
    for t, nodes in enumerate(names.nodes):
        for demand in range(len(problem.demands)):
            if (problem.source[demand], problem.target[demand]) != (nodes[0], nodes[-1]):
                continue
            if not names.is_segments[t]:
                load = np.zeros(len(problem.links))
                load[list(names.links[t])] = 1.0
                if not is_legal(problem, demand, list(names.links[t])):
                    continue
            else:
                load = segment_load(problem, list(nodes))
                if load[problem.tail == nodes[-1]].any():  # passes its target before its end
                    continue
            loads.append(load)
            serves.append(np.eye(len(problem.demands))[demand])
    shape = (0, len(problem.links)), (0, len(problem.demands))
    return np.array(loads).reshape(-1, shape[0][1]).T, np.array(serves).reshape(-1, shape[1][1]).T


@pytest.mark.slow
@given(st.integers(0, 1_000_000))
@settings(max_examples=15, deadline=None)
def test_agrees_with_a_program_over_the_tunnels(seed: int) -> None:
    problem = draw_network(seed, tunnels=True)
    # lists of segments under limits are judged by the check alone
    problem = replace(problem, demands=problem.demands.assign(max_latency_ms=np.nan), rules=None)
    load, serve = columns(problem)
    for objective in ("total", "concurrent", "utilization", "cost"):
        decision = optimum.route(problem, objective=objective, paths="tunnels")
        expected = solve_program(problem, load, serve, objective) if load.size else 0.0
        assert decision.plan is not None
        assert not {"demand"} & set(check(problem, decision.plan).frame["limit"])
        if not load.size:
            continue
        assert decision.proof.status is Status.OPTIMAL
        has_tunnel = serve.any(axis=1)
        if objective == "concurrent" and not has_tunnel.all():
            # the flow of all demands is 0; that of those with a tunnel is the best all the same
            assert decision.proof.objective == 0
            served = problem.rate_mbps[has_tunnel] - shed_mbps(problem, decision.plan)[has_tunnel]
            assert (served / problem.rate_mbps[has_tunnel]).min() == pytest.approx(
                min(expected, 1.0), rel=1e-5, abs=1e-6
            )
        else:
            assert decision.proof.objective == pytest.approx(expected, rel=1e-5, abs=1e-6), objective


def shed_mbps(problem: Traffic, plan: Routing) -> np.ndarray:
    """Return what a plan does not send of each demand."""
    shed = plan.to_tables()["shed"].set_index(["source", "target"])["rate_mbps"]
    pairs = problem.demands[["source", "target"]].itertuples(index=False)
    return np.array([shed.get(tuple(pair), 0.0) for pair in pairs])


@pytest.mark.slow
@given(st.integers(0, 1_000_000))
@settings(max_examples=15, deadline=None)
def test_tunnels_that_are_used_keep_the_limits(seed: int) -> None:
    problem = draw_network(seed, tunnels=True)
    all_routes = optimum.route(problem, objective="total").proof.bound or 0.0
    best = optimum.route(problem, objective="total", paths="tunnels")
    fixed = tunnels.route(problem, without_tunnel="shed")
    for decision in (best, fixed):
        assert decision.plan is not None
        assert not {"latency", "rules", "demand"} & set(check(problem, decision.plan).frame["limit"])
    delivered = SYSTEM.plan.measure(problem, fixed.plan, None)["delivered_mbps"] or 0.0
    assert delivered <= (best.proof.bound or 0.0) + 1e-6
    assert problem.tunnels is not None
    fewer = replace(problem, tunnels=problem.tunnels.iloc[1:])
    less = optimum.route(fewer, objective="total", paths="tunnels").proof.objective or 0.0
    assert less <= (best.proof.objective or 0.0) * (1 + 1e-6) + 1e-9
    if not tunnels_of(problem).is_segments.any():  # lists of segments may pass a node twice
        assert (best.proof.objective or 0.0) <= all_routes + 1e-6
