"""Adjustments of nights and rates: their effects, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner_models.circuits import SYSTEM, Circuits
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


@pytest.mark.slow
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
        ({"fail_racks": ["r1", "R2"]}, "fail_racks: 'R2' is no rack; did you mean 'r2'?"),
        ({"circuit_factors": {"r7": 2.0}}, "circuit_factors: 'r7' is no rack; valid: r0, r1, r2, r3"),
        (
            {"demand_factors": {"r0->r0": 2.0}},
            "demand_factors: 'r0->r0' is no pair of racks; did you mean 'r3->r0'?",
        ),
    ],
)
def test_a_change_that_cannot_be_is_one_line(change: dict[str, Any], fault: str) -> None:
    problem = generators.rings(racks=4, window_us=2_000.0, shortest_day_us=180.0)
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(problem, **change)
    assert caught.value.faults == (fault,)


def test_what_a_failed_rack_sends_and_receives_is_left_unserved() -> None:
    problem = SYSTEM.problem.adjust(RINGS, fail_racks=("r1",))
    assert SYSTEM.problem.adjust(problem, fail_racks=("r1",)).is_failed.sum() == 1
    for design in ("solstice", "eclipse", "strobe", "islip", "bvn", "packet_only", "optimum"):
        decision = SYSTEM.design(design).decide(problem)
        plan = decision.plan
        assert plan is not None
        assert not len(SYSTEM.plan.check(problem, plan))
        metrics = SYSTEM.plan.measure(problem, plan, None)
        lost = float(RINGS.bits[1].sum() + RINGS.bits[:, 1].sum())
        assert metrics["offered_mbps"] == pytest.approx(RINGS.bits.sum() / 2_000)
        unserved, served = metrics["unserved_bits"], metrics["served_bits"]
        assert unserved is not None
        assert served is not None
        assert unserved >= lost * (1 - 1e-9)
        assert served + unserved == pytest.approx(RINGS.bits.sum())
        assert plan.unserved["bits"].sum() == pytest.approx(unserved)
        assert metrics["done_us"] is None


def test_all_demand_cannot_be_served_once_a_rack_has_failed() -> None:
    problem = SYSTEM.problem.adjust(RINGS, fail_racks=("r1",))
    proof = SYSTEM.design("solstice").decide(problem, options=Options(service="all")).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons[0] == "rack 'r1' has failed: 320 Mbit from and to it cannot be served"


def test_without_a_week_the_others_are_served_at_their_rate() -> None:
    problem = SYSTEM.problem.adjust(generators.rings(racks=4, bounded=False), fail_racks=("r1",))
    plan = solstice.schedule(problem).plan
    metrics = SYSTEM.plan.measure(problem, plan, None)
    assert metrics["served_share"] == pytest.approx(0.5)
    assert metrics["served_mbps"] is not None
    assert metrics["served_mbps"] > 0


def test_every_rack_may_fail() -> None:
    problem = SYSTEM.problem.adjust(RINGS, fail_racks=tuple(RINGS.names))
    for design in SYSTEM.designs:
        decision = design.decide(problem)
        if decision.plan is not None:
            assert SYSTEM.plan.measure(problem, decision.plan, None)["served_bits"] == 0


def test_factors_change_what_they_name_and_nothing_else() -> None:
    changed = SYSTEM.problem.adjust(
        RINGS, scale=2.0, demand_factors={"r0->r1": 3.0, "r1->r2": 0.0}, packet_factors={"r5": 0.0}
    )
    factor = np.full((6, 6), 2.0)
    factor[0, 1], factor[1, 2] = 6.0, 0.0
    np.testing.assert_allclose(changed.bits, RINGS.bits * factor)
    assert changed.packet_mbps.tolist() == [*RINGS.packet_mbps[:5], 0.0]
    faster = SYSTEM.problem.adjust(RINGS, circuit_factors={"r0": 0.5})
    assert (faster.circuit_mbps[0] == 40_000).all()
    assert faster.circuit_mbps[1, 2] == 80_000


def test_failed_racks_stay_so_in_tables() -> None:
    problem = SYSTEM.problem.adjust(RINGS, fail_racks=("r1",))
    again = Circuits.from_tables(problem.to_tables())
    np.testing.assert_array_equal(again.bits, problem.bits)
    assert again.is_failed.tolist() == [False, True, False, False, False, False]
