"""Solstice and Eclipse as a textbook has them: plain Python with scipy's or networkx' matchings.

Peers of the compiled ones, in benchmarks and in tests; for one circuit switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import networkx as nx
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import maximum_bipartite_matching

from planner_models.circuits import Circuits

Bits = NDArray[np.float64]
Days = list[tuple[float, NDArray[np.int64]]]
"""Length, us, and target of each rack, -1 for none."""


def perfect(allowed: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    target = maximum_bipartite_matching(sp.csr_matrix(allowed), perm_type="column")
    return None if (target < 0).any() else target.astype(np.int64)


def heaviest(weight: Bits) -> NDArray[np.int64]:
    row, column = linear_sum_assignment(weight, maximize=True)
    return np.where(weight[row, column] > 0, column, -1).astype(np.int64)


def perfect_by_networkx(allowed: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    n = len(allowed)
    graph = nx.Graph()
    graph.add_nodes_from(range(2 * n))
    graph.add_edges_from((int(i), n + int(j)) for i, j in np.argwhere(allowed))
    matching = nx.bipartite.hopcroft_karp_matching(graph, range(n))
    return np.array([matching[i] - n for i in range(n)]) if len(matching) == 2 * n else None


def heaviest_by_networkx(weight: Bits) -> NDArray[np.int64]:
    n = len(weight)
    graph = nx.Graph()
    graph.add_weighted_edges_from((int(i), n + int(j), weight[i, j]) for i, j in np.argwhere(weight > 0))
    target = np.full(n, -1, dtype=np.int64)
    for edge in nx.max_weight_matching(graph):
        target[min(edge)] = max(edge) - n
    return target


def serve(problem: Circuits, remaining: Bits, length: float, target: NDArray[np.int64]) -> None:
    for i, j in enumerate(target):
        if j >= 0:
            remaining[i, j] = max(0.0, remaining[i, j] - length * problem.circuit_mbps[i, j])
            if remaining[i, j] <= 1e-9 * problem.bits[i, j]:
                remaining[i, j] = 0.0


def over(problem: Circuits, remaining: Bits, used: float) -> bool:
    window = problem.window_us
    time = used if window is None else window
    budget = problem.packet_mbps * time + 1e-12 * problem.bits.max(initial=0.0)
    if (remaining.sum(axis=0) <= budget).all() and (remaining.sum(axis=1) <= budget).all():
        return True
    if window is None:
        return False
    room = window - used - problem.night_us
    return room < problem.shortest_day_us * (1 - 1e-9) or room <= 1e-12 * window


def stuff(problem: Circuits) -> Bits:
    """Return the time of each pair with more added, first where there is some, until all sums are equal."""
    full = problem.bits / problem.circuit_mbps
    largest = max(full.sum(axis=0).max(initial=0.0), full.sum(axis=1).max(initial=0.0))
    row, column = largest - full.sum(axis=1), largest - full.sum(axis=0)
    for i, j in [*np.argwhere(full > 0).tolist(), *np.argwhere(full == 0).tolist()]:
        more = min(row[i], column[j])
        if more > 1e-12 * largest or (more > 0 and full[i, j] > 0):
            full[i, j] += more
            row[i] -= more
            column[j] -= more
    return full


def solstice(
    problem: Circuits,
    matching: Callable[[NDArray[np.bool_]], NDArray[np.int64] | None] = perfect,
    follow: Days | None = None,
) -> Days:
    """Return the days; or those of `follow`, once each is found to be one that Solstice may choose."""
    n, remaining, used = len(problem.racks), problem.bits.copy(), 0.0
    days: Days = []
    full = stuff(problem)
    largest = float(full.sum(axis=1).max(initial=0.0))
    threshold = 2.0 ** np.floor(np.log2(full.max())) if largest > 0 else 0.0
    while threshold > 1e-9 * largest and not over(problem, remaining, used):
        target = matching(full >= threshold)
        if target is None:
            threshold /= 2
            continue
        if follow is not None:
            assert len(days) < len(follow), "ends too early"
            target = follow[len(days)][1]
            assert sorted(target.tolist()) == list(range(n)), "no perfect matching"
            assert (full[np.arange(n), target] >= threshold * (1 - 1e-9)).all(), "below the threshold"
        size = full[np.arange(n), target].min()
        full[np.arange(n), target] -= size
        room = np.inf if problem.window_us is None else problem.window_us - used - problem.night_us
        length = min(max(size, problem.shortest_day_us), room)
        serve(problem, remaining, length, target)
        used += length + problem.night_us
        days.append((float(length), target))
    return days


def eclipse(problem: Circuits, assign: Callable[[Bits], NDArray[np.int64]] = heaviest) -> Days:
    """Return the days of Eclipse, where every length that a demand has is tried."""
    return _greedy(problem, assign, lambda remaining, low, high, _: _lengths(problem, remaining, low, high))


def eclipse_alternating(problem: Circuits, assign: Callable[[Bits], NDArray[np.int64]] = heaviest) -> Days:
    """Return the days of Eclipse, where matching and length improve each other from two starts."""

    def lengths(remaining: Bits, low: float, high: float, last: float) -> Iterator[float]:
        for start in {high, min(high, max(low, last))}:
            length, per_time = start, -1.0
            while True:
                yield length
                target = assign(np.minimum(remaining, problem.circuit_mbps * length))
                rows = np.flatnonzero(target >= 0)
                tries = [
                    (np.minimum(remaining, problem.circuit_mbps * length_)[rows, target[rows]].sum(), length_)
                    for length_ in _lengths(
                        problem, remaining[rows, target[rows]], low, high, rows, target[rows]
                    )
                ]
                best, length_found = max(
                    (served / (length_ + problem.night_us), length_) for served, length_ in tries
                )
                if best <= per_time * (1 + 1e-12) or length_found == length:
                    break
                per_time, length = best, length_found

    return _greedy(problem, assign, lengths)


def _lengths(
    problem: Circuits,
    remaining: Bits,
    low: float,
    high: float,
    rows: NDArray[np.int64] | None = None,
    columns: NDArray[np.int64] | None = None,
) -> list[float]:
    rate = problem.circuit_mbps if rows is None else problem.circuit_mbps[rows, columns]
    lengths: list[float] = np.unique(np.clip((remaining / rate)[remaining > 0], low, high)).tolist()
    return [*lengths, high]


def _greedy(
    problem: Circuits,
    assign: Callable[[Bits], NDArray[np.int64]],
    lengths: Callable[[Bits, float, float, float], Iterable[float]],
) -> Days:
    remaining, used, last = problem.bits.copy(), 0.0, 0.0
    days: Days = []
    rate = problem.circuit_mbps
    while remaining.any() and not over(problem, remaining, used):
        room = np.inf if problem.window_us is None else problem.window_us - used - problem.night_us
        needs = (remaining / rate)[remaining > 0]
        high = max(problem.shortest_day_us, min(float(needs.max()), room))
        low = min(high, max(problem.shortest_day_us, float(needs.min())))
        best = (-1.0, 0.0, np.zeros(0, dtype=np.int64))
        for length in lengths(remaining, low, high, last or high):
            weight = np.minimum(remaining, rate * length)
            target = assign(weight)
            rows = np.flatnonzero(target >= 0)
            per_time = weight[rows, target[rows]].sum() / (length + problem.night_us)
            if per_time > best[0]:
                best = (per_time, float(length), target)
        last = best[1]
        serve(problem, remaining, best[1], best[2])
        used += best[1] + problem.night_us
        days.append((best[1], best[2]))
    return days


def served_bits(problem: Circuits, days: Days) -> float:
    """Return the bits that circuits serve."""
    up = np.zeros_like(problem.bits)
    for length, target in days:
        for i, j in enumerate(target):
            if j >= 0:
                up[i, j] += length
    return float(np.minimum(problem.bits, up * problem.circuit_mbps).sum())
