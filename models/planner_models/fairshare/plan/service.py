"""Rates of tenants whose requests queue at nodes: steady state of each discipline, without latency.

Requests of a *user* go to stations, one for each resource of a node, in fixed proportions: a tenant of fixed
mix is one user with all its nodes, an elastic tenant is a user of its own at each node.

First come, first served: a station that is full delays all requests alike, and a user's rate falls with the
sum of its delays. This is the proportionally fair allocation (Kelly 1989 for closed queueing networks).
Fair queuing: a user is held back by the station that gives it least; what it leaves at others goes to their
users in proportion to local weights.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.tolerances import EXACT
from planner_models.fairshare.plan.plan import (
    FAIR_QUEUING,
    FIRST_COME,
    LIMITS,
    WINDOWS,
    Replicas,
    sum_by_node,
)
from planner_models.fairshare.problem.problem import SharedStore, add_up

MOST_SWEEPS: Final = 400
CONVERGED: Final = 1e-10
WINDOW_ROUNDS: Final = 60
WINDOW_STEP: Final = 0.5
"""Exponent of a window's update by the rate that a node offers over the rate that it serves."""


class Users(NamedTuple):
    """Users, and their entries by station.

    user, station  (E,) of each entry, sorted by station; starts (S + 1,) of the stations' entries
    use            (E,) use of the station by a thousand requests per second of the user
    weight         (E,) local weight of the user at the station
    most           (U,) rate that each user wants
    tenant, node   (U,) tenant of a user; its node where it is elastic, else -1
    """

    user: Ints
    station: Ints
    starts: Ints
    use: Floats
    weight: Floats
    most: Floats
    tenant: Ints
    node: Ints


def gather_users(
    problem: SharedStore,
    replicas: Replicas,
    split: Floats,
    weight: Floats,
    most_kops: Floats | None,
    demand_kops: Floats,
) -> Users:
    """Return the users of requests that are split over replicas.

    split        (K,) part of a partition's requests that each replica gets
    weight       (T, N)
    most_kops    (K,) rate limit of each replica; None without limits
    demand_kops  (P,)
    """
    sent = demand_kops[replicas.partition] * split
    resources = problem.capacity.shape[1]
    by_node = sum_by_node(problem, replicas, sent)
    fixed, demand = problem.is_fixed, add_up(problem.tenant, demand_kops, len(problem.tenants))
    limited = by_node if most_kops is None else sum_by_node(problem, replicas, np.minimum(sent, most_kops))
    t, n = np.nonzero((by_node > 0) & ~fixed[:, None])
    rows = np.flatnonzero(fixed)
    part = np.divide(by_node, demand[:, None], out=np.zeros_like(by_node), where=demand[:, None] > 0)
    whole = add_up(problem.tenant[replicas.partition], weights=sent, minlength=len(demand))
    most = np.where(whole >= demand * (1 - 1e-9), demand, 0.0)  # a partition without replica stops its tenant
    if most_kops is not None and len(replicas.partition):
        ratio = np.divide(most_kops, sent, out=np.full_like(sent, np.inf), where=sent > 0)
        least = np.full(len(demand), np.inf)
        np.minimum.at(least, problem.tenant[replicas.partition], ratio)
        most = most * np.minimum(least, 1.0)
    ft, fn = np.nonzero((by_node > 0) & fixed[:, None])
    place = np.full(len(demand), -1)
    place[rows] = np.arange(len(rows))
    users = np.concatenate([place[ft], len(rows) + np.arange(len(t))]).astype(np.int64)
    tenants, nodes = np.concatenate([ft, t]), np.concatenate([fn, n])
    requests = np.concatenate([part[ft, fn], np.ones(len(t))])
    station = (nodes[:, None] * resources + np.arange(resources)).ravel()
    use = (requests[:, None] * problem.per_op[tenants]).ravel()
    local = np.repeat(weight[tenants, nodes], resources)
    user = np.repeat(users, resources)
    kept = np.flatnonzero(use > 0)
    kept = kept[np.argsort(station[kept], kind="stable")]
    starts = np.searchsorted(station[kept], np.arange(len(problem.nodes) * resources + 1))
    return Users(
        user=user[kept],
        station=station[kept].astype(np.int64),
        starts=starts.astype(np.int64),
        use=use[kept],
        weight=local[kept],
        most=np.concatenate([most[rows], limited[t, n]]),
        tenant=np.concatenate([rows, t]).astype(np.int64),
        node=np.concatenate([np.full(len(rows), -1), n]).astype(np.int64),
    )


@run_small_in_python(max_elements=400)
@njit(cache=True, nogil=True)
def fair_levels(  # noqa: C901 - one compiled loop
    users: Users, capacity: Floats, most_sweeps: int, converged: float
) -> tuple[Floats, Floats]:
    """Return the level of each station (S,) and the rate of each user (U,) under fair queuing.

    A user's rate is the least of what it wants and, over its stations, level x weight / use. A station's
    level is that at which it is full, given what users can send by way of their other stations; one that is
    not full offers every user its slack besides. Levels are halved in distance (in logarithms) in each sweep.
    """
    stations, count = len(capacity), len(users.most)
    level = np.full(stations, 1e300)
    largest = 0
    for s in range(stations):
        largest = max(largest, users.starts[s + 1] - users.starts[s])
    full, base = np.empty(largest), np.empty(largest)
    least, second = np.empty(count), np.empty(count)
    where = np.empty(count, dtype=np.int64)
    for _ in range(most_sweeps):
        least[:] = np.inf
        second[:] = np.inf
        where[:] = -1
        for s in range(stations):
            for e in range(users.starts[s], users.starts[s + 1]):
                u = users.user[e]
                offer = level[s] * users.weight[e] / users.use[e]
                if offer < least[u]:
                    second[u] = least[u]
                    least[u] = offer
                    where[u] = s
                elif offer < second[u]:
                    second[u] = offer
        change = 0.0
        for s in range(stations):
            begin = users.starts[s]
            m = users.starts[s + 1] - begin
            if m == 0:
                continue
            total, weights, highest = 0.0, 0.0, 0.0
            for i in range(m):
                u, weight = users.user[begin + i], users.weight[begin + i]
                rate = min(users.most[u], second[u] if where[u] == s else least[u])
                base[i] = rate * users.use[begin + i]
                full[i] = base[i] / weight if weight > 0 else np.inf
                if weight > 0:
                    highest = max(highest, full[i])
                    weights += weight
                    total += base[i]
            if weights <= 0:
                level[s] = 0.0
                continue
            if total <= capacity[s]:
                new = highest + (capacity[s] - total) / weights
            else:
                # users that are full below the level leave the rest to others, until none is below it
                new, before = capacity[s] / weights, -1.0
                while new > before:
                    rest, others, before = capacity[s], 0.0, new
                    for i in range(m):
                        if full[i] <= before:
                            rest -= base[i]
                        else:
                            others += users.weight[begin + i]
                    if others > 0:
                        new = max(rest, 0.0) / others
            if new > 0 and level[s] < 1e299:
                damped = np.sqrt(level[s] * new)
                change = max(change, abs(damped - level[s]) / damped)
                level[s] = damped
            else:
                change = 1.0
                level[s] = new
        if change <= converged:
            break
    rate = users.most.copy()
    for s in range(stations):
        for e in range(users.starts[s], users.starts[s + 1]):
            rate[users.user[e]] = min(rate[users.user[e]], level[s] * users.weight[e] / users.use[e])
    return level, rate


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def proportional_rates(  # noqa: C901 - one compiled loop
    users: Users, capacity: Floats, most_sweeps: int, converged: float
) -> Floats:
    """Return the rate of each user (U,) where requests are served first come, first served.

    The rate of a user that wants D is D / max(1, sum of use x price), with a price for each full station.
    """
    stations, count = len(capacity), len(users.most)
    price, paid = np.zeros(stations), np.zeros(count)
    for _ in range(most_sweeps):
        change = 0.0
        for s in range(stations):
            begin, end = users.starts[s], users.starts[s + 1]
            if begin == end:
                continue
            old = price[s]
            low, high = 0.0, max(old, 1.0)
            while load_at(users, paid, begin, end, old, high) > capacity[s] and high < 1e30:
                low, high = high, 2 * high
            if load_at(users, paid, begin, end, old, 0.0) <= capacity[s]:
                new = 0.0
            else:
                for _ in range(80):
                    middle = 0.5 * (low + high)
                    if load_at(users, paid, begin, end, old, middle) > capacity[s]:
                        low = middle
                    else:
                        high = middle
                    if high - low <= 1e-13 * high:
                        break
                new = high
            change = max(change, abs(new - old) / max(new, old, 1e-12))
            for e in range(begin, end):
                paid[users.user[e]] += users.use[e] * (new - old)
            price[s] = new
        if change <= converged:
            break
    rate = np.empty(count)
    for u in range(count):
        rate[u] = users.most[u] / max(1.0, paid[u])
    return rate


@njit(cache=True, nogil=True)
def load_at(users: Users, paid: Floats, begin: int, end: int, old: float, price: float) -> float:
    """Return the load of a station at another price than its present one."""
    load = 0.0
    for e in range(begin, end):
        u = users.user[e]
        load += users.use[e] * users.most[u] / max(1.0, paid[u] + users.use[e] * (price - old))
    return load


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def fit(users: Users, capacity: Floats, rate: Floats) -> Floats:
    """Return the rates, lowered where a station is above its capacity by what the sweeps left."""
    factor = np.ones(len(rate))
    for s in range(len(capacity)):
        load = 0.0
        for e in range(users.starts[s], users.starts[s + 1]):
            load += users.use[e] * rate[users.user[e]]
        if load > capacity[s]:
            for e in range(users.starts[s], users.starts[s + 1]):
                factor[users.user[e]] = min(factor[users.user[e]], capacity[s] / load)
    return rate * factor


class Served(NamedTuple):
    """Rates of replicas (K,), and the split of requests over them (K,)."""

    kops: Floats
    split: Floats


def fit_rates(problem: SharedStore, replicas: Replicas, kops: Floats) -> Floats:
    """Return rates of replicas (K,) with which no node exceeds a capacity by the rounding of all rates.

    The rounding of a solver is relative to the capacity of all nodes, which may be far more than that of one.
    Tenants of fixed mix are reduced at all nodes alike. A larger excess is no rounding, and stays.
    """
    node, tenant = replicas.node, problem.tenant[replicas.partition]
    share = np.ones(len(problem.nodes))
    for r, capacity in enumerate(problem.capacity.T):
        load = add_up(node, weights=kops * problem.per_op[tenant, r], minlength=len(share))
        is_rounding = (load > capacity) & (load - capacity <= EXACT * capacity.sum())
        np.divide(capacity, load, out=load, where=is_rounding)
        share = np.where(is_rounding, np.minimum(share, load), share)
    of_tenant = np.ones(len(problem.tenants))
    uses = kops > 0
    np.minimum.at(of_tenant, tenant[uses], share[node[uses]])
    return np.asarray(kops * np.where(problem.is_fixed[tenant], of_tenant[tenant], share[node]))


def split_evenly(replicas: Replicas, partitions: int) -> Floats:
    """Return an equal part of its partition's requests for each replica, (K,)."""
    count = np.bincount(replicas.partition, minlength=partitions)
    part: Floats = 1.0 / np.maximum(count, 1)[replicas.partition]
    return part


def divide_limits(problem: SharedStore, replicas: Replicas, weight: Floats) -> Floats:
    """Return the rate limit of each replica, (K,): local weights, divided among a tenant's replicas there."""
    at = (problem.tenant[replicas.partition], replicas.node)
    count = sum_by_node(problem, replicas, np.ones(len(replicas.partition)))
    limits: Floats = (weight / np.maximum(count, 1.0))[at]
    return limits


def serve(
    problem: SharedStore,
    replicas: Replicas,
    split: Floats,
    weight: Floats,
    *,
    queueing: str,
    replica_choice: str,
    most_kops: Floats | None = None,
    demand_kops: Floats | None = None,
) -> Served:
    """Return the rates of replicas when tenants send their demand.

    split        (K,) where requests do not choose by windows; the first split where they do
    weight       (T, N) local weights; only fair queuing uses them
    most_kops    (K,) rate limits of replicas, for that discipline
    demand_kops  (P,) requests that are sent; default: those of the problem
    """
    limits = most_kops if queueing == LIMITS else None
    demand = problem.demand_kops if demand_kops is None else demand_kops
    kops = _serve_split(problem, replicas, split, weight, queueing, limits, demand)[0]
    if replica_choice != WINDOWS:
        return Served(kops, split)
    best, chosen = kops, split
    window = sum_by_node(problem, replicas, split) > 0
    sizes = window.astype(float)
    at = (problem.tenant[replicas.partition], replicas.node)
    for _ in range(WINDOW_ROUNDS):
        part = sizes[at]
        total = add_up(replicas.partition, weights=part, minlength=len(problem.partitions))
        split = part / np.maximum(total, 1e-300)[replicas.partition]
        kops, offered, load = _serve_split(problem, replicas, split, weight, queueing, limits, demand)
        if kops.sum() >= best.sum():
            best, chosen = kops, split
        ratio = np.divide(offered, load, out=np.ones_like(load), where=load > 0)
        step = np.clip(ratio, 0.25, 4.0) ** WINDOW_STEP
        sizes = np.where(window, sizes * step, 0.0)
        sizes /= np.maximum(sizes.max(axis=1, keepdims=True), 1e-300)
        sizes = np.where(window, np.maximum(sizes, 1e-4), 0.0)
    return Served(kops, split) if kops.sum() >= best.sum() * (1 - 1e-3) else Served(best, chosen)


def _serve_split(
    problem: SharedStore,
    replicas: Replicas,
    split: Floats,
    weight: Floats,
    queueing: str,
    most_kops: Floats | None,
    demand_kops: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Return the rates of replicas (K,), and by tenant and node the rate offered and the load, (T, N)."""
    users = gather_users(problem, replicas, split, weight, most_kops, demand_kops)
    capacity = problem.capacity.ravel()
    if queueing in (FIRST_COME, LIMITS):
        level = np.zeros(len(capacity))
        rate = proportional_rates(users, capacity, MOST_SWEEPS, CONVERGED)
    else:
        level, rate = fair_levels(users, capacity, MOST_SWEEPS, CONVERGED)
    rate = fit(users, capacity, rate)
    shape = (len(problem.tenants), len(problem.nodes))
    of_tenant = np.zeros(shape[0])
    whole = users.node < 0
    of_tenant[users.tenant[whole]] = rate[whole]
    at_node = np.zeros(shape)
    at_node[users.tenant[~whole], users.node[~whole]] = rate[~whole]
    sent = demand_kops[replicas.partition] * split
    owner = problem.tenant[replicas.partition]
    by_node = sum_by_node(problem, replicas, sent)
    if most_kops is not None:
        sent = np.where(problem.is_fixed[owner], sent, np.minimum(sent, most_kops))
        by_node = sum_by_node(problem, replicas, sent)
    demand = add_up(problem.tenant, demand_kops, len(problem.tenants))
    part = np.divide(of_tenant, demand, out=np.zeros_like(demand), where=demand > 0)[owner]
    there = np.divide(at_node, by_node, out=np.zeros(shape), where=by_node > 0)[owner, replicas.node]
    kops: Floats = sent * np.where(problem.is_fixed[owner], part, there)
    load = sum_by_node(problem, replicas, kops)
    slack = np.maximum(problem.rate_kops - load.sum(axis=0), 0.0)
    first = level.reshape(len(problem.nodes), -1)[:, 0]
    offered = (
        np.maximum(np.minimum(first[None, :], 1e290) * weight, load)
        if queueing == FAIR_QUEUING
        else load + slack
    )
    return kops, offered, load
