"""Sharing entries: every way against brute force, its cost recounted by code that shares nothing with it."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.proof import Status
from planner_models.multicast import agglomerate, algorithm2, channels, exact
from tests.multicast.switches import SWITCHES, arrays, plain_cost, plain_extra, same_groups

PORTS = 4
STEEP = channels.Congestion(slopes=(1.0, 4.0, 20.0), until_mbps=(6.0, 14.0))


@settings(max_examples=25, deadline=None)
@given(SWITCHES, st.integers(1, 4))
def test_heuristic_bounds_and_optimum_around_brute_force(switch: list[tuple[int, int]], size: int) -> None:
    masks, rates = arrays(switch)
    best = exact.brute_force([int(m) for m in masks], rates.tolist(), size)
    assert channels.least_extra_mbps(masks, rates, size) <= best + 1e-9
    meta = agglomerate.aggregate(masks, rates, table_size=size)
    assert len(set(meta.tolist())) <= size
    cost = channels.extra_mbps(masks, rates, meta)
    assert cost == pytest.approx(plain_extra([int(m) for m in masks], rates.tolist(), meta.tolist()))
    assert cost >= best - 1e-9
    solved, solution = exact.optimum(masks, rates, table_size=size)
    assert solved is not None
    assert solution.status is Status.OPTIMAL
    assert len(set(solved.tolist())) <= size
    assert channels.extra_mbps(masks, rates, solved) == pytest.approx(best, abs=1e-6)
    assert solution.objective == pytest.approx(best, abs=1e-6)
    proven = exact.certified(masks, rates, table_size=size, seconds=2)
    assert proven.extra_mbps == pytest.approx(best, abs=1e-6)
    assert proven.bound_mbps == pytest.approx(best, abs=1e-5)
    assert channels.extra_mbps(masks, rates, proven.meta) == pytest.approx(best, abs=1e-6)
    assert len(set(proven.meta.tolist())) <= size


@settings(max_examples=40, deadline=None)
@given(
    SWITCHES,
    st.integers(PORTS + 2, PORTS + 4),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.integers(0, 1),
    st.booleans(),
)
def test_algorithm2_is_the_printed_pass(
    switch: list[tuple[int, int]], size: int, delta: float, spare: int, convex: bool
) -> None:
    masks, rates = arrays(switch)
    congestion = STEEP if convex else channels.LINEAR
    background = [1.0, 0.0, 5.0, 2.0]
    meta = algorithm2.aggregate(
        masks,
        rates,
        table_size=size,
        ports=PORTS,
        delta=delta,
        spare=spare,
        congestion=congestion,
        background_mbps=np.array(background),
    )

    def cost(places: list[object]) -> float:
        shown = [15 if place == "all" else mask for place, (mask, _) in zip(places, switch, strict=False)]
        return plain_cost(shown, rates[: len(shown)].tolist(), places, PORTS, congestion, background)

    # the plain twin recounts equation (6) for every place that a group could go to
    said: list[object] = []
    opened = 0
    for mask, _ in switch:
        count = mask.bit_count()
        if count >= PORTS - spare:
            said.append("all")
        elif count == 1:
            said.append(f"port {mask}")
        else:
            own = cost([*said, "new"]) - cost(said)
            costs = [cost([*said, m]) - cost(said) for m in range(opened)]
            if any(0 < b - a < 1e-7 for a, b in pairwise(sorted([*costs, own * (1 + delta)]))):
                return  # a tie that rounding decides
            if not opened or (opened < size - PORTS - 1 and min(costs) - own > delta * own):
                said.append(opened)
                opened += 1
            else:
                said.append(costs.index(min(costs)))
    assert same_groups(said, meta.tolist())
    assert len(set(meta.tolist())) <= size


@settings(max_examples=25, deadline=None)
@given(SWITCHES, st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_cost_is_equation_6(switch: list[tuple[int, int]], places: list[int]) -> None:
    masks, rates = arrays(switch)
    meta = np.array(places[: len(switch)])
    background = np.array([0.0, 3.0, 8.0, 20.0])
    for congestion in (channels.LINEAR, STEEP):
        cost = channels.congestion_cost(
            masks, rates, meta, ports=PORTS, congestion=congestion, background_mbps=background
        )
        plain = plain_cost(
            [int(m) for m in masks], rates.tolist(), meta.tolist(), PORTS, congestion, background.tolist()
        )
        assert cost == pytest.approx(plain)
    linear = channels.congestion_cost(masks, rates, meta, ports=PORTS)
    wanted = float(rates @ np.bitwise_count(masks))
    assert linear == pytest.approx(wanted + channels.extra_mbps(masks, rates, meta))


def test_more_rounds_are_never_worse_and_merging_keeps_the_cheapest_pairs() -> None:
    rng = np.random.default_rng(3)
    masks = rng.integers(1, 2**10, 300).astype(np.uint64)
    rates = rng.uniform(1, 10, 300)
    costs = [
        channels.extra_mbps(masks, rates, agglomerate.aggregate(masks, rates, table_size=40, rounds=rounds))
        for rounds in (0, 1, 4)
    ]
    assert costs == sorted(costs, reverse=True)
    by_pass = algorithm2.aggregate(masks, rates, table_size=40, ports=10)
    assert costs[-1] < channels.extra_mbps(masks, rates, by_pass)


def test_merging_is_the_plain_greedy() -> None:
    rng = np.random.default_rng(5)
    # sets of equal size: none holds another, so that no two pairs cost the same
    sets = np.unique([sum(1 << int(p) for p in rng.choice(14, 6, replace=False)) for _ in range(60)])
    loads = rng.uniform(1, 10, len(sets))
    left = [(int(s), float(w)) for s, w in zip(sets, loads, strict=True)]
    for target in (40, 25, 12, 3):
        while len(left) > target:
            _, b, a = min(
                (
                    left[a][1] * (left[b][0] & ~left[a][0]).bit_count()
                    + left[b][1] * (left[a][0] & ~left[b][0]).bit_count(),
                    b,
                    a,
                )
                for b in range(len(left))
                for a in range(b)
            )
            left[a] = (left[a][0] | left[b][0], left[a][1] + left[b][1])
            del left[b]
        merged = agglomerate._merged(sets.astype(np.uint64), loads, target)
        assert sorted(u for u, _ in left) == sorted(merged.tolist())


def busy_switch(count: int, ports: int, seed: int = 0) -> tuple[channels.Masks, channels.Rates]:
    """Groups of every density at one switch."""
    rng = np.random.default_rng(seed)
    wants = rng.random((count, ports)) < rng.random((count, 1))
    wants[np.arange(count), rng.integers(ports, size=count)] = True
    masks = (wants * (np.uint64(1) << np.arange(ports, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)
    return masks, rng.integers(1, 11, count).astype(float)


@pytest.mark.parametrize("size", [1, 5, 150, 700])
def test_many_port_sets_merge_as_well_as_by_the_whole_greedy(size: int) -> None:
    masks, rates = busy_switch(1400, 24)
    sets, weights, _ = channels.distinct(masks, rates)
    assert len(sets) > max(agglomerate.FEW, agglomerate.EXACTLY * size)  # so that pairs alike go first
    whole = agglomerate.improved(sets, weights, agglomerate._merged(sets, weights, size))
    greedy = agglomerate.traffic_mbps(sets, weights, whole)
    wanted = float(weights @ np.bitwise_count(sets))
    traffic = []
    for rounds in (0, 1):
        meta = agglomerate.aggregate(masks, rates, table_size=size, rounds=rounds)
        assert len(set(meta.tolist())) <= size
        assert meta.max() < size
        cost = channels.extra_mbps(masks, rates, meta)
        assert cost == pytest.approx(plain_extra(masks.tolist(), rates.tolist(), meta.tolist()))
        assert meta.tolist() == agglomerate.aggregate(masks, rates, table_size=size, rounds=rounds).tolist()
        traffic.append(wanted + cost)
    assert traffic[0] <= 1.02 * greedy
    assert traffic[1] <= greedy * (1 + 1e-9)


@pytest.mark.parametrize(("count", "alike"), [(5, 4), (60, 8), (700, 32)])
def test_sets_that_are_alike_are_the_cheapest_to_share_with(count: int, alike: int) -> None:
    masks, rates = busy_switch(count, 20, seed=1)
    sets, weights, _ = channels.distinct(masks, rates)
    near = agglomerate._alike(sets, weights, 7.0, alike)
    for i, mine in enumerate(sets.tolist()):
        prices = [
            float(weights[i]) * (other & ~mine).bit_count() + max(float(w), 7.0) * (mine & ~other).bit_count()
            for other, w in zip(sets.tolist(), weights, strict=True)
        ]
        others = [price for j, price in enumerate(prices) if j != i]
        found = near[i][near[i] != i].tolist()
        assert len(found) == len(set(found)) > 0
        # a few of the best may be left out for ties, and the cut is a little above the rank
        assert max(prices[j] for j in found) <= np.quantile(others, min(1.0, 3 * alike / len(others)))
        assert min(prices[j] for j in found) <= np.quantile(others, min(1.0, alike / len(others)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 2**10 - 1), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_ports_of_a_meta_group_are_counted_as_sets_come_and_go(masks: list[int], random: Random) -> None:
    counts, inside = np.zeros(6, dtype=np.uint64), list[int]()
    for mask in masks:
        found = agglomerate._counted(counts, np.uint64(mask), True)
        inside.append(mask)
        while inside and random.random() < 0.4:
            gone = inside.pop(random.randrange(len(inside)))
            found = agglomerate._counted(counts, np.uint64(gone), False)
        wanted = [sum(m >> port & 1 for m in inside) for port in range(10)]
        assert int(found[0]) == sum(1 << port for port, sets in enumerate(wanted) if sets)
        assert int(found[1]) == sum(1 << port for port, sets in enumerate(wanted) if sets == 1)


def test_search_comes_near_to_what_is_proven() -> None:
    gaps = []
    for seed in range(4):
        masks, rates = busy_switch(40, 8, seed)
        meta = agglomerate.aggregate(masks, rates, table_size=10)
        proven = exact.certified(masks, rates, table_size=10, seconds=10)
        extra = channels.extra_mbps(masks, rates, meta)
        assert extra >= proven.bound_mbps - 1e-6
        gaps.append((extra - proven.bound_mbps) / proven.total_mbps)
    assert np.mean(gaps) < 0.01


def test_certified_bounds_larger_switches() -> None:
    rng = np.random.default_rng(1)
    masks = rng.integers(1, 2**24, 25).astype(np.uint64)
    rates = rng.uniform(1, 10, 25)
    found = exact.certified(masks, rates, table_size=6, seconds=5)
    assert found.gap < 1e-6
    assert found.bound_mbps <= found.extra_mbps
    by_hand = agglomerate.aggregate(masks, rates, table_size=6)
    assert found.extra_mbps <= channels.extra_mbps(masks, rates, by_hand) + 1e-9
    assert exact.bound_mbps(masks, rates, table_size=25) == 0


def test_room_for_all_port_sets_costs_nothing() -> None:
    masks, rates = arrays([(3, 1), (5, 2), (3, 4)])
    meta = agglomerate.aggregate(masks, rates, table_size=2)
    assert channels.extra_mbps(masks, rates, meta) == 0
    assert meta.tolist() == channels.dedupe(masks).tolist()


def test_congestion_of_the_usual_steps() -> None:
    congestion = channels.Congestion.of_ports(90.0)
    assert congestion.of(np.array([0.0, 30.0, 60.0])).tolist() == [0.0, 30.0, 120.0]
    assert channels.LINEAR.is_linear
    assert not congestion.is_linear


@pytest.mark.parametrize(
    ("slopes", "ends", "words"),
    [((1.0,), (5.0,), "needs 2"), ((3.0, 1.0), (5.0,), "must rise"), ((1.0, 2.0, 3.0), (5.0, 4.0), "ends")],
)
def test_congestion_that_is_not_convex(slopes: tuple[float], ends: tuple[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        channels.Congestion(slopes=slopes, until_mbps=ends)


def test_tables_too_small_and_switches_too_large() -> None:
    masks, rates = arrays([(1 << i, 1) for i in range(16)])
    with pytest.raises(InputError, match="must be at least 1"):
        agglomerate.aggregate(masks, rates, table_size=0)
    with pytest.raises(InputError, match="needs 6"):
        algorithm2.aggregate(masks, rates, table_size=5, ports=4)
    with pytest.raises(InputError, match="unions"):
        exact.optimum(masks, rates, table_size=3)
    with pytest.raises(InputError, match="port speed"):
        channels.Congestion.of_ports(0)
