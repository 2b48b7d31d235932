"""Byzantine agreement beside all adversaries of small cases, and the formulas that contradict each other."""

from __future__ import annotations

import itertools

import pytest

from planner_models.membership.protocols import agreement


def test_four_processes_agree_beside_one_that_lies() -> None:
    assert agreement.find_disagreement(4, 1) is None


def test_three_processes_do_not() -> None:
    found = agreement.find_disagreement(3, 1)
    assert found is not None
    inputs, faulty = found
    outcomes = [
        agreement.is_agreement(inputs, faulty, agreement.run(inputs, faulty, 1, adversary, seed))
        for adversary in agreement.ADVERSARIES
        for seed in range(5)
    ]
    assert not all(outcomes)


def test_seven_agree_beside_two() -> None:
    for inputs in ((0, 1, 0, 1, 0, 1, 1), (1, 1, 1, 1, 1, 0, 0)):
        faulty = frozenset({5, 6})
        for adversary in agreement.ADVERSARIES:
            decisions = agreement.run(inputs, faulty, 2, adversary)
            assert agreement.is_agreement(inputs, faulty, decisions)


@pytest.mark.parametrize(("processes", "depth"), [(4, 2), (5, 3), (7, 3)])
def test_levels_are_as_many_as_sequences_without_repetition(processes: int, depth: int) -> None:
    counted = [
        sum(1 for _ in itertools.permutations(range(processes), level)) for level in range(1, depth + 1)
    ]
    assert agreement.level_sizes(processes, depth) == counted


def test_values_of_13_processes_are_173485() -> None:
    assert sum(agreement.level_sizes(13, 5)) == 173_485


def test_early_stopping_is_between_its_lower_bound_and_the_others() -> None:
    for limit in range(1, 12):
        for faulty in range(limit + 1):
            early = agreement.rounds_early(faulty, limit)
            assert early <= agreement.rounds_gm(faulty, limit) <= agreement.rounds_psl(faulty, limit)
    # GM98 saves rounds only where more than four may be faulty
    assert agreement.rounds_gm(0, 4) == agreement.rounds_psl(0, 4)
    assert agreement.rounds_gm(0, 5) < agreement.rounds_psl(0, 5)


def test_text_and_algorithm_1_start_monitors_with_parameters_that_differ_by_one() -> None:
    text, algorithm = (agreement.monitor_parameters(20, source) for source in ("text", "algorithm"))
    assert text.keys() == algorithm.keys()
    assert {algorithm[start] - text[start] for start in text} == {1}
    assert all(start + phi <= 21 for start, phi in algorithm.items())


@pytest.mark.parametrize("first", [3, 4, 5])
def test_waste_grows_by_one_less_than_section_5_prints(first: int) -> None:
    for ones in range(4):
        assert agreement.waste_of([first, *[1] * ones, 0]) == first - 2  # printed: c - 1
        assert agreement.waste_of([first, *[1] * ones]) == first - 1  # printed: c


def test_waste_of_six_makes_monitors_vote_bad() -> None:
    for corrupted in ([7], [4, 4], [2, 3, 4]):
        assert agreement.waste_of(corrupted) == 6
        noticed = len(corrupted) + 3
        assert agreement.known_faults(corrupted, noticed) >= noticed + 3
        fewer = [corrupted[0] - 1, *corrupted[1:]]
        assert agreement.known_faults(fewer, noticed) < noticed + 3
