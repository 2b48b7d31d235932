"""The shortest path of each demand, among all paths of a network or among given ones."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import inner, njit, run_small_in_python
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.path_pool import Demands
from planner_models.flows.simplex_state import NO_PATHS, GivenPaths
from planner_models.graphs.path_search import FoundPaths, take
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra


def find_shortest(graph: Graph, demands: Demands, length: Floats) -> tuple[FoundPaths, Floats]:
    """Return the shortest path of each demand by a length of arcs, (A,), and its length (K,)."""
    first_paths = find_first(graph, demands, NO_PATHS, length)
    return first_paths, np.add.reduceat(length[first_paths.link], first_paths.start[:-1])


def find_first(graph: Graph, demands: Demands, given_paths: GivenPaths, length: Floats) -> FoundPaths:
    """Return the shortest of all paths, or of the given ones, of each demand by a length of arcs, (A,)."""
    hops = np.zeros(len(demands.rate), dtype=np.int64)
    _first_hops(graph, demands, given_paths, length, hops)
    start = np.r_[0, np.cumsum(hops)]
    link = np.empty(start[-1], dtype=np.int32)
    _first_links(graph, demands, given_paths, length, start, link)
    return FoundPaths(demand=np.arange(len(hops)), start=start, link=link)


def order_paths(paths: CandidatePaths, order: Ints) -> GivenPaths:
    """Return the candidate paths in the order of the demands of the search."""
    index_of = np.full(int(max(order.max(), paths.demand.max())) + 1, -1)
    index_of[order] = np.arange(len(order))
    ordered = take(paths.found, np.argsort(index_of[paths.demand], kind="stable"))
    first = np.searchsorted(index_of[ordered.demand], np.arange(len(order) + 1))
    return GivenPaths(first, ordered.start, ordered.link)


@inner
def shortest_given(given_paths: GivenPaths, k: int, length: Floats) -> tuple[int, float]:
    """Return the shortest of the given paths of a demand, and its length."""
    best, shortest = -1, np.inf
    for p in range(given_paths.first[k], given_paths.first[k + 1]):
        total = 0.0
        for j in range(given_paths.start[p], given_paths.start[p + 1]):
            total += length[given_paths.link[j]]
        if total < shortest:
            best, shortest = p, total
    return best, shortest


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _first_hops(graph: Graph, demands: Demands, given_paths: GivenPaths, length: Floats, hops: Ints) -> None:
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    if len(given_paths.first) > 0:
        for k in range(len(hops)):
            p, _ = shortest_given(given_paths, k, length)
            hops[k] = given_paths.start[p + 1] - given_paths.start[p]
        return
    for r in range(len(demands.roots)):
        dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(demands.begin[r], demands.begin[r + 1]):
            v = demands.node[k]
            while v != demands.roots[r]:
                v = graph.head[parent[v]]
                hops[k] += 1


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _first_links(
    graph: Graph, demands: Demands, given_paths: GivenPaths, length: Floats, start: Ints, link: Ints32
) -> None:
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    if len(given_paths.first) > 0:
        for k in range(len(demands.rate)):
            p, _ = shortest_given(given_paths, k, length)
            for j in range(given_paths.start[p], given_paths.start[p + 1]):
                link[start[k] + j - given_paths.start[p]] = given_paths.link[j]
        return
    for r in range(len(demands.roots)):
        dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(demands.begin[r], demands.begin[r + 1]):
            v, i = demands.node[k], start[k]
            while v != demands.roots[r]:
                link[i] = parent[v]
                v = graph.head[parent[v]]
                i += 1


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def measure_distances(
    graph: Graph, demands: Demands, given_paths: GivenPaths, length: Floats, distance: Floats
) -> None:
    work, parent = allocate(graph.nodes), np.empty(graph.nodes, np.int32)
    ceiling = length[len(graph.tail)]
    for r in range(len(demands.roots)):
        if len(given_paths.first) == 0:
            dijkstra(graph, length, demands.roots[r], work, parent)
        for k in range(demands.begin[r], demands.begin[r + 1]):
            if len(given_paths.first) > 0:
                _, distance[k] = shortest_given(given_paths, k, length)
            else:
                distance[k] = work.distance[demands.node[k]]
            if ceiling > 0.0:
                distance[k] = min(distance[k], ceiling)
