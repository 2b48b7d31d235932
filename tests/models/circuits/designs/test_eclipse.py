"""Compiled schedules against plain ones, and the guarantee of the greedy choice."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import circuits_textbook as textbook
from planner_models.circuits import Circuits, check
from planner_models.circuits.designs import eclipse, optimum, solstice
from planner_models.circuits.plan.plan import Day
from planner_models.circuits.problem import generators
from tests.models.circuits.demands import problems


def plain(days: list[Day]) -> textbook.Days:
    return [(day.duration_us, day.target) for day in days]


@settings(max_examples=40, deadline=None)
@given(problem=problems(max_racks=5))
def test_each_day_of_solstice_is_one_that_plain_python_may_choose(problem: Circuits) -> None:
    """Follow the design's choice among several perfect matchings in the plain version, and reject none."""
    ours = plain(solstice.days(problem))
    followed = textbook.solstice(problem, follow=ours)
    assert [length for length, _ in ours] == pytest.approx([length for length, _ in followed])


def test_solstice_of_many_racks_is_as_good_as_the_plain_one() -> None:
    problem = generators.skewed(racks=100, seed=3)
    ours = plain(solstice.days(problem))
    textbook.solstice(problem, follow=ours)
    other = textbook.served_bits(problem, textbook.solstice(problem))
    assert textbook.served_bits(problem, ours) == pytest.approx(other, rel=0.002)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(problem=problems(max_racks=5, plain=False))
def test_solstice_never_serves_less_over_more_switches(problem: Circuits) -> None:
    rates = []
    for switches in (1, 2, 3, 5):
        decision = solstice.schedule(problem.with_switch(circuit_switches=switches))
        assert decision.plan is not None
        assert decision.proof.objective is not None
        assert not len(check(problem.with_switch(circuit_switches=switches), decision.plan))
        rates.append(decision.proof.objective)
    assert all(more >= fewer * (1 - 1e-9) for fewer, more in itertools.pairwise(rates))


@settings(max_examples=20, deadline=None)
@given(switches=st.integers(2, 8), weeks=st.floats(0.3, 9.0), night_us=st.sampled_from([0.0, 5.0]))
def test_a_pair_has_circuits_of_as_many_switches_as_its_demand_needs(
    switches: int, weeks: float, night_us: float
) -> None:
    """One pair alone: circuits carry all of it, or all that their days have time for."""
    bits = np.zeros((3, 3))
    bits[0, 1] = 1_000.0 * weeks
    problem = Circuits.from_matrix(
        bits,
        circuit_mbps=10.0,
        packet_mbps=0.0,
        night_us=night_us,
        window_us=100.0,
        shortest_day_us=0.0,
        circuit_switches=switches,
    )
    upper = min(1.0, switches * 10.0 * (100.0 - night_us) / bits[0, 1])
    served = (solstice.schedule(problem).proof.objective or 0.0) * 100.0 / bits.sum()
    assert served == pytest.approx(upper, rel=1e-6)
    # in least time all switches share it
    endless = replace(problem, switch=problem.switch.drop(columns="window_us"))
    for design in (solstice, eclipse):
        done_us = bits.sum() / (design.schedule(endless).proof.objective or np.nan)
        assert done_us == pytest.approx(bits.sum() / (10.0 * switches) + night_us, rel=1e-6)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(problem=problems(max_racks=4, plain=False))
def test_eclipse_in_least_time_never_serves_less_over_more_switches(problem: Circuits) -> None:
    endless = replace(problem, switch=problem.switch.drop(columns="window_us", errors="ignore"))
    rates = []
    for switches in (1, 2, 4):
        wider = endless.with_switch(circuit_switches=switches)
        decision = eclipse.schedule(wider, prove=True)
        assert decision.plan is not None
        assert decision.proof.objective is not None
        assert not len(check(wider, decision.plan))
        bound = decision.proof.bound
        assert bound is None or decision.proof.objective <= bound * (1 + 1e-6)
        rates.append(decision.proof.objective)
    assert all(more >= fewer * (1 - 1e-9) for fewer, more in itertools.pairwise(rates))


@settings(max_examples=25, deadline=None)
@given(problem=problems(max_racks=4))
def test_the_first_day_of_eclipse_serves_the_most_per_time(problem: Circuits) -> None:
    ours, theirs = plain(eclipse.days(problem, starts=0))[:1], textbook.eclipse(problem)[:1]
    assert len(ours) == len(theirs)
    if ours:
        worth = [
            textbook.served_bits(problem, item) / (item[0][0] + problem.night_us) for item in (ours, theirs)
        ]
        assert worth[0] == pytest.approx(worth[1])


@pytest.mark.parametrize(("racks", "share"), [(16, 0.005), (64, 0.0005)])
def test_alternating_is_as_good_as_trying_every_length(racks: int, share: float) -> None:
    for seed in (1, 2):
        problem = generators.skewed(racks=racks, seed=seed)
        some, every = (
            textbook.served_bits(problem, plain(eclipse.days(problem, starts=starts))) for starts in (1, 0)
        )
        assert some >= every - share * problem.bits.sum()


@settings(max_examples=15, deadline=None)
@given(problem=problems(max_racks=3, bounded=True))
def test_eclipse_is_never_below_its_guarantee(problem: Circuits) -> None:
    """1 - exp(-C / W) of what is possible without a packet switch, over instances solved exactly.

    C is the time of the days that the week's end did not cut short.
    """
    alone = replace(problem, racks=problem.racks.assign(packet_mbps=0.0))
    if not alone.bits.any():
        return
    exact = optimum.schedule(alone, steps=100).proof.objective
    assert exact is not None
    window = alone.window_us
    assert window is not None
    days, used, first = eclipse.days(alone, starts=0), 0.0, []
    remaining = alone.bits.copy()
    for day in days:
        longest = (remaining / alone.circuit_mbps).max()
        room = window - used - alone.night_us
        if max(longest, alone.shortest_day_us) > room:
            break  # this day was cut short, or might have been
        textbook.serve(alone, remaining, day.duration_us, day.target)
        used += day.duration_us + alone.night_us
        first.append(day)
    promised = (1 - math.exp(-used / window)) * exact
    assert textbook.served_bits(alone, plain(first)) >= promised * (1 - 1e-9)


def test_plain_implementations_agree() -> None:
    """Matchings of scipy and networkx, which benchmarks compare with, have the same weight."""
    problem = generators.skewed(racks=12, large=2, small=4, seed=1)
    weight = problem.bits
    item, other = textbook.heaviest(weight), textbook.heaviest_by_networkx(weight)
    worth = [sum(weight[i, j] for i, j in enumerate(target) if j >= 0) for target in (item, other)]
    assert worth[0] == pytest.approx(worth[1])
    assert textbook.perfect(weight > 0) is not None
    assert textbook.perfect_by_networkx(weight > 0) is not None
    assert textbook.perfect_by_networkx(np.zeros((2, 2), dtype=bool)) is None
    some = textbook.served_bits(problem, textbook.eclipse_alternating(problem))
    assert some == pytest.approx(textbook.served_bits(problem, plain(eclipse.days(problem))), rel=0.01)


def test_days_in_a_known_order() -> None:
    """Two pairs of 100 and 40 us that exclude each other, and one of 40 us beside the first."""
    bits = np.zeros((3, 3))
    bits[0, 1], bits[0, 2], bits[1, 2] = 1_000.0, 400.0, 400.0
    problem = Circuits.from_matrix(bits, circuit_mbps=10.0, packet_mbps=0.0, night_us=10.0, window_us=200.0)
    # a day of 100 us serves 1,400 bits in 110 us, 12.7; one of 40 us 800 in 50 us, 16: the best
    days = eclipse.days(problem, starts=0)
    assert [day.duration_us for day in days] == pytest.approx([40.0, 60.0, 40.0])
    assert days[0].target.tolist() == [1, 2, -1]
    assert days[1].target.tolist() == [1, -1, -1]
    assert days[2].target.tolist() == [2, -1, -1]
