"""Primal heuristic of one region: free windows for given billed levels, the loads, and a coordinate search.

Given the level up to which each contract's windows are billed, contracts take their free windows in
descending order of what a free window adds: each those windows in which most traffic is still without a
contract, like longest processing time first. What remains goes to contracts that are billed by the mean.

source  Singh et al., NSDI 2021 (CASCARA): free windows of contracts in turn, at the largest traffic
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner_models.contracts.designs.program import Region

FITS: Final = 1e-9  # relative to the traffic
STEPS: Final = (0.1, 0.03, 0.01, 0.003, 0.001)  # of a contract's most traffic, in the coordinate search


class Filling(NamedTuple):
    """The loads for given levels.

    load     (W, N) Mbit/s
    missing  largest traffic of a window that has no contract, Mbit/s
    cost     bill of the loads
    """

    load: Floats
    missing: float
    cost: float


def choose_free_windows(region: Region, level: Floats) -> tuple[Bools, Floats]:
    """Return the free windows (W, N) of each contract for levels (N,), and the most load then, (W, N)."""
    windows = len(region.traffic)
    allowed = np.where(region.is_mean, region.least, np.minimum(region.most, level))
    allowed = np.maximum(allowed, np.minimum(region.least, allowed))
    is_free = ~region.is_mean & (region.least > level * (1 + FITS))  # least shares above the level
    allowed = np.where(is_free, region.most, allowed)
    missing = region.traffic - allowed.sum(axis=1)
    gain = np.where(region.is_mean | is_free, 0.0, region.most - allowed)
    left = region.free - is_free.sum(axis=0)
    for contract in np.argsort(-gain.max(axis=0, initial=0.0), kind="stable").tolist():
        count = int(left[contract])
        if count <= 0:
            continue
        useful = np.minimum(gain[:, contract], np.maximum(missing, 0.0))
        if region.most[:, contract].min() < region.most[:, contract].max():
            order = useful  # the most load differs by window: the largest gains first
        else:
            order = np.where(useful > 0, missing, 0.0)
        at = np.arange(windows) if count >= windows else np.argpartition(-order, count)[:count]
        at = at[useful[at] > 0]
        is_free[at, contract] = True
        missing[at] -= gain[at, contract]
        allowed[at, contract] = region.most[at, contract]
    return is_free, allowed


def fill(region: Region, level: Floats) -> Filling:
    """Return loads for billed levels (N,): free and paid levels first, then contracts billed by the mean."""
    allowed = choose_free_windows(region, level)[1]
    load = np.minimum(region.least, allowed)
    rest = region.traffic - load.sum(axis=1)
    room = allowed - load
    total = room.sum(axis=1)
    share = np.divide(rest, total, out=np.zeros_like(rest), where=total > 0).clip(0.0, 1.0)
    load += share[:, None] * room
    rest = np.maximum(region.traffic - load.sum(axis=1), 0.0)
    mean = np.flatnonzero(region.is_mean)
    windows = len(rest)
    for prepaid in (True, False):  # committed volumes first
        prices = [region.steps[row][1][0] for row in mean]
        for contract in mean[np.argsort(prices, kind="stable")]:
            take = np.minimum(rest, region.most[:, contract] - load[:, contract])
            if prepaid:
                unused = region.commitment[contract] * windows - load[:, contract].sum()
                take = take * np.clip(unused / max(float(take.sum()), 1e-12), 0.0, 1.0)
            load[:, contract] += take
            rest = np.maximum(rest - take, 0.0)
    missing = float(rest.max(initial=0.0))
    return Filling(load=load, missing=missing, cost=load_cost(region, load))


def load_cost(region: Region, load: Floats) -> float:
    """Return the bill of (W, N) loads."""
    rows = np.arange(load.shape[1])
    billed = np.sort(load, axis=0)[len(load) - 1 - np.minimum(region.free, len(load) - 1), rows]
    volumes = np.where(region.is_mean, load.mean(axis=0), billed)
    return sum(region.amount(row, float(volume)) for row, volume in enumerate(volumes))


def is_complete(region: Region, filling: Filling) -> bool:
    """Return whether all traffic that can be carried is."""
    return filling.missing <= FITS * max(float(region.traffic.max(initial=0.0)), 1.0)


def raise_levels(region: Region, level: Floats) -> Filling | None:
    """Return a filling that carries all traffic, from levels raised to that end; None where none does.

    Levels rise together, by the same share of what is between them and the most loads.
    """
    highest = region.level_limits[1]
    low, high = 0.0, 1.0
    best = fill(region, highest)
    if not is_complete(region, best):
        return None
    if is_complete(region, now := fill(region, level)):
        return now
    for _ in range(14):
        middle = (low + high) / 2
        now = fill(region, level + middle * (highest - level))
        if is_complete(region, now):
            best, high = (now if now.cost <= best.cost else best), middle
        else:
            low = middle
    return best


def levels_of(region: Region, load: Floats) -> Floats:
    """Return the billed level of each contract in (W, N) loads, at least its commitment."""
    rows = np.arange(load.shape[1])
    billed = np.sort(load, axis=0)[len(load) - 1 - np.minimum(region.free, len(load) - 1), rows]
    return np.asarray(np.minimum(np.maximum(billed, region.commitment), region.level_limits[1]))


def improve(
    region: Region, level: Floats, best: Filling, *, enough: float, time_left: Callable[[], float]
) -> Filling:
    """Return a filling no worse than `best`, by changing one level, or two against each other, at a time.

    enough     cost at which the search stops
    time_left  function that returns the seconds left
    """
    least, most = region.level_limits
    floor = np.maximum(least, np.minimum(region.commitment, most))
    paid = np.flatnonzero(~region.is_mean)
    level = np.maximum(level, floor)

    def attempt(changed: Floats) -> bool:
        nonlocal best, level
        now = fill(region, changed)
        if is_complete(region, now) and now.cost < best.cost * (1 - 1e-9):
            best, level = now, changed
            return True
        return False

    for step in STEPS:
        is_better = True
        while is_better:
            is_better = False
            for contract in paid.tolist():
                if best.cost <= enough or time_left() <= 0:
                    return best
                size = step * float(most[contract])
                is_better |= any(attempt(one) for one in _changed_levels(level, contract, size, floor, most))
    return best


def _changed_levels(
    level: Floats, contract: int, size: float, floor: Floats, most: Floats
) -> Iterator[Floats]:
    """Yield levels with a contract's lower by `size`, then with another contract's higher by as much."""
    lower = level.copy()
    lower[contract] = max(level[contract] - size, floor[contract])
    change = level[contract] - lower[contract]
    if change <= 0:
        return
    yield lower
    for other in range(len(level)):
        if other != contract and level[other] < most[other]:
            moved = lower.copy()
            moved[other] = min(level[other] + change, most[other])
            yield moved
