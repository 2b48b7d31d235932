"""Fair shares: what each tenant would get if the store were one pool of capacity."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats
from planner_models.fairshare.problem.problem import SharedStore


def entitlement(problem: SharedStore) -> Floats:
    """Return the requests that each tenant is due at level 1, (T,), thousands per second.

    With requests as the only resource, this is its weight times the capacity of all nodes. Else its dominant
    resource counts: the one of which a request takes the largest part (Ghodsi et al. 2011). It is 0 for a
    tenant that cannot be served at all, such as one that uses a resource that no node has.
    """
    total = problem.capacity.sum(axis=0)
    part = np.divide(
        problem.per_op, total, out=np.where(problem.per_op > 0, np.inf, 0.0), where=total > 0
    ).max(axis=1)
    due: Floats = problem.weight / np.maximum(part, 1e-300)
    return np.where(np.isfinite(part) & (part > 0), due, 0.0)


def fill_level(cost: Floats, demand: Floats, due: Floats, capacity: float) -> float:
    """Return the largest level at which sum(cost * min(demand, level * due)) is at most the capacity.

    It is infinite where the capacity is enough for all demand.

    cost, demand, due  (T,)
    """
    used = (cost > 0) & (demand > 0)
    cost, demand, due = cost[used], demand[used], due[used]
    if float(cost @ demand) <= capacity:
        return np.inf
    with np.errstate(divide="ignore"):
        full = np.where(due > 0, demand / np.maximum(due, 1e-300), np.inf)
    order = np.argsort(full, kind="stable")
    cost, demand, due, full = cost[order], demand[order], due[order], full[order]
    served = np.concatenate([[0.0], np.cumsum(cost * demand)[:-1]])  # by tenants with all their demand
    slope = np.cumsum((cost * due)[::-1])[::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        level = (capacity - served) / slope
    fits = np.flatnonzero((level <= full) & (slope > 0))
    return max(float(level[fits[0]]), 0.0) if len(fits) else np.inf


def pool_level(
    problem: SharedStore, *, demand_kops: Floats | None = None, capacity: Floats | None = None
) -> float:
    """Return the weighted max-min level of a store that is one pool of each resource.

    No plan gives more to every tenant that wants more. Where all demand fits, it is the level at which all
    tenants have their demand.

    demand_kops  (T,) requests of tenants; default: those of the problem
    capacity     (R,) of all nodes; default: that of the problem
    """
    due = entitlement(problem)
    demand = problem.demand_of_tenant if demand_kops is None else demand_kops
    total = problem.capacity.sum(axis=0) if capacity is None else capacity
    levels = [
        fill_level(problem.per_op[:, r], np.where(due > 0, demand, 0.0), due, float(total[r]))
        for r in range(len(total))
    ]
    level = min(levels)
    if np.isfinite(level):
        return level
    known = due > 0
    return float((demand[known] / due[known]).max(initial=0.0))


def fair_share_kops(
    problem: SharedStore, *, demand_kops: Floats | None = None, capacity: Floats | None = None
) -> Floats:
    """Return what each tenant gets of one pool, (T,), thousands per second: at most its demand.

    Together that is all capacity, or all demand; so no plan gives every tenant more than its fair share.
    See `pool_level` for the arguments.
    """
    demand = problem.demand_of_tenant if demand_kops is None else demand_kops
    level = pool_level(problem, demand_kops=demand, capacity=capacity)
    share: Floats = np.minimum(demand, level * entitlement(problem))
    return share
