"""Packing by fit rules: machines of one shape at a time into groups of hosts with the same content.

Machines of a shape are alike, and so are hosts with the same content, so that a rule decides once for all
hosts of a group: a fleet of 20,000 hosts is some hundred groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal

import numpy as np

from planner.arrays import Bools
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import Amounts, Placing, fill_nodes, make_placing

Rule = Literal["best", "first", "spread"]
"""The host with least free, the first one that was opened, or the one with most free."""
Copy = tuple[int, Amounts, int]
"""A way in which machines are in a host: row of the shape, vCPUs in each node, first of its nodes."""
FREE_SHARE: Final = 1e-12


@dataclass(eq=False)
class HostGroup:
    """Hosts of one supply with the same content.

    supply   row of the supply
    hosts    number of the hosts
    content  machines on each host, by the way in which they are in it
    slots    slots on each host for machines that restart after a loss, likewise
    free_node, free_whole  free amounts of the nodes and of the host, by dimension
    name     of the only host; "" for hosts without names
    """

    supply: int
    hosts: int
    content: dict[Copy, int]
    free_node: list[list[float]]
    free_whole: list[float]
    slots: dict[Copy, int] = field(default_factory=dict)
    name: str = ""

    def split_off(self, hosts: int) -> HostGroup:
        """Return a group of some of the hosts, which leave this one."""
        self.hosts -= hosts
        return HostGroup(
            supply=self.supply,
            hosts=hosts,
            content=dict(self.content),
            free_node=[list(free) for free in self.free_node],
            free_whole=list(self.free_whole),
            slots=dict(self.slots),
            name=self.name,
        )

    def add(self, copy: Copy, placing: Placing, times: int = 1, *, is_slot: bool = False) -> None:
        """Add machines, or slots, to each host."""
        target = self.slots if is_slot else self.content
        target[copy] = target.get(copy, 0) + times
        placing.take(self.free_node, self.free_whole, times)

    def members(self, shape: int) -> int:
        """Return the machines of a shape on each host."""
        return sum(count for (row, _, _), count in self.content.items() if row == shape)


def copy_of(shape: int, placing: Placing) -> Copy:
    """Return the way in which a placing has a machine in a host."""
    first = next((index for index in range(len(placing.node)) if placing.vcpus[index] > 0), None)
    if first is None:
        first = next((index for index in range(len(placing.node)) if placing.is_in(index)), 0)
    return shape, placing.vcpus, first


def empty_group(problem: Consolidation, supply: int, hosts: int, reserve: float = 0.0) -> HostGroup:
    """Return a group of empty hosts of a supply, with a share of the capacity kept free."""
    shape = problem.host_shapes[problem.supplies[supply].host_type]
    share = np.ones(problem.dimensions)
    share[: 2 + len(problem.resources)] = 1.0 - reserve
    return HostGroup(
        supply=supply,
        hosts=hosts,
        content={},
        free_node=(shape.node * share).tolist(),
        free_whole=(shape.whole * share).tolist(),
    )


def regroup(problem: Consolidation, supply: int, hosts: int, content: Mapping[Copy, int]) -> HostGroup:
    """Return a group of hosts with some content; free amounts may be below 0."""
    group = empty_group(problem, supply, hosts)
    host_type = problem.supplies[supply].host_type
    for copy, times in content.items():
        group.add(copy, make_placing(problem, host_type, copy[0], copy[1], copy[2]), times)
    return group


def has_conflict(problem: Consolidation, group: HostGroup, shape: int) -> bool:
    """Return whether hosts have a machine or slot that must not be on the host of a machine of a shape."""
    if not problem.has_host_conflicts:
        return False
    conflicts = problem.host_conflicts[shape]
    return any(conflicts[row] for content in (group.content, group.slots) for row, _, _ in content)


class Packer:
    """Places machines, shape by shape, by a fit rule.

    groups   hosts in use, in the order in which they were opened
    refused  machines without a place, by the row of their shape
    """

    def __init__(
        self,
        problem: Consolidation,
        *,
        rule: Rule = "best",
        reserve: float = 0.0,
        groups: Iterable[HostGroup] = (),
        may_open: bool = True,
        excluded: frozenset[int] = frozenset(),
    ) -> None:
        """Begin with some groups, which change.

        reserve   share of each capacity that is kept free
        may_open  whether hosts that are not in use may be opened
        excluded  rows of supplies of which no host is opened
        """
        self.problem, self.rule, self.reserve, self.may_open = problem, rule, reserve, may_open
        self.groups: list[HostGroup] = list(groups)
        self.refused: dict[int, int] = {}
        self._excluded = excluded
        used = np.zeros(len(problem.supplies))
        for group in self.groups:
            used[group.supply] += group.hosts
        self._used = used
        self._members = [self._count_members(*item) for item in problem.area_members]
        self._copies: dict[tuple[int, int], int] = {}

    # --- shapes ---------------------------------------------------------------------------

    def place(self, shape: int, count: int) -> int:
        """Place machines of a shape; return the number of those without a place, which are refused."""
        remaining = count
        while remaining > 0:
            step = self._place_some(shape, remaining)
            if step == 0:
                break
            remaining -= step
        if remaining:
            self.refused[shape] = self.refused.get(shape, 0) + remaining
        return remaining

    def place_together(self, domain: str, shapes: Iterable[int]) -> None:
        """Place all machines of several shapes in one domain, or refuse them all."""
        problem = self.problem
        before = self._snapshot()
        for domain_name in self._domains(domain):
            if all(self._place_within(domain, domain_name, shape) for shape in shapes):
                return
            self._restore(before)
        for shape in shapes:
            self.refused[shape] = self.refused.get(shape, 0) + int(problem.count[shape])

    def _place_some(self, shape: int, remaining: int) -> int:
        """Place some machines of a shape by one decision; return their number, 0 where none has a place."""
        row = self._select(shape)
        if row is None:
            return self._open(shape, remaining) if self.may_open else 0
        return self._fill(row, shape, remaining)

    def _select(self, shape: int) -> int | None:
        """Return the group in which the rule places the next machine; None where it fits in none."""
        allowed = self.problem.is_supplied[shape]
        fitting = (
            row
            for row, group in enumerate(self.groups)
            if allowed[group.supply]
            and self.capacity_of_domains(group, shape) > 0
            and self.find_placing(group, shape) is not None
        )
        if self.rule == "first":
            return next(fitting, None)
        sign = 1.0 if self.rule == "best" else -1.0
        return min(fitting, key=lambda row: (sign * self.free_share(self.groups[row]), row), default=None)

    def _fill(self, row: int, shape: int, remaining: int, *, is_new: bool = False) -> int:
        """Place machines of a shape on hosts of a group, which may be new; return their number."""
        group = self.groups[row]
        allowed = min(remaining, self.capacity_of_domains(group, shape))
        trial = group.split_off(0)
        limit = 1 if self.rule == "spread" and not is_new else allowed
        copies = self._fill_host(trial, shape, limit)
        if not copies:
            return 0
        hosts = max(1, min(group.hosts, allowed // copies))
        filled = group.split_off(hosts)
        filled.content, filled.free_node, filled.free_whole = trial.content, trial.free_node, trial.free_whole
        if group.hosts:
            self.groups.insert(row, filled)
        else:
            self.groups[row] = filled
        self.note(filled, shape, copies * hosts)
        return copies * hosts

    def _fill_host(self, group: HostGroup, shape: int, limit: int) -> int:
        """Add up to a number of machines of a shape to each host of a group; return their number."""
        copies = 0
        while copies < limit:
            placing = self.find_placing(group, shape)
            if placing is None:
                break
            times = 1
            if placing.span == 1 and self.rule != "spread":
                times = max(1, min(limit - copies, self._times(group, placing)))
            group.add(copy_of(shape, placing), placing, times)
            copies += times
        return copies

    @staticmethod
    def _times(group: HostGroup, placing: Placing) -> int:
        """Return the number of times that a placing fits in each host of a group."""
        ratios = [
            (free + 1e-9 * (1 + amount)) / amount
            for amounts, available in zip(placing.node, group.free_node, strict=True)
            for amount, free in zip(amounts, available, strict=True)
            if amount > 0
        ]
        ratios += [
            (free + 1e-9 * (1 + amount)) / amount
            for amount, free in zip(placing.whole, group.free_whole, strict=True)
            if amount > 0
        ]
        return int(min(ratios, default=1_000_000))

    def find_placing(self, group: HostGroup, shape: int) -> Placing | None:
        """Return the way by which the rule puts a machine in a host of a group; None where it has none."""
        if has_conflict(self.problem, group, shape):
            return None
        host_type = self.problem.supplies[group.supply].host_type
        ways = self.problem.placings[host_type][shape]
        spans = groupby(reversed(ways) if self.rule == "spread" else ways, key=lambda way: way.span)
        for _, same_span in spans:
            fitting = [way for way in same_span if way.fits(group.free_node, group.free_whole)]
            if fitting:
                return self._nicest(group, fitting)
        if self.problem.split[shape] == "any":
            return fill_nodes(self.problem, host_type, shape, group.free_node, group.free_whole)
        return None

    def _nicest(self, group: HostGroup, ways: list[Placing]) -> Placing:
        """Return the way to nodes with least free threads, or with most where machines are spread."""
        if self.rule == "first" or len(ways) == 1:
            return ways[0]
        sign = -1.0 if self.rule == "spread" else 1.0

        def free_threads(way: Placing) -> float:
            return sum(group.free_node[index][0] for index, amount in enumerate(way.vcpus) if amount > 0)

        return min(ways, key=lambda way: sign * free_threads(way))

    def free_share(self, group: HostGroup) -> float:
        """Return the sum of the free shares of threads, memory and resources of a host."""
        shape = self.problem.host_shapes[self.problem.supplies[group.supply].host_type]
        total = 0.0
        for column in range(2 + len(self.problem.resources)):
            capacity = float(shape.node[:, column].sum())
            if np.isfinite(capacity):
                total += sum(free[column] for free in group.free_node) / max(capacity, FREE_SHARE)
            else:
                total += group.free_whole[column] / max(float(shape.whole[column]), FREE_SHARE)
        return total

    # --- new hosts ------------------------------------------------------------------------

    def _open(self, shape: int, remaining: int) -> int:
        """Open hosts for machines of a shape; return the number of those placed, 0 for none."""
        problem = self.problem
        options = []
        for row, supply in enumerate(problem.supplies):
            available = self.available(row)
            if not problem.is_supplied[shape, row] or available < 1:
                continue
            copies = self._copies_in_empty(row, shape)
            allowed = self.capacity_of_domains(empty_group(problem, row, 1, self.reserve), shape)
            if copies and allowed:
                price = float(problem.price[supply.host_type]) / copies
                in_zone = self.hosts_in_zone(supply.zone)
                in_rack = sum(
                    self._used[other]
                    for other, item in enumerate(problem.supplies)
                    if item.rack == supply.rack
                )
                options.append((price, in_zone, in_rack, row, copies, min(available, allowed)))
        if not options:
            return 0
        _, _, _, row, copies, available = min(options)
        needed = max(1, remaining // copies)
        equals = sum(option[0] == min(options)[0] for option in options)
        hosts = int(min(available, self._batch(row, shape, max(1, -(-needed // equals)))))
        self._used[row] += hosts
        self.groups.append(empty_group(problem, row, hosts, self.reserve))
        allowed = min(remaining, hosts * copies)
        return self._fill(len(self.groups) - 1, shape, allowed, is_new=True)

    def _batch(self, supply: int, shape: int, hosts: int) -> int:  # noqa: ARG002 - for other rules
        """Return the number of hosts that are opened together: each is filled before the next is opened."""
        return hosts

    def hosts_in_zone(self, zone: str) -> float:
        """Return the number of hosts in use in a zone."""
        return float(
            sum(self._used[row] for row, supply in enumerate(self.problem.supplies) if supply.zone == zone)
        )

    def open_host(self, supply: int) -> int:
        """Open an empty host of a supply; return the row of its group."""
        self._used[supply] += 1
        self.groups.append(empty_group(self.problem, supply, 1, self.reserve))
        return len(self.groups) - 1

    def available(self, supply: int) -> float:
        """Return the number of hosts of a supply that can still be opened."""
        problem = self.problem
        item = problem.supplies[supply]
        if supply in self._excluded:
            return 0.0
        of_type = sum(
            self._used[row] for row, other in enumerate(problem.supplies) if other.host_type == item.host_type
        )
        zone = problem.zone_names.index(item.zone) if item.zone in problem.zone_names else 0
        in_zone = self.hosts_in_zone(item.zone)
        return float(
            min(
                item.count - self._used[supply],
                float(problem.most[item.host_type]) - of_type,
                float(problem.zone_most[zone]) - in_zone,
            )
        )

    def _copies_in_empty(self, supply: int, shape: int) -> int:
        """Return the number of machines of a shape that fit in an empty host of a supply."""
        key = (supply, shape)
        if key not in self._copies:
            group = empty_group(self.problem, supply, 1, self.reserve)
            self._copies[key] = self._fill_host(group, shape, max(int(self.problem.count[shape]), 1))
        return self._copies[key]

    # --- domains --------------------------------------------------------------------------

    def _domain_of(self, group: HostGroup, domain: str) -> str:
        supply = self.problem.supplies[group.supply]
        return supply.zone if domain == "zone" else supply.rack

    def _count_members(self, domain: str, machines: Bools) -> dict[str, int]:
        """Return the machines of some shapes in each rack or zone."""
        members: dict[str, int] = {}
        for group in self.groups:
            name = self._domain_of(group, domain)
            here = sum(count for (shape, _, _), count in group.content.items() if machines[shape])
            members[name] = members.get(name, 0) + here * group.hosts
        return members

    def capacity_of_domains(self, group: HostGroup, shape: int) -> int:
        """Return the number of machines of a shape that limits of zones and racks allow in a group."""
        allowed = 1 << 60
        limits = self.problem.domain_limits
        for members, limit in zip(self._members, limits, strict=False):
            if limit.machines[shape]:
                present = members.get(self._domain_of(group, limit.domain), 0)
                allowed = min(allowed, int(limit.most) - present)
        for row, conflict in enumerate(self.problem.area_conflicts):
            sides = (conflict.machines, conflict.others)
            for side, opposite in ((0, 1), (1, 0)):
                members = self._members[len(limits) + 2 * row + opposite]
                if sides[side][shape] and members.get(self._domain_of(group, conflict.domain), 0):
                    return 0
        return max(allowed, 0)

    def note(self, group: HostGroup, shape: int, machines: int) -> None:
        """Count machines of a shape on hosts among the members of groups in zones and racks."""
        for members, (domain, its_machines) in zip(self._members, self.problem.area_members, strict=True):
            if its_machines[shape]:
                name = self._domain_of(group, domain)
                members[name] = members.get(name, 0) + machines

    # --- machines that are together -------------------------------------------------------

    def _domains(self, domain: str) -> list[str]:
        """Return the domains that are tried in turn: those in use, then new ones."""
        problem = self.problem
        if domain in ("zone", "rack"):
            return list(dict.fromkeys(getattr(supply, domain) for supply in problem.supplies))
        rows = [str(row) for row in range(len(self.groups))]
        return [*rows, *(f"new {row}" for row in range(len(problem.supplies)))]

    def _place_within(self, domain: str, name: str, shape: int) -> bool:
        """Place all machines of a shape in one zone, rack or host; return whether they fit."""
        count = int(self.problem.count[shape])
        if domain in ("zone", "rack"):
            return self._place_in_area(domain, name, shape, count)
        row = self._host_of_bundle(name)
        if row is None or not self.problem.is_supplied[shape, self.groups[row].supply]:
            return False
        group = self.groups[row]
        if self.capacity_of_domains(group, shape) < count:
            return False
        if domain == "node":
            return self._place_in_node(group, shape, count)
        fits = self._fill_host(group, shape, count) == count
        self.note(group, shape, count)
        return fits

    def _place_in_area(self, domain: str, name: str, shape: int, count: int) -> bool:
        inside = [group for group in self.groups if self._domain_of(group, domain) == name]
        outside = [group for group in self.groups if self._domain_of(group, domain) != name]
        others = frozenset(
            row
            for row, supply in enumerate(self.problem.supplies)
            if getattr(supply, domain) != name or row in self._excluded
        )
        packer = Packer(self.problem, rule=self.rule, reserve=self.reserve, groups=inside, excluded=others)
        packer._used = self._used
        packer._members = self._members
        missing = packer.place(shape, count)
        self.groups = [*outside, *packer.groups]
        return missing == 0

    def _host_of_bundle(self, name: str) -> int | None:
        """Return the row of the group with the only host for a bundle; None where there is none."""
        if name.startswith("new "):
            supply = int(name.removeprefix("new "))
            if not self.groups or self.groups[-1].name != f"bundle {name}":
                if self.available(supply) < 1:
                    return None
                self._used[supply] += 1
                group = empty_group(self.problem, supply, 1, self.reserve)
                group.name = f"bundle {name}"
                self.groups.append(group)
            return len(self.groups) - 1
        row = int(name)
        if self.groups[row].hosts > 1:
            self.groups.append(self.groups[row].split_off(self.groups[row].hosts - 1))
        return row

    def _place_in_node(self, group: HostGroup, shape: int, count: int) -> bool:
        host_type = self.problem.supplies[group.supply].host_type
        nodes = {copy[2] for copy in group.content if group.name.startswith("bundle")}
        for way in self.problem.placings[host_type][shape]:
            copy = copy_of(shape, way)
            fits = self._times(group, way) >= count and not has_conflict(self.problem, group, shape)
            if way.span == 1 and (not nodes or copy[2] in nodes) and fits:
                group.add(copy, way, count)
                self.note(group, shape, count)
                return True
        return False

    def _snapshot(self) -> tuple[list[HostGroup], np.ndarray, list[dict[str, int]]]:
        copies = [group.split_off(0) for group in self.groups]
        for copy, group in zip(copies, self.groups, strict=True):
            copy.hosts = group.hosts
        return copies, self._used.copy(), [dict(members) for members in self._members]

    def _restore(self, state: tuple[list[HostGroup], np.ndarray, list[dict[str, int]]]) -> None:
        groups, used, members = state
        self.groups = [group.split_off(0) for group in groups]
        for copy, group in zip(self.groups, groups, strict=True):
            copy.hosts = group.hosts
        self._used, self._members = used.copy(), [dict(item) for item in members]


def decreasing(problem: Consolidation) -> list[int]:
    """Return the shapes with machines, by their largest share of the largest host, largest first."""
    capacity = np.max(
        [np.minimum(shape.node.sum(axis=0), shape.whole) for shape in problem.host_shapes],
        axis=0,
    )
    columns = slice(0, 2 + len(problem.resources))
    size = (problem.needs[:, columns] / np.maximum(capacity[columns], 1e-300)).max(axis=1)
    order = sorted(range(len(size)), key=lambda row: (-float(size[row]), str(problem.machine_index[row])))
    return [row for row in order if problem.count[row] > 0]


def pack_all(problem: Consolidation, packer: Packer, order: Iterable[int]) -> Packer:
    """Place all machines of a problem, those that are together first; return the packer."""
    bundled: set[int] = set()
    for domain, shapes in problem.bundles:
        rows = [int(shape) for shape in shapes if int(shape) not in bundled]
        packer.place_together(domain, rows)
        bundled |= set(rows)
    for shape in order:
        if shape not in bundled:
            packer.place(shape, int(problem.count[shape]))
    return packer
