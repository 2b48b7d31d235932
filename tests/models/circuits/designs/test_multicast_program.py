"""The optimum over circuits to several racks: closed forms, the formal model, and an exhaustive search."""

from __future__ import annotations

import functools
import itertools

import pyomo.environ as pyo
import pytest

from planner import Status
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.circuits import SYSTEM, Circuits, formulation
from planner_models.circuits.designs import optimum, upper_bound
from planner_models.circuits.designs.multicast_formulation import divide
from planner_models.circuits.designs.multicast_program import (
    ConfigurationProgram,
    list_configurations,
    list_families,
)
from tests.models.circuits.multicast_cases import draw_problem, make_problem


def test_one_writer_sends_once_to_all_targets() -> None:
    problem = make_problem(5, [(0, [1, 2, 3], 100.0)], packet_mbps=0.0, circuit_targets=3)
    decision = optimum.schedule(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(300.0 / (2.0 + 10.0), rel=1e-6)
    alone = optimum.schedule(problem, one_target=True)
    assert alone.proof.objective == pytest.approx(300.0 / (3 * (2.0 + 10.0)), rel=1e-6)
    assert alone.proof.bound_scope == "circuits to one rack each"


def test_three_targets_over_circuits_to_two_need_two_days() -> None:
    """Coded data could fill three pairs of racks with half of the data each, in 15 us; data itself cannot."""
    problem = make_problem(4, [(0, [1, 2, 3], 100.0)], packet_mbps=0.0, night_us=0.0)
    decision = optimum.schedule(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(300.0 / 20.0, rel=1e-6)


def test_where_all_racks_write_receivers_are_the_limit() -> None:
    everyone = [(i, [(i + 1) % 3, (i + 2) % 3], 100.0) for i in range(3)]
    problem = make_problem(3, everyone, packet_mbps=0.0)
    both = [optimum.schedule(problem, one_target=alone).proof.objective for alone in (False, True)]
    assert both[0] == pytest.approx(both[1], rel=1e-6)


def test_the_slowest_target_sets_the_rate() -> None:
    problem = make_problem(
        3, [(0, [1, 2], 100.0)], packet_mbps=0.0, circuit_mbps=[10.0, 10.0, 5.0], window_us=22.0
    )
    decision = optimum.schedule(problem)
    assert decision.proof.objective == pytest.approx(200.0 / 22.0, rel=1e-6)


@pytest.mark.parametrize(
    ("seed", "window_us", "switches"), [(0, 9.0, 1), (1, None, 1), (4, 9.0, 1), (6, None, 1), (8, 25.0, 2)]
)
def test_the_program_and_the_formal_model_have_one_optimum(
    seed: int, window_us: float | None, switches: int
) -> None:
    more = {} if window_us is None else {"window_us": window_us}
    problem = draw_problem(seed, circuit_targets=2 + seed % 2, circuit_switches=switches, **more)
    run = evaluate(SYSTEM, problem, Entry(label="optimum", design=SYSTEM.design("optimum"), parameters={}))
    assert run.proof.status is Status.OPTIMAL
    assert not len(run.violations)
    model = formulation(problem)
    pyo.SolverFactory("appsi_highs").solve(model)
    value = pyo.value(model.value)
    rate = float(problem.bits.sum()) / value if window_us is None else value / window_us
    assert run.proof.objective == pytest.approx(rate, rel=1e-6)
    bound = upper_bound.bound_schedules(problem).proof.bound
    assert bound is not None
    assert run.proof.objective <= bound * (1 + 1e-6)


def search_exhaustively(problem: Circuits, days: int, day_us: int) -> float:
    """Return the most copies that so many days of equal length serve, by units of 10 bits, one a us.

    It tries every configuration in every day, and in it for each circuit every multiset of units.
    """
    n, multicasts, most = len(problem.racks), problem.multicast_demands, problem.circuit_targets
    units = [
        (k, number) for k in range(len(multicasts)) for number in range(round(multicasts.bits[k] / 10.0))
    ]

    @functools.cache
    def best(remaining: frozenset[tuple[int, int, int]], left: int) -> int:
        """Return the most copies (multicast, unit, target) of those that remain."""
        if not left:
            return 0
        top = 0
        for sources in itertools.product(range(-1, n), repeat=n):
            circuits = {i: frozenset(j for j in range(n) if sources[j] == i) for i in set(sources) if i >= 0}
            if not circuits or any(len(racks) > most for racks in circuits.values()):
                continue
            options = []
            for i, racks in circuits.items():
                useful = [
                    received
                    for unit in units
                    if multicasts.source[unit[0]] == i
                    and (received := remaining & {(*unit, j) for j in racks})
                ]
                size = min(day_us, len(useful))
                options.append([frozenset().union(*some) for some in itertools.combinations(useful, size)])
            for picked in itertools.product(*options):
                served = frozenset().union(*picked)
                if served:
                    top = max(top, len(served) + best(remaining - served, left - 1))
        return top

    every = frozenset((k, number, j) for k, number in units for j in multicasts.targets[k])
    return 10.0 * best(every, days)


@pytest.mark.parametrize(
    "multicasts",
    [
        [(0, [1, 2], 20.0), (1, [0, 2], 10.0)],
        [(0, [1, 2], 20.0), (2, [0, 1], 20.0)],
        [(0, [1, 2], 10.0), (0, [2], 10.0), (1, [0], 20.0)],
    ],
)
def test_no_search_over_units_serves_more(multicasts: list[tuple[int, list[int], float]]) -> None:
    """Two days of 1 us with nights of 2 us fit a week of 6 us; days of other lengths may serve more."""
    problem = make_problem(3, multicasts, packet_mbps=0.0, window_us=6.0)
    proof = optimum.schedule(problem).proof
    assert proof.status is Status.OPTIMAL
    assert proof.objective is not None
    searched = max(search_exhaustively(problem, 1, 4), search_exhaustively(problem, 2, 1))
    assert proof.objective * 6.0 >= searched * (1 - 1e-6)
    assert proof.objective * 6.0 == pytest.approx(searched, rel=1e-6)


def test_families_are_all_divisions_of_targets() -> None:
    """Against those of the formal model, which are made another way; 5 racks have 203 with the empty one."""
    for most in (1, 2, 5):
        listed = {frozenset(family) for family in list_families(frozenset(range(5)), most)}
        every = {
            frozenset(family)
            for family in divide(list(range(5)))
            if family and max(len(group) for group in family) <= most
        }
        assert listed == every
    assert len(divide(list(range(5)))) == 203


def test_configurations_are_none_where_there_are_too_many() -> None:
    problem = make_problem(5, [(0, [1, 2, 3], 10.0), (4, [1, 2, 3], 10.0)])
    every = list_configurations(problem, 100)
    assert every is not None
    assert list_configurations(problem, len(every)) is not None
    assert list_configurations(problem, len(every) - 1) is None


def test_the_program_of_configurations_without_shared_circuits_has_no_chunks() -> None:
    problem = make_problem(3, [(0, [1, 2], 10.0)])
    every = list_configurations(problem, 100)
    assert every is not None
    single = every[[len(set(row) - {-1}) == sum(value >= 0 for value in row) for row in every.tolist()]]
    model = ConfigurationProgram(problem=problem, configurations=single)
    assert not model.families
    assert model.build().cost.any()
