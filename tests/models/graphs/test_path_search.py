"""Link-disjoint paths of least weight against minimum-cost flows of networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given, settings

from planner_models.graphs import path_search
from planner_models.graphs.path_search import FoundPaths, PathChoice
from planner_models.traffic import Traffic
from tests.models.traffic.networks import network, problems


def find(problem: Traffic, count: int, kind: PathChoice) -> FoundPaths:
    return path_search.search(
        nodes=len(problem.nodes),
        tail=problem.tail,
        head=problem.head,
        weight=problem.weight,
        ends=(problem.source, problem.target),
        count=count,
        kind=kind,
    )


def disjoint_flow(problem: Traffic, demand: int) -> tuple[int, float]:
    """Return how many link-disjoint paths a demand has, and their least weight together."""
    graph = nx.DiGraph()
    for link, (tail, head) in enumerate(zip(problem.tail.tolist(), problem.head.tolist(), strict=True)):
        # a node in the middle of every link keeps parallel links apart
        graph.add_edge(tail, ("middle", link), capacity=1, weight=int(problem.weight[link]))
        graph.add_edge(("middle", link), head, capacity=1, weight=0)
    source, target = int(problem.source[demand]), int(problem.target[demand])
    flow = nx.max_flow_min_cost(graph, source, target)
    sent = sum(flow[source].values()) - sum(flow[node].get(source, 0) for node in graph)
    return sent, float(nx.cost_of_flow(graph, flow))


@settings(deadline=None)
@given(problem=problems())
def test_most_disjoint_paths_are_a_minimum_cost_flow(problem: Traffic) -> None:
    result = find(problem, 50, "most_disjoint")
    for demand in range(len(problem.demands)):
        rows = np.flatnonzero(result.demand == demand)
        links = [result.link[result.start[p] : result.start[p + 1]] for p in rows]
        together = np.concatenate(links)
        assert len(set(together.tolist())) == len(together)
        weight = [float(problem.weight[path].sum()) for path in links]
        assert weight == sorted(weight)
        assert (len(rows), sum(weight)) == disjoint_flow(problem, demand)


def test_the_shortest_path_may_hide_two_disjoint_ones() -> None:
    # s-a-b-t is the shortest, and the only path of the greedy search
    links = [("s", "a", 1.0), ("a", "b", 1.0), ("b", "t", 1.0), ("s", "b", 1.0), ("a", "t", 1.0)]
    problem = network(links, [("s", "t", 1.0)], weight=[1.0, 1.0, 1.0, 3.0, 3.0])
    assert len(find(problem, 2, "disjoint").demand) == 1
    assert len(find(problem, 2, "most_disjoint").demand) == 2


def test_demands_without_a_path_have_none() -> None:
    problem = network([("a", "b", 1.0), ("c", "b", 1.0)], [("a", "b", 1.0), ("b", "c", 1.0)])
    for kind in ("shortest", "disjoint", "most_disjoint"):
        assert find(problem, 3, kind).demand.tolist() == [0]
