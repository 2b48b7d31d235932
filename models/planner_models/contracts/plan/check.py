"""Check of the limits of a plan, from its tables alone."""

from __future__ import annotations

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.plan import Violations
from planner.contract.tolerances import allowance, exceeds, falls_short
from planner_models.contracts.plan.plan import Loads, read_loads
from planner_models.contracts.problem.problem import Month


def region_loads(problem: Month, load_mbps: Floats) -> Floats:
    """Return the traffic that all contracts of a region carry together, (W, R), from (W, N) loads."""
    together = np.zeros_like(problem.traffic_mbps)
    np.add.at(together.T, problem.region, load_mbps.T)
    return together


def moved_mbps(problem: Month, load_mbps: Floats) -> Floats:
    """Return the traffic that changes its CDN after each window but the last, (W - 1, R), from (W, N) loads.

    It is what contracts lose from a window to the next, less the region's fall in traffic.
    """
    together = region_loads(problem, load_mbps)
    lost = np.zeros((len(load_mbps) - 1, together.shape[1]))
    np.add.at(lost.T, problem.region, np.maximum(load_mbps[:-1] - load_mbps[1:], 0.0).T)
    fall = np.maximum(together[:-1] - together[1:], 0.0)
    return np.maximum(lost - fall, 0.0)


def check(problem: Month, plan: Loads) -> Violations:
    """Return the constraint violations of the plan, by name.

    capacity   a contract carries more than its capacity, which is 0 where it is not in force
    max_share  a contract carries more than its largest share of the region's traffic
    min_share  a contract carries less than its least share, where its capacity allows that
    traffic    contracts carry more than the region's traffic
    served     contracts carry less than they could
    moved      more traffic changes its CDN from a window to the next than may

    PlanRejected where it is no plan: see `read_loads`.
    """
    load = read_loads(problem, plan)
    traffic = problem.traffic_mbps
    demand = traffic[:, problem.region]
    shares = {name: problem.column(name) * demand for name in ("min_share", "max_share")}
    capacity = problem.capacity_mbps
    lower = np.minimum(shares["min_share"], np.minimum(capacity, shares["max_share"]))
    violations = _places(problem, "capacity", load, capacity, exceeds(load, capacity))
    violations += _places(problem, "max_share", load, shares["max_share"], exceeds(load, shares["max_share"]))
    violations += _places(problem, "min_share", load, lower, falls_short(load, lower))
    together, servable = region_loads(problem, load), problem.servable_mbps
    violations += _regions(problem, "traffic", together, traffic, exceeds(together, traffic))
    violations += _regions(problem, "served", together, servable, falls_short(together, servable))
    moved = moved_mbps(problem, load)
    common = np.minimum(together[:-1], together[1:])
    allowed = problem.moved_share * common
    # what moves is the difference of two windows' traffic, each kept relative to itself
    over = (problem.moved_share < 1) & (moved > allowed + allowance(together[:-1] + together[1:]))
    return violations + _regions(problem, "moved", moved, allowed, over)


def _places(problem: Month, limit: str, load: Floats, allowed: Floats, broken: Bools) -> Violations:
    window, contract = np.nonzero(broken)
    return Violations.of(
        limit,
        where=[
            f"{problem.names[c]}, {problem.describe_window(w)}"
            for w, c in zip(window.tolist(), contract.tolist(), strict=True)
        ],
        amount=load[window, contract],
        allowed=allowed[window, contract],
        unit="Mbit/s",
    )


def _regions(problem: Month, limit: str, load: Floats, allowed: Floats, broken: Bools) -> Violations:
    window, region = np.nonzero(broken)
    return Violations.of(
        limit,
        where=[
            f"{problem.regions[r]}, {problem.describe_window(w)}"
            for w, r in zip(window.tolist(), region.tolist(), strict=True)
        ],
        amount=load[window, region],
        allowed=allowed[window, region],
        unit="Mbit/s",
    )
