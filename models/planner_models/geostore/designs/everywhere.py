"""Full replicas: every region holds every group (Lloyd et al. 2013, 2.1)."""

from __future__ import annotations

import numpy as np

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
from planner_models.geostore.plan.plan import GroupPlan, StorePlan
from planner_models.geostore.problem.problem import Geostore

VOTERS = 3


@refuse_unreachable
def place(
    problem: Geostore,
    *,
    options: Options = Options(),  # noqa: ARG001 - read by the decorator
) -> Decision[StorePlan]:
    """Place every group in every region that may hold it; users attach to the fastest.

    A strongly consistent group has its leader where most writes are, voters next to it, and followers
    elsewhere.
    """
    return decide(problem, [_place_group(problem, group) for group in range(len(problem.groups))])


def _place_group(problem: Geostore, group: int) -> GroupPlan:
    opened = ~problem.is_forbidden[group]
    if problem.is_strong[group]:
        leader = main_region(problem, group)
        number = max(VOTERS, 2 * int(problem.failures[group]) + 1)
        voters = nearest_voters(problem, group, leader, number)
        return leader_plan(problem, group, leader, voters, np.where(voters > 0, 0, opened).astype(np.int64))
    latency = np.where(opened, problem.latency_ms[problem.users_of[group]], np.inf)
    return weak_plan(problem, group, opened, latency.argmin(axis=1))
