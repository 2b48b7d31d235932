"""Multicast problems from plain sets of members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pandas as pd

from planner.errors import InputError
from planner_models.multicast.problem.problem import Multicast, list_hosts
from planner_models.multicast.problem.topology import Kind

MOST_PORTS: Final = 64


def from_sets(
    sets: Sequence[Iterable[str | int]] | Mapping[str, Iterable[str | int]],
    *,
    rates_mbps: float | Sequence[float] | Mapping[str, float] = 1.0,
    k: int | None = None,
    kind: Kind = "ab",
    aggregation_copies: int = 1,
    table_size: int = 100,
) -> Multicast:
    """Return the problem of groups, given by their members, on a fat tree.

    sets                members of each group: a list, whose groups are g0, g1, ..., or {group: members}.
                        Members are names of hosts, which take the ports in the order in which they
                        appear, rack by rack; or numbers of ports from 0, with hosts h0, h1, ...
    rates_mbps          rate of every group, or of each one, Mbit/s; default: 1
    k                   ports of each switch, even; default: the smallest fat tree with a port for every host
    kind                connection of pods to cores: "ab", "standard" or "portland"; default: "ab"
    aggregation_copies  aggregation switches of a pod that hold each partition, ra; default: 1
    table_size          free entries of every switch; default: 100

    raises  InputError with every fault
    """
    named = (
        {str(name): list(members) for name, members in sets.items()}
        if isinstance(sets, Mapping)
        else {f"g{count}": list(members) for count, members in enumerate(sets)}
    )
    members = [member for group in named.values() for member in group]
    has_numbers = _has_numbers(members)
    k, hosts = _place_hosts(members, has_numbers, k)
    host = (lambda member: f"h{member}") if has_numbers else str
    rows = [
        (group, host(member))
        for group, member_names in named.items()
        for member in dict.fromkeys(member_names)
    ]
    half = k // 2
    fabric = {
        "kind": kind,
        "k": k,
        "partitions": max(1, (half // aggregation_copies) ** 2),
        "core_copies": aggregation_copies**2,
        "aggregation_copies": aggregation_copies,
        "core_entries": table_size,
        "aggregation_entries": table_size,
        "edge_entries": table_size,
    }
    return Multicast.from_tables(
        {
            "fabric": pd.DataFrame([fabric]),
            "hosts": hosts,
            "groups": pd.DataFrame({"group": list(named), "rate_mbps": _rates(rates_mbps, list(named))}),
            "members": pd.DataFrame(rows, columns=["group", "host"]),
        }
    )


def _has_numbers(members: Sequence[str | int]) -> bool:
    """Return whether members are numbers of ports; raise InputError where only some are."""
    numbered = [isinstance(member, int) for member in members]
    if any(numbered) and not all(numbered):
        raise InputError("sets: some members are names and some numbers, must be one of both")
    return all(numbered)


def _place_hosts(members: Sequence[str | int], has_numbers: bool, k: int | None) -> tuple[int, pd.DataFrame]:
    """Return the ports of each switch, by default of the smallest fat tree that is enough, and the hosts."""
    ports = max((int(member) for member in members), default=0) + 1 if has_numbers else len(set(members))
    if k is None:
        k = next((even for even in range(4, MOST_PORTS + 1, 2) if even**3 // 4 >= ports), MOST_PORTS)
    hosts = list_hosts(k)
    if ports > len(hosts):
        raise InputError(
            f"sets: {ports:,} hosts need more than the {len(hosts):,} ports of a fat tree with k {k}"
        )
    if has_numbers:
        return k, hosts
    names = list(dict.fromkeys(str(member) for member in members))
    return k, hosts.iloc[: len(names)].assign(host=names)


def _rates(rates: float | Sequence[float] | Mapping[str, float], groups: Sequence[str]) -> list[float]:
    """Return the rate of each group; raise InputError where one has none."""
    if isinstance(rates, int | float):
        return [float(rates)] * len(groups)
    if isinstance(rates, Mapping):
        missing = [group for group in groups if group not in rates]
        if missing:
            raise InputError(f"rates_mbps: group {missing[0]} has no rate")
        return [float(rates[group]) for group in groups]
    if len(rates) != len(groups):
        raise InputError(
            f"rates_mbps: has {len(rates)} rates, must have one for each of {len(groups)} groups"
        )
    return [float(rate) for rate in rates]
