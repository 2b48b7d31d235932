"""Matchings between the racks that send and those that receive."""

from __future__ import annotations

from collections.abc import Iterator

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_bipartite_matching

from planner_models.circuits.plan.plan import IDLE

SMALLEST_SHARE = 1e-9
"""Entries below this share of a line's sum are rounding."""


def find_heaviest(weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return (n,) targets of a matching of the most weight; IDLE where a rack would add nothing."""
    from scipy.optimize import linear_sum_assignment  # slow to import: only where it is wanted

    row, column = linear_sum_assignment(weight, maximize=True)
    target: NDArray[np.int64] = np.where(weight[row, column] > 0, column, IDLE).astype(np.int64)
    return target


def find_perfect(allowed: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """Return (n,) targets of a perfect matching of the allowed pairs; None where there is none."""
    target = maximum_bipartite_matching(sp.csr_matrix(allowed), perm_type="column")
    return None if (target < 0).any() else target.astype(np.int64)


def stuff(demand: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, n) at least `demand`, with all row and column sums equal to the largest of its own.

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


def decompose(full: NDArray[np.float64]) -> Iterator[tuple[float, NDArray[np.int64]]]:
    """Yield weights and perfect matchings that add up to a matrix of equal row and column sums.

    source  Birkhoff 1946, von Neumann 1953
    """
    rest = full.copy()
    tolerance = SMALLEST_SHARE * float(rest.sum(axis=1).max(initial=0.0))
    rows = np.arange(len(rest))
    while (target := find_perfect(rest > tolerance)) is not None:
        weight = float(rest[rows, target].min())
        rest[rows, target] -= weight
        yield weight, target


def list_maximal(allowed: NDArray[np.bool_], most: int) -> NDArray[np.int64] | None:
    """Return (M, n) all maximal matchings of the allowed pairs; None if there are more than `most`.

    None too where the search takes over 50 steps for each matching that may be found.
    """
    found, whole = _list_maximal(np.ascontiguousarray(allowed), most, 50 * most)
    return found if whole else None


@nb.njit(cache=True)
def _list_maximal(  # noqa: C901
    allowed: NDArray[np.bool_], most: int, most_steps: int
) -> tuple[NDArray[np.int64], bool]:
    """List maximal matchings depth first: for each row its columns in turn, then none."""
    n = len(allowed)
    found, count, steps = np.empty((64, n), np.int64), 0, 0
    target, taken = np.full(n, IDLE), np.zeros(n, np.bool_)
    upcoming = np.zeros(n + 1, np.int64)
    i = 0
    while i >= 0:
        steps += 1
        if steps > most_steps:
            return found[:0], False
        if i == n:
            if _is_maximal(allowed, target, taken):
                if count == most:
                    return found[:0], False
                if count == len(found):
                    found = np.concatenate((found, found))
                found[count] = target
                count += 1
            i -= 1
            continue
        if target[i] != IDLE:
            taken[target[i]] = False
            target[i] = IDLE
        j = upcoming[i]
        while j < n and (taken[j] or not allowed[i, j]):
            j += 1
        upcoming[i] = j + 1
        if j > n:  # all its columns and none have been tried
            i -= 1
            continue
        if j < n:
            target[i] = j
            taken[j] = True
        i += 1
        if i < n:
            upcoming[i] = 0
    return found[:count], True


@nb.njit(cache=True)
def _is_maximal(allowed: NDArray[np.bool_], target: NDArray[np.int64], taken: NDArray[np.bool_]) -> bool:
    """Return whether no allowed pair can be added."""
    for i in range(len(target)):
        if target[i] == IDLE:
            for j in range(len(target)):
                if allowed[i, j] and not taken[j]:
                    return False
    return True
