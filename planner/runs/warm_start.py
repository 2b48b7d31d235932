"""Warm starts: a run on a problem starts from the decision on a neighbour, a problem that differs little.

A result that is proven within the requested gap does not depend on its start; that of a heuristic may. So
only decisions that are proven optimal start others, and only where those are proven optimal too. A
design that keeps to the plan before gets none: a neighbour's plan is not the one in place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.contract.proof import Status
from planner.contract.system import System
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.scenarios.scenario import Entry


def start_of(run: Run) -> Run:
    """Return the data that a later run needs to start from a run; `problem` is replaced by its size."""
    return replace(run, problem=run.problem.size(), plan=None, metrics={})


def evaluate_from(start: Run | None, system: System, problem: Any, entry: Entry, *, options: Options) -> Run:
    """Run a design from a neighbour's decision; without one where that might change the result.

    start  of a neighbour, by `start_of`
    """
    if entry.design.keeps_previous(entry.parameters):
        start = None
    if start is not None and start.proof.status is Status.OPTIMAL and start.problem == problem.size():
        try:
            return evaluate_near(start, system, problem, entry, options=options)
        except Exception:  # a neighbour's plan may not fit this problem
            return evaluate(system, problem, entry, options=options)
    return evaluate(system, problem, entry, options=options)


def evaluate_near(
    previous: Run | None, system: System, problem: Any, entry: Entry, *, options: Options
) -> Run:
    """Run a design from a plan; where the result is not proven optimal, run it again without."""
    if previous is not None:
        run = evaluate(system, problem, entry, options=options, previous=previous)
        if run.proof.status is Status.OPTIMAL:
            return run
    return evaluate(system, problem, entry, options=options)
