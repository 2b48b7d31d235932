"""Whole numbers as indices: sums by index, distinct ones, and where keys and entries of matrices are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.arrays import Floats, Ints
from planner.compiled import njit

MOST_MARKS: Final = 20_000_000  # numbers up to which each has a mark; beyond, they are sorted
PLACES_AT_ONCE: Final = 2_500_000  # of dense sums: memory of larger arrays is new, which takes longer
COMPILED_ENTRIES: Final = 500_000  # of flows, from which sums at nodes are compiled; NumPy takes 0.1 s below


def sum_by_index(index: NDArray[Any], amounts: Floats, count: int) -> Floats:
    """Return the sum of the amounts of each index, shape (count,) or longer."""
    return np.bincount(index, weights=amounts, minlength=count).astype(float, copy=False)


def sum_at_nodes(
    flow_mbps: sp.csr_array, tail: Ints, head: Ints, nodes: int
) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield the injected, entering and leaving traffic of nodes, of blocks of flows (C, E), Mbit/s.

    yields  the first flow of a block, and two dense arrays (flows of the block, N)
    """
    flows = flow_mbps.shape[0]
    size = max(1, PLACES_AT_ONCE // max(nodes, 1))
    is_compiled = flow_mbps.nnz >= COMPILED_ENTRIES
    for first in range(0, flows, size):
        block = flow_mbps[first : first + size] if size < flows else flow_mbps
        shape = (block.shape[0], nodes)
        if is_compiled:
            surplus, passing = np.zeros(shape), np.zeros(shape)
            _add_at_nodes(block.indptr, block.indices, block.data, tail, head, surplus, passing)
            yield first, surplus, passing
            continue
        entries = block.tocoo()
        row = entries.row.astype(np.int64) * nodes
        leaving, entering = (
            sum_by_index(row + end[entries.col], entries.data, shape[0] * nodes).reshape(shape)
            for end in (tail, head)
        )
        yield first, leaving - entering, leaving + entering


@njit(cache=True)
def _add_at_nodes(start, link, amount, tail, head, surplus, passing):  # type: ignore[no-untyped-def]
    for row in range(len(surplus)):
        for i in range(start[row], start[row + 1]):
            u, v = tail[link[i]], head[link[i]]
            surplus[row, u] += amount[i]
            surplus[row, v] -= amount[i]
            passing[row, u] += amount[i]
            passing[row, v] += amount[i]


def index_distinct(numbers: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the distinct ones of whole numbers below `count`, ascending, and the place of each in them."""
    if count > MOST_MARKS:
        distinct, inverse = np.unique(numbers, return_inverse=True)
        return distinct, inverse
    is_there = np.zeros(count, dtype=bool)
    is_there[numbers] = True
    inverse = np.cumsum(is_there) - 1
    return np.flatnonzero(is_there), inverse[numbers]


def number_equal(keys: Ints) -> tuple[Ints, Ints]:
    """Return the position of each key among the equal ones before and after it, from 0, and their number."""
    order = np.argsort(keys, kind="stable")
    is_first = np.diff(keys[order], prepend=keys[order[:1]] - 1) != 0
    start = np.flatnonzero(is_first)
    run = np.cumsum(is_first) - 1
    position, size = np.empty_like(order), np.empty_like(order)
    position[order] = np.arange(len(order)) - start[run]
    size[order] = np.diff(start, append=len(order))[run]
    return position, size


def look_up(keys: Ints, existing: Ints, row: Ints) -> Ints:
    """Return the row of each key among the known ones, which ascend; -1 where it is none of them."""
    if not len(existing):
        return np.full(len(keys), -1, dtype=np.int64)
    position = np.minimum(np.searchsorted(existing, keys), len(existing) - 1)
    return np.where(existing[position] == keys, row[position], -1).astype(np.int64)


def list_ranges(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Return all numbers from start[i] to stop[i] - 1 for each i in turn: (i, number)."""
    size = stop - start
    which = np.repeat(np.arange(len(start)), size)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(size) - size, size) + start[which]
