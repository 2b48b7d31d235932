"""Streams that are set up one by one: what each cluster receives, from where, and what room is left."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees, plan_of, rows_of

SLACK = 1e-9


class Streams:
    """Trees as they grow.

    room_mbps  (L,) capacity that is left; below 0 where decisions on old state overload a link
    parent     by object and cluster: the link over which the cluster receives the object
    into       links into each cluster
    """

    def __init__(self, problem: LiveVideo) -> None:
        self.problem = problem
        self.room_mbps = problem.capacity_mbps.copy()
        self.parent: dict[tuple[int, int], int] = {}
        self.tail = problem.tail.tolist()
        self.head = problem.head.tolist()
        self.level = problem.level.tolist()
        self.bitrate = problem.bitrate_mbps.tolist()
        self.into: list[list[int]] = [[] for _ in self.level]
        for link, head in enumerate(self.head):
            self.into[head].append(link)
        source = {int(cluster): s for s, cluster in enumerate(problem.sources)}
        self._source, self._held = source, problem.held
        self._forbidden = problem.forbidden_pairs

    def has(self, item: int, cluster: int) -> bool:
        """Whether the cluster receives the object, or is a source that holds it."""
        if self.level[cluster] == 0:
            return bool(self._held[item, self._source[cluster]])
        return (item, cluster) in self.parent

    def allowed(self, item: int, link: int) -> bool:
        """Whether no rule forbids the object on the link, and a source that sends it holds it."""
        if self._forbidden is not None and self._forbidden[item, link]:
            return False
        tail = self.tail[link]
        return self.level[tail] > 0 or bool(self._held[item, self._source[tail]])

    def fits(self, item: int, link: int) -> bool:
        """Whether the link has room for the object."""
        return bool(self.room_mbps[link] >= self.bitrate[item] * (1 - SLACK))

    def add(self, item: int, link: int) -> None:
        """Send the object over the link; its head must not receive it yet."""
        self.parent[item, self.head[link]] = link
        self.room_mbps[link] -= self.bitrate[item]

    def add_path(self, item: int, links: list[int]) -> None:
        """Send the object down the links, from wherever it is already."""
        for link in links:
            if not self.has(item, self.head[link]):
                self.add(item, link)

    def add_plan(self, plan: Trees) -> None:
        """Send what the plan says."""
        for item, link in zip(*(rows.tolist() for rows in rows_of(self.problem, plan)), strict=True):
            self.add(item, link)

    def copy(self) -> Streams:
        """Streams that grow apart from these."""
        other = copy.copy(self)
        other.room_mbps, other.parent = self.room_mbps.copy(), dict(self.parent)
        return other

    def path(self, item: int, cluster: int, up_to: Streams | None = None) -> list[int]:
        """The links down to a cluster that receives the object, from a source.

        up_to  other streams: from the first cluster that has the object there
        """
        links: list[int] = []
        while not (self.level[cluster] == 0 or (up_to is not None and up_to.has(item, cluster))):
            links.append(self.parent[item, cluster])
            cluster = self.tail[links[-1]]
        return links[::-1]

    def plan(self) -> Trees:
        """The trees as they are."""
        pairs: NDArray[np.int64] = np.array(
            [(item, link) for (item, _), link in self.parent.items()], dtype=np.int64
        ).reshape(-1, 2)
        return plan_of(self.problem, pairs[:, 0], pairs[:, 1])


def in_order(problem: LiveVideo, requests: NDArray[np.int64] | None = None) -> list[tuple[int, int, float]]:
    """(object, group, time) of each request, or of some of them by row, as they come."""
    rows = np.arange(len(problem.requests)) if requests is None else requests
    order = rows[np.argsort(problem.arrival_s[rows], kind="stable")]
    columns = (problem.object, problem.group, problem.arrival_s)
    return list(zip(*(column[order].tolist() for column in columns), strict=True))
