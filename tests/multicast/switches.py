"""Tiny switches and plain twins, for tests of shared entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from planner_models.multicast import channels

SWITCHES = st.lists(st.tuples(st.integers(1, 15), st.integers(1, 10)), min_size=1, max_size=8)


def arrays(switch: Sequence[tuple[int, float]]) -> tuple[channels.Masks, channels.Rates]:
    masks, rates = zip(*switch, strict=True)
    return np.array(masks, dtype=np.uint64), np.array(rates, dtype=float)


def plain_extra(masks: Sequence[int], rates: Sequence[float], meta: Sequence[int]) -> float:
    """The cost from ports as sets."""
    ports = [{p for p in range(64) if mask >> p & 1} for mask in masks]
    cost = 0.0
    for mine, rate, m in zip(ports, rates, meta, strict=True):
        union: set[int] = set().union(*(other for other, n in zip(ports, meta, strict=True) if n == m))
        cost += rate * len(union - mine)
    return cost


def plain_cost(
    masks: Sequence[int],
    rates: Sequence[float],
    meta: Sequence[int],
    ports: int,
    congestion: channels.Congestion,
    background: Sequence[float],
) -> float:
    """Equation (6) port by port: F of what meta-groups that reach it carry, and of its background."""
    total = 0.0
    for port in range(ports):
        reaching = {m for mask, m in zip(masks, meta, strict=True) if mask >> port & 1}
        load = sum(rate for rate, m in zip(rates, meta, strict=True) if m in reaching)
        total += plain_f(load + background[port], congestion)
    return total


def plain_f(load: float, congestion: channels.Congestion) -> float:
    cost, last = 0.0, 0.0
    for slope, end in zip(congestion.slopes, (*congestion.until_mbps, float("inf")), strict=True):
        cost += slope * max(0.0, min(load, end) - last)
        last = end
    return cost


def same_groups(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether both put the same things together."""
    pairs = {(a, b) for a, b in zip(one, other, strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
