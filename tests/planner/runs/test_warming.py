"""Kernels of a system are compiled ahead of its first run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.runs import evaluation
from planner.runs.evaluation import evaluate
from planner.runs.warming import warm
from tests.planner.runs.toy_system import Admitted, Link, admit, entry, toy


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget which designs are ready, as a new process would."""
    monkeypatch.setattr(evaluation, "_ready", set())


def compiled_design() -> Any:
    @njit()
    def doubled(value: float) -> float:
        return 2.0 * value

    def decide(problem: Link) -> Decision[Admitted]:
        doubled(np.float64(1.0))
        return admit(problem)

    return decide


def test_every_design_is_compiled_once() -> None:
    system = toy(sample=lambda: Link(1.0, 1.0), decide=compiled_design())
    seen: list[None] = []
    result = warm(system, lambda: seen.append(None))
    assert (result.system, result.kernels, result.designs) == ("toy", 1, len(system.designs))
    assert len(seen) == len(system.designs)
    assert result.seconds > 0.0
    assert warm(system).kernels == 0
    assert evaluate(system, Link(2.0, 1.0), entry(system, "own")).proof.compile_s == 0.0


def test_kernels_that_python_may_run_are_compiled_too() -> None:
    @run_small_in_python(max_elements=10)
    @njit()
    def halved(value: float) -> float:
        return value / 2.0

    def decide(problem: Link) -> Decision[Admitted]:
        halved(np.float64(1.0))
        return admit(problem)

    kernel: Any = halved
    evaluate(toy(decide=decide), Link(2.0, 1.0), entry(toy(decide=decide), "own"))
    assert "dispatcher" not in vars(kernel)
    assert warm(toy(sample=lambda: Link(1.0, 1.0), decide=decide)).kernels == 1
    assert kernel.is_compiled


def test_a_system_without_kernels_needs_nothing() -> None:
    result = warm(toy(decide=compiled_design()))
    assert (result.kernels, result.designs) == (0, 0)
