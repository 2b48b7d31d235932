"""The problem of system `multicast`: groups on a multi-rooted tree of switches with few table entries."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import collect_tables, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.multicast.problem import address_allocation, topology, validation
from planner_models.multicast.problem.equations import Layout
from planner_models.multicast.problem.schema import OPTIONAL_TABLES, PROCESSOR_MBPS, TABLES
from planner_models.multicast.problem.topology import (
    LAYERS,
    Distribution,
    Kind,
    Wiring,
    distribute_addresses,
    find_rows,
)
from planner_models.multicast.problem.workloads import Spread, collect_spread

# cached properties that depend on members, stale when they change
MEMBER_PROPERTIES: Final = (
    "group_of",
    "host_of",
    "member_counts",
    "spread",
    "at_edge",
    "edges_in_pod",
    "below",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Multicast:
    """Groups with members on the hosts of a multi-rooted tree.

    fabric      one row: kind, k, partitions, core_copies, aggregation_copies and *_entries by layer
    hosts       one row a host: host, pod, edge, port
    groups      one row a group: group, rate_mbps, tenant where tenants are known
    members     one row a membership: group, host
    switches    every switch of a tree; of a fat tree those whose table differs; None: no table differs
    links       links of a tree; None for fat trees
    holds       given partitions of switches; None: address distribution computes them
    background  other traffic on links; None: no other traffic
    failed      switches that have failed; None: no failure
    failed_links  links (lower, upper) that have failed; None: no failure
    tenants     placement of tenants; None: unknown

    raises  InputError with every fault: numbers that Algorithm 1 does not admit, a host outside the fabric,
            two hosts at one port, a member that is no host or of no group, a group without members,
            partitions that do not reach a pod
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
    failed_links: pd.DataFrame | None = None
    tenants: pd.DataFrame | None = None
    wiring: Wiring = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._require(validate_fields(self, TABLES))
        self._read_layers()
        self._wire()
        hosts, faults = validation.locate_hosts(self.hosts, self.wiring)
        object.__setattr__(self, "hosts", hosts)
        ports = validation.MAX_PORTS if self.is_tree else self.half
        self._require(
            validation.find_switch_faults(self.switches, self.wiring, lambda: self.free_entries),
            validation.find_failed_faults(self.failed, self.failed_links, self.wiring),
            faults or validation.find_host_faults(self.hosts, self.wiring, ports),
        )
        names = self.host_names
        self._require(
            validation.find_member_faults(self.members, self.groups, names),
            validation.find_tenant_faults(self.tenants, self.groups, names),
            validation.find_background_faults(self.background, self.wiring, names, self.edge_of_host),
            self._find_holds_faults(),
        )

    def _read_layers(self) -> None:
        """Set layers by their usual names, and two tiers as one pod; InputError with the faults of these."""
        switches, links = self.switches, self.links
        is_tree = len(self.fabric) == 1 and self.is_tree
        if not is_tree or switches is None or links is None or "layer" not in switches:
            return
        switches = topology.name_layers(switches)
        object.__setattr__(self, "switches", switches)
        if not topology.is_two_tiers(switches):
            return
        merged = topology.merge_pods(self.fabric, switches, links, self.hosts)
        self._require(merged.faults)
        for name in ("fabric", "switches", "hosts"):
            object.__setattr__(self, name, getattr(merged, name))

    def _find_holds_faults(self) -> list[str]:
        """Return the faults of the table `holds`; InputError for a tree that has no distribution."""
        if self.holds is None:
            if self.is_tree:
                self.distribution(self.aggregation_copies)
            return []
        count = int(self.fabric["partitions"].iloc[0])
        return validation.find_holds_faults(
            self.holds, self.wiring, count
        ) or address_allocation.find_unreachable_partitions(
            self.wiring, self.distribution(self.aggregation_copies)
        )

    @staticmethod
    def _require(*faults: list[str]) -> None:
        """Raise InputError with all faults, if there are any."""
        if any(faults):
            raise InputError(*(fault for each in faults for fault in each))

    def _wire(self) -> None:
        """Set `wiring`; InputError with the faults of the tables that describe it."""
        tables = self.fabric, self.switches, self.links
        self._require(validation.find_fabric_faults(*tables))
        wiring, faults = validation.build_wiring(*tables)
        self._require(faults)
        object.__setattr__(self, "wiring", wiring)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Multicast:
        """Return the problem in the tables fabric, groups and members, and the optional ones.

        Without the table hosts, every port of a fat tree has a host.
        """
        tables = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        inputs = {name: tables[name] for name in OPTIONAL_TABLES if name in tables}
        if "hosts" not in inputs:
            fabric = tables["fabric"]  # not validated yet
            ports = pd.to_numeric(fabric["k"] if "k" in fabric else pd.Series(dtype=float), errors="coerce")
            k = ports.iloc[0] if len(ports) else 2
            inputs["hosts"] = list_hosts(int(k) if 2 <= k <= 64 else 2)
            if "kind" in fabric and "tree" in fabric["kind"].tolist():
                raise InputError("hosts: a fabric of kind tree needs this table")
        return cls(fabric=tables["fabric"], groups=tables["groups"], members=tables["members"], **inputs)

    @classmethod
    def from_arrays(
        cls,
        *,
        fabric: pd.DataFrame,
        hosts: pd.DataFrame,
        groups: pd.DataFrame,
        start: Ints,
        host: NDArray[np.int32],
        tenants: pd.DataFrame | None = None,
    ) -> Multicast:
        """Return a problem on a fat tree from generated arrays, valid by construction: rows are not checked.

        start  (groups + 1,) first member of each group
        host   (members,) row of each member's host
        """
        group = np.repeat(np.arange(len(groups), dtype=np.int32), np.diff(start))
        members = pd.DataFrame(
            {
                "group": pd.Categorical.from_codes(group, pd.Index(groups["group"]), validate=False),
                "host": pd.Categorical.from_codes(host, pd.Index(hosts["host"]), validate=False),
            },
            copy=False,
        )
        self = object.__new__(cls)
        tables = {"fabric": fabric, "hosts": hosts, "groups": groups, "members": members, "tenants": tenants}
        for name in ("fabric", "hosts", "groups", "members", *OPTIONAL_TABLES):
            object.__setattr__(self, name, tables.get(name))
        self._wire()
        return self

    def with_members(self, group: Ints, host: Ints) -> Multicast:
        """Return the same network and groups with these members, valid by construction: rows of each."""
        members = pd.DataFrame(
            {
                "group": pd.Categorical.from_codes(group.astype(np.int32), self.group_names),
                "host": pd.Categorical.from_codes(host.astype(np.int32), pd.Index(self.hosts["host"])),
            }
        )
        return self._copy(MEMBER_PROPERTIES, members=members)

    def with_rates(self, rate_mbps: Floats) -> Multicast:
        """Return the same groups with other rates, (G,) Mbit/s."""
        return self._copy(("rate_mbps",), groups=self.groups.assign(rate_mbps=rate_mbps))

    def without_groups(self, left_out: Bools) -> Multicast:
        """Return the same network without these groups, (G,), and their members."""
        stays = ~left_out
        number, here = np.cumsum(stays) - 1, stays[self.group_of]
        groups = self.groups[stays].reset_index(drop=True)
        group = pd.Categorical.from_codes(number[self.group_of[here]], pd.Index(groups["group"]))
        host = pd.Categorical.from_codes(self.host_of[here], self.host_names)
        members = pd.DataFrame({"group": group, "host": host})
        return self._copy((*MEMBER_PROPERTIES, "group_names", "rate_mbps"), groups=groups, members=members)

    def with_entries(self, fabric: pd.DataFrame, switches: pd.DataFrame | None) -> Multicast:
        """Return the same groups on switches with tables of other sizes, valid by construction."""
        return self._copy(("free_entries",), fabric=fabric, switches=switches)

    def with_layout(self, layout: Layout) -> Multicast:
        """Return the same groups with other n, rc and ra, distributed by Algorithm 1."""
        numbers = {name: float(value) for name, value in vars(layout).items()}
        return self._copy(("_distributions",), fabric=self.fabric.assign(**numbers), holds=None)

    def with_failed(self, names: Sequence[str], links: Sequence[tuple[str, str]] = ()) -> Multicast:
        """Return the same problem where these switches, and links (lower, upper), have failed.

        No derived array depends on failures.
        """
        lower, upper = ([link[end] for link in links] for end in (0, 1))
        return self._copy(
            (),
            failed=pd.DataFrame({"switch": pd.Series(list(names), dtype=str)}),
            failed_links=pd.DataFrame({"lower": lower, "upper": upper}) if links else None,
        )

    @property
    def failed_names(self) -> list[str]:
        """Return the names of the switches that have failed."""
        return [] if self.failed is None else self.failed["switch"].astype(str).tolist()

    @property
    def failed_pairs(self) -> list[tuple[str, str]]:
        """Return the links (lower, upper) that have failed."""
        if self.failed_links is None:
            return []
        columns = (self.failed_links[end].astype(str).tolist() for end in ("lower", "upper"))
        return list(zip(*columns, strict=True))

    @property
    def has_failures(self) -> bool:
        """Return whether failures are given, which may be an empty list."""
        return self.failed is not None or self.failed_links is not None

    def _copy(self, stale: Iterable[str], **tables: pd.DataFrame | None) -> Multicast:
        """Return a copy with other tables, without the cached properties that are stale."""
        other = copy.copy(self)
        for name in stale:
            other.__dict__.pop(name, None)
        for name, frame in tables.items():
            object.__setattr__(other, name, frame)
        return other

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of hosts, groups and memberships."""
        return {"hosts": len(self.hosts), "groups": len(self.groups), "members": len(self.members)}

    # --- the network ----------------------------------------------------------------------

    @property
    def is_tree(self) -> bool:
        """Return whether the table links describes the network."""
        return bool(self.fabric["kind"].iloc[0] == "tree")

    @cached_property
    def k(self) -> int:
        """Ports of each switch of a fat tree, and number of pods. InputError for other trees."""
        if self.is_tree:
            raise InputError("fabric: kind is tree, this needs a fat tree: ab, standard or portland")
        return int(self.fabric["k"].iloc[0])

    @property
    def half(self) -> int:
        """Edge and aggregation switches of a pod, and hosts of an edge switch, of a fat tree."""
        return self.k // 2

    @property
    def kind(self) -> Kind:
        """Connection of the pods of a fat tree to its cores."""
        return cast("Kind", self.fabric["kind"].iloc[0])

    @property
    def pods(self) -> int:
        """Number of pods."""
        return self.wiring.pods

    @property
    def edge_count(self) -> int:
        """Number of edge switches of all pods."""
        return len(self.wiring.edges)

    @cached_property
    def ports(self) -> int:
        """Ports to hosts of an edge switch: those of a fat tree; of a tree the largest number in use."""
        return int(self.hosts["port"].max()) + 1 if self.is_tree else self.half

    @property
    def aggregation_copies(self) -> int:
        """Aggregation switches of a pod that hold each partition (ra)."""
        return int(self.fabric["aggregation_copies"].iloc[0])

    @cached_property
    def whole_copies(self) -> int:
        """Number of `copies` without partitioning: the aggregation switches of the largest pod."""
        return int(np.bincount(self.wiring.aggregation_pod).max())

    @cached_property
    def free_entries(self) -> Ints:
        """Free table entries, shape (switches,), in the order of `wiring.switches`."""
        size, occupied = self.table_sizes
        return np.asarray(np.floor(size - occupied), dtype=np.int64)

    @property
    def table_sizes(self) -> tuple[Floats, Floats]:
        """Table entries of each switch, and those that others occupy, shapes (switches,)."""
        layers, layer = np.unique(self.wiring.layers, return_inverse=True)
        size = np.array([float(self.fabric[f"{name}_entries"].iloc[0]) for name in layers])[layer]
        occupied = np.zeros(len(size))
        if self.switches is not None:
            row = find_rows(self.wiring.switches, self.switches["switch"])
            if "entries" in self.switches:
                size[row] = self.switches["entries"].to_numpy()
            occupied[row] = self.switches["occupied"].to_numpy()
        return size, occupied

    @property
    def processor_mbps(self) -> float:
        """Traffic of groups without an entry that the processor of each switch forwards."""
        if "processor_mbps" not in self.fabric:
            return PROCESSOR_MBPS
        return float(self.fabric["processor_mbps"].iloc[0])

    def free(self, layer: str) -> Ints:
        """Return the free table entries of each switch of the layer, pod by pod."""
        return np.asarray(self.free_entries[self.wiring.layers == layer], dtype=np.int64)

    def table_size(self, layer: str) -> int:
        """Return the free entries of the switch of the layer with the fewest."""
        return int(self.free(layer).min())

    def distribution(self, copies: int) -> Distribution:
        """Return the switches that hold each partition, with `copies` aggregation switches of a pod for each.

        For fat trees `copies` is any that Algorithm 1 admits; for other trees, and with the table holds, it
        is the fabric's own; `whole_copies` (unless it is the fabric's own) stands for no partitions at all.

        raises  InputError for other copies
        """
        if copies not in self._distributions:
            self._distributions[copies] = self._distribution(copies)
        return self._distributions[copies]

    @cached_property
    def _distributions(self) -> dict[int, Distribution]:
        """Cache of distributions by copies."""
        return {}

    def _distribution(self, copies: int) -> Distribution:
        """Compute the distribution for `copies`."""
        wires, is_current = self.wiring, copies == self.aggregation_copies
        if is_current and self.holds is not None:
            count = int(self.fabric["partitions"].iloc[0])
            held = np.zeros((len(wires.cores) + len(wires.aggregations), count), dtype=bool)
            row = find_rows(wires.above, self.holds["switch"])
            held[row, self.holds["partition"].to_numpy(np.int64)] = True
            return Distribution(core=held[: len(wires.cores)], aggregation=held[len(wires.cores) :])
        if not self.is_tree:
            if copies < 1 or self.half % copies:
                raise InputError(f"copies is {copies}, must divide {self.half}")
            return distribute_addresses(self.kind, self.k, copies)
        if is_current:
            n, rc = (int(self.fabric[name].iloc[0]) for name in ("partitions", "core_copies"))
            return address_allocation.allocate_addresses(
                wires, partitions=n, core_copies=rc, aggregation_copies=copies
            )
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
    def edge_of_host(self) -> Ints:
        """Edge switch of each host, shape (hosts,), counted pod by pod; -1 outside the fabric."""
        pod, number = (self.hosts[name].to_numpy(np.int64) for name in ("pod", "edge"))
        count = np.bincount(self.wiring.edge_pod, minlength=self.pods)
        first = np.cumsum(count) - count
        return np.asarray(np.where(number < count[pod], first[pod] + number, -1), dtype=np.int64)

    @cached_property
    def group_names(self) -> pd.Index:
        """Names of groups, shape (G,)."""
        names: pd.Index = pd.Index(self.groups["group"])
        return names

    @property
    def host_names(self) -> pd.Index:
        """Names of hosts, shape (hosts,)."""
        names: pd.Index = pd.Index(self.hosts["host"])
        return names

    @cached_property
    def rate_mbps(self) -> Floats:
        """Floats of groups, shape (G,)."""
        return self.groups["rate_mbps"].to_numpy(float)

    @cached_property
    def group_of(self) -> NDArray[np.int32]:
        """Row of the group of each membership, shape (members,)."""
        return find_rows(self.group_names, self.members["group"]).astype(np.int32)

    @cached_property
    def host_of(self) -> NDArray[np.int32]:
        """Row of the host of each membership, shape (members,)."""
        return find_rows(self.host_names, self.members["host"]).astype(np.int32)

    @cached_property
    def member_counts(self) -> Ints:
        """Hosts that receive each group, shape (G,)."""
        return np.asarray(np.bincount(self.group_of, minlength=len(self.groups)), dtype=np.int64)

    @cached_property
    def spread(self) -> Spread:
        """Edge switches and port sets of each group, group by group."""
        group, host = self.group_of, self.host_of
        if not bool((group[1:] >= group[:-1]).all()):
            host = host[np.argsort(group, kind="stable")]
        start = np.concatenate([[0], np.cumsum(self.member_counts)])
        port = self.hosts["port"].to_numpy(np.int64, copy=True)  # writable: compiled once
        return collect_spread(start, host, self.edge_of_host, port, self.edge_count)

    @cached_property
    def at_edge(self) -> tuple[Ints, Ints, NDArray[np.uint64]]:
        """Edge switch, group and port set of each pair of edge switch and group, by edge switch, then group.

        Edge switches count pod by pod; bit p of a port set is port p.
        """
        start, group, ports = self.spread.by_edge()
        edge = np.repeat(np.arange(self.edge_count), np.diff(start))
        return edge, group.astype(np.int64), ports

    @cached_property
    def edges_in_pod(self) -> Ints:
        """Edge switches of each pod with members of each group, shape (G, pods)."""
        below = self.below
        count = np.zeros((len(self.groups), self.pods), dtype=np.int64)
        group = np.repeat(np.arange(len(count)), np.diff(below.start))
        count[group, below.edge] = np.bitwise_count(below.ports)
        return count

    @cached_property
    def below(self) -> Spread:
        """Pods of each group, with its edge switches there as bits: `spread` one layer up."""
        return self.spread.in_pods(self.wiring.edge_pod, self.wiring.edge_in_pod, self.pods)

    @cached_property
    def port_background_mbps(self) -> Floats:
        """Other traffic to the host at each port, shape (edge switches, ports): mu in equation (6)."""
        background = np.zeros((self.edge_count, self.ports))
        if self.background is not None:
            host = find_rows(self.host_names, self.background["lower"])
            at_host = host >= 0
            host = host[at_host]
            port = self.hosts["port"].to_numpy(np.int64)[host]
            background[self.edge_of_host[host], port] = self.background["mbps"].to_numpy()[at_host]
        return background


def list_hosts(k: int) -> pd.DataFrame:
    """Return the hosts h0, h1, ..., one at every port of a fat tree of k-port switches."""
    pod, edge, port = (axis.ravel() for axis in np.indices((k, k // 2, k // 2)))
    return pd.DataFrame({"host": [f"h{i}" for i in range(len(pod))], "pod": pod, "edge": edge, "port": port})


__all__ = ["LAYERS", "OPTIONAL_TABLES", "TABLES", "Multicast", "list_hosts"]
