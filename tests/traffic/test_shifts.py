"""Sweeps and shifts: what they move is neither lost nor made up, and evens out the load."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.traffic import Traffic, optimum, sweeps, trees
from planner_models.traffic.rooted import Rooted
from planner_models.traffic.shifts import Paths
from tests.traffic.networks import problems


def soft(load: np.ndarray, capacity: np.ndarray, sharpness: float) -> float:
    """The softened largest utilization, in plain NumPy."""
    used = load / capacity
    return float(used.max() + np.log(np.exp(sharpness * (used - used.max())).sum()) / sharpness)


@given(problems(max_nodes=7, max_demands=6))
@settings(max_examples=40, deadline=None)
def test_a_sweep_never_raises_what_it_evens_out(problem: Traffic) -> None:
    small = Rooted.of(problem, symmetry=False)
    if not len(small.roots):
        return
    graph, capacity = small.graph, small.capacity_mbps
    parent, _ = trees.grow(graph, 1 / capacity, small.roots, small.amount_mbps)
    mix = trees.loads(graph, parent, small.amount_mbps, np.arange(len(parent)))
    load = mix.sum(axis=0)
    sharpness = 5 / float((load / capacity).max())
    for _ in range(4):
        before, own = soft(load, capacity, sharpness), mix.copy()
        tried, share = sweeps.sweep(
            graph, capacity, small.roots, small.amount_mbps, sharpness=sharpness, mix=mix, load=load
        )
        assert soft(load, capacity, sharpness) <= before * (1 + 1e-9)
        # a little of the prices is spread evenly, so steps may not pay exactly; but they are what is said
        new = trees.loads(graph, tried, small.amount_mbps, np.arange(len(tried)))
        np.testing.assert_allclose(
            mix, own * (1 - share[:, None]) + new * share[:, None], atol=1e-9 * small.amount_mbps.max()
        )
        np.testing.assert_allclose(load, mix.sum(axis=0), atol=1e-9 * small.amount_mbps.max())


@given(problems(max_nodes=7, max_demands=6))
@settings(max_examples=40, deadline=None)
def test_shifts_keep_every_pair_whole_and_find_the_optimum(problem: Traffic) -> None:
    small = Rooted.of(problem, symmetry=False)
    if not len(small.roots):
        return
    row, node, rate = small.pairs
    paths = Paths.of(small.graph, small.roots, row, node, rate)
    for sharpness in np.geomspace(1.0, 3000.0, 120):
        busiest = float((paths.load / small.capacity_mbps).max()) or 1.0
        paths.sweep(small.graph, small.capacity_mbps, sharpness / busiest)
        np.testing.assert_allclose(paths.flow.sum(axis=1), rate, rtol=1e-9)
    pair, arc, share = paths.ways()
    load = np.bincount(arc, share * rate[pair], minlength=len(small.capacity_mbps))
    np.testing.assert_allclose(load, paths.load, atol=1e-9 * rate.max())
    # each pair leaves its node once and reaches its root once
    for c in range(len(rate)):
        mine = pair == c
        put_in = np.bincount(small.graph.tail[arc[mine]], share[mine], minlength=small.graph.nodes)
        put_in -= np.bincount(small.graph.head[arc[mine]], share[mine], minlength=small.graph.nodes)
        wanted = np.zeros(small.graph.nodes)
        wanted[node[c]], wanted[small.roots[row[c]]] = 1, -1
        np.testing.assert_allclose(put_in, wanted, atol=1e-9)
    best = optimum.route(problem, method="lp").proof.objective
    assert best is not None
    value = max(float((paths.load / small.capacity_mbps).max()), small.forced)
    assert value >= (1 - 1e-9) / best
    assert value <= 1.02 / best


def test_more_and_longer_paths_find_room() -> None:
    # nine ways of equal length between two nodes, over chains longer than the first eight slots
    links, hops = 9, 10
    tail, head = [], []
    for way in range(links):
        nodes = [0, *(2 + way * hops + i for i in range(hops)), 1]
        tail += nodes[:-1]
        head += nodes[1:]
    graph = trees.Graph.of(2 + links * hops, np.array(tail), np.array(head))
    one = np.zeros(1, dtype=np.int64)
    paths = Paths.of(graph, one + 1, one, one, np.array([9.0]))
    for sharpness in np.geomspace(2.0, 50.0, 60):
        paths.sweep(graph, np.ones(len(tail)), sharpness / (paths.load.max() or 1.0))
    assert paths.flow.shape[1] > 8
    assert paths.arcs.shape[2] > 8
    assert paths.load == pytest.approx(np.ones(len(tail)), rel=1e-3)
