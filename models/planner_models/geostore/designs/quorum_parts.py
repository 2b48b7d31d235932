"""Shared parts of the placement of strongly consistent groups: times, limits, costs of reads, and zones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.geostore.designs.component import Component, Costs
from planner_models.geostore.plan.plan import GroupPlan
from planner_models.geostore.problem.costs import month_gb, payload_bytes
from planner_models.geostore.problem.problem import Geostore

MOST_REPLICAS: Final = 7


@dataclass(frozen=True, kw_only=True)
class StrongChoice:
    """The cheapest strongly consistent plan of a group.

    cost, bound  USD a month
    in_limits    whether it keeps the limits of all users
    survives     whether the search kept the goals of survival
    """

    plan: GroupPlan
    cost: float
    bound: float
    in_limits: bool
    survives: bool = True


def trip_ms(problem: Geostore, group: int) -> Floats:
    """Return the time of a page with one round trip to a region for each operation, (users, N)."""
    users = problem.users_of[group]
    trip = problem.rtt_ms[problem.user_region[users]] + problem.service_ms
    return np.asarray(problem.use("operations_per_page")[users][:, None] * trip)


def user_limits(problem: Geostore, group: int, column: str, factor: float) -> Floats:
    """Return the limit of each user that has such operations, (users,); inf for others."""
    users = problem.users_of[group]
    limit = float(problem.limit_ms(column)[group]) * factor
    rate = problem.use("reads_per_s" if column == "read_ms" else "writes_per_s")[users]
    return np.where(rate > 0, limit, np.inf)


def most_replicas(failures: int) -> int:
    """Return the largest number of voters that is tried: seven, or as many as failures need."""
    return max(MOST_REPLICAS, 2 * failures + 1)


def zoned_regions(problem: Geostore, group: int, n: int, needed: int) -> Bools | None:
    """Return the regions that may have one of n replicas, (N,); None where n do not survive a zone.

    A single replica survives a zone in a region with several.
    """
    every = np.ones(len(problem.regions), dtype=bool)
    if problem.survive[group] != "zone" or n - 1 >= needed:
        return every
    return np.asarray(problem.price("zones") >= 2) if needed == 1 else None


def read_costs(problem: Geostore, group: int, costs: Costs) -> Floats:
    """Return the cost of each user's reads at each region, (users, N)."""
    users = problem.users_of[group]
    region = problem.user_region[users]
    writes = problem.use("writes_per_s")[users]
    cost = costs.attachment[users].copy()
    if not problem.is_colocated:
        sent = month_gb(writes, payload_bytes(problem)[users])
        cost -= sent[:, None] * problem.usd_per_gb[region]
    load = 1 - problem.term("replication_load")
    return np.asarray(cost - np.outer(load * writes, costs.server))


def component_of_group(
    problem: Geostore,
    group: int,
    numbers: tuple[int, int],
    *,
    opening: Floats,
    attachment: Floats,
    state: Ints,
    cover: Bools,
    need: Ints,
) -> Component:
    """Return the placement of one group whose users read several replicas, and depend on no other group.

    numbers        replicas, and those that each user reads
    opening        (N,) cost of a replica; attachment (users, N), inf where a user may not read
    state          (N,) as in `Component`
    cover, need    (K, N) regions of which each row needs so many replicas, (K,)
    """
    replicas, read = numbers
    users = problem.users_of[group]
    return Component(
        opening=opening[None],
        attachment=attachment,
        volume=np.zeros((1, len(users))),
        uses=np.ones((1, len(users)), dtype=bool),
        price=np.zeros((1, len(state), len(state))),
        region=problem.user_region[users],
        count=np.full(len(users), read),
        least=np.array([replicas]),
        most=np.array([replicas]),
        state=state[None],
        cover=cover,
        cover_group=np.zeros(len(need), dtype=np.int64),
        need=need,
        child=np.zeros(0, np.int64),
        parent=np.zeros(0, np.int64),
    )
