"""Loads of one region where the traffic that may change its CDN between windows is limited.

The relaxation of `program` with windows in the order of time gives a bound. Where it is too large, the one
without limits of switching does. Plans are the best of these:

- loads that rise with the traffic, so that no traffic moves: filling commitments first, or the linear program
  over some windows in ascending order of traffic with no switching between them, interpolated;
- a mean of the plan without limits and the first, with as much of the former as the limits allow: what moves
  is at most that share of what moves in the former;
- the linear program over all windows in which those are free that simulated annealing chooses, several times
  over: in turn at the billed levels of its last best plan, and with levels of its own. Loose limits suit
  the former, tight ones the latter, so a kind whose plans cost clearly more is left out.

Where the month is small, the integer program of `program` follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.contracts.designs import annealing, free_windows, program
from planner_models.contracts.designs.program import Region
from planner_models.contracts.designs.rules import pour_commitments_first

LEVELS: Final = 150  # of traffic, for loads that rise with it
MOST_CELLS: Final = 30_000  # windows times contracts up to which programs over all windows are solved
TURNS: Final = 6  # of each kind of annealing and the program for its free windows
WORSE: Final = 1.005  # times the best cost: a kind of annealing beyond it is left out
SEED: Final = 1


def moved_mbps(load: Floats) -> Floats:
    """Return the traffic of (W, N) loads that changes its contract after each window, (W - 1,)."""
    together = load.sum(axis=1)
    lost = np.maximum(load[:-1] - load[1:], 0.0).sum(axis=1)
    return np.asarray(np.maximum(lost - np.maximum(together[:-1] - together[1:], 0.0), 0.0))


def is_within_limit(region: Region, load: Floats) -> bool:
    """Return whether (W, N) loads move no more traffic than they may."""
    movable = region.moved_share * np.minimum(region.traffic[:-1], region.traffic[1:])
    return region.moved_share >= 1 or bool((moved_mbps(load) <= movable + 1e-6 * region.traffic.max()).all())


def find_bound(region: Region, options: Options) -> float | None:
    """Return the bound of the relaxation in the order of time; None where unknown."""
    if region.most.size > MOST_CELLS:
        return None
    return backends.solve(program.build(region, in_order=True).program, options).bound


def find_loads(
    region: Region,
    free: Floats,
    options: Options,
    *,
    is_enough: Callable[[float], bool],
    deadline: Deadline,
) -> Floats:
    """Return the loads (W, N) of least cost found that keep the limit of switching.

    free       (W, N) loads that need not keep it
    is_enough  function that returns whether a cost ends the search
    deadline   when the search ends
    """
    steady = pour_commitments_first(region)
    rising = find_rising(region, options)
    if rising is not None and free_windows.load_cost(region, rising) < free_windows.load_cost(region, steady):
        steady = rising
    best = steady
    mixed = _mix(region, free, steady)
    if is_within_limit(region, mixed) and free_windows.load_cost(region, mixed) < free_windows.load_cost(
        region, steady
    ):
        best = mixed
    if region.most.size > MOST_CELLS or not (region.free > 0).any():
        return best
    return _anneal_in_turns(
        region, best, free_windows.levels_of(region, free), options, is_enough=is_enough, deadline=deadline
    )


def _anneal_in_turns(
    region: Region,
    best: Floats,
    first: Floats,
    options: Options,
    *,
    is_enough: Callable[[float], bool],
    deadline: Deadline,
) -> Floats:
    """Return the best of loads (W, N) and those for free windows that annealing chooses.

    first  (N,) billed levels at first
    """
    cost = free_windows.load_cost(region, best)
    kinds = (annealing.ALL, annealing.GIVEN_LEVELS)
    randoms = [np.random.default_rng(SEED) for _ in kinds]
    lowest, level = [np.inf for _ in kinds], first
    for kind in [*range(len(kinds))] * TURNS:
        if is_enough(cost) or deadline.is_over:
            break
        if WORSE * cost < lowest[kind] < np.inf:
            continue
        start = level if kinds[kind] is annealing.GIVEN_LEVELS else first
        choice = annealing.choose(region, start, kinds[kind], random=randoms[kind], deadline=deadline)
        load = _solve(region, choice.is_free, options)
        if load is None or not is_within_limit(region, load):
            continue
        now = free_windows.load_cost(region, load)
        if now < lowest[kind] and kinds[kind] is annealing.GIVEN_LEVELS:
            level = free_windows.levels_of(region, load)
        lowest[kind] = min(lowest[kind], now)
        if now < cost:
            best, cost = load, now
    return best


def find_rising(region: Region, options: Options) -> Floats | None:
    """Return loads (W, N) that each rise with the traffic, so that none moves; None where none are found.

    Free windows are those of most traffic, for every contract.
    """
    windows, count = region.most.shape
    order = np.argsort(region.traffic, kind="stable")
    last_billed = windows - 1 - np.unique(region.free)
    ranks = np.unique(np.concatenate([np.linspace(0, windows - 1, LEVELS).astype(np.int64), last_billed]))
    windows_of = order[ranks]
    is_free = ranks[:, None] >= windows - region.free
    some = replace(
        region,
        traffic=region.traffic[windows_of],
        least=region.least[windows_of],
        most=region.most[windows_of],
        free=is_free.sum(axis=0).astype(np.int64),
        moved_share=0.0,
    )
    load = _solve(some, is_free, options)
    if load is None:
        return None
    columns = [np.interp(region.traffic, some.traffic, load[:, contract]) for contract in range(count)]
    rising = program.repair(region, np.array(columns).T)
    return rising if is_within_limit(region, rising) else None


def _mix(region: Region, free: Floats, steady: Floats) -> Floats:
    """Return a mean of two loads, with as much of the first as the limit allows."""
    moved = moved_mbps(free)
    movable = region.moved_share * np.minimum(region.traffic[:-1], region.traffic[1:])
    shares = np.divide(movable, moved, out=np.ones_like(moved), where=moved > movable)
    fraction = float(shares.min(initial=1.0))
    return np.asarray(fraction * free + (1 - fraction) * steady)


def _solve(region: Region, is_free: Bools, options: Options) -> Floats | None:
    """Return the loads (W, N) of least cost where the free windows are given; None where none are found."""
    built = program.build(region, is_free=is_free)
    solution = backends.solve(built.program, options)
    if solution.x is None:
        return None
    return program.repair(region, built.load.values(solution.x))


def without_limit(region: Region) -> Region:
    """Return the region without its limit of switching."""
    return replace(region, moved_share=1.0)
