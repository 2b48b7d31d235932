"""Plans with whole servers: regions are closed one by one while the bill falls; and a bound on the bill.

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
from planner_models.geostore.designs.placer import Placer
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


def bound_with_least_servers(placer: Placer) -> float:
    """Return a bound on the bill that has the least servers of the regions that some group must use.

    Where regions have a least number of servers, these cost nothing by use in the bounds of all components;
    some group's replicas then need the least servers of as many regions as it must be in, the cheapest ones
    that may hold it. Returns -inf where no region has a least number.
    """
    problem = placer.problem
    minimum, usd = problem.price("least_servers"), problem.price("server_usd_month")
    if not (minimum * usd > 0).any():
        return -np.inf
    by_use = np.where(minimum > 0, usd / (1000.0 * problem.price("server_kops")), 0.0)
    without_servers = placer.at_prices(-by_use, {})
    without_servers.place_all()
    return without_servers.bound + least_server_usd(problem)


def least_server_usd(problem: Geostore) -> float:
    """Return the price of the least servers that some group needs, the largest of all groups, USD a month.

    A replica has load where its group is written, and writes from elsewhere have load; otherwise only one
    replica that is read has.
    """
    usd = problem.price("least_servers") * problem.price("server_usd_month")
    writes = np.bincount(problem.user_group, problem.use("writes_per_s"), len(problem.groups))
    is_copied = (writes > 0) & (problem.term("replication_load") > 0)
    number = np.where(is_copied & ~problem.is_strong, problem.failures + 1, 1)
    needed = [
        np.sort(usd[~problem.is_forbidden[group]])[: number[group]].sum() for group in range(len(number))
    ]
    return float(max(needed))


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
