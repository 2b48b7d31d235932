"""Kernels that are compiled while no visitor needs a worker, so that first answers need not wait for them."""

from __future__ import annotations

import time
from typing import Final

from planner.errors import PlannerError
from planner.scenarios.catalogue import find_system, system_names
from planner_dashboard.jobs import Workers
from planner_dashboard.question import FIRST_SCENARIO

WARM: Final = "PLANNER_DASHBOARD_WARM"
PAUSE_S: Final = 0.5
"""Time until a worker that was busy is asked for again."""


def warm_workers(workers: Workers) -> None:
    """Start the workers; one of them compiles the kernels of a design, then all load them, and so on.

    The system of the first page comes first. A design whose turn a visitor's question interrupts is taken
    again later.
    """
    first = FIRST_SCENARIO.partition("/")[0]
    for name in sorted(system_names(), key=lambda name: name != first):
        for design in find_system(name).designs:
            for count in (1, workers.count):
                _run_spare(workers, count, name, design.name)


def _run_spare(workers: Workers, count: int, system: str, design: str) -> None:
    """Let that many workers compile or load a design at a time when no visitor needs them."""
    while not workers.is_closed:
        jobs = [workers.submit_spare(compile_design, system, design) for _ in range(count)]
        while any(job is not None and job.is_pending for job in jobs):
            time.sleep(PAUSE_S / 10)
        if all(job is not None and not job.future.cancelled() for job in jobs):
            return
        time.sleep(PAUSE_S)


def compile_design(system_name: str, design_name: str) -> None:
    """Compile the kernels of a design, or load them from the cache, where a sample problem reaches them."""
    from planner.options import Options
    from planner.runs.run import prepare
    from planner.scenarios.scenario import Entry

    try:
        system = find_system(system_name)
        prepare(system, Entry(label=design_name, design=system.design(design_name)), Options())
    except PlannerError:  # a question with this design reports it
        return
