"""Events of the simulation: controller updates, announcements, observations, changes and partitions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from planner.arrays import Floats
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.problem.adjustments import without_links
from planner_models.livevideo.problem.problem import LiveVideo

Control = Literal["distributed", "centralized", "hybrid"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Update:
    """Decision of the controller: trees for the state at `observed_s`, and the capacities at that time."""

    plan: Trees
    observed_s: float
    capacity_mbps: Floats


@dataclass(frozen=True)
class Announcement:
    """Announcement of distances by every cluster to those one tier down."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    """State that a controller observes at a time.

    network        problem as planned
    requests       rows of the requests that have arrived, each with the object that it now asks for
    capacity_mbps  (L,) current capacity of all links, 0 where they are down
    clients        present clients of each of the requests; None: as the problem says
    """

    time_s: float
    network: LiveVideo
    requests: tuple[tuple[int, int], ...]
    capacity_mbps: Floats
    clients: tuple[float, ...] | None = None

    @cached_property
    def problem(self) -> LiveVideo:
        """Observed requests and links as a problem."""
        network = self.network
        requests = network.requests.iloc[[request for request, _ in self.requests]].drop(
            columns="arrival_s", errors="ignore"
        )
        items = [item for _, item in self.requests]
        if self.clients is not None:
            requests["clients"] = self.clients
        requests["bitrate_kbps"] = network.objects["bitrate_kbps"].to_numpy(float)[items]
        key = ["group", "channel", "bitrate_kbps"]
        sums = {"clients": "sum"}
        if network.has_ladders:  # a group's bitrate must please all of its clients
            requests["lowest_kbps"] = requests["lowest_kbps"].fillna(requests["bitrate_kbps"])
            sums["lowest_kbps"] = "max"
        merged = requests.groupby(key, sort=False, as_index=False).agg(sums)
        return without_links(network.with_requests(merged), self.capacity_mbps <= 0, self.capacity_mbps)


@dataclass(frozen=True, kw_only=True)
class Change:
    """New capacity of a link, or of all links of a cluster, from `time_s` on.

    share  of the planned capacity; 0 takes a cluster down, 1 restores
    """

    time_s: float
    link: int | None = None
    cluster: int | None = None
    share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Partition:
    """Clusters that the controller neither reaches nor observes for a time; they reach each other."""

    clusters: frozenset[int]
    from_s: float = 0.0
    to_s: float = float("inf")
