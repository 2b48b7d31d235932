"""A pass of coordinate descent keeps loads consistent and never raises the smoothed maximum."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from planner_models.flows import coordinate_descent
from planner_models.flows.reduced_problem import ReducedProblem
from planner_models.graphs import shortest_path_trees
from planner_models.traffic import Traffic
from tests.models.traffic.networks import problems


def smoothed_maximum(load: np.ndarray, capacity: np.ndarray, sharpness: float) -> float:
    """Return the smoothed largest utilization, in plain NumPy."""
    used = load / capacity
    return float(used.max() + np.log(np.exp(sharpness * (used - used.max())).sum()) / sharpness)


@given(problems(max_nodes=7, max_demands=6))
@settings(max_examples=40, deadline=None)
def test_a_pass_never_raises_the_smoothed_maximum(problem: Traffic) -> None:
    small = ReducedProblem.of(problem, symmetry=False)
    if not len(small.roots):
        return
    graph, capacity = small.graph, small.capacity_mbps
    parent, _ = shortest_path_trees.shortest_trees(graph, 1 / capacity, small.roots, small.amount_mbps)
    rows = np.arange(len(parent))
    flow = shortest_path_trees.tree_flows(graph, parent, small.amount_mbps, rows)
    root_load = shortest_path_trees.tree_loads(graph, parent, flow)
    load = root_load.sum(axis=0)
    sharpness = 5 / float((load / capacity).max())
    for _ in range(4):
        before, old_load = smoothed_maximum(load, capacity, sharpness), root_load.copy()
        tree, share = coordinate_descent.run_pass(
            graph,
            capacity,
            small.roots,
            small.amount_mbps,
            sharpness=sharpness,
            root_load=root_load,
            load=load,
        )
        assert smoothed_maximum(load, capacity, sharpness) <= before * (1 + 1e-9)
        # loads change by exactly the reported shares
        flow = shortest_path_trees.tree_flows(graph, tree, small.amount_mbps, rows)
        tree_load = shortest_path_trees.tree_loads(graph, tree, flow)
        np.testing.assert_allclose(
            root_load,
            old_load * (1 - share[:, None]) + tree_load * share[:, None],
            atol=1e-9 * small.amount_mbps.max(),
        )
        np.testing.assert_allclose(load, root_load.sum(axis=0), atol=1e-9 * small.amount_mbps.max())
