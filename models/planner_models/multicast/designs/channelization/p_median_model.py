"""The exact p-median model of channelization over unions of port sets, as an integer program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from planner.backends import Solution, solve
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.errors import InputError
from planner.options import Options
from planner_models.multicast.plan.meta_groups import (
    Masks,
    Meta,
    Rates,
    distinct_sets,
)


def list_unions(masks: Sequence[int], most: int) -> list[int]:
    """Return every union of the port sets, each once; InputError where there are more than `most`."""
    found: set[int] = set()
    for mask in set(masks):
        found |= {mask} | {mask | other for other in found}
        if len(found) > most:
            raise InputError(f"the port sets have more than {most} unions: too large for the exact method")
    return sorted(found)


def p_median_model(masks: Masks, rates: Rates, *, table_size: int, most_unions: int = 4096) -> LinearProgram:
    """Return the exact model: open `table_size` unions, assign each distinct port set to one that covers it.

    raises  InputError for more unions than `most_unions`
    """
    sets, weights, _ = distinct_sets(masks, rates)
    unions = np.array(list_unions([int(mask) for mask in sets], most_unions), dtype=np.uint64)
    return build_model(sets, weights, unions, table_size)


def build_model(sets: Masks, weights: Rates, unions: Masks, table_size: int) -> LinearProgram:
    """Return the exact model over these unions."""
    item, union = np.nonzero((sets[:, None] & ~unions[None, :]) == 0)
    extra = weights[item] * np.bitwise_count(unions[union] & ~sets[item])
    count, pairs = len(unions), len(item)
    assign = sp.coo_array(
        (np.ones(pairs), (item, count + np.arange(pairs))), shape=(len(sets), count + pairs)
    )
    rows = np.tile(np.arange(pairs), 2)
    columns = np.concatenate([count + np.arange(pairs), union])
    linked = sp.coo_array((np.repeat([1.0, -1.0], pairs), (rows, columns)), shape=(pairs, count + pairs))
    opened = sp.coo_array(
        (np.ones(count), (np.zeros(count, int), np.arange(count))), shape=(1, count + pairs)
    )
    return LinearProgram.build(
        cost=np.concatenate([np.zeros(count), extra]),
        rows=[
            Rows("assigned", assign, lower=1.0, upper=1.0),
            Rows("open", linked, upper=0.0),
            Rows("table", opened, upper=float(table_size)),
        ],
        columns=[Columns("union", count), Columns("assign", pairs)],
        upper=1.0,
        integer=np.arange(count + pairs) < count,
        name="channelization",
    )


def solve_exactly(
    masks: Masks, rates: Rates, *, table_size: int, options: Options = Options()
) -> tuple[Meta | None, Solution]:
    """Return the sharing with least extra traffic, and the solution with its bound; None without a plan.

    For switches with few unions of port sets.
    """
    solution = solve(p_median_model(masks, rates, table_size=table_size), options)
    if solution.x is None:
        return None, solution
    sets, _, place = distinct_sets(masks, rates)
    unions = np.array(list_unions([int(mask) for mask in sets], 4096), dtype=np.uint64)
    chosen = unions[solution.x[: len(unions)] > 0.5]
    sizes = np.bitwise_count(chosen).astype(np.int64)
    cost = np.where((sets[:, None] & ~chosen[None, :]) == 0, sizes[None, :], 65)
    return np.unique(cost.argmin(axis=1)[place], return_inverse=True)[1].astype(np.int64), solution
