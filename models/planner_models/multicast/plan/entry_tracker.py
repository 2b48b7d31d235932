"""Shared entries of one switch as groups change: the changed group goes to its cheapest entry.

The cost is tracked from change to change without a recount. Congestion is linear.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.errors import InputError
from planner_models.multicast.plan.meta_groups import Masks

NO_ENTRY = -1  # of a group without members at the switch


@dataclass(kw_only=True, eq=False)
class EntryTracker:
    """One switch with changing groups.

    masks, rates   (groups,) ports with members of each group, 0 for none, and its traffic
    table_size     entries of the switch
    meta           (groups,) the entry of each group, -1 for none

    rules          rules changed so far: entries whose ports changed, groups that changed their entry
    """

    masks: Masks
    rates: Floats
    table_size: int
    meta: Ints
    rules: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._require_table()
        self.masks, self.rates = self.masks.copy(), self.rates.astype(float)
        self._place(self.meta.astype(np.int64))
        if len(np.unique(self.meta[self.meta >= 0])) > self.table_size:
            raise InputError(f"the groups have more entries than the table's {self.table_size}")

    def _require_table(self) -> None:
        """Raise InputError for a table without entries."""
        if self.table_size < 1:
            raise InputError(f"table size is {self.table_size}, must be at least 1")

    @property
    def wanted_mbps(self) -> float:
        """Traffic to ports with members, over all groups."""
        return self._wanted

    @property
    def extra_mbps(self) -> float:
        """Traffic to ports without members, tracked from change to change."""
        return self._total - self._wanted

    @property
    def entries(self) -> int:
        """Entries in use."""
        return int((self._members > 0).sum())

    @property
    def assigned(self) -> Ints:
        """The entry of each group, shape (groups,), -1 for none."""
        return self._meta.copy()

    # --- changes --------------------------------------------------------------------------

    def join(self, group: int, port: int) -> None:
        """Add a member of the group at the port. InputError where it has one."""
        bit = self._port_bit(group, port, has=False)
        self._change(group, self.masks[group] | bit, float(self.rates[group]))

    def leave(self, group: int, port: int) -> None:
        """Remove the member of the group at the port. InputError where it has none."""
        bit = self._port_bit(group, port, has=True)
        self._change(group, self.masks[group] & ~bit, float(self.rates[group]))

    def set_ports(self, group: int, mask: np.uint64) -> None:
        """Set the ports with members of the group, 0 for none: a new group, or one that ends."""
        self._change(group, mask, float(self.rates[group]))

    def set_rate(self, group: int, mbps: float) -> None:
        """Set the rate of the group."""
        if not mbps > 0:
            raise InputError(f"rate is {mbps}, must be greater than 0")
        self._change(group, self.masks[group], mbps)

    # --- bookkeeping ----------------------------------------------------------------------

    def _port_bit(self, group: int, port: int, *, has: bool) -> np.uint64:
        """Return the bit of the port; InputError unless the group has a member there, or has none."""
        if not 0 <= group < len(self.masks) or not 0 <= port < 64:
            raise InputError(f"group {group}, port {port}: no such group or port")
        bit = np.uint64(1) << np.uint64(port)
        if bool(self.masks[group] & bit) != has:
            raise InputError(f"group {group} has {'no' if has else 'a'} member at port {port} already")
        return bit

    def _place(self, meta: Ints) -> None:
        """Take over the entries of all groups, and recount everything."""
        self._meta = meta.copy()
        size = max(self.table_size, int(meta.max(initial=0)) + 1)
        self._wants = np.zeros((size, 64), dtype=np.int64)  # groups of an entry with members at a port
        self._load, self._members = np.zeros(size), np.zeros(size, dtype=np.int64)
        here = np.flatnonzero(meta >= 0)
        np.add.at(self._wants, meta[here], _unpack_ports(self.masks[here]))
        np.add.at(self._load, meta[here], self.rates[here])
        np.add.at(self._members, meta[here], 1)
        self._union = _pack_ports(self._wants > 0)
        self._total = float(self._load @ np.bitwise_count(self._union))
        self._wanted = float(self.rates @ np.bitwise_count(self.masks))

    def _change(self, group: int, mask: np.uint64, rate: float) -> None:
        """Change ports and rate of the group, and move it to its cheapest entry."""
        entry = int(self._meta[group])
        if entry >= 0:
            self._remove(group, entry)
        self._wanted += rate * int(np.bitwise_count(mask)) - float(self.rates[group]) * int(
            np.bitwise_count(self.masks[group])
        )
        self.masks[group], self.rates[group] = mask, rate
        to = self._cheapest_entry(mask, rate, entry) if mask else NO_ENTRY
        if to >= 0:
            self._add(group, to)
        self._meta[group] = to
        self.rules += to != entry  # the rewriting rule of its packets

    def _cheapest_entry(self, mask: np.uint64, rate: float, current: int) -> int:
        """Return the entry where the group costs least; its present one, if that is as cheap."""
        larger = np.bitwise_count(self._union | mask)
        new = np.bitwise_count(mask & ~self._union)
        price = rate * larger + self._load * new
        if (self._members > 0).sum() >= self.table_size:
            price = np.where(self._members > 0, price, np.inf)
        best = int(np.argmin(price))
        return current if current >= 0 and price[current] <= price[best] * (1 + 1e-12) else best

    def _remove(self, group: int, entry: int) -> None:
        """Take the group out of an entry."""
        size = int(np.bitwise_count(self._union[entry]))
        self._total -= float(self._load[entry]) * size
        self._members[entry] -= 1
        self._load[entry] = self._load[entry] - self.rates[group] if self._members[entry] else 0.0
        self._wants[entry] -= _unpack_ports(self.masks[group : group + 1])[0]
        self._update_union(entry)

    def _add(self, group: int, entry: int) -> None:
        """Put the group into an entry."""
        self._total -= float(self._load[entry]) * int(np.bitwise_count(self._union[entry]))
        self._members[entry] += 1
        self._load[entry] += self.rates[group]
        self._wants[entry] += _unpack_ports(self.masks[group : group + 1])[0]
        self._update_union(entry)

    def _update_union(self, entry: int) -> None:
        """Recompute the ports of an entry, and add its traffic to the total."""
        union = _pack_ports(self._wants[entry : entry + 1] > 0)[0]
        self.rules += union != self._union[entry]
        self._union[entry] = union
        self._total += float(self._load[entry]) * int(np.bitwise_count(union))


def insert_new_groups(masks: Masks, rates: Floats, meta: Ints, *, table_size: int) -> Ints:
    """Return the entries where groups without one (-1 in `meta`) join the cheapest, one after the other."""
    before = renumber(meta)
    if before.max(initial=NO_ENTRY) >= table_size:
        before[before >= table_size] = NO_ENTRY
    at_first = np.where(before >= 0, masks, np.uint64(0))
    tracker = EntryTracker(masks=at_first, rates=rates, meta=before, table_size=table_size)
    for group in np.flatnonzero(before < 0).tolist():
        tracker.set_ports(group, masks[group])
    return tracker.assigned


def renumber(meta: Ints) -> Ints:
    """Return the same entries numbered from 0 without gaps; -1 stays."""
    entries_used = np.unique(meta[meta >= 0])
    return np.asarray(np.where(meta >= 0, np.searchsorted(entries_used, meta), NO_ENTRY), dtype=np.int64)


def _unpack_ports(masks: Masks) -> Ints:
    """Return 1 where a port is in the mask, shape (masks, 64)."""
    return ((masks[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(np.int64)


def _pack_ports(ports: Bools) -> Masks:
    """Return the masks of rows of ports."""
    return np.asarray((ports * (np.uint64(1) << np.arange(64, dtype=np.uint64))).sum(axis=1), dtype=np.uint64)
