"""Incremental channelization: small repairs at each change, sharing anew where that pays.

Joins, leaves and new rates change the cost of shared entries. The group that changed goes to its cheapest
entry. Drift from the best sharing is repaired by sharing anew, which changes many rules: it is tried when
the cost has increased by a share of the traffic, and taken where it saves more than its rules cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.multicast.designs.channelization import agglomerative_clustering
from planner_models.multicast.plan.entry_tracker import NO_ENTRY, EntryTracker, insert_new_groups, renumber
from planner_models.multicast.plan.meta_groups import Masks, extra_mbps


@dataclass(kw_only=True, eq=False)
class SharingTracker(EntryTracker):
    """One switch with changing groups, with entries shared again when that pays.

    meta           (groups,) the entry of each group, -1 for none; None: shared by clustering
    drift          growth of the extra traffic, as a share of the wanted, at which sharing anew is tried
    rule_mbps      price of one changed rule: sharing anew must save more than all its changes cost

    reshared       times that all was shared anew
    tried          times that this was tried
    """

    meta: Ints | None = None  # type: ignore[assignment]
    drift: float = 0.01
    rule_mbps: float = 0.0
    reshared: int = field(default=0, init=False)
    tried: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._require_table()
        if self.meta is None:
            self.meta = self._cluster()
        super().__post_init__()

    def share_anew(self) -> bool:
        """Share all entries anew if that saves more than its rules cost; return whether it did."""
        self.tried += 1
        fresh = self._cluster()
        here = fresh >= 0
        saved = self.extra_mbps - extra_mbps(self.masks[here], self.rates[here], fresh[here])
        changed = self._count_changed_rules(fresh)
        self._drifted = 0.0
        if saved <= max(changed * self.rule_mbps, 1e-9 * self._wanted):
            return False
        self._place(fresh)
        self.rules += changed
        self.reshared += 1
        return True

    def _cluster(self) -> Ints:
        here = self.masks != 0
        meta = np.full(len(self.masks), NO_ENTRY, dtype=np.int64)
        if here.any():
            meta[here] = agglomerative_clustering.aggregate(
                self.masks[here], self.rates[here], table_size=self.table_size
            )
        return meta

    def _place(self, meta: Ints) -> None:
        super()._place(meta)
        self._drifted = 0.0

    def _change(self, group: int, mask: np.uint64, rate: float) -> None:
        before = self.extra_mbps
        super()._change(group, mask, rate)
        self._drifted += self.extra_mbps - before
        if self._drifted > self.drift * self._wanted:
            self.share_anew()

    def _count_changed_rules(self, fresh: Ints) -> int:
        """Return the rules to change; each new entry replaces the old one with most groups in common."""
        both = (self._meta >= 0) & (fresh >= 0)
        pairs, count = np.unique(np.column_stack([fresh[both], self._meta[both]]), axis=0, return_counts=True)
        old_of = np.full(int(fresh.max(initial=0)) + 1, NO_ENTRY, dtype=np.int64)
        taken = np.zeros(len(self._union), dtype=bool)
        for row in np.argsort(-count, kind="stable"):
            new, old = pairs[row]
            if old_of[new] < 0 and not taken[old]:
                old_of[new], taken[old] = old, True
        here = np.flatnonzero(fresh >= 0)
        moved = int((old_of[fresh[here]] != self._meta[here]).sum())
        union = np.zeros(len(old_of), dtype=np.uint64)
        np.bitwise_or.at(union, fresh[here], self.masks[here])
        entries = int(((old_of < 0) | (union != self._union[old_of])).sum())
        dropped = int((self._members > 0).sum() - (old_of >= 0).sum())
        return moved + entries + max(0, dropped)


def update_sharing(masks: Masks, rates: Floats, meta: Ints, *, table_size: int, keep: float) -> Ints:
    """Return the previous entries with new groups at their cheapest, or entries shared anew where that pays.

    meta  (groups,) the previous entry, -1 for groups without one
    keep  share of the wanted traffic that sharing anew must save
    """
    updated = insert_new_groups(masks, rates, meta, table_size=table_size)
    fresh = agglomerative_clustering.aggregate(masks, rates, table_size=table_size)
    demand_mbps = float(rates @ np.bitwise_count(masks))
    if extra_mbps(masks, rates, updated) - extra_mbps(masks, rates, fresh) > keep * demand_mbps:
        return fresh
    return renumber(updated)
