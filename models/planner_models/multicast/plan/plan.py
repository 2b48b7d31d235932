"""Plans of system `multicast`: groups with table entries, their partitions, and shared entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Ints, distinct
from planner.contract.table import Table, label, number
from planner.contract.tables import validate
from planner.errors import InputError, PlanRejected
from planner_models.multicast.plan.headers import HEADER_RULES, HEADERS, HeaderTrees, read_trees
from planner_models.multicast.plan.overflow import OVERFLOW, Overflow, require_overflow
from planner_models.multicast.plan.switch_groups import group_assignment, groups_in_pods, rank_keys
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.schema import MOST_ENTRIES
from planner_models.multicast.problem.topology import find_rows

PARTITIONS: Final = Table(
    name="partitions",
    about="a group with table entries; groups without a row go by unicast",
    columns={
        "group": label("the group"),
        "partition": number("the partition of its address, from 0", at_least=0, at_most=MOST_ENTRIES),
        "copies": number(
            "aggregation switches of a pod that hold its partition", at_least=1, at_most=MOST_ENTRIES
        ),
    },
    key=("group",),
    may_be_empty=True,
)
META_GROUPS: Final = Table(
    name="meta_groups",
    about="a group that shares an entry; at switches without rows each group has its own",
    columns={
        "switch": label("edge or aggregation switch, such as edge-0-3: pod, number"),
        "meta_group": number("number of the shared entry, from 0", at_least=0, at_most=MOST_ENTRIES),
        "group": label("the group"),
    },
    key=("switch", "group"),
    may_be_empty=True,
    compact=True,
)
ENTRIES: Final = Table(
    name="entries",
    about="a switch and the number of table entries in use there",
    columns={
        "switch": label("its name"),
        "layer": label("core, aggregation or edge"),
        "entries": number("entries in use", at_least=0, at_most=MOST_ENTRIES),
    },
    key=("switch",),
)
PLAN_TABLES: Final = (PARTITIONS, META_GROUPS, ENTRIES, HEADERS, HEADER_RULES, OVERFLOW)


@dataclass(frozen=True, kw_only=True, eq=False)
class Channels:
    """A plan: the tables partitions, meta_groups and entries, and those of headers where there are any.

    overflow  groups that full tables have no entry for, and which switches forward all the same; None: none
    """

    partitions: pd.DataFrame
    meta_groups: pd.DataFrame
    entries: pd.DataFrame
    headers: pd.DataFrame | None = None
    header_rules: pd.DataFrame | None = None
    overflow: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables by name."""
        tables = {table.name: getattr(self, table.name) for table in PLAN_TABLES}
        return {name: frame for name, frame in tables.items() if frame is not None}

    def header_trees(self, problem: Multicast) -> HeaderTrees | None:
        """Return the groups that headers carry; None where there are none."""
        if self.headers is None or self.header_rules is None:
            return None
        return read_trees(problem, self.headers, self.header_rules)

    def overflow_pairs(self, problem: Multicast) -> Overflow | None:
        """Return the groups that switches forward without an entry; None where there are none."""
        if self.overflow is None or not len(self.overflow):
            return None
        return Overflow.of(problem, self.partitions, self.overflow)


def from_tables(problem: Multicast, tables: Mapping[str, pd.DataFrame]) -> Channels:
    """Return the plan in the tables `partitions`, `meta_groups` and `entries`.

    Without meta_groups nothing is shared; without entries they are counted. Tables of headers may be absent.

    raises  PlanRejected where the tables are no plan
    """
    if "partitions" not in tables:
        raise PlanRejected("plan: has no table 'partitions'")
    partitions = validate(PARTITIONS, tables["partitions"], where="plan: partitions")
    require_partitions(problem, partitions)
    shared = tables.get("meta_groups")
    if shared is None or not len(shared.columns):
        shared = pd.DataFrame({"switch": [], "meta_group": [], "group": []})
    shared = validate(META_GROUPS, shared, where="plan: meta_groups")
    require_whole(shared)
    headers = rules = None
    if ("headers" in tables) != ("header_rules" in tables):
        raise PlanRejected("plan: has one of the tables 'headers' and 'header_rules', needs both or none")
    if "headers" in tables:
        headers = validate(HEADERS, tables["headers"], where="plan: headers")
        rules = validate(HEADER_RULES, tables["header_rules"], where="plan: header_rules")
    overflow = tables.get("overflow")
    if overflow is not None:
        overflow = validate(OVERFLOW, overflow, where="plan: overflow")
        require_overflow(problem, partitions, overflow)
    if "entries" in tables:
        entries = validate(ENTRIES, tables["entries"], where="plan: entries")
    else:
        trees = None if headers is None or rules is None else read_trees(problem, headers, rules)
        entries = count_entries(problem, partitions, shared, trees, overflow)
    return Channels(
        partitions=partitions,
        meta_groups=shared,
        entries=entries,
        headers=headers,
        header_rules=rules,
        overflow=overflow,
    )


def require_whole(meta_groups: pd.DataFrame) -> None:
    """Raise PlanRejected for a shared entry with a number that is not whole, or out of range."""
    numbers = meta_groups["meta_group"].to_numpy(float)
    broken = np.flatnonzero(~((numbers >= 0) & (numbers <= MOST_ENTRIES) & (numbers % 1 == 0)))
    if len(broken):
        number = meta_groups["meta_group"].iloc[broken[0]]
        raise PlanRejected(
            f"meta_groups row {broken[0] + 1}: meta_group is {number:g}, must be whole, from 0"
        )


def require_partitions(problem: Multicast, partitions: pd.DataFrame) -> None:
    """Raise PlanRejected for an unknown group or partition, or a group that occurs twice."""
    copies, partition = (partitions[name].to_numpy(float) for name in ("copies", "partition"))
    for many in distinct(copies):
        of_count = copies == many
        row = int(np.argmax(of_count)) + 1
        if many % 1:
            raise PlanRejected(f"partitions row {row}: copies is {many:g}, must be whole")
        try:
            count = problem.distribution(int(many)).partitions
        except InputError as error:
            raise PlanRejected(f"partitions row {row}: {error}") from None
        wrong = of_count & ((partition % 1 != 0) | (partition < 0) | (partition >= count))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise PlanRejected(
                f"partitions row {row + 1}: partition is {partition[row]:g}, there are {count}"
            )
    group = find_rows(problem.group_names, partitions["group"])
    strange = group < 0
    if strange.any():
        row = int(np.argmax(strange))
        raise PlanRejected(
            f"partitions row {row + 1}: '{partitions['group'].iloc[row]}' is no group of the problem"
        )
    if len(distinct(group)) < len(group):
        raise PlanRejected("partitions: a group is there twice")


def list_switches(problem: Multicast) -> pd.DataFrame:
    """Return switch and layer of every switch: cores, then aggregation and edge switches pod by pod."""
    return pd.DataFrame({"switch": problem.wiring.switches, "layer": problem.wiring.layers})


def count_entries(
    problem: Multicast,
    partitions: pd.DataFrame,
    meta_groups: pd.DataFrame,
    trees: HeaderTrees | None = None,
    overflow: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the table `entries`, counted switch by switch from the partitions of switches.

    A core holds the groups of its partition that span several pods; an aggregation switch those of
    its partitions with members in its pod, unless all of them are at one edge switch and in no other pod.
    Where groups share entries, these are counted instead. Groups that headers carry, `trees`, may take some.
    Those in the table `overflow` have none at its switches.
    """
    partition, copies = group_assignment(problem, partitions)
    wires = problem.wiring
    across = np.diff(problem.below.start) > 1
    group, pod, _ = groups_in_pods(problem)
    core = np.zeros(len(wires.cores), dtype=np.int64)
    aggregation = np.zeros(len(wires.aggregations), dtype=np.int64)
    for ra in distinct(copies[copies > 0]).tolist():
        held = problem.distribution(ra)
        of_copies = copies == ra
        core += held.core @ np.bincount(partition[of_copies & across], minlength=held.partitions)
        here = of_copies[group]
        cell = pod[here] * held.partitions + partition[group[here]]
        of_part = np.bincount(cell, minlength=wires.pods * held.partitions)
        of_part = of_part.reshape(wires.pods, held.partitions)
        aggregation += (held.aggregation * of_part[wires.aggregation_pod]).sum(axis=1)
    edge, group_rows, _ = problem.at_edge
    is_stored = copies > 0
    count = np.concatenate(
        [core, aggregation, np.bincount(edge[is_stored[group_rows]], minlength=problem.edge_count)]
    )
    if len(meta_groups):
        switch = find_rows(wires.switches, meta_groups["switch"])
        meta = meta_groups["meta_group"].to_numpy(np.int64)
        width = int(meta.max()) + 1
        entry, _ = rank_keys(switch * width + meta, len(count) * width)
        used = np.bincount(entry // width, minlength=len(count))
        count = np.where(used > 0, used, count)
    if trees is not None:
        count = count + trees.entries()
    if overflow is not None:
        count = count - np.bincount(find_rows(wires.switches, overflow["switch"]), minlength=len(count))
    return list_switches(problem).assign(entries=count.astype(float))


def empty_meta_groups() -> pd.DataFrame:
    """Return the table meta_groups without rows."""
    return pd.DataFrame(
        {"switch": pd.Series(dtype=str), "meta_group": pd.Series(dtype=float), "group": pd.Series(dtype=str)}
    )


def round_robin_partitions(problem: Multicast, copies: int) -> Ints:
    """Return the partition of each group, shape (G,): one after the other, in the order of the groups."""
    return np.arange(len(problem.groups)) % problem.distribution(copies).partitions


def build_plan(
    problem: Multicast,
    selected: Bools,
    copies: int,
    *,
    partition: Ints | None = None,
    meta_groups: pd.DataFrame | None = None,
    headers: pd.DataFrame | None = None,
    header_rules: pd.DataFrame | None = None,
    overflow: pd.DataFrame | None = None,
) -> Channels:
    """Return the plan whose groups `selected` (G,) have entries, with `copies` of each partition in a pod.

    partition    (G,) partition of each group; default: in turn
    meta_groups  the table of shared entries; default: none is shared
    headers, header_rules  groups that headers carry; default: none
    overflow     groups that switches forward without an entry; default: none
    """
    partition = round_robin_partitions(problem, copies) if partition is None else partition
    shared = empty_meta_groups() if meta_groups is None else meta_groups
    names = pd.Categorical.from_codes(np.flatnonzero(selected), problem.group_names)
    partitions = pd.DataFrame(
        {"group": names, "partition": partition[selected].astype(float), "copies": float(copies)}
    )
    trees = None if headers is None or header_rules is None else read_trees(problem, headers, header_rules)
    entries = count_entries(problem, partitions, shared, trees, overflow)
    return Channels(
        partitions=partitions,
        meta_groups=shared,
        entries=entries,
        headers=headers,
        header_rules=header_rules,
        overflow=overflow,
    )
