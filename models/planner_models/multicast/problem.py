"""The problem of system `multicast`: groups on a fat tree whose switches hold few entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import InputError
from planner.tables import Table, adopt, few, label, number, row_name, strangers
from planner_models.multicast.addresses import Kind
from planner_models.multicast.equations import layout_faults

FABRIC: Final = Table(
    name="fabric",
    about="the one fat tree, in one row",
    columns={
        "kind": label("ab or standard: how pods connect to cores"),
        "k": number("ports of each switch, even", at_least=2, at_most=64),
        "partitions": number("parts n of the address space", at_least=1),
        "core_copies": number("cores rc that hold each part", at_least=1),
        "aggregation_copies": number("aggregation switches ra of a pod that hold each part", at_least=1),
        "core_entries": number("free table entries of a core switch", at_least=1),
        "aggregation_entries": number("free table entries of an aggregation switch", at_least=1),
        "edge_entries": number("free table entries of an edge switch", at_least=1),
    },
)
HOSTS: Final = Table(
    name="hosts",
    about="a host at a port of an edge switch; without this table hosts are h0, h1, ... port by port",
    columns={
        "host": label("its name"),
        "pod": number("pod, from 0", at_least=0),
        "edge": number("edge switch of the pod, from 0", at_least=0),
        "port": number("port of the edge switch, from 0", at_least=0),
    },
    key=("host",),
)
GROUPS: Final = Table(
    name="groups",
    about="a multicast group",
    columns={"group": label("its name"), "rate_mbps": number("traffic sent to it, Mbit/s", more_than=0)},
    key=("group",),
)
MEMBERS: Final = Table(
    name="members",
    about="a host that receives a group",
    columns={"group": label("the group"), "host": label("the host")},
    key=("group", "host"),
)
TABLES: Final = (FABRIC, HOSTS, GROUPS, MEMBERS)
WHOLE: Final = ("k", "partitions", "core_copies", "aggregation_copies")
PLACES: Final = ("pod", "edge", "port")
LAYERS: Final = ("core", "aggregation", "edge")


@dataclass(frozen=True, kw_only=True, eq=False)
class Multicast:
    """Groups with members on the hosts of a fat tree.

    fabric   one row: kind, k, partitions, core_copies, aggregation_copies and *_entries by layer
    hosts    one row a host: host, pod, edge, port
    groups   one row a group: group, rate_mbps
    members  one row a membership: group, host

    InputError with every fault: numbers that Algorithm 1 cannot use, a host outside the fabric, two
    hosts at one port, a member that is no host or of no group, a group without members.
    """

    fabric: pd.DataFrame
    hosts: pd.DataFrame
    groups: pd.DataFrame
    members: pd.DataFrame

    def __post_init__(self) -> None:
        faults = adopt(self, TABLES)
        if not faults:
            faults += self._fabric_faults()
        if not faults:
            faults += self._host_faults()
        if not faults:
            groups, hosts = pd.Index(self.groups["group"]), pd.Index(self.hosts["host"])
            faults += strangers(self.members, "members", "group", groups, "in no row of groups")
            faults += strangers(self.members, "members", "host", hosts, "no host of the fabric")
            empty = np.flatnonzero(pd.Index(self.members["group"].unique()).get_indexer(groups) < 0).tolist()
            named = [
                f"{row_name(self.groups, 'groups', row)}: group '{groups[row]}' has no members"
                for row in empty
            ]
            faults += few(named, "groups", "without members")
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Multicast:
        """The problem in the tables fabric, groups and members; without hosts, every port has one."""
        hosts = tables.get("hosts")
        if hosts is None:
            fabric = tables["fabric"]  # whatever is wrong with it is found below
            ports = pd.to_numeric(fabric["k"] if "k" in fabric else pd.Series(dtype=float), errors="coerce")
            k = ports.iloc[0] if len(ports) else 2
            hosts = every_host(int(k) if 2 <= k <= 64 else 2)
        return cls(fabric=tables["fabric"], hosts=hosts, groups=tables["groups"], members=tables["members"])

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that make this problem again."""
        return {table.name: getattr(self, table.name).reset_index(drop=True) for table in TABLES}

    def size(self) -> dict[str, int]:
        """Number of hosts, groups and memberships."""
        return {"hosts": len(self.hosts), "groups": len(self.groups), "members": len(self.members)}

    def _fabric_faults(self) -> list[str]:
        if len(self.fabric) != 1:
            return [f"fabric: has {len(self.fabric)} rows, must have one"]
        row, where = self.fabric.iloc[0], row_name(self.fabric, "fabric", 0)
        faults = [f"{where}: {name} is {row[name]:g}, must be whole" for name in WHOLE if row[name] % 1]
        if row["kind"] not in ("ab", "standard"):
            faults.append(f"{where}: kind is '{row['kind']}', must be ab or standard")
        if not faults:
            k, n, rc, ra = (int(row[name]) for name in WHOLE)
            faults = [f"{where}: {fault}" for fault in layout_faults(k, n, rc, ra)]
        return faults

    def _host_faults(self) -> list[str]:
        faults = []
        for name, most in zip(PLACES, (self.k, self.half, self.half), strict=True):
            place = self.hosts[name].to_numpy()
            wrong = np.flatnonzero((place >= most) | (place % 1 != 0)).tolist()
            named = [
                f"{row_name(self.hosts, 'hosts', row)}: {name} is {place[row]:g}, "
                f"must be whole and below {most}"
                for row in wrong
            ]
            faults += few(named, "hosts", f"with a {name} outside the fabric")
        twice = np.flatnonzero(self.hosts.duplicated(list(PLACES))).tolist()
        named = [f"{row_name(self.hosts, 'hosts', row)}: another host has the same port" for row in twice]
        return faults + few(named, "hosts", "at a port that is taken")

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def k(self) -> int:
        """Ports of each switch; as many pods."""
        return int(self.fabric["k"].iloc[0])

    @property
    def half(self) -> int:
        """Edge switches of a pod, aggregation switches of a pod, hosts of an edge switch."""
        return self.k // 2

    @property
    def kind(self) -> Kind:
        return cast("Kind", self.fabric["kind"].iloc[0])

    @property
    def aggregation_copies(self) -> int:
        return int(self.fabric["aggregation_copies"].iloc[0])

    def table_size(self, layer: str) -> int:
        """Free entries of each switch of the layer, whole ones."""
        return int(self.fabric[f"{layer}_entries"].iloc[0])

    @cached_property
    def rate_mbps(self) -> NDArray[np.float64]:
        """(G,)"""
        return self.groups["rate_mbps"].to_numpy(float)

    @cached_property
    def group_of(self) -> NDArray[np.int64]:
        """(rows of members,) the group's row."""
        rows = pd.Index(self.groups["group"]).get_indexer(pd.Index(self.members["group"]))
        return np.asarray(rows, dtype=np.int64)

    @cached_property
    def member_counts(self) -> NDArray[np.int64]:
        """(G,) hosts that receive each group."""
        return np.bincount(self.group_of, minlength=len(self.groups))

    @cached_property
    def at_edge(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
        """Edge switch, group and port set of each pair that meets, by edge switch, then group.

        Edge switches count pod by pod; bit p of a port set is port p.
        """
        host = pd.Index(self.hosts["host"]).get_indexer(pd.Index(self.members["host"]))
        pod, edge, port = (self.hosts[name].to_numpy(np.int64)[host] for name in PLACES)
        pair = (pod * self.half + edge) * len(self.groups) + self.group_of
        order = np.argsort(pair, kind="stable")
        pairs, start = np.unique(pair[order], return_index=True)
        masks = np.bitwise_or.reduceat(np.uint64(1) << port[order].astype(np.uint64), start)
        return *np.divmod(pairs, len(self.groups)), masks

    @cached_property
    def edges_in_pod(self) -> NDArray[np.int64]:
        """(G, k) edge switches of each pod that each group reaches."""
        edge, group, _ = self.at_edge
        place = group * self.k + edge // self.half
        count = np.bincount(place, minlength=len(self.groups) * self.k)
        return np.asarray(count.reshape(-1, self.k), dtype=np.int64)


def every_host(k: int) -> pd.DataFrame:
    """A host h0, h1, ... at every port of a fat tree of k-port switches."""
    pod, edge, port = (axis.ravel() for axis in np.indices((k, k // 2, k // 2)))
    return pd.DataFrame({"host": [f"h{i}" for i in range(len(pod))], "pod": pod, "edge": edge, "port": port})
