"""Distributed control: Algorithm 1, by which clusters set up streams on what their parents announce."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.livevideo import pins
from planner_models.livevideo.outcome import BLIND, KEPT, decided
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.sees import Reporting
from planner_models.livevideo.streams import Streams, in_order
from planner_models.livevideo.trees import Trees

Period = Annotated[
    float,
    Field(
        ge=0,
        description="seconds between announcements of distances; 0: always fresh, as Algorithm 1 assumes",
    ),
]
Seed = Annotated[int, Field(ge=0, description="how ties between parents are broken")]


def distribute(
    problem: LiveVideo,
    *,
    period_s: Period = 0.0,
    seed: Seed = 0,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,  # noqa: ARG001
) -> Decision[Trees]:
    """Requests in the order they come, each by Algorithm 1 alone: a random parent of the fewest hops.

    A request goes to an edge that has the object, else to the nearest; if that finds no way, to
    the next. Announcements that are `period_s` old lead to links that are full by then: those are
    overloaded, and the check shows by how much.

    source  Mukerjee 2018, section 4.4.2 and Algorithm 1
    """
    streams = pins.laid(problem, options)
    if isinstance(streams, Decision):
        return streams
    serve(streams, in_order(problem), period_s=period_s, random=np.random.default_rng(seed))
    exact = period_s == 0 or isinstance(problem, Reporting)
    return decided(streams, keeps=KEPT if exact else BLIND)


def serve(
    streams: Streams,
    requests: list[tuple[int, int, float]],
    *,
    period_s: float,
    random: np.random.Generator,
) -> int:
    """Set up streams for (object, group, time) requests; how many were denied."""
    if isinstance(streams.problem, Reporting):
        period_s = max(period_s, streams.problem.announced_s)
    latency = streams.problem.latency_ms.tolist()
    near = [sorted(links, key=lambda link: (latency[link], link)) for links in streams.into]
    table = Table(streams)
    told = 0
    denied = 0
    for item, group, time in requests:
        if period_s > 0 and int(time // period_s) > told:
            told = int(time // period_s)
            table = Table(streams)
        elif period_s == 0:
            table.forget()
        if streams.has(item, group):
            continue
        links = sorted(near[group], key=lambda link: not streams.has(item, streams.tail[link]))
        for link in links:  # DNS knows the room on its own links to clients
            if not (streams.fits(item, link) and streams.allowed(item, link)):
                continue
            path = climb(streams, table, item, streams.tail[link], random)
            if path is not None:
                streams.add_path(item, [*path, link])
                break
        else:
            denied += 1
    return denied


def climb(
    streams: Streams, table: Table, item: int, cluster: int, random: np.random.Generator
) -> list[int] | None:
    """Algorithm 1 from a cluster up to one that has the object: the links down, or None.

    Each cluster picks at random among the parents of the fewest hops with enough path capacity.
    """
    path: list[int] = []
    while not streams.has(item, cluster):
        useful = table.parents(item, cluster)
        if not useful:
            return None
        link = useful[int(random.integers(len(useful)))] if len(useful) > 1 else useful[0]
        path.append(link)
        cluster = streams.tail[link]
    return path[::-1]


class Table:
    """What clusters know of those above them: distance and path capacity of each object (Table 4.2).

    As told at one moment: subscriptions and room are those of then. A table that is to be always
    fresh is made to `forget` what it has worked out before each use. Under a `Reporting` problem the
    room that is told is of capacities as measured, and each cluster sees that on its own links.
    """

    def __init__(self, streams: Streams, fresh: bool = False) -> None:
        self.streams = streams
        self.fresh = fresh
        self.room = streams.room_mbps if fresh else streams.room_mbps.copy()
        self.has = streams.parent if fresh else dict(streams.parent)
        self.known: dict[tuple[int, int], tuple[float, float]] = {}
        self.error = streams.problem.error_mbps if isinstance(streams.problem, Reporting) else None

    def forget(self) -> None:
        """Look at everything anew."""
        if not self.fresh:
            self.room, self.has, self.fresh = self.streams.room_mbps, self.streams.parent, True
        self.known.clear()

    def announced(self, item: int, cluster: int) -> tuple[float, float]:
        """(hops to the nearest cluster that has the object with room on the way, room on that way)."""
        streams = self.streams
        if streams.level[cluster] == 0:
            return (0.0, float("inf")) if streams.has(item, cluster) else (float("inf"), 0.0)
        if (item, cluster) in self.has:
            return 0.0, float("inf")
        key = (item, cluster)
        if key not in self.known:
            ways = [self.via(item, link, self.told_mbps(link)) for link in streams.into[cluster]]
            enough = [way for way in ways if way[1] > streams.bitrate[item] * (1 - 1e-9)]
            hops = min((way[0] for way in enough), default=float("inf"))
            room = max((way[1] for way in enough if way[0] == hops), default=0.0)
            self.known[key] = (hops, room)
        return self.known[key]

    def via(self, item: int, link: int, room_mbps: float) -> tuple[float, float]:
        """Distance and path capacity over a link from a parent, that has so much room."""
        if not self.streams.allowed(item, link):
            return float("inf"), 0.0
        hops, room = self.announced(item, self.streams.tail[link])
        return hops + 1, min(room, room_mbps)

    def told_mbps(self, link: int) -> float:
        """Room on a link as its cluster tells others."""
        return float(self.room[link]) + (0.0 if self.error is None else float(self.error[link]))

    def own_mbps(self, link: int) -> float:
        """Room on a link as its cluster knows it."""
        return float(self.room[link] if self.error is None else self.streams.room_mbps[link])

    def parents(self, item: int, cluster: int) -> list[int]:
        """The links that Algorithm 1 calls useful: fewest hops, and more room than the bitrate."""
        streams = self.streams
        ways = [(self.via(item, link, self.own_mbps(link)), link) for link in streams.into[cluster]]
        need = streams.bitrate[item] * (1 - 1e-9)
        enough = [(hops, link) for (hops, room), link in ways if room >= need and hops < float("inf")]
        fewest = min((hops for hops, _ in enough), default=0.0)
        return [link for hops, link in enough if hops == fewest]
