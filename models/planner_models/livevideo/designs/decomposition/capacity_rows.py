"""Rows of the master problem: the capacity of links, and the number of objects that fit on them.

Capacities are rounded to the largest sum of bitrates. The second kind is a rounding cut: where whole
objects of a bitrate cannot fill a link, their number is at most the capacity over the bitrate, rounded
down.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.livevideo.designs.decomposition.layered_problem import LayeredProblem
from planner_models.livevideo.designs.tree.local_network import CAPACITY_TOLERANCE, PerLayer
from planner_models.livevideo.designs.whole_streams import round_capacities

MIN_UNUSED_SHARE: Final = 0.03
"""Share of a link that whole objects of a bitrate leave unused, from which it gets a row that counts them."""


class RowArrays(NamedTuple):
    """The rows as kernels take them; links are numbered through layers a, b and c.

    link         (M,) link of each row
    first, row   rows row[first[n]:first[n + 1]] are those of link n
    usage        (K, M) what an object of each class uses of each row
    cost         (N,) cost of each link per Mbit/s
    n_a, n_b     links of layers a and b
    """

    link: Ints
    first: Ints
    row: Ints
    usage: Floats
    cost: Floats
    n_a: int
    n_b: int


class CapacityRows:
    """Capacity and counting rows of the links that can overload.

    link         (M,) link of each row, numbered through layers a, b and c
    min_bitrate  (M,) 0 for a capacity row, else the least bitrate that the row counts, Mbit/s
    limit        (M,) Mbit/s or objects
    usage        (K, M) what an object of each class uses of each row
    link_count   N, links of all layers
    base_price   (K, N) price of each link for each class at row prices of 0, infinite where not usable
    """

    def __init__(self, layered: LayeredProblem) -> None:
        self.layered = layered
        objects = layered.objects
        self.sizes = layered.sizes
        capacity = np.concatenate([layer.capacity for layer in layered.layers])
        self.cost = np.concatenate(layered.network.cost)
        usable = np.concatenate(layered.usable, axis=1)
        self.base_price = np.where(usable, np.outer(layered.class_rate, self.cost), np.inf)
        self.problem_link = np.concatenate([layer.link for layer in layered.layers])
        is_requested = layered.request_count > 0
        max_load = np.full(len(capacity), float(objects.bitrate[is_requested].sum()))
        request_rate = np.repeat(objects.bitrate, layered.request_count)
        group_load = np.bincount(objects.group, weights=request_rate, minlength=len(layered.c.first) - 1)
        max_load[self.sizes[0] + self.sizes[1] :] = group_load[layered.c.head]
        rates, count = np.unique(objects.bitrate[is_requested], return_counts=True)
        rounded = round_capacities(capacity, rates, count)
        link = np.flatnonzero((max_load > capacity) & (rounded > 0))
        links, min_bitrates, limits = [link], [np.zeros(len(link))], [rounded[link]]
        for rate in rates:
            quotient = np.where(np.isfinite(rounded), rounded, 0.0) / rate
            count = np.floor(quotient * (1 + CAPACITY_TOLERANCE))
            wastes = quotient - count > MIN_UNUSED_SHARE * quotient
            link = np.flatnonzero((count >= 1) & wastes & (max_load > capacity))
            links.append(link)
            min_bitrates.append(np.full(len(link), rate))
            limits.append(count[link])
        self.link = np.concatenate(links)
        self.min_bitrate, self.limit = np.concatenate(min_bitrates), np.concatenate(limits)
        self.link_count = len(capacity)
        rates = layered.class_rate[:, None]
        counted = (rates >= self.min_bitrate[None, :]).astype(float)
        self.usage = np.where(self.min_bitrate[None, :] == 0, rates, counted)

    @cached_property
    def arrays(self) -> RowArrays:
        """The rows as kernels take them."""
        order = np.argsort(self.link, kind="stable")
        return RowArrays(
            link=self.link,
            first=np.searchsorted(self.link[order], np.arange(self.link_count + 1)),
            row=order,
            usage=np.ascontiguousarray(self.usage),
            cost=self.cost,
            n_a=self.sizes[0],
            n_b=self.sizes[1],
        )

    def link_prices(self, row_prices: Floats) -> PerLayer:
        """Return prices of links (K, n) at prices of rows (M,), costs included; infinite where not usable."""
        priced = np.flatnonzero(row_prices)
        link, value = self.link[priced], row_prices[priced] * self.usage[:, priced]
        price = self.base_price + [
            np.bincount(link, layer_value, minlength=self.link_count) for layer_value in value
        ]
        parts = np.split(price, np.cumsum(self.sizes)[:2], axis=1)
        return PerLayer(*(np.ascontiguousarray(prices_of) for prices_of in parts))

    def from_labels(self, prices: dict[tuple[str, float], float]) -> Floats:
        """Return the prices of rows (M,) that have the labels; 0 for others."""
        if not prices:
            return np.zeros(len(self.link))
        return np.array([prices.get(label, 0.0) for label in self._labels()])

    def to_labels(self, prices: Floats) -> dict[tuple[str, float], float]:
        """Return the prices above 0 by label of the link, and least bitrate that the row counts."""
        rows = zip(self._labels(), prices.tolist(), strict=True)
        return {label: price for label, price in rows if price > 0 and label[0]}

    def _labels(self) -> list[tuple[str, float]]:
        """Return the label of each row's link, "" for virtual links, and the least bitrate that it counts."""
        labels = [*self.layered.problem.link_labels, ""]  # the last for -1
        links = self.problem_link[self.link].tolist()
        return [(labels[link], rate) for link, rate in zip(links, self.min_bitrate.tolist(), strict=True)]
