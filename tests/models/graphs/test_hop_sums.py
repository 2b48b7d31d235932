"""Sums along hops, against powers of the matrix of one hop."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.graphs import hop_sums


def test_sums_are_those_of_all_powers_of_the_matrix() -> None:
    random = np.random.default_rng(2)
    positions = 12
    tail, head = np.triu_indices(positions, 1)
    selected = random.permutation(len(tail))[:30]
    name = random.permutation(positions)  # the numbers of places do not follow the hops
    tail, head = name[tail[selected]], name[head[selected]]
    order = hop_sums.order_hops(tail, head, positions)
    assert sorted(order) == list(range(30))
    tail, head = tail[order], head[order]
    share, passed, link = random.random(30), random.random(5), random.integers(0, 5, 30)
    begins = random.random(positions)

    matrix = np.zeros((positions, positions))
    matrix[head, tail] = share * passed[link]
    every = np.linalg.inv(np.eye(positions) - matrix)
    total = begins.copy()
    hop_sums.add_forward(tail, head, share * passed[link], total)
    assert total == pytest.approx(every @ begins)
    back = begins.copy()
    hop_sums.add_backward(tail, head, share * passed[link], back)
    assert back == pytest.approx(every.T @ begins)
    load, there = np.zeros(5), begins.copy()
    hop_sums.add_loads(tail, head, link, share, passed, there, load)
    assert there == pytest.approx(total)
    assert load == pytest.approx(np.bincount(link, share * total[tail], 5))


def test_hops_in_cycles_are_left_out() -> None:
    order = hop_sums.order_hops(np.array([0, 1, 2, 3]), np.array([1, 2, 1, 0]), 4)
    assert order.tolist() == [3, 0]
