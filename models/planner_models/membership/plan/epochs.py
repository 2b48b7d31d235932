"""Epochs of process names: the share of cuts without a free one.

A cut of a rack takes a new epoch for processes that register later. An epoch stays in use while a process of
it lives, and a name has few bits for it (Leners et al. 2015, 5.4 and 6.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

DAYS: Final = 30.0
"""Days in a month."""


@dataclass(frozen=True, kw_only=True)
class EpochUse:
    """Processes and cuts that determine the number of epochs in use.

    processes        that live at a time, in all; one that ends is replaced by a new one
    life_days        mean life of a process, exponential
    cuts_per_month   cuts that take an epoch
    epochs_per_cut   epochs that a cut needs free; those that no process registers in come back
    """

    processes: float
    life_days: float
    cuts_per_month: float
    epochs_per_cut: int

    @property
    def load(self) -> float:
        """Epochs in use beside the current one with endless epochs: cuts in the time that one is in use.

        An epoch is in use until the last of its processes ends: life x (ln N - digamma(1 + cuts in a life)).
        """
        from scipy.special import digamma

        per_life = self.cuts_per_month / DAYS * self.life_days
        lives = math.log(max(self.processes, 1.0)) - float(digamma(1.0 + per_life))
        return per_life * max(lives, 0.0)


def erlang_b(servers: int, load: float) -> float:
    """Return the share of arrivals that find all servers busy (Erlang's loss formula); 1 for no servers."""
    if servers <= 0:
        return 1.0
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked


def cuts_without_epoch(bits: int, use: EpochUse) -> float:
    """Return the share of cuts that find too few free epochs, in closed form."""
    if use.cuts_per_month == 0:
        return 0.0
    return erlang_b(2**bits - use.epochs_per_cut, use.load)


def simulate_cuts(bits: int, use: EpochUse, *, years: float, rng: np.random.Generator) -> tuple[int, int]:
    """Return the cuts of some years, and those that found too few free epochs.

    The first tenth, in which epochs fill up, is not counted.

    Process by process: each has the epoch in which it registered. A cut without a free epoch is not made.
    """
    epochs, size = 2**bits, int(use.processes)
    label = np.zeros(size, dtype=np.int64)
    count = rng.poisson(use.cuts_per_month * 365 / DAYS * years)
    gaps = rng.exponential(DAYS / max(use.cuts_per_month, 1e-300), count)
    current, missed, cuts = 0, 0, 0
    for number, gap in enumerate(gaps.tolist()):
        label[rng.random(size) < -math.expm1(-gap / use.life_days)] = current
        is_used = np.zeros(epochs, dtype=bool)
        is_used[label] = True
        is_used[current] = True
        free = np.flatnonzero(~is_used)
        is_counted = number >= count // 10
        cuts += is_counted
        if len(free) >= use.epochs_per_cut:
            current = int(free[0])
        else:
            missed += is_counted
    return cuts, missed
