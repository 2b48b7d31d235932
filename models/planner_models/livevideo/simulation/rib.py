"""Routing information bases (RIBs): decisions of each cluster with versions and evidence (Table 4.1).

Each cluster keeps decisions of the controller, the newest and some older versions ("shadow FIBs", for
requests that were forwarded under them), and its own. The one that it applies is its forwarding entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

STALE_CHANGE: Final = 0.2
"""Relative change of a link's capacity beyond which decisions on it are stale, as in the paper (4.4.2)."""

SHADOW_VERSIONS: Final = 2  # older versions of the controller's decisions that a cluster keeps


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Next hop for an object, with its reason.

    link           link to the next hop
    version_s      time of the state that it was decided on
    is_central     whether the controller decided it, not the cluster
    evidence_mbps  capacity of the link in that state
    """

    link: int
    version_s: float
    is_central: bool
    evidence_mbps: float


@dataclass
class _Rib:
    """Entries of one cluster, by object: the controller's by version, and its own."""

    versions: dict[float, dict[int, Entry]] = field(default_factory=dict)
    own: dict[int, Entry] = field(default_factory=dict)
    updated_s: float = float("-inf")  # time of the last update of the controller


class Ribs:
    """Routing information bases of all clusters.

    capacity       function that returns the current capacity of a link, Mbit/s; 0 where it is down
    can_act_alone  whether clusters may decide without the controller
    timeout_s      time without an update after which a cluster takes the controller for failed
    stale_change   relative change of a link's capacity beyond which decisions on it are stale
    """

    def __init__(
        self,
        clusters: int,
        *,
        capacity: Callable[[int], float],
        can_act_alone: bool,
        timeout_s: float,
        stale_change: float = STALE_CHANGE,
    ) -> None:
        self.capacity, self.can_act_alone, self.timeout_s = capacity, can_act_alone, timeout_s
        self.stale_change = stale_change
        self.ribs = [_Rib() for _ in range(clusters)]

    def receive_update(
        self, cluster: int, version_s: float, now_s: float, rows: Iterable[tuple[int, int, float]]
    ) -> None:
        """Store a decision of the controller at a cluster: objects, links, and their capacities in it."""
        rib = self.ribs[cluster]
        rib.updated_s = now_s
        if rib.versions and version_s <= max(rib.versions):
            return
        rib.versions[version_s] = {
            item: Entry(link=link, version_s=version_s, is_central=True, evidence_mbps=evidence)
            for item, link, evidence in rows
        }
        for old in sorted(rib.versions)[: -1 - SHADOW_VERSIONS]:
            del rib.versions[old]

    def decide_locally(self, cluster: int, item: int, link: int, now_s: float) -> None:
        """Store a decision of the cluster itself."""
        evidence = self.capacity(link)
        self.ribs[cluster].own[item] = Entry(
            link=link, version_s=now_s, is_central=False, evidence_mbps=evidence
        )

    def forwarding_entry(
        self, cluster: int, item: int, now_s: float, tag: float | None = None
    ) -> Entry | None:
        """Return the entry that a request follows; None where the cluster must find a path itself.

        tag  version under which the cluster below forwarded the request: its entry applies, from the
             shadows too; None where the cluster does not have that version

        The controller's newest decision applies unless it is stale or older than the cluster's own. An
        object that the controller knew and left out has no entry.
        """
        rib = self.ribs[cluster]
        if tag is not None:
            return self._if_fresh(cluster, rib.versions.get(tag, {}).get(item), now_s)
        newest = max(rib.versions, default=-math.inf)
        own_entry = self._if_fresh(cluster, rib.own.get(item), now_s)
        if own_entry is not None and own_entry.version_s <= newest and not self.is_silent(cluster, now_s):
            own_entry = None
        if own_entry is None:
            central = self._if_fresh(cluster, rib.versions.get(newest, {}).get(item), now_s)
            if central is not None:
                return central
        return own_entry if self.can_act_alone else None

    def _if_fresh(self, cluster: int, entry: Entry | None, now_s: float) -> Entry | None:
        """Return an entry, None where it is stale."""
        return None if entry is None or self.is_stale(cluster, entry, now_s) else entry

    def is_silent(self, cluster: int, now_s: float) -> bool:
        """Return whether the cluster takes the controller for failed."""
        return self.can_act_alone and now_s - self.ribs[cluster].updated_s > self.timeout_s

    def is_stale(self, cluster: int, entry: Entry, now_s: float) -> bool:
        """Return whether an entry is void: link or controller failed, or capacity changed too much.

        Clusters that may not act alone keep an entry while its link is up.
        """
        capacity = self.capacity(entry.link)
        if capacity <= 0:
            return True
        if not self.can_act_alone:
            return False
        if entry.is_central and self.is_silent(cluster, now_s):
            return True
        return abs(capacity - entry.evidence_mbps) > self.stale_change * entry.evidence_mbps
