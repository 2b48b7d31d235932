"""Plans with whole servers: regions are closed one by one while the bill falls.

Placement counts servers by use. A region with whole servers, or with a least number of them, costs more than
that where few operations come; without it, other regions fill the servers that they have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from planner.errors import InputError
from planner.search.deadline import Deadline
from planner_models.geostore.plan.check import check
from planner_models.geostore.plan.evaluation import evaluate
from planner_models.geostore.plan.metrics import measure
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore

MAX_TRIALS: Final = 40
MAX_GROUPS: Final = 1_000
"""Groups up to which regions are closed: each trial places all of them again."""


def close_regions(
    problem: Geostore,
    plan: StorePlan,
    place: Callable[[Geostore], StorePlan | None],
    deadline: Deadline,
) -> StorePlan:
    """Return a plan after closing regions one by one while that lowers the bill.

    place  a plan of all groups that keeps their goals, None without one
    """
    if not (problem.price("least_servers") > 0).any() or len(problem.groups) > MAX_GROUPS:
        return plan
    best, usd, trials, is_better = plan, _bill(problem, plan), 0, True
    current = problem
    while is_better:
        is_better = False
        for region in _used_regions(current, best):
            if trials >= MAX_TRIALS or deadline.is_over:
                return best
            trials += 1
            trial_problem = _without(current, region)
            trial = None if trial_problem is None else place(trial_problem)
            if trial is None or trial_problem is None or len(check(problem, trial)):
                continue
            trial_usd = _bill(problem, trial)
            if trial_usd < usd * (1 - 1e-9):
                best, usd, current, is_better = trial, trial_usd, trial_problem, True
                break
    return best


def _bill(problem: Geostore, plan: StorePlan) -> float:
    """Return the cost of a month, USD."""
    return measure(problem, plan, None)["usd_per_month"] or 0.0


def _used_regions(problem: Geostore, plan: StorePlan) -> list[int]:
    """Return the regions with replicas that may be closed, by the load of their servers, lowest first."""
    state = evaluate(problem, plan)
    is_used = state.copies.sum(axis=0) > 0
    is_free = ~(problem.is_pinned | problem.is_forbidden).any(axis=0)
    rows = np.flatnonzero(is_used & is_free)
    return [int(row) for row in rows[np.argsort(state.load[rows], kind="stable")]]


def _without(problem: Geostore, region: int) -> Geostore | None:
    """Return the problem with a region in which no group may be; None where too few remain for some group."""
    rows = pd.DataFrame({"group": problem.group_index, "region": problem.region_index[region]})
    frames = [rows] if problem.forbidden is None else [problem.forbidden, rows]
    try:
        return replace(problem, forbidden=pd.concat(frames, ignore_index=True))
    except InputError:
        return None
