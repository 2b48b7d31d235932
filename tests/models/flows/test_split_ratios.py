"""Traffic that follows split ratios."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from planner_models.flows import split_ratios
from planner_models.traffic import Traffic
from tests.models.traffic.networks import network, problems


def assert_conservation(problem: Traffic, flow: sp.coo_array, rate: np.ndarray) -> None:
    """Assert that every node injects its own demand and nothing else."""
    surplus = (problem.incidence @ flow.T).toarray()  # (N, K)
    expected = np.zeros_like(surplus)
    demands = np.arange(len(problem.demands))
    expected[problem.source, demands] += rate
    expected[problem.target, demands] -= rate
    np.testing.assert_allclose(surplus, expected, atol=1e-9 * rate.max())


@given(problem=problems())
def test_even_and_first_link_ratios_serve_all_on_shortest_paths(problem: Traffic) -> None:
    links = split_ratios.shortest_path_links(problem)
    for ratios in (split_ratios.split_evenly(problem, links), split_ratios.take_first_link(problem, links)):
        flow = split_ratios.apply_ratios(problem, ratios, problem.rate_mbps)
        assert_conservation(problem, flow, problem.rate_mbps)
        weight = flow @ problem.weight
        row = np.searchsorted(problem.targets, problem.target)
        np.testing.assert_allclose(weight, problem.rate_mbps * problem.distance[row, problem.source])


@given(problem=problems(), data=st.data())
def test_all_traffic_arrives_for_ratios_of_any_flow(problem: Traffic, data: st.DataObject) -> None:
    """A flow without conservation: dead ends, cycles and nodes without outgoing flow."""
    shape = (len(problem.targets), len(problem.links))
    size = shape[0] * shape[1]
    amounts = data.draw(st.lists(st.sampled_from([0.0, 0.0, 1e-9, 1.0]), min_size=size, max_size=size))
    flow = sp.coo_array(np.array(amounts).reshape(shape))
    ways = split_ratios.compute_ratios(
        problem, split_ratios.drop_stranded_flow(problem, split_ratios.remove_cycles(problem, flow))
    )
    ratios = split_ratios.complete_ratios(problem, ways)
    assert_conservation(
        problem, split_ratios.apply_ratios(problem, ratios, problem.rate_mbps), problem.rate_mbps
    )


def test_ratios_with_an_endless_cycle_are_an_error() -> None:
    problem = network([("a", "b", 1.0), ("b", "a", 1.0), ("b", "t", 1.0)], [("a", "t", 1.0)])
    round_and_round = sp.coo_array(np.array([[1.0, 1.0, 0.0]]))
    with pytest.raises(ValueError, match="split ratios keep a->t in a cycle"):
        split_ratios.apply_ratios(problem, round_and_round, problem.rate_mbps)


def is_acyclic(problem: Traffic, flow: sp.coo_array) -> bool:
    names = zip(flow.row, problem.tail[flow.col], problem.head[flow.col], strict=True)
    graph = nx.DiGraph([((row, tail), (row, head)) for row, tail, head in names])
    return nx.is_directed_acyclic_graph(graph)


@given(problem=problems(), data=st.data())
def test_the_result_has_no_cycle_and_the_same_surplus(problem: Traffic, data: st.DataObject) -> None:
    shape = (len(problem.targets), len(problem.links))
    amounts = data.draw(
        st.lists(st.integers(0, 4), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    )
    flow = sp.coo_array(np.array(amounts, float).reshape(shape))
    remaining = split_ratios.remove_cycles(problem, flow)
    assert is_acyclic(problem, remaining)
    assert (remaining.toarray() <= flow.toarray()).all()
    surplus = problem.incidence @ flow.T
    np.testing.assert_allclose((problem.incidence @ remaining.T).toarray(), surplus.toarray(), atol=1e-9)


@given(problem=problems())
def test_a_flow_without_cycles_stays_the_same(problem: Traffic) -> None:
    even = split_ratios.split_evenly(problem, split_ratios.shortest_path_links(problem))
    np.testing.assert_array_equal(split_ratios.remove_cycles(problem, even).toarray(), even.toarray())


def test_a_cycle_beside_the_route() -> None:
    links = [("a", "b", 9.0), ("b", "t", 9.0), ("b", "c", 9.0), ("c", "b", 9.0)]
    problem = network(links, [("a", "t", 1.0)])
    flow = sp.coo_array(np.array([[1.0, 1.0, 5.0, 5.0]]))
    assert split_ratios.remove_cycles(problem, flow).toarray().tolist() == [[1.0, 1.0, 0.0, 0.0]]
