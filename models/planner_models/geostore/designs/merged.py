"""One set of replicas for all groups that depend on each other: each region with users of any of them."""

from __future__ import annotations

import numpy as np

from planner.arrays import Bools, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.geostore.designs.assembly import decide, refuse_unreachable, weak_plan
from planner_models.geostore.designs.near_users import place_group, using_regions
from planner_models.geostore.plan.plan import GroupPlan, StorePlan
from planner_models.geostore.problem.problem import Geostore


@refuse_unreachable
def place(
    problem: Geostore,
    *,
    options: Options = Options(),  # noqa: ARG001 - read by the decorator
) -> Decision[StorePlan]:
    """Place all groups of a component where users of any of them are: order can be checked everywhere."""
    groups: list[GroupPlan] = []
    for members in problem.components:
        if len(members) == 1:
            groups.append(place_group(problem, int(members[0])))
        else:
            groups += _place_component(problem, members)
    return decide(problem, groups)


def _place_component(problem: Geostore, members: Ints) -> list[GroupPlan]:
    """Return the plans of the groups of a component; a user reads all of them in one region."""
    free: Bools = np.asarray(~problem.is_forbidden[members].any(axis=0))
    used = [using_regions(problem, group) for group in members.tolist()]
    union: Bools = np.logical_or.reduce(used)
    shared = union & free
    if not shared.any():
        shared = free if free.any() else union
    groups = []
    for group in members.tolist():
        opened = (shared | problem.is_pinned[group]) & ~problem.is_forbidden[group]
        trip = np.where(shared & opened, problem.rtt_ms[problem.user_region[problem.users_of[group]]], np.inf)
        groups.append(weak_plan(problem, group, opened, trip.argmin(axis=1)))
    return groups
