"""Gravity demands on small networks, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.traffic.problem.readers.gravity_demands import gravity_demands, keep_largest


def test_gravity_is_proportional_to_masses_and_the_same_for_a_seed() -> None:
    tail, head = np.array([0, 1, 1, 2, 0, 2]), np.array([1, 0, 2, 1, 2, 0])
    source, target, share = gravity_demands(nodes=3, tail=tail, head=head, seed=7)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 2),
        (2, 0),
        (2, 1),
    ]
    assert share.sum() == pytest.approx(1)
    # sent x received: the product around the triangle is the same either way
    assert share[0] * share[3] * share[4] == pytest.approx(share[1] * share[5] * share[2])
    assert np.array_equal(share, gravity_demands(nodes=3, tail=tail, head=head, seed=7)[2])
    assert not np.array_equal(share, gravity_demands(nodes=3, tail=tail, head=head, seed=8)[2])


def test_gravity_draws_no_demand_without_a_path() -> None:
    # 0 -> 1 -> 2 one way, 3 without links
    source, target, _ = gravity_demands(nodes=4, tail=np.array([0, 1]), head=np.array([1, 2]), seed=0)
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == {(0, 1), (0, 2), (1, 2)}


def test_gravity_of_no_links_is_empty() -> None:
    none = np.array([], dtype=np.intp)
    assert [len(share) for share in gravity_demands(nodes=2, tail=none, head=none, seed=0)] == [0, 0, 0]


@given(st.lists(st.integers(0, 5).map(float), max_size=9), st.integers(1, 12))
def test_largest_keeps_the_largest_in_their_order(rates: list[float], pairs: int) -> None:
    rate = np.array(rates)
    selected = keep_largest(rate, pairs)
    assert len(selected) == min(pairs, len(rates))
    assert sorted(selected.tolist()) == selected.tolist()
    assert sorted(rate[selected], reverse=True) == sorted(rates, reverse=True)[: len(selected)]
    assert keep_largest(rate, None).tolist() == list(range(len(rates)))
