"""A content delivery network steered by DNS: each cluster asks who its parent is, and keeps the answer."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.livevideo.everywhere import KEPT, decided
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.streams import SLACK, Streams, in_order
from planner_models.livevideo.trees import Trees

Seed = Annotated[int, Field(ge=0, description="how ties between parents are broken")]
Ttl = Annotated[float, Field(gt=0, description="seconds for which DNS answers are kept")]


def distribute(
    problem: LiveVideo,
    *,
    ttl_s: Ttl = 30.0,
    seed: Seed = 0,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Trees] | None = None,  # noqa: ARG001
) -> Decision[Trees]:
    """Requests in the order they come; each cluster takes the parent with the highest path capacity.

    Parents that have the object go first. What DNS knows of room and subscriptions is as old as
    its last refresh, every `ttl_s`; until then a cluster that got an answer for an object keeps to
    it, also where the link has filled up meanwhile, and the request is denied. Groups are mapped to
    the nearest edge over whose link, by then, there was room.

    source  Mukerjee 2018, section 4.7.1
    """
    streams = Streams(problem)
    latency = problem.latency_ms.tolist()
    near = [sorted(links, key=lambda link: (latency[link], link)) for links in streams.into]
    random = np.random.default_rng(seed)
    known = _Known(streams, random)
    refreshed = 0
    for item, group, time in in_order(problem):
        if int(time // ttl_s) > refreshed:
            refreshed = int(time // ttl_s)
            known = _Known(streams, random)
        if streams.has(item, group):
            continue
        path: list[int] = []
        cluster = group
        while not streams.has(item, cluster):
            link = known.answers.get((item, cluster))
            if link is None:
                if cluster == group:
                    link = next((one for one in near[group] if known.usable(item, one)), None)
                else:
                    link = known.parent(item, cluster)
                if link is None:
                    break
                known.answers[item, cluster] = link
            path.append(link)
            cluster = streams.tail[link]
        if path and streams.has(item, cluster) and all(streams.fits(item, link) for link in path):
            streams.add_path(item, path[::-1])
    return decided(problem, streams.plan(), keeps=KEPT)


def distribute_1s(
    problem: LiveVideo,
    *,
    ttl_s: Ttl = 1.0,
    seed: Seed = 0,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """CDN with answers kept for one second only: fresher, at thirty times the DNS queries.

    source  Mukerjee 2018, section 4.7.1
    """
    return distribute(problem, ttl_s=ttl_s, seed=seed, options=options, previous=previous)


class _Known:
    """What DNS knows since its last refresh, and what it has answered since."""

    def __init__(self, streams: Streams, random: np.random.Generator) -> None:
        self.streams, self.random = streams, random
        self.room = streams.room_mbps.tolist()
        self.has = set(streams.parent)
        self.answers: dict[tuple[int, int], int] = {}
        self.supply = [0.0] * len(streams.level)  # the widest way from a source to each cluster
        for cluster in sorted(range(len(streams.level)), key=lambda c: streams.level[c]):
            if streams.level[cluster] == 0:
                self.supply[cluster] = float("inf")
            elif streams.into[cluster]:
                self.supply[cluster] = max(
                    min(self.room[link], self.supply[streams.tail[link]]) for link in streams.into[cluster]
                )

    def usable(self, item: int, link: int) -> bool:
        """Whether the link had room."""
        streams = self.streams
        return self.room[link] >= streams.bitrate[item] * (1 - SLACK) and streams.allowed(item, link)

    def parent(self, item: int, cluster: int) -> int | None:
        """The link from the parent of the highest path capacity, of those that had the object if any had."""
        streams = self.streams
        best: tuple[bool, float, float, int] | None = None
        for link in streams.into[cluster]:
            if not streams.allowed(item, link):
                continue
            tail = streams.tail[link]
            subscribed = (item, tail) in self.has
            width = self.room[link] if subscribed else min(self.room[link], self.supply[tail])
            key = (subscribed, width, float(self.random.random()), link)
            if best is None or key > best:
                best = key
        return None if best is None else best[3]
