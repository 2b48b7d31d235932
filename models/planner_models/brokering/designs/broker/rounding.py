"""Rounding to whole clients: round down, then insert the rest one by one."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner_models.brokering.plan.transportation import (
    CAPACITY_TOLERANCE,
    Relaxation,
    TransportationProblem,
)


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

    @classmethod
    def of(cls, problem: TransportationProblem, assigned: Ints32) -> State:
        """Return the state of an assignment, (G, C), of that problem."""
        capacity = problem.capacity_mbps
        residual = capacity + CAPACITY_TOLERANCE * np.maximum(capacity, 1.0) - problem.bitrate_mbps @ assigned
        return cls(problem.cost, problem.bitrate_mbps, assigned, residual)


def round_to_whole_clients(
    problem: TransportationProblem, relaxation: Relaxation, deadline: Deadline = NEVER
) -> Ints32 | None:
    """Return whole clients near the relaxation within all capacities, (G, C); None where they do not fit.

    Fractions are rounded down. The other clients are inserted one by one, where that costs least; where
    none fits, one other client is ejected.

    deadline  when to stop; None too where time is up
    """
    assert relaxation.assigned is not None
    fractions = relaxation.assigned.tocoo()
    group, cluster, bitrate = fractions.row, fractions.col, problem.bitrate_mbps
    integer_part = np.floor(fractions.data + 1e-7).astype(np.int32)
    assigned = np.zeros(problem.cost.shape, dtype=np.int32)
    assigned[group, cluster] = integer_part
    total = np.bincount(group, weights=integer_part, minlength=len(bitrate)).astype(np.int64)
    for over in np.flatnonzero(total > problem.count):  # 1e-7 of many clients may come to one too many
        assigned[over, assigned[over].argmax()] -= total[over] - problem.count[over]
        total[over] = problem.count[over]
    capacity = problem.capacity_mbps
    load = np.bincount(cluster, weights=assigned[group, cluster] * bitrate[group], minlength=len(capacity))
    residual = capacity - load + CAPACITY_TOLERANCE * np.maximum(capacity, 1.0)
    for full in np.flatnonzero(residual < 0):
        for group_index in np.flatnonzero(assigned[:, full]):
            while residual[full] < 0 and assigned[group_index, full]:
                assigned[group_index, full] -= 1
                residual[full] += bitrate[group_index]
                total[group_index] -= 1
    state = State(problem.cost, bitrate, assigned, residual)
    waiting = problem.count - total
    order = insertion_order(problem)
    for index in np.flatnonzero(waiting[order]):
        if deadline.is_over:
            return None
        if not insert_clients(state, waiting, relaxation.dual_price, order[index : index + 1]):
            return None
    return assigned


def insertion_order(problem: TransportationProblem) -> Ints:
    """Return the groups by bitrate, (G,): the largest first; where clients are shed, the smallest."""
    return np.argsort(problem.bitrate_mbps if problem.sheds else -problem.bitrate_mbps, kind="stable")


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def insert_clients(
    state: State, waiting: Ints, dual_price: Floats, order: Ints
) -> bool:  # pragma: no cover - compiled
    """Insert the `waiting` clients of each group (G,), in that order; return False where one does not fit.

    A client is inserted where cost plus the dual price of capacity is least; where
    it fits nowhere, one client of another group is ejected. `waiting` is counted down.
    """
    cost, bitrate, residual = state.cost, state.bitrate_mbps, state.residual
    for group in order:
        while waiting[group] > 0:
            best, lowest = -1, np.inf
            for b in range(cost.shape[1]):
                if residual[b] < bitrate[group]:
                    continue
                value = cost[group, b] + dual_price[b] * bitrate[group]
                if value < lowest:
                    best, lowest = b, value
            if best < 0 and not _eject_and_insert(state, group):
                return False
            if best >= 0:
                state.assigned[group, best] += 1
                residual[best] -= bitrate[group]
            waiting[group] -= 1
    return True


@njit(cache=True)
def _eject_and_insert(state: State, group: int) -> bool:  # pragma: no cover - compiled
    """Insert one client of `group` where another client is ejected to a third cluster, at least cost."""
    cost, bitrate, assigned, residual = state
    groups, clusters = cost.shape
    lowest, b_best, h_best, d_best = np.inf, -1, -1, -1
    for b in range(clusters):
        if not np.isfinite(cost[group, b]):
            continue
        for h in range(groups):
            if assigned[h, b] == 0 or residual[b] + bitrate[h] < bitrate[group]:
                continue
            for d in range(clusters):
                if d == b or residual[d] < bitrate[h]:
                    continue
                value = cost[group, b] + cost[h, d] - cost[h, b]
                if value < lowest:
                    lowest, b_best, h_best, d_best = value, b, h, d
    if b_best < 0:
        return False
    move_clients(state, h_best, b_best, d_best, 1)
    assigned[group, b_best] += 1
    residual[b_best] -= bitrate[group]
    return True


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def move_clients(
    state: State, group: int, origin: int, target: int, count: int
) -> None:  # pragma: no cover - compiled
    """Move clients of a group from one cluster to another."""
    state.assigned[group, origin] -= count
    state.assigned[group, target] += count
    state.residual[origin] += count * state.bitrate_mbps[group]
    state.residual[target] -= count * state.bitrate_mbps[group]


def total_cost(problem: TransportationProblem, assigned: Ints32) -> float:
    """Return the cost of an assignment (G, C) of whole clients, summed without rounding errors."""
    group, cluster = np.nonzero(assigned)
    return math.fsum((problem.cost[group, cluster] * assigned[group, cluster]).tolist())
