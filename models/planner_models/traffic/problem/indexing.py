"""Whole numbers as indices: sums by index, distinct ones, and where keys and entries of matrices are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.arrays import Floats, Ints

MOST_DENSE: Final = 20_000_000  # entries of a sparse matrix that are made dense at a time
DENSE_PER_PLACE: Final = 100  # entries of a dense matrix that are made as fast as one place is looked up

DENSE_PER_ENTRY: Final = 16  # places of dense sums per entry of a sparse matrix, up to which they are faster


def sum_by_index(index: NDArray[Any], amounts: Floats, count: int) -> Floats:
    """Return the sum of the amounts of each index, shape (count,) or longer."""
    return np.bincount(index, weights=amounts, minlength=count).astype(float, copy=False)


def entries_at(matrix: sp.csr_array | Floats, row: Ints, column: Ints) -> Floats:
    """Return the entries of a matrix at many places, (P,); blocks of rows of a sparse one are made dense.

    That is several times as fast as to look up a million places one by one.
    """
    if isinstance(matrix, np.ndarray):
        return np.asarray(matrix[row, column])
    rows, columns = matrix.shape
    if not len(row):
        return np.zeros(0)
    if rows * columns > DENSE_PER_PLACE * len(row):
        return np.asarray(matrix[row, column]).ravel()
    found = np.empty(len(row))
    size = max(1, MOST_DENSE // max(columns, 1))
    for first in range(0, rows, size):
        here = np.flatnonzero((row >= first) & (row < first + size)) if size < rows else slice(None)
        found[here] = matrix[first : first + size].toarray()[row[here] - first, column[here]]
    return found


def sum_at_nodes(
    flow_mbps: sp.csr_array, tail: Ints, head: Ints, nodes: int
) -> tuple[sp.csr_array | Floats, sp.csr_array | Floats]:
    """Return what nodes inject, and what enters and leaves them, of each flow (C, E): (C, N) Mbit/s, twice.

    Dense arrays where they are small enough, and flows have an entry for many of their places.
    """
    places = flow_mbps.shape[0] * nodes
    if places <= min(MOST_DENSE, DENSE_PER_ENTRY * flow_mbps.nnz):
        flow = flow_mbps.tocoo()
        row = flow.row.astype(np.int64) * nodes
        leaving, entering = (
            sum_by_index(row + end[flow.col], flow.data, places).reshape(-1, nodes) for end in (tail, head)
        )
        return leaving - entering, leaving + entering
    links = len(tail)
    numbers = np.arange(links)
    signs = np.repeat([1.0, -1.0], links)
    ends = (np.concatenate([numbers, numbers]), np.concatenate([tail, head]))
    incidence = sp.csr_array((signs, ends), shape=(links, nodes))
    return sp.csr_array(flow_mbps @ incidence), sp.csr_array(flow_mbps @ abs(incidence))


def index_distinct(numbers: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the distinct ones of whole numbers below `count`, ascending, and the place of each in them."""
    is_there = np.zeros(count, dtype=bool)
    is_there[numbers] = True
    place = np.cumsum(is_there) - 1
    return np.flatnonzero(is_there), place[numbers]


def look_up(keys: Ints, known: Ints, row: Ints) -> Ints:
    """Return the row of each key among the known ones, which ascend; -1 where it is none of them."""
    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, row[place], -1).astype(np.int64)


def list_ranges(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Return all numbers from start[i] to stop[i] - 1 for each i in turn: (i, number)."""
    size = stop - start
    which = np.repeat(np.arange(len(start)), size)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(size) - size, size) + start[which]
