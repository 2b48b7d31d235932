"""Hedera: estimates against its own iteration, first fit against a plain search, annealing."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner_models.flows import next_hops
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import hedera
from planner_models.traffic.designs.hedera import estimate_demands, route_annealing, route_first_fit
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import as_graph, both_ways, network, problems

Floats = NDArray[np.float64]


def iterate_estimates(problem: Traffic) -> Floats:
    """Iterate Hedera's estimator: senders share their capacity evenly, overloaded receivers cut back.

    Written for ends of capacity 1 and flows that want more than they can get, as in its paper.
    """
    count = len(problem.demands)
    rate, settled = np.zeros(count), np.zeros(count, dtype=bool)
    for _ in range(10_000):
        before = rate.copy()
        for node in np.unique(problem.source):
            current = problem.source == node
            open_ = current & ~settled
            if open_.any():
                rate[open_] = (1.0 - rate[current & settled].sum()) / open_.sum()
        for node in np.unique(problem.target):
            current = problem.target == node
            if rate[current].sum() <= 1.0 + 1e-12:
                continue
            # flows below an equal share keep what they have, the others get one
            limited = current.copy()
            share = 1.0 / limited.sum()
            while True:
                small = limited & (rate < share - 1e-12)
                if not small.any():
                    break
                limited &= ~small
                share = (1.0 - rate[current & ~limited].sum()) / limited.sum()
            rate[limited] = share
            settled[limited] = True
        if np.abs(rate - before).max() < 1e-12:
            return rate
    raise AssertionError("did not settle")


@given(st.integers(2, 5), st.integers(0, 1000))
def test_estimates_are_the_fixed_point_of_the_iteration(hosts: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    links = both_ways([(f"h{i}", "switch", 1.0) for i in range(hosts)])
    pairs = sorted({tuple(random.choice(hosts, 2, replace=False).tolist()) for _ in range(2 * hosts)})
    problem = network(links, [(f"h{i}", f"h{j}", 1.0) for i, j in pairs])
    assert estimate_demands(problem) == pytest.approx(iterate_estimates(problem), abs=1e-9)


def list_paths(problem: Traffic, far: dict[str, float], node: int, target: int) -> Iterator[list[int]]:
    """Yield all shortest paths as links, in the order of the table; `far` is each node's distance."""
    if node == target:
        yield []
        return
    names = problem.nodes["node"]
    for link in np.flatnonzero(problem.tail == node).tolist():
        head = int(problem.head[link])
        if far[names[head]] + problem.weight[link] == far[names[node]]:
            for remainder in list_paths(problem, far, head, target):
                yield [link, *remainder]


def fit_first(problem: Traffic, hashed: list[list[int]]) -> list[list[int]]:
    """Run global first fit by listing all shortest paths in the order of their links."""
    room, selected = problem.capacity_mbps.copy(), []
    names = problem.nodes["node"].tolist()
    graph = as_graph(problem)
    for k in range(len(problem.demands)):
        target = names[problem.target[k]]
        far = nx.single_source_dijkstra_path_length(graph.reverse(), target, weight="weight")
        need = problem.rate_mbps[k]
        for path in list_paths(problem, far, int(problem.source[k]), int(problem.target[k])):
            if (room[path] >= need * (1 - 1e-9)).all():
                room[path] -= need
                selected.append(path)
                break
        else:
            selected.append(hashed[k])
    return selected


@given(problems(), st.integers(0, 50))
def test_first_fit_takes_the_first_path_with_residual_capacity(problem: Traffic, seed: int) -> None:
    paths = next_hops.draw_paths(next_hops.find_next_hops(problem), np.random.default_rng(seed))
    hashed = [paths[[k]].indices.tolist() for k in range(len(problem.demands))]
    plan = route_first_fit(problem, seed=seed).plan
    assert plan is not None
    used = routing.flow_by_demand(problem, plan)
    for k, path in enumerate(fit_first(problem, hashed)):
        assert sorted(used[[k]].indices.tolist()) == sorted(path)


def test_first_fit_finds_a_path_that_a_hash_may_miss() -> None:
    links = both_ways([("s", "a", 1.0), ("s", "b", 1.0), ("a", "t", 1.0), ("b", "t", 1.0), ("r", "s", 9.0)])
    problem = network(links, [("s", "t", 1.0), ("r", "t", 1.0)])
    for seed in range(6):
        plan = route_first_fit(problem, seed=seed).plan
        assert plan is not None
        assert measure(problem, plan, None)["max_utilization"] == 1.0


@given(problems(), st.integers(0, 50))
def test_annealing_never_ends_with_more_excess_than_it_began(problem: Traffic, seed: int) -> None:
    def excess(load: Floats) -> float:
        return float(np.maximum(load - problem.capacity_mbps, 0).sum())

    random = np.random.default_rng(seed)
    start = next_hops.draw_paths(next_hops.find_next_hops(problem), random).T @ problem.rate_mbps
    plan = route_annealing(problem, seed=seed, iterations=20).plan
    assert plan is not None
    assert excess(plan.links["load_mbps"].to_numpy(float)) <= excess(start) + 1e-9
    assert check(problem, plan).of_limits({"demand"}).frame.empty


@pytest.mark.slow
def test_annealing_finds_what_first_fit_does_not() -> None:
    problem = generators.fat_tree(k=8, seed=1)
    shares = []
    for decision in (route_first_fit(problem, rates="max-min"), route_annealing(problem, rates="max-min")):
        assert decision.plan is not None
        shares.append(measure(problem, decision.plan, None)["mean_rate_share"])
    assert shares[0] < shares[1] < 1.0  # type: ignore[operator]


def test_a_permutation_is_estimated_at_line_rate() -> None:
    assert (hedera.estimate_demands(generators.fat_tree(k=4)) == 1000.0).all()
