"""Tests of verbs find one whose metrics differ, and take the metrics from any column."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from planner.options import Options
from planner.scenarios.catalogue import find_system
from planner.testing import verbs
from planner.testing.verbs import verb_cases


def run_verb(name: str) -> None:
    """Run the test of a verb on a system with a metric seconds, as a column of run times is named."""
    system = find_system("updates")
    assert "seconds" in [metric.name for metric in system.metrics]
    cases = verb_cases(system, {}, Options(threads=1, seed=1))
    next(run for title, run in cases if title == f"{name}: the problem has the metrics of solve")()


@pytest.mark.parametrize("name", ["roll", pytest.param("sweep", marks=pytest.mark.slow)])
def test_a_metric_with_the_name_of_a_time_is_the_metric(name: str) -> None:
    run_verb(name)


def test_a_verb_with_another_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(asked: verbs._Asked) -> Mapping[str, float | None]:
        return {name: None if value is None else 2 * value for name, value in asked.run.metrics.items()}

    monkeypatch.setitem(verbs.VERBS, "compare", doubled)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"one_shot: \w+ is .*, by solve "):
        run_verb("compare")
