"""Rates of tenants with requests that queue at nodes: steady state of each discipline, without latency.

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
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import NEGLIGIBLE
from planner_models.fairshare.plan.plan import (
    FAIR_QUEUING,
    FIRST_COME,
    LIMITS,
    WINDOWS,
    Replicas,
    sum_by_node,
)
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

MOST_SWEEPS: Final = 400
CONVERGED: Final = 1e-10
INNER_SWEEPS: Final = 10  # over stations that hold users back, for each sweep over all
EARLY_SWEEPS: Final = 20  # of steps of three quarters of the distance (in logarithms); then steps are half
LATE_SWEEPS: Final = 50  # from which on steps are a quarter, so that levels do not take turns
LAST_SWEEPS: Final = 100  # from which on steps are a sixteenth
UNLIMITED: Final = 1e300
TINY_WEIGHT: Final = NEGLIGIBLE  # of all weights at a station
LOWEST_WEIGHT: Final = 1e-30  # of the largest one: a user of less gets what others leave, as with this weight
LOWEST: Final = 1e-300
HIGHEST_PRICE: Final = 1e30
PRICE_STEPS: Final = 200
PRICE_ROUNDING: Final = 1e-13
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
    fraction = np.divide(by_node, demand[:, None], out=np.zeros_like(by_node), where=demand[:, None] > 0)
    total = add_up(problem.tenant[replicas.partition], weights=sent, minlength=len(demand))
    upper = np.where(
        total >= demand * (1 - 1e-9), demand, 0.0
    )  # a partition without replica stops its tenant
    if most_kops is not None and len(replicas.partition):
        ratio = np.divide(most_kops, sent, out=np.full_like(sent, np.inf), where=sent > 0)
        ratio_limit = np.full(len(demand), np.inf)
        np.minimum.at(ratio_limit, problem.tenant[replicas.partition], ratio)
        upper = upper * np.minimum(ratio_limit, 1.0)
    ft, fn = np.nonzero((by_node > 0) & fixed[:, None])
    index_of = np.full(len(demand), -1)
    index_of[rows] = np.arange(len(rows))
    users = np.concatenate([index_of[ft], len(rows) + np.arange(len(t))]).astype(np.int64)
    tenants, nodes = np.concatenate([ft, t]), np.concatenate([fn, n])
    requests = np.concatenate([fraction[ft, fn], np.ones(len(t))])
    station = (nodes[:, None] * resources + np.arange(resources)).ravel()
    use = (requests[:, None] * problem.per_op[tenants]).ravel()
    local = np.repeat(weight[tenants, nodes], resources)
    user = np.repeat(users, resources)
    used = np.flatnonzero(use > 0)
    used = used[np.argsort(station[used], kind="stable")]
    starts = np.searchsorted(station[used], np.arange(len(problem.nodes) * resources + 1))
    return Users(
        user=user[used],
        station=station[used].astype(np.int64),
        starts=starts.astype(np.int64),
        use=use[used],
        weight=np.where(local > 0, np.maximum(local, LOWEST_WEIGHT * local.max(initial=0.0)), 0.0)[used],
        most=np.concatenate([upper[rows], limited[t, n]]),
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
    not full offers every user its slack besides. Stations are visited in turn (Gauss-Seidel relaxation): most
    sweeps visit only those that hold users back, the others all.

    most_sweeps  number of sweeps over all stations
    converged    relative change of the levels that ends the sweeps
    """
    stations, count = len(capacity), len(users.most)
    by_user, user_starts = list_by_user(users.user, count)
    station_of, weight_of, use_of = users.station[by_user], users.weight[by_user], users.use[by_user]
    level = np.full(stations, UNLIMITED)
    largest = 0
    for s in range(stations):
        largest = max(largest, users.starts[s + 1] - users.starts[s])
    base = np.empty(largest)
    first, second = np.full(count, np.inf), np.full(count, np.inf)
    first_at, second_at = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    holds = np.ones(stations, dtype=np.bool_)
    for sweep in range(most_sweeps):
        change = 0.0
        for inner in range(INNER_SWEEPS + 1):  # the first is over all stations
            inner_change = 0.0
            for s in range(stations):
                begin = users.starts[s]
                m = users.starts[s + 1] - begin
                if m == 0 or (inner > 0 and not holds[s]):
                    continue
                held, old = holds[s], level[s]
                total, weights = 0.0, 0.0
                remainder, others = capacity[s], 0.0  # at the old level
                for i in range(m):
                    u, weight = users.user[begin + i], users.weight[begin + i]
                    offer = second[u] if first_at[u] == s else first[u]
                    load = min(users.most[u], offer) * users.use[begin + i]
                    base[i] = load
                    if weight > 0:
                        weights += weight
                        total += load
                    if load <= old * weight:
                        remainder -= load
                    else:
                        others += weight
                holds[s] = weights <= 0 or total > capacity[s]
                new = 0.0
                if weights > 0 and holds[s]:
                    new = fill_station(users.weight, begin, base, m, capacity[s], weights, remainder, others)
                elif weights > 0:  # high enough for any one user to take all the slack, but of a tiny weight
                    for i in range(m):
                        weight = users.weight[begin + i]
                        if weight > 0:
                            slack = capacity[s] - total if weight >= TINY_WEIGHT * weights else 0.0
                            new = max(new, (base[i] + slack) / weight)
                    new = max(new, (capacity[s] - total) / weights)
                if new > 0 and 0 < old < UNLIMITED:
                    ratio = new / old
                    step = np.sqrt(ratio)
                    if sweep < EARLY_SWEEPS:
                        step *= np.sqrt(step)
                    elif sweep >= LATE_SWEEPS:
                        step = np.sqrt(step) if sweep < LAST_SWEEPS else np.sqrt(np.sqrt(np.sqrt(step)))
                    new = old * step
                level[s] = new
                for e in range(begin, begin + m):
                    u = users.user[e]
                    offer = new * users.weight[e] / users.use[e]
                    if first_at[u] == s and offer <= second[u]:
                        first[u] = offer
                    elif first_at[u] != s and offer < first[u]:
                        second[u], second_at[u] = first[u], first_at[u]
                        first[u], first_at[u] = offer, s
                    elif first_at[u] != s and (
                        offer < second[u] or (second_at[u] == s and offer <= second[u])
                    ):
                        second[u], second_at[u] = offer, s
                    elif first_at[u] == s or second_at[u] == s:  # its offer rises above others
                        first[u], second[u] = np.inf, np.inf
                        first_at[u], second_at[u] = -1, -1
                        for k in range(user_starts[u], user_starts[u + 1]):
                            t = station_of[k]
                            offer = level[t] * weight_of[k] / use_of[k]
                            if offer < first[u]:
                                second[u], second_at[u] = first[u], first_at[u]
                                first[u], first_at[u] = offer, t
                            elif offer < second[u]:
                                second[u], second_at[u] = offer, t
                    if first_at[u] == s and first[u] < users.most[u]:
                        holds[s] = True
                if held or holds[s]:
                    inner_change = max(inner_change, abs(new - old) / max(new, old, LOWEST))
            if inner == 0:
                change = inner_change
            if inner_change <= converged:
                break
        if change <= converged:
            break
    rate = np.minimum(users.most, first)
    for s in range(stations):
        begin = users.starts[s]
        total, weights, highest = 0.0, 0.0, 0.0
        for e in range(begin, users.starts[s + 1]):
            if users.weight[e] > 0:
                load = rate[users.user[e]] * users.use[e]
                highest = max(highest, load / users.weight[e])
                total += load
                weights += users.weight[e]
        if weights > 0:
            level[s] = highest + max(capacity[s] - total, 0.0) / weights
    return level, rate


@njit(cache=True, nogil=True)
def list_by_user(user: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the entries in the order of their users (E,), and where those of each user start (U + 1,)."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for u in user:
        starts[u + 1] += 1
    for u in range(count):
        starts[u + 1] += starts[u]
    entries, free = np.empty(len(user), dtype=np.int64), starts.copy()
    for e in range(len(user)):
        entries[free[user[e]]] = e
        free[user[e]] += 1
    return entries, starts


@njit(cache=True, nogil=True)
def fill_station(
    weight: Floats,
    begin: int,
    base: Floats,
    count: int,
    capacity: float,
    weights: float,
    remaining: float,
    others: float,
) -> float:
    """Return the level at which a station is full if its users demand more than its capacity.

    Newton's method: users that want less than the level gives leave the rest to others. The first step, from
    any level, may lower it, to one that is not too high; later ones raise it.

    weight        (E,) of entries; those of the station are the `count` ones from `begin` on
    base          (count,) what users want of the station
    weights       sum of the users' weights
    rest, others  at the level to start from: the capacity without what users want that want less than it
                  gives, and the sum of the other users' weights
    """
    level = (
        max(remaining, 0.0) / others if others > 0 else capacity / weights
    )  # all have what they want: too high
    before = -1.0
    while level > before:
        remaining, others, before = capacity, 0.0, level
        for i in range(count):
            if base[i] <= before * weight[begin + i]:
                remaining -= base[i]
            else:
                others += weight[begin + i]
        if others > 0:
            level = max(remaining, 0.0) / others
    return level


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def proportional_rates(users: Users, capacity: Floats, most_sweeps: int, converged: float) -> Floats:
    """Return the rate of each user (U,) where requests are served first come, first served.

    The rate of a user that wants D is D / max(1, sum of use x price), with a price for each full station.
    Prices are set in turn (coordinate descent of the dual); most sweeps visit only stations with a price.

    most_sweeps  number of sweeps over all stations
    converged    relative change of the prices that ends the sweeps
    """
    stations, count = len(capacity), len(users.most)
    price, paid = np.zeros(stations), np.zeros(count)
    for _ in range(most_sweeps):
        change = 0.0
        for inner in range(INNER_SWEEPS + 1):  # the first is over all stations
            inner_change = 0.0
            for s in range(stations):
                begin, end, old = users.starts[s], users.starts[s + 1], price[s]
                if begin == end or (inner > 0 and old <= 0):
                    continue
                new = price_station(users, paid, begin, end, old, capacity[s])
                inner_change = max(inner_change, abs(new - old) / max(new, old, 1e-12))
                for e in range(begin, end):
                    paid[users.user[e]] += users.use[e] * (new - old)
                price[s] = new
            if inner == 0:
                change = inner_change
            if inner_change <= converged:
                break
        if change <= converged:
            break
    rate = np.empty(count)
    for u in range(count):
        rate[u] = users.most[u] / max(1.0, paid[u])
    return rate


@njit(cache=True, nogil=True)
def price_station(users: Users, paid: Floats, begin: int, end: int, old: float, capacity: float) -> float:
    """Return the price at which the load of a station is its capacity, 0 where the load is not above it.

    Newton's method on 1 / load, which is almost linear in the price; bisection where it leaves the bracket.
    """
    low, high, price = 0.0, np.inf, old
    is_zero_tried = False
    if capacity <= 0:
        return HIGHEST_PRICE
    for _ in range(PRICE_STEPS):
        load, slope = load_at(users, paid, begin, end, old, price)
        if price <= 0:
            if load <= capacity:
                return 0.0
            is_zero_tried = True
        if load > capacity:
            low = price
        else:
            high = price
        new = price + load * (load - capacity) / (capacity * slope) if slope > 0 else -1.0
        if abs(new - price) <= PRICE_ROUNDING * price:
            return new
        if slope > 0 and new <= 0 and not is_zero_tried:
            new = 0.0
        elif not low < new < high:
            new = 0.5 * (low + high) if high < np.inf else max(2 * low, 1.0)
            if new - low <= PRICE_ROUNDING * new:
                return new
        price = new
    return min(high, HIGHEST_PRICE)


@njit(cache=True, nogil=True)
def load_at(
    users: Users, paid: Floats, begin: int, end: int, old: float, price: float
) -> tuple[float, float]:
    """Return the load of a station at another price than its present one, and its slope, at least 0."""
    load, slope = 0.0, 0.0
    for e in range(begin, end):
        u, use = users.user[e], users.use[e]
        sum_paid = paid[u] + use * (price - old)
        if sum_paid > 1.0:
            weighted = use * users.most[u] / sum_paid
            load += weighted
            slope += weighted * use / sum_paid
        else:
            load += use * users.most[u]
    return load, slope


@run_small_in_python(max_elements=2_000)
@njit(cache=True, nogil=True)
def fit(users: Users, capacity: Floats, rate: Floats) -> Floats:
    """Return the rates, lowered where the sweeps left a station above its capacity."""
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
    share: Floats = 1.0 / np.maximum(count, 1)[replicas.partition]
    return share


def divide_limits(problem: SharedStore, replicas: Replicas, weight: Floats) -> Floats:
    """Return the rate limit of each replica, (K,): local weights, divided among a tenant's replicas there."""
    cells = (problem.tenant[replicas.partition], replicas.node)
    count = sum_by_node(problem, replicas, np.ones(len(replicas.partition)))
    limits: Floats = (weight / np.maximum(count, 1.0))[cells]
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
    deadline: Deadline = NEVER,
) -> Served:
    """Return the rates of replicas when tenants send their demand.

    split        (K,) where requests do not choose by windows; the first split where they do
    weight       (T, N) local weights; only fair queuing uses them
    most_kops    (K,) rate limits of replicas, for that discipline
    demand_kops  (P,) requests that are sent, in proportion up to limits; default: those of the problem
    deadline     when windows change no more
    """
    limits = most_kops if queueing == LIMITS else None
    demand = problem.admit(problem.demand_kops if demand_kops is None else demand_kops)
    kops = _serve_split(problem, replicas, split, weight, queueing, limits, demand)[0]
    if replica_choice != WINDOWS:
        return Served(kops, split)
    best, best_split = kops, split
    window = sum_by_node(problem, replicas, split) > 0
    sizes = window.astype(float)
    cells = (problem.tenant[replicas.partition], replicas.node)
    for _ in range(WINDOW_ROUNDS):
        if deadline.is_over:
            return Served(best, best_split)
        size = sizes[cells]
        total = add_up(replicas.partition, weights=size, minlength=len(problem.partitions))
        split = size / np.maximum(total, 1e-300)[replicas.partition]
        kops, offered, load = _serve_split(problem, replicas, split, weight, queueing, limits, demand)
        if kops.sum() >= best.sum():
            best, best_split = kops, split
        ratio = np.divide(offered, load, out=np.ones_like(load), where=load > 0)
        step = np.clip(ratio, 0.25, 4.0) ** WINDOW_STEP
        sizes = np.where(window, sizes * step, 0.0)
        sizes /= np.maximum(sizes.max(axis=1, keepdims=True), 1e-300)
        sizes = np.where(window, np.maximum(sizes, 1e-4), 0.0)
    return Served(kops, split) if kops.sum() >= best.sum() * (1 - 1e-3) else Served(best, best_split)


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
    is_tenant = users.node < 0
    of_tenant[users.tenant[is_tenant]] = rate[is_tenant]
    at_node = np.zeros(shape)
    at_node[users.tenant[~is_tenant], users.node[~is_tenant]] = rate[~is_tenant]
    sent = demand_kops[replicas.partition] * split
    owner = problem.tenant[replicas.partition]
    by_node = sum_by_node(problem, replicas, sent)
    if most_kops is not None:
        sent = np.where(problem.is_fixed[owner], sent, np.minimum(sent, most_kops))
        by_node = sum_by_node(problem, replicas, sent)
    demand = add_up(problem.tenant, demand_kops, len(problem.tenants))
    fraction = np.divide(of_tenant, demand, out=np.zeros_like(demand), where=demand > 0)[owner]
    there = np.divide(at_node, by_node, out=np.zeros(shape), where=by_node > 0)[owner, replicas.node]
    kops: Floats = sent * np.where(problem.is_fixed[owner], fraction, there)
    load = sum_by_node(problem, replicas, kops)
    slack = np.maximum(problem.rate_kops - load.sum(axis=0), 0.0)
    first = level.reshape(len(problem.nodes), -1)[:, 0]
    offered = (
        np.maximum(np.minimum(first[None, :], 1e290) * weight, load)
        if queueing == FAIR_QUEUING
        else load + slack
    )
    return kops, offered, load
