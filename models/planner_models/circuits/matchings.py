"""Matchings between the racks that send and those that receive."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import maximum_bipartite_matching

from planner_models.circuits.schedule import IDLE

SMALLEST = 1e-9
"""Entries below this share of a line's sum are rounding."""
DEEPEST = 200
"""Racks from which on matchings are not listed one by one."""


def heaviest(weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """(n,) target of each row in a matching of the most weight; IDLE where it would gain nothing."""
    row, column = linear_sum_assignment(weight, maximize=True)
    target: NDArray[np.int64] = np.where(weight[row, column] > 0, column, IDLE).astype(np.int64)
    return target


def perfect(allowed: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """(n,) target of each row in a perfect matching of what is allowed; None where there is none."""
    target = maximum_bipartite_matching(sp.csr_matrix(allowed), perm_type="column")
    return None if (target < 0).any() else target.astype(np.int64)


def stuffed(demand: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, n) at least `demand`, with all row and column sums equal to the largest of its.

    First entries that are there grow, then others: few entries stay few.

    source  Liu et al. 2015 (Solstice), QuickStuff
    """
    full = demand.copy()
    most = max(full.sum(axis=1).max(initial=0.0), full.sum(axis=0).max(initial=0.0))
    row, column = most - full.sum(axis=1), most - full.sum(axis=0)
    order = np.argsort(-full, axis=None, kind="stable")
    for place in order.tolist():  # what is there comes first, the largest entries ahead
        i, j = divmod(place, len(full))
        more = min(row[i], column[j])
        if more > 0:
            full[i, j] += more
            row[i] -= more
            column[j] -= more
    return full


def decomposed(full: NDArray[np.float64]) -> Iterator[tuple[float, NDArray[np.int64]]]:
    """Weights and perfect matchings that add up to a matrix of equal row and column sums.

    source  Birkhoff 1946, von Neumann 1953
    """
    rest = full.copy()
    grain = SMALLEST * float(rest.sum(axis=1).max(initial=0.0))
    rows = np.arange(len(rest))
    while (target := perfect(rest > grain)) is not None:
        weight = float(rest[rows, target].min())
        rest[rows, target] -= weight
        yield weight, target


def all_maximal(allowed: NDArray[np.bool_], most: int) -> list[NDArray[np.int64]] | None:
    """Every matching of what is allowed to which nothing can be added; None where they are more than `most`.

    None too from `DEEPEST` racks on, or where the search takes more than 50 steps for each allowed.
    """
    n = len(allowed)
    if n > DEEPEST:
        return None
    found: list[NDArray[np.int64]] = []
    options = [np.flatnonzero(row).tolist() for row in allowed]
    target = np.full(n, IDLE, dtype=np.int64)
    steps = 0

    def extend(i: int, taken: frozenset[int]) -> bool:
        nonlocal steps
        steps += 1
        if steps > 50 * most or len(found) > most:
            return False
        if i == n:
            free = [j for j in range(n) if j not in taken]
            if not allowed[np.ix_(target == IDLE, free)].any():
                found.append(target.copy())
            return True
        for j in (*options[i], IDLE):
            if j not in taken:
                target[i] = j
                if not extend(i + 1, taken if j == IDLE else taken | {j}):
                    return False
        target[i] = IDLE
        return True

    return found if extend(0, frozenset()) and len(found) <= most else None
