"""Classifier of Open vSwitch: the rule of a header in one table, and the bits that the search consulted.

Rules with the same mask are one hash table. These are searched by falling highest priority, each layer by
layer, and skipped where a trie of address prefixes rules them out (Pfaff et al. 2015, 5.2 to 5.4). Rules of a
conjunction match where one of each of its clauses matches: those that match are collected, and a second
search looks for the rule of the conjunction's number (ovs-actions(7), `conjunction`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from planner_models.flowtables.problem.evaluation.operations import Clause, Operation
from planner_models.flowtables.problem.fields import Layout
from planner_models.flowtables.problem.values import IPV4, is_prefix

TRIE_FIELDS: Final = (("ip_src", "arp_spa"), ("ip_dst", "arp_tpa"))
"""Addresses whose prefixes are tracked, and those of ARP, which a switch has in the same place."""
PORTS: Final = ("tp_src", "tp_dst", "icmp_type", "icmp_code")


class Rule(NamedTuple):
    """A rule of one table.

    value, mask  of headers with registers that it matches
    clauses      of conjunctions that it belongs to; a rule with some has no operations
    row          of the file, from 1; 0: learned from a packet
    """

    priority: int
    value: int
    mask: int
    operations: tuple[Operation, ...]
    clauses: tuple[Clause, ...]
    row: int


class Segments(NamedTuple):
    """Layers of a search, the same for all tables of a switch.

    masks      (4,) bits of the fields of each layer
    addresses  shift of each address with a trie and of the same one in ARP
    ports      shift and bits of the fields of ports
    kind       shift of `eth_type`
    conjunction  shift of `conj_id`
    """

    masks: tuple[int, ...]
    addresses: tuple[tuple[int, int], ...]
    ports: tuple[tuple[int, int], ...]
    kind: int
    conjunction: int


def make_segments(layout: Layout) -> Segments:
    """Return the layers of the search on a layout with all fields."""
    masks = [
        layout.full_mask(item.name for item in layout.fields if item.stage == stage) for stage in range(4)
    ]
    return Segments(
        tuple(masks),
        tuple((layout.shift[name], layout.shift[other]) for name, other in TRIE_FIELDS),
        tuple((layout.shift[name], layout.by_name[name].bits) for name in PORTS),
        layout.shift["eth_type"],
        layout.shift["conj_id"],
    )


class Prefixes:
    """Prefixes of an address in the rules of a table, a trie as sorted numbers."""

    def __init__(self) -> None:
        self.by_length: dict[int, set[int]] = {}
        self._sorted: list[tuple[int, int]] | None = None
        self._results: dict[int, tuple[int, frozenset[int]]] = {}

    def add(self, value: int, length: int) -> None:
        """Add a prefix: the address with zeros behind it, and its length."""
        self.by_length.setdefault(length, set()).add(value)
        self._sorted = None
        self._results.clear()

    def look_up(self, address: int) -> tuple[int, frozenset[int]]:
        """Return the number of bits that settle the matching prefixes (Figure 3), and their lengths."""
        if address not in self._results:
            self._results[address] = self._search(address)
        return self._results[address]

    def _search(self, address: int) -> tuple[int, frozenset[int]]:
        """Return the result of a search, not remembered."""
        if self._sorted is None:
            self._sorted = sorted(
                (value, length) for length, group in self.by_length.items() for value in group
            )
        lengths = frozenset(
            length
            for length, group in self.by_length.items()
            if address >> (32 - length) << (32 - length) in group
        )
        if not self._sorted:
            return 0, lengths
        position = bisect_left(self._sorted, (address, 33))
        depth = max(lengths, default=0) - 1
        for value, length in self._sorted[max(position - 1, 0) : position + 1]:
            common = 32 - (value ^ address).bit_length()
            depth = max(depth, min(common, length - 1))
        return depth + 1, lengths


@dataclass
class Subtable:
    """Rules of a table with one mask.

    parts     per layer in which the mask has bits: layer, and the mask up to it
    indices   values of the rules up to each of these layers but the last
    lengths   of the prefix of each address with a trie; 0: none
    by_value  rules by value, the highest priority first
    """

    mask: int
    parts: list[tuple[int, int]]
    lengths: list[int]
    port_mask: int
    highest: int = -1
    indices: list[set[int]] = field(default_factory=list)
    by_value: dict[int, list[Rule]] = field(default_factory=dict)
    port_values: set[int] = field(default_factory=set)

    def add(self, rule: Rule) -> None:
        """Add a rule, in place of one of the same priority and match."""
        rules = self.by_value.setdefault(rule.value, [])
        rules[:] = sorted(
            [r for r in rules if r.priority != rule.priority] + [rule], key=lambda r: -r.priority
        )
        self.highest = max(self.highest, rule.priority)
        for index, (_, mask) in zip(self.indices, self.parts, strict=False):
            index.add(rule.value & mask)
        self.port_values.add(rule.value & self.port_mask)
        self.__dict__.pop("sorted_ports", None)

    @cached_property
    def sorted_ports(self) -> list[int]:
        """Ports of all rules, ascending."""
        return sorted(self.port_values)


@dataclass
class Search:
    """One search of a table: the header, the consulted bits so far, and results of tries.

    mask  of the bits that have been consulted
    """

    header: int
    mask: int
    tries: dict[int, tuple[int, frozenset[int]]] = field(default_factory=dict)


class Classifier:
    """Rules of one table."""

    def __init__(self, segments: Segments) -> None:
        self.segments = segments
        self.subtables: dict[int, Subtable] = {}
        self.prefixes = [Prefixes() for _ in segments.addresses]
        self._order: list[Subtable] | None = None

    def add(self, rule: Rule) -> None:
        """Add a rule, in place of one of the same priority and match."""
        subtable = self.subtables.get(rule.mask)
        if subtable is None:
            subtable = self.subtables[rule.mask] = self._make_subtable(rule.mask)
        if rule.priority > subtable.highest:
            self._order = None
        subtable.add(rule)
        for prefixes, length, shifts in zip(
            self.prefixes, subtable.lengths, self.segments.addresses, strict=True
        ):
            if length:
                prefixes.add(_take_address(rule.value, shifts), length)

    def look_up(self, header: int, mask: int) -> tuple[Rule | None, int]:
        """Return the rule that a header with registers matches, and a mask with the consulted bits."""
        search = Search(header, mask)
        rule = self._search(search, with_conjunctions=True)
        return rule, search.mask

    def rules(self) -> Iterator[Rule]:
        """Yield all rules."""
        for subtable in self.subtables.values():
            for rules in subtable.by_value.values():
                yield from rules

    def _make_subtable(self, mask: int) -> Subtable:
        """Return a table without rules for a mask."""
        parts, reach = [], 0
        for stage, bits in enumerate(self.segments.masks):
            if mask & bits:
                reach |= mask & bits
                parts.append((stage, reach))
        lengths = [_measure_prefix(_take_address(mask, shifts)) for shifts in self.segments.addresses]
        port_mask = mask & sum(((1 << bits) - 1) << shift for shift, bits in self.segments.ports)
        subtable = Subtable(mask, parts or [(0, 0)], lengths, port_mask)
        subtable.indices = [set() for _ in subtable.parts[:-1]]
        return subtable

    def _search(self, search: Search, *, with_conjunctions: bool) -> Rule | None:
        """Return the rule of the highest priority; consulted bits are added to the mask."""
        if self._order is None:
            self._order = sorted(self.subtables.values(), key=lambda subtable: -subtable.highest)
        hard: Rule | None = None
        soft: list[list[Rule]] = []
        for subtable in self._order:
            if hard is not None and subtable.highest <= hard.priority:
                break
            rules = self._match(subtable, search)
            if rules is None or (hard is not None and rules[0].priority <= hard.priority):
                continue
            if not rules[0].clauses:
                hard = rules[0]
            elif with_conjunctions:
                soft.append(rules)
        return self._combine(search, hard, soft) if soft else hard

    def _combine(self, search: Search, hard: Rule | None, soft: list[list[Rule]]) -> Rule | None:
        """Return the rule where rules of conjunctions match: that of a whole one, else of lower priority.

        soft  rules with the same match, for each match of the header; the first of each is of a conjunction
        """
        while True:
            soft = [rules for rules in soft if hard is None or rules[0].priority > hard.priority]
            if not soft:
                return hard
            highest = max(rules[0].priority for rules in soft)
            matching = [rules[0] for rules in soft if rules[0].priority == highest]
            for number in _list_whole(matching):
                rule = self._look_up_number(search, number)
                if rule is not None:
                    return rule
            following = []
            for rules in soft:
                remaining = rules[1:] if rules[0].priority == highest else rules
                if remaining and remaining[0].clauses:
                    following.append(remaining)
                elif remaining and (hard is None or remaining[0].priority > hard.priority):
                    hard = remaining[0]
            soft = following

    def _look_up_number(self, search: Search, number: int) -> Rule | None:
        """Return the rule that matches the number of a conjunction with the header."""
        shift = self.segments.conjunction
        second = Search(search.header & ~(0xFFFFFFFF << shift) | number << shift, search.mask)
        rule = self._search(second, with_conjunctions=False)
        search.mask |= second.mask
        return rule

    def _match(self, subtable: Subtable, search: Search) -> list[Rule] | None:
        """Return the rules of one mask that a header matches, None without one; add the consulted bits."""
        before, header = 0, search.header
        last = len(subtable.parts) - 1
        for index, (stage, mask) in enumerate(subtable.parts):
            if stage == 2 and any(subtable.lengths) and self._is_ruled_out(subtable, search):
                search.mask |= before
                return None
            if index < last:
                before = mask
                if header & mask not in subtable.indices[index]:
                    search.mask |= mask
                    return None
        rules = subtable.by_value.get(header & subtable.mask)
        if rules is None and subtable.port_mask:
            search.mask |= before | _tell_ports(subtable, header, self.segments.ports)
            return None
        search.mask |= subtable.mask
        return rules

    def _is_ruled_out(self, subtable: Subtable, search: Search) -> bool:
        """Return whether a trie tells that no rule of a mask matches; the bits that tell it are added."""
        for index, length in enumerate(subtable.lengths):
            if not length:
                continue
            if index not in search.tries:
                search.tries[index] = self._look_up_prefix(index, search.header)
            needed, lengths = search.tries[index]
            if needed < 0 or length in lengths:
                continue
            bits = ((1 << needed) - 1) << (32 - needed) << self.segments.addresses[index][0]
            if needed <= length:
                search.mask |= bits
                return True
            if search.mask & bits == bits:
                return True
        return False

    def _look_up_prefix(self, index: int, header: int) -> tuple[int, frozenset[int]]:
        """Return the result of a trie; -1 bits for packets without the address."""
        if header >> self.segments.kind & 0xFFFF != IPV4:
            return -1, frozenset()
        return self.prefixes[index].look_up(header >> self.segments.addresses[index][0] & 0xFFFFFFFF)


def _take_address(number: int, shifts: tuple[int, int]) -> int:
    """Return the bits of an address of IP and of that in the same place of ARP."""
    return (number >> shifts[0] | number >> shifts[1]) & 0xFFFFFFFF


def _measure_prefix(mask: int) -> int:
    """Return the length of a prefix of an address; 0 for another mask."""
    return mask.bit_count() if is_prefix(mask, 32) else 0


def _tell_ports(subtable: Subtable, header: int, ports: Sequence[tuple[int, int]]) -> int:
    """Return the bits of ports that tell a header from all rules of a mask."""
    fields = [(shift, bits) for shift, bits in ports if subtable.port_mask >> shift & ((1 << bits) - 1)]
    total = sum(bits for _, bits in fields)

    def join(number: int) -> int:
        joined = 0
        for shift, bits in fields:
            joined = joined << bits | number >> shift & ((1 << bits) - 1)
        return joined

    mask = join(subtable.port_mask)
    length = total - ((mask & -mask).bit_length() - 1)
    value = header & subtable.port_mask
    position = bisect_left(subtable.sorted_ports, value)
    near = subtable.sorted_ports[max(position - 1, 0) : position + 1]
    common = max(total - (join(value) ^ join(other)).bit_length() for other in near)
    told = min(common + 1, length)
    result = 0
    for shift, bits in fields:
        count = max(min(told, bits), 0)
        result |= (((1 << count) - 1) << (bits - count)) << shift
        told -= bits
    return result & subtable.port_mask


def _list_whole(rules: Sequence[Rule]) -> Iterator[int]:
    """Yield the numbers of conjunctions of which one rule of each clause matches, as they become whole."""
    met: dict[int, int] = {}
    for rule in rules:
        for clause in rule.clauses:
            bits = met.get(clause.number, 0)
            if bits >> clause.clause & 1:
                continue
            bits |= 1 << clause.clause
            met[clause.number] = bits
            if bits == (1 << clause.clauses) - 1:
                yield clause.number
