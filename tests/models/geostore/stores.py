"""Small problems of system `geostore`, and a brute force that shares no code with the designs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from planner_models.geostore import Geostore, measure
from planner_models.geostore.designs.assembly import assemble, weak_plan
from planner_models.geostore.plan.check import check
from planner_models.geostore.problem import generators


def store(
    seed: int = 0,
    *,
    regions: int = 5,
    groups: int = 2,
    users: int = 3,
    limit_ms: float | None = 150.0,
    failures: int = 1,
    chain: int = 1,
) -> Geostore:
    """Return a random store of causal groups in the largest cities."""
    return generators.world(
        regions=regions,
        groups=groups,
        users=users,
        limit_ms=limit_ms,
        failures=failures,
        chain=chain,
        seed=seed,
    )


def with_groups(problem: Geostore, **columns: Any) -> Geostore:
    """Return the problem with other columns of groups."""
    return replace(problem, groups=problem.groups.assign(**columns))


def cheapest(problem: Geostore) -> float | None:
    """Return the least cost of a month over all replicas and attachments that the check accepts.

    Every set of replicas of every group is tried with every attachment of users; of several groups, users of
    a region attach to one datacenter if groups depend on each other.
    """
    count = len(problem.regions)
    sets = [np.array(bits, dtype=bool) for bits in product([False, True], repeat=count) if any(bits)]
    best: float | None = None
    for opened in product(sets, repeat=len(problem.groups)):
        for attached in product(range(count), repeat=len(problem.access)):
            usd = _cost(problem, opened, np.array(attached), best)
            best = best if usd is None else usd
    return best


def _cost(
    problem: Geostore, opened: tuple[np.ndarray, ...], attached: np.ndarray, best: float | None
) -> float | None:
    """Return the cost of a month; None for a plan that the check refuses or that is no better than `best`."""
    if any(not opened[group][region] for group, region in zip(problem.user_group, attached, strict=True)):
        return None
    if problem.depends is not None:
        frame = pd.DataFrame({"region": problem.user_region, "at": attached})
        if frame.groupby("region")["at"].nunique().max() > 1:
            return None
    plan = assemble(
        problem,
        [
            weak_plan(problem, group, opened[group], attached[problem.users_of[group]])
            for group in range(len(problem.groups))
        ],
    )
    usd = measure(problem, plan, None)["usd_per_month"]
    is_dearer = usd is None or (best is not None and usd >= best)
    return None if is_dearer or len(check(problem, plan)) else usd
