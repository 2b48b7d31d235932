"""Maximum flows against those of SciPy, with their minimum cuts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import maximum_flow

from planner_models.graphs.maximum_flow import find_flow


@settings(max_examples=40)
@given(st.integers(0, 100_000))
def test_flows_are_those_of_scipy_and_cuts_are_full(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 9))
    matrix = np.triu(random.integers(0, 9, size=(count, count)), 1) * (random.random((count, count)) < 0.6)
    matrix[:, 0] = 0
    order = np.concatenate([[0, count - 1], np.arange(1, count - 1)])  # the last vertex is the sink
    matrix = matrix[np.ix_(order, order)]
    tail, head = (share.astype(np.int64) for share in np.nonzero(matrix))
    capacity = matrix[tail, head].astype(np.int64)
    total, flow, inside = find_flow(count, tail, head, capacity, 1 << 60)
    assert total == maximum_flow(sp.csr_array(matrix.astype(np.int32)), 0, 1).flow_value
    assert (flow >= 0).all()
    assert (flow <= capacity).all()
    net = np.bincount(tail, weights=flow, minlength=count) - np.bincount(head, weights=flow, minlength=count)
    assert net[0] == total == -net[1]
    assert not net[2:].any()
    assert inside[0]
    assert not inside[1]
    assert capacity[inside[tail] & ~inside[head]].sum() == total
    enough = find_flow(count, tail, head, capacity, total // 2)
    assert total >= enough[0] >= total // 2
