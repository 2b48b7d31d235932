"""Ways to lie, and what runs beside them count."""

from __future__ import annotations

import numpy as np

from planner_models.membership.protocols.early_stopping import DEFAULT
from planner_models.membership.protocols.liars import KINDS, draw_lie, run


def test_liars_follow_the_protocol_up_to_their_first_round() -> None:
    for kind in KINDS:
        lie = draw_lie(kind, (0, 1, 2), 4, 3, np.random.default_rng(0))
        assert {lie(2, 0, receiver, (), 2) for receiver in range(4)} == {2}


def test_kinds_of_lies() -> None:
    random = np.random.default_rng(1)
    told = {
        kind: [draw_lie(kind, (0, 1, 2), 4, 1, random)(1, 0, receiver, (), 2) for receiver in range(4)]
        for kind in KINDS
    }
    assert told["honest"] == [2] * 4
    assert told["silent"] == [None] * 4
    assert told["default"] == [DEFAULT] * 4
    assert sum(value != 2 for value in told["victim"]) <= 1


def test_known_faulty_processes_are_silent_and_taken_for_the_default() -> None:
    outcome = run([1] * 7, {}, 2, phi=1, known=frozenset({6}))
    assert set(outcome.output) == set(range(6))
    assert set(outcome.output.values()) == {1}
    assert set(outcome.stop_round.values()) == {1}


def test_accusations_of_t_liars_are_not_believed() -> None:
    lie = draw_lie("honest", (0, 1), 7, 9, np.random.default_rng(0))
    accused = {5: frozenset({0, 1}), 6: frozenset({0, 1})}
    outcome = run([0, 1, 0, 1, 0, 1, 1], {5: lie, 6: lie}, 2, accused=accused)
    assert not outcome.suspected
