"""The present placement as groups of single hosts, and its violations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.consolidation.problem.packing import (
    HostGroup,
    Packer,
    copy_of,
    empty_group,
    has_conflict,
)
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of
from planner_models.consolidation.problem.shapes import Placing
from planner_models.networks.nodes import find_names


@dataclass(frozen=True, kw_only=True, eq=False)
class Today:
    """Present hosts with their machines.

    hosts     names of all present hosts
    machines  (hosts, M) machines of each shape that are there today
    groups    hosts that need not be emptied, each with the machines that fit there; in the order of the table
    homeless  (M,) machines that have no host today, or leave one that is drained or too full, or that rules
              do not allow
    displaced  (M,) those of them that have a host today
    """

    hosts: list[str]
    machines: Ints
    groups: list[HostGroup]
    homeless: Ints
    displaced: Ints

    @property
    def overfull(self) -> list[str]:
        """Names of hosts with more machines than fit."""
        by_name = {group.name: group for group in self.groups}
        names = []
        for row, name in enumerate(self.hosts):
            if name in by_name:
                placed = sum(by_name[name].content.values())
                if placed < int(self.machines[row].sum()):
                    names.append(name)
        return names


def count_machines(problem: Consolidation) -> tuple[list[str], Ints]:
    """Return the names of present hosts, and the machines of each shape on each, (hosts, M)."""
    if problem.present is None:
        return [], np.zeros((0, len(problem.machines)), dtype=np.int64)
    hosts = [str(name) for name in problem.present["host"]]
    amount = np.zeros((len(hosts), len(problem.machines)))
    if problem.now is not None and len(problem.now):
        position = {name: row for row, name in enumerate(hosts)}
        host = np.array([position[str(name)] for name in problem.now["host"]])
        shape = find_names(problem.machine_index, problem.now["machine"])
        np.add.at(amount, (host, shape), _machines_of_rows(problem, shape))
    return hosts, np.rint(amount).astype(np.int64)


def _machines_of_rows(problem: Consolidation, shape: Ints) -> Floats:
    """Return the machines of each row of `now`: by its vCPUs where they are known."""
    assert problem.now is not None
    number = problem.now["machines"].to_numpy(float)
    if "vcpus" not in problem.now:
        return number
    vcpus = problem.now["vcpus"].to_numpy(float)
    reserved = problem.vcpus[shape]
    by_vcpus = np.divide(vcpus, reserved, out=number.copy(), where=reserved > 0)
    return np.where(np.isnan(vcpus) | (reserved <= 0), number, by_vcpus)


def read_today(problem: Consolidation) -> Today:
    """Return the present placement; machines beyond the number of a shape are not there."""
    hosts, machines = count_machines(problem)
    nodes = _nodes_of_rows(problem)
    supply_of = {name: row for row, supply in enumerate(problem.supplies) for name in supply.names}
    remaining = problem.count.copy()
    ledger = Packer(problem)  # counts the members of groups in zones and racks
    groups = {name: empty_group(problem, supply_of[name], 1) for name in hosts if name in supply_of}
    is_fixed = problem.at_once <= 0
    for selected in (is_fixed, ~is_fixed):  # machines that may not move keep their place
        for row, name in enumerate(hosts):
            if name not in groups:
                continue
            packer = Packer(problem, groups=[groups[name]], may_open=False)
            shapes = np.flatnonzero((machines[row] > 0) & selected).tolist()
            for shape in sorted(shapes, key=lambda shape: -float(problem.vcpus[shape])):
                number = min(int(machines[row, shape]), int(remaining[shape]))
                number = min(number, ledger.capacity_of_domains(groups[name], shape))
                placed = _place(problem, packer, shape, number, nodes.get((name, shape), {}))
                ledger.note(groups[name], shape, placed)
                remaining[shape] -= placed
    for name, group in groups.items():
        group.name = name
    present = np.minimum(machines.sum(axis=0), problem.count)
    return Today(
        hosts=hosts,
        machines=machines,
        groups=list(groups.values()),
        homeless=remaining,
        displaced=np.maximum(present - (problem.count - remaining), 0),
    )


def _nodes_of_rows(problem: Consolidation) -> dict[tuple[str, int], dict[str, float]]:
    """Return the vCPUs of each shape in each named node of each host today."""
    result: dict[tuple[str, int], dict[str, float]] = {}
    if problem.now is None or "node" not in problem.now or "vcpus" not in problem.now:
        return result
    shape = find_names(problem.machine_index, problem.now["machine"])
    for row, item in enumerate(rows_of(problem.now)):
        if item.node and not np.isnan(item.vcpus):
            nodes = result.setdefault((str(item.host), int(shape[row])), {})
            nodes[str(item.node)] = nodes.get(str(item.node), 0.0) + float(item.vcpus)
    return result


def _place(problem: Consolidation, packer: Packer, shape: int, count: int, nodes: dict[str, float]) -> int:
    """Place machines on the only host of a packer, in their nodes where known; return their number."""
    group = packer.groups[0]
    host_type = problem.supplies[group.supply].host_type
    names = problem.node_names(host_type)
    placed = 0
    if nodes and problem.vcpus[shape] > 0 and not has_conflict(problem, group, shape):
        for way in problem.placings[host_type][shape]:
            in_nodes = {names[node]: vcpus for node, vcpus in enumerate(way.vcpus) if vcpus > 0}
            while placed < count and _has(nodes, in_nodes) and way.fits(group.free_node, group.free_whole):
                _add(group, shape, way)
                for name, vcpus in in_nodes.items():
                    nodes[name] -= vcpus
                placed += 1
    while placed < count:
        choice = packer.find_placing(group, shape)
        if choice is None:
            break
        _add(group, shape, choice)
        placed += 1
    return placed


def _has(nodes: dict[str, float], wanted_vcpus: dict[str, float]) -> bool:
    return all(nodes.get(name, 0.0) >= vcpus - 1e-9 for name, vcpus in wanted_vcpus.items())


def _add(group: HostGroup, shape: int, way: Placing) -> None:
    group.add(copy_of(shape, way), way)
