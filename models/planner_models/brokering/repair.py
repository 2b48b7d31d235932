"""From divisible clients to whole ones: round down, place what is left, then trade places."""

from __future__ import annotations

import math
import time
from typing import Any, Final

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner_models.brokering.flow import Relaxed, Transport

SLACK: Final = 1e-9  # relative; room that sums of floats leave open
MOST_MOVES: Final = 200  # into one cluster, in one pass
LEAST_GAIN: Final = 1e-9  # relative to the mean cost of a client; less is rounding


def whole(problem: Transport, relaxed: Relaxed, *, gap: float, until: float) -> NDArray[np.int32] | None:
    """(G, C) whole clients that keep all room, near the relaxed spread; None where they do not fit.

    Fractions are rounded down, the clients left over are placed one by one, largest first, where
    that costs least, moving one other client away where nothing else helps. Then clients trade
    places as long as that saves cost, the gap to the bound is above `gap`, and it is before
    `until` (time.perf_counter()).
    """
    assert relaxed.sent is not None
    assert relaxed.bound is not None
    fractions = relaxed.sent.tocoo()
    sent = np.zeros(problem.cost.shape, dtype=np.int32)
    sent[fractions.row, fractions.col] = np.floor(fractions.data + 1e-7)
    over = sent.sum(axis=1) - problem.count
    for group in np.flatnonzero(over > 0):  # 1e-7 of many clients may come to one too many
        sent[group, sent[group].argmax()] -= over[group]
    load = (sent * problem.weight[:, None]).sum(axis=0)
    room = problem.room - load + SLACK * np.maximum(problem.room, 1.0)
    for cluster in np.flatnonzero(room < 0):
        for group in np.flatnonzero(sent[:, cluster]):
            while room[cluster] < 0 and sent[group, cluster]:
                sent[group, cluster] -= 1
                room[cluster] += problem.weight[group]
    left = problem.count - sent.sum(axis=1)
    if not place(problem.cost, problem.weight, sent, room, left.astype(np.int64), relaxed.price):
        return None
    value = float(problem.cost[sent > 0] @ sent[sent > 0])
    levels, level = np.unique(problem.weight, return_inverse=True)
    tight = np.flatnonzero(relaxed.price > 0)
    least = LEAST_GAIN * abs(value) / max(int(problem.count.sum()), 1)
    while len(tight) and value - relaxed.bound > gap * abs(value) and time.perf_counter() < until:
        order = tight[np.argsort(-(room * relaxed.price)[tight])]
        gained = trade(
            problem.cost, problem.weight, level.ravel().astype(np.int64), levels, sent, room, order, least
        )
        if gained <= 0:
            break
        value -= gained
    return sent


@numba.njit(cache=True)
def place(
    cost: NDArray[np.float64],
    weight: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
    left: NDArray[np.int64],
    price: NDArray[np.float64],
) -> bool:  # pragma: no cover - compiled
    """Place the `left` clients of each group, the largest first; False where one finds no room.

    sent and room are changed. A client goes where cost and the price of room are least among the
    clusters with room; where none has any, one client of another group makes room.
    """
    for group in np.argsort(-weight):
        while left[group] > 0:
            best, least = -1, np.inf
            for b in range(cost.shape[1]):
                if room[b] >= weight[group]:
                    value = cost[group, b] + price[b] * weight[group]
                    if value < least:
                        best, least = b, value
            if best < 0 and not _make_room(cost, weight, sent, room, group):
                return False
            if best >= 0:
                sent[group, best] += 1
                room[best] -= weight[group]
            left[group] -= 1
    return True


@numba.njit(cache=True)
def _make_room(
    cost: NDArray[np.float64],
    weight: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
    group: int,
) -> bool:  # pragma: no cover - compiled
    """Move one client of another group elsewhere so that one of `group` fits; the cheapest way."""
    groups, clusters = cost.shape
    least, b_best, h_best, d_best = np.inf, -1, -1, -1
    for b in range(clusters):
        if not np.isfinite(cost[group, b]):
            continue
        for h in range(groups):
            if sent[h, b] == 0 or room[b] + weight[h] < weight[group]:
                continue
            for d in range(clusters):
                if d != b and room[d] >= weight[h]:
                    value = cost[group, b] + cost[h, d] - cost[h, b]
                    if value < least:
                        least, b_best, h_best, d_best = value, b, h, d
    if b_best < 0:
        return False
    sent[h_best, b_best] -= 1
    sent[h_best, d_best] += 1
    sent[group, b_best] += 1
    room[d_best] -= weight[h_best]
    room[b_best] += weight[h_best] - weight[group]
    return True


@numba.njit(cache=True)
def trade(
    cost: NDArray[np.float64],
    weight: NDArray[np.float64],
    level: NDArray[np.int64],
    levels: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
    order: NDArray[np.int64],
    least_gain: float,
) -> float:  # pragma: no cover - compiled
    """One pass of trades over the clusters in `order`; returns the cost saved.

    For each cluster b, as long as it saves: one client comes in from a cluster a, and where it does
    not fit, one client leaves for a cluster d with room (which may be a). Of each pair of places and
    bitrate only the cheapest client is looked at.

    level   (G,) place of each group's weight in `levels` (W,), ascending
    """
    shape = (cost.shape[1], len(levels))
    come, leave = np.empty(shape), np.empty(shape)
    come_group, leave_group = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    gained = 0.0
    group, at = np.nonzero(sent)  # who is where; moves below add to it, and leave what is empty
    arcs = len(group)
    arc_group = np.empty(arcs + 2 * MOST_MOVES * len(order), dtype=np.int64)
    arc_at = np.empty(arcs + 2 * MOST_MOVES * len(order), dtype=np.int64)
    arc_group[:arcs], arc_at[:arcs] = group, at
    for b in order:
        for _ in range(MOST_MOVES):
            _ways(cost, level, sent, b, arc_group[:arcs], arc_at[:arcs], come, come_group, leave, leave_group)
            value, a, k, d, j = _best_trade(levels, room, b, come, leave, -least_gain)
            if a < 0:
                break
            gained -= value
            g = come_group[a, k]
            move(g, a, b, 1, weight, sent, room)
            arc_group[arcs], arc_at[arcs] = g, b
            arcs += 1
            if d >= 0:
                h = leave_group[d, j]
                move(h, b, d, 1, weight, sent, room)
                arc_group[arcs], arc_at[arcs] = h, d
                arcs += 1
    return gained


@numba.njit(cache=True)
def move(
    group: int,
    start: int,
    end: int,
    number: int,
    weight: NDArray[np.float64],
    sent: NDArray[np.int32],
    room: NDArray[np.float64],
) -> None:  # pragma: no cover - compiled
    """So many clients of a group go from one cluster to another."""
    sent[group, start] -= number
    sent[group, end] += number
    room[start] += number * weight[group]
    room[end] -= number * weight[group]


@numba.njit(cache=True)
def _ways(
    cost: NDArray[np.float64],
    level: NDArray[np.int64],
    sent: NDArray[np.int32],
    b: int,
    arc_group: NDArray[np.int64],
    arc_at: NDArray[np.int64],
    come: NDArray[np.float64],
    come_group: NDArray[np.int64],
    leave: NDArray[np.float64],
    leave_group: NDArray[np.int64],
) -> None:  # pragma: no cover - compiled
    """(C, W) the least cost of a client of that bitrate that comes from there to b, or leaves b for there.

    And whose: come_group, leave_group.
    """
    come[:] = np.inf
    leave[:] = np.inf
    for arc in range(len(arc_group)):
        g, a = arc_group[arc], arc_at[arc]
        k = level[g]
        if sent[g, a] == 0:
            continue
        if a != b:
            value = cost[g, b] - cost[g, a]
            if value < come[a, k]:
                come[a, k], come_group[a, k] = value, g
            continue
        for d in range(cost.shape[1]):
            value = cost[g, d] - cost[g, b]
            if d != b and value < leave[d, k]:
                leave[d, k], leave_group[d, k] = value, g


@numba.njit(cache=True)
def _best_trade(
    levels: NDArray[np.float64],
    room: NDArray[np.float64],
    b: int,
    come: NDArray[np.float64],
    leave: NDArray[np.float64],
    at_most: float,
) -> tuple[float, int, int, int, int]:  # pragma: no cover - compiled
    """The cheapest trade below `at_most`: its cost, a and bitrate of who comes, d and bitrate of who leaves.

    a is -1 where there is none; d is -1 where nobody needs to leave.
    """
    clusters, kinds = come.shape
    out, out_to = _to_where_there_is_room(levels, room, leave)
    best, a_best, k_best, d_best, j_best = at_most, -1, -1, -1, -1
    for a in range(clusters):
        hope = min(out.min(), leave[a].min(), 0.0)
        for k in range(kinds):
            if not come[a, k] + hope < best:
                continue
            if room[b] >= levels[k] and come[a, k] < best:
                best, a_best, k_best, d_best = come[a, k], a, k, -1
            for j in range(kinds):
                if room[b] - levels[k] + levels[j] < 0:
                    continue
                if come[a, k] + out[j] < best:
                    best, a_best, k_best, d_best, j_best = come[a, k] + out[j], a, k, out_to[j], j
                if room[a] + levels[k] >= levels[j] and come[a, k] + leave[a, j] < best:
                    best, a_best, k_best, d_best, j_best = come[a, k] + leave[a, j], a, k, a, j
    return best, a_best, k_best, d_best, j_best


@numba.njit(cache=True)
def _to_where_there_is_room(
    levels: NDArray[np.float64], room: NDArray[np.float64], leave: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:  # pragma: no cover - compiled
    """(W,) the cheapest way out for each bitrate, and to which cluster; -1 for none."""
    clusters, kinds = leave.shape
    out, out_to = np.full(kinds, np.inf), np.full(kinds, -1)
    for j in range(kinds):
        for d in range(clusters):
            if room[d] >= levels[j] and leave[d, j] < out[j]:
                out[j], out_to[j] = leave[d, j], d
    return out, out_to


def result(problem: Transport, sent: NDArray[np.int32]) -> tuple[Any, float]:
    """The spread as a sparse array, and its cost."""
    group, cluster = np.nonzero(sent)
    count = sent[group, cluster]
    value = math.fsum((problem.cost[group, cluster] * count).tolist())
    return sp.csr_array((count, (group, cluster)), shape=sent.shape), value
