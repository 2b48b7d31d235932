"""Loads of one region where the traffic that may change its CDN between windows is limited.

The relaxation of `program` with windows in the order of time gives a bound. Where it is too large, the one
without limits of switching does. Plans are the best of these:

- filling commitments first: every contract's load rises with the traffic, so that no traffic moves;
- the linear program in which the windows with the largest excess of the relaxation, or those of the plan
  without limits, are free;
- a mean of the plan without limits and the first, with as much of the former as the limits allow: what moves
  is at most that share of what moves in the former.

Where the month is small, the integer program of `program` follows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats
from planner.options import Options
from planner_models.contracts.designs import free_windows, program
from planner_models.contracts.designs.program import Region
from planner_models.contracts.designs.rules import pour_commitments_first

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
    candidates = [steady, _mix(region, free, steady)]
    if region.most.size <= MOST_CELLS:
        guides = [free] if relaxed is None else [free, relaxed]
        for guide in guides:
            found = _solve(region, _largest_excess(region, guide), options)
            candidates += [] if found is None else [found]
    kept = [load for load in candidates if is_within_limit(region, load)]
    return min(kept, key=lambda load: free_windows.load_cost(region, load), default=steady)


def _mix(region: Region, free: Floats, steady: Floats) -> Floats:
    """Return a mean of two loads, with as much of the first as the limit allows."""
    moved = moved_mbps(free)
    movable = region.moved_share * np.minimum(region.traffic[:-1], region.traffic[1:])
    shares = np.divide(movable, moved, out=np.ones_like(moved), where=moved > movable)
    part = float(shares.min(initial=1.0))
    return np.asarray(part * free + (1 - part) * steady)


def _largest_excess(region: Region, load: Floats) -> Bools:
    """Return the windows (W, N) in which each contract carries most, as many as are free."""
    is_free = np.zeros(load.shape, dtype=bool)
    for contract, count in enumerate(region.free.tolist()):
        is_free[np.argsort(-load[:, contract], kind="stable")[:count], contract] = True
    return is_free


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
