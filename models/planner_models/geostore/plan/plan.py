"""The plan of system `geostore`: replicas, routes of users, ways of copies, and consistency of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import CLASSES, CODED, JOIN, MAX_MS

ROLES: Final = ("replica", "leader", "voter", "follower", "piece")
CHECKS: Final = ("none", "local", "remote")
REPLICAS: Final = Table(
    name="replicas",
    about="the replicas of a group in a region",
    columns={
        "group": label("name of the group"),
        "region": label("region that holds it"),
        "role": choice(
            "what they do: voters decide with the leader, followers are copied to, pieces are of a code",
            ROLES,
        ),
        "copies": number(
            "replicas, each in a zone of its own",
            at_least=1,
            at_most=100,
            whole=True,
            optional=True,
            default=1.0,
        ),
    },
    key=("group", "region", "role"),
)
ROUTES: Final = Table(
    name="routes",
    about="where users of a region read and write a group; several regions are joined by +",
    columns={
        "group": label("name of the group"),
        "region": label("region of the users"),
        "read_from": label("regions that a read waits for"),
        "write_to": label(
            "regions that a write waits for; the users' own, without a replica, where front ends send copies"
        ),
        "read_ms": number("time of a page's reads, ms", at_least=0, at_most=10 * MAX_MS),
        "write_ms": number("time of a page's writes, ms", at_least=0, at_most=10 * MAX_MS),
    },
    key=("group", "region"),
)
PROPAGATION: Final = Table(
    name="propagation",
    about="how writes that enter in a region come to the other replicas",
    columns={
        "group": label("name of the group"),
        "origin": label("region where the writes enter"),
        "source": label("region that sends the copy"),
        "target": label("region that receives it"),
    },
    key=("group", "origin", "target"),
    may_be_empty=True,
)
ATTACHMENTS: Final = Table(
    name="attachments",
    about="the datacenter of a region's users for all groups that depend on each other",
    columns={
        "region": label("region of the users"),
        "component": label("first group of those that depend on each other"),
        "datacenter": label("region where they read and write"),
    },
    key=("region", "component"),
    may_be_empty=True,
)
KINDS: Final = Table(
    name="classes",
    about="consistency of a group: replicas, those that reads and writes wait for, and how order is checked",
    columns={
        "group": label("name of the group"),
        "class": choice("consistency", tuple(name for name in CLASSES if name != "any")),
        "n": number("replicas that count", at_least=1, at_most=1e4, whole=True),
        "r": number("replicas that a read waits for", at_least=1, at_most=1e4, whole=True),
        "w": number("replicas that a write waits for", at_least=1, at_most=1e4, whole=True),
        "k": number(
            "pieces from which a value is read; 1: each replica has it whole",
            at_least=1,
            at_most=1e4,
            whole=True,
            optional=True,
            default=1.0,
        ),
        "query": number(
            "replicas that say their newest write before an operation on pieces; 0: not asked",
            at_least=0,
            at_most=1e4,
            whole=True,
            optional=True,
            default=0.0,
        ),
        "checks": choice(
            "where a causal write waits for what it depends on: at the local replica, or at the nearest one",
            CHECKS,
        ),
    },
    key=("group",),
)
SERVERS: Final = Table(
    name="servers",
    about="servers of a region",
    columns={
        "region": label("region"),
        "servers": number("servers; a fraction where they are billed by use", at_least=0, at_most=1e12),
        "refused_per_s": number(
            "operations a second for which the region has too few servers",
            at_least=0,
            at_most=1e15,
            optional=True,
            default=0.0,
        ),
    },
    key=("region",),
    may_be_empty=True,
)
SHARDS: Final = Table(
    name="shards",
    about="the server of each piece of a range of keys",
    columns={
        "range": label("name of the range"),
        "piece": number("piece of the range, from 1", at_least=1, at_most=1e9, whole=True),
        "server": label("server that has it"),
    },
    key=("range", "piece"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (REPLICAS, ROUTES, PROPAGATION, ATTACHMENTS, KINDS, SERVERS, SHARDS)


@dataclass(frozen=True, kw_only=True, eq=False)
class StorePlan:
    """Placement of all groups.

    replicas     group, region, role, copies
    routes       group, region, read_from, write_to, read_ms, write_ms
    propagation  group, origin, source, target
    classes      group, class, n, r, w, k, query, checks; k and query where groups are coded
    attachments  region, component, datacenter; None for none
    servers      region, servers, refused_per_s; None where servers cost nothing and are not limited
    shards       range, piece, server; None where there are no ranges
    """

    replicas: pd.DataFrame
    routes: pd.DataFrame
    propagation: pd.DataFrame
    classes: pd.DataFrame
    attachments: pd.DataFrame | None = None
    servers: pd.DataFrame | None = None
    shards: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupPlan:
    """The decision on one group, by rows of the problem's tables.

    copies   (N,) replicas in each region
    reads    (users, N) regions that a read of each user waits for, in the order of `Geostore.users_of`
    writes   (users, N) regions that a write waits for
    edges    (origin, source, target) of copies
    kind     consistency
    leader   region of the leader; -1 for none
    votes    (N,) replicas in each region that vote; the others follow. None: all
    read_quorum, write_quorum  replicas that operations wait for
    pieces       pieces from which a value is read; 1: each replica has it whole
    query        replicas that say their newest write before an operation on pieces; 0: none
    """

    group: int
    copies: Ints
    reads: Bools
    writes: Bools
    edges: Sequence[tuple[int, int, int]]
    kind: str = "eventual"
    checks: str = "none"
    leader: int = -1
    votes: Ints | None = None
    read_quorum: int = 1
    write_quorum: int = 1
    pieces: int = 1
    query: int = 0

    @property
    def voting(self) -> Ints:
        """(N,) replicas that vote."""
        return self.copies if self.votes is None else self.votes


@dataclass(kw_only=True)
class _Rows:
    """Columns of the plan's tables, filled group by group."""

    columns: dict[str, list[object]] = field(default_factory=dict)

    def add(self, **values: object) -> None:
        """Append one row."""
        for name, value in values.items():
            self.columns.setdefault(name, []).append(value)

    def frame(self, table: Table) -> pd.DataFrame:
        """Return the table."""
        names = list(table.columns)
        return pd.DataFrame({name: self.columns.get(name, []) for name in names}, columns=names)


def make_plan(problem: Geostore, groups: Sequence[GroupPlan]) -> StorePlan:
    """Return the tables of the decisions on all groups, without servers."""
    regions = problem.region_index.to_numpy(object)
    tables = {name: _Rows() for name in ("replicas", "routes", "propagation", "classes")}
    for decided in sorted(groups, key=lambda item: item.group):
        name = problem.group_index[decided.group]
        _add_replicas(tables["replicas"], name, decided, regions)
        _add_routes(tables["routes"], problem, name, decided, regions)
        for origin, source, target in decided.edges:
            tables["propagation"].add(
                group=name, origin=regions[origin], source=regions[source], target=regions[target]
            )
        tables["classes"].add(
            **{"group": name, "class": decided.kind, "n": float(decided.voting.sum())},
            r=float(decided.read_quorum),
            w=float(decided.write_quorum),
            k=float(decided.pieces),
            query=float(decided.query),
            checks=decided.checks,
        )
    kinds = tables["classes"].frame(KINDS)
    return StorePlan(
        replicas=tables["replicas"].frame(REPLICAS),
        routes=tables["routes"].frame(ROUTES),
        propagation=tables["propagation"].frame(PROPAGATION),
        classes=kinds if (kinds["query"] > 0).any() else kinds.drop(columns=["k", "query"]),
        attachments=_tabulate_attachments(problem, groups),
    )


def tabulate_servers(problem: Geostore, servers: Floats, refused: Floats) -> pd.DataFrame | None:
    """Return the table of servers, (N,), and operations a second that they refuse, (N,); None for none."""
    used = np.flatnonzero((servers > 0) | (refused > 0))
    if not len(used) or not (problem.price("server_usd_month").any() or problem.is_limited.any()):
        return None
    frame = pd.DataFrame({"region": problem.region_index.to_numpy(object)[used], "servers": servers[used]})
    return frame.assign(refused_per_s=refused[used]) if problem.is_limited.any() else frame


def _add_replicas(rows: _Rows, name: object, decided: GroupPlan, regions: object) -> None:
    for region in np.flatnonzero(decided.copies).tolist():
        copies, votes = int(decided.copies[region]), int(decided.voting[region])
        parts = [("replica", copies)]
        if decided.kind == "leader":
            is_leader = region == decided.leader
            parts = [
                ("leader", 1 if is_leader else 0),
                ("voter", votes - is_leader),
                ("follower", copies - votes),
            ]
        elif decided.kind == CODED:
            parts = [("piece", copies)]
        elif decided.votes is not None:
            parts = [("voter", votes), ("follower", copies - votes)]
        for role, count in parts:
            if count:
                rows.add(group=name, region=regions[region], role=role, copies=float(count))  # type: ignore[index]


def _add_routes(rows: _Rows, problem: Geostore, name: object, decided: GroupPlan, regions: Ints) -> None:
    read_ms, write_ms = latencies(problem, decided)
    for position, user in enumerate(problem.users_of[decided.group].tolist()):
        rows.add(
            group=name,
            region=regions[problem.user_region[user]],
            read_from=JOIN.join(regions[decided.reads[position]]),
            write_to=JOIN.join(regions[decided.writes[position]]),
            read_ms=float(read_ms[position]),
            write_ms=float(write_ms[position]),
        )


def latencies(problem: Geostore, decided: GroupPlan) -> tuple[Floats, Floats]:
    """Return the time of a page's reads and writes of each user of a group, ms."""
    users = problem.users_of[decided.group]
    region = problem.user_region[users]
    if decided.kind in ("eventual", "causal"):
        latency = problem.latency_ms[users]
        read = np.where(decided.reads, latency, -np.inf).max(axis=1)
        is_direct = ~(decided.copies > 0)[np.argmax(decided.writes, axis=1)]
        first = np.where(decided.copies > 0, latency, np.inf).min(axis=1)
        write = np.where(decided.writes, latency, -np.inf).max(axis=1)
        return read, np.where(is_direct, first, write)
    operations = problem.use("operations_per_page")[users]
    trip = problem.rtt_ms + problem.service_ms
    if decided.kind == "leader":
        votes = np.repeat(trip[decided.leader], decided.voting)
        wait = float(np.sort(votes)[decided.write_quorum - 1]) if decided.write_quorum > 1 else 0.0
        to_leader = trip[region, decided.leader]
        return operations * to_leader, operations * (to_leader + wait)
    read = np.where(decided.reads, trip[region], -np.inf).max(axis=1)
    write = np.where(decided.writes, trip[region], -np.inf).max(axis=1)
    if decided.kind == CODED:
        times = np.sort(np.where(decided.copies > 0, trip[region], np.inf), axis=1)
        first = times[:, decided.query - 1]  # newest write; a write ends with its finalization
        read, write = first + read, first + write + times[:, int(decided.copies.sum()) - decided.query]
    return operations * read, operations * write


def _tabulate_attachments(problem: Geostore, groups: Sequence[GroupPlan]) -> pd.DataFrame | None:
    """Return the datacenter of each region's users for each component of several causal groups."""
    by_group = {decided.group: decided for decided in groups if decided.checks == "local"}
    regions = problem.region_index.to_numpy(object)
    rows: dict[tuple[object, object], object] = {}
    for members in problem.components:
        if len(members) < 2:
            continue
        for group in members:
            if group not in by_group:
                continue
            for position, user in enumerate(problem.users_of[group].tolist()):
                key = (regions[problem.user_region[user]], problem.group_index[members[0]])
                datacenter = regions[int(np.argmax(by_group[group].reads[position]))]
                if rows.setdefault(key, datacenter) != datacenter:
                    return None  # users read groups that depend on each other in several datacenters
    if not rows:
        return None
    return pd.DataFrame(
        [(region, component, datacenter) for (region, component), datacenter in rows.items()],
        columns=["region", "component", "datacenter"],
    )


def from_tables(problem: Geostore, tables: Mapping[str, pd.DataFrame]) -> StorePlan:  # noqa: ARG001
    """Return the plan in some tables; raises InputError with every error in them."""
    frames = validate_tables(PLAN_TABLES, tables, required=("replicas", "routes", "propagation", "classes"))
    return StorePlan(**frames)
