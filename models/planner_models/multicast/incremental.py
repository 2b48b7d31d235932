"""Shared entries of one switch as groups change: small repairs at once, all anew where that pays.

Joins, leaves and new rates change what sharing costs. The cost is tracked without recounting; the
group that changed goes where it is cheapest now. What drifts away from the best, slowly, is made good by
sharing anew, which changes many rules: it is looked at when the cost has grown by a share of the traffic,
and taken where what it saves is worth its rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner_models.multicast import agglomerate
from planner_models.multicast.channels import Masks, Meta, Rates, extra_mbps

NOWHERE = -1  # a group without members at the switch has no entry


@dataclass(kw_only=True, eq=False)
class Tracker:
    """One switch whose groups change; congestion is linear.

    masks, rates   (groups,) ports that each group wants, 0 for none, and its traffic
    meta           (groups,) the entry of each group, -1 for none; by default shared from the start
    table_size     entries of the switch
    drift          share of the wanted traffic that the overhead may grow by before sharing anew is tried
    rule_mbps      what one changed rule is worth: sharing anew must save more than all it changes

    rules          rules changed so far: entries whose ports changed, groups that changed their entry
    anew           how often all was shared anew
    tried          how often that was looked at
    """

    masks: Masks
    rates: Rates
    table_size: int
    meta: Meta | None = None
    drift: float = 0.01
    rule_mbps: float = 0.0
    rules: int = field(default=0, init=False)
    anew: int = field(default=0, init=False)
    tried: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.table_size < 1:
            raise InputError(f"table size is {self.table_size}, must be at least 1")
        self.masks, self.rates = self.masks.copy(), self.rates.astype(float)
        given = self.meta
        self._place(self._shared() if given is None else given.astype(np.int64))
        if given is not None and len(np.unique(given[given >= 0])) > self.table_size:
            raise InputError(f"the groups have more entries than the table's {self.table_size}")

    @property
    def wanted_mbps(self) -> float:
        """What all ports asked for."""
        return self._wanted

    @property
    def extra_mbps(self) -> float:
        """What sharing costs now, tracked from change to change."""
        return self._total - self._wanted

    @property
    def entries(self) -> int:
        """Entries in use."""
        return int((self._members > 0).sum())

    @property
    def assigned(self) -> Meta:
        """(groups,) the entry of each group, -1 for none."""
        return self._meta.copy()

    # --- changes --------------------------------------------------------------------------

    def join(self, group: int, port: int) -> None:
        """The group has a member at the port now. InputError where it had one."""
        bit = self._bit(group, port, has=False)
        self._change(group, self.masks[group] | bit, float(self.rates[group]))

    def leave(self, group: int, port: int) -> None:
        """The group has no member at the port any more. InputError where it had none."""
        bit = self._bit(group, port, has=True)
        self._change(group, self.masks[group] & ~bit, float(self.rates[group]))

    def set_ports(self, group: int, mask: np.uint64) -> None:
        """The group has members at these ports now, 0 for none: a new group, or one that ends."""
        self._change(group, mask, float(self.rates[group]))

    def set_rate(self, group: int, mbps: float) -> None:
        """The group sends at that rate now."""
        if not mbps > 0:
            raise InputError(f"rate is {mbps}, must be greater than 0")
        self._change(group, self.masks[group], mbps)

    def share_anew(self) -> bool:
        """Shares all entries anew if that saves more than its rules are worth; whether it did."""
        self.tried += 1
        fresh = self._shared()
        here = fresh >= 0
        saved = self.extra_mbps - extra_mbps(self.masks[here], self.rates[here], fresh[here])
        changed = self._apart(fresh)
        self._drifted = 0.0
        if saved <= max(changed * self.rule_mbps, 1e-9 * self._wanted):
            return False
        self._place(fresh)
        self.rules += changed
        self.anew += 1
        return True

    # --- bookkeeping ----------------------------------------------------------------------

    def _bit(self, group: int, port: int, *, has: bool) -> np.uint64:
        if not 0 <= group < len(self.masks) or not 0 <= port < 64:
            raise InputError(f"group {group}, port {port}: no such group or port")
        bit = np.uint64(1) << np.uint64(port)
        if bool(self.masks[group] & bit) != has:
            raise InputError(f"group {group} has {'no' if has else 'a'} member at port {port} already")
        return bit

    def _shared(self) -> Meta:
        here = self.masks != 0
        meta = np.full(len(self.masks), NOWHERE, dtype=np.int64)
        if here.any():
            meta[here] = agglomerate.aggregate(self.masks[here], self.rates[here], table_size=self.table_size)
        return meta

    def _place(self, meta: Meta) -> None:
        self._meta = meta.copy()
        size = max(self.table_size, int(meta.max(initial=0)) + 1)
        self._wants = np.zeros((size, 64), dtype=np.int64)  # groups of an entry that want a port
        self._load, self._members = np.zeros(size), np.zeros(size, dtype=np.int64)
        here = np.flatnonzero(meta >= 0)
        np.add.at(self._wants, meta[here], _ports(self.masks[here]))
        np.add.at(self._load, meta[here], self.rates[here])
        np.add.at(self._members, meta[here], 1)
        self._union = _packed(self._wants > 0)
        self._total = float(self._load @ np.bitwise_count(self._union))
        self._wanted = float(self.rates @ np.bitwise_count(self.masks))
        self._drifted = 0.0

    def _change(self, group: int, mask: np.uint64, rate: float) -> None:
        before, at = self.extra_mbps, int(self._meta[group])
        if at >= 0:
            self._take(group, at)
        self._wanted += rate * int(np.bitwise_count(mask)) - float(self.rates[group]) * int(
            np.bitwise_count(self.masks[group])
        )
        self.masks[group], self.rates[group] = mask, rate
        to = self._cheapest(mask, rate, at) if mask else NOWHERE
        if to >= 0:
            self._put(group, to)
        self._meta[group] = to
        self.rules += to != at  # the entry that its packets are told to take
        self._drifted += self.extra_mbps - before
        if self._drifted > self.drift * self._wanted:
            self.share_anew()

    def _cheapest(self, mask: np.uint64, rate: float, at: int) -> int:
        """The entry where the group costs least; where it was, if that is as good."""
        grown = np.bitwise_count(self._union | mask)
        new = np.bitwise_count(mask & ~self._union)
        price = rate * grown + self._load * new
        if (self._members > 0).sum() >= self.table_size:
            price = np.where(self._members > 0, price, np.inf)
        best = int(np.argmin(price))
        return at if at >= 0 and price[at] <= price[best] * (1 + 1e-12) else best

    def _take(self, group: int, at: int) -> None:
        size = int(np.bitwise_count(self._union[at]))
        self._total -= float(self._load[at]) * size
        self._members[at] -= 1
        self._load[at] = self._load[at] - self.rates[group] if self._members[at] else 0.0
        self._wants[at] -= _ports(self.masks[group : group + 1])[0]
        self._reach(at)

    def _put(self, group: int, at: int) -> None:
        self._total -= float(self._load[at]) * int(np.bitwise_count(self._union[at]))
        self._members[at] += 1
        self._load[at] += self.rates[group]
        self._wants[at] += _ports(self.masks[group : group + 1])[0]
        self._reach(at)

    def _reach(self, at: int) -> None:
        union = _packed(self._wants[at : at + 1] > 0)[0]
        self.rules += union != self._union[at]
        self._union[at] = union
        self._total += float(self._load[at]) * int(np.bitwise_count(union))

    def _apart(self, fresh: Meta) -> int:
        """Rules to change for other entries: each goes on as the old one that it has the most groups of."""
        both = (self._meta >= 0) & (fresh >= 0)
        pairs, count = np.unique(np.column_stack([fresh[both], self._meta[both]]), axis=0, return_counts=True)
        old_of = np.full(int(fresh.max(initial=0)) + 1, NOWHERE, dtype=np.int64)
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


def kept(masks: Masks, rates: Rates, meta: Meta, *, table_size: int, keep: float) -> Meta:
    """The entries of before, with new groups where they cost least; all anew where that saves enough.

    meta  (groups,) the entry of before, -1 for groups that had none
    keep  share of the wanted traffic that sharing anew must save
    """
    known = np.unique(meta[meta >= 0])
    before = np.where(meta >= 0, np.searchsorted(known, meta), NOWHERE)
    if len(known) > table_size:
        before[before >= table_size] = NOWHERE
    at_first = np.where(before >= 0, masks, np.uint64(0))
    tracker = Tracker(masks=at_first, rates=rates, meta=before, table_size=table_size, drift=float("inf"))
    for group in np.flatnonzero(before < 0).tolist():
        tracker.set_ports(group, masks[group])
    found = tracker.assigned
    fresh = agglomerate.aggregate(masks, rates, table_size=table_size)
    wanted = float(rates @ np.bitwise_count(masks))
    if extra_mbps(masks, rates, found) - extra_mbps(masks, rates, fresh) > keep * wanted:
        return fresh
    used = np.bincount(found) > 0
    return np.asarray((np.cumsum(used) - 1)[found], dtype=np.int64)


def _ports(masks: Masks) -> NDArray[np.int64]:
    """(masks, 64) 1 where a port is in the mask."""
    return ((masks[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(np.int64)


def _packed(ports: NDArray[np.bool_]) -> Masks:
    return np.asarray((ports * (np.uint64(1) << np.arange(64, dtype=np.uint64))).sum(axis=1), dtype=np.uint64)
