"""Rows of a plan as arrays: amounts that are taken of each node and host, by code that designs do not use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.errors import PlanRejected
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.problem.packing import Copy, HostGroup, regroup
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.networks.nodes import find_names


@dataclass(frozen=True, kw_only=True, eq=False)
class Copies:
    """Rows of `placement` or `slots`.

    host     (R,) row of the fleet
    shape    (R,) row of the shape
    node     (R,) node within the host
    vcpus, memory_gb  (R,) of one machine in the node
    times    (R,) machines, or slots, on each host
    copy     (R,) number of the way, from 0, over the whole table
    """

    host: Ints
    shape: Ints
    node: Ints
    vcpus: Floats
    memory_gb: Floats
    times: Floats
    copy: Ints

    @cached_property
    def first(self) -> Ints:
        """(ways) the first row of each way."""
        _, first = np.unique(self.copy, return_index=True)
        return first

    @cached_property
    def total_vcpus(self) -> Floats:
        """(ways) vCPUs of one machine in all nodes."""
        total = np.bincount(self.copy, self.vcpus, minlength=len(self.first))
        return np.asarray(total, dtype=np.float64)

    @cached_property
    def span(self) -> Ints:
        """(ways) nodes of one machine."""
        return np.bincount(self.copy, minlength=len(self.first))


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """A plan as arrays.

    host_type  (F,) type of each row of the fleet
    hosts      (F,) hosts of each row
    zone, rack (F) their names
    machines, slots  rows of the placement, and of the slots
    refused    (M,) machines without a host
    """

    problem: Consolidation
    names: pd.Index
    host_type: Ints
    hosts: Floats
    zone: list[str]
    rack: list[str]
    machines: Copies
    slots: Copies
    refused: Floats

    @cached_property
    def placed(self) -> Floats:
        """(M,) machines of each shape that are placed."""
        return self._by_shape(self.machines)

    def _by_shape(self, copies: Copies) -> Floats:
        row = copies.first
        number = copies.times[row] * self.hosts[copies.host[row]]
        length = len(self.problem.machines)
        return np.asarray(np.bincount(copies.shape[row], number, minlength=length), dtype=np.float64)

    def per_host(self, copies: Copies) -> Floats:
        """Return the machines, or slots, of each shape on each host, (F, M)."""
        amount = np.zeros((len(self.hosts), len(self.problem.machines)))
        row = copies.first
        np.add.at(amount, (copies.host[row], copies.shape[row]), copies.times[row])
        return amount

    @cached_property
    def node_use(self) -> Floats:
        """(F, N, D) amounts that machines and slots take of each node."""
        nodes = max((len(shape.node) for shape in self.problem.host_shapes), default=1)
        use = np.zeros((len(self.hosts), nodes, self.problem.dimensions))
        for copies in (self.machines, self.slots):
            np.add.at(use, (copies.host, copies.node), self._amounts(copies) * copies.times[:, None])
        return use

    @cached_property
    def host_use(self) -> Floats:
        """(F, D) amounts that machines and slots take of each host; members of rules count once."""
        use: Floats = self.node_use.sum(axis=1)
        rules = self.problem.rule_columns
        use[:, rules] = 0.0
        for copies in (self.machines, self.slots):
            row = copies.first
            number = self.problem.needs[copies.shape[row], rules] * copies.times[row][:, None]
            np.add.at(use[:, rules], copies.host[row], number)
        return use

    def _amounts(self, copies: Copies) -> Floats:
        """Return the amounts of one machine in the node of each row, (R, D)."""
        problem = self.problem
        total = copies.total_vcpus[copies.copy]
        share = np.divide(copies.vcpus, total, out=np.ones(len(total)), where=total > 0)
        amounts = problem.needs[copies.shape] * share[:, None]
        per_core = problem.threads_per_core[self.host_type[copies.host]]
        rounded = np.ceil(copies.vcpus / per_core - 1e-9) * per_core
        amounts[:, 0] = np.where(problem.has_whole_cores[copies.shape], rounded, copies.vcpus)
        amounts[:, 1] = copies.memory_gb
        amounts[:, problem.rule_columns] = problem.needs[copies.shape, problem.rule_columns]
        return amounts

    @cached_property
    def throughput(self) -> Floats:
        """(ways of machines) throughput of one machine: k^a (1 - g (span - 1)), from 0."""
        copies = self.machines
        host_type = self.host_type[copies.host[copies.first]]
        loss = 1 - self.problem.span_loss[host_type] * (copies.span - 1)
        return np.asarray(
            np.power(copies.total_vcpus, self.problem.scaling[host_type]) * np.maximum(loss, 0.0)
        )

    @cached_property
    def weighted(self) -> Floats:
        """(ways of machines) throughput over weight."""
        return np.asarray(self.throughput / self.problem.weight[self.machines.shape[self.machines.first]])

    def groups(self) -> list[HostGroup]:
        """Return the hosts as groups with their content, and slots as taken."""
        supplies = {
            (supply.host_type, supply.zone, supply.rack): row
            for row, supply in reversed(list(enumerate(self.problem.supplies)))
        }
        content = [self._content(self.machines), self._content(self.slots)]
        result = []
        for row, host_type in enumerate(self.host_type.tolist()):
            supply = supplies.get((host_type, self.zone[row], self.rack[row]), 0)
            machines, slots = (by_host.get(row, {}) for by_host in content)
            taken = dict(machines)
            for copy, times in slots.items():
                taken[copy] = taken.get(copy, 0) + times
            group = regroup(self.problem, supply, int(self.hosts[row]), taken)
            group.content, group.slots, group.name = machines, slots, str(self.names[row])
            result.append(group)
        return result

    def _content(self, copies: Copies) -> dict[int, dict[Copy, int]]:
        """Return the machines of each host by the way in which they are in it."""
        content: dict[int, dict[Copy, int]] = {}
        order = np.argsort(copies.copy, kind="stable")
        starts = np.flatnonzero(np.diff(copies.copy[order], prepend=-1))
        for rows in np.split(order, starts[1:]) if len(order) else []:
            host, shape = int(copies.host[rows[0]]), int(copies.shape[rows[0]])
            vcpus = [0.0] * len(self.problem.node_rows[int(self.host_type[host])])
            for row in rows.tolist():
                vcpus[int(copies.node[row])] += float(copies.vcpus[row])
            copy = (shape, tuple(vcpus), int(copies.node[rows].min()))
            by_copy = content.setdefault(host, {})
            by_copy[copy] = by_copy.get(copy, 0) + int(copies.times[rows[0]])
        return content


def read_plan(problem: Consolidation, plan: ConsolidationPlan) -> Reading:
    """Return a plan as arrays; raises PlanRejected where a row names something that is not there."""
    fleet = plan.fleet
    host_type = _find(problem.type_index, fleet, "fleet", "host_type", "host type")
    names: pd.Index = pd.Index(fleet["host"].astype(str))
    refused = np.zeros(len(problem.machines))
    if plan.refused is not None:
        row = _find(problem.machine_index, plan.refused, "refused", "machine", "machine")
        np.add.at(refused, row, plan.refused["machines"].to_numpy(float))
    slots = plan.slots if plan.slots is not None else plan.placement.head(0).assign(slots=0.0)
    return Reading(
        problem=problem,
        names=names,
        host_type=host_type,
        hosts=fleet["hosts"].to_numpy(float),
        zone=fleet["zone"].astype(str).tolist() if "zone" in fleet else [""] * len(fleet),
        rack=fleet["rack"].astype(str).tolist() if "rack" in fleet else [""] * len(fleet),
        machines=_read_copies(problem, plan.placement, "placement", "machines", names, host_type),
        slots=_read_copies(problem, slots, "slots", "slots", names, host_type),
        refused=refused,
    )


def _find(index: pd.Index, frame: pd.DataFrame, table: str, column: str, noun: str) -> Ints:
    """Return the rows of names in an index; raise PlanRejected for the first that is not in it."""
    rows = find_names(index, frame[column])
    for row in np.flatnonzero(rows < 0)[:1].tolist():
        raise PlanRejected(f"{table} row {row + 1}: '{frame[column].iloc[row]}' is no {noun}")
    return rows


def _read_copies(
    problem: Consolidation, frame: pd.DataFrame, table: str, count: str, names: pd.Index, host_type: Ints
) -> Copies:
    host = _find(names, frame, table, "host", "host of the fleet")
    shape = _find(problem.machine_index, frame, table, "machine", "machine")
    offsets = [
        {name: row for row, name in enumerate(problem.node_names(kind))} for kind in range(len(problem.hosts))
    ]
    node = np.array(
        [
            offsets[kind].get(str(name), -1)
            for kind, name in zip(host_type[host].tolist(), frame["node"], strict=True)
        ],
        dtype=np.int64,
    )
    for row in np.flatnonzero(node < 0)[:1].tolist():
        raise PlanRejected(
            f"{table} row {row + 1}: '{frame['node'].iloc[row]}' is no node of host "
            f"'{frame['host'].iloc[row]}'"
        )
    keys = pd.MultiIndex.from_arrays([host, shape, frame["copy"].to_numpy(float)])
    copy, _ = pd.factorize(keys)
    times = frame[count].to_numpy(float)
    first = np.full(int(copy.max(initial=-1)) + 1, np.nan)
    first[copy[::-1]] = times[::-1]
    for row in np.flatnonzero(first[copy] != times)[:1].tolist():
        raise PlanRejected(
            f"{table} row {row + 1}: {count} is {times[row]:g}, but {first[copy[row]]:g} in another node of "
            "the same machines"
        )
    return Copies(
        host=host,
        shape=shape,
        node=node,
        vcpus=frame["vcpus"].to_numpy(float),
        memory_gb=frame["memory_gb"].to_numpy(float),
        times=times,
        copy=copy.astype(np.int64),
    )
