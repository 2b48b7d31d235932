"""Fair shares: the rate of each tenant if the store were one pool of capacity."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner.search.tolerances import ROUNDING
from planner_models.fairshare.plan.group_shares import fill_groups
from planner_models.fairshare.problem.problem import SharedStore


def entitlement(problem: SharedStore) -> Floats:
    """Return the requests that each tenant is due at level 1, (T,), thousands per second.

    With requests as the only resource, this is its weight times the capacity of all nodes. Else its dominant
    resource counts: the one of which a request takes the largest part (Ghodsi et al. 2011). It is 0 for a
    tenant that cannot be served at all, such as one that uses a resource that no node has.
    """
    total = problem.capacity.sum(axis=0)
    fraction = np.divide(
        problem.per_op, total, out=np.where(problem.per_op > 0, np.inf, 0.0), where=total > 0
    ).max(axis=1)
    due: Floats = problem.weight / np.maximum(fraction, 1e-300)
    return np.where(np.isfinite(fraction) & (fraction > 0), due, 0.0)


def flat_weights(problem: SharedStore) -> Floats:
    """Return the weight of each tenant without groups, (T,): its part of each group on the way, multiplied.

    Where all tenants want without end, these give what groups do. Tenants in no group keep their weights.
    """
    parent, weight = problem.parent_of_group, problem.weight_of_group
    groups = len(weight)
    above = np.concatenate([problem.group_of_tenant, parent])
    every = np.concatenate([problem.weight, weight])
    is_inside = above >= 0
    together = np.bincount(above[is_inside], weights=every[is_inside], minlength=groups)
    flat, group = problem.weight.copy(), problem.group_of_tenant.copy()
    while (group >= 0).any():
        rows = np.flatnonzero(group >= 0)
        flat[rows] *= weight[group[rows]] / together[group[rows]]
        group[rows] = parent[group[rows]]
    return flat


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


@run_small_in_python(max_elements=2_000)
@kernel
def fill_in_order(order: Ints, cost: Floats, demand: Floats, due: Floats, capacity: float) -> float:
    """Return the level of `fill_level`, for tenants in the order of `order_by_level`.

    demand  (T,) 0 for tenants that are left out; the others' is that of the order
    """
    needed = 0.0
    slope = np.zeros(len(order) + 1)  # requests that the tenants from here on want for each unit of the level
    for index in range(len(order) - 1, -1, -1):
        t = order[index]
        slope[index] = slope[index + 1]
        if cost[t] > 0 and demand[t] > 0:
            needed += cost[t] * demand[t]
            slope[index] += cost[t] * due[t]
    if needed <= capacity:
        return np.inf
    served = 0.0  # by tenants with all their demand
    for index in range(len(order)):
        t = order[index]
        if cost[t] > 0 and demand[t] > 0:
            if slope[index] > 0:
                level = (capacity - served) / slope[index]
                if due[t] <= 0 or level * due[t] <= demand[t]:
                    return float(max(level, 0.0))
            served += cost[t] * demand[t]
    return np.inf


def pool_levels(
    problem: SharedStore, *, demand_kops: Floats, capacity: Floats, due: Floats | None = None
) -> Floats:
    """Return the weighted max-min level of each tenant of a pool of each resource, (T,).

    Levels rise together until a resource is full, which holds the tenants that use it; those of the others
    rise on (progressive filling). Infinite for a tenant that has all its demand.

    demand_kops  (T,) requests of tenants
    capacity     (R,) of all nodes
    due          (T,) rates at level 1; default: `entitlement`
    source       Ghodsi et al. 2011 (dominant-resource fairness)
    """
    due = entitlement(problem) if due is None else due
    is_free = (due > 0) & (demand_kops > 0)
    level = np.full(len(due), np.inf)
    remaining = capacity.astype(float).copy()
    unfilled = list(range(len(capacity)))
    lowest = 0.0
    while is_free.any() and unfilled:
        demand = np.where(is_free, demand_kops, 0.0)
        full = [fill_level(problem.per_op[:, r], demand, due, float(remaining[r])) for r in unfilled]
        first = int(np.argmin(full))
        if not np.isfinite(full[first]):
            break
        lowest = max(full[first], lowest)  # never lower than the one before, but for rounding
        held = is_free & (problem.per_op[:, unfilled[first]] > 0)
        level[held] = lowest
        rate = np.minimum(demand_kops[held], lowest * due[held])
        remaining = np.maximum(remaining - problem.per_op[held].T @ rate, 0.0)
        is_free &= ~held
        del unfilled[first]
    return level


def fit_reserved(problem: SharedStore, reserved_kops: Floats, capacity: Floats) -> Floats:
    """Return reserved rates that fit in one pool, (T,): in proportion where a resource is too short for all.

    Rates over reserved ones are then max-min fair: tenants of other resources keep theirs.

    capacity  (R,) of all nodes
    """
    if (problem.per_op.T @ reserved_kops <= capacity * (1 + ROUNDING)).all():
        return reserved_kops
    level = pool_levels(problem, demand_kops=reserved_kops, capacity=capacity, due=reserved_kops)
    return reserved_kops * np.minimum(level, 1.0)


def pool_level(problem: SharedStore) -> float:
    """Return the lowest weighted max-min level of a store that is one pool of each resource.

    No plan gives more to every tenant that wants more. Where all demand fits, it is the level at which all
    tenants have their demand. Where tenants have groups or reserved rates, it is the least fair share of a
    tenant that wants more, over what it is due at level 1 by its own weight.
    """
    due, demand = entitlement(problem), problem.demand_of_tenant
    if problem.has_groups or problem.has_reserved:
        fair = fair_share_kops(problem)
        is_short = (due > 0) & (fair < demand * (1 - ROUNDING))
        level = float((fair[is_short] / due[is_short]).min(initial=np.inf))
    else:
        levels = pool_levels(problem, demand_kops=demand, capacity=problem.capacity.sum(axis=0))
        level = float(levels.min(initial=np.inf))
    if np.isfinite(level):
        return level
    has_due = due > 0
    return float((demand[has_due] / due[has_due]).max(initial=0.0))


def fair_share_kops(
    problem: SharedStore, *, demand_kops: Floats | None = None, capacity: Floats | None = None
) -> Floats:
    """Return the rate of each tenant from one pool, (T,), thousands per second: at most its demand.

    No plan gives every tenant more than its fair share: of a resource that is full in the pool, tenants that
    it holds have all that others leave. See `pool_levels`; with groups or reserved rates, `fill_groups`.

    demand_kops  (T,) requests of tenants; default: those of the problem
    capacity     (R,) of all nodes; default: that of the problem
    """
    demand = problem.demand_of_tenant if demand_kops is None else np.minimum(demand_kops, problem.limit_kops)
    total = problem.capacity.sum(axis=0) if capacity is None else capacity
    due = entitlement(problem)
    if problem.has_groups or problem.has_reserved:
        fraction = np.divide(problem.weight, due, out=np.ones_like(due), where=due > 0)
        demand = np.where(due > 0, demand, 0.0)
        reserved = fit_reserved(problem, problem.reserve(demand), total)
        return fill_groups(
            problem, fraction=fraction, reserved_kops=reserved, demand_kops=demand, capacity=total
        )
    level = pool_levels(problem, demand_kops=demand, capacity=total)
    with np.errstate(invalid="ignore"):
        reached = np.where(np.isfinite(level), level * due, np.inf)
    return np.where(due > 0, np.minimum(demand, reached), 0.0)
