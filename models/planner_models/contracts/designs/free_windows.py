"""Primal heuristic of one region: a coordinate search of billed levels, and the loads for them.

Levels are rated by the master program of `burst_sets`, which also chooses the free windows. With these given,
levels and the loads of contracts that are billed by the mean are a linear program over windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import FEASIBILITY, ROUNDING
from planner_models.contracts.designs import burst_sets
from planner_models.contracts.designs.program import Region

SEARCH_GROUPS: Final = 240  # of windows, in the search
FINAL_GROUPS: Final = 960  # of windows, for the levels that the search ends with
FITS: Final = ROUNDING  # relative to the traffic
STEPS: Final = (0.1, 0.03, 0.01, 0.003, 0.001)  # of the largest most load, in the coordinate search
LEAST_CHANGE: Final = FEASIBILITY  # of the cost: smaller improvements are none
RAISES: Final = 8  # halvings of the interval of levels that carry all traffic
WITHIN_LEVELS: Final = 0.1  # of the levels' sum: windows this far below it are rows of the linear program


class Filling(NamedTuple):
    """The loads for given levels.

    load     (W, N) Mbit/s
    missing  largest traffic of a window that has no contract, Mbit/s
    cost     bill of the loads
    """

    load: Floats
    missing: float
    cost: float


def fill(region: Region, level: Floats, is_free: Bools, mean_load: Floats | None = None) -> Filling:
    """Return loads for billed levels (N,) and free windows (W, N).

    mean_load  (W, N) loads of contracts billed by the mean; None: what free and paid levels leave, committed
               volumes first
    """
    limited = np.maximum(np.minimum(region.most, level), region.least)
    allowed = np.where(region.is_mean, region.least, np.where(is_free, region.most, limited))
    load = region.least.copy()
    if mean_load is not None:
        load[:, region.is_mean] = mean_load[:, region.is_mean]
        allowed = np.maximum(allowed, load)
    remaining = np.maximum(region.traffic - load.sum(axis=1), 0.0)
    unused = allowed - load
    total = unused.sum(axis=1)
    share = np.divide(remaining, total, out=np.zeros_like(remaining), where=total > 0).clip(0.0, 1.0)
    load += share[:, None] * unused
    remaining = np.maximum(region.traffic - load.sum(axis=1), 0.0)
    mean = np.flatnonzero(region.is_mean)
    windows = len(remaining)
    for prepaid in (True, False):  # committed volumes first
        prices = [region.steps[row][1][0] for row in mean]
        for contract in mean[np.argsort(prices, kind="stable")]:
            take = np.minimum(remaining, region.most[:, contract] - load[:, contract])
            if prepaid:
                committed = region.commitment[contract] * windows - load[:, contract].sum()
                take = take * np.clip(committed / max(float(take.sum()), 1e-12), 0.0, 1.0)
            load[:, contract] += take
            remaining = np.maximum(remaining - take, 0.0)
    over = np.maximum(
        load.sum(axis=1) - region.traffic, 0.0
    )  # where mean loads and least shares are too much
    for contract in mean:
        cut = np.minimum(over, load[:, contract] - region.least[:, contract])
        load[:, contract] -= cut
        over -= cut
    return Filling(load=load, missing=float(remaining.max(initial=0.0)), cost=load_cost(region, load))


def load_cost(region: Region, load: Floats) -> float:
    """Return the bill of (W, N) loads."""
    rows = np.arange(load.shape[1])
    billed = np.sort(load, axis=0)[len(load) - 1 - np.minimum(region.free, len(load) - 1), rows]
    volumes = np.where(region.is_mean, load.mean(axis=0), billed)
    return sum(region.amount(row, float(volume)) for row, volume in enumerate(volumes))


def is_complete(region: Region, filling: Filling) -> bool:
    """Return whether all traffic that can be carried is."""
    return filling.missing <= FITS * max(float(region.traffic.max(initial=0.0)), 1.0)


def complete(
    region: Region, level: Floats, options: Options, *, deadline: Deadline = NEVER
) -> Filling | None:
    """Return a filling that carries all traffic, from levels raised to that end; None where none does.

    Levels rise together, by the same share of what is between them and the most loads. Then free windows are
    kept, and a linear program lowers the levels again. Where no time is left, the first that carry all stay.

    deadline  when the search ends
    """
    highest = region.level_limits[1]

    def attempt(middle: float) -> tuple[Filling, Bools]:
        raised = level + middle * (highest - level)
        is_free = burst_sets.choose(region, raised, groups=FINAL_GROUPS).is_free
        return fill(region, raised, is_free), is_free

    best, is_free = attempt(0.0)
    if not is_complete(region, best):
        best, is_free = attempt(1.0)
        if not is_complete(region, best):
            return None
        low, high = 0.0, 1.0
        for _ in range(RAISES):
            if deadline.is_over:
                return best
            middle = (low + high) / 2
            now, free = attempt(middle)
            if is_complete(region, now):
                high = middle
                best, is_free = (now, free) if now.cost <= best.cost else (best, is_free)
            else:
                low = middle
    if deadline.is_over:
        return best
    options = deadline.options(options)
    better = _solve_for_free_windows(region, levels_of(region, best.load), is_free, options)
    return best if better is None or better.cost >= best.cost else better


def _solve_for_free_windows(
    region: Region, level: Floats, is_free: Bools, options: Options
) -> Filling | None:
    """Return the filling of least cost where the free windows (W, N) are given; None where none is found.

    Windows far below the sum of levels (N,) have no row. Prices of billed volumes are those of their steps,
    where falling ones count from the volumes of `level`.
    """
    paid, mean = np.flatnonzero(~region.is_mean), np.flatnonzero(region.is_mean)
    limited = np.maximum(np.minimum(region.most, level), region.least)
    allowed = np.where(is_free, region.most, limited)[:, paid]
    above = region.traffic - allowed.sum(axis=1) - region.least[:, mean].sum(axis=1)
    rows = np.flatnonzero(above > -WITHIN_LEVELS * float(level[paid].sum()))
    moves = (~is_free & (region.most >= level) & (region.least <= level))[np.ix_(rows, paid)]
    fixed = np.where(moves, 0.0, allowed[rows]).sum(axis=1) + region.least[np.ix_(rows, mean)].sum(axis=1)
    prices = np.array([price_at(region, row, float(level[row])) for row in range(len(level))])
    min_level, max_level = region.level_limits
    # volumes beyond the commitment are paid for
    unused = region.commitment[mean] - region.least[:, mean].mean(axis=0)

    m = ProgramBuilder(name="levels")
    lowest = np.maximum(min_level, np.minimum(region.commitment, max_level))[paid]
    q = m.variables("level", len(paid), lower=lowest, upper=max_level[paid], cost=prices[paid])
    x = m.variables("load", (len(rows), len(mean)), upper=(region.most - region.least)[np.ix_(rows, mean)])
    v = m.variables("volume", len(mean), cost=prices[mean])
    m.constrain("served", moves @ q + x.sum(axis=1), lower=region.traffic[rows] - fixed)
    m.constrain("volume", v - x.sum(axis=0) / len(region.traffic), lower=-np.maximum(unused, 0.0))
    solution = backends.solve(m.build(), options)
    if solution.x is None:
        return None
    changed = level.copy()
    changed[paid] = q.values(solution.x)
    mean_load = region.least.copy()
    mean_load[np.ix_(rows, mean)] += x.values(solution.x)
    completed = fill(region, changed, is_free, np.minimum(mean_load, region.most))
    return completed if is_complete(region, completed) else None


def price_at(region: Region, contract: int, volume: float) -> float:
    """Return the price of a contract's billed Mbit/s at a volume."""
    volumes, prices = region.steps[contract]
    return float(prices[max(int(np.searchsorted(volumes, volume, side="left")) - 1, 0)])


def levels_of(region: Region, load: Floats) -> Floats:
    """Return the billed level of each contract in (W, N) loads, at least its commitment."""
    rows = np.arange(load.shape[1])
    billed = np.sort(load, axis=0)[len(load) - 1 - np.minimum(region.free, len(load) - 1), rows]
    return np.asarray(np.minimum(np.maximum(billed, region.commitment), region.level_limits[1]))


def search(
    region: Region, level: Floats, *, is_enough: Callable[[float], bool], deadline: Deadline
) -> Floats:
    """Return levels (N,) that the master program rates no worse, by changing one or two at a time.

    is_enough  function that returns whether a cost ends the search
    deadline   when the search ends
    """
    min_level, max_level = region.level_limits
    floor = np.maximum(min_level, np.minimum(region.commitment, max_level))
    paid = np.flatnonzero(~region.is_mean)
    level = np.maximum(level, floor)
    master = burst_sets.MasterProgram(region, SEARCH_GROUPS)
    cost = master.rate(level)

    def ends(cost: float) -> bool:
        return is_enough(cost) or deadline.is_over

    for step in STEPS:
        is_better = True
        while is_better:
            is_better = False
            for contract in paid.tolist():
                size = step * float(max_level[paid].max())
                changes = _changed_levels(level, contract, size, floor, max_level)
                cost, better, is_over = _find_better(master, changes, cost, ends)
                if is_over:
                    return level
                if better is not None:
                    level, is_better = better, True
    return level


def _find_better(
    master: burst_sets.MasterProgram, changes: Iterator[Floats], cost: float, ends: Callable[[float], bool]
) -> tuple[float, Floats | None, bool]:
    """Return a lower cost and the first levels that have it, None for none, and whether the search ends."""
    for changed in changes:
        if ends(cost):
            return cost, None, True
        lower = cost * (1 - LEAST_CHANGE)
        now = master.rate(changed, lower)
        if now < lower:
            return now, changed, False
    return cost, None, False


def _changed_levels(
    level: Floats, contract: int, size: float, floor: Floats, max_level: Floats
) -> Iterator[Floats]:
    """Yield levels with a contract's lower or higher by `size`, or lower and another's higher by as much."""
    lower = level.copy()
    lower[contract] = max(level[contract] - size, floor[contract])
    change = level[contract] - lower[contract]
    if change > 0:
        yield lower
    higher = level.copy()
    higher[contract] = min(level[contract] + size, max_level[contract])
    if higher[contract] > level[contract]:
        yield higher
    if change <= 0:
        return
    for other in range(len(level)):
        if other != contract and level[other] < max_level[other]:
            moved = lower.copy()
            moved[other] = min(level[other] + change, max_level[other])
            yield moved
