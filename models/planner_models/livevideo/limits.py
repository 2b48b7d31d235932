"""What is limited: the capacity of links, and how many objects of a bitrate fit on them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.layers import Layers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WASTE: Final = 0.03
"""A link that whole objects of a bitrate leave this share of unused gets a row that counts them."""


class Limits:
    """What is limited: the capacity of links, and how many objects of a bitrate fit on them.

    link   (M,) place through layers a, b, c
    floor  (M,) 0 for capacity, else the least bitrate of the objects counted
    limit  (M,) Mbit/s or objects
    """

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        parts = (layers.a, layers.b, layers.c)
        self.sizes = [len(part.tail) for part in parts]
        capacity = np.concatenate([part.capacity for part in parts])
        cost = np.concatenate([part.cost for part in parts])
        self.cost = layers.problem.cost_weight * cost
        self.opened = np.concatenate([layers.open_a, layers.open_b, layers.open_c], axis=1)
        self.links = np.concatenate([part.link for part in parts])
        asked = np.diff(layers.object_first)
        rate_of = np.repeat(layers.bitrate, asked)
        most = np.full(len(capacity), float(layers.bitrate[asked > 0].sum()))
        at_group = np.bincount(layers.group, weights=rate_of, minlength=len(layers.c.first) - 1)
        most[self.sizes[0] + self.sizes[1] :] = at_group[layers.c.head]
        link = np.flatnonzero(most > capacity)
        floor, limit = [np.zeros(len(link))], [capacity[link]]
        link_parts = [link]
        for rate in np.unique(layers.bitrate):
            share = np.where(np.isfinite(capacity), capacity, 0.0) / rate
            fit = np.floor(share * (1 + 1e-9))
            crowded = np.flatnonzero((fit >= 1) & (share - fit > WASTE * share) & (most > capacity))
            link_parts.append(crowded)
            floor.append(np.full(len(crowded), rate))
            limit.append(fit[crowded])
        self.link = np.concatenate(link_parts)
        self.floor, self.limit = np.concatenate(floor), np.concatenate(limit)
        self.count = len(capacity)
        # rows of each link, and what an object of each class takes of them
        order = np.argsort(self.link, kind="stable")
        self.of_link = order
        self.first = np.searchsorted(self.link[order], np.arange(self.count + 1))
        rates = layers.class_rate[:, None]
        self.takes = np.where(self.floor[None, :] == 0, rates, (rates >= self.floor[None, :]).astype(float))

    def by_class(self, prices: Floats) -> tuple[Floats, Floats, Floats]:
        """(K, n) prices of the links of each layer, costs included; infinite where they are not open."""
        layers = self.layers
        made = np.outer(layers.class_rate, self.cost)
        for k in range(len(layers.class_rate)):
            made[k] += np.bincount(self.link, weights=prices * self.takes[k], minlength=self.count)
        made = np.where(self.opened, made, np.inf)
        one, two = self.sizes[0], self.sizes[0] + self.sizes[1]
        return (
            np.ascontiguousarray(made[:, :one]),
            np.ascontiguousarray(made[:, one:two]),
            np.ascontiguousarray(made[:, two:]),
        )

    def named(self, prices: dict[tuple[str, float], float]) -> Floats:
        """(M,) prices from those that are remembered."""
        if not prices:
            return np.zeros(len(self.link))
        labels = self.layers.problem.link_labels
        return np.array(
            [
                prices.get((labels[self.links[link]] if self.links[link] >= 0 else "", float(floor)), 0.0)
                for link, floor in zip(self.link, self.floor, strict=True)
            ]
        )

    def remembered(self, prices: Floats) -> dict[tuple[str, float], float]:
        """The prices above 0 by link and floor."""
        labels = self.layers.problem.link_labels
        return {
            (labels[self.links[self.link[m]]], float(self.floor[m])): float(prices[m])
            for m in np.flatnonzero(prices > 0).tolist()
            if self.links[self.link[m]] >= 0
        }
