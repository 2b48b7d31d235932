"""What clusters know of where to ask for an object: decisions with versions and evidence (Table 4.1).

Each cluster keeps the controller's decisions, the newest and some older versions ("shadow FIBs", for
requests that were sent under them), and its own. Which of them counts is its forwarding entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

STALE: Final = 0.2
"""Change of a link's capacity beyond which what was decided on it is stale (4.4.2)."""

SHADOWS: Final = 2
"""Versions of the controller's decisions that are kept beside the newest."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A next hop for an object, and why.

    link           link to the next hop
    version_s      time of the state that it was decided on
    central        decided by the controller, not by the cluster
    evidence_mbps  capacity of the link in that state
    """

    link: int
    version_s: float
    central: bool
    evidence_mbps: float


@dataclass
class _Base:
    """One cluster's entries: the controller's by version, the newest last, and its own, by object."""

    versions: dict[float, dict[int, Entry]] = field(default_factory=dict)
    own: dict[int, Entry] = field(default_factory=dict)
    heard_s: float = float("-inf")


class Ribs:
    """The routing information bases of all clusters.

    capacity   what a link can carry now, Mbit/s; 0 where it, or a cluster at its end, is down
    timeout_s  after which a cluster that hears nothing from the controller acts alone
    """

    def __init__(
        self, clusters: int, *, capacity: Callable[[int], float], alone: bool, timeout_s: float
    ) -> None:
        self.capacity, self.alone, self.timeout_s = capacity, alone, timeout_s
        self.bases = [_Base() for _ in range(clusters)]

    def told(
        self, cluster: int, version_s: float, now_s: float, rows: Iterable[tuple[int, int, float]]
    ) -> None:
        """The controller's decision reaches a cluster: objects, links, and the capacity these had in it."""
        base = self.bases[cluster]
        base.heard_s = now_s
        if base.versions and version_s <= max(base.versions):
            return
        base.versions[version_s] = {
            item: Entry(link=link, version_s=version_s, central=True, evidence_mbps=evidence)
            for item, link, evidence in rows
        }
        for old in sorted(base.versions)[: -1 - SHADOWS]:
            del base.versions[old]

    def decides(self, cluster: int, item: int, link: int, now_s: float) -> None:
        """A cluster decides for itself."""
        evidence = self.capacity(link)
        self.bases[cluster].own[item] = Entry(
            link=link, version_s=now_s, central=False, evidence_mbps=evidence
        )

    def forwarding(self, cluster: int, item: int, now_s: float, tag: float | None = None) -> Entry | None:
        """The entry that counts for a request; None where the cluster must look for a way itself.

        tag  version under which the request was sent on by the cluster below: that one counts, from
             the shadows too; a version that the cluster does not know is no help

        The controller's newest decision counts unless it is stale or older than the cluster's own.
        What the controller has left out, knowing of it, is left out.
        """
        base = self.bases[cluster]
        if tag is not None:
            entry = base.versions.get(tag, {}).get(item)
            return entry if entry is not None and not self.stale(cluster, entry, now_s) else None
        newest = max(base.versions, default=None)
        central = base.versions[newest].get(item) if newest is not None else None
        own = base.own.get(item)
        if own is not None and (
            self.stale(cluster, own, now_s)
            or (newest is not None and own.version_s <= newest and not self.silent(cluster, now_s))
        ):
            own = None
        if central is not None and not self.stale(cluster, central, now_s) and own is None:
            return central
        return None if not self.alone else own

    def silent(self, cluster: int, now_s: float) -> bool:
        """Whether the cluster takes the controller for failed."""
        return self.alone and now_s - self.bases[cluster].heard_s > self.timeout_s

    def stale(self, cluster: int, entry: Entry, now_s: float) -> bool:
        """Whether what was decided no longer holds: link or controller failed, or capacity changed much.

        Clusters that may not act alone hold to what they have while the link is up.
        """
        now = self.capacity(entry.link)
        if now <= 0:
            return True
        if not self.alone:
            return False
        if entry.central and self.silent(cluster, now_s):
            return True
        return abs(now - entry.evidence_mbps) > STALE * entry.evidence_mbps
