"""Check of the limits of a plan, from its tables alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.plan import Violations
from planner_models.contracts.plan.plan import Loads, read_loads
from planner_models.contracts.problem.problem import Month

TOLERANCE: Final = 1e-6  # relative to the traffic of the region in the window


def region_loads(problem: Month, load_mbps: Floats) -> Floats:
    """Return the traffic that all contracts of a region carry together, (W, R), from (W, N) loads."""
    together = np.zeros_like(problem.traffic_mbps)
    np.add.at(together.T, problem.region, load_mbps.T)
    return together


def check(problem: Month, plan: Loads) -> Violations:
    """Return the constraint violations of the plan, by name.

    capacity   a contract carries more than its capacity
    max_share  a contract carries more than its largest share of the region's traffic
    min_share  a contract carries less than its least share, where its capacity allows that
    traffic    contracts carry more than the region's traffic
    served     contracts carry less than they could

    PlanRejected where it is no plan: see `read_loads`.
    """
    load = read_loads(problem, plan)
    traffic = problem.traffic_mbps
    demand = traffic[:, problem.region]
    slack = TOLERANCE * np.maximum(demand, 1.0)
    shares = {name: problem.column(name) * demand for name in ("min_share", "max_share")}
    capacity = np.broadcast_to(problem.column("capacity_mbps"), load.shape)
    least = np.minimum(shares["min_share"], np.minimum(capacity, shares["max_share"]))
    found = _places(problem, "capacity", load, capacity, load > capacity + slack)
    found += _places(problem, "max_share", load, shares["max_share"], load > shares["max_share"] + slack)
    found += _places(problem, "min_share", load, least, load < least - slack)
    together, slack = region_loads(problem, load), TOLERANCE * np.maximum(traffic, 1.0)
    servable = problem.servable_mbps
    found += _regions(problem, "traffic", together, traffic, together > traffic + slack)
    return found + _regions(problem, "served", together, servable, together < servable - slack)


def _places(problem: Month, limit: str, load: Floats, allowed: Floats, broken: Bools) -> Violations:
    window, contract = np.nonzero(broken)
    return Violations.of(
        limit,
        where=[
            f"{problem.names[c]}, window {w + 1}"
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
            f"{problem.regions[r]}, window {w + 1}"
            for w, r in zip(window.tolist(), region.tolist(), strict=True)
        ],
        amount=load[window, region],
        allowed=allowed[window, region],
        unit="Mbit/s",
    )
