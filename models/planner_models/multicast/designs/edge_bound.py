"""Lagrangian bound of a p-median at each edge switch, over unions of its port sets.

An edge switch with T free entries opens T unions of port sets. Each group with members there goes to one that
covers its ports, at its rate for each port too many, or by unicast, at its part of what that costs. Relaxing
the assignment with a price for each group, in ports, a union has a value by itself: what its groups save. The
sum of prices less the T largest values is a lower bound, for any prices that unicast does not undercut.

At prices up to d + 1 ports, only groups with at most d ports less than a union save something there. So all
unions of value are near the port sets, and are listed; d grows as far as the list stays short. A union that
is more than its near port sets together saves no more than those, and is left out.

source  Lagrangian relaxation of the p-median: Cornuejols, Fisher and Nemhauser 1977
"""

from __future__ import annotations

from itertools import pairwise
from math import comb
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import ROUNDING
from planner_models.multicast.plan.meta_groups import Masks

MAX_LISTED: Final = 1_500_000  # pairs of port set and union, of one switch
MAX_LISTED_IN_ALL: Final = 6_000_000
MIN_SHARE_BOUNDED: Final = 0.2  # of the switches, roughly; with fewer the gain is not worth the time
MAX_STEPS: Final = 100  # of the subgradient method
FIRST_STEP: Final = 0.6  # of prices, in ports
LAST_STEP: Final = 0.01
MOST_SURPLUS: Final = 3.0  # unions that take a set too often, which lower its price in one step


class Switch(NamedTuple):
    """Groups with members at an edge switch.

    ports    (groups,) port sets
    rate     (groups,) Mbit/s
    unicast  (groups,) what unicast costs more, the switch's part, Mbit/s
    free     table entries
    """

    ports: Masks
    rate: Floats
    unicast: Floats
    free: int


def split_switches(switch: Ints, ports: Masks, rate: Floats, unicast: Floats, free: Ints) -> list[Switch]:
    """Return the edge switches, of pairs of switch and group in the order of the switches."""
    start = np.searchsorted(switch, np.arange(len(free) + 1)).tolist()
    return [
        Switch(ports[a:b], rate[a:b], unicast[a:b], size)
        for size, (a, b) in zip(free.tolist(), pairwise(start), strict=True)
    ]


def bound_extra_mbps(switches: list[Switch], *, deadline: Deadline = NEVER) -> Floats:
    """Return a lower bound of the traffic that each switch adds, (switches,), Mbit/s.

    Where switches are many and large, those with the most traffic come first, and others get 0; so do those
    without a free entry, and all where only a few could be bounded.

    deadline  at which the bounds found so far are returned
    """
    best = np.zeros(len(switches))
    full = [index for index, switch in enumerate(switches) if len(switch.ports) > switch.free > 0]
    sets = {row: np.unique(switches[row].ports) for row in full}
    full = [row for row in full if len(sets[row]) > switches[row].free]
    if sum(_count_near(sets[row], 1) for row in full) > MAX_LISTED_IN_ALL / MIN_SHARE_BOUNDED:
        return best
    full.sort(key=lambda row: (-float(switches[row].rate.sum()), row))
    budget = MAX_LISTED_IN_ALL
    for finished, switch_index in enumerate(full):
        if deadline.is_over:
            break
        share = min(MAX_LISTED, max(budget // (len(full) - finished), budget // 50))
        search = _LagrangianBound(switches[switch_index], share)
        if search.depth < 1:
            continue
        budget -= search.listed
        best[switch_index] = search.run(deadline)
    return best


def _count_near(sets: Masks, depth: int) -> int:
    """Return the number of pairs of a port set and a set of at most `depth` ports more."""
    ports = int(np.bitwise_count(np.bitwise_or.reduce(sets)))
    return len(sets) * sum(comb(ports, more) for more in range(depth + 1))


class _LagrangianBound:
    """Subgradient method on the price of each port set of a switch, in ports.

    depth      ports by which a union may exceed a set that saves something
    set, extra, union  (n,) pairs of port set and union near it, and the ports that it exceeds the set
    """

    def __init__(self, switch: Switch, limit: int) -> None:
        self.free = switch.free
        sets, inverse = np.unique(switch.ports, return_inverse=True)
        # groups with the same ports and the same cost of unicast are one
        key, group = np.unique(np.c_[inverse, switch.unicast / switch.rate], axis=0, return_inverse=True)
        self.place, self.limit = key[:, 0].astype(np.int64), key[:, 1]
        self.rate = np.bincount(group.ravel(), switch.rate)
        self.sets = sets
        ports = int(np.bitwise_count(np.bitwise_or.reduce(sets)))
        self.depth, self.listed = -1, 0
        for depth in range(ports):
            listed = _count_near(sets, depth)
            if listed > limit:
                break
            self.depth, self.listed = depth, listed
        if self.depth >= 1:
            self.set, self.extra, self.union = self._list_unions()
            self.count = int(self.union.max()) + 1

    def _list_unions(self) -> tuple[Ints, Ints, Ints]:
        every = int(np.bitwise_or.reduce(self.sets))
        bits = [np.uint64(1 << bit) for bit in range(64) if every >> bit & 1]
        row, mask = np.arange(len(self.sets)), self.sets
        first = np.zeros(len(row), dtype=np.int64)  # bits are added in ascending order
        levels = [(row, mask)]
        for _ in range(self.depth):
            parts = []
            for index, bit in enumerate(bits):
                fits = (first <= index) & ((mask & bit) == 0)
                parts.append((row[fits], mask[fits] | bit, np.full(int(fits.sum()), index + 1)))
            row, mask, first = (np.concatenate(column) for column in zip(*parts, strict=True))
            levels.append((row, mask))
        extra = np.repeat(np.arange(len(levels)), [len(level_sets) for level_sets, _ in levels])
        row, mask = (np.concatenate(column) for column in zip(*levels, strict=True))
        order = np.argsort(mask, kind="stable")
        row, mask, extra = row[order], mask[order], extra[order]
        new = np.r_[True, mask[1:] != mask[:-1]]
        start = np.flatnonzero(new)
        joined = np.bitwise_or.reduceat(self.sets[row], start)  # of the sets near each union
        is_first = (joined == mask[start])[np.cumsum(new) - 1]
        union = np.unique(mask[is_first], return_inverse=True)[1]
        return row[is_first], extra[is_first], union.astype(np.int64)

    def run(self, deadline: Deadline) -> float:
        """Return the best bound, Mbit/s."""
        best = 0.0
        price = np.ones(len(self.sets))
        weight = np.bincount(self.place, self.rate, minlength=len(price))
        for length in np.geomspace(FIRST_STEP, LAST_STEP, MAX_STEPS):
            if deadline.is_over:
                break
            paid = np.minimum(price[self.place], self.limit)
            saved = self._savings(paid)
            value = np.bincount(self.union, saved[self.extra, self.set], minlength=self.count)
            is_open = np.zeros(self.count, dtype=bool)
            top = np.argsort(-value, kind="stable")[: self.free]
            is_open[top] = value[top] > 0
            best = max(best, float(self.rate @ paid - value[top].sum()) * (1 - ROUNDING))
            # unions that take each set at each number of ports too many
            takes = is_open[self.union]
            count = np.zeros((self.depth + 1, len(price)))
            np.add.at(count, (self.extra[takes], self.set[takes]), 1.0)
            taken = sum(count[extra, self.place] * (paid > extra) for extra in range(self.depth + 1))
            slope = np.where(paid < self.limit, 1.0 - taken, np.minimum(1.0 - taken, 0.0))
            change = np.bincount(self.place, self.rate * slope, minlength=len(price)) / weight
            price = np.clip(price + length * np.clip(change, -MOST_SURPLUS, 1.0), 0.0, self.depth + 1.0)
        return best

    def _savings(self, paid: Floats) -> Floats:
        """Return the saving of each set in a union that exceeds it by 0, 1, ... ports: (depth + 1, sets)."""
        return np.array(
            [
                np.bincount(self.place, self.rate * np.maximum(paid - extra, 0.0), minlength=len(self.sets))
                for extra in range(self.depth + 1)
            ]
        )
