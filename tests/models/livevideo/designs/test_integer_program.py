"""Rounding of capacities and of the rows of the master problem: no integral plan is cut off."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.contract.proof import Status
from planner_models.livevideo import LiveVideo
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.designs.decomposition.layered_problem import CapacityRows, build_layers
from planner_models.livevideo.designs.integer_program import find_sums, round_capacities
from planner_models.livevideo.problem import generators
from tests.models.livevideo.networks import problem

RATES = st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True)


@given(RATES, st.lists(st.integers(1, 4), min_size=4, max_size=4), st.integers(0, 60))
@settings(max_examples=100)
def test_sums_are_those_of_all_combinations(rates: list[int], times: list[int], most: int) -> None:
    rate, count = np.array(rates), np.array(times[: len(rates)])
    ways = itertools.product(*(range(n + 1) for n in count))
    by_force = sorted({int(np.dot(way, rate)) for way in ways if np.dot(way, rate) <= most})
    assert find_sums(rate, count, most).tolist() == by_force


@given(RATES, st.lists(st.integers(0, 4), min_size=4, max_size=4), st.floats(0.0, 20.0))
@settings(max_examples=100)
def test_a_rounded_capacity_is_the_largest_load_of_whole_streams(
    rates: list[int], times: list[int], capacity_mbps: float
) -> None:
    rate, count = 0.7 * np.array(rates, float), np.array(times[: len(rates)])
    ways = itertools.product(*(range(n + 1) for n in count))
    loads = [float(np.dot(way, rate)) for way in ways]
    result = round_capacities(np.array([capacity_mbps, np.inf]), rate, count)
    assert result[1] == np.inf
    assert result[0] <= capacity_mbps
    if sum(rate * count) > capacity_mbps:
        assert result[0] == pytest.approx(max(load for load in loads if load <= capacity_mbps + 1e-9))


def test_bitrates_without_a_common_unit_leave_capacities_as_they_are() -> None:
    capacity_mbps = np.array([10.0, 75.0])
    rate_mbps = np.array([np.sqrt(2.0), np.pi])
    assert (round_capacities(capacity_mbps, rate_mbps, np.array([99, 99])) == capacity_mbps).all()


@given(
    st.lists(st.sampled_from([300.0, 500.0, 700.0, 1_100.0, 2_300.0]), min_size=2, max_size=6),
    st.floats(0.2, 5.0),
)
@settings(max_examples=25)
def test_every_row_holds_for_all_streams_that_fit(kbps: list[float], capacity_mbps: float) -> None:
    item = streams_on_one_path(kbps, capacity_mbps)
    rows = CapacityRows(build_layers(item))
    object_class = rows.layered.objects.object_class
    usable = np.isfinite(rows.base_price[:, rows.link])  # (K, M)
    for size in range(len(kbps) + 1):
        for selected in itertools.combinations(range(len(kbps)), size):
            if item.bitrate_mbps[list(selected)].sum() <= capacity_mbps * (1 + 1e-9):
                usage = (rows.usage * usable)[object_class[list(selected)]].sum(axis=0)
                assert (usage <= rows.limit * (1 + 1e-9)).all()


@pytest.mark.slow
@given(st.lists(st.sampled_from([300.0, 500.0, 700.0, 1_100.0]), min_size=2, max_size=6), st.floats(0.2, 3.0))
@settings(max_examples=20)
def test_no_bound_is_below_the_best_streams(kbps: list[float], capacity_mbps: float) -> None:
    item = streams_on_one_path(kbps, capacity_mbps)
    value = item.value - 3 * item.cost_weight * item.bitrate_mbps  # three links of cost 1
    sets = itertools.product([False, True], repeat=len(kbps))
    best = max(
        float(value[list(selected)].sum())
        for selected in sets
        if item.bitrate_mbps[list(selected)].sum() <= capacity_mbps * (1 + 1e-9)
    )
    proof = decomposition.distribute(item, options=Options(time_limit_s=1.0, gap=1e-6)).proof
    assert proof.objective == pytest.approx(best, rel=1e-5)
    assert proof.bound is not None
    assert proof.bound >= best - 1e-9


def streams_on_one_path(kbps: list[float], capacity_mbps: float) -> LiveVideo:
    """Return channels of these bitrates that one group requests over one scarce link."""
    channels = [f"v{i}" for i in range(len(kbps))]
    return problem(
        [("s", "r", capacity_mbps, 1.0), ("r", "e", 100.0, 1.0), ("e", "g", 100.0, 1.0)],
        [(channel, rate, 1.0) for channel, rate in zip(channels, kbps, strict=True)],
        [("g", channel, rate, 1.0) for channel, rate in zip(channels, kbps, strict=True)],
        tiers={"s": "source", "r": "reflector", "e": "edge", "g": "group"},
    )


@pytest.mark.parametrize(
    ("parameters", "streams"),
    [({"videos": 3_000}, 212), ({"videos": 900, "bitrate_kbps": 1_300.0, "link_mbps": 20.0}, 60)],
)
def test_the_test_bed_is_solved_to_optimality(parameters: dict[str, float], streams: int) -> None:
    item = generators.ec2_testbed(**parameters)  # type: ignore[arg-type]
    decision = decomposition.distribute(item, options=Options(time_limit_s=20.0, gap=1e-5))
    assert decision.proof.status is Status.OPTIMAL
    cost = 2e-4 * float(item.bitrate_mbps[0])
    assert decision.proof.objective == pytest.approx(streams * (1 - cost))
