"""Nodes that traffic reaches along its own flows."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Ints
from planner.compiled import njit

COMPILED_ENTRIES: Final = 500_000  # of flows, from which the search is compiled; NumPy takes 0.1 s below


def extend_reached(flow_mbps: sp.csr_array, tail: Ints, head: Ints, reached: Bools) -> None:
    """Mark the nodes that flows (C, E) above 0 lead to from those marked in `reached`, (C, N), in place."""
    if flow_mbps.nnz >= COMPILED_ENTRIES:
        _extend(flow_mbps.indptr, flow_mbps.indices, flow_mbps.data, tail, head, reached)
        return
    flow = flow_mbps.tocoo()
    used = np.flatnonzero(flow.data > 0)
    row, tail, head = flow.row[used], tail[flow.col[used]], head[flow.col[used]]
    while (goes_on := reached[row, tail]).any():
        reached[row[goes_on], head[goes_on]] = True
        row, tail, head = row[~goes_on], tail[~goes_on], head[~goes_on]


@njit(cache=True)
def _extend(start, link, amount, tail, head, reached):  # type: ignore[no-untyped-def]
    longest = 0
    for c in range(len(reached)):
        longest = max(longest, start[c + 1] - start[c])
    ahead = np.empty(longest, dtype=np.int64)  # links that no node in reach sends on yet
    for c in range(len(reached)):
        size = 0
        for i in range(start[c], start[c + 1]):
            if amount[i] > 0.0:
                ahead[size] = link[i]
                size += 1
        before = size + 1
        while size < before:
            before, size = size, 0
            for i in range(before):
                if reached[c, tail[ahead[i]]]:
                    reached[c, head[ahead[i]]] = True
                else:
                    ahead[size] = ahead[i]
                    size += 1
