"""The panel of a failed element: it says that nothing is lost only where no figure is worse."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.reduced_scenarios import CHANGES
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import load
from planner_dashboard import titles, worker
from planner_dashboard.question import Question
from planner_dashboard.what_if import failed
from planner_dashboard.what_if.changes import with_adjustments

SYSTEMS_WITH_FAILURES = [
    name
    for name in system_names()
    if any(kind.with_role("failure") for kind in find_system(name).problem.elements)
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS_WITH_FAILURES)
def test_a_failure_that_makes_a_figure_worse_is_not_said_to_lose_nothing(name: str, tmp_path: Path) -> None:
    system = find_system(name)
    shipped = titles.scenarios_of(name)[0]
    changes = CHANGES[shipped]
    scenario = load(shipped, changes=changes)
    kind = next(kind for kind in system.problem.elements if kind.with_role("failure"))
    action = kind.with_role("failure")[0]
    element = kind.names(scenario.make_problem())[0]
    label = scenario.designs[0].label
    asked = Question(scenario=shipped, changes=changes, designs=(label,))
    fallen = with_adjustments(scenario, asked, action.apply({}, element))
    before, after = (
        worker.compare(question, tmp_path, tmp_path / str(index), None).designs[0]
        for index, question in enumerate((asked, fallen))
    )
    if not after.has_plan:
        return
    metrics = before.figures.metrics
    headline = system.headline
    was, now = metrics[headline.name], after.figures.metrics[headline.name]
    assert was is not None
    assert now is not None
    is_worse = now < was * (1 - 1e-5) if headline.better == "more" else now > was * (1 + 1e-5)
    says = failed.say_effect(system, after, metrics)
    assert not is_worse or says.startswith(f"Without it, {headline.words} of {after.title} "), says
    if says.endswith("loses nothing."):
        assert not [change for change in failed.changed_metrics(system, after, metrics) if change.is_worse]


def test_the_fall_of_a_headline_is_said_with_both_values() -> None:
    system = find_system("fairshare")
    metric = system.headline

    design: Any = SimpleNamespace(
        title="Optimal sharing", losses=(), figures=SimpleNamespace(metrics={metric.name: 0.5})
    )
    says = failed.say_effect(system, design, {metric.name: 0.9})
    values = f"{metric.text(0.9)} to {metric.text(0.5)}"
    assert says == f"Without it, {metric.words} of Optimal sharing went down from {values}."
    assert failed.say_effect(system, design, {metric.name: 0.5}).endswith("loses nothing.")
