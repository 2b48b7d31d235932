"""Circuits that stay up at night are used, and a schedule never serves less for it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from planner.search.deadline import NEVER
from planner_models.circuits import SYSTEM, Circuits, check, measure
from planner_models.circuits.designs import eclipse, kept_circuits, solstice, upper_bound
from planner_models.circuits.plan.plan import Day, make_plan
from planner_models.circuits.problem import generators
from tests.models.circuits.demands import problems


def served_by_hand(problem: Circuits, days: list[Day]) -> float:
    """Return the bits of circuits, from the definition: own days, and nights between two days of a pair."""
    up = np.zeros((len(problem.racks),) * 2)
    for day in days:
        for i, j in enumerate(day.target.tolist()):
            up[i, j] += day.duration_us * (j >= 0)
    for switch in range(problem.switches):
        own_values = [day for day in days if day.switch == switch]
        for item, after in itertools.pairwise(own_values):
            for i, j in enumerate(item.target.tolist()):
                up[i, j] += problem.night_us * (j >= 0 and after.target[i] == j)
    return float(np.minimum(problem.bits, up * problem.circuit_mbps).sum())


@settings(max_examples=30, deadline=None)
@given(problem=problems(plain=False))
def test_the_search_never_serves_less_and_keeps_the_limits(problem: Circuits) -> None:
    for days in (solstice.days(problem), eclipse.days(problem)):
        result = kept_circuits.improve(problem, days)
        if problem.dark == "all" or problem.window_us is None:
            assert result == days
            continue
        plan, served, _ = make_plan(problem, result)
        assert not len(check(problem, plan))
        before = make_plan(problem, days)[0]
        circuits = [measure(problem, item, None)["circuit_share"] or 0.0 for item in (before, plan)]
        assert circuits[1] >= circuits[0] - 1e-9
        limit = upper_bound.bound_schedules(problem).proof.bound
        assert limit is not None
        assert served / problem.window_us <= limit * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_what_the_search_counts_is_what_circuits_serve(seed: int) -> None:
    problem = generators.skewed(racks=8, large=1, small=5, seed=seed, load=1.2).with_switch(
        dark="changed", circuit_switches=1 + seed % 2
    )
    result = kept_circuits.improve(problem, eclipse.days(problem))
    search = kept_circuits._Search.of(problem, result, NEVER)
    assert search.served_bits(search.now) >= served_by_hand(problem, result) * (1 - 1e-9)
    plan, *_ = make_plan(problem, result)
    share = measure(problem, plan, None)["circuit_share"]
    assert share is not None
    assert share * problem.bits.sum() == pytest.approx(search.served_bits(search.now))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["solstice", "eclipse", "optimum"])
def test_a_long_circuit_stays_up_while_others_change(name: str) -> None:
    """r0->r1 has all of the week; r2 and r3 send to each other for part of it, and then to others."""
    bits = np.zeros((5, 5))
    bits[0, 1], bits[2, 3], bits[2, 4], bits[3, 2] = 9_500.0, 4_000.0, 3_000.0, 4_000.0
    values: dict[str, Any] = {
        "circuit_mbps": 10.0, "packet_mbps": 0.0, "night_us": 50.0, "window_us": 1_000.0
    }  # fmt: skip
    decide = SYSTEM.design(name).decide
    changed = Circuits.from_matrix(bits, **values, dark="changed")
    plan = decide(changed).plan
    frame = plan.configurations
    first = frame[frame["source_rack"] == "r0"]
    assert first["day"].nunique() == frame["day"].nunique()  # it is kept in every night
    served = measure(changed, plan, None)["served_bits"]
    # r0->r1 is up from 50 us on, as is r3->r2 as long as it needs; r2 has a night between its two circuits
    assert served == pytest.approx(9_500.0 + 4_000.0 + 4_000.0 + 3_000.0)
    dark = changed.with_switch(dark="all")
    metrics = measure(dark, decide(dark).plan, None)["served_bits"]
    assert metrics is not None
    assert metrics < served
