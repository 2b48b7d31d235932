"""What passes between controller and clusters in time, and what befalls them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees

Control = Literal["distributed", "centralized", "hybrid"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Update:
    """A decision of the controller: trees for the state of `seen_s`, in which links had these capacities."""

    plan: Trees
    seen_s: float
    capacity_mbps: NDArray[np.float64]


@dataclass(frozen=True)
class Exchange:
    """Every cluster announces its distances to those one tier down."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What a controller is told: the time, and the requests and links of then.

    network        the problem as planned
    asked          rows of its requests that have come, and the object that each now asks for
    capacity_mbps  (L,) of all links, 0 where they are down
    """

    time_s: float
    network: LiveVideo
    asked: tuple[tuple[int, int], ...]
    capacity_mbps: NDArray[np.float64]

    @cached_property
    def problem(self) -> LiveVideo:
        """The requests and links of then as a problem."""
        one = self.network
        rows = one.requests.iloc[[request for request, _ in self.asked]].drop(
            columns="arrival_s", errors="ignore"
        )
        wanted = [item for _, item in self.asked]
        rows["bitrate_kbps"] = one.objects["bitrate_kbps"].to_numpy(float)[wanted]
        key = ["group", "channel", "bitrate_kbps"]
        merged = rows.groupby(key, sort=False, as_index=False)[["clients"]].sum()
        alive = self.capacity_mbps > 0
        links = one.links[alive].assign(capacity_mbps=self.capacity_mbps[alive])
        return replace(one, links=links, requests=merged, lost="unserved")


@dataclass(frozen=True, kw_only=True)
class Change:
    """From `time_s` on a link has another share of its capacity, or a cluster is down.

    share  of the capacity that is left; 1 restores it
    """

    time_s: float
    link: int | None = None
    cluster: int | None = None
    share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Partition:
    """Clusters that the controller neither reaches nor sees for a while; among each other they do."""

    clusters: frozenset[int]
    from_s: float = 0.0
    to_s: float = float("inf")
