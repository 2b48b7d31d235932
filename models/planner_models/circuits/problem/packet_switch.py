"""Capacity of the packet switch: any traffic that fits each rack's link, in and out."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_flow

LARGEST: Final = 2**31 - 1
"""Capacities of scipy's maximum flow are whole numbers of 32 bits."""


def fill_links(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    bits: NDArray[np.float64],
    budget_bits: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return (m,) the most of `bits` such that no rack sends or receives more than its budget.

    A maximum flow from senders to receivers. Amounts are rounded down to 2^-31 of the largest budget, so
    that the answer keeps every limit, and is short of the maximum by at most that much a pair.

    source, target  (m,) racks of each pair, by source and then by target
    bits            (m,) what is wanted
    budget_bits     (n,) what each rack may send, and as much receive
    """
    n = len(budget_bits)
    sent, received = (np.bincount(end, weights=bits, minlength=n) for end in (source, target))
    if (sent <= budget_bits).all() and (received <= budget_bits).all():
        return bits.copy()
    out, into = np.minimum(sent, budget_bits), np.minimum(received, budget_bits)
    largest = max(float(out.max()), float(into.max()))
    if largest <= 0:
        return np.zeros_like(bits)
    # all flow leaves one node, where the sum of whole numbers must stay within 32 bits too
    unit = float(max(out.sum(), into.sum())) / (LARGEST / 2)
    # rows of the graph: where all flow leaves, senders, receivers, and where it arrives; in order
    amount = np.floor(np.concatenate([out, np.minimum(bits, largest), into]) / unit).astype(np.int32)
    head = np.concatenate([np.arange(1, n + 1), target + n + 1, np.full(n, 2 * n + 1)])
    first = np.cumsum([0, n, *np.bincount(source, minlength=n), *np.ones(n, np.int64), 0])
    graph = sp.csr_matrix((amount, head.astype(np.int32), first.astype(np.int32)), shape=(2 * n + 2,) * 2)
    flow = maximum_flow(graph, 0, 2 * n + 1).flow
    carried = np.asarray(flow[source + 1, target + n + 1]).ravel() * unit
    filled: NDArray[np.float64] = np.minimum(np.clip(carried, 0.0, None), bits)
    return filled


def time_needed_us(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    bits: NDArray[np.float64],
    packet_mbps: NDArray[np.float64],
) -> float:
    """Return the time that the packet switch takes for (m,) bits of pairs, us; inf where a rate is 0."""
    n = len(packet_mbps)
    busiest = np.maximum(*(np.bincount(end, weights=bits, minlength=n) for end in (source, target)))
    with np.errstate(divide="ignore"):
        times = np.divide(busiest, packet_mbps, out=np.zeros(n), where=busiest > 0)
    return float(times.max(initial=0.0))
