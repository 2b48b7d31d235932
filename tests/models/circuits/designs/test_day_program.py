"""The optimum of several circuit switches, and of circuits that stay up, against independent models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from planner import Options, Status
from planner.errors import InputError
from planner_models.circuits import Circuits, check, formulation
from planner_models.circuits.designs import eclipse, optimum, upper_bound
from planner_models.circuits.problem import generators
from tests.models.circuits.demands import problems

EXACT = {"steps": 100, "most_circuits": 200}


@st.composite
def tiny_problems(draw: st.DrawFn, dark: str, switches: int = 1) -> Circuits:
    """Return three racks whose week has time for three days of each switch at most."""
    amounts = st.lists(st.sampled_from([0.0, 10.0, 35.0, 90.0, 200.0]), min_size=9, max_size=9)
    bits = np.array(draw(amounts)).reshape(3, 3)
    np.fill_diagonal(bits, 0.0)
    return Circuits.from_matrix(
        bits,
        circuit_mbps=10.0,
        packet_mbps=draw(st.sampled_from([0.0, 0.5])),
        night_us=draw(st.sampled_from([2.0, 3.0])),
        window_us=21.0,
        shortest_day_us=4.0,
        circuit_switches=switches,
        dark=dark,  # type: ignore[arg-type]
    )


def best_by_enumeration(problem: Circuits) -> float:
    """Return the most bits of all sequences of up to three matchings of one switch, by linear programs."""
    n, requested = len(problem.racks), problem.bits
    pairs = [(int(i), int(j)) for i, j in np.argwhere(requested > 0)]
    m = len(pairs)
    if not m:
        return 0.0
    matchings = [
        chosen
        for count in range(1, n + 1)
        for chosen in itertools.combinations(range(m), count)
        if len({pairs[k][0] for k in chosen}) == len({pairs[k][1] for k in chosen}) == count
    ]
    demand = np.array([requested[pair] for pair in pairs])
    packets = 21.0 * float(problem.packet_mbps[:3].sum())
    sequences = []
    for days in range(4):
        for sequence in itertools.product(matchings, repeat=days):
            time = 21.0 - days * problem.night_us
            selected = np.zeros(m)
            for item, after in itertools.pairwise(sequence):
                selected[list(set(item) & set(after))] += problem.night_us
            most_pairs = max(map(len, sequence), default=0)
            upper = min(demand.sum(), 10.0 * (selected.sum() + time * most_pairs) + packets)
            sequences.append((float(upper), sequence, selected, time))
    best = 0.0
    for upper, sequence, selected, time in sorted(sequences, key=lambda item: -item[0]):
        if upper <= best:  # nor does any later one serve more
            break
        best = max(best, _most_bits(problem, pairs, demand, sequence, selected, time))
    return best


def _most_bits(
    problem: Circuits,
    pairs: list[tuple[int, int]],
    demand: NDArray[np.float64],
    sequence: tuple[tuple[int, ...], ...],
    selected: NDArray[np.float64],
    time: float,
) -> float:
    """Return the most bits that days of these matchings and the packet switch serve."""
    m, days = len(pairs), len(sequence)
    if days * problem.shortest_day_us > time:
        return 0.0
    rows, limits = [], []
    for k in range(m):  # X - 10 sum of t <= 10 kept; X + Y <= D
        row = np.zeros(2 * m + days)
        row[k] = 1.0
        row[2 * m :] = [-10.0 * (k in item) for item in sequence]
        rows.append(row)
        limits.append(10.0 * selected[k])
        row = np.zeros(2 * m + days)
        row[[k, m + k]] = 1.0
        rows.append(row)
        limits.append(demand[k])
    for way, rack in itertools.product(range(2), range(3)):
        row = np.zeros(2 * m + days)
        row[[m + k for k in range(m) if pairs[k][way] == rack]] = 1.0
        rows.append(row)
        limits.append(float(problem.packet_mbps[rack]) * 21.0)
    row = np.zeros(2 * m + days)
    row[2 * m :] = 1.0
    rows.append(row)
    limits.append(time)
    cost = np.append(-np.ones(2 * m), np.zeros(days))
    bounds = [(0, None)] * (2 * m) + [(problem.shortest_day_us, None)] * days
    solution = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds)
    return -float(solution.fun) if solution.status == 0 else 0.0


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(problem=tiny_problems("changed"))
def test_with_circuits_that_stay_up_it_is_the_best_of_all_sequences(problem: Circuits) -> None:
    decision = optimum.schedule(problem, **EXACT)
    proof = decision.proof
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert proof.status is Status.OPTIMAL
    assert proof.objective is not None
    assert proof.objective * 21.0 == pytest.approx(best_by_enumeration(problem), rel=1e-5, abs=1e-4)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    problem=st.one_of(
        tiny_problems("all", switches=2), tiny_problems("changed"), tiny_problems("changed", switches=2)
    )
)
def test_it_is_that_of_the_formal_model(problem: Circuits) -> None:
    """Over all permutations for each switch, or for each day of it, by another path: Pyomo."""
    import pyomo.environ as pyo

    from planner.backends import pyomo

    exact = optimum.schedule(problem, **EXACT).proof
    if not problem.bits.any():
        assert exact.objective == 0
        return
    model = formulation(problem)
    pyomo.solve_model(model, Options(backend="pyomo:highs", gap=1e-7))
    assert exact.status is Status.OPTIMAL
    assert exact.objective == pytest.approx(pyo.value(model.proof_objective), rel=1e-4, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(problem=tiny_problems("changed"))
def test_in_least_time_it_is_that_of_the_formal_model(problem: Circuits) -> None:
    """Without a window, and with circuits that stay up at night."""
    import pyomo.environ as pyo

    from planner.backends import pyomo

    # four demands, so that one pair after another is few days
    bits = np.where(np.cumsum(problem.bits > 0).reshape(3, 3) <= 4, np.minimum(problem.bits, 35.0), 0.0)
    endless = Circuits.from_matrix(
        bits,
        circuit_mbps=10.0,
        packet_mbps=0.5,
        night_us=problem.night_us,
        window_us=None,
        shortest_day_us=4.0,
        dark="changed",
    )
    exact = optimum.schedule(endless, **EXACT).proof
    if not bits.any():
        assert exact.objective == 0
        return
    model = formulation(endless)
    pyomo.solve_model(model, Options(backend="pyomo:highs", gap=1e-7))
    assert exact.status is Status.OPTIMAL
    assert exact.objective == pytest.approx(pyo.value(model.proof_objective), rel=1e-4, abs=1e-5)


def test_a_formal_model_of_too_many_days_is_refused() -> None:
    problem = generators.skewed(racks=4, large=1, small=1).with_switch(dark="changed", night_us=0.1)
    with pytest.raises(InputError, match="1 x 20,000 days of 24 permutations are 480,000"):
        formulation(problem)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(problem=tiny_problems("all"), dark=st.sampled_from(["all", "changed"]))
def test_more_switches_shorter_nights_and_circuits_that_stay_up_never_hurt(
    problem: Circuits, dark: str
) -> None:
    def best(item: Circuits) -> float:
        proof = optimum.schedule(item, **EXACT).proof
        assert proof.objective is not None
        assert proof.status is Status.OPTIMAL
        return proof.objective * (1 + 1e-5) + 1e-9

    first = problem.with_switch(dark=dark)  # type: ignore[arg-type]
    before = optimum.schedule(first, **EXACT).proof.objective
    assert before is not None
    assert best(first.with_switch(circuit_switches=2)) >= before
    assert best(first.with_switch(night_us=1.5)) >= before
    assert best(problem.with_switch(dark="changed")) >= (
        optimum.schedule(problem, **EXACT).proof.objective or 0
    )


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(problem=problems(plain=False, bounded=True))
def test_the_incumbent_beats_no_bound_whatever_the_limit(problem: Circuits) -> None:
    for upper in (0, 60):
        decision = optimum.schedule(problem, steps=50, most_circuits=upper)
        proof = decision.proof
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        assert proof.objective is not None
        assert proof.bound is not None
        assert proof.objective <= proof.bound * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("dark", ["all", "changed"])
def test_a_demand_that_no_week_could_carry_leaves_the_bound_true(dark: str) -> None:
    """The bound's program keeps its numbers near 1, whatever is left over."""
    bits = np.array([[0.0, 1e14, 0.0], [50.0, 0.0, 20.0], [0.0, 40.0, 0.0]])
    problem = Circuits.from_matrix(
        bits,
        circuit_mbps=10.0,
        packet_mbps=1.0,
        night_us=2.0,
        window_us=50.0,
        circuit_switches=2,
        dark=dark,  # type: ignore[arg-type]
    )
    bound = upper_bound.bound_schedules(problem).proof.bound
    served = eclipse.schedule(problem).proof.objective
    exact = optimum.schedule(problem, steps=100)
    assert bound is not None
    assert served is not None
    assert exact.proof.objective is not None
    assert served <= exact.proof.objective * (1 + 1e-6) <= bound * (1 + 1e-5)
    assert bound <= 2 * 10.0 + 1.0 + 110.0 / 50.0  # the links of the first rack, and all other demand


def test_several_switches_of_many_ports_have_an_incumbent_and_a_bound_at_the_time_limit() -> None:
    problem = generators.skewed(racks=256, seed=1, load=1.5).with_switch(circuit_switches=2)
    proof = optimum.schedule(problem, options=Options(time_limit_s=2.0)).proof
    assert proof.objective is not None
    assert proof.bound is not None
    assert 0.9 * proof.bound <= proof.objective <= proof.bound * (1 + 1e-6)
