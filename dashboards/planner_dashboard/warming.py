"""Kernels that are compiled while no visitor needs a worker, so that first answers need not wait for them."""

from __future__ import annotations

import time
from typing import Final

from planner.errors import PlannerError
from planner.scenarios.catalogue import find_system, system_names
from planner_dashboard.jobs import Workers

WARM: Final = "PLANNER_DASHBOARD_WARM"
PAUSE_S: Final = 0.5
"""Time until a worker that was busy is asked for again."""


def warm_workers(workers: Workers) -> None:
    """Start the workers, and let them compile the kernels of every design, one after another.

    A design whose turn a visitor's question interrupts is taken again later.
    """
    waiting = [(system, design.name) for system in system_names() for design in find_system(system).designs]
    while waiting and not workers.is_closed:
        system, design = waiting[0]
        job = workers.submit_spare(compile_design, system, design)
        while job is not None and job.is_pending:
            time.sleep(PAUSE_S / 10)
        if job is None or job.future.cancelled():
            time.sleep(PAUSE_S)
            continue
        waiting.pop(0)


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
