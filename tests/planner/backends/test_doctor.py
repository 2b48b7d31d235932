"""Diagnosis of the backends: installed, missing, wrong."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from planner.backends import doctor
from planner.backends.doctor import Diagnosis
from planner.backends.linear_program import LinearProgram
from planner.backends.registry import backend_names, find_backend
from tests.commercial_solvers import PACKAGES


def diagnosis_of_highs() -> Diagnosis:
    return next(diagnosis for diagnosis in doctor.diagnose() if diagnosis.backend == "highs")


def test_every_backend_is_diagnosed_and_passes() -> None:
    diagnoses = {diagnosis.backend: diagnosis for diagnosis in doctor.diagnose()}
    names = [name for backend in backend_names() for name in find_backend(backend).installed_names()]
    assert list(diagnoses) == names
    assert {"highs", "ortools:cp-sat", "pyomo:highs", "scip"} <= set(names)
    for name, diagnosis in diagnoses.items():
        if name in PACKAGES and diagnosis.missing:
            continue
        assert diagnosis.passed, diagnosis.problem
        assert diagnosis.version
        assert diagnosis.missing is None
        assert diagnosis.seconds is not None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "planner.backends.highs", raising=False)
    monkeypatch.setitem(sys.modules, "highspy", None)
    diagnosis = diagnosis_of_highs()
    assert diagnosis.version is None
    assert diagnosis.passed is None
    assert diagnosis.missing == "backend 'highs' needs the package 'highspy', which is not installed"


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "planner.backends.scip", raising=False)
    monkeypatch.setitem(sys.modules, "pyscipopt", None)
    missing = [diagnosis.missing for diagnosis in doctor.diagnose() if diagnosis.backend == "scip"]
    package = "backend 'scip' needs the package 'pyscipopt', which is not installed"
    assert missing == [f"{package}: pip install 'coordination-planner[scip]'"]


def test_a_wrong_answer_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def other_model(is_integer: bool) -> LinearProgram:
        return replace(LinearProgram.build(cost=[1.0, 1.0], offset=99.0), name=f"tiny {is_integer}")

    monkeypatch.setattr(doctor, "_tiny_model", other_model)
    diagnosis = diagnosis_of_highs()
    assert diagnosis.passed is False
    assert diagnosis.problem == "optimal with 99.0, not optimal with 12"
