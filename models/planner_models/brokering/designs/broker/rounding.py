"""Rounding to whole clients: round down, insert the rest one by one, then swap clients between clusters."""

from __future__ import annotations

import math
import time
from typing import Final, NamedTuple

import numba
import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner_models.brokering.plan.min_cost_flow import Relaxation
from planner_models.brokering.plan.transportation import CAPACITY_TOLERANCE, TransportationProblem

MAX_MOVES: Final = 200  # into one cluster, in one pass
MIN_GAIN: Final = 1e-9  # relative to the mean cost of a client; less may be rounding


class State(NamedTuple):
    """An assignment of whole clients, changed in place.

    cost          (G, C) of a client
    bitrate_mbps  (G,) of a client
    assigned      (G, C) clients
    residual      (C,) capacity that is left, Mbit/s
    """

    cost: Floats
    bitrate_mbps: Floats
    assigned: Ints32
    residual: Floats


class Moves(NamedTuple):
    """The cheapest moves of one client into cluster b, and out of it, by other cluster and bitrate level.

    cost_in, cost_out    (C, W) change of cost; inf where there is none
    group_in, group_out  (C, W) the client's group
    """

    cost_in: Floats
    cost_out: Floats
    group_in: Ints
    group_out: Ints


def round_to_whole_clients(
    problem: TransportationProblem, relaxation: Relaxation, *, gap: float, until: float
) -> Ints32 | None:
    """Return whole clients near the relaxation within all capacities, (G, C); None where they do not fit.

    Fractions are rounded down. The other clients are inserted one by one, the largest first, where that
    costs least; where none fits, one other client is ejected. Then clients swap places as long as that
    saves cost, the gap to the bound is above `gap`, and it is before `until` (time.perf_counter()).
    """
    assert relaxation.assigned is not None
    assert relaxation.bound is not None
    fractions = relaxation.assigned.tocoo()
    assigned = np.zeros(problem.cost.shape, dtype=np.int32)
    assigned[fractions.row, fractions.col] = np.floor(fractions.data + 1e-7)
    surplus = assigned.sum(axis=1) - problem.count
    for group in np.flatnonzero(surplus > 0):  # 1e-7 of many clients may come to one too many
        assigned[group, assigned[group].argmax()] -= surplus[group]
    load = (assigned * problem.bitrate_mbps[:, None]).sum(axis=0)
    capacity = problem.capacity_mbps
    residual = capacity - load + CAPACITY_TOLERANCE * np.maximum(capacity, 1.0)
    for cluster in np.flatnonzero(residual < 0):
        for group in np.flatnonzero(assigned[:, cluster]):
            while residual[cluster] < 0 and assigned[group, cluster]:
                assigned[group, cluster] -= 1
                residual[cluster] += problem.bitrate_mbps[group]
    state = State(problem.cost, problem.bitrate_mbps, assigned, residual)
    waiting = (problem.count - assigned.sum(axis=1)).astype(np.int64)
    if not insert_clients(state, waiting, relaxation.dual_price):
        return None
    value = float(problem.cost[assigned > 0] @ assigned[assigned > 0])
    levels, level = np.unique(problem.bitrate_mbps, return_inverse=True)
    level = level.ravel().astype(np.int64)
    priced = np.flatnonzero(relaxation.dual_price > 0)
    min_gain = MIN_GAIN * abs(value) / max(int(problem.count.sum()), 1)
    while len(priced) and value - relaxation.bound > gap * abs(value) and time.perf_counter() < until:
        order = priced[np.argsort(-(residual * relaxation.dual_price)[priced])]
        saved = swap_clients(state, level, levels, order, min_gain)
        if saved <= 0:
            break
        value -= saved
    return assigned


@numba.njit(cache=True)
def insert_clients(state: State, waiting: Ints, dual_price: Floats) -> bool:  # pragma: no cover - compiled
    """Insert the `waiting` clients of each group (G,); return False where one does not fit.

    The largest come first. A client is inserted where cost plus the dual price of capacity is least; where
    it fits nowhere, one client of another group is ejected. `waiting` is counted down.
    """
    cost, bitrate, residual = state.cost, state.bitrate_mbps, state.residual
    for group in np.argsort(-bitrate):
        while waiting[group] > 0:
            best, least = -1, np.inf
            for b in range(cost.shape[1]):
                if residual[b] >= bitrate[group]:
                    value = cost[group, b] + dual_price[b] * bitrate[group]
                    if value < least:
                        best, least = b, value
            if best < 0 and not _eject_and_insert(state, group):
                return False
            if best >= 0:
                state.assigned[group, best] += 1
                residual[best] -= bitrate[group]
            waiting[group] -= 1
    return True


@numba.njit(cache=True)
def _eject_and_insert(state: State, group: int) -> bool:  # pragma: no cover - compiled
    """Insert one client of `group` where another client is ejected to a third cluster, at least cost."""
    cost, bitrate, assigned, residual = state
    groups, clusters = cost.shape
    least, b_best, h_best, d_best = np.inf, -1, -1, -1
    for b in range(clusters):
        if not np.isfinite(cost[group, b]):
            continue
        for h in range(groups):
            if assigned[h, b] == 0 or residual[b] + bitrate[h] < bitrate[group]:
                continue
            for d in range(clusters):
                if d != b and residual[d] >= bitrate[h]:
                    value = cost[group, b] + cost[h, d] - cost[h, b]
                    if value < least:
                        least, b_best, h_best, d_best = value, b, h, d
    if b_best < 0:
        return False
    move_clients(state, h_best, b_best, d_best, 1)
    assigned[group, b_best] += 1
    residual[b_best] -= bitrate[group]
    return True


@numba.njit(cache=True)
def swap_clients(
    state: State, level: Ints, levels: Floats, order: Ints, min_gain: float
) -> float:  # pragma: no cover - compiled
    """Improve the clusters in `order` by swaps, one pass; return the cost saved.

    A swap moves one client into cluster b from a cluster a and, where that does not fit, one client out of
    b to a cluster d with residual capacity (d may be a). Of each pair of clusters and bitrate only the
    cheapest client is tried.

    level   (G,) row of each group's bitrate in `levels` (W,), ascending
    """
    cost, _, assigned, residual = state
    shape = (cost.shape[1], len(levels))
    moves = Moves(
        np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    )
    saved = 0.0
    group, cluster = np.nonzero(assigned)  # arcs in use; swaps append to them, and leave empty ones
    arcs = len(group)
    arc_group = np.empty(arcs + 2 * MAX_MOVES * len(order), dtype=np.int64)
    arc_cluster = np.empty(arcs + 2 * MAX_MOVES * len(order), dtype=np.int64)
    arc_group[:arcs], arc_cluster[:arcs] = group, cluster
    for b in order:
        for _ in range(MAX_MOVES):
            _find_moves(cost, level, assigned, b, arc_group[:arcs], arc_cluster[:arcs], moves)
            value, a, k, d, j = _best_swap(levels, residual, b, moves, -min_gain)
            if a < 0:
                break
            saved -= value
            g = moves.group_in[a, k]
            move_clients(state, g, a, b, 1)
            arc_group[arcs], arc_cluster[arcs] = g, b
            arcs += 1
            if d >= 0:
                h = moves.group_out[d, j]
                move_clients(state, h, b, d, 1)
                arc_group[arcs], arc_cluster[arcs] = h, d
                arcs += 1
    return saved


@numba.njit(cache=True)
def move_clients(
    state: State, group: int, origin: int, target: int, count: int
) -> None:  # pragma: no cover - compiled
    """Move clients of a group from one cluster to another."""
    state.assigned[group, origin] -= count
    state.assigned[group, target] += count
    state.residual[origin] += count * state.bitrate_mbps[group]
    state.residual[target] -= count * state.bitrate_mbps[group]


@numba.njit(cache=True)
def _find_moves(
    cost: Floats, level: Ints, assigned: Ints32, b: int, arc_group: Ints, arc_cluster: Ints, moves: Moves
) -> None:  # pragma: no cover - compiled
    """Fill `moves` with the cheapest moves into b and out of b."""
    cost_in, cost_out, group_in, group_out = moves
    cost_in[:] = np.inf
    cost_out[:] = np.inf
    for arc in range(len(arc_group)):
        g, a = arc_group[arc], arc_cluster[arc]
        k = level[g]
        if assigned[g, a] == 0:
            continue
        if a != b:
            value = cost[g, b] - cost[g, a]
            if value < cost_in[a, k]:
                cost_in[a, k], group_in[a, k] = value, g
            continue
        for d in range(cost.shape[1]):
            value = cost[g, d] - cost[g, b]
            if d != b and value < cost_out[d, k]:
                cost_out[d, k], group_out[d, k] = value, g


@numba.njit(cache=True)
def _best_swap(
    levels: Floats, residual: Floats, b: int, moves: Moves, limit: float
) -> tuple[float, int, int, int, int]:  # pragma: no cover - compiled
    """Return the cheapest swap below `limit`: cost, a and level of the client in, d and level of the one out.

    a is -1 where there is none; d is -1 where no client needs to move out.
    """
    cost_in, cost_out = moves.cost_in, moves.cost_out
    clusters, count = cost_in.shape
    exit_cost, exit_cluster = _find_exits(levels, residual, cost_out)
    best, a_best, k_best, d_best, j_best = limit, -1, -1, -1, -1
    for a in range(clusters):
        lower_bound = min(exit_cost.min(), cost_out[a].min(), 0.0)
        for k in range(count):
            if not cost_in[a, k] + lower_bound < best:
                continue
            if residual[b] >= levels[k] and cost_in[a, k] < best:
                best, a_best, k_best, d_best = cost_in[a, k], a, k, -1
            for j in range(count):
                if residual[b] - levels[k] + levels[j] < 0:
                    continue
                if cost_in[a, k] + exit_cost[j] < best:
                    best, a_best, k_best, j_best = cost_in[a, k] + exit_cost[j], a, k, j
                    d_best = exit_cluster[j]
                if residual[a] + levels[k] >= levels[j] and cost_in[a, k] + cost_out[a, j] < best:
                    best, a_best, k_best, d_best, j_best = cost_in[a, k] + cost_out[a, j], a, k, a, j
    return best, a_best, k_best, d_best, j_best


@numba.njit(cache=True)
def _find_exits(
    levels: Floats, residual: Floats, cost_out: Floats
) -> tuple[Floats, Ints]:  # pragma: no cover - compiled
    """Return the cheapest move into residual capacity for each bitrate, (W,): cost and cluster; -1: none."""
    clusters, count = cost_out.shape
    exit_cost, exit_cluster = np.full(count, np.inf), np.full(count, -1)
    for j in range(count):
        for d in range(clusters):
            if residual[d] >= levels[j] and cost_out[d, j] < exit_cost[j]:
                exit_cost[j], exit_cluster[j] = cost_out[d, j], d
    return exit_cost, exit_cluster


def total_cost(problem: TransportationProblem, assigned: Ints32) -> float:
    """Return the cost of an assignment (G, C) of whole clients, summed without rounding errors."""
    group, cluster = np.nonzero(assigned)
    return math.fsum((problem.cost[group, cluster] * assigned[group, cluster]).tolist())
