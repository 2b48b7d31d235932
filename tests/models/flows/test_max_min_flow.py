"""Balanced paths: they are paths, they balance the links, and the bound of their prices holds."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from planner.search.deadline import NEVER
from planner_models.flows.max_min_flow import BalancedPaths, balance_paths
from planner_models.flows.path_pool import order_demands
from planner_models.traffic import Traffic
from planner_models.traffic.designs.optimum import optimum
from tests.models.traffic.networks import network, problems


def balance(problem: Traffic) -> tuple[BalancedPaths, np.ndarray]:
    """Return balanced paths, and the demand of the problem for each of them."""
    graph, demands, order = order_demands(problem)
    return balance_paths(graph, demands, demands.rate, problem.capacity_mbps, NEVER), order


def walk(problem: Traffic, result: BalancedPaths, k: int) -> list[int]:
    """Return the nodes of path k in turn; its links may be listed from its end."""
    links = result.paths.link[result.paths.start[k] : result.paths.start[k + 1]]
    graph = nx.MultiDiGraph([(int(problem.tail[e]), int(problem.head[e])) for e in links])
    assert max(degree for _, degree in graph.out_degree) <= 1
    return list(nx.topological_sort(graph))


@settings(max_examples=30)
@given(problems(max_nodes=6, max_demands=8))
def test_each_demand_has_a_path_and_the_bound_holds(problem: Traffic) -> None:
    result, order = balance(problem)
    for k, demand in enumerate(order.tolist()):
        nodes = walk(problem, result, k)
        assert nodes[0] == problem.source[demand]
        assert nodes[-1] == problem.target[demand]
    best = optimum.route(problem, objective="concurrent").proof.objective
    assert best is not None
    assert result.bound >= best * (1 - 1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1.0, 1e6])
def test_many_demands_share_two_ways_as_their_capacities(unit: float) -> None:
    # 400 sources behind a node whose two ways out have 300 and 100 of capacity: the level is 1 for all
    count = 400
    links = [(f"s{i}", "a", 10.0 * unit) for i in range(count)]
    links += [
        ("a", "b", 300.0 * unit),
        ("b", "d", 300.0 * unit),
        ("a", "c", 100.0 * unit),
        ("c", "d", 100.0 * unit),
    ]
    problem = network(links, [(f"s{i}", "d", 1.25 * unit) for i in range(count)])
    result, _ = balance(problem)
    load = np.bincount(result.paths.link, minlength=len(links)) * 1.25 * unit
    utilization = load / problem.capacity_mbps
    assert utilization.max() == pytest.approx(1.25, rel=0.02)
    assert result.bound == pytest.approx(0.8, rel=0.02)
    assert result.bound >= 0.8 * (1 - 1e-9)


def test_a_large_demand_stays_where_it_fits_best() -> None:
    links = [("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 1.0), ("c", "d", 1.0)]
    result, _ = balance(network(links, [("a", "d", 100.0)]))
    assert result.paths.link.tolist() in ([0, 1], [1, 0])
