"""Content delivery network (CDN) with DNS: clusters query DNS for their parent and cache the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.contract.notes import add_note
from planner.options import Options
from planner_models.livevideo.designs.admission import admit_pinned, conclude
from planner_models.livevideo.information import ClusterView
from planner_models.livevideo.plan.plan import SLACK, PortsetTrees, Streams, Trees, requests_by_arrival
from planner_models.livevideo.problem.problem import LiveVideo

CDN_TTL_S: Final = 30.0
CDN_1S_TTL_S: Final = 1.0  # lifetime of an answer in a CDN and in the variant CDN-1 (4.7.1)

Seed = Annotated[int, Field(ge=0, description="seed of the choice between equal parents")]
Ttl = Annotated[float, Field(gt=0, description="lifetime of a DNS answer, s")]
Monitor = Annotated[
    float,
    Field(
        ge=0, description="time between measurements of residual capacity and subscriptions, s; 0: always new"
    ),
]
Portsets = Annotated[
    Annotated[int, Field(gt=0, le=10**6)] | None,
    Field(
        description="bins into which DNS puts channels, popular and unpopular ones alike; channels of a bin "
        "share answers; none: each channel has its own"
    ),
]


def distribute(
    problem: LiveVideo,
    *,
    ttl_s: Ttl = CDN_TTL_S,
    monitor_s: Monitor = 0.0,
    portsets: Portsets = None,
    seed: Seed = 0,
    options: Options = Options(),
) -> Decision[Trees]:
    """Serve requests by arrival; each cluster takes the parent with the highest path capacity.

    Parents that have the object go first. Groups go to the nearest edge that has the object, or has
    path capacity for it. A cluster caches the answer for a channel for `ttl_s`: until then it sends all
    objects of the channel that way, also where a link has filled up, and what does not fit is denied.

    With `portsets`, the answer for the first channel of a bin holds for all of its channels
    (`assign_portsets`): fewer queries, and trees that follow another channel's.

    source  Mukerjee 2018, section 4.7.1; 4.2.1 for portsets
    """
    streams = admit_pinned(problem, options)
    if isinstance(streams, Decision):
        return streams
    portset = None if portsets is None else assign_portsets(problem, portsets)
    channel = problem.channel_number
    bins = (channel if portset is None else portset[channel]).tolist()
    if isinstance(problem, ClusterView):
        monitor_s = max(monitor_s, problem.announcement_period_s)
    monitor = _Monitor(streams, np.random.default_rng(seed), is_current=monitor_s == 0)
    measurement = 0
    answers: dict[tuple[int, int], tuple[int, float]] = {}  # by bin and cluster: link, time of answer
    for item, group, time in requests_by_arrival(problem):
        if monitor_s > 0 and time // monitor_s > measurement:
            measurement = int(time // monitor_s)
            monitor.measure()
        path: list[int] = []
        cluster = group
        while not streams.has(item, cluster):
            key = (bins[item], cluster)
            link, answered_s = answers.get(key, (-1, -np.inf))
            if time - answered_s >= ttl_s or not streams.is_allowed(item, link):
                answer = monitor.choose(item, cluster, is_client=cluster == group)
                if answer is None:
                    break
                link = answer
                answers[key] = (link, time)
            path.append(link)
            cluster = streams.tail[link]
        if path and streams.has(item, cluster) and streams.fits_along(item, path):
            streams.add_path(item, path[::-1])
    decision = conclude(streams)
    if portset is None or decision.plan is None:
        return decision
    return replace(decision, plan=PortsetTrees(**vars(decision.plan), portset=portset))


def assign_portsets(problem: LiveVideo, portsets: int) -> Ints:
    """Return the bin of each channel, (V,): channels are dealt out by falling numbers of clients.

    So each bin has popular and unpopular channels. The thesis does not say how CDNs fill their bins, which a
    note says.
    """
    add_note(
        f"assumed: channels are dealt out to portsets ({portsets}) by falling numbers of clients; the thesis "
        "does not say how CDNs fill them"
    )
    channel = problem.channel_number
    clients = np.bincount(
        channel[problem.object], weights=problem.clients, minlength=channel.max(initial=-1) + 1
    )
    portset = np.empty(len(clients), dtype=np.int64)
    portset[np.argsort(-clients, kind="stable")] = np.arange(len(clients)) % portsets
    return portset


def distribute_1s(
    problem: LiveVideo,
    *,
    ttl_s: Ttl = CDN_1S_TTL_S,
    monitor_s: Monitor = 0.0,
    portsets: Portsets = None,
    seed: Seed = 0,
    options: Options = Options(),
) -> Decision[Trees]:
    """Serve requests as `distribute`, with answers cached for one second: thirty times the DNS queries.

    source  Mukerjee 2018, section 4.7.1
    """
    return distribute(
        problem, ttl_s=ttl_s, monitor_s=monitor_s, portsets=portsets, seed=seed, options=options
    )


class _Monitor:
    """Residual capacities and subscriptions as DNS observes them: current, or of the last measurement.

    For a `ClusterView`, residual capacities have its measurement noise.
    """

    def __init__(self, streams: Streams, random: np.random.Generator, *, is_current: bool) -> None:
        self.streams, self.random, self.is_current = streams, random, is_current
        problem = streams.problem
        self.error_mbps = problem.measurement_error_mbps if isinstance(problem, ClusterView) else None
        self.measure()

    def measure(self) -> None:
        """Measure residual capacities and subscriptions."""
        streams = self.streams
        self.measured_mbps = streams.residual_mbps if self.is_current else streams.residual_mbps.copy()
        self.subscribed = streams.parent if self.is_current else dict(streams.parent)
        self.path_mbps: dict[int, float] = {}

    def residual_mbps(self, link: int) -> float:
        """Return the observed residual capacity of a link."""
        error_mbps = 0.0 if self.error_mbps is None else float(self.error_mbps[link])
        return float(self.measured_mbps[link]) + error_mbps

    def path_capacity_mbps(self, cluster: int) -> float:
        """Return the residual capacity of the widest path from a source."""
        streams = self.streams
        if streams.level[cluster] == 0:
            return float("inf")
        if self.is_current or cluster not in self.path_mbps:
            self.path_mbps[cluster] = max(
                (
                    min(self.residual_mbps(link), self.path_capacity_mbps(streams.tail[link]))
                    for link in streams.into[cluster]
                ),
                default=0.0,
            )
        return self.path_mbps[cluster]

    def choose(self, item: int, cluster: int, *, is_client: bool) -> int | None:
        """Return the link to an edge for clients, where one can serve them, else to a parent."""
        edge = self.choose_edge(item, cluster) if is_client else None
        return edge if edge is not None else self.choose_parent(item, cluster)

    def choose_edge(self, item: int, group: int) -> int | None:
        """Return the link from the nearest edge that has the object or path capacity for it."""
        streams = self.streams
        need = streams.bitrate[item] * (1 - SLACK)
        for link in streams.nearest[group]:
            tail = streams.tail[link]
            if self.residual_mbps(link) < need or not streams.is_allowed(item, link):
                continue
            if (
                streams.level[tail] == 0
                or (item, tail) in self.subscribed
                or self.path_capacity_mbps(tail) >= need
            ):
                return link
        return None

    def choose_parent(self, item: int, cluster: int) -> int | None:
        """Return the link with the highest path capacity, from parents that have the object if any has."""
        streams = self.streams
        best: tuple[bool, float, float, int] | None = None
        for link in streams.into[cluster]:
            if not streams.is_allowed(item, link):
                continue
            tail = streams.tail[link]
            is_subscribed = (item, tail) in self.subscribed
            capacity = self.residual_mbps(link)
            if not is_subscribed:
                capacity = min(capacity, self.path_capacity_mbps(tail))
            key = (is_subscribed, capacity, float(self.random.random()), link)
            if best is None or key > best:
                best = key
        return None if best is None else best[3]
