"""Emulation of a switch and its controller, packet by packet, from the rules of a plan alone.

It knows neither how methods were chosen nor how their use was computed. A packet meets the rules of whole
headers that were installed, then each table; the controller gets it at most once, counts what no counter
has, and installs rules for its like after a round trip. Where a group starts again, the rules of its part
before are deleted.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import pandas as pd

from planner_models.flowtables.problem.values import Cube
from planner_models.queries.plan.interpreter import Amounts, Selected, Selection, find_period
from planner_models.queries.plan.methods import CONTROLLER, MICROFLOWS, UNFOLD, find_specialized
from planner_models.queries.plan.plan import COUNT, Answers, read_methods, read_periods
from planner_models.queries.problem.problem import Monitoring
from planner_models.queries.problem.schema import BYTES, NO_ACTION


class Row(NamedTuple):
    """A rule of a table, and the queries that it counts for, or diverts packets for, by their rows."""

    value: int
    mask: int
    priority: int
    action: str
    counts: tuple[int, ...]
    diverts: tuple[int, ...]


NOTHING: Final = Row(0, 0, 0, NO_ACTION, (), ())


@dataclass
class Observed:
    """Use of a switch, and answers, as emulated.

    rules, exact_rules   in the switch at the end of all packets, deleted ones included
    installed            rules for packets as they arrived
    to_controller        packets that went to the controller
    amounts, selected    answers by the row of a query
    other_actions        packets with another action than the program has for them
    """

    rules: int = 0
    exact_rules: int = 0
    installed: int = 0
    to_controller: int = 0
    amounts: dict[int, Amounts] = field(default_factory=lambda: defaultdict(Counter))
    selected: dict[int, Selected] = field(default_factory=lambda: defaultdict(list))
    other_actions: int = 0


class Table:
    """Rules of a table, looked up by mask."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._by_mask: dict[int, dict[int, Row]] = {}
        for row in rows:
            rules = self._by_mask.setdefault(row.mask, {})
            if row.value not in rules or rules[row.value].priority < row.priority:
                rules[row.value] = row

    def find(self, header: int) -> Row:
        """Return the rule of the highest priority that matches."""
        hits = (rules.get(header & mask) for mask, rules in self._by_mask.items())
        return max((row for row in hits if row is not None), key=lambda row: row.priority, default=NOTHING)


class Emulation:
    """A switch with the rules of a plan, and the part of the controller for it."""

    def __init__(self, problem: Monitoring, plan: Answers, switch: int) -> None:
        self.problem, self.switch = problem, switch
        methods = read_methods(problem, plan.methods)
        self.method = {row: method for (row, of_switch), method in methods.items() if of_switch == switch}
        self.period_s = read_periods(problem, plan.answers)
        self.tables = read_tables(problem, plan, switch)
        self.selections = {
            row: Selection(problem.asked[row]) for row in self.method if problem.asked[row].returns_packets
        }
        self.observed = Observed(rules=sum(len(rows) for rows in self.tables))
        # rules installed as packets arrived, by table (-1: of whole headers), with the time of each
        self._since: dict[tuple[int, int, Cube], float] = {}
        self._decided: dict[tuple[int, int, Cube], frozenset[int]] = {}  # queries that it counts for
        self._ever: set[tuple[int, int, Cube]] = set()
        self._of_group: dict[tuple[int, int], set[tuple[int, int, Cube]]] = defaultdict(set)

    @cached_property
    def lookups(self) -> list[Table]:
        """The tables, ready for lookups."""
        return [Table(rows) for rows in self.tables]

    def run(self) -> Observed:
        """Return the observations of all packets of the switch."""
        packets = self.problem.packets[self.switch]
        headers = self.problem.headers[0]
        program = Table(Row(*entry[:2], -position, entry.action, (), ())
                        for position, entry in enumerate(self.problem.program))  # fmt: skip
        lookups_of: dict[int, tuple[list[Row], frozenset[int]]] = {}
        for number, (time_s, header_row, size) in enumerate(
            zip(*(column.tolist() for column in packets), strict=True)
        ):
            header = headers[header_row]
            if header_row not in lookups_of:
                rows = [table.find(header) for table in self.lookups]
                inside = frozenset(
                    row for row in self.method if self.problem.asked[row].predicate.holds(header)
                )
                lookups_of[header_row] = rows, inside
            rows, inside = lookups_of[header_row]
            if self._join_actions(rows) != self._join_actions([program.find(header)]):
                self.observed.other_actions += 1
            self._pass(number, time_s, int(size), header, rows, inside)
        self.observed.installed = len(self._ever)
        self.observed.exact_rules = sum(table < 0 for table, _, _ in self._ever)
        self.observed.rules += sum(table >= 0 for table, _, _ in self._ever)
        return self.observed

    def _join_actions(self, rows: Sequence[Row]) -> set[str]:
        """Return the actions that the rules of all tables give a packet, or the one where none does."""
        return {row.action for row in rows} - {NO_ACTION} or {self.problem.other_action}

    def _pass(
        self, number: int, time_s: float, size: int, header: int, rows: Sequence[Row], inside: frozenset[int]
    ) -> None:
        """Pass a packet through the tables, and to the controller where a rule diverts it."""
        self._forget(header, inside)
        counted, diverted = self._look_up(time_s, header, rows)
        if diverted:
            self.observed.to_controller += 1
            asked_for = inside.intersection(itertools.chain.from_iterable(diverted.values()))
            counted |= self._select(number, header, asked_for)
            for key, diverts in diverted.items():
                if key is not None:
                    self._install(key, inside.intersection(diverts), time_s, header)
        for query in counted - self.selections.keys():
            amount = size if self.problem.asked[query].select == BYTES else 1
            cell = header & self.problem.asked[query].group, find_period(time_s, self.period_s[query])
            self.observed.amounts[query][cell] += amount

    def _look_up(
        self, time_s: float, header: int, rows: Sequence[Row]
    ) -> tuple[set[int], dict[tuple[int, int, Cube] | None, list[int]]]:
        """Return the queries that rules count a packet for, and those that divert it, by the missing rule."""
        counted: set[int] = set()
        diverted: dict[tuple[int, int, Cube] | None, list[int]] = {}
        for table, row in enumerate(rows):
            counted.update(row.counts)
            for method in (UNFOLD, MICROFLOWS, CONTROLLER):
                diverts = [query for query in row.diverts if self.method[query] == method]
                if not diverts:
                    continue
                key = None if method == CONTROLLER else self._key(table, row, header, method)
                if key is not None and self._since.get(key, float("inf")) <= time_s:
                    counted |= self._decided[key].intersection(diverts)
                else:
                    diverted.setdefault(key, []).extend(diverts)
        return counted, diverted

    def _key(self, table: int, row: Row, header: int, method: str) -> tuple[int, int, Cube]:
        """Return the rule that is installed for a packet: its table, the rule above it, and its match."""
        if method == MICROFLOWS:
            return -1, 0, (header, -1)
        mask = row.mask
        for query in row.diverts:
            if self.method[query] == UNFOLD:
                asked = self.problem.asked[query]
                mask |= asked.group | asked.split | find_specialized(self.problem, asked, self.switch)
        return table, row.priority, (header & mask, mask)

    def _select(self, number: int, header: int, asked_for: frozenset[int]) -> frozenset[int]:
        """Return the queries that the controller counts a packet for; give it to those for packets."""
        for query in sorted(asked_for & self.selections.keys()):
            if self.selections[query].add(header):
                self.observed.selected[query].append((self.switch, number))
        return asked_for

    def _install(
        self, key: tuple[int, int, Cube], asked_for: frozenset[int], time_s: float, header: int
    ) -> None:
        """Install a rule after a round trip, once no query needs further packets of its like."""
        self._ever.add(key)  # its space, from now on
        if key in self._since:
            return
        asking = asked_for & self.selections.keys()
        if all(self.selections[query].is_complete(header) for query in asking):
            self._since[key] = time_s + self.problem.round_trip_s
            self._decided[key] = asked_for
            for query in asking:
                self._of_group[query, header & self.problem.asked[query].group].add(key)

    def _forget(self, header: int, inside: frozenset[int]) -> None:
        """Delete the rules of a group that starts again with a packet."""
        for query in inside & self.selections.keys():
            asked, selection = self.problem.asked[query], self.selections[query]
            if asked.split and selection.starts_again(header):
                for key in self._of_group.pop((query, header & asked.group), ()):
                    self._since.pop(key, None)


def read_tables(problem: Monitoring, plan: Answers, switch: int) -> list[list[Row]]:
    """Return the rules of each table of a switch, in the order in which packets pass the tables."""
    name = problem.switch_names[switch]
    query_row = {query: row for row, query in enumerate(problem.query_names)}
    used: dict[tuple[float, float], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    uses = plan.uses[plan.uses["switch"] == name]
    for table, priority, query, use in uses[["table", "priority", "query", "use"]].itertuples(index=False):
        used[table, priority][use].append(query_row[query])
    tables: dict[float, list[Row]] = {}
    rules: pd.DataFrame = plan.rules[plan.rules["switch"] == name]
    columns = ["table", "priority", "match", "action"]
    for table, priority, match, action in rules[columns].itertuples(index=False):
        uses_of = used.get((table, priority), {})
        counts = tuple(uses_of.get(COUNT, ()))
        diverts = tuple(query for use, queries in uses_of.items() if use != COUNT for query in queries)
        for value, mask in problem.layout.parse(match or ""):
            tables.setdefault(table, []).append(Row(value, mask, int(priority), action, counts, diverts))
    return [tables[table] for table in sorted(tables)]
