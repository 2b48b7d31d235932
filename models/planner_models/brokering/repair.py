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
    clusters = cost.shape[1]
    for group in np.argsort(-weight):
        while left[group] > 0:
            best, least = -1, np.inf
            for b in range(clusters):
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
    groups, clusters = cost.shape
    kinds = len(levels)
    come = np.empty((clusters, kinds))
    come_group = np.empty((clusters, kinds), dtype=np.int64)
    leave = np.empty((clusters, kinds))
    leave_group = np.empty((clusters, kinds), dtype=np.int64)
    gained = 0.0
    for b in order:
        # who is where; moves below add to the end, and leave what is empty
        arcs = np.count_nonzero(sent)
        arc_group = np.empty(arcs + MOST_MOVES * 2, dtype=np.int64)
        arc_at = np.empty(arcs + MOST_MOVES * 2, dtype=np.int64)
        arcs = 0
        for g in range(groups):
            for a in range(clusters):
                if sent[g, a] > 0:
                    arc_group[arcs], arc_at[arcs] = g, a
                    arcs += 1
        for _ in range(MOST_MOVES):
            come[:] = np.inf
            leave[:] = np.inf
            for arc in range(arcs):
                g, a = arc_group[arc], arc_at[arc]
                if sent[g, a] == 0:
                    continue
                k = level[g]
                if a != b:
                    value = cost[g, b] - cost[g, a]
                    if value < come[a, k]:
                        come[a, k] = value
                        come_group[a, k] = g
                else:
                    for d in range(clusters):
                        value = cost[g, d] - cost[g, b]
                        if d != b and value < leave[d, k]:
                            leave[d, k] = value
                            leave_group[d, k] = g
            # the cheapest way out for each bitrate, to where there is room
            out = np.full(kinds, np.inf)
            out_to = np.full(kinds, -1)
            for k in range(kinds):
                for d in range(clusters):
                    if room[d] >= levels[k] and leave[d, k] < out[k]:
                        out[k] = leave[d, k]
                        out_to[k] = d
            best, a_best, k_best, d_best, j_best = -least_gain, -1, -1, -1, -1
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
                        value = come[a, k] + out[j]
                        if value < best:
                            best, a_best, k_best, d_best, j_best = value, a, k, out_to[j], j
                        value = come[a, k] + leave[a, j]
                        if room[a] + levels[k] - levels[j] >= 0 and value < best:
                            best, a_best, k_best, d_best, j_best = value, a, k, a, j
            if a_best < 0:
                break
            g = come_group[a_best, k_best]
            sent[g, a_best] -= 1
            sent[g, b] += 1
            arc_group[arcs], arc_at[arcs] = g, b
            arcs += 1
            room[a_best] += weight[g]
            room[b] -= weight[g]
            if d_best >= 0:
                h = leave_group[d_best, j_best]
                sent[h, b] -= 1
                sent[h, d_best] += 1
                arc_group[arcs], arc_at[arcs] = h, d_best
                arcs += 1
                room[b] += weight[h]
                room[d_best] -= weight[h]
            gained -= best
    return gained


def result(problem: Transport, sent: NDArray[np.int32]) -> tuple[Any, float]:
    """The spread as a sparse array, and its cost."""
    group, cluster = np.nonzero(sent)
    count = sent[group, cluster]
    value = math.fsum((problem.cost[group, cluster] * count).tolist())
    return sp.csr_array((count, (group, cluster)), shape=sent.shape), value
