"""`available`: what is there, what is missing, what works."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from planner.backends import available, doctor
from planner.backends.linear import LinearProgram


def test_every_backend_here_passes() -> None:
    found = {entry.backend: entry for entry in available()}
    assert {
        "highs",
        "ortools:glop",
        "ortools:pdlp",
        "ortools:cp-sat",
        "ortools:scip",
        "pyomo:highs",
        "pyomo:appsi_highs",
    } <= set(found)
    for name in ("highs", "ortools:glop", "ortools:pdlp", "ortools:cp-sat", "ortools:scip", "pyomo:highs"):
        entry = found[name]
        assert entry.passed, entry.problem
        assert entry.version
        assert entry.missing is None
        assert entry.seconds is not None


def test_what_is_missing_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "planner.backends.highs", raising=False)
    monkeypatch.setitem(sys.modules, "highspy", None)
    entry = next(entry for entry in doctor.find() if entry.backend == "highs")
    assert entry.version is None
    assert entry.passed is None
    assert entry.missing is not None
    assert "highspy" in entry.missing


def test_a_wrong_answer_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(whole: bool) -> LinearProgram:
        return replace(LinearProgram.build(cost=[1.0, 1.0], offset=99.0), name=f"tiny {whole}")

    monkeypatch.setattr(doctor, "_tiny", other)
    entry = next(entry for entry in doctor.find() if entry.backend == "highs")
    assert entry.passed is False
    assert entry.problem == "optimal with 99.0, not optimal with 12"
