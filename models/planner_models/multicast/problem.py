"""The problem of system `multicast`: groups on a multi-rooted tree whose switches hold few entries."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import InputError
from planner.tables import adopt, few, row_name, strangers
from planner_models.multicast import allocation
from planner_models.multicast.addresses import Distribution, Kind, distributed
from planner_models.multicast.equations import layout_faults
from planner_models.multicast.fabric import LAYERS, Wiring, fat_tree, wired
from planner_models.multicast.schema import OPTIONAL_TABLES, TABLES
from planner_models.multicast.workloads import Spread, spread_of

PLACES: Final = ("pod", "edge", "port")
KINDS: Final = ("ab", "standard", "portland", "tree")
MOST_PORTS: Final = 64  # a port set is a 64-bit mask
# what is worked out from members, and no longer holds when they change
OF_MEMBERS: Final = ("group_of", "host_of", "member_counts", "spread", "at_edge", "edges_in_pod", "below")


@dataclass(frozen=True, kw_only=True, eq=False)
class Multicast:
    """Groups with members on the hosts of a multi-rooted tree.

    fabric      one row: kind, k, partitions, core_copies, aggregation_copies and *_entries by layer
    hosts       one row a host: host, pod, edge, port
    groups      one row a group: group, rate_mbps, tenant where tenants are known
    members     one row a membership: group, host
    switches    of a tree all, of a fat tree those whose table differs; None: none differs
    links       of a tree; None for fat trees
    holds       partitions of switches as given; None: as Algorithm 1 or its like gives them out
    background  other traffic on links; None: none
    failed      switches that have failed; None: none
    tenants     placement of tenants; None: not known

    InputError with every fault: numbers that Algorithm 1 cannot use, a host outside the fabric, two
    hosts at one port, a member that is no host or of no group, a group without members, partitions that
    a pod does not reach.
    """

    fabric: pd.DataFrame
    hosts: pd.DataFrame
    groups: pd.DataFrame
    members: pd.DataFrame
    switches: pd.DataFrame | None = None
    links: pd.DataFrame | None = None
    holds: pd.DataFrame | None = None
    background: pd.DataFrame | None = None
    failed: pd.DataFrame | None = None
    tenants: pd.DataFrame | None = None
    wiring: Wiring = field(init=False, repr=False)

    def __post_init__(self) -> None:
        steps: tuple[tuple[Callable[[], list[str]], ...], ...] = (
            (lambda: adopt(self, TABLES),),
            (self._fabric_faults,),
            (self._wire,),
            (self._switch_faults, self._failed_faults, self._place_hosts),
            (self._member_faults, self._tenant_faults, self._background_faults, self._holds_faults),
        )
        for step in steps:  # each needs what the one before has looked at
            if faults := [fault for look in step for fault in look()]:
                raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Multicast:
        """The problem in the tables fabric, groups and members, and those that may be absent.

        Without hosts, every port of a fat tree has one.
        """
        known = {name: tables[name] for name in OPTIONAL_TABLES if tables.get(name) is not None}
        if "hosts" not in known:
            fabric = tables["fabric"]  # whatever is wrong with it is found below
            ports = pd.to_numeric(fabric["k"] if "k" in fabric else pd.Series(dtype=float), errors="coerce")
            k = ports.iloc[0] if len(ports) else 2
            known["hosts"] = every_host(int(k) if 2 <= k <= 64 else 2)
            if "kind" in fabric and "tree" in fabric["kind"].tolist():
                raise InputError("hosts: a fabric of kind tree needs this table")
        return cls(fabric=tables["fabric"], groups=tables["groups"], members=tables["members"], **known)

    @classmethod
    def drawn(
        cls,
        *,
        fabric: pd.DataFrame,
        hosts: pd.DataFrame,
        groups: pd.DataFrame,
        start: NDArray[np.int64],
        host: NDArray[np.int32],
        tenants: pd.DataFrame | None = None,
    ) -> Multicast:
        """A problem on a fat tree that our own code draws: right by construction, not looked at row by row.

        start, host  (groups + 1,) where the members of each group begin, and the row of each one's host
        """
        of = np.repeat(np.arange(len(groups), dtype=np.int32), np.diff(start))
        members = pd.DataFrame(
            {
                "group": pd.Categorical.from_codes(of, pd.Index(groups["group"]), validate=False),
                "host": pd.Categorical.from_codes(host, pd.Index(hosts["host"]), validate=False),
            },
            copy=False,
        )
        self = object.__new__(cls)
        known = {"fabric": fabric, "hosts": hosts, "groups": groups, "members": members, "tenants": tenants}
        for name in ("fabric", "hosts", "groups", "members", *OPTIONAL_TABLES):
            object.__setattr__(self, name, known.get(name))
        if faults := [*self._fabric_faults(), *self._wire()]:
            raise InputError(*faults)
        return self

    def with_members(self, group: NDArray[np.int64], host: NDArray[np.int64]) -> Multicast:
        """The same network and groups with these members, right by construction: rows of groups and hosts."""
        other = copy.copy(self)
        for name in OF_MEMBERS:
            other.__dict__.pop(name, None)
        members = pd.DataFrame(
            {
                "group": pd.Categorical.from_codes(group.astype(np.int32), self.group_names),
                "host": pd.Categorical.from_codes(host.astype(np.int32), pd.Index(self.hosts["host"])),
            }
        )
        object.__setattr__(other, "members", members)
        return other

    def with_entries(self, fabric: pd.DataFrame, switches: pd.DataFrame | None) -> Multicast:
        """The same groups on switches with other tables or copies, right by construction."""
        other = copy.copy(self)  # where groups have members was worked out already
        for name in ("free_entries", "_distributions"):
            other.__dict__.pop(name, None)
        object.__setattr__(other, "fabric", fabric)
        object.__setattr__(other, "switches", switches)
        return other

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that make this problem again."""
        found = {table.name: getattr(self, table.name) for table in TABLES}
        return {name: frame.reset_index(drop=True) for name, frame in found.items() if frame is not None}

    def size(self) -> dict[str, int]:
        """Number of hosts, groups and memberships."""
        return {"hosts": len(self.hosts), "groups": len(self.groups), "members": len(self.members)}

    # --- faults ---------------------------------------------------------------------------

    def _fabric_faults(self) -> list[str]:
        if len(self.fabric) != 1:
            return [f"fabric: has {len(self.fabric)} rows, must have one"]
        row, where = self.fabric.iloc[0], row_name(self.fabric, "fabric", 0)
        if row["kind"] not in KINDS:
            return [f"{where}: kind is '{row['kind']}', must be one of {', '.join(KINDS)}"]
        tree = row["kind"] == "tree"
        names = ["partitions", "core_copies", "aggregation_copies"]
        if not tree:
            if "k" not in self.fabric:
                return ["fabric: column 'k' is missing"]
            if self.links is not None:
                return [f"links: are for kind tree, {where} says {row['kind']}"]
            names.insert(0, "k")
        elif self.switches is None or self.links is None:
            return [f"{where}: kind tree needs the tables switches and links"]
        faults = [f"{where}: {name} is {row[name]:g}, must be whole" for name in names if row[name] % 1]
        if not faults and not tree:
            k, n, rc, ra = (int(row[name]) for name in names)
            faults = [f"{where}: {fault}" for fault in layout_faults(k, n, rc, ra)]
        return faults

    def _wire(self) -> list[str]:
        found: Wiring | None
        if self.fabric["kind"].iloc[0] != "tree":
            found, faults = fat_tree(self.kind, self.k), []
        elif self.switches is None or self.links is None or "layer" not in self.switches:
            found, faults = None, ["switches: column 'layer' is missing"]
        else:
            found, faults = wired(self.switches, self.links)
        if found is not None:
            object.__setattr__(self, "wiring", found)
        return faults

    def _switch_faults(self) -> list[str]:
        if self.switches is None:
            return []
        faults = strangers(self.switches, "switches", "switch", self.wiring.switches, "no switch")
        if not faults:
            full = np.flatnonzero(self.free_entries < 0).tolist()
            named = [
                f"switches: '{self.wiring.switches[i]}' has more entries occupied than its table holds"
                for i in full
            ]
            faults = few(named, "switches", "with more occupied than they hold")
        return faults

    def _failed_faults(self) -> list[str]:
        if self.failed is None:
            return []
        above = self.wiring.cores.append(self.wiring.aggregations)
        return strangers(self.failed, "failed", "switch", above, "no core or aggregation switch")

    def _place_hosts(self) -> list[str]:
        """Faults of the table hosts; and pod and edge filled in where their switch is named."""
        hosts = self.hosts
        if "switch" in hosts:
            faults = strangers(hosts, "hosts", "switch", self.wiring.edges, "no edge switch")
            if faults:
                return faults
            edge = self.wiring.edges.get_indexer(pd.Index(hosts["switch"]))
            placed = hosts.assign(
                pod=self.wiring.edge_pod[edge].astype(float),
                edge=self.wiring.edge_in_pod[edge].astype(float),
            ).drop(columns="switch")
            object.__setattr__(self, "hosts", placed)
            hosts = placed
        absent = [name for name in PLACES if name not in hosts]
        if absent:
            return [f"hosts: column '{absent[0]}' is missing"]
        faults = []
        edges = int(self.wiring.edge_in_pod.max()) + 1
        ports = MOST_PORTS if self.is_tree else self.half
        for name, most in zip(PLACES, (self.pods, edges, ports), strict=True):
            place = hosts[name].to_numpy()
            wrong = np.flatnonzero((place >= most) | (place % 1 != 0)).tolist()
            named = [
                f"{row_name(hosts, 'hosts', row)}: {name} is {place[row]:g}, must be whole and below {most}"
                for row in wrong
            ]
            faults += few(named, "hosts", f"with a {name} outside the fabric")
        if not faults:
            nowhere = np.flatnonzero(self.edge_of_host < 0).tolist()
            named = [f"{row_name(hosts, 'hosts', row)}: its pod has fewer edge switches" for row in nowhere]
            faults += few(named, "hosts", "outside the fabric")
        twice = np.flatnonzero(hosts.duplicated(list(PLACES))).tolist()
        named = [f"{row_name(hosts, 'hosts', row)}: another host has the same port" for row in twice]
        return faults + few(named, "hosts", "at a port that is taken")

    def _member_faults(self) -> list[str]:
        groups, hosts = pd.Index(self.groups["group"]), pd.Index(self.hosts["host"])
        faults = strangers(self.members, "members", "group", groups, "in no row of groups")
        faults += strangers(self.members, "members", "host", hosts, "no host of the fabric")
        if faults:
            return faults
        empty = np.flatnonzero(self.member_counts == 0).tolist()
        named = [
            f"{row_name(self.groups, 'groups', row)}: group '{groups[row]}' has no members" for row in empty
        ]
        return few(named, "groups", "without members")

    def _tenant_faults(self) -> list[str]:
        if self.tenants is None:
            return []
        hosts = pd.Index(self.hosts["host"])
        faults = strangers(self.tenants, "tenants", "host", hosts, "no host of the fabric")
        if "tenant" in self.groups:
            known = self.tenants["tenant"].cat.categories
            faults += strangers(self.groups, "groups", "tenant", known, "in no row of tenants")
        return faults

    def _background_faults(self) -> list[str]:
        if self.background is None:
            return []
        rows = self.background
        faults = strangers(rows, "background", "upper", self.wiring.switches, "no switch")
        below = self.wiring.aggregations.append(self.wiring.edges).append(pd.Index(self.hosts["host"]))
        faults += strangers(rows, "background", "lower", below, "no switch and no host")
        if faults:
            return faults
        wires = self.wiring
        layers = (wires.cores, wires.aggregations, wires.edges)
        core, above, edge = (names.get_indexer(pd.Index(rows["upper"])) for names in layers)
        to_aggregation = wires.aggregations.get_indexer(pd.Index(rows["lower"]))
        to_edge = wires.edges.get_indexer(pd.Index(rows["lower"]))
        to_host = pd.Index(self.hosts["host"]).get_indexer(pd.Index(rows["lower"]))
        linked = (core >= 0) & (to_aggregation >= 0) & wires.up[to_aggregation, core]
        linked |= (above >= 0) & (to_edge >= 0) & (wires.aggregation_pod[above] == wires.edge_pod[to_edge])
        linked |= (edge >= 0) & (to_host >= 0) & (self.edge_of_host[to_host] == edge)
        named = [
            f"{row_name(rows, 'background', row)}: '{rows['upper'].iloc[row]}' has no link to "
            f"'{rows['lower'].iloc[row]}'"
            for row in np.flatnonzero(~linked).tolist()
        ]
        return few(named, "background", "where there is no link")

    def _holds_faults(self) -> list[str]:
        if self.holds is None:
            if self.is_tree:
                self.distribution(self.aggregation_copies)  # InputError where there is none
            return []
        rows = self.holds
        above = self.wiring.cores.append(self.wiring.aggregations)
        faults = strangers(rows, "holds", "switch", above, "no core or aggregation switch")
        count = int(self.fabric["partitions"].iloc[0])
        named = [
            f"{row_name(rows, 'holds', row)}: partition is {rows['partition'].iloc[row]:g}, "
            f"must be whole and below {count}"
            for row in np.flatnonzero((rows["partition"] % 1 != 0) | (rows["partition"] >= count)).tolist()
        ]
        faults += few(named, "holds", "with a partition that does not exist")
        if faults:
            return faults
        return allocation.unreached(self.wiring, self.distribution(self.aggregation_copies))

    # --- the network ----------------------------------------------------------------------

    @property
    def is_tree(self) -> bool:
        """Whether the network is given by the table links."""
        return bool(self.fabric["kind"].iloc[0] == "tree")

    @cached_property
    def k(self) -> int:
        """Ports of each switch of a fat tree; as many pods. InputError for other trees."""
        if self.is_tree:
            raise InputError("fabric: kind is tree, this needs a fat tree: ab, standard or portland")
        return int(self.fabric["k"].iloc[0])

    @property
    def half(self) -> int:
        """Edge switches of a pod, aggregation switches of a pod, hosts of an edge switch of a fat tree."""
        return self.k // 2

    @property
    def kind(self) -> Kind:
        """How the pods of a fat tree connect to its cores."""
        return cast("Kind", self.fabric["kind"].iloc[0])

    @property
    def pods(self) -> int:
        return self.wiring.pods

    @property
    def edge_count(self) -> int:
        """Edge switches in all."""
        return len(self.wiring.edges)

    @cached_property
    def ports(self) -> int:
        """Ports to hosts of an edge switch: those of a fat tree, or of a tree the most that one uses."""
        return int(self.hosts["port"].max()) + 1 if self.is_tree else self.half

    @property
    def aggregation_copies(self) -> int:
        return int(self.fabric["aggregation_copies"].iloc[0])

    @cached_property
    def whole_copies(self) -> int:
        """The `copies` that say that nothing is partitioned: as many as a pod has aggregation switches."""
        return int(np.bincount(self.wiring.aggregation_pod).max())

    @cached_property
    def free_entries(self) -> NDArray[np.int64]:
        """(switches,) entries that are left for us, in the order of `wiring.switches`."""
        size = np.array([float(self.fabric[f"{layer}_entries"].iloc[0]) for layer in self.wiring.layers])
        if self.switches is not None:
            row = self.wiring.switches.get_indexer(pd.Index(self.switches["switch"]))
            if "entries" in self.switches:
                size[row] = self.switches["entries"].to_numpy()
            size[row] -= self.switches["occupied"].to_numpy()
        return np.asarray(np.floor(size), dtype=np.int64)

    def free(self, layer: str) -> NDArray[np.int64]:
        """Entries that are left for us in each switch of the layer, pod by pod."""
        return np.asarray(self.free_entries[self.wiring.layers == layer], dtype=np.int64)

    def table_size(self, layer: str) -> int:
        """Entries that are left for us in the switch of the layer that has the fewest."""
        return int(self.free(layer).min())

    def distribution(self, copies: int) -> Distribution:
        """Which switches hold which partition, where `copies` aggregation switches of a pod hold each.

        Of fat trees any that Algorithm 1 admits; of others, and with the table holds, the fabric's own;
        `whole_copies` (unless it is the fabric's own) for no partitions at all. InputError for others.
        """
        if copies not in self._distributions:
            self._distributions[copies] = self._distribution(copies)
        return self._distributions[copies]

    @cached_property
    def _distributions(self) -> dict[int, Distribution]:
        return {}

    def _distribution(self, copies: int) -> Distribution:
        wires, own = self.wiring, copies == self.aggregation_copies
        if own and self.holds is not None:
            count = int(self.fabric["partitions"].iloc[0])
            held = np.zeros((len(wires.cores) + len(wires.aggregations), count), dtype=bool)
            row = wires.cores.append(wires.aggregations).get_indexer(pd.Index(self.holds["switch"]))
            held[row, self.holds["partition"].to_numpy(np.int64)] = True
            return Distribution(core=held[: len(wires.cores)], aggregation=held[len(wires.cores) :])
        if not self.is_tree:
            if copies < 1 or self.half % copies:
                raise InputError(f"copies is {copies}, must divide {self.half}")
            return distributed(self.kind, self.k, copies)
        if own:
            n, rc = (int(self.fabric[name].iloc[0]) for name in ("partitions", "core_copies"))
            return allocation.allocated(wires, partitions=n, core_copies=rc, aggregation_copies=copies)
        if copies != self.whole_copies:
            raise InputError(
                f"copies is {copies}, must be {self.aggregation_copies}, "
                f"or {self.whole_copies} for no partitions"
            )
        return Distribution(
            core=np.ones((len(wires.cores), 1), dtype=bool),
            aggregation=np.ones((len(wires.aggregations), 1), dtype=bool),
        )

    # --- groups, as arrays ----------------------------------------------------------------

    @cached_property
    def edge_of_host(self) -> NDArray[np.int64]:
        """(hosts,) the edge switch of each, counted pod by pod; -1 outside the fabric."""
        pod, number_ = (self.hosts[name].to_numpy(np.int64) for name in ("pod", "edge"))
        count = np.bincount(self.wiring.edge_pod, minlength=self.pods)
        first = np.cumsum(count) - count
        return np.asarray(np.where(number_ < count[pod], first[pod] + number_, -1), dtype=np.int64)

    @cached_property
    def group_names(self) -> pd.Index:
        """(G,)"""
        names: pd.Index = pd.Index(self.groups["group"])
        return names

    @cached_property
    def rate_mbps(self) -> NDArray[np.float64]:
        """(G,)"""
        return self.groups["rate_mbps"].to_numpy(float)

    @cached_property
    def group_of(self) -> NDArray[np.int32]:
        """(rows of members,) the group's row."""
        return _rows(self.members["group"], pd.Index(self.groups["group"]))

    @cached_property
    def host_of(self) -> NDArray[np.int32]:
        """(rows of members,) the host's row."""
        return _rows(self.members["host"], pd.Index(self.hosts["host"]))

    @cached_property
    def member_counts(self) -> NDArray[np.int64]:
        """(G,) hosts that receive each group."""
        return np.asarray(np.bincount(self.group_of, minlength=len(self.groups)), dtype=np.int64)

    @cached_property
    def spread(self) -> Spread:
        """Edge switches and port sets of each group, group by group."""
        group, host = self.group_of, self.host_of
        if not bool((group[1:] >= group[:-1]).all()):
            host = host[np.argsort(group, kind="stable")]
        start = np.concatenate([[0], np.cumsum(self.member_counts)])
        port = self.hosts["port"].to_numpy(np.int64)
        return spread_of(start, host, self.edge_of_host, port, self.edge_count)

    @cached_property
    def at_edge(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
        """Edge switch, group and port set of each pair that meets, by edge switch, then group.

        Edge switches count pod by pod; bit p of a port set is port p.
        """
        start, group, ports = self.spread.by_edge()
        edge = np.repeat(np.arange(self.edge_count), np.diff(start))
        return edge, group.astype(np.int64), ports

    @cached_property
    def edges_in_pod(self) -> NDArray[np.int64]:
        """(G, pods) edge switches of each pod that each group reaches."""
        below = self.below
        count = np.zeros((len(self.groups), self.pods), dtype=np.int64)
        group = np.repeat(np.arange(len(count)), np.diff(below.start))
        count[group, below.edge] = np.bitwise_count(below.ports)
        return count

    @cached_property
    def below(self) -> Spread:
        """Pods of each group, with its edge switches there as bits: `spread` a layer up."""
        return self.spread.in_pods(self.wiring.edge_pod, self.wiring.edge_in_pod, self.pods)

    @cached_property
    def port_background_mbps(self) -> NDArray[np.float64]:
        """(edge switches, ports) other traffic to the host at each port: mu in equation (6)."""
        found = np.zeros((self.edge_count, self.ports))
        if self.background is not None:
            host = pd.Index(self.hosts["host"]).get_indexer(pd.Index(self.background["lower"]))
            at_host = host >= 0
            host = host[at_host]
            port = self.hosts["port"].to_numpy(np.int64)[host]
            found[self.edge_of_host[host], port] = self.background["mbps"].to_numpy()[at_host]
        return found


def _rows(names: pd.Series, known: pd.Index) -> NDArray[np.int32]:
    """The row in `known` of each category of names."""
    row = known.get_indexer(pd.Index(names.cat.categories)).astype(np.int32)
    return np.asarray(row[names.cat.codes.to_numpy()], dtype=np.int32)


def every_host(k: int) -> pd.DataFrame:
    """A host h0, h1, ... at every port of a fat tree of k-port switches."""
    pod, edge, port = (axis.ravel() for axis in np.indices((k, k // 2, k // 2)))
    return pd.DataFrame({"host": [f"h{i}" for i in range(len(pod))], "pod": pod, "edge": edge, "port": port})


__all__ = ["LAYERS", "OPTIONAL_TABLES", "TABLES", "Multicast", "every_host"]
