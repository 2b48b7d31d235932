"""Loads of one region where the traffic that may change its CDN between windows is limited.

The relaxation of `program` with windows in the order of time gives a bound. Where it is too large, the one
without limits of switching does. Plans are the best of these:

- loads that rise with the traffic, so that no traffic moves: filling commitments first, or the linear program
  over some windows in ascending order of traffic with no switching between them, interpolated;
- the linear program in which given windows are free: those of the plan without limits, those of most traffic
  for all contracts, or those that remain when, by halves, the windows in which a contract carries less in the
  program's solution are no longer free (diving);
- a mean of the plan without limits and the first, with as much of the former as the limits allow: what moves
  is at most that share of what moves in the former.

Where the month is small, the integer program of `program` follows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.options import Options
from planner_models.contracts.designs import free_windows, program
from planner_models.contracts.designs.program import Region
from planner_models.contracts.designs.rules import pour_commitments_first

LEVELS: Final = 150  # of traffic, for loads that rise with it
MOST_CELLS: Final = 30_000  # windows times contracts up to which programs over all windows are solved


def moved_mbps(load: Floats) -> Floats:
    """Return the traffic of (W, N) loads that changes its contract after each window, (W - 1,)."""
    together = load.sum(axis=1)
    lost = np.maximum(load[:-1] - load[1:], 0.0).sum(axis=1)
    return np.asarray(np.maximum(lost - np.maximum(together[:-1] - together[1:], 0.0), 0.0))


def is_within_limit(region: Region, load: Floats) -> bool:
    """Return whether (W, N) loads move no more traffic than they may."""
    movable = region.moved_share * np.minimum(region.traffic[:-1], region.traffic[1:])
    return region.moved_share >= 1 or bool((moved_mbps(load) <= movable + 1e-6 * region.traffic.max()).all())


def find_bound(region: Region, options: Options) -> tuple[float | None, Floats | None]:
    """Return the bound of the relaxation in the order of time, and its loads (W, N); None where unknown."""
    if region.most.size > MOST_CELLS:
        return None, None
    built = program.build(region, in_order=True)
    solution = backends.solve(built.program, options)
    load = None if solution.x is None else built.loads(solution.x, len(region.traffic))
    return solution.bound, load


def find_loads(region: Region, free: Floats, relaxed: Floats | None, options: Options) -> Floats:
    """Return the loads (W, N) of least cost found that keep the limit of switching.

    free     (W, N) loads that need not keep it
    relaxed  (W, N) loads of the relaxation in the order of time; None where there are none
    """
    steady = pour_commitments_first(region)
    rising = _find_rising(region, options)
    if rising is not None and free_windows.load_cost(region, rising) < free_windows.load_cost(region, steady):
        steady = rising
    candidates: list[Floats | None] = [steady, _mix(region, free, steady)]
    if region.most.size <= MOST_CELLS:
        busiest = np.broadcast_to(region.traffic[:, None], free.shape)
        candidates += [_solve(region, _largest(load, region.free), options) for load in (free, busiest)]
        candidates.append(_dive(region, relaxed, options))
    kept = [load for load in candidates if load is not None and is_within_limit(region, load)]
    return min(kept, key=lambda load: free_windows.load_cost(region, load), default=steady)


def _find_rising(region: Region, options: Options) -> Floats | None:
    """Return loads (W, N) that each rise with the traffic, so that none moves; None where none are found.

    Free windows are those of most traffic, for every contract.
    """
    windows, count = region.most.shape
    order = np.argsort(region.traffic, kind="stable")
    last_billed = windows - 1 - np.unique(region.free)
    ranks = np.unique(np.concatenate([np.linspace(0, windows - 1, LEVELS).astype(np.int64), last_billed]))
    at = order[ranks]
    is_free = ranks[:, None] >= windows - region.free
    some = replace(
        region,
        traffic=region.traffic[at],
        least=region.least[at],
        most=region.most[at],
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
    part = float(shares.min(initial=1.0))
    return np.asarray(part * free + (1 - part) * steady)


def _dive(region: Region, load: Floats | None, options: Options) -> Floats | None:
    """Return loads (W, N) from those of the relaxation, by taking away free windows by halves."""
    number = np.full(len(region.free), len(region.traffic))
    while load is not None and (number > region.free).any():
        number = np.maximum(number // 2, region.free)
        load = _solve(region, _largest(load, number), options)
    return load


def _largest(load: Floats, number: Ints) -> Bools:
    """Return the windows (W, N) in which each contract carries most, `number` (N,) of them."""
    is_largest = np.zeros(load.shape, dtype=bool)
    for contract, count in enumerate(number.tolist()):
        is_largest[np.argsort(-load[:, contract], kind="stable")[:count], contract] = True
    return is_largest


def _solve(region: Region, is_free: Bools, options: Options) -> Floats | None:
    """Return the loads (W, N) of least cost where the free windows are given; None where none are found."""
    built = program.build(region, is_free=is_free)
    solution = backends.solve(built.program, options)
    if solution.x is None:
        return None
    return program.repair(region, built.loads(solution.x, len(region.traffic)))


def without_limit(region: Region) -> Region:
    """Return the region without its limit of switching."""
    return replace(region, moved_share=1.0)
