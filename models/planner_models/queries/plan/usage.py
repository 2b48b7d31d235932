"""Use of table space and of the control channel by the methods of some queries on a switch, in closed form.

Rules that are installed as packets arrive are one for each combination of values that they tell apart; a
packet goes to the controller until the rule of its combination is in the switch. More queries make more
combinations, and combinations that are ready later, so that no use falls where a query is added: `optimum`
relies on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.queries.plan.methods import (
    AHEAD,
    CONTROLLER,
    METHODS,
    MICROFLOWS,
    UNFOLD,
    Listed,
    can_match,
    count_own,
    find_region,
    find_specialized,
    join_lists,
    list_ahead,
    list_region,
)
from planner_models.queries.problem.problem import Monitoring, Query
from planner_models.queries.problem.schema import MOST_RULES

Assignment = Mapping[int, str]
"""Method by the row of each query that a switch answers."""


class Usage(NamedTuple):
    """Use of a switch.

    rules        rules with wildcards; None for more than the switch holds
    exact_rules  rules of whole headers
    diverted     (P,) whether each packet goes to the controller
    installed    rules of both kinds for packets as they arrive
    """

    rules: int | None
    exact_rules: int
    diverted: Bools
    installed: int


class Seen:
    """A query on the packets of a switch, as arrays over its headers and packets.

    headers   (H,) the headers of the switch; packets name them by position
    """

    def __init__(
        self, problem: Monitoring, row: int, switch: int, headers: Sequence[int], header: Ints
    ) -> None:
        self.query: Query = problem.asked[row]
        self._headers, self._header = headers, header
        region = find_region(problem, self.query, switch)
        self.region: list[Listed] = list_region(region)
        self.ahead = list_ahead(problem, self.query, switch)
        self.specialized = find_specialized(problem, self.query, switch)
        mask = self.query.group | self.query.split
        self.can_unfold = can_match(problem.layout, problem.matching[switch], mask | self.specialized)

    @cached_property
    def entry(self) -> Ints:
        """(H,) position of each header's entry in the region."""
        return find_entries(self._headers, [entry[:2] for entry in self.region])

    @cached_property
    def is_looked_at(self) -> Bools:
        """(H,) whether each header is in the region."""
        return np.array([entry.counts for entry in self.region])[self.entry]

    @cached_property
    def is_inside(self) -> Bools:
        """(H,) whether each header satisfies the predicate."""
        entry = find_entries(self._headers, [entry[:2] for entry in self.query.entries])
        return np.array([entry.holds for entry in self.query.entries])[entry]

    @cached_property
    def group(self) -> Ints:
        """(H,) number of each header's group."""
        return number_values(self._headers, self.query.group)

    @cached_property
    def groups(self) -> int:
        """Groups with packets that satisfy the predicate."""
        return len(np.unique(self.group[self.is_inside]))

    @cached_property
    def told_apart(self) -> Ints:
        """(H,) number of the combination of values that rules of arriving packets tell apart; -1 outside."""
        mask = self.query.group | self.query.split | self.specialized
        return np.where(self.is_looked_at, number_values(self._headers, mask), -1)

    @cached_property
    def subset(self) -> Ints:
        """(P,) number of each packet's group, or part of it where it starts again; -1 outside."""
        inside = self.is_inside[self._header]
        rows = np.flatnonzero(inside)
        rows = rows[np.argsort(self.group[self._header[rows]], kind="stable")]
        group = self.group[self._header[rows]]
        split = number_values(self._headers, self.query.split)[self._header[rows]]
        is_new = np.ones(len(rows), dtype=bool)
        is_new[1:] = (group[1:] != group[:-1]) | (split[1:] != split[:-1])
        subset = np.full(len(self._header), -1, dtype=np.int64)
        subset[rows] = np.cumsum(is_new) - 1
        return subset

    @cached_property
    def is_ready(self) -> Bools:
        """(P,) whether the query needs no packet of a subset after this one itself."""
        if self.query.limit is None:
            return np.ones(len(self._header), dtype=bool)
        subset = self.subset
        order = np.argsort(subset, kind="stable")
        ordered = subset[order]
        rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        ready = np.empty(len(order), dtype=bool)
        ready[order] = rank + 1 >= self.query.limit
        return ready | (subset < 0)

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The methods that the switch has for the query."""
        if self.query.returns_packets and self.query.limit is None:
            return (CONTROLLER,)
        is_possible = {
            AHEAD: self.ahead is not None,
            UNFOLD: self.can_unfold,
            MICROFLOWS: True,
            CONTROLLER: True,
        }
        return tuple(method for method in METHODS if is_possible[method])

    def list_of(self, method: str) -> list[Listed]:
        """Return the entries that a method installs ahead."""
        if method != AHEAD:
            return self.region
        assert self.ahead is not None
        return self.ahead

    def counters(self, method: str) -> int:
        """Return the counters that the controller reads in each period."""
        if method == CONTROLLER or self.query.returns_packets:
            return 0
        if method == AHEAD:
            assert self.ahead is not None
            return len({entry.value & self.query.group for entry in self.ahead if entry.counts})
        return self.groups


class SwitchUse:
    """Methods of queries on one switch, and their use of it.

    queries  rows of the queries that are about the switch
    """

    def __init__(self, problem: Monitoring, switch: int) -> None:
        self.problem, self.switch = problem, switch
        packets = problem.packets[switch]
        rows, self.header = np.unique(packets.header, return_inverse=True)
        self.headers = [problem.headers[0][row] for row in rows.tolist()]
        self.time_s: Floats = packets.time_s
        self.size: Floats = packets.size
        self.queries = [row for row, query in enumerate(problem.asked) if problem.is_about(query, switch)]
        self.seen = {row: Seen(problem, row, switch, self.headers, self.header) for row in self.queries}
        self.space = int(problem.limit("rules")[switch])
        self.exact_space = int(problem.limit("exact_rules")[switch])
        self.most_packets = problem.limit("packets_per_s")[switch] * problem.duration_s
        self.most_polls = float(problem.limit("polls_per_s")[switch])
        self.is_pipeline = bool(problem.limit("pipeline")[switch])
        self._joined: dict[frozenset[tuple[int, bool]], int | None] = {}
        self._used: dict[frozenset[tuple[int, str]], Usage] = {}

    @cached_property
    def program_entry(self) -> Ints:
        """(H,) position of each header's entry in the program; its length for none."""
        cubes = [entry[:2] for entry in self.problem.program]
        return find_entries(self.headers, [*cubes, (0, 0)])

    def use(self, assignment: Assignment) -> Usage:
        """Return the joint use of some methods."""
        key = frozenset(assignment.items())
        if key not in self._used:
            self._used[key] = self._use(dict(sorted(assignment.items())))
        return self._used[key]

    def is_within_space(self, assignment: Assignment) -> bool:
        """Return whether the switch holds the rules, and may send the packets; polls depend on periods."""
        usage = self.use(assignment)
        return (
            usage.rules is not None
            and usage.exact_rules <= self.exact_space
            and usage.diverted.sum() <= self.most_packets * (1 + 1e-9)
        )

    def _use(self, assignment: dict[int, str]) -> Usage:
        diverted = np.zeros(len(self.time_s), dtype=bool)
        installed = 0
        unfolded = [row for row, method in assignment.items() if method == UNFOLD]
        for rows in [[row] for row in unfolded] if self.is_pipeline else [unfolded]:
            if rows:
                match = self._number_matches(rows, assignment)
                count, late = self._install(match, rows)
                installed, diverted = installed + count, diverted | late
        exact, late = self._install_microflows([
            row for row, method in assignment.items() if method == MICROFLOWS
        ])  # fmt: skip
        diverted = diverted | late
        for row, method in assignment.items():
            if method == CONTROLLER:
                diverted = diverted | self.seen[row].is_looked_at[self.header]
        ahead = self.count_ahead(assignment)
        rules = None if ahead is None or ahead + installed > self.space else ahead + installed
        return Usage(rules, exact, diverted, installed + exact)

    def _install_microflows(self, rows: Sequence[int]) -> tuple[int, Bools]:
        """Return the rules of whole headers of some queries, and the packets that come before them."""
        if not rows:
            return 0, np.zeros(len(self.time_s), dtype=bool)
        looked_at = np.logical_or.reduce([self.seen[row].is_looked_at for row in rows])
        return self._install(np.where(looked_at, np.arange(len(self.headers)), -1), rows)

    def count_ahead(self, assignment: Assignment) -> int | None:
        """Return the rules that are installed ahead, those of the program included; None for too many."""
        key = frozenset((row, method == AHEAD) for row, method in assignment.items())
        if key not in self._joined:
            lists = [self.seen[row].list_of(assignment[row]) for row in sorted(assignment)]
            if self.is_pipeline:
                program = join_lists(self.problem, [], limit=MOST_RULES)
                count = None if program is None else len(program) + sum(map(count_own, lists))
                self._joined[key] = count if count is None or count <= self.space else None
            else:
                joined = join_lists(self.problem, lists, limit=self.space)
                self._joined[key] = None if joined is None else len(joined)
        return self._joined[key]

    def _number_matches(self, rows: Sequence[int], assignment: Assignment) -> Ints:
        """Return the number of the rule that each header would get as it arrives, (H,); -1 for none."""
        looked_at = np.logical_or.reduce([self.seen[row].is_looked_at for row in rows])
        columns = [column for row in rows for column in (self.seen[row].entry, self.seen[row].told_apart)]
        if not self.is_pipeline:
            columns.append(self.program_entry)
            for row in assignment:
                seen = self.seen[row]
                columns.append(seen.entry if assignment[row] != AHEAD else self._ahead_entry(row))
        match = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].reshape(-1)
        return np.where(looked_at, match, -1)

    def _ahead_entry(self, row: int) -> Ints:
        entries = self.seen[row].list_of(AHEAD)
        return find_entries(self.headers, [entry[:2] for entry in entries])

    def _install(self, match: Ints, rows: Sequence[int]) -> tuple[int, Bools]:
        """Return the number of rules for arriving packets, and the packets that come before them.

        A rule has its space from the first packet of its like on, also where it waits for further packets.

        match  (H,) number of each header's rule; -1 for none
        rows   of queries whose packets need it
        """
        concerned = match[self.header] >= 0
        ready = concerned.copy()
        columns = [match[self.header]]
        for row in rows:
            seen = self.seen[row]
            if seen.query.limit is not None:
                ready &= seen.is_ready | ~seen.is_looked_at[self.header]
                if seen.query.split:
                    columns.append(seen.subset)
        key = columns[0] + 1
        if len(columns) > 1:
            key = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].reshape(-1)
        number, count = np.arange(len(key)), int(key.max(initial=-1)) + 1
        first = np.full(count, len(key))  # none, where a query waits for packets until the end
        first[key[ready][::-1]] = number[ready][::-1]  # the first packet of a rule is written last
        installed_s = np.append(self.time_s, np.inf)[first] + self.problem.round_trip_s
        late = concerned & ((number <= first[key]) | (self.time_s < installed_s[key]))
        return len(np.unique(match[match >= 0])), late


def find_entries(headers: Sequence[int], cubes: Iterable[tuple[int, int]]) -> Ints:
    """Return the position of the first cube that holds each header, shape (H,); each is in one."""
    by_mask: dict[int, dict[int, int]] = {}
    for position, (value, mask) in enumerate(cubes):
        by_mask.setdefault(mask, {}).setdefault(value, position)
    tables = list(by_mask.items())
    far = 1 << 60
    return np.array(
        [min(table.get(header & mask, far) for mask, table in tables) for header in headers], dtype=np.int64
    )


def number_values(headers: Sequence[int], mask: int) -> Ints:
    """Return a number of each header's value under a mask, equal for equal values, shape (H,)."""
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(header & mask, len(numbers)) for header in headers], dtype=np.int64)
