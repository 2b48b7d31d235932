"""Adjustments of nights and rates: their effects, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.circuits import SYSTEM
from planner_models.circuits.designs import eclipse, solstice, upper_bound
from planner_models.circuits.problem import generators

RINGS = generators.rings(racks=6, count=2)


def test_a_night_is_that_of_all_switches_and_nothing_else_changes() -> None:
    longer = SYSTEM.problem.adjust(RINGS, night_us=100.0, circuit_switches=2)
    assert (longer.night_us, longer.switches) == (100.0, 2)
    assert longer.window_us == RINGS.window_us
    np.testing.assert_array_equal(longer.bits, RINGS.bits)
    assert SYSTEM.problem.adjust(RINGS, night_us=0.0).night_us == 0.0


def test_rates_are_scaled_each_by_its_own() -> None:
    faster = SYSTEM.problem.adjust(RINGS, circuit_scale=2.0, packet_scale=0.0)
    np.testing.assert_array_equal(faster.circuit_mbps, 2 * RINGS.circuit_mbps)
    assert not faster.packet_mbps.any()
    np.testing.assert_array_equal(faster.bits, RINGS.bits)


def test_without_a_packet_switch_circuits_carry_what_is_served() -> None:
    plan = solstice.schedule(SYSTEM.problem.adjust(RINGS, packet_scale=0.0)).plan
    assert plan.packet["bits"].sum() == 0
    assert solstice.schedule(RINGS).plan.packet["bits"].sum() > 0


@settings(max_examples=10)
@given(st.integers(0, 20), st.sampled_from([40.0, 200.0, 600.0]))
def test_longer_nights_and_slower_circuits_serve_no_more(seed: int, night_us: float) -> None:
    problem = generators.skewed(racks=6, seed=seed)
    best = upper_bound.bound_schedules(problem).proof.bound
    assert best is not None
    for change in ({"night_us": night_us}, {"circuit_scale": 0.5}, {"packet_scale": 0.1}):
        worse = SYSTEM.problem.adjust(problem, **change)
        served = eclipse.schedule(worse).proof.objective
        assert served is not None
        assert served <= best * (1 + 1e-9)
        limit = upper_bound.bound_schedules(worse).proof.bound
        assert limit is not None
        assert limit <= best * (1 + 1e-9)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"night_us": 2_000.0}, "problem: night_us is 2000, must be less than window_us, 2000"),
        (
            {"night_us": 1_900.0},
            "problem: shortest_day_us is 180, must with the night of 1900 fit window_us, 2000",
        ),
    ],
)
def test_a_night_that_does_not_fit_the_week_is_one_line(change: dict[str, Any], fault: str) -> None:
    problem = generators.rings(racks=4, window_us=2_000.0, shortest_day_us=180.0)
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(problem, **change)
    assert caught.value.faults == (fault,)
