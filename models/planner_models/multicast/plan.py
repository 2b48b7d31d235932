"""Plans of system `multicast`: which groups get table entries, where, and which share one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import PlanRejected
from planner.tables import Table, label, number, validate
from planner_models.multicast.addresses import aggregation_partitions, core_partition
from planner_models.multicast.problem import Multicast

PARTITIONS: Final = Table(
    name="partitions",
    about="a group with table entries; groups in no row go by unicast",
    columns={
        "group": label("the group"),
        "partition": number("the part of the address space that its address is of, from 0", at_least=0),
        "copies": number("aggregation switches of a pod that hold its part", at_least=1),
    },
    key=("group",),
    may_be_empty=True,
)
META_GROUPS: Final = Table(
    name="meta_groups",
    about="a group that shares an entry; at switches in no row each group has its own",
    columns={
        "switch": label("edge switch, such as edge-0-3: pod, number"),
        "meta_group": number("the entry that it shares, from 0", at_least=0),
        "group": label("the group"),
    },
    key=("switch", "group"),
    may_be_empty=True,
)
ENTRIES: Final = Table(
    name="entries",
    about="a switch and how many table entries the plan takes there",
    columns={
        "switch": label("its name"),
        "layer": label("core, aggregation or edge"),
        "entries": number("entries in use", at_least=0),
    },
    key=("switch",),
)
PLAN_TABLES: Final = (PARTITIONS, META_GROUPS, ENTRIES)


@dataclass(frozen=True, kw_only=True, eq=False)
class Channels:
    """partitions, meta_groups and entries, as the tables of these names."""

    partitions: pd.DataFrame
    meta_groups: pd.DataFrame
    entries: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        return {table.name: getattr(self, table.name) for table in PLAN_TABLES}


def from_tables(problem: Multicast, tables: Mapping[str, pd.DataFrame]) -> Channels:
    """The plan in the tables `partitions`, `meta_groups` and `entries`.

    Without meta_groups nothing is shared; without entries they are counted. PlanRejected where it is no plan.
    """
    if "partitions" not in tables:
        raise PlanRejected("plan: has no table 'partitions'")
    partitions = validate(PARTITIONS, tables["partitions"], where="plan: partitions")
    require_partitions(problem, partitions)
    shared = tables.get("meta_groups")
    if shared is None or not len(shared.columns):
        shared = pd.DataFrame({"switch": [], "meta_group": [], "group": []})
    shared = validate(META_GROUPS, shared, where="plan: meta_groups")
    if "entries" in tables:
        entries = validate(ENTRIES, tables["entries"], where="plan: entries")
    else:
        entries = counted(problem, partitions, shared)
    return Channels(partitions=partitions, meta_groups=shared, entries=entries)


def require_partitions(problem: Multicast, partitions: pd.DataFrame) -> None:
    """PlanRejected for a group or a partition that does not exist, or a group that is there twice."""
    names = pd.Index(problem.groups["group"])
    for row, (group, partition, copies) in enumerate(
        zip(partitions["group"], partitions["partition"], partitions["copies"], strict=True), start=1
    ):
        if copies % 1 or copies < 1 or problem.half % copies:
            raise PlanRejected(f"partitions row {row}: copies is {copies:g}, must divide {problem.half}")
        count = (problem.half // int(copies)) ** 2
        if partition % 1 or not 0 <= partition < count:
            raise PlanRejected(f"partitions row {row}: partition is {partition:g}, there are {count}")
        if group not in names:
            raise PlanRejected(f"partitions row {row}: '{group}' is no group of the problem")
    if partitions["group"].duplicated().any():
        raise PlanRejected("partitions: a group is there twice")


def edge_name(problem: Multicast, edge: int) -> str:
    """The name of an edge switch, counted pod by pod."""
    return f"edge-{edge // problem.half}-{edge % problem.half}"


def switches(problem: Multicast) -> pd.DataFrame:
    """switch and layer of every switch: cores, then aggregation and edge switches pod by pod."""
    k, half = problem.k, problem.half
    names = [f"core-{i}" for i in range(half**2)]
    names += [f"aggregation-{pod}-{i}" for pod in range(k) for i in range(half)]
    names += [edge_name(problem, edge) for edge in range(k * half)]
    counts = [half**2, k * half, k * half]
    return pd.DataFrame({"switch": names, "layer": np.repeat(["core", "aggregation", "edge"], counts)})


def counted(problem: Multicast, partitions: pd.DataFrame, meta_groups: pd.DataFrame) -> pd.DataFrame:
    """The table `entries`, counted switch by switch from the assignment of partitions to switches.

    A core holds the groups of its partition that span several pods; an aggregation switch those of
    its partitions with members in its pod, unless all of them are at one edge switch and no other pod.
    """
    group = pd.Index(problem.groups["group"]).get_indexer(pd.Index(partitions["group"]))
    partition = partitions["partition"].to_numpy(np.int64)
    copies = partitions["copies"].to_numpy(np.int64)
    k, half = problem.k, problem.half
    spread = problem.edges_in_pod[group]
    many = (spread > 0).sum(axis=1) > 1
    core = np.zeros(half**2, dtype=np.int64)
    aggregation = np.zeros((k, half), dtype=np.int64)
    for ra in np.unique(copies).tolist():
        mine = copies == ra
        parts = (half // ra) ** 2
        core += np.bincount(partition[mine & many], minlength=parts)[core_partition(k, ra)]
        stored = (spread > 1) | ((spread > 0) & many[:, None])
        of_part = np.zeros((parts, k), dtype=np.int64)
        np.add.at(of_part, partition[mine], stored[mine])
        aggregation += np.einsum("pij,jp->pi", aggregation_partitions(problem.kind, k, ra), of_part)
    table = switches(problem)
    edge = edge_entries(problem, group, meta_groups)
    return table.assign(entries=np.concatenate([core, aggregation.ravel(), edge]).astype(float))


def edge_entries(
    problem: Multicast, group: NDArray[np.int64], meta_groups: pd.DataFrame
) -> NDArray[np.int64]:
    """(edge switches,) the entries of each: its shared ones, or else the groups in `group` at it."""
    edge, at, _ = problem.at_edge
    kept = np.zeros(len(problem.groups), dtype=bool)
    kept[group] = True
    count = np.bincount(edge[kept[at]], minlength=problem.k * problem.half)
    if len(meta_groups):
        names = pd.Index([edge_name(problem, i) for i in range(len(count))])
        shared = meta_groups.groupby("switch")["meta_group"].nunique()
        count[names.get_indexer(shared.index)] = shared.to_numpy()
    return count
