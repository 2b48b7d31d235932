"""Demands that some route can serve: one over working links that keeps latency limit and rules."""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Iterable
from typing import Final

import numpy as np

from planner.arrays import Bools
from planner.formatting import amount
from planner_models.flows.route_limits import Conditions, RouteLimits
from planner_models.traffic.problem.problem import Traffic

MAX_NAMED: Final = 3  # demands that a sentence names
MAX_LABELS: Final = 50_000  # of one demand under conditions
NO_CONDITIONS: Final = Conditions((), ())

_known: weakref.WeakKeyDictionary[Traffic, Bools] = weakref.WeakKeyDictionary()


def has_route(problem: Traffic) -> Bools:
    """Return whether a demand has a rate and a route that keeps its limits, shape (K,)."""
    cached = _known.get(problem)
    if cached is None:
        cached = _known[problem] = _find_routes(problem)
    return cached


def _find_routes(problem: Traffic) -> Bools:
    mask = (problem.rate_mbps > 0) & ~problem.unreachable
    limits = RouteLimits.of(problem)
    if limits is None or not mask.any():
        return mask
    leaving: list[list[int]] = [[] for _ in range(len(problem.nodes))]
    for link in np.flatnonzero(problem.capacity_mbps > 0).tolist():
        leaving[int(problem.tail[link])].append(link)
    plain: dict[tuple[int, int], list[int]] = {}  # by set of links and source: one search for all targets
    for k in np.flatnonzero(mask).tolist():
        if k in limits.conditions:
            mask[k] = _has_simple_route(problem, limits, k, leaving, limits.conditions[k])
        elif limits.allowed_of[k] or np.isfinite(limits.max_latency_ms[k]):
            plain.setdefault((int(limits.allowed_of[k]), int(problem.source[k])), []).append(k)
    for demands in plain.values():
        reached = _least_latencies(problem, limits, demands[0], leaving, NO_CONDITIONS)
        for k in demands:
            mask[k] = _least(reached, int(problem.target[k]), NO_CONDITIONS) <= limits.max_latency_ms[k]
    return mask


_State = tuple[int, tuple[int, tuple[int, ...]]]
"""A node, and the state of the conditions there."""


def _least(reached: dict[_State, float], target: int, conditions: Conditions) -> float:
    """Return the least latency, ms, at which the target is reached with all conditions met; inf for none."""
    latencies: Iterable[float] = (
        latency
        for (node, (met, _)), latency in reached.items()
        if node == target and met == conditions.all_met
    )
    return min(latencies, default=np.inf)


def _least_latencies(
    problem: Traffic, limits: RouteLimits, demand: int, leaving: list[list[int]], conditions: Conditions
) -> dict[_State, float]:
    """Return the least latency, ms, of each node and state that routes from a demand's source reach.

    Dijkstra's algorithm over nodes and states, over the links that the demand may use.
    """
    allowed = limits.allowed[limits.allowed_of[demand]]
    source = int(problem.source[demand])
    first = conditions.start(source)
    if first is None:
        return {}
    latency_of: dict[_State, float] = {}
    queue: list[tuple[float, _State]] = [(0.0, (source, first))]
    while queue:
        latency, state = heapq.heappop(queue)
        if state in latency_of:
            continue
        latency_of[state] = latency
        node, (met, passed) = state
        for link in leaving[node]:
            head = int(problem.head[link])
            after = conditions.step(met, passed, head) if allowed[link] else None
            if after is not None and (head, after) not in latency_of:
                heapq.heappush(queue, (latency + float(limits.latency_ms[link]), (head, after)))
    return latency_of


def _has_simple_route(
    problem: Traffic, limits: RouteLimits, demand: int, leaving: list[list[int]], conditions: Conditions
) -> bool:
    """Return whether a route that passes no node twice keeps limits and conditions of a demand.

    By increasing latency; where more than MAX_LABELS routes begin so, there is taken to be one.
    """
    target, limit = int(problem.target[demand]), float(limits.max_latency_ms[demand])
    reached = _least_latencies(problem, limits, demand, leaving, conditions)
    if _least(reached, target, conditions) > limit:
        return False  # not even one that passes nodes twice
    allowed = limits.allowed[limits.allowed_of[demand]]
    source = int(problem.source[demand])
    first = conditions.start(source)
    queue: list[tuple[float, int, tuple[int, ...], tuple[int, tuple[int, ...]]]] = []
    if first is not None:
        queue.append((0.0, 0, (source,), first))
    labels = 1
    while queue and labels <= MAX_LABELS:
        latency, _, path, (met, passed) = heapq.heappop(queue)
        if path[-1] == target:
            if met == conditions.all_met:
                return True
            continue
        for link in leaving[path[-1]]:
            head, later = int(problem.head[link]), latency + float(limits.latency_ms[link])
            if not allowed[link] or head in path or later > limit:
                continue
            after = conditions.step(met, passed, head)
            if after is not None:
                heapq.heappush(queue, (later, labels, (*path, head), after))
                labels += 1
    return labels > MAX_LABELS


def say_without_route(problem: Traffic) -> str:
    """Return the sentence that names demands which no plan can serve; "" where there is none."""
    lacking = np.flatnonzero((problem.rate_mbps > 0) & ~has_route(problem))
    if not len(lacking):
        return ""
    count, rate = len(lacking), float(problem.rate_mbps[lacking].sum())
    largest_first = lacking[np.argsort(-problem.rate_mbps[lacking], kind="stable")]
    names = [problem.demand_labels[k] for k in largest_first[:MAX_NAMED].tolist()]
    shown = ", ".join(names) + (f" and {count - MAX_NAMED:,} more" if count > MAX_NAMED else "")
    has_path = ~problem.unreachable[lacking]
    limits = " that keeps its latency limit and rules" if has_path.any() else ""
    verb = "demand has" if count == 1 else "demands have"
    if count > 1:
        limits = limits.replace("its", "their")
    return f"{count:,} {verb} no path{limits}: {shown} ({amount(rate, 'Mbit/s')})."
