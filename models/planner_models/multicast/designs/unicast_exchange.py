"""Drop-add local search over edge switches: groups go by unicast where their shared entries cost more.

A group is dropped where its entries at edge switches cost more traffic than unicast adds, and added where
free or shared entries cost less. Both are exact for one group; the others' entries stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.multicast.designs.partitioned import saved_mbps, traffic_mbps
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.switch_groups import rank_keys
from planner_models.multicast.plan.table_limits import TableLimits
from planner_models.multicast.problem.problem import Multicast

MAX_PASSES: Final = 6
TOLERANCE: Final = ROUNDING  # relative, of a group's unicast traffic
NO_ENTRY: Final = -1


@dataclass(kw_only=True, eq=False)
class EdgeTables:
    """Entries of edge switches, each shared by groups or one group's own, as groups come and go.

    problem  the problem
    limits   limits of other tables
    kept     (G,) groups with entries
    entry    (pairs,) entry of each pair of `problem.at_edge` at its switch, -1 for groups without entries
    """

    problem: Multicast
    limits: TableLimits
    kept: Bools
    entry: Ints
    changed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.switch, self.group, self.ports = self.problem.at_edge
        self.rate = self.problem.rate_mbps
        self.start = np.searchsorted(self.switch, np.arange(self.problem.edge_count + 1))
        self.size = self.problem.free("edge")
        self.pairs_by_group = np.argsort(self.group, kind="stable")
        self.first = np.searchsorted(self.group[self.pairs_by_group], np.arange(len(self.rate) + 1))
        uses = self.limits.uses.tocsc()
        self._row_start, self._rows = uses.indptr, uses.indices
        self._left = self.limits.free - np.asarray(self.limits.uses @ self.kept, dtype=np.int64)
        self._saved = saved_mbps(self.problem)
        self._moved: dict[int, Ints] = {}
        self._summed: tuple[Bools, Ints, float] | None = None

    @property
    def total_mbps(self) -> float:
        """Host traffic: with own entries or by unicast, and traffic to ports without members."""
        last = self._summed
        if last and np.array_equal(last[0], self.kept) and np.array_equal(last[1], self.entry):
            return last[2]
        total = traffic_mbps(self.problem, self.kept) + float(self.extra_mbps(self.entry).sum())
        self._summed = (self.kept.copy(), self.entry.copy(), total)
        return total

    def extra_mbps(self, entry: Ints) -> Floats:
        """Return the traffic to ports without members of each edge switch, for such entries."""
        slot, union, _ = self._summarize(entry)
        here = slot >= 0
        extra = np.bitwise_count(union[slot[here]]).astype(float) - np.bitwise_count(self.ports[here])
        weights = self.rate[self.group[here]] * extra
        return np.bincount(self.switch[here], weights=weights, minlength=len(self.size)).astype(float)

    def pairs(self, group: int) -> Ints:
        """Return the pairs of a group."""
        return self.pairs_by_group[self.first[group] : self.first[group + 1]]

    def _summarize(self, entry: Ints) -> tuple[Ints, Masks, Floats]:
        """Return the slot of each pair, -1 for none, and ports and traffic of each slot."""
        width = int(entry.max(initial=0)) + 1
        here = entry >= 0
        used, inverse = rank_keys((self.switch * width + entry)[here], len(self.size) * width)
        slot = np.full(len(entry), -1, dtype=np.int64)
        slot[here] = inverse
        union = np.zeros(len(used), dtype=np.uint64)
        np.bitwise_or.at(union, slot[slot >= 0], self.ports[slot >= 0])
        weights = self.rate[self.group[slot >= 0]]
        load = np.bincount(slot[slot >= 0], weights=weights, minlength=len(union))
        return slot, union, load.astype(float)

    def drop_gains(self) -> Floats:
        """Return the traffic that unicast of each group saves, (G,); -inf for those without entries."""
        slot, union, load = self._summarize(self.entry)
        here = np.flatnonzero(slot >= 0)
        slot_of, ports, rate = slot[here], self.ports[here], self.rate[self.group[here]]
        alone = np.zeros(len(here), dtype=np.int64)  # ports that no other group of the entry wants
        for port in range(self.problem.ports):
            wants = (ports >> np.uint64(port)) & np.uint64(1) > 0
            count = np.bincount(slot_of[wants], minlength=len(union))
            alone += wants & (count[slot_of] == 1)
        extra = rate * np.bitwise_count(union[slot_of] & ~ports) + (load[slot_of] - rate) * alone
        gains = np.bincount(self.group[here], weights=extra, minlength=len(self.rate)) - self._saved
        return np.where(self.kept, gains, -np.inf)

    def drop(self, group: int) -> bool:
        """Send the group by unicast, where that saves traffic; return whether it does."""
        gain = -self._saved[group]
        for pair in self.pairs(group).tolist():
            others = self._sharing(pair)
            remaining_ports = np.bitwise_or.reduce(self.ports[others], initial=np.uint64(0))
            union, rate = remaining_ports | self.ports[pair], self.rate[group]
            gain += rate * int(np.bitwise_count(union & ~self.ports[pair]))
            gain += float(self.rate[self.group[others]].sum()) * int(
                np.bitwise_count(union & ~remaining_ports)
            )
        if gain <= self._tolerance(group):
            return False
        self.entry[self.pairs(group)] = NO_ENTRY
        self.set_kept(group, stored=False)
        return True

    def add(self, group: int) -> bool:
        """Give the group entries, where tables allow it and it saves traffic; return whether it does."""
        if (self._left[self._limits_of(group)] < 1).any():
            return False
        cost, entries = -self._saved[group], []
        for pair in self.pairs(group).tolist():
            entry, price = self._cheapest_entry(pair)
            cost += price
            entries.append(entry)
            if cost >= -self._tolerance(group):
                return False
        self.entry[self.pairs(group)] = entries
        self.set_kept(group, stored=True)
        return True

    def _cheapest_entry(self, pair: int) -> tuple[int, float]:
        """Return the entry of the switch where the pair adds least traffic without members, and that."""
        switch, mask, rate = int(self.switch[pair]), self.ports[pair], float(self.rate[self.group[pair]])
        rows = slice(int(self.start[switch]), int(self.start[switch + 1]))
        entries = self.entry[rows]
        here = np.flatnonzero(entries >= 0)
        used = np.unique(entries[here])
        if len(used) < self.size[switch]:
            return int(np.setdiff1d(np.arange(len(used) + 1), used)[0]), 0.0
        if not len(used):
            return NO_ENTRY, np.inf
        column = np.searchsorted(used, entries[here])
        union = np.zeros(len(used), dtype=np.uint64)
        np.bitwise_or.at(union, column, self.ports[rows][here])
        load = np.bincount(column, weights=self.rate[self.group[rows][here]])
        price = rate * np.bitwise_count(union & ~mask) + load * np.bitwise_count(mask & ~union)
        best = int(price.argmin())
        return int(used[best]), float(price[best])

    def _sharing(self, pair: int) -> Ints:
        """Return the other pairs of the pair's entry."""
        switch = int(self.switch[pair])
        first = int(self.start[switch])
        same = first + np.flatnonzero(self.entry[first : int(self.start[switch + 1])] == self.entry[pair])
        return np.asarray(same[same != pair], dtype=np.int64)

    def _tolerance(self, group: int) -> float:
        return TOLERANCE * float(self.rate[group] * self.problem.member_counts[group])

    def move(self, group: int, rows: Ints) -> bool:
        """Count a group in other rows of the limits, as in another partition; False where these are full."""
        before, was_kept = self._limits_of(group), bool(self.kept[group])
        self._left[before] += was_kept
        if was_kept and (self._left[rows] < 1).any():
            self._left[before] -= 1
            return False
        self._left[rows] -= was_kept
        self._moved[group] = rows
        return True

    def _limits_of(self, group: int) -> Ints:
        if group in self._moved:
            return self._moved[group]
        return np.asarray(self._rows[self._row_start[group] : self._row_start[group + 1]], dtype=np.int64)

    def set_kept(self, group: int, *, stored: bool) -> None:
        """Count a group in or out of the tables."""
        self.kept[group] = stored
        self._left[self._limits_of(group)] += -1 if stored else 1
        self.changed |= set(self.switch[self.pairs(group)].tolist())


def improve(tables: EdgeTables, *, deadline: Deadline) -> bool:
    """Drop and add groups, those that gain or save the most first; return whether any was."""
    improved = False
    for _ in range(MAX_PASSES):
        gains = tables.drop_gains()
        worse = np.flatnonzero(gains > 0)
        moved = 0
        for group in worse[np.argsort(-gains[worse], kind="stable")].tolist():
            if deadline.is_over:
                return improved
            moved += tables.drop(group)
        absent = np.flatnonzero(~tables.kept)
        for group in absent[np.argsort(-saved_mbps(tables.problem)[absent], kind="stable")].tolist():
            if deadline.is_over:
                return improved or moved > 0
            moved += tables.add(group)
        improved |= moved > 0
        if not moved:
            break
    return improved
