"""Kernels that are compiled while no visitor needs a worker, so that first answers need not wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
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

    The question of the first page comes first, then its system. A turn that a visitor interrupts is
    taken again later.
    """
    first = FIRST_SCENARIO.partition("/")[0]
    tasks: list[tuple[Callable[..., None], Sequence[str]]] = [
        (answer_scenario, (FIRST_SCENARIO,)),
        (find_upgrade, (FIRST_SCENARIO,)),
    ]
    for name in sorted(system_names(), key=lambda name: name != first):
        tasks += [(compile_design, (name, design.name)) for design in find_system(name).designs]
    for function, arguments in tasks:
        for count in (1, workers.count):
            _run_spare(workers, count, function, *arguments)


def _run_spare(workers: Workers, count: int, function: Callable[..., None], *arguments: str) -> None:
    """Let that many workers run a function at a time when no visitor needs them."""
    while not workers.is_closed:
        jobs = [workers.submit_spare(function, *arguments) for _ in range(count)]
        while any(job is not None and job.is_pending for job in jobs):
            time.sleep(PAUSE_S / 10)
        if all(job is not None and not job.future.cancelled() for job in jobs):
            return
        time.sleep(PAUSE_S)


def answer_scenario(name: str) -> None:
    """Run the designs of a scenario once: its data is read, and the kernels that it needs are ready."""
    from planner.runs.evaluation import compare

    with suppress(PlannerError):  # a question about this scenario reports it
        compare(name)


def find_upgrade(name: str) -> None:
    """Find upgrades of a scenario after a failure, for kernels that start from a plan or price capacity."""
    from planner.scenarios.scenario import load
    from planner.sweeps.upgrades import upgrades

    scenario = load(name)
    kind = next(kind for kind in scenario.system.problem.elements if kind.with_role("failure"))
    (failure,) = kind.with_role("failure")
    failed = {f"problem.{failure.parameter}": kind.names(scenario.make_problem())[:1]}
    with suppress(PlannerError):  # a question about this scenario reports it
        upgrades(name, design=scenario.designs[0].label, changes=failed, steps=2, candidates=1)


def compile_design(system_name: str, design_name: str) -> None:
    """Compile the kernels of a design, or load them from the cache, where a sample problem reaches them."""
    from planner.options import Options
    from planner.runs.evaluation import compile_ahead
    from planner.scenarios.scenario import Entry

    try:
        system = find_system(system_name)
        compile_ahead(system, Entry(label=design_name, design=system.design(design_name)), Options())
    except PlannerError:  # a question with this design reports it
        return
