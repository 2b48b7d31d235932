"""A replica in each region with users: today's reaction to one's own access."""

from __future__ import annotations

import numpy as np

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.options import Options
from planner_models.geostore.designs.assembly import (
    decide,
    leader_plan,
    main_region,
    nearest_voters,
    refuse_unreachable,
    weak_plan,
)
from planner_models.geostore.designs.everywhere import VOTERS
from planner_models.geostore.plan.plan import GroupPlan, StorePlan
from planner_models.geostore.problem.problem import Geostore


@refuse_unreachable
def place(
    problem: Geostore,
    *,
    options: Options = Options(),  # noqa: ARG001 - read by the decorator
) -> Decision[StorePlan]:
    """Place each group where its own users are, and its leader, if any, where most writes are.

    Groups do not know of each other: one that depends on another may be where that one is not.
    """
    return decide(problem, [place_group(problem, group) for group in range(len(problem.groups))])


def using_regions(problem: Geostore, group: int) -> Bools:
    """Return the regions nearest to the users of a group that may hold it, and those where it is pinned."""
    users = problem.users_of[group]
    active = users[problem.requests_per_s[users] > 0]
    latency = np.where(problem.is_forbidden[group], np.inf, problem.latency_ms[active])
    opened: Bools = np.array(problem.is_pinned[group])
    opened[latency.argmin(axis=1)] = True
    return opened


def place_group(problem: Geostore, group: int) -> GroupPlan:
    """Return the plan of one group by its own access."""
    opened = using_regions(problem, group)
    if problem.is_strong[group]:
        leader = main_region(problem, group)
        voters = nearest_voters(problem, group, leader, VOTERS)
        return leader_plan(problem, group, leader, voters, np.where(voters > 0, 0, opened).astype(np.int64))
    latency = np.where(opened, problem.latency_ms[problem.users_of[group]], np.inf)
    return weak_plan(problem, group, opened, latency.argmin(axis=1))
