"""Interpretation of queries on packets one by one: the answers that any way to count must give."""

from __future__ import annotations

from collections import Counter
from typing import Final

from planner_models.queries.problem.problem import Monitoring, Query
from planner_models.queries.problem.schema import BYTES

NANOSECOND_S: Final = 1e-9
Amounts = Counter[tuple[int, int]]
"""Bytes or packets by the values of a group and the number of a period."""
Selected = list[tuple[int, int]]
"""Number of the switch, and of a packet of it."""


def find_period(time_s: float, period_s: float) -> int:
    """Return the number of the period in which a packet arrives."""
    return int((time_s + NANOSECOND_S / 2) // period_s)


def count_amounts(problem: Monitoring, query: Query, period_s: float) -> Amounts:
    """Return the bytes or packets of each group in each period that has any."""
    amounts: Amounts = Counter()
    headers = problem.headers[0]
    for switch, packets in enumerate(problem.packets):
        if query.switch not in (-1, switch):
            continue
        for time_s, row, size in zip(*(column.tolist() for column in packets), strict=True):
            header = headers[row]
            if query.predicate.holds(header):
                cell = header & query.group, find_period(time_s, period_s)
                amounts[cell] += int(size) if query.select == BYTES else 1
    return amounts


class Selection:
    """The packets that a query returns of those that it sees, on one switch.

    seen   packets of the present part of each group
    split  values of the fields that start a group again, of its last packet
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.seen: dict[int, int] = {}
        self.split: dict[int, int] = {}

    def add(self, header: int) -> bool:
        """Return whether the query returns a packet, which satisfies its predicate."""
        group, split = header & self.query.group, header & self.query.split
        if self.starts_again(header):
            self.seen[group] = 0
        self.split[group] = split
        self.seen[group] += 1
        return self.query.limit is None or self.seen[group] <= self.query.limit

    def starts_again(self, header: int) -> bool:
        """Return whether a packet is the first of its group, or of a part of it."""
        group = header & self.query.group
        return self.split.get(group, -1) != header & self.query.split

    def is_complete(self, header: int) -> bool:
        """Return whether the query needs no further packet of the present part of a group."""
        return self.query.limit is None or self.seen.get(header & self.query.group, 0) >= self.query.limit


def select_packets(problem: Monitoring, query: Query) -> Selected:
    """Return the packets that a query returns, of each switch in the order of arrival."""
    selected: Selected = []
    headers = problem.headers[0]
    for switch, packets in enumerate(problem.packets):
        if query.switch not in (-1, switch):
            continue
        selection = Selection(query)
        for number, row in enumerate(packets.header.tolist()):
            if query.predicate.holds(headers[row]) and selection.add(headers[row]):
                selected.append((switch, number))
    return selected
