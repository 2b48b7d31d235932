"""Shares of one pool that is divided among groups, with reserved rates and limits.

A group is due its weight's part of what the group above it has, beside the weights of the groups and tenants
there, but at least what its tenants have reserved; what it does not use goes to those beside it. The same
holds in each group, down to the tenants: weighted max-min fairness at each level of the tree. A tenant
has between its reserved rate and its demand, up to its limit, as in mClock; with tenants alone, its rate is
clip(level x weight, reserved, demand).

Amounts are dominant shares: the part of the pool's capacity of the resource of which a request takes most.
With several resources, all amounts rise until one resource is full. Its users then keep what they have, as if
that were their demand, and the others rise on (progressive filling).

Source: Bennett, Zhang 1996 (hierarchical fair queueing); Gulati, Merchant, Varman 2010 (mClock: reservations,
limits and shares); Ghodsi et al. 2011 (dominant-resource fairness).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.search.tolerances import ROUNDING
from planner_models.fairshare.problem.problem import SharedStore

FULL: Final = ROUNDING  # of its capacity: a resource with no more than this free is full


class Division(NamedTuple):
    """Amount that members take together as their level rises: linear between the ends of segments.

    lower, upper, weight  (m,) of the members: each takes clip(level * weight, lower, upper)
    level                 (2m,) levels at which a member begins or ends to rise, ascending
    amount                (2m,) amount of all members at these levels
    """

    lower: Floats
    upper: Floats
    weight: Floats
    level: Floats
    amount: Floats

    @classmethod
    def of(cls, lower: Floats, upper: Floats, weight: Floats) -> Division:
        """Return the division among members; lower is at most upper, weights are positive."""
        ends = np.concatenate([lower / weight, upper / weight])
        slope = np.concatenate([weight, -weight])
        order = np.argsort(ends, kind="stable")
        level = ends[order]
        rises = np.maximum(np.cumsum(slope[order]), 0.0)[:-1] * np.diff(level)
        return cls(lower, upper, weight, level, lower.sum() + np.concatenate([[0.0], np.cumsum(rises)]))

    def find_level(self, amount: float) -> float:
        """Return the least level at which members take an amount; infinite if they never take so much."""
        row = int(np.searchsorted(self.amount, amount))
        if row >= len(self.level):
            return np.inf
        if row == 0:
            return 0.0
        below, above = self.amount[row - 1], self.amount[row]
        fraction = (amount - below) / (above - below)
        return float(self.level[row - 1] + fraction * (self.level[row] - self.level[row - 1]))

    def divide(self, amount: float) -> Floats:
        """Return the amounts of the members for one of all, (m,)."""
        level = self.find_level(amount)
        if np.isinf(level):
            return self.upper
        return np.clip(level * self.weight, self.lower, self.upper)


class Tree(NamedTuple):
    """Members of each group: the root is group G, a member below T is a tenant, else group T + its row.

    order    (G + 1,) groups, each behind the one that it is part of; of those with tenants alone
    members  by group
    """

    order: tuple[int, ...]
    members: dict[int, Ints]


def build_tree(problem: SharedStore) -> Tree:
    """Return the tree of groups and tenants."""
    tenants, groups = len(problem.tenants), len(problem.group_names)
    above = np.concatenate([problem.group_of_tenant, problem.parent_of_group])
    above = np.where(above < 0, groups, above)
    order = np.argsort(above, kind="stable")
    starts = np.searchsorted(above[order], np.arange(groups + 2))
    members = {g: order[starts[g] : starts[g + 1]] for g in range(groups + 1) if starts[g] < starts[g + 1]}
    ordered, waiting = [], [groups]
    while waiting:
        group = waiting.pop()
        if group in members:
            ordered.append(group)
            waiting += (members[group][members[group] >= tenants] - tenants).tolist()
    return Tree(tuple(ordered), members)


class Filling:
    """Amounts of tenants (T,) for an amount of the root, between reserved amounts and demands (T,)."""

    def __init__(self, tree: Tree, weight: Floats, lower: Floats, upper: Floats) -> None:
        self.tenants, self.order = len(lower), tree.order
        self.rows = len(weight) + 1
        self.members: dict[int, Ints] = {}
        self.divisions: dict[int, Division] = {}
        groups = np.zeros(self.rows - self.tenants)
        smallest, largest = np.concatenate([lower, groups]), np.concatenate([upper, groups])
        for group in reversed(tree.order):
            rows = tree.members[group]
            rows = rows[largest[rows] > 0]
            self.members[group] = rows
            smallest[self.tenants + group] = smallest[rows].sum()
            largest[self.tenants + group] = largest[rows].sum()
            if len(rows):
                self.divisions[group] = Division.of(smallest[rows], largest[rows], weight[rows])
        self.lowest, self.highest = float(smallest[-1]), float(largest[-1])

    def divide(self, amount: float) -> Floats:
        """Return the amount of each tenant, (T,)."""
        taken = np.zeros(self.rows)
        taken[-1] = amount
        for group in self.order:
            if group in self.divisions:
                taken[self.members[group]] = self.divisions[group].divide(taken[self.tenants + group])
        return taken[: self.tenants]


def fill_groups(
    problem: SharedStore, *, fraction: Floats, reserved_kops: Floats, demand_kops: Floats, capacity: Floats
) -> Floats:
    """Return the rate of each tenant of a pool that groups share, (T,), thousands per second.

    fraction       (T,) dominant share of a thousand requests per second, positive
    reserved_kops  (T,) at most the demand; all together fit in the capacity
    demand_kops    (T,) up to limits
    capacity       (R,) of all nodes
    """
    tree = build_tree(problem)
    weight = np.concatenate([problem.weight, problem.weight_of_group])
    upper = np.minimum(demand_kops * fraction, 1.0)
    lower = np.minimum(reserved_kops * fraction, upper)
    use = problem.per_op.T / fraction
    open_rows = np.flatnonzero(capacity > 0)
    taken = lower
    while True:
        filling = Filling(tree, weight, lower, upper)
        remaining, limits = use[open_rows], capacity[open_rows]

        def excess(
            amount: float, filling: Filling = filling, use: Floats = remaining, limits: Floats = limits
        ) -> Floats:
            """Return the use of each resource that is not full yet, over its capacity, less 1."""
            return np.asarray(use @ filling.divide(amount) / limits - 1.0)

        amount = _fill(filling, excess)
        taken = filling.divide(amount)
        if amount >= filling.highest * (1 - ROUNDING):
            return np.asarray(taken / fraction)
        over = excess(amount)
        full = over >= min(-FULL, float(over.max()))
        held = (remaining[full] > 0).any(axis=0)
        upper = np.where(held, taken, upper)
        lower = np.minimum(lower, upper)
        open_rows = open_rows[~full]


def _fill(filling: Filling, excess: Callable[[float], Floats]) -> float:
    """Return the largest amount of the root at which no resource is above its capacity."""

    from scipy.optimize import brentq  # loads slowly

    def largest(amount: float) -> float:
        return float(excess(amount).max(initial=-1.0))

    if largest(filling.highest) <= 0:
        return filling.highest
    if largest(filling.lowest) >= 0:
        return filling.lowest
    return float(brentq(largest, filling.lowest, filling.highest, xtol=1e-15, rtol=1e-14, maxiter=500))


def sum_groups(problem: SharedStore, amounts: Floats) -> Floats:
    """Return amounts of tenants (..., T), summed over those of each group and of the groups in it, (..., G).

    The order of rows is that of `groups`.
    """
    tenants, groups = len(problem.tenants), len(problem.group_names)
    sums = np.zeros((*amounts.shape[:-1], tenants + groups + 1))
    sums[..., :tenants] = amounts
    tree = build_tree(problem)
    for group in reversed(tree.order):
        sums[..., tenants + group] = sums[..., tree.members[group]].sum(axis=-1)
    return sums[..., tenants:-1]
