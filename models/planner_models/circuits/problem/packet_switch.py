"""Capacity of the packet switch: any traffic that fits each rack's link, in and out."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_flow

LARGEST: Final = 2**31 - 1
"""Capacities of scipy's maximum flow are whole numbers of 32 bits."""


def fill_links(bits: NDArray[np.float64], budget_bits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, n) the most of `bits` such that no row or column sum exceeds its rack's budget.

    A maximum flow from rows to columns. Amounts are rounded down to 2^-31 of the largest budget, so
    that the answer keeps every limit, and is short of the maximum by at most that much a pair.

    bits         (n, n) what is wanted
    budget_bits  (n,) what each rack may send, and as much receive
    """
    n = len(bits)
    out, into = np.minimum(bits.sum(axis=1), budget_bits), np.minimum(bits.sum(axis=0), budget_bits)
    if (bits.sum(axis=1) <= budget_bits).all() and (bits.sum(axis=0) <= budget_bits).all():
        return bits.copy()
    largest = max(float(out.max()), float(into.max()))
    if largest <= 0:
        return np.zeros_like(bits)
    # all flow leaves one node, where the sum of whole numbers must stay within 32 bits too
    unit = float(max(out.sum(), into.sum())) / (LARGEST / 2)
    source, target = np.nonzero(np.floor(bits / unit) >= 1)
    rows = np.arange(n)
    tail = np.concatenate([np.full(n, 2 * n), source, rows + n])
    head = np.concatenate([rows, target + n, np.full(n, 2 * n + 1)])
    amount = np.floor(np.concatenate([out, np.minimum(bits[source, target], largest), into]) / unit)
    graph = sp.csr_array((amount.astype(np.int32), (tail, head)), shape=(2 * n + 2, 2 * n + 2))
    graph.eliminate_zeros()
    flow = maximum_flow(sp.csr_matrix(graph), 2 * n, 2 * n + 1).flow
    carried = flow[:n, n : 2 * n].toarray().astype(float) * unit
    filled: NDArray[np.float64] = np.minimum(np.clip(carried, 0.0, None), bits)
    return filled


def time_needed_us(bits: NDArray[np.float64], packet_mbps: NDArray[np.float64]) -> float:
    """Return how long the packet switch takes for `bits` (n, n), us; inf where a rack's link has no rate."""
    busiest = np.maximum(bits.sum(axis=1), bits.sum(axis=0))
    with np.errstate(divide="ignore"):
        times = np.divide(busiest, packet_mbps, out=np.zeros(len(bits)), where=busiest > 0)
    return float(times.max(initial=0.0))
