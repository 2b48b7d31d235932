"""A better plan: empty one full cluster at a time, and fill it again as well as its room allows.

A knapsack says who is best in a cluster, of those who are there and those elsewhere who would gain by
coming; those who leave go to their next best place with room. A client that comes from another full
cluster leaves room there: a part of what that is worth counts as gained, and the cluster it left is
filled next, so that chains of moves are found that pay only together. What does not pay is taken
back; at first a little may be lost, as in simulated annealing.
"""

from __future__ import annotations

import time
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from planner_models.brokering.flow import Transport, grain_mbps
from planner_models.brokering.knapsack import MOST_UNITS, pack
from planner_models.brokering.repair import LEAST_GAIN, SLACK, move

SHARE: Final = 0.06  # of all pairs of group and cluster, by reduced cost, that are looked at
SMALL_UNITS: Final = 1500  # of room; larger clusters lose little and are filled in one of AT_ONCE rounds only
MOST_HOPE: Final = 1.2  # of what left room is worth, that may count as gained
FADE: Final = 0.5  # of that hope, from one cluster to the next of a chain
MOST_TOUCHED: Final = 30  # clusters in a chain
HEAT: Final = 1e-6  # of the plan's cost, that a chain may lose at first
NEVER: Final = 1e18  # gain of staying for who has nowhere else to go
MOST_MOVES: Final = 10_000  # in a chain
AT_ONCE: Final = 6  # rounds between looks at the clock
MOST_ROUNDS: Final = 300
PATIENCE: Final = 60  # rounds without a better plan


def improve(
    problem: Transport,
    price: NDArray[np.float64],
    sent: NDArray[np.int32],
    *,
    enough: float,
    until: float,
    seed: int = 0,
) -> float:
    """Fill clusters again and again, keeping the best plan; returns the cost saved.

    price   (C,) of room, from the flow
    sent    (G, C) a plan that keeps all room; changed to a better one
    enough  cost of a plan that is good enough
    until   when to stop (time.perf_counter())
    """
    grain = grain_mbps(problem.weight)
    full = np.flatnonzero(price > 0)
    if grain is None or not len(full):
        return 0.0
    unit = np.rint(problem.weight / grain).astype(np.int64)
    units = problem.room / grain
    full = full[units[full] <= MOST_UNITS]
    room = problem.room + SLACK * np.maximum(problem.room, 1.0) - problem.weight @ sent
    value = float(problem.cost[sent > 0] @ sent[sent > 0])
    least = LEAST_GAIN * abs(value) / max(int(problem.count.sum()), 1)
    first, groups = _candidates(problem, price, full)
    place = np.full(len(price), -1)
    place[full] = np.arange(len(full))
    random = np.random.default_rng(seed)
    best, saved, most, idle = sent.copy(), 0.0, 0.0, 0
    for turn in range(0, MOST_ROUNDS, AT_ONCE):
        if value - most <= enough or idle >= PATIENCE or time.perf_counter() > until:
            break
        heat = HEAT * abs(value) * (1 - (turn + np.arange(AT_ONCE)) / MOST_ROUNDS) * random.random(AT_ONCE)
        gained, ended = sweep(
            problem.cost,
            problem.weight,
            unit,
            grain,
            price * random.uniform(0.0, MOST_HOPE, (AT_ONCE, len(price))),
            sent,
            room,
            np.array([random.permutation(full) for _ in range(AT_ONCE)]),
            place,
            units > SMALL_UNITS,
            first,
            groups,
            least - heat,
            best,
            most - saved,
        )
        idle = 0 if gained > most - saved else idle + AT_ONCE
        most = max(most, saved + gained)
        saved += ended
    sent[:] = best
    return most


def _candidates(
    problem: Transport, price: NDArray[np.float64], full: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Groups whose clients may come to each full cluster: (F + 1,) where each one's begin, and all of them.

    Whoever pays most for not being where cost and price of room are least is left out.
    """
    reduced = problem.cost[:, full] + price[full] * problem.weight[:, None]
    least = np.min(problem.cost + price * problem.weight[:, None], axis=1)
    reduced -= least[:, None]
    known = np.isfinite(reduced)
    limit = (
        np.quantile(reduced[known], min(SHARE * problem.cost.shape[1] / len(full), 1.0)) if known.any() else 0
    )
    cluster, group = np.nonzero((known & (reduced <= limit)).T)
    return np.searchsorted(cluster, np.arange(len(full) + 1)).astype(np.int64), group.astype(np.int64)


@numba.njit(cache=True)
def sweep(
    cost: NDArray[np.float64],
    weight: NDArray[np.float64],
    unit: NDArray[np.int64],
    grain: float,
    hope: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
    order: NDArray[np.int64],
    place: NDArray[np.int64],
    large: NDArray[np.bool_],
    first: NDArray[np.int64],
    groups: NDArray[np.int64],
    least: NDArray[np.float64],
    best: NDArray[np.int32],
    most: float,
) -> tuple[float, float]:  # pragma: no cover - compiled
    """Rounds in which each cluster is filled again, then those that clients left for it.

    hope           (K, C) what counts as gained for an Mbit/s that is left in a full cluster
    order          (K, F) full clusters as they are filled in each of K rounds
    place          (C,) row of a cluster among the full ones; -1 for others
    large          (C,) filled in the first round only
    first, groups  candidates of each full cluster
    least          (K,) what a chain has to save, below 0 if it may lose something
    best           (G, C) the best plan where one saves more than `most`

    returns the cost saved by the best of the plans, and by the last
    """
    group, cluster = np.nonzero(sent)
    size = 4 * len(group) + 2 * MOST_MOVES
    # for each group, a list of the clusters that it has been seen in
    head, listed = np.full(len(weight), -1), 0
    following, at = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    known = np.zeros(sent.shape, dtype=np.bool_)
    for i in range(len(group)):
        listed = _seen(group[i], cluster[i], known, head, following, at, listed)
    log = np.empty((MOST_MOVES, 4), dtype=np.int64)
    saved = 0.0
    for k in range(len(order)):
        where = place if k == 0 else np.where(large, -1, place)
        for b in order[k]:
            if where[b] < 0:
                continue
            gained, moves, listed = _chain(
                cost, weight, unit, grain, hope[k], sent, room, b, where, first, groups,
                known, head, following, at, listed, log,
            )  # fmt: skip
            if gained > least[k]:
                saved += gained
                continue
            for i in range(moves - 1, -1, -1):
                move(log[i, 0], log[i, 2], log[i, 1], log[i, 3], weight, sent, room)
        if saved > most:
            most = saved
            best[:] = sent
    return most, saved


@numba.njit(cache=True)
def _chain(
    cost: NDArray[np.float64],
    weight: NDArray[np.float64],
    unit: NDArray[np.int64],
    grain: float,
    hope: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
    b: int,
    place: NDArray[np.int64],
    first: NDArray[np.int64],
    groups: NDArray[np.int64],
    known: NDArray[np.bool_],
    head: NDArray[np.int64],
    following: NDArray[np.int64],
    at: NDArray[np.int64],
    listed: int,
    log: NDArray[np.int64],
) -> tuple[float, int, int]:  # pragma: no cover - compiled
    """Fill cluster b again, then those that clients left: cost saved, moves in `log`, length of all lists."""
    gained, moves, done, touched, start = 0.0, 0, 0, 0, b
    while start >= 0 and touched <= MOST_TOUCHED:
        before, row = moves, place[start]
        fade = 1.0 if touched == 0 else FADE
        more, moves = _fill(
            cost, weight, unit, grain, hope * fade, sent, room, start,
            groups[first[row] : first[row + 1]], head, following, at, log, moves,
        )  # fmt: skip
        gained += more
        for i in range(before, moves):
            listed = _seen(log[i, 0], log[i, 2], known, head, following, at, listed)
        start = -1
        while done < moves and start < 0:
            if log[done, 1] != b and place[log[done, 1]] >= 0:
                start = log[done, 1]
            done += 1
        touched += 1
    return gained, moves, listed


@numba.njit(cache=True)
def _seen(
    group: int,
    cluster: int,
    known: NDArray[np.bool_],
    head: NDArray[np.int64],
    following: NDArray[np.int64],
    at: NDArray[np.int64],
    listed: int,
) -> int:  # pragma: no cover - compiled
    """Put a cluster on a group's list; how long all lists are."""
    if not known[group, cluster] and listed < len(at):
        following[listed], at[listed], known[group, cluster] = head[group], cluster, True
        head[group] = listed
        listed += 1
    return listed


@numba.njit(cache=True)
def _fill(
    cost: NDArray[np.float64],
    weight: NDArray[np.float64],
    unit: NDArray[np.int64],
    grain: float,
    hope: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
    b: int,
    candidates: NDArray[np.int64],
    head: NDArray[np.int64],
    following: NDArray[np.int64],
    at: NDArray[np.int64],
    log: NDArray[np.int64],
    moves: int,
) -> tuple[float, int]:  # pragma: no cover - compiled
    """Fill cluster b again: the cost saved, and the number of moves (group, from, to, clients) in `log`."""
    mine = np.flatnonzero(sent[:, b])
    space = room[b] + (weight[mine] * sent[mine, b]).sum()
    group, origin, worth = _suitors(cost, weight, hope, sent, room, b, mine, candidates, head, following, at)
    taken = np.zeros(len(group), dtype=np.int64)
    if len(group):
        many = np.empty(len(group), dtype=np.int64)
        for i in range(len(group)):
            many[i] = sent[group[i], origin[i]]
        _, taken = pack(worth, unit[group], many, int(np.floor(space / grain + 1e-6)))
    stays = np.zeros(len(mine), dtype=np.int64)
    for i in range(len(group)):
        if origin[i] == b:
            stays[np.searchsorted(mine, group[i])] = taken[i]
    gained = 0.0
    for m in range(len(mine)):
        g = mine[m]
        for _ in range(sent[g, b] - stays[m]):
            d = _next(cost, weight, room, g, b)
            if d < 0 or moves == len(log):
                break
            gained += cost[g, b] - cost[g, d]
            moves = _noted(g, b, d, 1, weight, sent, room, log, moves)
    for i in range(len(group)):
        g, a = group[i], origin[i]
        number = min(taken[i], int(room[b] / weight[g]))
        if a != b and number > 0 and moves < len(log):
            gained += number * (cost[g, a] - cost[g, b])
            moves = _noted(g, a, b, number, weight, sent, room, log, moves)
    return gained, moves


@numba.njit(cache=True)
def _suitors(
    cost: NDArray[np.float64],
    weight: NDArray[np.float64],
    hope: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
    b: int,
    mine: NDArray[np.int64],
    candidates: NDArray[np.int64],
    head: NDArray[np.int64],
    following: NDArray[np.int64],
    at: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:  # pragma: no cover - compiled
    """Whose clients would rather be in b: their groups, where they are, and what they gain, below 0."""
    size = len(mine)
    for g in candidates:
        arc = head[g]
        while arc >= 0:
            size += 1
            arc = following[arc]
    group, origin = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    worth, count = np.empty(size), 0
    for g in mine:
        d = _next(cost, weight, room, g, b)
        gain = cost[g, d] - cost[g, b] if d >= 0 else NEVER
        if gain > 0:
            group[count], origin[count], worth[count] = g, b, -gain
            count += 1
    for g in candidates:
        arc = head[g]
        while arc >= 0:
            a = at[arc]
            arc = following[arc]
            if a == b or sent[g, a] == 0:
                continue
            gain = cost[g, a] - cost[g, b] + hope[a] * weight[g]
            if gain > 0:
                group[count], origin[count], worth[count] = g, a, -gain
                count += 1
    return group[:count], origin[:count], worth[:count]


@numba.njit(cache=True)
def _next(
    cost: NDArray[np.float64], weight: NDArray[np.float64], room: NDArray[np.float64], g: int, b: int
) -> int:  # pragma: no cover - compiled
    """The cheapest cluster but b with room for one client of g; -1 where there is none."""
    best, least = -1, np.inf
    for d in range(cost.shape[1]):
        if cost[g, d] < least and d != b and room[d] >= weight[g]:
            best, least = d, cost[g, d]
    return best


@numba.njit(cache=True)
def _noted(
    group: int,
    start: int,
    end: int,
    number: int,
    weight: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
    log: NDArray[np.int64],
    moves: int,
) -> int:  # pragma: no cover - compiled
    """Move clients and write it down; the number of moves."""
    move(group, start, end, number, weight, sent, room)
    log[moves, 0], log[moves, 1], log[moves, 2], log[moves, 3] = group, start, end, number
    return moves + 1
