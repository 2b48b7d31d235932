"""Volley: data moves to the centre of its users and of data that it is used with (Agarwal et al. 2010)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats
from planner.contract.design import Decision
from planner.options import Options
from planner_models.geostore.designs.assembly import decide, refuse_unreachable, weak_plan
from planner_models.geostore.designs.near_users import place_group
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore

Rounds = Annotated[int, Field(ge=1, le=100, description="rounds in which all groups move")]


@refuse_unreachable
def place(
    problem: Geostore,
    *,
    rounds: Rounds = 5,
    options: Options = Options(),  # noqa: ARG001 - read by the decorator
) -> Decision[StorePlan]:
    """Place each group in the regions nearest to the centre of its users and of groups that it depends on.

    Distance is the round-trip time: the centre is the region of least sum of requests times round-trip times,
    where groups that depend on each other pull with their requests. A group has one more replica than may
    fail. Strongly consistent groups have their leader where most writes are.

    source  Agarwal et al. 2010 (Volley), whose centres are weighted means on the sphere
    """
    pull = np.zeros((len(problem.groups), len(problem.regions)))
    np.add.at(pull, (problem.user_group, problem.user_region), problem.requests_per_s)
    centre = _centres(problem, pull)
    child, parent = problem.causal_edges
    for _ in range(rounds):
        total = pull.copy()
        weight = np.minimum(pull.sum(axis=1)[child], pull.sum(axis=1)[parent])
        np.add.at(total, (child, centre[parent]), weight)
        np.add.at(total, (parent, centre[child]), weight)
        moved = _centres(problem, total)
        if (moved == centre).all():
            break
        centre = moved
    groups = []
    for group in range(len(problem.groups)):
        if problem.is_strong[group]:
            groups.append(place_group(problem, group))
            continue
        opened = _nearest(problem, group, int(centre[group]))
        latency = np.where(opened, problem.latency_ms[problem.users_of[group]], np.inf)
        groups.append(weak_plan(problem, group, opened, latency.argmin(axis=1)))
    return decide(problem, groups)


def _centres(problem: Geostore, pull: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the region of least sum of pulls times round-trip times of each group, (G,)."""
    sums = np.where(problem.is_forbidden, np.inf, pull @ problem.rtt_ms)
    return np.asarray(sums.argmin(axis=1), dtype=np.int64)


def _nearest(problem: Geostore, group: int, centre: int) -> Bools:
    """Return the centre and the regions nearest to it, one more than may fail, and those that are pinned."""
    near = np.where(problem.is_forbidden[group], np.inf, problem.rtt_ms[centre])
    near[centre] = -1.0
    opened: Bools = np.array(problem.is_pinned[group])
    rows = np.argsort(near, kind="stable")
    opened[rows[: int(problem.failures[group]) + 1]] = True
    return opened
