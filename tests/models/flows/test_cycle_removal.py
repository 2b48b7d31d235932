"""Cycle removal removes cycles from a flow, and nothing else."""

from __future__ import annotations

import networkx as nx
import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from planner_models.flows import cycle_removal, split_ratios
from planner_models.traffic import Traffic
from tests.models.traffic.networks import network, problems


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
    remaining = cycle_removal.remove_cycles(problem, flow)
    assert is_acyclic(problem, remaining)
    assert (remaining.toarray() <= flow.toarray()).all()
    surplus = problem.incidence @ flow.T
    np.testing.assert_allclose((problem.incidence @ remaining.T).toarray(), surplus.toarray(), atol=1e-9)


@given(problem=problems())
def test_a_flow_without_cycles_stays_the_same(problem: Traffic) -> None:
    even = split_ratios.split_evenly(problem, split_ratios.shortest_path_links(problem))
    np.testing.assert_array_equal(cycle_removal.remove_cycles(problem, even).toarray(), even.toarray())


def test_a_cycle_beside_the_route() -> None:
    links = [("a", "b", 9.0), ("b", "t", 9.0), ("b", "c", 9.0), ("c", "b", 9.0)]
    problem = network(links, [("a", "t", 1.0)])
    flow = sp.coo_array(np.array([[1.0, 1.0, 5.0, 5.0]]))
    assert cycle_removal.remove_cycles(problem, flow).toarray().tolist() == [[1.0, 1.0, 0.0, 0.0]]
