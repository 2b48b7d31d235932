"""Streams set up one by one: the link over which each cluster receives an object, and residual capacity."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np

from planner.arrays import Ints
from planner.search.tolerances import ROUNDING
from planner_models.livevideo.plan.plan import Trees, build_plan, plan_rows
from planner_models.livevideo.problem.problem import LiveVideo

SLACK = ROUNDING


class Streams:
    """Distribution trees under construction.

    residual_mbps  (L,) residual capacity; negative where decisions on old state overload a link
    parent         by object and cluster: the link over which the cluster receives the object
    into           links into each cluster
    """

    def __init__(self, problem: LiveVideo) -> None:
        self.problem = problem
        self.residual_mbps = problem.capacity_mbps.copy()
        self.parent: dict[tuple[int, int], int] = {}
        self.tail = problem.tail.tolist()
        self.head = problem.head.tolist()
        self.level = problem.level.tolist()
        self.bitrate = problem.bitrate_mbps.tolist()
        self.into: list[list[int]] = [[] for _ in self.level]
        for link, head in enumerate(self.head):
            self.into[head].append(link)
        self._source = {int(cluster): s for s, cluster in enumerate(problem.sources)}
        self._is_at_source = problem.is_at_source
        self._forbidden = problem.forbidden_pairs

    @cached_property
    def nearest(self) -> list[list[int]]:
        """Links into each cluster in ascending order of delay."""
        latency = self.problem.latency_ms.tolist()
        return [sorted(links, key=lambda link: (latency[link], link)) for links in self.into]

    def has(self, item: int, cluster: int) -> bool:
        """Return whether the cluster receives the object, or is a source that holds it."""
        if self.level[cluster] == 0:
            return bool(self._is_at_source[item, self._source[cluster]])
        return (item, cluster) in self.parent

    def is_allowed(self, item: int, link: int) -> bool:
        """Return whether no rule forbids the object on the link, and a source at its tail holds it."""
        if self._forbidden is not None and self._forbidden[item, link]:
            return False
        tail = self.tail[link]
        return self.level[tail] > 0 or bool(self._is_at_source[item, self._source[tail]])

    def fits(self, item: int, link: int) -> bool:
        """Return whether the link has residual capacity for the object."""
        return bool(self.residual_mbps[link] >= self.bitrate[item] * (1 - SLACK))

    def can_carry(self, item: int, link: int) -> bool:
        """Return whether the object fits on the link and is allowed there."""
        return self.fits(item, link) and self.is_allowed(item, link)

    def add(self, item: int, link: int) -> None:
        """Send the object over the link; its head must not receive it yet."""
        self.parent[item, self.head[link]] = link
        self.residual_mbps[link] -= self.bitrate[item]

    def remove(self, item: int, link: int) -> None:
        """Stop sending the object over the link."""
        del self.parent[item, self.head[link]]
        self.residual_mbps[link] += self.bitrate[item]

    def add_path(self, item: int, links: list[int]) -> None:
        """Send the object down the links, from the last cluster on them that has it."""
        for link in links:
            if not self.has(item, self.head[link]):
                self.add(item, link)

    def add_plan(self, plan: Trees) -> None:
        """Send objects as a plan says."""
        for item, link in zip(*(rows.tolist() for rows in plan_rows(self.problem, plan)), strict=True):
            self.add(item, link)

    def copy(self) -> Streams:
        """Return independent streams, equal to these."""
        other = copy.copy(self)
        other.residual_mbps, other.parent = self.residual_mbps.copy(), dict(self.parent)
        return other

    def path(self, item: int, cluster: int, up_to: Streams | None = None) -> list[int]:
        """Return the links from a source down to a cluster that receives the object.

        up_to  other streams: the path starts at the lowest cluster that has the object there
        """
        links: list[int] = []
        while not (self.level[cluster] == 0 or (up_to is not None and up_to.has(item, cluster))):
            links.append(self.parent[item, cluster])
            cluster = self.tail[links[-1]]
        return links[::-1]

    def plan(self) -> Trees:
        """Return the trees as a plan."""
        pairs: Ints = np.array(
            [(item, link) for (item, _), link in self.parent.items()], dtype=np.int64
        ).reshape(-1, 2)
        return build_plan(self.problem, pairs[:, 0], pairs[:, 1])


def requests_by_arrival(problem: LiveVideo, requests: Ints | None = None) -> list[tuple[int, int, float]]:
    """Return (object, group, time) of all or some requests, given by row, in order of arrival."""
    rows = np.arange(len(problem.requests)) if requests is None else requests
    order = rows[np.argsort(problem.arrival_s[rows], kind="stable")]
    columns = (problem.object, problem.group, problem.arrival_s)
    return list(zip(*(column[order].tolist() for column in columns), strict=True))
