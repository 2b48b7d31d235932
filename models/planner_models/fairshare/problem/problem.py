"""Problem of system `fairshare`: nodes of a partitioned store, and the tenants that share it.

Faults of a problem of system `fairshare` that involve several rows or tables, one line each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.notes import add_note
from planner.contract.tables import (
    SHOWN_ROWS,
    collect_tables,
    file_name,
    report_unknown_names,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError, did_you_mean
from planner.formatting import amount, few
from planner.io.in_memory import take_tables
from planner_models.fairshare.problem.schema import (
    ANY,
    COST,
    MOST_EVENTS,
    MOST_GROUPS,
    MOST_NODES,
    MOST_PAIRS,
    MOST_PARTITIONS,
    MOST_PLACES,
    MOST_REPLICAS,
    MOST_TENANTS,
    OPTIONAL_TABLES,
    READS,
    REQUESTS,
    TABLES,
    WRITES,
)
from planner_models.fairshare.problem.tables import StoreTables

if TYPE_CHECKING:
    from planner.arrays import Bools

MOST_NAMES: Final = 5
STATED_BY: Final = {
    REQUESTS: "rate_kops of nodes",
    READS: "read_kops of nodes",
    WRITES: "write_kops of nodes",
    COST: "write_cost of tenants",
}
"""Columns that state resources, by the resource."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedStore(StoreTables):
    """Nodes of a store, tenants, and their partitions with the requests for them.

    nodes       node, rate_kops, memory_gb, domain?, read_kops?, write_kops?, failed
    tenants     tenant, weight, mix, replicas, most_nodes?, group?, reserved_kops?, limit_kops?, write_share?,
                write_cost?
    partitions  tenant, partition, demand_kops, size_gb
    groups      group, parent?, weight; None: tenants share the store by their own weights alone
    resources   node, resource, capacity; None: requests are the only resource
    uses        tenant, resource, per_op
    placed      tenant, partition, node; None: nothing is placed yet
    pinned      tenant, partition, node
    forbidden   tenant, partition, node
    events      at_s, tenant, partition, demand_kops: changes of demand in a simulation

    Below, N nodes, T tenants, P partitions and R resources, of which the first one is requests; arrays refer
    to them by row.

    raises   InputError with every fault
    """

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += find_faults(self)
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> SharedStore:
        """Return the problem in its tables."""
        return cls(**take_tables(TABLES, tables, optional=OPTIONAL_TABLES))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of tenants, partitions, replicas and nodes."""
        return {
            "tenants": len(self.tenants),
            "partitions": len(self.partitions),
            "replicas": int(self.wanted_replicas.sum()),
            "nodes": len(self.nodes),
        }

    def with_demand(self, demand_kops: Floats) -> SharedStore:
        """Return the problem with other demands of the partitions, (P,)."""
        return replace(self, partitions=self.partitions.assign(demand_kops=demand_kops))

    def with_nodes(self, **columns: Any) -> SharedStore:
        """Return the problem with other columns of `nodes`."""
        return replace(self, nodes=self.nodes.assign(**columns))

    def with_tenants(self, **columns: Any) -> SharedStore:
        """Return the problem with other columns of `tenants`."""
        return replace(self, tenants=self.tenants.assign(**columns))

    def with_placed(self, placed: pd.DataFrame) -> SharedStore:
        """Return the problem with other present places of replicas."""
        return replace(self, placed=placed)

    def with_events(self, events: pd.DataFrame) -> SharedStore:
        """Return the problem with changes of demand in a simulation."""
        return replace(self, events=events)

    def with_groups(self, **columns: Any) -> SharedStore:
        """Return the problem with other columns of `groups`."""
        return self if self.groups is None else replace(self, groups=self.groups.assign(**columns))


def find_faults(problem: StoreTables) -> list[str]:
    """Return every error of tables with rows that are valid by themselves."""
    faults = list(_find_sizes(problem)) or list(_find_unknown(problem))
    if not faults:
        faults += [*_find_tenants(problem), *_find_partitions(problem), *_find_rules(problem)]
        faults += [*_find_limits(problem), *_find_circles(problem)]
    if not faults:
        shortage = find_memory_shortage(problem)
        if shortage is not None:
            add_note(
                f"warning: {shortage}, so that some replicas stay without a place; lower replicas of "
                "tenants, or raise memory_gb of nodes"
            )
    return faults


def find_memory_shortage(problem: StoreTables) -> str | None:
    """Return the reason for which not all replicas fit on the working nodes; None if memory suffices."""
    size = float((problem.size_gb * problem.wanted_replicas).sum())
    memory = float(problem.memory_gb.sum())
    if size <= memory * (1 + 1e-9):
        return None
    working = np.flatnonzero(~problem.is_failed)
    named = few([str(name) for name in problem.node_names[working]], MOST_NAMES)
    return (
        f"all replicas take {amount(size, 'GB')}; all {len(working)} nodes that work ({named}) have "
        f"{amount(memory, 'GB')} of memory"
    )


def _find_long_tables(problem: StoreTables) -> Iterator[str]:
    for name, limit in (
        ("nodes", MOST_NODES),
        ("tenants", MOST_TENANTS),
        ("partitions", MOST_PARTITIONS),
        ("events", MOST_EVENTS),
        ("groups", MOST_GROUPS),
    ):
        frame = getattr(problem, name)
        if frame is not None and len(frame) > limit:
            yield f"{file_name(frame, name)}: has {len(frame):,} rows, must have up to {limit:,}"


def _find_sizes(problem: StoreTables) -> Iterator[str]:
    long = list(_find_long_tables(problem))
    yield from long
    if long:
        return
    nodes, tenants, partitions = (
        len(frame) for frame in (problem.nodes, problem.tenants, problem.partitions)
    )
    where = file_name(problem.tenants, "tenants")
    if tenants * nodes > MOST_PAIRS:
        yield (
            f"{where}: {tenants:,} tenants on {nodes:,} nodes are {tenants * nodes:,} pairs, must be up to "
            f"{MOST_PAIRS:,}"
        )
    row = int(problem.tenants["replicas"].to_numpy(float).argmax()) if tenants else 0
    replicas = int(problem.tenants["replicas"].iloc[row]) if tenants else 0
    if partitions * replicas > MOST_REPLICAS:
        yield (
            f"{row_name(problem.tenants, 'tenants', row)}: replicas is {replicas}, must be at most "
            f"{MOST_REPLICAS // partitions} with {partitions:,} partitions"
        )
    for name in ("pinned", "forbidden"):
        rules = getattr(problem, name)
        if rules is not None and len(rules) and partitions * nodes > MOST_PLACES:
            yield (
                f"{file_name(rules, name)}: {partitions:,} partitions on {nodes:,} nodes are "
                f"{partitions * nodes:,} pairs, must be up to {MOST_PLACES:,} with such rules"
            )


def _find_unknown(problem: StoreTables) -> Iterator[str]:
    tenants, nodes = set(problem.tenants["tenant"].astype(str)), set(problem.nodes["node"].astype(str))
    owners = list(report_unknown_names(problem.partitions, "partitions", "tenant", tenants, "no tenant"))
    yield from owners
    groups = set(problem.group_names.tolist())
    for name, column in (("tenants", "group"), ("groups", "parent")):
        frame = getattr(problem, name)
        if frame is not None and column in frame:
            named = frame[frame[column].fillna("").astype(str) != ""]
            yield from report_unknown_names(named, name, column, groups, "no group of table groups")
    if problem.resources is not None:
        yield from report_unknown_names(problem.resources, "resources", "node", nodes, "no node")
        named = problem.resources["resource"].astype(str)
        for row in np.flatnonzero(named.isin(problem.own_resources).to_numpy())[:SHOWN_ROWS].tolist():
            name = str(named.iloc[row])
            yield (
                f"{row_name(problem.resources, 'resources', row)}: resource is '{name}', must be "
                f"another: {STATED_BY[name]} is that one"
            )
    if problem.uses is not None:
        resources = set() if problem.resources is None else set(problem.resources["resource"].astype(str))
        yield from report_unknown_names(problem.uses, "uses", "tenant", tenants, "no tenant")
        yield from report_unknown_names(
            problem.uses, "uses", "resource", resources, "no resource of table resources"
        )
    for name, wild in (("placed", set()), ("pinned", {ANY}), ("forbidden", {ANY}), ("events", {ANY})):
        frame = getattr(problem, name)
        if frame is None or not len(frame):
            continue
        any_tenant = set() if name == "events" else wild
        yield from report_unknown_names(frame, name, "tenant", tenants | any_tenant, "no tenant")
        if "node" in frame:
            yield from report_unknown_names(
                frame, name, "node", nodes | (wild if name == "forbidden" else set()), "no node"
            )
        if not owners:  # else their partitions are unknown for the same reason
            yield from _find_unknown_partitions(problem, frame, name, wild)


def _find_unknown_partitions(
    problem: StoreTables, frame: pd.DataFrame, name: str, wild: set[str]
) -> Iterator[str]:
    owners, parts = (problem.partitions[column].astype(str) for column in ("tenant", "partition"))
    keys = pd.MultiIndex.from_arrays([owners, parts])
    tenant, partition = frame["tenant"].astype(str), frame["partition"].astype(str)
    missing = keys.get_indexer(pd.MultiIndex.from_arrays([tenant, partition])) < 0
    if wild:
        anywhere = (tenant == ANY) & partition.isin(set(parts))
        missing &= ~(partition.isin(wild) | anywhere).to_numpy()
    faults = [
        f"{row_name(frame, name, row)}: tenant '{tenant.iloc[row]}' has no partition '{partition.iloc[row]}'"
        + did_you_mean(partition.iloc[row], set(parts[owners == tenant.iloc[row]]))
        for row in np.flatnonzero(missing)[:SHOWN_ROWS].tolist()
    ]
    yield from shorten_faults(
        faults, file_name(frame, name), "with an unknown partition", count=int(missing.sum())
    )


def _find_tenants(problem: StoreTables) -> Iterator[str]:
    frame = problem.tenants
    replicas = frame["replicas"].to_numpy(float)
    domains = len(np.unique(problem.domain))
    noun = "nodes" if domains == len(problem.nodes) else "domains"
    for row in np.flatnonzero(replicas > domains)[:SHOWN_ROWS].tolist():
        yield (
            f"{row_name(frame, 'tenants', row)}: replicas is {replicas[row]:g}, must be at most {domains}, "
            f"the number of {noun}"
        )
    possible = np.minimum(replicas, domains)  # more are a fault of their own
    for row in np.flatnonzero(problem.most_nodes < possible)[:SHOWN_ROWS].tolist():
        yield (
            f"{row_name(frame, 'tenants', row)}: most_nodes is {problem.most_nodes[row]}, must be at least "
            f"replicas, {replicas[row]:g}"
        )


def _find_limits(problem: StoreTables) -> Iterator[str]:
    """Yield the tenants with a limit below their reserved rate."""
    frame = problem.tenants
    if "reserved_kops" not in frame or "limit_kops" not in frame:
        return
    reserved = frame["reserved_kops"].fillna(0.0).to_numpy(float)
    for row in np.flatnonzero(problem.limit_kops < reserved)[:SHOWN_ROWS].tolist():
        yield (
            f"{row_name(frame, 'tenants', row)}: limit_kops is {problem.limit_kops[row]:g}, must be at least "
            f"reserved_kops, {reserved[row]:g}"
        )


def _find_circles(problem: StoreTables) -> Iterator[str]:
    """Yield a group that is part of itself, by way of its parents."""
    if problem.groups is None:
        return
    parent, ancestor = problem.parent_of_group, np.arange(len(problem.group_names))
    for _ in range(len(parent)):
        ancestor = np.where(ancestor >= 0, parent[ancestor], -1)
        if (ancestor < 0).all():
            return
    for row in np.flatnonzero(ancestor >= 0)[:1].tolist():
        circle = [row]
        while parent[circle[-1]] not in circle:
            circle.append(int(parent[circle[-1]]))
        row = int(parent[circle[-1]])
        yield (
            f"{row_name(problem.groups, 'groups', row)}: group '{problem.group_names[row]}' is part of "
            "itself by way of its parents, must not be"
        )


def _find_partitions(problem: StoreTables) -> Iterator[str]:
    frame, memory = problem.partitions, problem.nodes["memory_gb"].to_numpy(float)
    largest = int(memory.argmax())
    large = np.flatnonzero(problem.size_gb > memory[largest])
    faults = [
        f"{row_name(frame, 'partitions', row)}: size_gb is {problem.size_gb[row]:g}, must be at most "
        f"the memory of a node; the largest, '{problem.node_names[largest]}', has "
        f"{amount(memory[largest], 'GB')}"
        for row in large[:SHOWN_ROWS].tolist()
    ]
    yield from shorten_faults(
        faults, file_name(frame, "partitions"), "larger than every node's memory", count=len(large)
    )
    if not (problem.demand_kops > 0).any():
        yield f"{file_name(frame, 'partitions')}: every demand_kops is 0, one must be greater"


def _find_rules(problem: StoreTables) -> Iterator[str]:
    pinned, forbidden = problem.is_pinned, problem.is_forbidden
    if pinned is not None and problem.pinned is not None:
        where = file_name(problem.pinned, "pinned")
        _note_failed_pins(problem, problem.pinned)
        yield from _find_crowded_pins(problem, pinned, where)
        if forbidden is not None:
            for p, n in np.argwhere(pinned & forbidden)[:SHOWN_ROWS].tolist():
                row = _find_rule(problem, problem.pinned, p, n)
                yield (
                    f"{row_name(problem.pinned, 'pinned', row)}: partition '{problem.partition_names[p]}' of "
                    f"tenant '{problem.tenant_names[problem.tenant[p]]}' is pinned to node "
                    f"'{problem.node_names[n]}', where table forbidden forbids it"
                )
        limit = problem.tenants["replicas"].to_numpy(float)[problem.tenant]
        for p in np.flatnonzero(pinned.sum(axis=1) > limit)[:SHOWN_ROWS].tolist():
            yield (
                f"{where}: partition '{problem.partition_names[p]}' of tenant "
                f"'{problem.tenant_names[problem.tenant[p]]}' is pinned to {pinned[p].sum()} nodes, must be "
                f"at most its replicas, {limit[p]:g}"
            )


def _note_failed_pins(problem: StoreTables, rules: pd.DataFrame) -> None:
    """Note the pins to nodes that do not work, which are set aside."""
    dead = problem.is_failed[problem.find_nodes(rules["node"])]
    if not dead.any():
        return
    first = int(np.argmax(dead))
    more = f", and {int(dead.sum()) - 1} more" if dead.sum() > 1 else ""
    add_note(
        f"warning: {row_name(rules, 'pinned', first)}: node '{rules['node'].iloc[first]}' has failed, so "
        f"this pin is set aside{more}"
    )


def _find_crowded_pins(problem: StoreTables, pinned: Bools, where: str) -> Iterator[str]:
    """Yield the pins that no placement satisfies: of a domain, of a node's memory, of a tenant's nodes."""

    def partition(p: int) -> str:
        tenant = problem.tenant_names[problem.tenant[p]]
        return f"partition '{problem.partition_names[p]}' of tenant '{tenant}'"

    domains = np.zeros((len(pinned), int(problem.domain.max(initial=0)) + 1), dtype=np.int64)
    p, n = np.nonzero(pinned)
    np.add.at(domains, (p, problem.domain[n]), 1)
    for row in np.flatnonzero((domains > 1).any(axis=1))[:SHOWN_ROWS].tolist():
        nodes = [str(problem.node_names[node]) for node in np.flatnonzero(pinned[row])]
        yield (
            f"{where}: {partition(row)} is pinned to nodes {few(nodes, MOST_NAMES)}, of which some are in "
            "one domain; a domain has one replica of a partition"
        )
    used = problem.size_gb @ pinned
    for node in np.flatnonzero(used > problem.memory_gb * (1 + 1e-9))[:SHOWN_ROWS].tolist():
        yield (
            f"{where}: partitions pinned to node '{problem.node_names[node]}' take "
            f"{amount(used[node], 'GB')}, must be at most its memory, {amount(problem.memory_gb[node], 'GB')}"
        )
    on = np.zeros((len(problem.tenants), len(problem.nodes)), dtype=bool)
    np.logical_or.at(on, problem.tenant[p], pinned[p])
    spread = on.sum(axis=1)
    for row in np.flatnonzero(spread > problem.most_nodes)[:SHOWN_ROWS].tolist():
        yield (
            f"{where}: tenant '{problem.tenant_names[row]}' is pinned to {spread[row]} nodes, must be at "
            f"most its most_nodes, {problem.most_nodes[row]}"
        )


def _find_rule(problem: StoreTables, rules: pd.DataFrame, partition: int, node: int) -> int:
    """Return the first row of a table of rules that names a partition and a node."""
    tenant = problem.tenant_names[problem.tenant[partition]]
    named = rules["tenant"].astype(str).isin([ANY, str(tenant)])
    named &= rules["partition"].astype(str).isin([ANY, str(problem.partition_names[partition])])
    named &= rules["node"].astype(str) == str(problem.node_names[node])
    return int(named.to_numpy().argmax())
