"""Places and timeout of voting members: branch and bound over leaders, with counts and timeouts below each.

For a leader the seconds down are those without a quorum, which depend on the numbers of members at sites, and
those of watching, which depend on the leader and the timeout and add up over members. Each leader has a
bound: the least seconds without a quorum of any places, and the least ones of watching with any timeout.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.units import MONTH_S
from planner.search.deadline import NEVER, Deadline
from planner_models.membership.designs.counts import (
    GAP,
    Choice,
    CountSearch,
    Request,
    Value,
    improves,
    least_down,
    pick,
)
from planner_models.membership.plan.watching import false_alarm_rates, paused_alarms
from planner_models.membership.problem.problem import Membership, Service, Watcher
from planner_models.membership.problem.schema import HEARTBEAT

LONGEST_TIMEOUT_S: Final = 60.0
STEP: Final = 1.05
"""Factor between neighbouring timeouts of the grid."""
MULTIPLES: Final = 50
"""Intervals up to which every multiple of an interval is on the grid."""


def most_witnesses(size: int, quorum: int) -> int:
    """Return the members that may be witnesses: each quorum has one with data, and two in all have data."""
    return max(min(quorum - 1, size - 2), 0)


def timeout_grid(watcher: Watcher) -> Floats:
    """Return the timeouts to select from, s, ascending: multiples of the interval, and steps of 5%."""
    interval = watcher.interval_s
    longest = max(LONGEST_TIMEOUT_S, 10 * interval)
    multiples = interval * np.arange(1, MULTIPLES + 1)
    steps = interval * STEP ** np.arange(int(np.log(longest / interval) / np.log(STEP)) + 1)
    grid = np.unique(np.round(np.concatenate([multiples, steps]) * 1e3, 6)) / 1e3
    return np.asarray(grid[(grid >= interval * (1 - 1e-12)) & (grid <= longest * (1 + 1e-12))])


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """The best places and timeout of a service, and the values that no other ones are below.

    down_s   seconds down in a month, a month at most
    bound    bounds of the values to compare, first and second
    is_cut   whether the time limit ended the search
    """

    counts: dict[int, int]
    leader: int
    timeout_s: float
    down_s: float
    price: float
    bound: tuple[float, float]
    is_cut: bool


class LeaderSearch:
    """Search of the leader, the places of members and the timeout of one service."""

    def __init__(
        self,
        problem: Membership,
        service: Service,
        *,
        size: int,
        value: Value = least_down,
        price_limit: float | None = None,
        timeout_s: float | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        """Prepare a search.

        size         members that decide
        price_limit  largest price of all members for a month; None: that of the service
        timeout_s    the timeout to take; None: the best one of the grid
        """
        self.problem, self.service, self.size = problem, service, size
        self.watcher = problem.watcher(HEARTBEAT)
        self.value, self.deadline = value, deadline
        limit = service.price_limit if price_limit is None else price_limit
        self._price_limit = float("inf") if limit is None else limit
        self.timeouts = timeout_grid(self.watcher) if timeout_s is None else np.array([timeout_s])
        tree = problem.tree
        self.quorum = service.quorum(size)
        self.witnesses = 0 if service.is_byzantine else most_witnesses(size, self.quorum)
        self.allowed: Bools = (tree.capacity > 0) & ~problem.is_lost
        if not self.witnesses:
            self.allowed &= ~problem.is_witness
        self._best: Search | None = None
        self._open = (float("inf"), float("inf"))
        self._dropped_first = float("inf")
        self._alarms: dict[tuple[float, ...], Floats] = {}
        self._member_s: dict[int, Floats] = {}

    @cached_property
    def leaders(self) -> Ints:
        """Leaves that may lead: those with enough members near."""
        return np.array(
            [
                leaf
                for leaf in self.problem.leaves.tolist()
                if self.allowed[leaf] and not self.problem.is_witness[leaf] and self._has_quorum(leaf)
            ],
            dtype=np.int64,
        )

    def nearest_quorums(self) -> list[tuple[float, int]]:
        """Return the time to the nearest quorum, ms, of each leaf that may have members, with the leaf."""
        tree, numbers = self.problem.tree, self.problem.leaf_number
        leaves = np.array(
            [leaf for leaf in self.problem.leaves.tolist() if self.allowed[leaf]], dtype=np.int64
        )
        times = []
        for leaf in leaves[~self.problem.is_witness[leaves]].tolist():
            capacity = tree.capacity[leaves] - (leaves == leaf)
            rtt = np.repeat(self.problem.delay_matrix.rtt_ms[numbers[leaf], numbers[leaves]], capacity)
            if len(rtt) >= self.size - 1:
                others = np.sort(rtt)
                times.append((float(others[self.quorum - 2]) if self.quorum >= 2 else 0.0, leaf))
        return times

    def _has_quorum(self, leaf: int) -> bool:
        limit = self.service.commit_limit_ms
        if limit is None:
            return True
        near = self.near(leaf) & self.allowed
        capacity = np.minimum(self.problem.tree.capacity, self.size)
        return int(capacity[near].sum()) >= self.quorum_near(leaf)

    def quorum_near(self, leader: int) -> int:
        """Return the members near a leader that a quorum needs; the leader is one where its site is near."""
        return self.quorum if self.near(leader)[leader] else self.quorum - 1

    def near(self, leader: int) -> Bools:
        """Return whether each site, (S,), is a leaf within the limit of commit times from a leader."""
        limit = self.service.commit_limit_ms
        near = np.zeros(len(self.problem.sites), dtype=bool)
        row = self.problem.delay_matrix.rtt_ms[self.problem.leaf_number[leader]]
        is_near = np.ones(len(row), dtype=bool) if limit is None else row <= limit * (1 + 1e-12)
        near[self.problem.leaves[is_near]] = True
        return near

    def base_s(self, leader: int) -> Floats:
        """Return the seconds of watching that depend on the leader alone, (T,): failures and pauses."""
        interval, failover = self.watcher.interval_s, self.service.failover_s
        rate = float(self.problem.tree.leaf_rate[leader])
        if self.size == 1:
            return np.full(len(self.timeouts), rate * failover)
        detect = np.maximum(self.timeouts - interval / 2, 0.0)
        pauses = paused_alarms(self.problem.site_pauses[leader], interval, self.timeouts)
        return np.asarray(rate * (detect + failover) + pauses * failover)

    def member_s(self, leader: int) -> Floats:
        """Return the seconds of false alarms that a member at each site adds, (S, T); inf for one too far.

        A timeout must not be shorter than the round-trip time. Witnesses do not watch: they never lead.
        """
        if leader in self._member_s:
            return self._member_s[leader]
        seconds = np.full((len(self.problem.sites), len(self.timeouts)), np.inf)
        if self.size == 1:
            seconds[leader] = 0.0
        else:
            leaves = self.problem.leaves[self.allowed[self.problem.leaves]]
            row = self.problem.leaf_number[leader], self.problem.leaf_number[leaves]
            alarms = self.service.failover_s * MONTH_S * self._rates(row)
            is_long = self.timeouts >= self.problem.delay_matrix.rtt_ms[row][:, None] / 1e3 * (1 - 1e-12)
            seconds[leaves] = np.where(is_long, alarms, np.inf)
            seconds[leaves[self.problem.is_witness[leaves]]] = 0.0
        self._member_s[leader] = seconds
        return seconds

    def _rates(self, pairs: tuple[int, Ints]) -> Floats:
        """Return the false alarms of pairs of leaves in a second, one row for each pair, (P, T)."""
        delays = self.problem.delay_matrix
        ways = np.column_stack([delays.loss[pairs], delays.spread_s[pairs]])
        kinds, kind = np.unique(ways, axis=0, return_inverse=True)
        missing = [way for way in map(tuple, kinds.tolist()) if way not in self._alarms]
        if missing:
            table = np.array(missing)
            rates = false_alarm_rates(self.watcher.interval_s, self.timeouts, table[:, 0], table[:, 1])
            self._alarms.update(zip(missing, rates, strict=True))
        return np.array([self._alarms[way] for way in map(tuple, kinds.tolist())])[kind.ravel()]

    def watching_bound(self, leader: int) -> float:
        """Return the least seconds of watching of a leader, with any timeout and any members."""
        return float((self.base_s(leader) + self._least_alarms(leader)).min())

    def _least_alarms(self, leader: int) -> Floats:
        """Return the least seconds of false alarms of the members but the leader, (T,)."""
        if self.size == 1:
            return np.zeros(len(self.timeouts))
        capacity = np.minimum(self.problem.tree.capacity, self.size - 1) * self.allowed
        capacity[leader] = min(int(self.problem.tree.capacity[leader]) - 1, self.size - 1)
        sites = np.repeat(np.arange(len(capacity)), capacity)
        seconds = np.sort(self.member_s(leader)[sites], axis=0)[: self.size - 1]
        return np.asarray(seconds.sum(axis=0))

    # --- search ---------------------------------------------------------------------------

    def run(self) -> Search | None:
        """Return the best leader, places and timeout, with bounds; None where there are none."""
        relaxed = self._search_counts(None, near=None)
        if relaxed is None:
            return None
        queue = [
            (*self._bounds(relaxed, self.watching_bound(leader)), self._distance(leader), leader)
            for leader in self._distinct_leaders()
        ]
        heapq.heapify(queue)
        while queue:
            first, second, _, leader = heapq.heappop(queue)
            if not improves((first, second), self._values()):
                self._open = min(self._open, (first, second))
                break
            self._search_timeouts(leader, relaxed)
            if self.deadline.is_over:
                self._open = min(self._open, (first, second))
                break
        return self._result()

    def _distinct_leaders(self) -> list[int]:
        """Return the leaders without those that differ from another one by their name only.

        Two leaves do where both are the only ones below the same site, with the same sites in between, no
        shared risks, and the same delays to all others: exchanging them maps each plan to an equal one.
        """
        tree, delays = self.problem.tree, self.problem.delay_matrix
        numbers = self.problem.leaf_number
        groups: dict[tuple[object, ...], list[int]] = {}
        for leaf in self.leaders.tolist():
            chain = [leaf]
            while (above := int(tree.parent[chain[-1]])) >= 0 and len(tree.children[above]) == 1:
                chain.append(above)
            if tree.risk_sites[:, chain].any():
                groups[(leaf,)] = [leaf]
                continue
            pauses = tuple(self.problem.site_pauses[leaf])
            sites = tuple((int(tree.kind[s]), float(tree.rate[s]), float(tree.down[s])) for s in chain)
            key = (
                int(tree.parent[chain[-1]]),
                sites,
                pauses,
                int(tree.capacity[leaf]),
                float(self.problem.price[leaf]),
            )
            alike = groups.setdefault(key, [])
            is_same = all(
                _same_delays(matrix, int(numbers[alike[0]]), int(numbers[leaf]))
                for matrix in (delays.rtt_ms, delays.p99_ms, delays.loss)
                if alike
            )
            if not alike:
                alike.append(leaf)
            elif not is_same:
                groups[(leaf,)] = [leaf]
        return [leaves[0] for leaves in groups.values()]

    def _bounds(self, relaxed: Choice, watching_s: float) -> tuple[float, float]:
        """Return bounds of the values, from the best places without watching and the least watching."""
        first, second = self.value(np.array([relaxed.quorum_s + watching_s]), np.array([relaxed.price]))
        return float(first[0]), float(second[0])

    def _distance(self, leader: int) -> float:
        """Return the mean round-trip time of a leader, which orders leaders with equal bounds."""
        return float(self.problem.delay_matrix.rtt_ms[self.problem.leaf_number[leader]].mean())

    def _values(self) -> tuple[float, float]:
        """Return the values of the incumbent; inf without one."""
        if self._best is None:
            return float("inf"), float("inf")
        first, second = self.value(np.array([self._best.down_s]), np.array([self._best.price]))
        return float(first[0]), float(second[0])

    def _result(self) -> Search | None:
        """Return the incumbent, with the lower one of its values and of those that remain open as bound.

        What was dropped although it is better, by less than the gap, has no lower second value.
        """
        if self._best is None:
            return None
        bound = min(self._open, self._values())
        if bound[0] < self._values()[0]:
            bound = bound[0], min(bound[1], self._least_second())
        bound = min(bound[0], self._dropped_first), bound[1]
        down_s = min(self._best.down_s, MONTH_S)
        return replace(self._best, down_s=down_s, bound=bound, is_cut=self.deadline.is_over)

    def _least_second(self) -> float:
        """Return a bound of the second value of every choice."""
        capacity = np.minimum(self.problem.tree.capacity, self.size) * self.allowed
        prices = np.sort(np.repeat(self.problem.price, capacity))[: self.size]
        return float(self.value(np.zeros(1), np.array([prices.sum()]))[1][0])

    def _search_counts(
        self,
        leader: int | None,
        *,
        near: Bools | None,
        seconds: Floats | None = None,
        base_s: float = 0.0,
        incumbent: tuple[float, float] = (float("inf"), float("inf")),
    ) -> Choice | None:
        """Return the best numbers of members; without seconds of watching where these are None."""
        sites = len(self.problem.sites)
        per_site = np.zeros(sites) if seconds is None else seconds
        request = Request(
            size=self.size,
            quorum=self.quorum,
            quorum_near=0 if near is None or leader is None else self.quorum_near(leader),
            allowed=self.allowed & np.isfinite(per_site),
            near=np.ones(sites, dtype=bool) if near is None else near,
            seconds=per_site,
            price=self.problem.price,
            leader=leader,
            base_s=base_s,
            price_limit=self._price_limit,
            witness=self.problem.is_witness,
            witnesses=self.witnesses,
        )
        search = CountSearch(
            self.problem.tree, request, value=self.value, incumbent=incumbent, deadline=self.deadline
        )
        choice = search.run()
        self._dropped_first = min(self._dropped_first, search.dropped_first)
        return choice

    def _search_leader(self, leader: int) -> Choice | None:
        """Return the best places with a leader, with the least false alarms of any, if they improve."""
        choice = self._search_counts(
            leader,
            near=self.near(leader),
            base_s=self.watching_bound(leader),
            incumbent=self._values(),
        )
        if choice is not None:
            self._offer(leader, choice)
        return choice

    def _search_timeouts(self, leader: int, relaxed: Choice) -> None:
        """Search the places of a leader for each timeout that may improve on the incumbent.

        The seconds of false alarms are rounded down, so that fewer alternatives differ: the values of a
        choice remain open where they are below those of the incumbent.
        """
        base, seconds = self.base_s(leader), self.member_s(leader)
        watching = base + self._least_alarms(leader)
        is_refined = False
        for number, index in enumerate(np.argsort(watching, kind="stable").tolist()):
            if not is_refined and (number == 1 or self._best is None):
                refined = self._search_leader(leader)
                if refined is None:
                    return
                relaxed, is_refined = refined, True
            bounds = self._bounds(relaxed, float(watching[index]))
            if not np.isfinite(watching[index]):
                return
            if not improves(bounds, self._values()):
                self._dropped_first = min(self._dropped_first, bounds[0])
                return
            self._search_timeout(leader, seconds[:, index], float(base[index]))
            if self.deadline.is_over:
                self._open = min(self._open, bounds)
                return

    def _search_timeout(self, leader: int, seconds: Floats, base_s: float) -> None:
        """Search the places of a leader for one timeout, with the seconds of each member rounded down."""
        rounded = seconds
        if self._best is not None and self._best.down_s > 0:
            grain = GAP * min(self._best.down_s, MONTH_S) / 2 / self.size
            rounded = np.floor(seconds / grain) * grain
        of_leader = float(rounded[leader]) if np.isfinite(rounded[leader]) else 0.0
        choice = self._search_counts(
            leader,
            near=self.near(leader),
            seconds=rounded,
            base_s=base_s - of_leader,
            incumbent=self._values(),
        )
        if choice is not None:
            self._offer(leader, choice)
            first, second = self.value(np.array([choice.down_s]), np.array([choice.price]))
            self._open = min(self._open, (float(first[0]), float(second[0])))

    def _offer(self, leader: int, choice: Choice) -> None:
        """Take places as the incumbent, with their best timeout, where they improve on it."""
        counts = {**choice.counts, leader: choice.counts[leader] - 1}
        seconds, sites = self.member_s(leader), [site for site, count in counts.items() if count]
        alarms = sum((counts[site] * seconds[site] for site in sites), np.zeros(len(self.timeouts)))
        total = choice.quorum_s + self.base_s(leader) + alarms
        first, second = self.value(total, np.full(len(total), choice.price))
        best = pick(first, second)
        values = float(first[best]), float(second[best])
        if np.isfinite(total[best]) and (values[0] < self._values()[0] or improves(values, self._values())):
            self._best = Search(
                counts=choice.counts,
                leader=leader,
                timeout_s=float(self.timeouts[best]),
                down_s=float(total[best]),
                price=choice.price,
                bound=values,
                is_cut=False,
            )


def _same_delays(matrix: Floats, first: int, other: int) -> bool:
    """Return whether two leaves have the same entries to all others, and each to itself."""
    is_else = np.ones(len(matrix), dtype=bool)
    is_else[[first, other]] = False
    return bool(
        (matrix[first, is_else] == matrix[other, is_else]).all()
        and matrix[first, first] == matrix[other, other]
    )
