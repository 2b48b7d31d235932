"""Traffic that follows splits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from planner_models.traffic import Traffic, cycles, splits
from tests.traffic.networks import network, problems


def leaves_as_it_comes(problem: Traffic, flow: sp.coo_array, rate: np.ndarray) -> None:
    """Every node puts in its own demand and nothing else."""
    surplus = (problem.balance @ flow.T).toarray()  # (N, K)
    expected = np.zeros_like(surplus)
    demands = np.arange(len(problem.demands))
    expected[problem.source, demands] += rate
    expected[problem.target, demands] -= rate
    np.testing.assert_allclose(surplus, expected, atol=1e-9 * rate.max())


@given(problem=problems())
def test_even_and_first_splits_serve_all_on_shortest_paths(problem: Traffic) -> None:
    links = splits.shortest_links(problem)
    for ratios in (splits.even(problem, links), splits.first(problem, links)):
        flow = splits.follow(problem, ratios, problem.rate_mbps)
        leaves_as_it_comes(problem, flow, problem.rate_mbps)
        weight = flow @ problem.weight
        row = np.searchsorted(problem.targets, problem.target)
        np.testing.assert_allclose(weight, problem.rate_mbps * problem.distance[row, problem.source])


@given(problem=problems(), data=st.data())
def test_whatever_a_solver_leaves_all_traffic_arrives(problem: Traffic, data: st.DataObject) -> None:
    """A flow that conserves nothing: dead ends, circles and nodes without any way on."""
    shape = (len(problem.targets), len(problem.links))
    size = shape[0] * shape[1]
    amounts = data.draw(st.lists(st.sampled_from([0.0, 0.0, 1e-9, 1.0]), min_size=size, max_size=size))
    flow = sp.coo_array(np.array(amounts).reshape(shape))
    ways = splits.of_flow(problem, splits.arriving(problem, cycles.without(problem, flow)))
    ratios = splits.completed(problem, ways)
    leaves_as_it_comes(problem, splits.follow(problem, ratios, problem.rate_mbps), problem.rate_mbps)


def test_splits_without_end_are_refused() -> None:
    problem = network([("a", "b", 1.0), ("b", "a", 1.0), ("b", "t", 1.0)], [("a", "t", 1.0)])
    round_and_round = sp.coo_array(np.array([[1.0, 1.0, 0.0]]))
    with pytest.raises(ValueError, match="a->t going round and round"):
        splits.follow(problem, round_and_round, problem.rate_mbps)
