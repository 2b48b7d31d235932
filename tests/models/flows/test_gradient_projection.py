"""Gradient projection serves every pair in full and balances the load."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.flows.gradient_projection import PathFlows
from planner_models.flows.reduced_problem import ReducedProblem
from planner_models.graphs import shortest_path_trees
from planner_models.traffic import Traffic
from planner_models.traffic.designs.optimum import optimum
from tests.models.traffic.networks import problems


@pytest.mark.slow
@given(problems(max_nodes=7, max_demands=6))
@settings(max_examples=40, deadline=None)
def test_passes_serve_every_pair_in_full_and_find_the_optimum(problem: Traffic) -> None:
    small = ReducedProblem.of(problem, symmetry=False)
    if not len(small.roots):
        return
    row, node, rate = small.pairs
    paths = PathFlows.of(small.graph, small.roots, row, node, rate)
    for sharpness in np.geomspace(1.0, 3000.0, 120):
        busiest = float((paths.load / small.capacity_mbps).max()) or 1.0
        paths.run_pass(small.graph, small.capacity_mbps, sharpness / busiest)
        np.testing.assert_allclose(paths.flow.sum(axis=1), rate, rtol=1e-9)
    weighted = paths.weighted_paths()
    pair, arc, share = weighted.pair, weighted.arc, weighted.share
    load = np.bincount(arc, share * rate[pair], minlength=len(small.capacity_mbps))
    np.testing.assert_allclose(load, paths.load, atol=1e-9 * rate.max())
    # each pair leaves its node once and reaches its root once
    for c in range(len(rate)):
        current = pair == c
        surplus = np.bincount(small.graph.tail[arc[current]], share[current], minlength=small.graph.nodes)
        surplus -= np.bincount(small.graph.head[arc[current]], share[current], minlength=small.graph.nodes)
        requested = np.zeros(small.graph.nodes)
        requested[node[c]], requested[small.roots[row[c]]] = 1, -1
        np.testing.assert_allclose(surplus, requested, atol=1e-9)
    best = optimum.route(problem, objective="concurrent", method="lp").proof.objective
    assert best is not None
    value = max(float((paths.load / small.capacity_mbps).max()), small.fixed_utilization)
    assert value >= (1 - 1e-9) / best
    assert value <= 1.02 / best


def test_slots_and_hops_grow_for_more_and_longer_paths() -> None:
    # nine paths of equal length between two nodes, longer than the eight hops at first
    links, hops = 9, 10
    tail, head = [], []
    for chain in range(links):
        nodes = [0, *(2 + chain * hops + i for i in range(hops)), 1]
        tail += nodes[:-1]
        head += nodes[1:]
    graph = shortest_path_trees.Graph.of(2 + links * hops, np.array(tail), np.array(head))
    item = np.zeros(1, dtype=np.int64)
    paths = PathFlows.of(graph, item + 1, item, item, np.array([9.0]))
    for sharpness in np.geomspace(2.0, 50.0, 60):
        paths.run_pass(graph, np.ones(len(tail)), sharpness / (paths.load.max() or 1.0))
    assert paths.flow.shape[1] > 8
    assert paths.arcs.shape[2] > 8
    assert paths.load == pytest.approx(np.ones(len(tail)), rel=1e-3)
