"""Fair shares: what each tenant would get if the store were one pool of capacity."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel
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
    return float(fill_in_order(order_by_level(demand, due), cost, demand, due, capacity))


def order_by_level(demand: Floats, due: Floats) -> Ints:
    """Return the tenants by the level at which they have all their demand, the lowest first, (T,)."""
    full = np.divide(demand, due, out=np.full(len(due), np.inf), where=due > 0)
    return np.argsort(full, kind="stable")


@kernel
def fill_in_order(order: Ints, cost: Floats, demand: Floats, due: Floats, capacity: float) -> float:
    """Return the level of `fill_level`, for tenants in the order of `order_by_level`.

    demand  (T,) 0 for tenants that are left out; the others' is that of the order
    """
    wanted = 0.0
    slope = np.zeros(len(order) + 1)  # requests that the tenants from here on want for each unit of the level
    for place in range(len(order) - 1, -1, -1):
        t = order[place]
        slope[place] = slope[place + 1]
        if cost[t] > 0 and demand[t] > 0:
            wanted += cost[t] * demand[t]
            slope[place] += cost[t] * due[t]
    if wanted <= capacity:
        return np.inf
    served = 0.0  # by tenants with all their demand
    for place in range(len(order)):
        t = order[place]
        if cost[t] > 0 and demand[t] > 0:
            if slope[place] > 0:
                level = (capacity - served) / slope[place]
                if due[t] <= 0 or level * due[t] <= demand[t]:
                    return float(max(level, 0.0))
            served += cost[t] * demand[t]
    return np.inf


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
