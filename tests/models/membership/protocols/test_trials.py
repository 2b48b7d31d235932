"""Trials beside random liars: rounds of Theorem 3 of Abraham and Dolev, and support of the decision."""

from __future__ import annotations

import pytest

from planner_models.membership.protocols.trials import Trial, draw_trial, stops_early


@pytest.fixture(scope="module")
def trials() -> dict[tuple[int, str], list[Trial]]:
    """Return trials by the number of processes and the kind of inputs."""
    return {
        (count, inputs): [draw_trial(count, limit, seed, inputs=inputs) for seed in range(number)]
        for count, limit, number in ((7, 2, 60), (10, 3, 12))
        for inputs in ("any", "alike", "default")
    }


def test_all_agree_and_support_the_decision(trials: dict[tuple[int, str], list[Trial]]) -> None:
    for runs in trials.values():
        assert all(trial.agrees() and trial.has_support() for trial in runs)


def test_rounds_are_never_below_the_bound_of_any_protocol(trials: dict[tuple[int, str], list[Trial]]) -> None:
    # min{f + 2, t + 1} rounds: some run without liars takes two
    assert max(trial.last_stop() for trial in trials[7, "any"] if trial.faulty == 0) == 2
    assert stops_early(trials[7, "any"] + trials[7, "default"], range(3))


def test_rounds_of_theorem_3(trials: dict[tuple[int, str], list[Trial]]) -> None:
    for (_, inputs), runs in trials.items():
        for trial in runs:
            first = trial.first_stop()
            assert trial.stop_delay() <= 1
            assert trial.last_output() <= first + 1
            assert trial.last_stop() <= first + 2
            assert trial.last_stop() <= min(trial.faulty + 2, trial.limit + 1)
            if inputs == "alike":
                assert trial.last_output() <= 2
                assert trial.last_stop() <= min(3, trial.faulty + 1)
            if inputs == "default":
                assert trial.last_output() <= 3
                assert trial.last_stop() <= 4


def test_known_faults_shorten_the_protocol() -> None:
    for seed in range(30):
        trial = draw_trial(10, 3, seed, phi=1)
        assert trial.agrees()
        assert trial.last_stop() <= 2
