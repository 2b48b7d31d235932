"""Heartbeats one by one: the alarms of a timeout, for the closed forms of `plan.watching` to be held to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats
from planner.contract.units import MONTH_S


@dataclass(frozen=True, kw_only=True)
class Beats:
    """One watched process: its heartbeats, their loss and delay, and its pauses.

    spread_s  mean of the exponential part of a delay, s
    pauses    number in a month and mean length, s, of exponential pauses
    """

    interval_s: float
    loss: float
    spread_s: float
    pauses: Sequence[tuple[float, float]] = ()


def count_alarms(beats: Beats, timeout_s: float, heartbeats: int, rng: np.random.Generator) -> int:
    """Return the silences longer than a timeout between heartbeats that arrive, of some that are sent."""
    sent: Floats = np.arange(heartbeats, dtype=float) * beats.interval_s
    sent = sent[~_paused(beats, sent, rng)]
    sent = sent[rng.random(len(sent)) >= beats.loss]
    arrival = np.sort(sent + rng.exponential(1.0, len(sent)) * beats.spread_s)
    return int((np.diff(arrival) > timeout_s).sum())


def _paused(beats: Beats, sent: Floats, rng: np.random.Generator) -> np.ndarray:
    """Return whether each heartbeat falls into a pause, and is not sent."""
    is_paused = np.zeros(len(sent), dtype=bool)
    horizon = len(sent) * beats.interval_s
    for per_month, mean_s in beats.pauses:
        count = rng.poisson(per_month * horizon / MONTH_S)
        start = np.sort(rng.uniform(0.0, horizon, count))
        end = start + rng.exponential(mean_s, count)
        first, last = np.searchsorted(sent, start), np.searchsorted(sent, end)
        change = np.zeros(len(sent) + 1, dtype=np.int64)
        np.add.at(change, first, 1)
        np.add.at(change, last, -1)
        is_paused |= np.cumsum(change[:-1]) > 0
    return is_paused
