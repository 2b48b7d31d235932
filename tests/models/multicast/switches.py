"""Tiny switches and plain twins, for tests of shared entries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from planner.arrays import Floats
from planner_models.multicast.designs.channelization import p_median
from planner_models.multicast.plan import meta_groups

SWITCHES = st.lists(st.tuples(st.integers(1, 15), st.integers(1, 10)), min_size=1, max_size=8)


def arrays(switch: Sequence[tuple[int, float]]) -> tuple[meta_groups.Masks, Floats]:
    masks, rates = zip(*switch, strict=True)
    return np.array(masks, dtype=np.uint64), np.array(rates, dtype=float)


def plain_extra(masks: Sequence[int], rates: Sequence[float], meta: Sequence[int]) -> float:
    """Return the extra traffic, from ports as sets."""
    ports = [{p for p in range(64) if mask >> p & 1} for mask in masks]
    unions: dict[int, set[int]] = {}
    for current, m in zip(ports, meta, strict=True):
        unions[m] = unions.get(m, set()) | current
    return sum(
        (rate * len(unions[m] - current) for current, rate, m in zip(ports, rates, meta, strict=True)), 0.0
    )


def plain_cost(
    masks: Sequence[int],
    rates: Sequence[float],
    meta: Sequence[int],
    ports: int,
    congestion: meta_groups.Congestion,
    background: Sequence[float],
) -> float:
    """Return equation (6) port by port: F of the load of meta-groups that reach it, and of its background."""
    total = 0.0
    for port in range(ports):
        reaching = {m for mask, m in zip(masks, meta, strict=True) if mask >> port & 1}
        load = sum(rate for rate, m in zip(rates, meta, strict=True) if m in reaching)
        total += plain_f(load + background[port], congestion)
    return total


def plain_f(load: float, congestion: meta_groups.Congestion) -> float:
    cost, last = 0.0, 0.0
    for slope, end in zip(congestion.slopes, (*congestion.until_mbps, float("inf")), strict=True):
        cost += slope * max(0.0, min(load, end) - last)
        last = end
    return cost


def same_groups(item: Sequence[object], other: Sequence[object]) -> bool:
    """Return whether both put the same things together."""
    pairs = {(a, b) for a, b in zip(item, other, strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def busy_switch(count: int, ports: int, seed: int = 0) -> tuple[meta_groups.Masks, Floats]:
    """Return groups of every density at one switch."""
    rng = np.random.default_rng(seed)
    wants = rng.random((count, ports)) < rng.random((count, 1))
    wants[np.arange(count), rng.integers(ports, size=count)] = True
    masks = (wants * (np.uint64(1) << np.arange(ports, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)
    return masks, rng.integers(1, 11, count).astype(float)


def brute_force(masks: Sequence[int], rates: Sequence[float], table_size: int) -> float:
    """Return the least extra traffic of a tiny switch, by trying every choice of unions."""
    unions = p_median.list_unions(masks, 20)
    best = float("inf")
    for selected in combinations(unions, min(table_size, len(unions))):
        cost = 0.0
        for mask, rate in zip(masks, rates, strict=True):
            extras = [(union & ~mask).bit_count() for union in selected if mask & ~union == 0]
            cost += rate * min(extras) if extras else float("inf")
        best = min(best, cost)
    return best


PORTS = 4


STEEP = meta_groups.Congestion(slopes=(1.0, 4.0, 20.0), until_mbps=(6.0, 14.0))
