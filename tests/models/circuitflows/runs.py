"""Runs of designs."""

from __future__ import annotations

from typing import Any

from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.scenarios.scenario import Entry
from planner_models.circuitflows import SYSTEM
from planner_models.circuitflows.problem.problem import FlowsInTime


def run_design(problem: FlowsInTime, name: str, **parameters: Any) -> Run:
    """Run the design of that name with parameters."""
    return evaluate(SYSTEM, problem, Entry(label=name, design=SYSTEM.design(name), parameters=parameters))
