"""One component of groups as arrays: costs of replicas, attachments and copies, and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.units import MONTH_S
from planner_models.geostore.designs.cover_number import cover_number
from planner_models.geostore.problem.costs import (
    load_factor,
    month_gb,
    operation_usd,
    payload_bytes,
    read_metadata,
    version_gb,
    write_metadata,
)
from planner_models.geostore.problem.problem import Geostore


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """A placement problem of G groups, I users and N regions; costs in USD a month.

    opening     (G, N) cost of a replica
    attachment  (I, N) cost of a user's operations at a datacenter; inf where it may not be
    volume      (G, I) GB a month that a user's writes copy to each other replica of a group
    uses        (G, I) whether a user uses a group, which must then be where the user is attached
    price       (G, N, N) price of a copy, USD/GB; inf where a copy may not be
    count       (I,) datacenters that serve each read of a user
    least, most (G,) number of replicas
    region      (I,) region of each user
    state       (G, N) -1 free, 0 no replica, 1 a replica
    cover       (K, N) regions of which `need` (K,) must have a replica of group `cover_group` (K,)
    child, parent (E,) groups: a replica of the child needs one of the parent
    """

    opening: Floats
    attachment: Floats
    volume: Floats
    uses: Bools
    price: Floats
    region: Ints
    count: Ints
    least: Ints
    most: Ints
    state: Ints
    cover: Bools
    cover_group: Ints
    need: Ints
    child: Ints
    parent: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Costs:
    """Costs of all groups under one protocol: eventual, or causal with its metadata.

    opening     (G, N) USD a month of a replica: storage, write requests, load of copies
    attachment  (A, N) USD a month of each user's operations at each datacenter
    volume      (A,) GB a month that each user's writes copy to each other replica
    server      (N,) USD of an operation a second for a month
    """

    opening: Floats
    attachment: Floats
    volume: Floats
    server: Floats


def costs_of(problem: Geostore, causal: bool, load_usd: Floats | None = None) -> Costs:
    """Return the costs of all groups.

    load_usd  (N,) price of an operation a second of load for a month, beside that of servers; default: none
    """
    server = operation_usd(problem, causal)
    if load_usd is not None:
        server = server + load_usd * load_factor(problem, causal)
    reads, writes = problem.use("reads_per_s"), problem.use("writes_per_s")
    keys, payload = problem.use("keys_per_op"), payload_bytes(problem)
    read_gb = month_gb(reads, payload + (read_metadata(problem) if causal else 0.0))
    write_gb = month_gb(writes, payload + (write_metadata(problem) if causal else 0.0))
    region, group, count = problem.user_region, problem.user_group, len(problem.groups)
    attachment = np.outer(reads * keys * MONTH_S, problem.price("get_usd"))
    attachment += read_gb[:, None] * problem.usd_per_gb[:, region].T
    if not problem.is_colocated:
        attachment += write_gb[:, None] * problem.usd_per_gb[region]
    load = problem.term("replication_load")
    attachment += np.outer(reads + (1 - load) * writes, server)
    put = np.bincount(group, weights=writes * keys * MONTH_S, minlength=count)
    copied = np.bincount(group, weights=load * writes, minlength=count)
    size = problem.groups["size_gb"].to_numpy(float) + (version_gb(problem) if causal else 0.0)
    opening = np.outer(size, problem.price("storage_usd_gb_month"))
    opening += np.outer(put, problem.price("put_usd")) + np.outer(copied, server)
    return Costs(opening=opening, attachment=attachment, volume=write_gb, server=server)


def allowed_attachments(problem: Geostore) -> Bools:
    """Return whether a datacenter keeps the limits of a user, (A, N), and may hold the user's group.

    A user that no region satisfies may attach where the page is fastest: the limit is missed, not the data.
    """
    group = problem.user_group
    latency = np.where(problem.is_forbidden[group], np.inf, problem.latency_ms)
    return np.asarray(latency <= np.maximum(problem.page_limit_ms, latency.min(axis=1))[:, None])


def is_servable(problem: Geostore) -> Bools:
    """Return whether some region keeps the limits of each user, (A,)."""
    group = problem.user_group
    latency = np.where(problem.is_forbidden[group], np.inf, problem.latency_ms)
    return np.asarray(latency.min(axis=1) <= problem.page_limit_ms)


def failover_rows(problem: Geostore, group: int) -> tuple[Bools, int]:
    """Return the regions near each user with operations for after failures, and how many have a replica.

    Returns (users, N). There are no rows without a limit. Where no region is near enough, the nearest that
    there are count.
    """
    failover, count = float(problem.limit_ms("failover_ms")[group]), int(problem.failures[group]) + 1
    free = ~problem.is_forbidden[group]
    if not np.isfinite(failover):
        return np.zeros((0, len(free)), dtype=bool), count
    latency = np.where(free, problem.latency_ms[problem.active_users(group)], np.inf)
    nearest = np.sort(latency, axis=1)[:, count - 1]
    return np.asarray((latency <= np.maximum(failover, nearest)[:, None]) & free), count


def cover_rows(problem: Geostore, group: int, allowed: Bools) -> tuple[Bools, Ints]:
    """Return the covers of a group: regions, (K, N), and the least number of them with a replica, (K,).

    allowed  (users, N) where each of its users may attach
    """
    rows: list[Bools] = []
    need: list[int] = []
    free = ~problem.is_forbidden[group]
    if problem.survive[group] == "provider":
        for provider in np.unique(problem.provider[free]).tolist():
            rows.append(free & (problem.provider != provider))
            need.append(1)
    if problem.survive[group] == "zone":
        for region in np.flatnonzero(free & (problem.price("zones") < 2)).tolist():
            rows.append(free & (np.arange(len(free)) != region))
            need.append(1)
    near, count = failover_rows(problem, group)
    rows += list(near)
    need += [count] * len(near)
    rows += list(allowed)
    need += [1] * len(allowed)
    unique = dict.fromkeys((row.tobytes(), count) for row, count in zip(rows, need, strict=True))
    cover = np.array([np.frombuffer(row, dtype=bool) for row, _ in unique]).reshape(-1, len(free))
    return cover, np.array([count for _, count in unique], dtype=np.int64)


def least_replicas(problem: Geostore, group: int, covers: tuple[Bools, Ints]) -> int:
    """Return the least number of replicas of a group: for its failures, and to meet its covers and needs."""
    cover, need = covers
    return max(int(problem.failures[group]) + 1, cover_number(cover[need > 0]))


def copy_price(problem: Geostore, group: int) -> Floats:
    """Return the price of a copy between regions, (N, N); inf where the group may not wait so long."""
    is_late = problem.copy_ms > float(problem.limit_ms("stale_ms")[group])
    return np.where(is_late, np.inf, problem.usd_per_gb)


def single(problem: Geostore, group: int, costs: Costs, allowed: Bools) -> Component:
    """Return the placement problem of one group.

    allowed  (A, N) where users may attach
    """
    users = problem.users_of[group]
    cover, need = cover_rows(problem, group, allowed[users])
    count = len(problem.regions)
    return Component(
        opening=costs.opening[group][None, :],
        attachment=np.where(allowed[users], costs.attachment[users], np.inf),
        volume=costs.volume[users][None, :],
        uses=np.ones((1, len(users)), dtype=bool),
        price=copy_price(problem, group)[None],
        region=problem.user_region[users],
        count=np.ones(len(users), dtype=np.int64),
        least=np.array([least_replicas(problem, group, (cover, need))]),
        most=np.array([count]),
        state=_states(problem, np.array([group])),
        cover=cover,
        cover_group=np.zeros(len(need), dtype=np.int64),
        need=need,
        child=np.zeros(0, dtype=np.int64),
        parent=np.zeros(0, dtype=np.int64),
    )


def joint(problem: Geostore, members: Ints, costs: Costs, allowed: Bools) -> Component:
    """Return the placement problem of groups that depend on each other, with closure.

    A user of a region has one attachment for all groups of the component that it uses, which must hold them.

    allowed  (A, N) where users may attach
    """
    row_of = {int(group): row for row, group in enumerate(members.tolist())}
    users = np.concatenate([problem.users_of[group] for group in members.tolist()])
    regions, user = np.unique(problem.user_region[users], return_inverse=True)
    owner = np.array([row_of[int(group)] for group in problem.user_group[users]])
    count, size = len(problem.regions), (len(members), len(regions))
    attachment, may = np.zeros((len(regions), count)), np.ones((len(regions), count), dtype=bool)
    np.add.at(attachment, user, costs.attachment[users])
    np.logical_and.at(may, user, allowed[users])
    for row in np.flatnonzero(~may.any(axis=1)).tolist():
        may[row] = _fastest_for_all(problem, users[user == row])
    volume, uses = np.zeros(size), np.zeros(size, dtype=bool)
    volume[owner, user] = costs.volume[users]
    uses[owner, user] = True
    covers = [cover_rows(problem, int(group), may[uses[row]]) for row, group in enumerate(members)]
    child, parent = _inner_edges(problem, members, row_of)
    return Component(
        opening=costs.opening[members],
        attachment=np.where(may, attachment, np.inf),
        volume=volume,
        uses=uses,
        price=np.array([copy_price(problem, int(group)) for group in members]),
        region=regions.astype(np.int64),
        count=np.ones(len(regions), dtype=np.int64),
        least=np.array(
            [least_replicas(problem, *item) for item in zip(members.tolist(), covers, strict=True)]
        ),
        most=np.full(len(members), count),
        state=_states(problem, members),
        cover=np.concatenate([cover for cover, _ in covers]),
        cover_group=np.repeat(np.arange(len(members)), [len(need) for _, need in covers]),
        need=np.concatenate([need for _, need in covers]),
        child=child,
        parent=parent,
    )


def _states(problem: Geostore, members: Ints) -> Ints:
    """Return replicas that are set, 1, excluded, 0, or free, -1, (G, N)."""
    state = np.full((len(members), len(problem.regions)), -1, dtype=np.int64)
    state[problem.is_forbidden[members]] = 0
    state[problem.is_pinned[members]] = 1
    return state


def _inner_edges(problem: Geostore, members: Ints, row_of: Mapping[int, int]) -> tuple[Ints, Ints]:
    """Return the dependencies within a component by its rows: groups that depend, and on which, (E,) each."""
    child, parent = problem.causal_edges
    inside = np.isin(child, members)
    ends = [[row_of[int(group)] for group in end[inside]] for end in (child, parent)]
    return np.array(ends[0], dtype=np.int64), np.array(ends[1], dtype=np.int64)


def _fastest_for_all(problem: Geostore, users: Ints) -> Bools:
    """Return the region that is fastest for a user's groups, where no region keeps the limits of all."""
    may_hold = ~problem.is_forbidden[problem.user_group[users]].any(axis=0)
    time = np.where(may_hold, problem.latency_ms[users].max(axis=0), np.inf)
    return np.asarray((time == time.min()) & may_hold)


def without_stale_limits(problem: Geostore, component: Component) -> Component | None:
    """Return the component in which copies may take any time; None where none was limited."""
    if np.isfinite(component.price).all():
        return None
    return replace(component, price=np.broadcast_to(problem.usd_per_gb, component.price.shape))


def has_conflict(problem: Geostore, members: Ints, allowed: Bools) -> bool:
    """Return whether no region keeps the limits of all groups of a component that a user reads together."""
    users = np.concatenate([problem.users_of[group] for group in members.tolist()])
    region = problem.user_region[users]
    may = np.ones((len(problem.regions), len(problem.regions)), dtype=bool)
    np.logical_and.at(may, region, allowed[users])
    is_stuck = np.asarray(~may.any(axis=1))
    return bool(is_stuck[region].any())
