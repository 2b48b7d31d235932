"""The cheapest modules that give a link some capacity: a small covering knapsack, by enumeration."""

from __future__ import annotations

import math

import numpy as np

from planner.arrays import Floats
from planner.search.tolerances import ROUNDING
from planner_models.capacity.problem.problem import CapacityPlanning

MOST_NODES = 20_000
"""Partial choices that are tried for a link; after them the best one found is kept."""


def cheapest_modules(problem: CapacityPlanning, line: int, gap_mbps: float, bought: Floats) -> Floats:
    """Return how many more modules a link needs for `gap_mbps` more capacity, at the least cost, (M,).

    Where the limits allow less than that, it is as much as they allow.

    bought  (M,) modules that are bought already, which count against the limits
    """
    more = np.zeros(len(problem.options.link))
    places = np.flatnonzero(problem.options.link == line)
    if gap_mbps <= 0 or not len(places):
        return more
    size, cost = problem.options.size[places], problem.options.cost[places]
    left = np.maximum(problem.options.limit[places] - bought[places], 0.0)
    if problem.one_module:
        if bought[places].any():
            return more
        able = np.flatnonzero(left > 0)
        enough = able[size[able] >= gap_mbps * (1 - ROUNDING)]
        if len(enough):
            more[places[enough[np.lexsort((-size[enough], cost[enough]))[0]]]] = 1
        elif len(able):
            more[places[able[np.argmax(size[able])]]] = 1
        return more
    order = np.argsort(-size, kind="stable")
    more[places[order]] = _cover(size[order], cost[order], left[order], gap_mbps * (1 - ROUNDING))
    return more


def _cover(size: Floats, cost: Floats, limit: Floats, gap: float) -> Floats:
    """Return the cheapest counts whose sizes add up to a gap; all of them where they do not."""
    if float(np.where(np.isinf(limit), np.inf, limit * size).sum()) < gap:
        return limit.copy()
    # cheapest cost per unit among the kinds from each on, a bound on what the rest costs
    rate = np.minimum.accumulate((cost / size)[::-1])[::-1]
    best_cost, best = math.inf, limit.copy()
    tried = 0
    stack: list[tuple[int, float, float, tuple[float, ...]]] = [(0, gap, 0.0, ())]
    while stack and tried < MOST_NODES:
        kind, rest, spent, chosen = stack.pop()
        tried += 1
        if rest <= 0:
            if spent < best_cost:
                best_cost, best = spent, np.array([*chosen, *[0.0] * (len(size) - len(chosen))])
            continue
        if kind == len(size) or spent + rest * rate[kind] >= best_cost:
            continue
        most = min(math.ceil(rest / size[kind] - ROUNDING), limit[kind])
        least = 0.0 if kind + 1 < len(size) else most
        stack += [  # the largest count is tried first
            (kind + 1, rest - count * size[kind], spent + count * cost[kind], (*chosen, count))
            for count in np.arange(least, most + 1).tolist()
        ]
    return best
