"""Shapes of hosts and the ways in which one machine can be in their nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, Protocol

import numpy as np

from planner.arrays import Bools, Floats

EXACT: Final = 1e-9
"""Relative difference that is rounding, where amounts are added."""
MAX_NODES_OF_SPLIT: Final = 8
"""Nodes of a host up to which all subsets are tried for machines that are split evenly."""
Amounts = tuple[float, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class HostShape:
    """Capacities of a type of host; inf for dimensions without a limit there.

    node   (N, D) of each node
    whole  (D,) of the whole host
    threads_per_core  hardware threads of a core
    """

    node: Floats
    whole: Floats
    threads_per_core: float

    def threads_of(self, vcpus: float, *, whole_cores: bool) -> float:
        """Return the threads that vCPUs in one node take."""
        if not whole_cores:
            return vcpus
        return math.ceil(vcpus / self.threads_per_core - EXACT) * self.threads_per_core


@dataclass(frozen=True, kw_only=True)
class Placing:
    """One way in which a machine is in the nodes of a host.

    vcpus  of it in each node
    node   amounts that it takes of each node, by dimension
    whole  amounts that it takes of the whole host
    """

    vcpus: Amounts
    node: tuple[Amounts, ...]
    whole: Amounts

    @property
    def span(self) -> int:
        """Number of its nodes."""
        return sum(amount > 0 for amount in self.vcpus) or 1

    @cached_property
    def nodes(self) -> list[int]:
        """Nodes of which the machine takes anything."""
        return [index for index, amounts in enumerate(self.node) if any(amounts)]

    def fits(self, free_node: list[list[float]], free_whole: list[float]) -> bool:
        """Return whether free amounts of nodes and of the host suffice."""
        for index in self.nodes:
            for amount, available in zip(self.node[index], free_node[index], strict=True):
                if amount > available + EXACT * (1.0 + amount):
                    return False
        return all(
            amount <= available + EXACT * (1.0 + amount)
            for amount, available in zip(self.whole, free_whole, strict=True)
        )

    def is_in(self, node: int) -> bool:
        """Return whether the machine takes anything of a node."""
        return any(self.node[node])

    def take(self, free_node: list[list[float]], free_whole: list[float], times: int = 1) -> None:
        """Subtract the amounts of some machines from free amounts."""
        for amounts, free in zip(self.node, free_node, strict=True):
            for column, amount in enumerate(amounts):
                if amount:
                    free[column] -= times * amount
        for column, amount in enumerate(self.whole):
            free_whole[column] -= times * amount


class PlacedMachines(Protocol):
    """Attributes of a problem that placings of its M shapes of machines depend on."""

    @property
    def host_shapes(self) -> list[HostShape]:
        """Capacities of each type of host."""

    @property
    def needs(self) -> Floats:
        """(M, D) amount of each dimension that a machine takes."""

    @property
    def rule_columns(self) -> slice:
        """Dimensions of rules, of which a split machine takes its amount in each of its nodes."""

    @property
    def vcpus(self) -> Floats:
        """(M,) vCPUs that are reserved for each machine."""

    @property
    def client(self) -> Floats:
        """(M,) vCPUs that are in one node together."""

    @property
    def split(self) -> list[str]:
        """(M) whether a shape can be in several nodes: never, even or any."""

    @property
    def has_whole_cores(self) -> Bools:
        """(M,) whether a machine shares no core with another one."""


def make_placing(
    problem: PlacedMachines, host_type: int, shape: int, vcpus: Amounts, node: int | None = None
) -> Placing:
    """Return the placing of a machine with some vCPUs in each node.

    node  of a machine without vCPUs, which is in this node
    """
    host = problem.host_shapes[host_type]
    total = sum(vcpus)
    needs = problem.needs[shape]
    whole_cores = bool(problem.has_whole_cores[shape])
    rules = problem.rule_columns
    by_node: list[Amounts] = []
    threads = 0.0
    nothing = (0.0,) * len(needs)
    for index, amount in enumerate(vcpus):
        if not amount and (total > 0 or index != node):
            by_node.append(nothing)
            continue
        share = amount / total if total > 0 else float(index == node)
        taken = needs * share
        taken[0] = host.threads_of(amount, whole_cores=whole_cores)
        threads += taken[0]
        if share > 0:
            taken[rules] = needs[rules]
        by_node.append(tuple(np.where(np.isfinite(host.node[index]), taken, 0.0).tolist()))
    of_host = needs.copy()
    of_host[0] = threads
    return Placing(
        vcpus=vcpus,
        node=tuple(by_node),
        whole=tuple(np.where(np.isfinite(host.whole), of_host, 0.0).tolist()),
    )


def list_placings(problem: PlacedMachines, host_type: int, shape: int) -> list[Placing]:
    """Return the placings of one machine with its reserved vCPUs that fit in an empty host of a type.

    They are in one node first, then in two, and so on. Machines that can be split in any way have those of an
    even split, and one that fills nodes in their order.
    """
    host = problem.host_shapes[host_type]
    nodes, vcpus = len(host.node), float(problem.vcpus[shape])
    split = problem.split[shape]
    free = host.node.tolist(), host.whole.tolist()
    result = []
    for span in _list_spans(problem, shape, nodes):
        for selected in combinations(range(nodes), span):
            amounts = tuple(vcpus / span if index in selected else 0.0 for index in range(nodes))
            placing = make_placing(problem, host_type, shape, amounts, selected[0])
            if placing.fits(*free):
                result.append(placing)
    if split == "any" and not result:
        filled = fill_nodes(problem, host_type, shape, *free)
        result += [filled] if filled is not None else []
    return result


def _list_spans(problem: PlacedMachines, shape: int, nodes: int) -> list[int]:
    """Return the numbers of nodes over which a machine can be split evenly, one first."""
    vcpus, client = float(problem.vcpus[shape]), float(problem.client[shape])
    if problem.split[shape] == "never" or vcpus <= 0 or nodes > MAX_NODES_OF_SPLIT:
        return [1]
    return [1, *(span for span in range(2, nodes + 1) if _is_multiple(vcpus / span, client))]


def _is_multiple(amount: float, client: float) -> bool:
    ratio = amount / client
    return abs(ratio - round(ratio)) <= 1e-6


def fill_nodes(
    problem: PlacedMachines,
    host_type: int,
    shape: int,
    free_node: list[list[float]],
    free_whole: list[float],
) -> Placing | None:
    """Return the placing that fills nodes with clients of a machine, the node with most threads first.

    None where it does not fit in this way
    """
    client, vcpus = float(problem.client[shape]), float(problem.vcpus[shape])
    count = round(vcpus / client)
    if count < 1:
        return None
    unit = make_placing(problem, host_type, shape, (vcpus, *[0.0] * (len(free_node) - 1)), 0).node[0]
    per_client = [amount / count for amount in unit]
    remaining, amounts = count, [0.0] * len(free_node)
    for index in sorted(range(len(free_node)), key=lambda row: -free_node[row][0]):
        limits = [
            (available + EXACT) / amount
            for amount, available in zip(per_client, free_node[index], strict=True)
            if amount > 0
        ]
        taken = max(0, min(remaining, int(min(limits, default=remaining))))
        amounts[index] = taken * client
        remaining -= taken
    placing = make_placing(problem, host_type, shape, tuple(amounts))
    return placing if remaining == 0 and placing.fits(free_node, free_whole) else None
