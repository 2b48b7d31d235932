"""Naive upper bounds: what each tier could carry if its links were one pipe (Mukerjee 2018, 4.7.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.problem import LiveVideo


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """At most this; None where nobody asks.

    clients_at_bitrate    % of the clients
    average_bitrate_kbps  over all clients, 0 for those not served
    """

    clients_at_bitrate: float | None
    average_bitrate_kbps: float | None


def bounds(problem: LiveVideo) -> Bounds:
    """The tightest of the tiers' bounds: demand beside the capacity of all its links together.

    Between two tiers an object that is watched crosses at least once, into the groups once for each
    group that watches. A tier takes what is worth most for its room first, the last in part.
    """
    everyone = float(problem.clients.sum())
    if not everyone:
        return Bounds(clients_at_bitrate=None, average_bitrate_kbps=None)
    last = len(problem.tiers) - 2
    level = problem.level[problem.tail]
    each = np.bincount(problem.object, weights=problem.clients, minlength=len(problem.objects)).astype(float)
    served, rate = [], []
    for step in range(last + 1):
        room = float(problem.capacity_mbps[level == step].sum())
        clients, need = (
            (problem.clients, problem.bitrate_mbps[problem.object])
            if step == last
            else (each, problem.bitrate_mbps)
        )
        served.append(_filled(clients, need, room))
        rate.append(_filled(clients * need, need, room))
    return Bounds(
        clients_at_bitrate=100 * min(served) / everyone, average_bitrate_kbps=1000 * min(rate) / everyone
    )


def _filled(worth: NDArray[np.float64], need: NDArray[np.float64], room: float) -> float:
    """The most worth that fits into the room, parts allowed."""
    order = np.argsort(-worth / need, kind="stable")
    used = np.cumsum(need[order])
    before = used - need[order]
    part = np.clip((room - before) / need[order], 0.0, 1.0)
    return float(worth[order] @ part)
