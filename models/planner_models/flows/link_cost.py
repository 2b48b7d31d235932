"""Convex costs of links by their load: queueing delay, and the congestion cost of traffic engineering.

A cost has values and slopes at loads. A convex function is above each of its tangents, so that a linear
program with some tangents in place of the cost is a relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from planner.arrays import Floats, Ints

LINEAR_FROM: Final = 0.95
"""Utilization from which the delay of a queue is continued by its tangent."""
SLOPES: Final = np.array([1.0, 3.0, 10.0, 70.0, 500.0, 5000.0])
"""Slopes of the congestion cost, by Fortz and Thorup."""
SLOPE_FROM: Final = np.array([0.0, 1 / 3, 2 / 3, 0.9, 1.0, 1.1])
"""Utilization from which each slope holds."""
CONGESTION_AT: Final = np.cumsum(np.concatenate([[0.0], SLOPES[:-1] * np.diff(SLOPE_FROM)]))
"""Congestion cost at these utilizations, for capacity 1."""
DELAY_POINTS: Final = np.array([0.0, 0.2, 0.4, 0.55, 0.68, 0.78, 0.85, 0.9, 0.94, 0.98, 1.1, 1.4, 2.0, 4.0])
"""Utilization at which a search begins with tangents of the delay."""

POINT_TOLERANCE: Final = 1e-9
"""Difference of utilizations, and relative difference of slopes, of tangents that are one."""


def queueing_delay(utilization: Floats) -> Floats:
    """Return the delay of an M/M/1 queue over its service time, by utilization; its tangent from 95% on."""
    inside = np.minimum(utilization, LINEAR_FROM)
    beyond = np.maximum(utilization - LINEAR_FROM, 0.0) / (1 - LINEAR_FROM) ** 2
    return np.asarray(inside / (1 - inside) + beyond)


def queueing_slope(utilization: Floats) -> Floats:
    """Return the derivative of `queueing_delay` by utilization."""
    return np.asarray(1 / (1 - np.minimum(utilization, LINEAR_FROM)) ** 2)


class LinkCost(Protocol):
    """Convex cost of each link by its load; E links."""

    @property
    def capacity(self) -> Floats:
        """(E,) capacity of each link, in the unit of loads."""

    @property
    def points(self) -> Floats:
        """(P,) utilization at which a search begins with tangents, ascending from 0."""

    def value(self, load: Floats) -> Floats:
        """Return the cost of each link, shape (E,)."""

    def slope(self, load: Floats) -> Floats:
        """Return a subgradient of the cost of each link by its load, shape (E,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayCost:
    """Delay of the traffic on each link: load times latency and queueing delay.

    capacity  (E,) Mbit/s
    latency   (E,) delay of an idle link, ms
    queueing  ms; the queue's delay at utilization 1/2
    other     (E,) load besides, which delays this traffic and does not count itself, Mbit/s
    """

    capacity: Floats
    latency: Floats
    queueing: float
    other: Floats

    @property
    def points(self) -> Floats:
        """(P,) utilization of the first tangents."""
        return DELAY_POINTS

    def value(self, load: Floats) -> Floats:
        """Return Mbit/s times ms."""
        utilization = (self.other + load) / self.capacity
        return np.asarray(load * (self.latency + self.queueing * queueing_delay(utilization)))

    def slope(self, load: Floats) -> Floats:
        """Return the marginal delay, ms."""
        utilization = (self.other + load) / self.capacity
        queue = queueing_delay(utilization) + load / self.capacity * queueing_slope(utilization)
        return np.asarray(self.latency + self.queueing * queue)


@dataclass(frozen=True, kw_only=True, eq=False)
class CongestionCost:
    """Congestion cost of each link, piecewise linear in its load.

    capacity  (E,) Mbit/s
    price     (E,) factor of each link's cost
    source    Fortz and Thorup 2000, "Internet traffic engineering by optimizing OSPF weights"
    """

    capacity: Floats
    price: Floats

    @property
    def points(self) -> Floats:
        """(P,) utilization within each linear piece: its tangents are the cost itself."""
        return np.append((SLOPE_FROM[:-1] + SLOPE_FROM[1:]) / 2, 1.2)

    def value(self, load: Floats) -> Floats:
        """Return price times capacity times congestion."""
        utilization = load / self.capacity
        piece = np.searchsorted(SLOPE_FROM, utilization, side="right") - 1
        congestion = CONGESTION_AT[piece] + SLOPES[piece] * (utilization - SLOPE_FROM[piece])
        return np.asarray(self.price * self.capacity * congestion)

    def slope(self, load: Floats) -> Floats:
        """Return the cost of one more Mbit/s."""
        piece = np.searchsorted(SLOPE_FROM, load / self.capacity, side="right") - 1
        return np.asarray(self.price * SLOPES[piece])


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedCost:
    """Weighted sum of two costs of the same links."""

    first: LinkCost
    second: LinkCost
    weight: float
    other_weight: float

    @property
    def capacity(self) -> Floats:
        """(E,) capacity of each link."""
        return self.first.capacity

    @property
    def points(self) -> Floats:
        """(P,) utilization of the first tangents of either cost."""
        return np.union1d(self.first.points, self.second.points)

    def value(self, load: Floats) -> Floats:
        """Return the weighted sum of both costs."""
        return self.weight * self.first.value(load) + self.other_weight * self.second.value(load)

    def slope(self, load: Floats) -> Floats:
        """Return the weighted sum of both slopes."""
        return self.weight * self.first.slope(load) + self.other_weight * self.second.slope(load)


@dataclass(frozen=True, kw_only=True, eq=False)
class Segments:
    """Convex cost below the true one as segments of load: of each link the cheapest are filled first.

    link     (M,) link of each segment, ascending
    width    (M,) as a share of capacity; inf for the last one of a link
    slope    (M,) cost of load that is all capacity
    at_zero  cost of no load, of all links
    """

    link: Ints
    width: Floats
    slope: Floats
    at_zero: float


def tangent_segments(cost: LinkCost, link: Ints, point: Floats) -> Segments:
    """Return the largest of some tangents of each link's cost.

    link, point  (P,) links and utilizations where tangents touch, in any order; each link has 0 among them
    """
    order = np.lexsort((point, link))
    link, point = link[order], point[order]
    is_new = np.ones(len(link), dtype=bool)
    is_new[1:] = (link[1:] != link[:-1]) | (point[1:] > point[:-1] + POINT_TOLERANCE)
    link, point = link[is_new], point[is_new]
    value, slope = _evaluate(cost, link, point)
    # of points on one straight piece the first stands for all
    is_new = np.ones(len(link), dtype=bool)
    is_new[1:] = (link[1:] != link[:-1]) | (slope[1:] > slope[:-1] * (1 + POINT_TOLERANCE))
    link, point, value, slope = link[is_new], point[is_new], value[is_new], slope[is_new]
    is_last = np.append(link[1:] != link[:-1], True)[: len(link)]
    is_first = np.insert(is_last[:-1], 0, True)[: len(link)]
    end = np.zeros(len(link))
    inner = np.flatnonzero(~is_last)
    lift = value[inner] - slope[inner] * point[inner]
    lift_after = value[inner + 1] - slope[inner + 1] * point[inner + 1]
    end[inner] = (lift - lift_after) / (slope[inner + 1] - slope[inner])  # where a tangent meets the next
    begin = np.where(is_first, 0.0, np.insert(end[:-1], 0, 0.0)[: len(link)])
    return Segments(
        link=link,
        width=np.where(is_last, np.inf, np.maximum(end - begin, 0.0)),
        slope=slope,
        at_zero=float((value - slope * point)[is_first].sum()),
    )


def _evaluate(cost: LinkCost, link: Ints, point: Floats) -> tuple[Floats, Floats]:
    """Return cost, and its slope by utilization, of links, ascending, at utilizations."""
    capacity = cost.capacity
    value, slope = np.empty(len(link)), np.empty(len(link))
    first = np.flatnonzero(np.insert(link[1:] != link[:-1], 0, True)[: len(link)])
    index = np.arange(len(link)) - np.repeat(first, np.diff(np.append(first, len(link))))
    load = np.zeros(len(capacity))
    for turn in range(int(index.max(initial=-1)) + 1):  # one point of each link at a time
        rows = np.flatnonzero(index == turn)
        load[link[rows]] = point[rows] * capacity[link[rows]]
        value[rows] = cost.value(load)[link[rows]]
        slope[rows] = (cost.slope(load) * capacity)[link[rows]]
    return value, slope
