"""Algorithm 2: one pass over the groups of a switch, each to its cheapest meta-group or a new one.

Incremental channelization: small repairs at each change, sharing anew where that pays.

Joins, leaves and new rates change the cost of shared entries. The group that changed goes to its cheapest
entry. Drift from the best sharing is repaired by sharing anew, which changes many rules: it is tried when
the cost has increased by a share of the traffic, and taken where it saves more than its rules cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.bits import count_bits
from planner.compiled import njit, run_small_in_python
from planner.errors import InputError
from planner_models.multicast.designs.channelization import local_search
from planner_models.multicast.plan.adaptation import NO_ENTRY, EntryTracker, insert_new_groups, renumber
from planner_models.multicast.plan.meta_groups import LINEAR, Congestion, Masks, extra_mbps


def aggregate(
    masks: Masks,
    rates: Floats,
    *,
    table_size: int,
    ports: int,
    delta: float = 0.2,
    spare: int = 0,
    congestion: Congestion = LINEAR,
    background_mbps: Floats | None = None,
) -> Ints:
    """Return the meta-group of each group, in the order of the groups.

    A new meta-group is opened where the cheapest raises the cost by more than `delta` times the cost of the
    group by itself; `spare` is the paper's capital delta: groups with members at all ports but so many
    go to all. Entries for each single port and for all ports are reserved.

    raises  InputError where the table is smaller than these and one more
    source  Algorithm 2 and equation (6); the functions delta and COST are given in words there
    """
    if table_size < ports + 2:
        raise InputError(f"table size is {table_size}, Algorithm 2 on {ports} ports needs {ports + 2}")
    free = table_size - ports - 1
    if congestion.is_linear:
        raw = _linear(masks, rates, free, ports, delta, spare)
    else:
        slopes, begins = congestion.pieces()
        loads = np.zeros(ports) if background_mbps is None else background_mbps.astype(float)
        raw = _convex(masks, rates, _Settings(free, ports, delta, spare), loads, slopes, begins)
    used = np.bincount(raw) > 0
    return np.asarray((np.cumsum(used) - 1)[raw], dtype=np.int64)


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def _linear(masks: Masks, rates: Floats, free: int, ports: int, delta: float, spare: int) -> Ints:
    """Assign the groups in one pass, with linear congestion."""
    union, load = np.zeros(free, dtype=np.uint64), np.zeros(free)
    meta = np.empty(len(masks), dtype=np.int64)
    used = 0
    for g in range(len(masks)):
        size = count_bits(masks[g])
        if size >= ports - spare:
            meta[g] = free
            continue
        if size == 1:
            meta[g] = free + 1 + count_bits(masks[g] - np.uint64(1))
            continue
        best, cheapest = -1, np.inf
        for m in range(used):
            cost = rates[g] * count_bits(union[m] & ~masks[g]) + load[m] * count_bits(masks[g] & ~union[m])
            if cost < cheapest:
                best, cheapest = m, cost
        if best < 0 or (used < free and cheapest > delta * rates[g] * size):
            best = used
            used += 1
        union[best] |= masks[g]
        load[best] += rates[g]
        meta[g] = best
    return meta


@njit(cache=True, nogil=True, inline="always")
def _congestion_cost(load: float, slopes: Floats, begins: Floats) -> float:
    """Return the cost of a load: piecewise linear."""
    cost = 0.0
    for piece in range(len(slopes)):
        if load <= begins[piece]:
            break
        end = load
        if piece + 1 < len(begins):
            end = min(load, begins[piece + 1])
        cost += slopes[piece] * (end - begins[piece])
    return cost


@njit(cache=True, nogil=True, inline="always")
def _sum_bytes(values: Floats, ports: int, table: Floats) -> None:
    """Set `table` to the sum of `values` over the bits of each byte of a mask, for each of its 256 values."""
    for byte in range((ports + 7) // 8):
        table[byte, 0] = 0.0
        for bit in range(8):
            port = 8 * byte + bit
            value = values[port] if port < ports else 0.0
            for low in range(1 << bit):
                table[byte, (1 << bit) + low] = table[byte, low] + value


@njit(cache=True, nogil=True, inline="always")
def _masked_sum(table: Floats, mask: np.uint64) -> float:
    """Return the sum of values over the bits of the mask, from the table of its bytes."""
    total = 0.0
    for byte in range(len(table)):
        total += table[byte, np.int64((mask >> np.uint64(8 * byte)) & np.uint64(255))]
    return total


class _Settings(NamedTuple):
    """Entries and ports of a switch, and the paper's parameters: see `aggregate`."""

    free: int
    ports: int
    delta: float
    spare: int


class _Loads(NamedTuple):
    """Load of each port and its cost, (ports,), and the pieces of the cost of a load."""

    mbps: Floats
    cost: Floats
    slopes: Floats
    begins: Floats


class _Entries(NamedTuple):
    """Union of the ports of each entry and the rate that it carries, (free,)."""

    union: Masks
    carried: Floats


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def _convex(
    masks: Masks, rates: Floats, settings: _Settings, background: Floats, slopes: Floats, begins: Floats
) -> Ints:
    """Assign the groups in one pass, with convex congestion: the cost of every port is tracked."""
    free, ports, delta, spare = settings
    entries = _Entries(np.zeros(free, dtype=np.uint64), np.zeros(free))
    meta = np.empty(len(masks), dtype=np.int64)
    more = np.empty(ports)
    table = np.empty(((ports + 7) // 8, 256))
    loads = _Loads(background.copy(), np.empty(ports), slopes, begins)
    mbps, cost_now = loads.mbps, loads.cost
    for p in range(ports):
        cost_now[p] = _congestion_cost(mbps[p], slopes, begins)
    used = 0
    for g in range(len(masks)):
        size, rate = count_bits(masks[g]), rates[g]
        if size >= ports - spare:
            meta[g] = free
            _add_load(loads, ~np.uint64(0), ~np.uint64(0), rate, 0.0)
            continue
        if size == 1:
            meta[g] = free + 1 + count_bits(masks[g] - np.uint64(1))
            _add_load(loads, masks[g], masks[g], rate, 0.0)
            continue
        for p in range(ports):
            more[p] = _congestion_cost(mbps[p] + rate, slopes, begins) - cost_now[p]
        _sum_bytes(more, ports, table)
        own_cost = _masked_sum(table, masks[g])
        best, cheapest = _find_cheapest(masks[g], rate, entries, used, loads, table)
        if best < 0 or (used < free and cheapest - own_cost > delta * own_cost):
            best = used
            used += 1
        meta[g] = best
        reached = entries.union[best] | masks[g]
        # ports that are new to the meta-group get what it carries already too
        _add_load(loads, reached, entries.union[best], rate, entries.carried[best])
        entries.union[best] = reached
        entries.carried[best] += rate
    return meta


@njit(cache=True, nogil=True)
def _find_cheapest(
    mask: np.uint64, rate: float, entries: _Entries, used: int, loads: _Loads, table: Floats
) -> tuple[int, float]:
    """Return the entry, of those used, that a group joins at the least cost, and the cost; -1 for none.

    table  of the cost of the group's rate at each port, by bytes of masks
    """
    union, carried_by = entries
    mbps, cost_now, slopes, begins = loads
    best, cheapest = -1, np.inf
    for m in range(used):
        cost = _masked_sum(table, union[m])
        new, carried = mask & ~union[m], carried_by[m]
        # convex: so much more traffic costs at least in proportion
        if new and cost + (carried + rate) / rate * _masked_sum(table, new) >= cheapest:
            continue
        for p in range(len(mbps)):
            if (new >> np.uint64(p)) & np.uint64(1):
                cost += _congestion_cost(mbps[p] + carried + rate, slopes, begins) - cost_now[p]
        if cost < cheapest:
            best, cheapest = m, cost
    return best, cheapest


@njit(cache=True, nogil=True)
def _add_load(loads: _Loads, reached: np.uint64, before: np.uint64, rate: float, carried: float) -> None:
    """Add a rate to the ports that it reaches, and the load of its entry to those that it did not reach."""
    mbps, cost_now, slopes, begins = loads
    for p in range(len(mbps)):
        bit = np.uint64(1) << np.uint64(p)
        if reached & bit:
            mbps[p] += rate if before & bit else rate + carried
            cost_now[p] = _congestion_cost(mbps[p], slopes, begins)


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
            meta[here] = local_search.aggregate(
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
    fresh = local_search.aggregate(masks, rates, table_size=table_size)
    demand_mbps = float(rates @ np.bitwise_count(masks))
    if extra_mbps(masks, rates, updated) - extra_mbps(masks, rates, fresh) > keep * demand_mbps:
        return fresh
    return renumber(updated)
