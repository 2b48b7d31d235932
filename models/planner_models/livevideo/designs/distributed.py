"""Distributed control: Algorithm 1, by which clusters set up streams on announcements of their parents."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.livevideo.designs.admission import (
    ALL_GUARANTEES,
    STALE_GUARANTEES,
    admit_pinned,
    conclude,
)
from planner_models.livevideo.information import ClusterView
from planner_models.livevideo.plan.plan import SLACK, Streams, Trees, requests_by_arrival
from planner_models.livevideo.problem.problem import LiveVideo

Period = Annotated[
    float,
    Field(
        ge=0,
        description="time between announcements of distances, s; 0: always new, as Algorithm 1 assumes",
    ),
]
Seed = Annotated[int, Field(ge=0, description="seed of the choice between equal parents")]

UNREACHABLE = (float("inf"), 0.0)


def distribute(
    problem: LiveVideo,
    *,
    period_s: Period = 0.0,
    seed: Seed = 0,
    options: Options = Options(),
) -> Decision[Trees]:
    """Serve requests by arrival, each by Algorithm 1 alone: a random parent of the fewest hops.

    A request goes to an edge that has the object, else to the nearest edge; if that finds no path, to
    the next. Announcements that are `period_s` old lead to links that have filled up: these are
    overloaded, and the check shows by how much.

    source  Mukerjee 2018, section 4.4.2 and Algorithm 1
    """
    streams = admit_pinned(problem, options)
    if isinstance(streams, Decision):
        return streams
    random = np.random.default_rng(seed)
    serve_requests(streams, requests_by_arrival(problem), period_s=period_s, random=random)
    is_exact = period_s == 0 or isinstance(problem, ClusterView)
    return conclude(streams, guarantees=ALL_GUARANTEES if is_exact else STALE_GUARANTEES)


def serve_requests(
    streams: Streams,
    requests: list[tuple[int, int, float]],
    *,
    period_s: float,
    random: np.random.Generator,
) -> None:
    """Set up streams for requests (object, group, time) where there is a path."""
    if isinstance(streams.problem, ClusterView):
        period_s = max(period_s, streams.problem.announcement_period_s)
    announcements = Announcements(streams)
    round_ = 0
    for item, group, time in requests:
        if period_s > 0 and int(time // period_s) > round_:
            round_ = int(time // period_s)
            announcements = Announcements(streams)
        elif period_s == 0:
            announcements.renew()
        if streams.has(item, group):
            continue
        for link in sorted(
            streams.nearest[group], key=lambda link: not streams.has(item, streams.tail[link])
        ):
            if not streams.can_carry(item, link):  # DNS knows the residual capacity of links to clients
                continue
            path = find_path(streams, announcements, item, streams.tail[link], random)
            if path is not None:
                streams.add_path(item, [*path, link])
                if streams.has(item, group):  # else clients are left for other edges: the last hop is unicast
                    break


def find_path(
    streams: Streams, announcements: Announcements, item: int, cluster: int, random: np.random.Generator
) -> list[int] | None:
    """Return the links down to a cluster from one that has the object, by Algorithm 1; None without a path.

    Each cluster picks at random among the parents of the fewest hops with enough path capacity.
    """
    path: list[int] = []
    while not streams.has(item, cluster):
        useful = announcements.useful_links(item, cluster)
        if not useful:
            return None
        link = useful[int(random.integers(len(useful)))] if len(useful) > 1 else useful[0]
        path.append(link)
        cluster = streams.tail[link]
    return path[::-1]


class Announcements:
    """Announcements of clusters to those below: distance and path capacity of each object (Table 4.2).

    They hold the subscriptions and residual capacities of one moment; `renew` makes them current, for one
    use. For a `ClusterView`, announced residual capacities have its measurement noise, and each cluster
    knows the residual capacity of its own links.
    """

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.residual_mbps = streams.residual_mbps.copy()
        self.parent = dict(streams.parent)
        self.distances: dict[tuple[int, int], tuple[float, float]] = {}
        problem = streams.problem
        self.error_mbps = problem.measurement_error_mbps if isinstance(problem, ClusterView) else None

    def renew(self) -> None:
        """Make the announcements current."""
        self.residual_mbps, self.parent = self.streams.residual_mbps, self.streams.parent
        self.distances.clear()

    def distance(self, item: int, cluster: int) -> tuple[float, float]:
        """Return hops from the nearest cluster that has the object, and residual capacity of that path."""
        streams = self.streams
        if streams.level[cluster] == 0:
            return (0.0, float("inf")) if streams.has(item, cluster) else UNREACHABLE
        if (item, cluster) in self.parent:
            return 0.0, float("inf")
        key = (item, cluster)
        if key not in self.distances:
            paths = [
                self._distance_over(item, link, self._announced_mbps(link)) for link in streams.into[cluster]
            ]
            wide = [path for path in paths if path[1] > streams.bitrate[item] * (1 - SLACK)]
            hops = min((path[0] for path in wide), default=float("inf"))
            capacity = max((path[1] for path in wide if path[0] == hops), default=0.0)
            self.distances[key] = (hops, capacity)
        return self.distances[key]

    def useful_links(self, item: int, cluster: int) -> list[int]:
        """Return the links with the fewest hops among those with path capacity (Algorithm 1: useful)."""
        streams = self.streams
        need = streams.bitrate[item] * (1 - SLACK)
        paths = [
            (self._distance_over(item, link, self._own_mbps(link)), link) for link in streams.into[cluster]
        ]
        wide = [(hops, link) for (hops, capacity), link in paths if capacity >= need and hops < float("inf")]
        fewest = min((hops for hops, _ in wide), default=0.0)
        return [link for hops, link in wide if hops == fewest]

    def _distance_over(self, item: int, link: int, residual_mbps: float) -> tuple[float, float]:
        """Return hops and residual capacity of the path over a link from a parent."""
        if not self.streams.is_allowed(item, link):
            return UNREACHABLE
        hops, capacity = self.distance(item, self.streams.tail[link])
        return hops + 1, min(capacity, residual_mbps)

    def _announced_mbps(self, link: int) -> float:
        """Return the residual capacity of a link as its cluster announces it."""
        error_mbps = 0.0 if self.error_mbps is None else float(self.error_mbps[link])
        return float(self.residual_mbps[link]) + error_mbps

    def _own_mbps(self, link: int) -> float:
        """Return the residual capacity of a link as its own cluster knows it."""
        return float(
            self.residual_mbps[link] if self.error_mbps is None else self.streams.residual_mbps[link]
        )
