"""The table of designs: every design names its metrics."""

from __future__ import annotations

import pytest

from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.brokering import SYSTEM
from planner_models.brokering.problem.generators import world


@pytest.mark.slow
def test_every_design_names_its_metrics() -> None:
    problem = world(clients=100, places=10, seed=5)
    names = {metric.name for metric in SYSTEM.metrics}
    for design in SYSTEM.designs:
        run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
        assert run.plan is not None
        assert set(run.metrics) == names
