"""Matchings between the racks that send and those that receive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_bipartite_matching

from planner.compiled import inner, kernel, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import NEGLIGIBLE
from planner_models.circuits.plan.plan import IDLE

SMALLEST_SHARE: Final = NEGLIGIBLE
"""Entries below this share of a line's sum are rounding."""
MATCHINGS_AT_ONCE: Final = 1_024
STEPS_PER_CALL: Final = 10_000  # of compiled code, between looks at the clock


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
    largest = max(full.sum(axis=1).max(initial=0.0), full.sum(axis=0).max(initial=0.0))
    row, column = largest - full.sum(axis=1), largest - full.sum(axis=0)
    there = np.flatnonzero(full)
    # what is there comes first, the largest entries ahead
    for cell in there[np.argsort(-full.ravel()[there], kind="stable")].tolist():
        i, j = divmod(cell, len(full))
        more = min(row[i], column[j])
        if more > 0:
            full[i, j] += more
            row[i] -= more
            column[j] -= more
    i = j = 0
    while i < len(full) and j < len(full):
        more = min(row[i], column[j])
        if more > 0:
            full[i, j] += more
            row[i] -= more
            column[j] -= more
        if row[i] <= 0:
            i += 1
        else:
            j += 1
    return full


def decompose(
    full: NDArray[np.float64], deadline: Deadline = NEVER
) -> Iterator[tuple[float, NDArray[np.int64]]]:
    """Yield weights and perfect matchings that add up to a matrix of equal row and column sums.

    It ends early at a deadline.

    source  Birkhoff 1946, von Neumann 1953
    """
    remainder = full.copy()
    tolerance = SMALLEST_SHARE * float(remainder.sum(axis=1).max(initial=0.0))
    rows = np.arange(len(remainder))
    while not deadline.is_over and (target := find_perfect(remainder > tolerance)) is not None:
        weight = float(remainder[rows, target].min())
        remainder[rows, target] -= weight
        yield weight, target


def list_maximal(
    allowed: NDArray[np.bool_], limit: int, deadline: Deadline = NEVER
) -> NDArray[np.int64] | None:
    """Return (M, n) all maximal matchings of the allowed pairs; None if there are more than `limit`.

    None too where the search takes over 50 steps for each matching that may be found, or comes to a
    deadline.
    """
    allowed, most_steps = np.ascontiguousarray(allowed), 50 * limit
    n = len(allowed)
    lists, state, position = [], np.zeros((3, n + 1), np.int64), np.zeros(2, np.int64)
    state[0] = IDLE
    while position[0] >= 0:
        buffer = np.empty((MATCHINGS_AT_ONCE, n), np.int64)
        count = _list_maximal(
            allowed, state, position, min(most_steps, int(position[1]) + STEPS_PER_CALL), buffer
        )
        lists.append(buffer if count == len(buffer) else buffer[:count].copy())
        if position[1] > most_steps or sum(map(len, lists)) > limit:
            return None
        if position[0] >= 0 and deadline.is_over:
            return None
    return np.concatenate(lists)


@run_small_in_python(max_elements=5_000)
@kernel
def _list_maximal(  # noqa: C901
    allowed: NDArray[np.bool_],
    state: NDArray[np.int64],
    position: NDArray[np.int64],
    most_steps: int,
    matchings: NDArray[np.int64],
) -> int:
    """List maximal matchings depth first: for each row its columns in turn, then none; return their number.

    state  (3, n + 1) target of each row, whether each column is taken, and the next column to try
    position     (2,) the row, -1 at the end, and the steps so far; over `most_steps` it stops
    """
    n, count = len(allowed), 0
    target, taken, upcoming = state[0], state[1], state[2]
    i = position[0]
    while i >= 0 and position[1] <= most_steps:
        if i == n:
            if _is_maximal(allowed, target, taken):
                if count == len(matchings):
                    break
                for row in range(n):
                    matchings[count, row] = target[row]
                count += 1
            position[1] += 1
            i -= 1
            continue
        position[1] += 1
        if target[i] != IDLE:
            taken[target[i]] = 0
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
            taken[j] = 1
        i += 1
        if i < n:
            upcoming[i] = 0
    position[0] = i
    return count


@inner
def _is_maximal(allowed: NDArray[np.bool_], target: NDArray[np.int64], taken: NDArray[np.int64]) -> bool:
    """Return whether no allowed pair can be added."""
    for i in range(len(allowed)):
        if target[i] == IDLE:
            for j in range(len(allowed)):
                if allowed[i, j] and not taken[j]:
                    return False
    return True
