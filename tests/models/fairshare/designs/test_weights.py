"""Local weights: exchanges against the largest least slack, and the errors of the paper's rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner_models.fairshare.designs.weights import (
    balance_shares,
    bound_slack,
    flow_weights,
    spread_evenly,
    swap_step,
    swap_weights,
)


def best_slack(fair: np.ndarray, capacity: np.ndarray, demand: np.ndarray, present: np.ndarray) -> float:
    """Return the largest least slack by a linear program; columns add up to at most capacities."""
    t, n = np.nonzero(present)
    count = len(t)
    rows = np.zeros((len(fair), count + 1))
    rows[t, np.arange(count)] = 1
    columns = np.zeros((len(capacity), count + 1))
    columns[n, np.arange(count)] = 1
    lower = np.hstack([-np.eye(count), np.ones((count, 1))])
    solved = linprog(
        np.concatenate([np.zeros(count), [-1.0]]),
        A_ub=np.vstack([lower, columns]),
        b_ub=np.concatenate([-demand[t, n], capacity]),
        A_eq=rows,
        b_eq=fair,
        bounds=[(None, None)] * (count + 1),
    )
    assert solved.status == 0, solved.message
    return float(-solved.fun)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_flows_reach_the_largest_least_slack(seed: int) -> None:
    random = np.random.default_rng(seed)
    tenants, nodes = random.integers(1, 6), random.integers(1, 5)
    present = random.random((tenants, nodes)) < 0.6
    present[np.arange(tenants), random.integers(nodes, size=tenants)] = True
    share = np.where(present, random.integers(1, 9, size=present.shape), 0).astype(float)
    fair, capacity = share.sum(axis=1), share.sum(axis=0)
    demand = np.where(present, share * random.random(present.shape) * 1.3, 0.0)
    result = flow_weights(fair, capacity, demand, present)
    best = best_slack(fair, capacity, demand, present)
    assert result.least == pytest.approx(best, abs=1e-6)
    assert (result.share - demand)[present].min() == pytest.approx(best, abs=1e-6)
    assert result.share.sum(axis=1) == pytest.approx(fair, abs=1e-6)
    assert (result.share.sum(axis=0) <= capacity + 1e-6).all()
    assert best <= bound_slack(fair, capacity, demand, present) + 1e-9
    swapped = swap_weights(share, demand, present, least_step=1e-9)
    assert swapped.least <= best + 1e-6
    assert swapped.least >= (share - demand)[present].min() - 1e-9
    assert swapped.share.sum(axis=0) == pytest.approx(capacity)


def test_the_step_as_printed_leaves_a_tenant_without_slack() -> None:
    slack = np.array([[1.0, 2.0], [5.0, 9.0]])  # tenants t, u at nodes n, m
    t, u, n, m = 0, 1, 0, 1
    printed = min((slack[u, n] - slack[t, n]) / 2, (slack[u, m] - slack[t, m]) / 2)
    assert printed == 2.0
    assert slack[t, m] - printed == 0.0  # its latency there, 1 / slack, has no bound
    assert swap_step(slack, t, u, n, m) < 0  # so none is taken
    present = np.ones((2, 2), dtype=bool)
    demand = np.ones((2, 2))
    result = swap_weights(slack + demand, demand, present, least_step=1e-9)
    assert result.steps == 0


def test_swaps_of_two_tenants_do_not_reach_the_optimum_on_sparse_nodes() -> None:
    present = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)  # no two tenants share two nodes
    demand = np.array([[4.0, 2, 0], [0, 4, 2], [2, 0, 4]])
    share = np.where(present, 5.0, 0.0)
    fair, capacity = share.sum(axis=1), share.sum(axis=0)
    assert swap_weights(share, demand, present, least_step=1e-9).least == 1.0
    assert flow_weights(fair, capacity, demand, present).least == pytest.approx(2.0)


def test_sums_alone_give_the_optimum_of_the_printed_inequalities() -> None:
    """With (12) and (13) as inequalities, shares of demand + s satisfy both, so no flow is needed."""
    random = np.random.default_rng(5)
    for _ in range(20):
        present = random.random((5, 4)) < 0.7
        present[:, 0] = True
        demand = np.where(present, random.random((5, 4)), 0.0)
        fair, capacity = random.uniform(2, 5, size=5), random.uniform(2, 5, size=4)
        lower = bound_slack(fair, capacity, demand, present)
        share = np.where(present, demand + lower, 0.0)
        assert (share.sum(axis=1) <= fair + 1e-9).all()
        assert (share.sum(axis=0) <= capacity + 1e-9).all()


def test_the_goal_as_printed_does_not_depend_on_the_weights() -> None:
    """(11) sums log Q*, which are parameters: every share has the same value."""
    fixed = np.array([[3.0, 1.0], [2.0, 2.0]])
    values = {float(np.log(fixed).sum()) for _share in (fixed + 1, fixed + 2, 2 * fixed)}
    assert len(values) == 1


def test_balanced_shares_add_up() -> None:
    present = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
    fair, capacity = np.array([6.0, 9.0, 15.0]), np.array([12.0, 6.0, 12.0])
    share = balance_shares(spread_evenly(fair, present), fair, capacity)
    assert share.sum(axis=1) == pytest.approx(fair)
    assert share.sum(axis=0) == pytest.approx(capacity, rel=1e-6)


def test_tenants_alone_on_slow_nodes_get_less_than_their_fair_shares() -> None:
    present = np.array([[1, 0], [0, 1]], dtype=bool)
    result = flow_weights(np.array([8.0, 2.0]), np.array([5.0, 5.0]), np.zeros((2, 2)), present)
    assert result.share.sum(axis=1) == pytest.approx([5.0, 2.0])
