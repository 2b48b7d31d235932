"""Tables of a problem of system `consolidation` as arrays; `problem` validates them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models.consolidation.problem.rows import rows_of
from planner_models.consolidation.problem.schema import WHOLE_HOST
from planner_models.consolidation.problem.shapes import HostShape, Placing, list_placings
from planner_models.networks.nodes import find_names

THREADS, MEMORY = 0, 1
"""Dimensions of each host that are no resources."""


@dataclass(frozen=True, kw_only=True)
class Supply:
    """Hosts of one type in one place.

    host_type  row of the type
    zone, rack  "" where there are none
    count      hosts there; inf for as many as needed
    names      of present hosts; () where they have none
    """

    host_type: int
    zone: str
    rack: str
    count: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class DomainLimit:
    """Largest number of machines of a group in a zone or rack.

    machines  (M,) whether a shape is in the group
    domain    "zone" or "rack"
    """

    machines: Bools
    domain: str
    most: float
    group: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Conflict:
    """Two groups of which no members are in the same host, rack or zone.

    machines, others  (M,) whether a shape is in the one group, and in the other
    domain            "host", "rack" or "zone"
    """

    machines: Bools
    others: Bools
    domain: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ConsolidationTables:
    """Machines to place on hosts with NUMA nodes, and what follows from their tables.

    hosts       host_type, price_per_h, most?, helper_share, threads_per_core
    nodes       host_type, node, threads, memory_gb
    machines    machine, count, vcpus_min, vcpus_max?, memory_gb, split?, client, weight, group?, ...
    capacities, uses, rules, zones, present, now, survive, links, effects, events  see the tables; None for
    none

    Below, H is the number of host types, M that of shapes of machines, and D that of dimensions: threads,
    memory, other resources, and a dimension for each rule that limits members of a group on a host or node.
    """

    hosts: pd.DataFrame
    nodes: pd.DataFrame
    machines: pd.DataFrame
    capacities: pd.DataFrame | None = None
    uses: pd.DataFrame | None = None
    rules: pd.DataFrame | None = None
    zones: pd.DataFrame | None = None
    present: pd.DataFrame | None = None
    now: pd.DataFrame | None = None
    survive: pd.DataFrame | None = None
    links: pd.DataFrame | None = None
    effects: pd.DataFrame | None = None
    events: pd.DataFrame | None = None

    # --- types of hosts -------------------------------------------------------------------

    @cached_property
    def type_index(self) -> pd.Index:
        """Index of the names of host types."""
        return pd.Index(self.hosts["host_type"].astype(str))

    @cached_property
    def price(self) -> Floats:
        """(H,) price of a host in an hour."""
        return self.hosts["price_per_h"].to_numpy(float)

    @cached_property
    def most(self) -> Floats:
        """(H,) hosts of each type that can be had; inf for as many as needed."""
        limit = np.full(len(self.hosts), np.inf)
        if self.has_present:
            limit = self.present_count.copy()
        if "most" in self.hosts:
            stated = self.hosts["most"].to_numpy(float)
            limit = np.where(np.isnan(stated), limit, stated)
        return np.asarray(limit)

    @cached_property
    def has_present(self) -> bool:
        """Whether the table of present hosts has rows."""
        return self.present is not None and len(self.present) > 0

    @cached_property
    def present_count(self) -> Floats:
        """(H,) present hosts of each type that need not be emptied."""
        if self.present is None:
            return np.zeros(len(self.hosts))
        stays = self.present["drain"].to_numpy(float) == 0
        row = find_names(self.type_index, self.present["host_type"])[stays]
        return np.bincount(row, minlength=len(self.hosts)).astype(float)

    @cached_property
    def threads_per_core(self) -> Floats:
        """(H,) hardware threads of a core."""
        return self.hosts["threads_per_core"].to_numpy(float)

    @cached_property
    def node_type(self) -> Ints:
        """(rows of nodes) the host type of each."""
        return find_names(self.type_index, self.nodes["host_type"])

    @cached_property
    def node_rows(self) -> list[Ints]:
        """(H) rows of the table `nodes` of each type."""
        return [np.flatnonzero(self.node_type == row) for row in range(len(self.hosts))]

    def node_names(self, host_type: int) -> list[str]:
        """Return the names of the nodes of a type."""
        return [str(name) for name in self.nodes["node"].iloc[self.node_rows[host_type]]]

    @cached_property
    def helpers(self) -> Floats:
        """(H,) threads that the hypervisor keeps on each host (Deehr et al. 2014, 3.2)."""
        threads = np.bincount(
            self.node_type, self.nodes["threads"].to_numpy(float), minlength=len(self.hosts)
        )
        return np.asarray(np.floor(self.hosts["helper_share"].to_numpy(float) * threads + 1e-9))

    @cached_property
    def span_loss(self) -> Floats:
        """(H,) share of the throughput that each further node costs."""
        return self._effect("span_loss", 0.0)

    @cached_property
    def scaling(self) -> Floats:
        """(H,) exponent of the throughput over vCPUs."""
        return self._effect("scaling", 1.0)

    def _effect(self, column: str, default: float) -> Floats:
        values = np.full(len(self.hosts), default)
        if self.effects is None or not len(self.effects):
            return values
        by_name = dict(
            zip(self.effects["host_type"].astype(str), self.effects[column].to_numpy(float), strict=True)
        )
        common = by_name.get(WHOLE_HOST, default)
        return np.asarray([by_name.get(name, common) for name in self.type_index], dtype=np.float64)

    # --- dimensions -----------------------------------------------------------------------

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Names of resources that machines use, besides threads and memory."""
        if self.uses is None:
            return ()
        amount = self.uses["amount"].to_numpy(float)
        return tuple(sorted(set(self.uses["resource"].astype(str)[amount > 0])))

    @cached_property
    def host_rules(self) -> tuple[tuple[str, float, str], ...]:
        """Group, largest number of members and domain of each rule that limits members on a host or node."""
        if self.rules is None:
            return ()
        rows = self.rules[self._limits_members & self.rules["domain"].isin(["host", "node"])]
        return tuple((str(row.group), float(row.most), str(row.domain)) for row in rows_of(rows))

    @property
    def _limits_members(self) -> pd.Series:
        """Whether each row of the rules limits the members of a group: those of two groups do not."""
        assert self.rules is not None
        limits = self.rules["kind"].isin(["apart", "spread"])
        if "target" in self.rules:
            limits &= (self.rules["kind"] != "apart") | (self.rules["target"].fillna("").astype(str) == "")
        return limits

    @cached_property
    def conflicts(self) -> list[Conflict]:
        """Pairs of groups of which no members are in the same host, rack or zone."""
        if self.rules is None or "target" not in self.rules:
            return []
        rows = self.rules[(self.rules["kind"] == "apart") & ~self._limits_members]
        return [
            Conflict(
                machines=self.members(str(row.group)),
                others=self.members(str(row.target)),
                domain=str(row.domain),
            )
            for row in rows_of(rows)
        ]

    @cached_property
    def move_limits(self) -> list[tuple[Bools, float, str]]:
        """Machines, largest number of them that may move at once, and name, of each limit of moves."""
        limited = np.flatnonzero(np.isfinite(self.at_once)).tolist()
        limits = [
            (np.arange(len(self.machines)) == row, float(self.at_once[row]), str(self.machine_index[row]))
            for row in limited
        ]
        if self.rules is not None:
            rows = self.rules[self.rules["kind"] == "at_once"]
            limits += [
                (self.members(str(row.group)), float(row.most), str(row.group)) for row in rows_of(rows)
            ]
        return limits

    @cached_property
    def area_conflicts(self) -> list[Conflict]:
        """Pairs of groups of which no members are in the same rack or zone."""
        return [conflict for conflict in self.conflicts if conflict.domain != "host"]

    @cached_property
    def host_conflicts(self) -> Bools:
        """(M, M) whether machines of two shapes must not be on the same host."""
        result = np.zeros((len(self.machines), len(self.machines)), dtype=bool)
        for conflict in self.conflicts:
            if conflict.domain == "host":
                pairs = np.outer(conflict.machines, conflict.others)
                result |= pairs | pairs.T
        return result

    @cached_property
    def has_host_conflicts(self) -> bool:
        """Whether machines of some shapes must not be on the same host."""
        return bool(self.host_conflicts.any())

    @property
    def dimensions(self) -> int:
        """Number of dimensions, D."""
        return 2 + len(self.resources) + len(self.host_rules)

    @cached_property
    def host_shapes(self) -> list[HostShape]:
        """(H) capacities of the nodes and of the whole host of each type."""
        return [self._host_shape(row) for row in range(len(self.hosts))]

    def _host_shape(self, host_type: int) -> HostShape:
        rows = self.node_rows[host_type]
        node = np.full((len(rows), self.dimensions), np.inf)
        of_host = np.full(self.dimensions, np.inf)
        node[:, THREADS] = self.nodes["threads"].to_numpy(float)[rows]
        node[:, MEMORY] = self.nodes["memory_gb"].to_numpy(float)[rows]
        if self.helpers[host_type] > 0:
            of_host[THREADS] = node[:, THREADS].sum() - self.helpers[host_type]
        listed = self._capacities_of(host_type)
        for offset, resource in enumerate(self.resources):
            amounts = listed.get(resource, {})
            by_node = [amounts.get(name, 0.0) for name in self.node_names(host_type)]
            if WHOLE_HOST in amounts or not amounts:
                of_host[2 + offset] = amounts.get(WHOLE_HOST, 0.0)
            if set(amounts) - {WHOLE_HOST}:
                node[:, 2 + offset] = by_node
        for offset, (_, limit, domain) in enumerate(self.host_rules):
            column = 2 + len(self.resources) + offset
            if domain == "host":
                of_host[column] = limit
            else:
                node[:, column] = limit
        return HostShape(node=node, whole=of_host, threads_per_core=float(self.threads_per_core[host_type]))

    def _capacities_of(self, host_type: int) -> dict[str, dict[str, float]]:
        """Return the amounts of each resource of a type, by node."""
        listed: dict[str, dict[str, float]] = {}
        if self.capacities is not None:
            rows = self.capacities[self.capacities["host_type"].astype(str) == self.type_index[host_type]]
            for row in rows_of(rows):
                listed.setdefault(str(row.resource), {})[str(row.node)] = float(row.amount)
        return listed

    # --- machines -------------------------------------------------------------------------

    @cached_property
    def machine_index(self) -> pd.Index:
        """Index of the names of shapes of machines."""
        return pd.Index(self.machines["machine"].astype(str))

    @cached_property
    def count(self) -> Ints:
        """(M,) machines of each shape."""
        return np.asarray(np.rint(self.machines["count"].to_numpy(float)), dtype=np.int64)

    @cached_property
    def vcpus(self) -> Floats:
        """(M,) vCPUs that are reserved for each machine."""
        return self.machines["vcpus_min"].to_numpy(float)

    @cached_property
    def vcpus_max(self) -> Floats:
        """(M,) vCPUs that each machine can use."""
        if "vcpus_max" not in self.machines:
            return self.vcpus
        stated = self.machines["vcpus_max"].to_numpy(float)
        return np.asarray(np.where(np.isnan(stated), self.vcpus, stated))

    @cached_property
    def memory_gb(self) -> Floats:
        """(M,) memory of each machine."""
        return self.machines["memory_gb"].to_numpy(float)

    @cached_property
    def client(self) -> Floats:
        """(M,) vCPUs that are in one node together."""
        return self.machines["client"].to_numpy(float)

    @cached_property
    def weight(self) -> Floats:
        """(M,) weight of each machine."""
        return self.machines["weight"].to_numpy(float)

    @cached_property
    def split(self) -> list[str]:
        """(M) whether a shape can be in several nodes: never, even or any."""
        if "split" not in self.machines:
            return ["never"] * len(self.machines)
        return [str(value) for value in self.machines["split"]]

    @cached_property
    def has_whole_cores(self) -> Bools:
        """(M,) whether a machine shares no core with another one."""
        return self.machines["whole_cores"].to_numpy(float) > 0

    @cached_property
    def groups(self) -> list[frozenset[str]]:
        """(M) groups of each shape."""
        if "group" not in self.machines:
            return [frozenset()] * len(self.machines)
        return [
            frozenset(name.strip() for name in str(value).split(";") if name.strip())
            for value in self.machines["group"]
        ]

    @cached_property
    def at_once(self) -> Floats:
        """(M,) machines of each shape that may move at once; inf for as many as links allow."""
        if "at_once" not in self.machines:
            return np.full(len(self.machines), np.inf)
        stated = self.machines["at_once"].to_numpy(float)
        return np.asarray(np.where(np.isnan(stated), np.inf, stated))

    def members(self, group: str) -> Bools:
        """Return whether each shape is in a group, (M,); all are in the group "" of a loss."""
        return np.array([not group or group in names for names in self.groups], dtype=bool)

    @cached_property
    def needs(self) -> Floats:
        """(M, D) amount of each dimension that a machine takes; threads are its reserved vCPUs."""
        needs = np.zeros((len(self.machines), self.dimensions))
        needs[:, THREADS] = self.vcpus
        needs[:, MEMORY] = self.memory_gb
        if self.uses is not None and self.resources:
            row = find_names(self.machine_index, self.uses["machine"])
            columns: pd.Index = pd.Index(self.resources)
            column = find_names(columns, self.uses["resource"])
            used = column >= 0
            np.add.at(needs, (row[used], 2 + column[used]), self.uses["amount"].to_numpy(float)[used])
        first = 2 + len(self.resources)
        for offset, (group, _, _) in enumerate(self.host_rules):
            needs[:, first + offset] = self.members(group) if group else 0.0
        return needs

    @property
    def rule_columns(self) -> slice:
        """Dimensions of rules, of which a split machine takes its amount in each of its nodes."""
        return slice(2 + len(self.resources), self.dimensions)

    @cached_property
    def placings(self) -> list[list[list[Placing]]]:
        """(H, M) the ways in which one machine of a shape can be in an empty host of a type."""
        return [
            [list_placings(self, host_type, shape) for shape in range(len(self.machines))]
            for host_type in range(len(self.hosts))
        ]

    @cached_property
    def is_allowed(self) -> Bools:
        """(M, H) whether a machine fits in an empty host of a type that rules allow."""
        fits = np.array([[bool(ways) for ways in row] for row in self.placings], dtype=bool)
        return fits.reshape(len(self.hosts), len(self.machines)).T & self._pinned(
            "host_type", self.type_index
        )

    def _pinned(self, domain: str, names: pd.Index) -> Bools:
        """Return whether rules allow each shape in domains of these names, (M, names)."""
        allowed = np.ones((len(self.machines), len(names)), dtype=bool)
        if self.rules is None or "target" not in self.rules:
            return allowed
        rows = self.rules[self.rules["domain"] == domain]
        targets: dict[str, set[str]] = {}
        for row in rows_of(rows):
            if row.kind == "pin":
                targets.setdefault(str(row.group), set()).add(str(row.target))
            elif row.kind == "not_on":
                allowed &= ~np.outer(self.members(str(row.group)), names == str(row.target))
        for group, some in targets.items():
            allowed &= ~np.outer(self.members(group), ~names.isin(sorted(some)))
        return allowed

    @cached_property
    def own_price(self) -> Floats:
        """(M,) price that a machine without a host counts, in an hour.

        That of the most expensive host for it alone that can be had, in each of the domains that a loss names
        and one more, times its weight over the smallest one. Where hosts cost nothing, it is that of the most
        expensive one of all, or 1. No plan gains by a machine without a host.
        """
        usable = self.is_allowed & (self.most > 0)
        price = np.where(usable, self.price[None], 0.0).max(axis=1, initial=0.0)
        price = np.where(price > 0, price, self.price.max(initial=0.0) or 1.0)
        losses = np.zeros(len(price))
        if self.survive is not None:
            for row in rows_of(self.survive):
                members = self.members(str(getattr(row, "group", "") or ""))
                losses = np.maximum(losses, np.where(members, float(row.losses), 0.0))
        return np.asarray(price * (1.0 + losses) * self.weight / self.weight.min())

    # --- places ---------------------------------------------------------------------------

    @cached_property
    def zone_names(self) -> list[str]:
        """Names of the zones; [""] where there are none."""
        names: list[str] = []
        if self.zones is not None and len(self.zones):
            names = [str(name) for name in self.zones["zone"]]
        elif self.has_present and self.present is not None and "zone" in self.present:
            names = sorted(set(self.present["zone"].astype(str)))
        return names or [""]

    @cached_property
    def zone_most(self) -> Floats:
        """(zones) hosts that each zone can hold; inf for as many as needed."""
        if self.zones is None or "most" not in self.zones or not len(self.zones):
            return np.full(len(self.zone_names), np.inf)
        stated = self.zones["most"].to_numpy(float)
        return np.asarray(np.where(np.isnan(stated), np.inf, stated))

    @cached_property
    def supplies(self) -> list[Supply]:
        """Hosts that can be used, by type, zone and rack; present ones first."""
        result = self._present_supplies() if self.has_present else []
        more = self.most - (self.present_count if self.has_present else 0.0)
        for zone, of_zone in zip(self.zone_names, self.zone_most.tolist(), strict=True):
            for rack in self._racks_of(zone):
                result += [
                    Supply(host_type=row, zone=zone, rack=rack, count=float(min(more[row], of_zone)))
                    for row in range(len(self.hosts))
                    if min(more[row], of_zone) > 0
                ]
        return result

    def _racks_of(self, zone: str) -> list[str]:
        if self.zones is None or not len(self.zones) or not self._has_racks:
            return [""]
        row = self.zones[self.zones["zone"].astype(str) == zone]
        racks = int(row["racks"].iloc[0]) if len(row) else 1
        return [f"{zone} rack {number + 1}" for number in range(racks)]

    @cached_property
    def _has_racks(self) -> bool:
        """Whether zones have several racks, or rules or losses name them."""
        assert self.zones is not None
        tables = [table for table in (self.rules, self.survive) if table is not None]
        is_named = any(bool((table["domain"] == "rack").any()) for table in tables)
        return is_named or bool((self.zones["racks"].to_numpy(float) > 1).any())

    def _present_supplies(self) -> list[Supply]:
        """Return present hosts that need not be emptied; single ones where rules name hosts."""
        assert self.present is not None
        frame = self.present[self.present["drain"] == 0]
        is_named = self.rules is not None and bool((self.rules["domain"] == "host").any())
        row = find_names(self.type_index, frame["host_type"])
        zone = frame["zone"].astype(str).tolist() if "zone" in frame else [""] * len(frame)
        rack = frame["rack"].astype(str).tolist() if "rack" in frame else [""] * len(frame)
        named: dict[tuple[int, str, str, str], list[str]] = {}
        for position, name in enumerate(frame["host"].astype(str)):
            key = (int(row[position]), zone[position], rack[position], name if is_named else "")
            named.setdefault(key, []).append(name)
        limit = {
            host_type: min(float(self.most[host_type]), float(self.present_count[host_type]))
            for host_type in range(len(self.hosts))
        }
        result = []
        for (host_type, its_zone, its_rack, _), names in named.items():
            count = min(float(len(names)), limit[host_type])
            limit[host_type] -= count
            if count > 0:
                result.append(
                    Supply(host_type=host_type, zone=its_zone, rack=its_rack, count=count, names=tuple(names))
                )
        return result

    @cached_property
    def is_supplied(self) -> Bools:
        """(M, supplies) whether rules and sizes allow a machine on hosts of a supply."""
        zone, rack, host_type = (
            pd.Index([getattr(supply, name) for supply in self.supplies], dtype=object)
            for name in ("zone", "rack", "host_type")
        )
        host: pd.Index = pd.Index(
            [supply.names[0] if len(supply.names) == 1 else "" for supply in self.supplies], dtype=object
        )
        allowed = self.is_allowed[:, host_type.to_numpy(dtype=np.int64)] if len(host_type) else None
        if allowed is None:
            return np.zeros((len(self.machines), 0), dtype=bool)
        for domain, names in (("zone", zone), ("rack", rack), ("host", host)):
            allowed = allowed & self._pinned(domain, names)
        return allowed

    @cached_property
    def domain_limits(self) -> list[DomainLimit]:
        """Limits of the members of groups in zones and racks."""
        if self.rules is None:
            return []
        rows = self.rules[self._limits_members & self.rules["domain"].isin(["rack", "zone"])]
        return [
            DomainLimit(
                machines=self.members(str(row.group)),
                domain=str(row.domain),
                most=float(row.most),
                group=str(row.group),
            )
            for row in rows_of(rows)
        ]

    @property
    def rules_of_areas(self) -> bool:
        """Whether machines are together, or limited or apart in zones or racks."""
        return bool(self.bundles or self.domain_limits or self.area_conflicts)

    @cached_property
    def area_members(self) -> list[tuple[str, Bools]]:
        """Domain and members of each group that is limited in zones or racks, then of those in conflict."""
        limited = [(limit.domain, limit.machines) for limit in self.domain_limits]
        return limited + [
            (conflict.domain, members)
            for conflict in self.area_conflicts
            for members in (conflict.machines, conflict.others)
        ]

    @cached_property
    def bundles(self) -> list[tuple[str, Ints]]:
        """Domain, and rows of the shapes, of each group with all machines together in one."""
        if self.rules is None:
            return []
        rows = self.rules[self.rules["kind"] == "together"]
        result = []
        for row in rows_of(rows):
            shapes = np.flatnonzero(self.members(str(row.group)) & (self.count > 0))
            if len(shapes):
                result.append((str(row.domain), shapes))
        return result
