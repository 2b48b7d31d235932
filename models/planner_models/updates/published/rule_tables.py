"""Rules that predicates and composed programs take in one table of prioritized rules.

A table is a list of rules, the first match wins; packets that match none are dropped. Fields of a packet are
matched exactly or not at all.

Reference: Foster et al. 2013, II.A and III.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

OTHER: Final = "other"
"""A value of a field that no rule names."""
ANY: Final = "*"


class Rule(NamedTuple):
    """A pattern, values by field, and actions on packets that match it."""

    pattern: frozenset[tuple[str, str]]
    actions: frozenset[str] = frozenset()

    def matches(self, packet: dict[str, str]) -> bool:
        """Return whether a packet has the values of the pattern."""
        return all(packet[field] == value for field, value in self.pattern)


Table = tuple[Rule, ...]


def match(actions: Iterable[str] = (), **fields: str) -> Table:
    """Return the table of one rule."""
    return (Rule(frozenset(fields.items()), frozenset(actions)),)


def compose(one: Table, other: Table) -> Table:
    """Return the table that does what both do: in parallel, in the fewest rules that this finds."""
    nothing = Rule(frozenset())
    rules = []
    for first, second in itertools.product((*one, nothing), (*other, nothing)):
        pattern = first.pattern | second.pattern
        if len({field for field, _ in pattern}) == len(pattern):  # else no packet matches both
            rules.append(Rule(pattern, first.actions | second.actions))
    return minimize(rules)


def exclude(table: Table, without: Table) -> Table:
    """Return the table for packets that `without` does not match."""
    rules = []
    for rule in without:
        for mine in table:
            pattern = rule.pattern | mine.pattern
            if len({field for field, _ in pattern}) == len(pattern):
                rules.append(Rule(pattern))
    return minimize([*rules, *table])


def minimize(rules: Sequence[Rule]) -> Table:
    """Return the rules without those, the last first, that change nothing for any packet."""
    kept = list(rules)
    packets = _representatives(rules)
    wanted = [_decide(kept, packet) for packet in packets]
    for place in range(len(kept) - 1, -1, -1):
        fewer = kept[:place] + kept[place + 1 :]
        if [_decide(fewer, packet) for packet in packets] == wanted:
            kept = fewer
    return tuple(kept)


def _representatives(rules: Sequence[Rule]) -> list[dict[str, str]]:
    """Return a packet of each combination of values that rules can tell apart."""
    values: dict[str, set[str]] = {}
    for field, value in itertools.chain.from_iterable(rule.pattern for rule in rules):
        values.setdefault(field, {OTHER}).add(value)
    fields = sorted(values)
    return [
        dict(zip(fields, each, strict=True))
        for each in itertools.product(*(sorted(values[field]) for field in fields))
    ]


def _decide(rules: Sequence[Rule], packet: dict[str, str]) -> frozenset[str]:
    return next((rule.actions for rule in rules if rule.matches(packet)), frozenset())


def approximate(address: str, *, prefixes: bool, wildcards: bool) -> str:
    """Return the smallest pattern of a switch that covers an address with wildcards for some octets.

    prefixes   whether the switch matches the first octets alone
    wildcards  whether it matches any octets alone
    """
    octets = address.split(".")
    if wildcards or ANY not in octets:
        return address
    first = octets.index(ANY) if prefixes else 0
    return ".".join([*octets[:first], *[ANY] * (len(octets) - first)])
