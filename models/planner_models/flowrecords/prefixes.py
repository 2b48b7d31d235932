"""Addresses to nodes: the longest prefix that has an address, by binary search over disjoint intervals."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.compiled import kernel, run_small_in_python
from planner.contract.tables import file_name, row_name, shorten_faults
from planner.errors import InputError, did_you_mean
from planner_models.flowrecords.records import MAPPED_LOW, address_halves

Match = Literal["longest", "most_general"]
NO_NODE: Final = -1
BITS: Final = 128
MAPPED: Final = MAPPED_LOW, MAPPED_LOW | 0xFFFFFFFF
"""First and last of the IPv4 addresses among all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixMap:
    """Intervals of addresses, each of one node.

    begin_high, begin_low  (I,) halves of the first address of each, ascending; the first is address 0
    node   (I,) row of `nodes`, or NO_NODE
    """

    begin_high: Ints
    begin_low: Ints
    node: Ints
    nodes: tuple[str, ...]

    def find(self, high: Ints, low: Ints) -> Ints:
        """Return the node of each address, NO_NODE for those without a prefix, shape (R,)."""
        nodes = np.empty(len(high), dtype=np.int64)
        search_intervals(
            self.begin_high,
            self.begin_low,
            self.node,
            np.ascontiguousarray(high),
            np.ascontiguousarray(low),
            nodes,
        )
        return nodes


@run_small_in_python(max_elements=20_000)
@kernel
def search_intervals(
    begin_high: Ints, begin_low: Ints, node: Ints, high: Ints, low: Ints, nodes: Ints
) -> None:
    """Find the node of the interval of each address; nodes (R,) is the result."""
    for row in range(len(high)):
        lower, upper = 0, len(begin_high)
        while upper - lower > 1:
            middle = (lower + upper) // 2
            is_after = begin_high[middle] > high[row] or (
                begin_high[middle] == high[row] and begin_low[middle] > low[row]
            )
            if is_after:
                upper = middle
            else:
                lower = middle
        nodes[row] = node[lower]


def make_prefix_map(
    prefixes: pd.DataFrame, *, match: Match = "longest", names: Sequence[str] | None = None
) -> PrefixMap:
    """Return the intervals of a table of prefixes.

    match   which of several prefixes of an address counts
    names   the nodes that there are; None for any

    raises  InputError for texts that are no prefixes, bits behind a prefix, unknown nodes, and one prefix of
            two nodes
    """
    node_of = _read_prefixes(prefixes, names)
    nodes = tuple(names) if names is not None else tuple(sorted(set(node_of.values())))
    index = {name: code for code, name in enumerate(nodes)}
    intervals = [(first, last, index[node]) for (first, last), node in node_of.items()]
    begins = _disjoint(intervals, match)
    halves = np.array([address_halves(begin) for begin, _ in begins], dtype=np.int64)
    return PrefixMap(
        begin_high=np.ascontiguousarray(halves[:, 0]),
        begin_low=np.ascontiguousarray(halves[:, 1]),
        node=np.array([node for _, node in begins], dtype=np.int64),
        nodes=nodes,
    )


def _read_prefixes(prefixes: pd.DataFrame, names: Sequence[str] | None) -> dict[tuple[int, int], str]:
    """Return the node of each prefix by its first and last address; raise InputError with every error."""
    faults: list[str] = []
    ranges: dict[tuple[int, int], tuple[int, str]] = {}
    valid = None if names is None else set(names)
    columns = zip(prefixes["prefix"].astype(str), prefixes["node"].astype(str), strict=True)
    for row, (text, node) in enumerate(columns):
        where = row_name(prefixes, "prefixes", row)
        try:
            limits = parse_prefix(text)
        except ValueError as error:
            faults.append(f"{where}: prefix is '{text[:60]}', {error}")
            continue
        if valid is not None and node not in valid:
            near = did_you_mean(node, valid) if len(faults) < 3 else ""
            faults.append(f"{where}: node '{node}' is no node of the network{near}")
        other = ranges.setdefault(limits, (row, node))
        if other[1] != node:
            first = row_name(prefixes, "prefixes", other[0])
            faults.append(f"{where}: prefix {text} is of node '{node}', and of '{other[1]}' in {first}")
    if faults:
        raise InputError(*shorten_faults(faults, file_name(prefixes, "prefixes"), "with faults"))
    return {limits: node for limits, (_, node) in ranges.items()}


def parse_prefix(text: str) -> tuple[int, int]:
    """Return the first and last address of a prefix; raise ValueError with the rule that it breaks."""
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValueError("must be an IPv4 or IPv6 prefix, such as 10.1.0.0/16") from None
    address = text.strip().partition("/")[0]
    if ipaddress.ip_address(address) != network.network_address:
        raise ValueError(f"has bits behind its length; {network} has none")
    first, last = int(network.network_address), int(network.broadcast_address)
    return (first + MAPPED_LOW, last + MAPPED_LOW) if network.version == 4 else (first, last)


def _disjoint(intervals: Sequence[tuple[int, int, int]], match: Match) -> list[tuple[int, int]]:
    """Return the first address and node of disjoint intervals, from address 0 on, of nested ones.

    IPv4 addresses are in no IPv6 prefix, though they are among those of ::/0.
    """
    barrier = [] if any(limits[:2] == MAPPED for limits in intervals) else [(*MAPPED, NO_NODE)]
    ordered = sorted([*intervals, *barrier], key=lambda limits: (limits[0], -limits[1]))
    begins: list[tuple[int, int]] = [(0, NO_NODE)]
    open_: list[tuple[int, int]] = []

    def begin(address: int, node: int) -> None:
        if begins[-1][0] == address:
            begins[-1] = (address, node)
        elif begins[-1][1] != node:
            begins.append((address, node))

    def close(until: int) -> None:
        while open_ and open_[-1][0] < until:
            last, _ = open_.pop()
            begin(last + 1, open_[-1][1] if open_ else NO_NODE)

    for first, last, node in ordered:
        close(first)
        if match == "most_general" and open_ and open_[-1][1] != NO_NODE:
            node = open_[-1][1]
        begin(first, node)
        open_.append((last, node))
    close(1 << BITS)
    return [pair for pair in begins if pair[0] < 1 << BITS]
