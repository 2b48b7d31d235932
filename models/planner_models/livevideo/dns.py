"""A content delivery network steered by DNS: each cluster asks who its parent is, and keeps the answer."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.livevideo import pins
from planner_models.livevideo.outcome import decided
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.sees import Reporting
from planner_models.livevideo.streams import Streams, in_order
from planner_models.livevideo.trees import Trees

TTL_S: Final = 30.0
TTL_1S: Final = 1.0
"""Seconds for which an answer is kept, in a CDN as it is and in the variant CDN-1 (4.7.1)."""

Seed = Annotated[int, Field(ge=0, description="how ties between parents are broken")]
Ttl = Annotated[float, Field(gt=0, description="seconds for which a cluster keeps an answer")]
Monitor = Annotated[
    float,
    Field(ge=0, description="seconds between measurements of room and subscriptions; 0: always fresh"),
]


def distribute(
    problem: LiveVideo,
    *,
    ttl_s: Ttl = TTL_S,
    monitor_s: Monitor = 0.0,
    seed: Seed = 0,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,  # noqa: ARG001
) -> Decision[Trees]:
    """Requests in the order they come; each cluster takes the parent with the highest path capacity.

    Parents that have the object go first. Groups go to the nearest edge that has the object, or
    has room towards it. What DNS answers for a channel is kept for `ttl_s`: until then a cluster
    sends all the channel's objects that way, also where it has filled up meanwhile, and what does
    not fit is denied.

    source  Mukerjee 2018, section 4.7.1
    """
    streams = pins.laid(problem, options)
    if isinstance(streams, Decision):
        return streams
    latency = problem.latency_ms.tolist()
    near = [sorted(links, key=lambda link: (latency[link], link)) for links in streams.into]
    last = len(problem.tiers) - 1
    _, channel = np.unique(problem.objects["channel"].to_numpy(), return_inverse=True)
    of_channel = channel.tolist()
    if isinstance(problem, Reporting):
        monitor_s = max(monitor_s, problem.announced_s)
    known = _Known(streams, np.random.default_rng(seed), fresh=monitor_s == 0)
    measured = 0
    answers: dict[tuple[int, int], tuple[int, float]] = {}  # by channel and cluster: a link, and since when
    for item, group, time in in_order(problem):
        if monitor_s > 0 and int(time // monitor_s) > measured:
            measured = int(time // monitor_s)
            known.measure()
        path: list[int] = []
        cluster = group
        while not streams.has(item, cluster):
            key = (of_channel[item], cluster)
            link, since = answers.get(key, (-1, -np.inf))
            if time - since >= ttl_s or not streams.allowed(item, link):
                found = known.edge(item, near[cluster]) if streams.level[cluster] == last else None
                if found is None:
                    found = known.parent(item, cluster)
                if found is None:
                    break
                link = found
                answers[key] = (link, time)
            path.append(link)
            cluster = streams.tail[link]
        if path and streams.has(item, cluster) and all(streams.fits(item, link) for link in path):
            streams.add_path(item, path[::-1])
    return decided(streams)


def distribute_1s(
    problem: LiveVideo,
    *,
    ttl_s: Ttl = TTL_1S,
    monitor_s: Monitor = 0.0,
    seed: Seed = 0,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """CDN with answers kept for one second only: fresher, at thirty times the DNS queries.

    source  Mukerjee 2018, section 4.7.1
    """
    return distribute(
        problem, ttl_s=ttl_s, monitor_s=monitor_s, seed=seed, options=options, previous=previous
    )


class _Known:
    """What DNS knows of room and subscriptions: as they are, or as they were when last measured.

    Under a `Reporting` problem room is of capacities as measured.
    """

    def __init__(self, streams: Streams, random: np.random.Generator, *, fresh: bool) -> None:
        self.streams, self.random, self.fresh = streams, random, fresh
        self.error = streams.problem.error_mbps if isinstance(streams.problem, Reporting) else None
        self.measure()

    def measure(self) -> None:
        """Look at everything."""
        streams = self.streams
        self.room = streams.room_mbps if self.fresh else streams.room_mbps.copy()
        self.subscribed = streams.parent if self.fresh else dict(streams.parent)
        self.widest: dict[int, float] = {}

    def room_mbps(self, link: int) -> float:
        """Room on a link, as far as is known."""
        return float(self.room[link]) + (0.0 if self.error is None else float(self.error[link]))

    def supply(self, cluster: int) -> float:
        """Room on the widest way from a source."""
        streams = self.streams
        if streams.level[cluster] == 0:
            return float("inf")
        if self.fresh or cluster not in self.widest:
            self.widest[cluster] = max(
                (
                    min(self.room_mbps(link), self.supply(streams.tail[link]))
                    for link in streams.into[cluster]
                ),
                default=0.0,
            )
        return self.widest[cluster]

    def edge(self, item: int, links: list[int]) -> int | None:
        """The first of a group's links, nearest first, that has room, from an edge that has or can get it."""
        streams = self.streams
        need = streams.bitrate[item] * (1 - 1e-9)
        for link in links:
            tail = streams.tail[link]
            if self.room_mbps(link) < need or not streams.allowed(item, link):
                continue
            if streams.level[tail] == 0 or (item, tail) in self.subscribed or self.supply(tail) >= need:
                return link
        return None

    def parent(self, item: int, cluster: int) -> int | None:
        """The link from the parent of the highest path capacity, of those that had the object if any had."""
        streams = self.streams
        best: tuple[bool, float, float, int] | None = None
        for link in streams.into[cluster]:
            if not streams.allowed(item, link):
                continue
            tail = streams.tail[link]
            subscribed = (item, tail) in self.subscribed
            room = self.room_mbps(link)
            width = room if subscribed else min(room, self.supply(tail))
            key = (subscribed, width, float(self.random.random()), link)
            if best is None or key > best:
                best = key
        return None if best is None else best[3]
