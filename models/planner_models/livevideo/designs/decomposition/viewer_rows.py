"""Links into groups by request: with a unicast last hop a request takes as many streams as it has clients.

Layer c gets a copy of each link into a group for each request of that group, over which all of its clients
are served: it costs and loads as many streams. The rows of the master problem stay those of the links.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.livevideo.designs.decomposition.layered_problem import (
    CapacityRows,
    Layer,
    LayeredProblem,
    RowArrays,
    links_to,
)
from planner_models.livevideo.designs.tree.local_network import PerLayer


class SplitLastHop(NamedTuple):
    """A layered problem whose layer c has links of its own for each request.

    layered  the problem; request q is head q of layer c
    copied   (n,) link of the original layer c that each link of layer c copies
    streams  (n,) streams on it: the clients of its request
    """

    layered: LayeredProblem
    copied: Ints
    streams: Floats


def split_last_hop(layered: LayeredProblem) -> SplitLastHop:
    """Return the problem with links into groups by request."""
    copied, repeats = links_to(layered.c.first, layered.objects.group)
    request = np.repeat(np.arange(len(repeats)), repeats)
    streams = layered.streams[request]
    c = layered.c
    layer = Layer(
        first=np.concatenate([[0], np.cumsum(repeats)]).astype(np.int64),
        tail=c.tail[copied],
        head=request.astype(np.int64),
        capacity=c.capacity[copied],
        cost=c.cost[copied] * streams,
        link=c.link[copied],
    )
    objects = layered.objects._replace(group=np.arange(len(repeats), dtype=np.int64))
    usable = layered.usable._replace(c=np.ascontiguousarray(layered.usable.c[:, copied]))
    return SplitLastHop(replace(layered, c=layer, objects=objects, usable=usable), copied, streams)


class ViewerRows(CapacityRows):
    """Rows of the original links, for trees over the links of a split last hop.

    link, sizes         of the original layers
    link_count, arrays  of the split ones
    """

    def __init__(self, rows: CapacityRows, split: SplitLastHop) -> None:
        self.rows, self.split = rows, split
        self.layered = split.layered
        self.sizes, self.link, self.usage = rows.sizes, rows.link, rows.usage
        self.min_bitrate, self.limit = rows.min_bitrate, rows.limit
        self.cost = np.concatenate(split.layered.network.cost)
        self.link_count = len(self.cost)
        inner = self.link_count - len(split.copied)
        self.original = np.concatenate([np.arange(inner), inner + split.copied])
        self.streams = np.concatenate([np.ones(inner), split.streams])

    @cached_property
    def arrays(self) -> RowArrays:
        """The rows as kernels take them."""
        above = self.rows.arrays
        position, repeats = links_to(above.first, self.original)
        return above._replace(
            first=np.concatenate([[0], np.cumsum(repeats)]).astype(np.int64),
            row=above.row[position],
            cost=self.cost,
            streams=self.streams,
        )

    def load(self, object_class: Ints, link: Ints, streams: Floats | float = 1.0) -> Floats:
        """Return the load of rows, (M,), of objects of these classes on these links, (n,).

        streams  factor on those of each link
        """
        return self.rows.load(object_class, self.original[link], streams * self.streams[link])

    def link_prices(self, row_prices: Floats) -> PerLayer:
        """Return prices of links (K, n) at prices of rows (M,), costs included; infinite where not usable."""
        price = self.rows.link_prices(row_prices)
        return price._replace(c=np.ascontiguousarray(price.c[:, self.split.copied] * self.split.streams))
