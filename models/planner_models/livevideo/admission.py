"""How plans that were made on beliefs play out: what clusters let in of them, on the links that there are.

Clusters refuse what a link has no room for, and forward nothing that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.check import delivered
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.sees import Told
from planner_models.livevideo.streams import Streams
from planner_models.livevideo.trees import Trees, rows_of, waits_of


def enact(truth: LiveVideo, believed: LiveVideo, plan: Trees) -> Trees:
    """The plan as it plays out: what links have no room for is refused, in the order of the requests.

    Clients that were told in regions go to their nearest edge that has the object. Who is served has
    waited as long as what the controller knows is old. Of what clusters decide themselves all fits.
    """
    if not isinstance(believed, Told):
        return plan
    made = plan if exact(truth, believed) else set_up(truth, believed, plan)[0].plan()
    if believed.age_s == 0:
        return made
    served = delivered(truth, made).served
    return Trees(trees=made.trees, waits=waits_of(truth, np.flatnonzero(served), believed.age_s))


def exact(truth: LiveVideo, believed: LiveVideo) -> bool:
    """Whether all that is believed of the network is so."""
    if isinstance(believed, Told) and believed.regions:
        return False
    return np.array_equal(truth.capacity_mbps, believed.capacity_mbps) and (
        truth.link_labels == believed.link_labels
    )


def set_up(truth: LiveVideo, believed: LiveVideo, plan: Trees) -> tuple[Streams, NDArray[np.int64]]:
    """What of a plan fits in truth, and the requests that it meant to serve but were refused.

    Pinned streams go first, then requests as they come; branches that nobody asks for stay empty.
    """
    streams = Streams(truth)
    ways = _Ways(truth, believed, plan, streams)
    for item, link in truth.pinned_links.tolist():
        if ways.parent.get((item, streams.head[link])) == link:
            ways.send(item, [link])
    order = np.argsort(truth.arrival_s, kind="stable")
    first = np.isin(order, truth.pinned_requests)
    refused = []
    for q in np.concatenate([order[first], order[~first]]).tolist():
        item, group = int(truth.object[q]), int(truth.group[q])
        if streams.has(item, group) or not ways.meant(item, group):
            continue
        if not ways.send(item, ways.into(item, group)):
            refused.append(q)
    return streams, np.array(refused, dtype=np.int64)


class _Ways:
    """The ways that a plan gives to clusters and groups, on the links that there are."""

    def __init__(self, truth: LiveVideo, believed: LiveVideo, plan: Trees, streams: Streams) -> None:
        self.streams = streams
        item, used = rows_of(truth, plan)
        rows = zip(item.tolist(), used.tolist(), strict=True)
        self.parent = {(o, streams.head[link]): link for o, link in rows if link >= 0}
        self.region: dict[int, str] = {}
        self.served: set[tuple[int, str]] = set()
        if isinstance(believed, Told) and believed.regions:
            names = truth.clusters["cluster"]
            self.region = {
                c: believed.regions[name] for c, name in enumerate(names) if name in believed.regions
            }
            self.served = set(zip(item.tolist(), plan.trees["head"].astype(str), strict=True))
        latency = truth.latency_ms.tolist()
        self.near = [sorted(links, key=lambda link: (latency[link], link)) for links in streams.into]

    def meant(self, item: int, group: int) -> bool:
        """Whether the plan means to bring an object to a group."""
        if group in self.region:
            return (item, self.region[group]) in self.served
        return (item, group) in self.parent

    def into(self, item: int, group: int) -> Iterator[int]:
        """The links by which a group may get an object: the planned one, or from edges that get it."""
        if group not in self.region:
            yield self.parent[item, group]
            return
        for link in self.near[group]:
            tail = self.streams.tail[link]
            if self.streams.has(item, tail) or (item, tail) in self.parent:
                yield link

    def send(self, item: int, links: Iterator[int] | list[int]) -> bool:
        """Send the object over the first of the links to which the plan's way has room; whether there is."""
        streams = self.streams
        for link in links:
            path: list[int] = [link]
            cluster = streams.tail[link]
            while not streams.has(item, cluster) and (item, cluster) in self.parent:
                path.append(self.parent[item, cluster])
                cluster = streams.tail[path[-1]]
            if streams.has(item, cluster) and all(
                streams.fits(item, used) and streams.allowed(item, used) for used in path
            ):
                streams.add_path(item, path[::-1])
                return True
        return False
