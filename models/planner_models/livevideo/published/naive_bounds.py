"""Naive upper bounds: the links between two tiers as one link of total capacity (Mukerjee 2018, 4.7.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats
from planner_models.livevideo.problem.problem import LiveVideo


@dataclass(frozen=True, kw_only=True)
class NaiveBounds:
    """Upper bounds; None without clients.

    clients_at_bitrate    % of the clients
    average_bitrate_kbps  over all clients, 0 for those not served
    """

    clients_at_bitrate: float | None
    average_bitrate_kbps: float | None


def naive_bounds(problem: LiveVideo) -> NaiveBounds:
    """Return the tightest bounds of all tiers: the best use of the total capacity of a tier's links.

    Between two tiers an object with viewers crosses at least once, into the groups once for each group
    with viewers. Each tier is a fractional knapsack.
    """
    total = float(problem.clients.sum())
    if not total:
        return NaiveBounds(clients_at_bitrate=None, average_bitrate_kbps=None)
    level = problem.level[problem.tail]
    viewers = np.bincount(problem.object, weights=problem.clients, minlength=len(problem.objects))
    per_object = (viewers.astype(float), problem.bitrate_mbps)
    per_request = (problem.clients, problem.bitrate_mbps[problem.object])
    served, rate = [], []
    for step in range(problem.group_level):
        capacity_mbps = float(problem.capacity_mbps[level == step].sum())
        clients, need_mbps = per_request if step == problem.group_level - 1 else per_object
        served.append(_fill_capacity(clients, need_mbps, capacity_mbps))
        rate.append(_fill_capacity(clients * need_mbps, need_mbps, capacity_mbps))
    return NaiveBounds(
        clients_at_bitrate=100 * min(served) / total, average_bitrate_kbps=1000 * min(rate) / total
    )


def _fill_capacity(value: Floats, need: Floats, capacity: float) -> float:
    """Return the value of the fractional knapsack: items in descending order of value over need."""
    order = np.argsort(-value / need, kind="stable")
    before = np.cumsum(need[order]) - need[order]
    part = np.clip((capacity - before) / need[order], 0.0, 1.0)
    return float(value[order] @ part)
