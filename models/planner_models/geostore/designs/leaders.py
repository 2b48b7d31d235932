"""Leaders and voters by rules of practice: one leader with backups, majorities, and goals of survival."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.geostore.designs.assembly import (
    decide,
    leader_plan,
    main_region,
    nearest_voters,
    quorum_plan,
    refuse_unreachable,
)
from planner_models.geostore.plan.plan import GroupPlan, StorePlan
from planner_models.geostore.problem.problem import Geostore

Voters = Annotated[int, Field(ge=1, le=9, description="replicas that vote; even numbers are rounded up")]
HOME_VOTERS = 2
REGION_VOTERS = 5
ZONE_VOTERS = 3


@refuse_unreachable
def place_single_leader(
    problem: Geostore,
    *,
    options: Options = Options(),  # noqa: ARG001 - read by the decorator
) -> Decision[StorePlan]:
    """Place the leader of each group where most writes are, and backups in the nearest regions.

    There are as many voters as failures need, three at least.
    """
    groups = []
    for group in range(len(problem.groups)):
        leader = main_region(problem, group)
        voters = nearest_voters(problem, group, leader, max(3, 2 * int(problem.failures[group]) + 1))
        groups.append(leader_plan(problem, group, leader, odd_voters(problem, group, leader, voters), None))
    return decide(problem, groups)


def odd_voters(problem: Geostore, group: int, leader: int, voters: Ints) -> Ints:
    """Return the voters without the farthest one where their number is even, (N,)."""
    if voters.sum() % 2 or voters.sum() < 2:
        return voters
    far = np.where((voters > 0) & ~problem.is_pinned[group], problem.rtt_ms[leader], -np.inf)
    far[leader] = -np.inf
    if not np.isfinite(far.max()):
        return voters
    fewer = voters.copy()
    fewer[int(far.argmax())] = 0
    return fewer


@refuse_unreachable
def place_majority(
    problem: Geostore,
    *,
    voters: Voters = 3,
    options: Options = Options(),  # noqa: ARG001 - read by the decorator
) -> Decision[StorePlan]:
    """Place voters in the regions of least mean round-trip time to all; reads and writes need a majority.

    Groups that ask for a leader have it in the first of them.
    """
    groups: list[GroupPlan] = []
    for group in range(len(problem.groups)):
        number = max(voters + 1 - voters % 2, 2 * int(problem.failures[group]) + 1)
        mean = np.where(problem.is_forbidden[group], np.inf, problem.rtt_ms.mean(axis=0))
        first = int(mean.argmin())
        mean[problem.is_pinned[group]] = -1.0
        rows = np.argsort(mean, kind="stable")[:number]
        votes = np.zeros(len(mean), dtype=np.int64)
        votes[rows[np.isfinite(mean[rows])]] = 1
        if problem.group_class[group] == "leader":
            votes[first] = 1
            groups.append(leader_plan(problem, group, first, votes, None))
        else:
            groups.append(quorum_plan(problem, group, votes > 0, None, int(votes.sum()) // 2 + 1))
    return decide(problem, groups)


@refuse_unreachable
def place_survive_zone(
    problem: Geostore,
    *,
    options: Options = Options(),  # noqa: ARG001 - read by the decorator
) -> Decision[StorePlan]:
    """Place three voters in zones of the home region, where most writes are, and followers elsewhere."""
    groups = []
    for group in range(len(problem.groups)):
        home = main_region(problem, group)
        voters = np.zeros(len(problem.regions), dtype=np.int64)
        voters[home] = ZONE_VOTERS
        groups.append(leader_plan(problem, group, home, voters, _followers(problem, group, voters)))
    return decide(problem, groups)


@refuse_unreachable
def place_survive_region(
    problem: Geostore,
    *,
    options: Options = Options(),  # noqa: ARG001 - read by the decorator
) -> Decision[StorePlan]:
    """Place two voters at home, three in the nearest other regions, and followers in the rest.

    With fewer than four regions, others have several of the three.
    """
    groups = []
    for group in range(len(problem.groups)):
        home = main_region(problem, group)
        near = np.where(problem.is_forbidden[group], np.inf, problem.rtt_ms[home])
        near[home] = np.inf
        others = np.argsort(near, kind="stable")[: REGION_VOTERS - HOME_VOTERS]
        others = others[np.isfinite(near[others])]
        voters = np.zeros(len(near), dtype=np.int64)
        voters[home] = HOME_VOTERS if len(others) else ZONE_VOTERS
        for turn in range(REGION_VOTERS - HOME_VOTERS if len(others) else 0):
            voters[others[turn % len(others)]] += 1
        groups.append(leader_plan(problem, group, home, voters, _followers(problem, group, voters)))
    return decide(problem, groups)


def _followers(problem: Geostore, group: int, voters: Ints) -> Ints:
    """Return a follower in each region without voters that may hold the group, (N,)."""
    return np.asarray(~problem.is_forbidden[group] & (voters == 0), dtype=np.int64)
