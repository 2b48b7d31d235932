"""The traffic that each class gets of a plan: without failures, and in the failure that hurts it most."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.plan import Breakdown
from planner_models.capacity.plan.check import Evaluation
from planner_models.capacity.plan.routing import FlowProgram, down_links, limit_by_priority
from planner_models.capacity.problem.problem import CapacityPlanning

MOST_PROGRAMS: Final = 3_000
"""Linear programs up to which failures are tried."""


def break_down_classes(problem: CapacityPlanning, done: Evaluation) -> Breakdown:
    """Return what each class offers and gets in the year with the most demand, the highest priority first.

    In a failure all demands are offered in full, and classes are served in the order of their priority, those
    of one priority together.
    """
    year = int(np.argmax(problem.rate_mbps.sum(axis=1)))
    table = problem.class_table
    rate, sent = problem.rate_mbps[year], done.sent[year]
    count = len(table)
    offered: Floats = np.bincount(problem.class_of, weights=rate, minlength=count).astype(float)
    columns: dict[str, Any] = {
        "class": table["class"].astype(str),
        "offered_mbps": offered,
        "no_failure_mbps": np.bincount(problem.class_of, weights=sent, minlength=count),
    }
    states = len(problem.states.names)
    if states and states * problem.class_table["priority"].nunique() <= MOST_PROGRAMS:
        program = FlowProgram(problem)
        got: Floats = np.array(
            [_deliver(problem, program, done.capacity[year], state, rate) for state in range(1, 1 + states)]
        )
        got = np.where(offered - got <= problem.rounding_share * rate.sum(), offered, got)
        columns["protected_mbps"] = offered * table["protected_share"].to_numpy(float)
        columns["worst_failure_mbps"] = got.min(axis=0)
    title = "Traffic by class, the highest priority first"
    return Breakdown(title=title, group="class", frame=pd.DataFrame(columns))


def _deliver(
    problem: CapacityPlanning, program: FlowProgram, capacity: Floats, state: int, rate: Floats
) -> Floats:
    """Return what is delivered of each class in a state, (C,), Mbit/s."""
    offered = np.where(problem.cut_off[state] | problem.cut_off[0], 0.0, rate)
    up = np.where(down_links(problem, state), 0.0, capacity)
    limits = None
    if len(program.levels) > 1:
        limits = limit_by_priority(program, up, offered)
    shed = program.solve(up, offered, limits=limits).shed
    got = np.bincount(problem.class_of, weights=offered - shed, minlength=len(problem.class_table))
    return got.astype(float)
