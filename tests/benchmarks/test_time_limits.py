"""The largest problems end with a plan under a limit of a second; the benchmark tells how long they take."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import time_limits
from planner.entry_points import find_entry_points
from planner.scenarios.installed_systems import GROUP
from planner.scenarios.scenario import load

NAMES = [name for name, _ in time_limits.SCENARIOS]


def test_each_system_has_a_scenario() -> None:
    shipped = {point for point, entry in find_entry_points(GROUP).items() if "planner_models" in entry.module}
    assert {name.split("/")[0] for name in NAMES} == shipped


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes"), time_limits.SCENARIOS, ids=NAMES)
def test_the_largest_problems_have_a_plan_within_a_second(name: str, changes: dict[str, Any]) -> None:
    scenario = load(name, changes=changes)
    run, decided, total = time_limits.time_design(
        scenario, scenario.make_problem(), scenario.designs[0].label
    )
    assert time_limits.find_fault(run) is None
    assert 0 < decided < total
