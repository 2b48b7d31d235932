"""Sharing entries: heuristics against brute force, the exact method and the bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.proof import Status
from planner_models.multicast import channels

PORTS = 4
SWITCHES = st.lists(st.tuples(st.integers(1, 15), st.integers(1, 10)), min_size=1, max_size=8)


def arrays(switch: list[tuple[int, int]]) -> tuple[channels.Masks, channels.Rates]:
    masks, rates = zip(*switch, strict=True)
    return np.array(masks, dtype=np.uint64), np.array(rates, dtype=float)


def plain_extra(masks: list[int], rates: list[float], meta: list[int]) -> float:
    """The cost from ports as sets."""
    ports = [{p for p in range(64) if mask >> p & 1} for mask in masks]
    cost = 0.0
    for mine, rate, m in zip(ports, rates, meta, strict=True):
        union = set().union(*(other for other, n in zip(ports, meta, strict=True) if n == m))
        cost += rate * len(union - mine)
    return cost


@settings(max_examples=25, deadline=None)
@given(SWITCHES, st.integers(1, 4))
def test_heuristic_bound_and_optimum_around_brute_force(switch: list[tuple[int, int]], size: int) -> None:
    masks, rates = arrays(switch)
    best = channels.brute_force([int(m) for m in masks], rates.tolist(), size)
    assert channels.least_extra_mbps(masks, rates, size) <= best + 1e-9
    meta = channels.agglomerative(masks, rates, table_size=size)
    assert len(set(meta.tolist())) <= size
    cost = channels.extra_mbps(masks, rates, meta)
    assert cost == pytest.approx(plain_extra([int(m) for m in masks], rates.tolist(), meta.tolist()))
    assert cost >= best - 1e-9
    exact, solution = channels.optimum(masks, rates, table_size=size)
    assert exact is not None
    assert solution.status is Status.OPTIMAL
    assert len(set(exact.tolist())) <= size
    assert channels.extra_mbps(masks, rates, exact) == pytest.approx(best, abs=1e-6)
    assert solution.objective == pytest.approx(best, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(SWITCHES, st.integers(PORTS + 2, PORTS + 4), st.sampled_from([0.0, 0.2, 1.0]), st.integers(0, 1))
def test_algorithm2_is_the_printed_pass(
    switch: list[tuple[int, int]], size: int, delta: float, spare: int
) -> None:
    masks, rates = arrays(switch)
    meta = channels.algorithm2(masks, rates, table_size=size, ports=PORTS, delta=delta, spare=spare)
    metas: list[tuple[int, float]] = []  # plain twin: union and load of each
    said = []
    for mask, rate in switch:
        count = mask.bit_count()
        if count >= PORTS - spare:
            said.append("all")
        elif count == 1:
            said.append(f"port {mask}")
        else:
            costs = [rate * (u & ~mask).bit_count() + load * (mask & ~u).bit_count() for u, load in metas]
            if not metas or (len(metas) < size - PORTS - 1 and min(costs) > delta * rate * count):
                costs, metas = [*costs, 0.0], [*metas, (0, 0.0)]
                m = len(metas) - 1
            else:
                m = costs.index(min(costs))
            metas[m] = (metas[m][0] | mask, metas[m][1] + rate)
            said.append(f"meta {m}")
    assert (
        np.unique(said, return_inverse=True)[1][:, None] == np.unique(said, return_inverse=True)[1]
    ).tolist() == (meta[:, None] == meta).tolist()
    assert len(set(meta.tolist())) <= size


def test_room_for_all_port_sets_costs_nothing() -> None:
    masks, rates = arrays([(3, 1), (5, 2), (3, 4)])
    meta = channels.agglomerative(masks, rates, table_size=2)
    assert channels.extra_mbps(masks, rates, meta) == 0
    assert meta.tolist() == channels.dedupe(masks).tolist()


def test_tables_too_small_and_switches_too_large() -> None:
    masks, rates = arrays([(1 << i, 1) for i in range(16)])
    with pytest.raises(InputError, match="must be at least 1"):
        channels.agglomerative(masks, rates, table_size=0)
    with pytest.raises(InputError, match="needs 6"):
        channels.algorithm2(masks, rates, table_size=5, ports=4)
    with pytest.raises(InputError, match="unions"):
        channels.optimum(masks, rates, table_size=3)
