"""Traffic with selectable sources: the assignment of least cost within their capacities, and its bound."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.proof import Status
from planner.options import Options
from planner.search.tolerances import NEGLIGIBLE


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceChoice:
    """Traffic with selectable sources: G groups, S sources.

    amount        (G,) traffic of each group, positive
    allowed       (G, S) whether a source may serve a group; each group has one, with paths
    source_share  (S, N) share of a source's traffic that starts at each node
    target_share  (G, T) share of a group's traffic that ends at each target
    capacity      (S,) largest traffic of each source; inf for any
    is_exact      whether the sources' traffic must equal the capacity
    """

    amount: Floats
    allowed: Bools
    source_share: sp.csr_array
    target_share: sp.csr_array
    capacity: Floats
    is_exact: bool = False


def cheapest_sources(
    choice: SourceChoice, cost: Floats, options: Options = Options()
) -> tuple[Floats, Floats] | None:
    """Return the assignment of least cost within the sources' capacities, and the sources' dual prices.

    cost     (G, S) of a unit of traffic; entries that are not allowed do not count

    returns  (G, S) traffic, (S,) price of a unit of capacity, at least 0 unless traffic must equal it;
             None where the capacities do not suffice
    """
    groups, sources = choice.allowed.shape
    usable = usable_sources(choice)
    group, source = np.nonzero(usable)
    assigned = np.zeros((groups, sources))
    if not len(group):
        return (assigned, np.zeros(sources)) if not groups else None
    first = np.where(usable, cost, np.inf).argmin(axis=1)
    assigned[np.arange(groups), first] = choice.amount
    if not choice.is_exact and (assigned.sum(axis=0) <= choice.capacity).all():
        return assigned, np.zeros(sources)
    count = len(group)
    value = choice.amount[group] * cost[group, source]
    dearest = max(float(np.abs(value).max()), 1e-300)
    scale = source_scale(choice)
    lower, upper = source_limits(choice, scale)
    use = sp.csr_array(
        (choice.amount[group] / scale[source], (source, np.arange(count))), shape=(sources, count)
    )
    program = LinearProgram.build(
        cost=value / dearest,
        rows=[
            Rows("group", ones(group, groups, count), lower=1.0, upper=1.0),
            Rows("source", use, lower=lower, upper=upper),
        ],
        columns=[Columns("fraction", count)],
        name="cheapest sources",
    )
    solution = backends.solve(program, replace(options, gap=None, time_limit_s=None))
    if solution.status is not Status.OPTIMAL or solution.x is None or solution.row_duals is None:
        return None
    assigned[:] = 0.0
    assigned[group, source] = np.maximum(solution.x, 0.0)
    assigned *= (choice.amount / assigned.sum(axis=1))[:, None]
    return assigned, source_prices(choice, -solution.row_duals[groups:] * dearest / scale)


def usable_sources(choice: SourceChoice) -> Bools:
    """Return the mask (G, S) of sources that may serve a group, without those far too small for it.

    A source with less than a billionth of a group's traffic serves none of it, where others can: a row with
    both would be kept to a tolerance that is as large as the source. Where traffic must equal the capacity,
    the other groups of the source must suffice.
    """
    is_small = choice.allowed & (choice.capacity < NEGLIGIBLE * choice.amount[:, None])
    others = choice.allowed & ~is_small
    is_small &= np.asarray(others.any(axis=1))[:, None]
    if choice.is_exact:
        is_small &= choice.amount @ others >= choice.capacity
    return choice.allowed & ~is_small


def source_scale(choice: SourceChoice) -> Floats:
    """Return the unit of the traffic of each source, (S,): its capacity, where that is a limit above 0.

    Solvers keep rows to an absolute tolerance, so that small sources beside large ones need a unit of their
    own.
    """
    largest = max(float(choice.amount.max(initial=0.0)), 1e-300)
    is_limit = np.isfinite(choice.capacity) & (choice.capacity > 0)
    return np.where(is_limit, choice.capacity, largest)


def source_limits(choice: SourceChoice, scale: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest traffic of each source in its unit, (S,).

    Traffic that must equal the capacity may differ from it by a billionth: sums of groups and of sources
    differ by rounding, which is more than all of a small source.
    """
    limit = choice.capacity / scale
    if choice.is_exact:
        return limit * (1 - NEGLIGIBLE), limit * (1 + NEGLIGIBLE)
    return np.full(len(limit), -np.inf), limit


def source_prices(choice: SourceChoice, price: Floats) -> Floats:
    """Return the prices of capacity, (S,), not below 0 where traffic may be below the capacity."""
    return price if choice.is_exact else np.maximum(price, 0.0)


def ones(row: Ints, rows: int, columns: int) -> sp.csr_array:
    """Return the matrix with a one in a row of each column."""
    return sp.csr_array((np.ones(columns), (row, np.arange(columns))), shape=(rows, columns))


def bound_on_cost(choice: SourceChoice, usable: Bools, cost: Floats, multiplier: Floats) -> float:
    """Return a lower bound on the cost of all assignments of groups to sources.

    usable      (G, S) as `usable_sources` returns it
    cost        (G, S) of a unit of traffic
    multiplier  (S,) price of a unit of capacity
    """
    if not len(choice.amount):
        return 0.0
    limit = np.where(np.isfinite(choice.capacity), choice.capacity, 0.0)
    every_cost = cost + multiplier
    least = np.where(usable, every_cost, np.inf).min(axis=1)
    bound = float(choice.amount @ least) - float(multiplier @ limit)
    return bound - gain_of_small_sources(choice, usable, every_cost, least)


def gain_of_small_sources(choice: SourceChoice, usable: Bools, cost: Floats, least: Floats) -> float:
    """Return an upper limit of what the sources that are not used for large groups would save.

    cost   (G, S) of a unit of traffic
    least  (G,) the least of it over the sources that are used
    """
    saving = np.where(choice.allowed & ~usable, np.maximum(least[:, None] - cost, 0.0), 0.0)
    limit = np.where(np.isfinite(choice.capacity), choice.capacity, 0.0)
    return float(saving.max(axis=0, initial=0.0) @ limit)
