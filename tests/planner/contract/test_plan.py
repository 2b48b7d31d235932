"""Violations in sentences."""

from __future__ import annotations

from planner.contract.plan import Violations


def test_what_must_not_be_is_listed_by_place_alone() -> None:
    positions = [f"c{number}" for number in range(5)]
    result = Violations.of("loop", where=positions, amount=1.0, allowed=0.0, unit="mixture")
    assert result.sentences() == ["loop: violated 5 times: c0; c1; c2; ..."]
    assert result.sentences(5) == ["loop: violated 5 times: c0; c1; c2; c3; c4"]


def test_amounts_with_a_unit_are_shown_with_their_limit() -> None:
    result = Violations.of("load", where=["a"], amount=1.0, allowed=0.0, unit="Mbit/s")
    assert result.sentences() == ["load: violated 1 time, worst a: 1 against 0 Mbit/s"]
    result = Violations.of("tables", where=["a", "b"], amount=[1.0, 7.0], allowed=[0.0, 5.0], unit="rules")
    assert result.sentences() == [
        "tables: violated 2 times, worst b: 7 against 5 rules; a: 1 against 0 rules"
    ]
