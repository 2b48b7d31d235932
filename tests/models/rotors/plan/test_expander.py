"""Traffic that does not wait: shortest paths and equal parts, against networkx."""

from __future__ import annotations

from collections import defaultdict

import networkx as nx
import numpy as np
import pytest

from planner_models.rotors.plan.expander import load_expander, measure_hops, spread_load
from planner_models.rotors.plan.timetable import rotate
from planner_models.rotors.problem import generators


def load_by_oracle(graph: nx.DiGraph, rate: np.ndarray) -> dict[tuple[int, int], float]:
    """Return the load of links: each rack passes a unit on in equal parts to the next on shortest paths."""
    load: dict[tuple[int, int], float] = defaultdict(float)
    for target in graph:
        distance = nx.shortest_path_length(graph, target=target)

        def send(node: int, amount: float, distance: dict = distance, target: int = target) -> None:
            if node == target:
                return
            nearer = [
                other for other in graph.successors(node) if distance.get(other, 99) == distance[node] - 1
            ]
            for other in nearer:
                load[node, other] += amount / len(nearer)
                send(other, amount / len(nearer))

        for source in graph:
            if source != target and source in distance:
                send(source, float(rate[source, target]))
    return load


@pytest.mark.parametrize("seed", [0, 1])
def test_load_is_that_of_shortest_paths(seed: int) -> None:
    problem = generators.skewed(racks=9, switches=3, random_order=True, seed=seed)
    rate = np.random.default_rng(seed).random((9, 9))
    np.fill_diagonal(rate, 0.0)
    _, targets = rotate(problem).intervals
    for target in targets:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(9))
        links = [(int(i), int(to[i])) for to in target for i in np.flatnonzero(to >= 0)]
        graph.add_edges_from(links)
        distance = measure_hops(target)
        lengths = dict(nx.all_pairs_shortest_path_length(graph))
        for i in range(9):
            for j in range(9):
                assert distance[i, j] == lengths[i].get(j, np.inf)
        load = spread_load(target, distance, rate)
        requested_by_oracle = load_by_oracle(graph, rate)
        for switch, to in enumerate(target):
            for i in np.flatnonzero(to >= 0):
                assert load[switch, i] == pytest.approx(requested_by_oracle[int(i), int(to[i])])


def test_load_times_length_is_traffic_times_links() -> None:
    problem = generators.skewed(racks=12, switches=4, urgent_share=0.3, random_order=True)
    item = rotate(problem)
    expander = load_expander(item, problem.urgent_mbps, problem.link_mbps)
    assert expander.is_connected.all()
    hops = float((problem.urgent_mbps * expander.hops).sum())
    assert expander.mean_mbps.sum() == pytest.approx(hops)
    assert expander.peak_pair is not None
    double = load_expander(item, 2 * problem.urgent_mbps, problem.link_mbps)
    assert double.peak_share == pytest.approx(2 * expander.peak_share)


def test_one_switch_connects_no_two_racks_at_once() -> None:
    problem = generators.skewed(racks=6, switches=1, urgent_share=0.3)
    expander = load_expander(rotate(problem), problem.urgent_mbps, problem.link_mbps)
    assert not expander.is_connected[problem.works > 0].any()
    assert expander.peak_share == 0.0
