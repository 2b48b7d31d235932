"""Tables of a shared store as arrays, with look-ups of their rows; the problem checks them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models.fairshare.problem.schema import ANY, COST, FIXED, READS, REQUESTS, WRITES


def add_up(keys: Ints, weights: Floats, minlength: int) -> Floats:
    """Return the sum of the weights of each key, (minlength,) or longer."""
    return np.bincount(keys, weights=weights, minlength=minlength).astype(np.float64)


def _find_in(index: pd.Index, names: pd.Series) -> Ints:
    """Return the positions of names in an index, -1 for none; each name is looked up once."""
    number, distinct = pd.factorize(names)
    row = index.get_indexer(pd.Index([str(name) for name in distinct], dtype=object))
    return np.asarray(np.append(row, -1)[number], dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class StoreTables:
    """Tables of a problem of `fairshare`, see `SharedStore`, with their rows as arrays."""

    nodes: pd.DataFrame
    tenants: pd.DataFrame
    partitions: pd.DataFrame
    groups: pd.DataFrame | None = None
    resources: pd.DataFrame | None = None
    uses: pd.DataFrame | None = None
    placed: pd.DataFrame | None = None
    pinned: pd.DataFrame | None = None
    forbidden: pd.DataFrame | None = None
    events: pd.DataFrame | None = None

    @cached_property
    def node_names(self) -> np.ndarray:
        """(N,) names of the nodes."""
        return self.nodes["node"].astype(str).to_numpy(object)

    @cached_property
    def is_failed(self) -> Bools:
        """(N,) whether the node does not work."""
        return self.nodes["failed"].to_numpy(float) > 0

    @cached_property
    def rate_kops(self) -> Floats:
        """(N,) requests that each node serves; 0 for a failed one."""
        rate: Floats = np.where(self.is_failed, 0.0, self.nodes["rate_kops"].to_numpy(float))
        return rate

    @cached_property
    def memory_gb(self) -> Floats:
        """(N,) memory of each node; 0 for a failed one."""
        memory: Floats = np.where(self.is_failed, 0.0, self.nodes["memory_gb"].to_numpy(float))
        return memory

    @cached_property
    def domain(self) -> Ints:
        """(N,) number of each node's domain; nodes without one are domains of their own."""
        if "domain" not in self.nodes:
            return np.arange(len(self.nodes))
        domains = self.nodes["domain"].fillna("").astype(str).to_numpy(object)
        names = np.where(domains == "", "\0" + self.node_names.astype(str), domains.astype(str))
        return np.unique(names, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def tenant_names(self) -> np.ndarray:
        """(T,) names of the tenants."""
        return self.tenants["tenant"].astype(str).to_numpy(object)

    @cached_property
    def weight(self) -> Floats:
        """(T,) weight of each tenant."""
        return self.tenants["weight"].to_numpy(float)

    @cached_property
    def is_fixed(self) -> Bools:
        """(T,) whether the tenant's requests keep their proportions."""
        return (self.tenants["mix"].astype(str) == FIXED).to_numpy()

    @cached_property
    def most_nodes(self) -> Ints:
        """(T,) nodes that each tenant's partitions may be on."""
        if "most_nodes" not in self.tenants:
            return np.full(len(self.tenants), len(self.nodes))
        limit = self.tenants["most_nodes"].to_numpy(float)
        return np.where(np.isnan(limit), len(self.nodes), limit).astype(np.int64)

    @cached_property
    def requested_kops(self) -> Floats:
        """(T,) requests of each tenant, whatever its limit."""
        return add_up(self.tenant, self.demand_kops, len(self.tenants))

    @cached_property
    def limit_kops(self) -> Floats:
        """(T,) requests that each tenant is served at most; infinite without a limit."""
        if "limit_kops" not in self.tenants:
            return np.full(len(self.tenants), np.inf)
        limit = self.tenants["limit_kops"].to_numpy(float)
        return np.where(np.isnan(limit), np.inf, limit)

    @cached_property
    def demand_of_tenant(self) -> Floats:
        """(T,) requests of each tenant, up to its limit."""
        return np.asarray(np.minimum(self.requested_kops, self.limit_kops))

    @cached_property
    def reserved_kops(self) -> Floats:
        """(T,) requests that each tenant is due before weights count: those reserved that it demands."""
        return self.reserve(self.demand_of_tenant)

    def reserve(self, demand_kops: Floats) -> Floats:
        """Return the reserved rates of tenants with other demands, up to these, (T,)."""
        if "reserved_kops" not in self.tenants:
            return np.zeros(len(self.tenants))
        reserved = self.tenants["reserved_kops"].fillna(0.0).to_numpy(float)
        return np.asarray(np.minimum(reserved, demand_kops))

    @cached_property
    def has_reserved(self) -> bool:
        """True where any tenant has a reserved rate."""
        return bool((self.reserved_kops > 0).any())

    @cached_property
    def has_groups(self) -> bool:
        """True where any tenant is in a group."""
        return bool((self.group_of_tenant >= 0).any())

    @cached_property
    def group_names(self) -> np.ndarray:
        """(G,) names of the groups."""
        if self.groups is None:
            return np.zeros(0, dtype=object)
        return self.groups["group"].astype(str).to_numpy(object)

    @cached_property
    def group_of_tenant(self) -> Ints:
        """(T,) row of each tenant's group, -1 for none."""
        if "group" not in self.tenants:
            return np.full(len(self.tenants), -1)
        return _find_in(pd.Index(self.group_names), self.tenants["group"].fillna("").astype(str))

    @cached_property
    def parent_of_group(self) -> Ints:
        """(G,) row of the group that each group is part of, -1 for none."""
        if self.groups is None or "parent" not in self.groups:
            return np.full(len(self.group_names), -1)
        return _find_in(pd.Index(self.group_names), self.groups["parent"].fillna("").astype(str))

    @cached_property
    def weight_of_group(self) -> Floats:
        """(G,) weight of each group."""
        return np.zeros(0) if self.groups is None else self.groups["weight"].to_numpy(float)

    def admit(self, demand_kops: Floats) -> Floats:
        """Return demands of partitions (P,), lowered in proportion where a tenant has a limit below them."""
        total = add_up(self.tenant, demand_kops, len(self.tenants))
        factor = np.divide(self.limit_kops, total, out=np.ones_like(total), where=total > self.limit_kops)
        return np.asarray(demand_kops * factor[self.tenant])

    @cached_property
    def outstanding(self) -> Floats:
        """(T,) requests that each tenant keeps waiting; NaN where the table does not say."""
        if "outstanding" not in self.tenants:
            return np.full(len(self.tenants), np.nan)
        return self.tenants["outstanding"].to_numpy(float)

    @cached_property
    def partition_names(self) -> np.ndarray:
        """(P,) names of the partitions, each with its tenant's own."""
        return self.partitions["partition"].astype(str).to_numpy(object)

    @cached_property
    def tenant(self) -> Ints:
        """(P,) tenant of each partition."""
        owners = pd.Index(self.partitions["tenant"].astype(str))
        return np.asarray(pd.Index(self.tenant_names).get_indexer(owners), dtype=np.int64)

    @cached_property
    def demand_kops(self) -> Floats:
        """(P,) requests for each partition."""
        return self.partitions["demand_kops"].to_numpy(float)

    @cached_property
    def size_gb(self) -> Floats:
        """(P,) memory of a replica of each partition."""
        return self.partitions["size_gb"].to_numpy(float)

    @cached_property
    def share_of_tenant(self) -> Floats:
        """(P,) part of its tenant's requests that are for a partition; 0 for a tenant without any."""
        total = self.requested_kops[self.tenant]
        return np.divide(self.demand_kops, total, out=np.zeros_like(total), where=total > 0)

    @cached_property
    def wanted_replicas(self) -> Ints:
        """(P,) replicas of each partition, at most one for each domain that works."""
        working = len(np.unique(self.domain[~self.is_failed]))
        replicas = np.minimum(self.tenants["replicas"].to_numpy(float).astype(np.int64), max(working, 1))
        return np.asarray(replicas[self.tenant])

    def find_partitions(self, frame: pd.DataFrame) -> Ints:
        """Return the partitions that columns `tenant` and `partition` of a table name; -1 for none."""
        names, keys = self._partition_index
        tenant, name = self.find_tenants(frame["tenant"]), _find_in(names, frame["partition"])
        row = keys.get_indexer(pd.Index(tenant * max(len(names), 1) + name))
        return np.where((tenant >= 0) & (name >= 0), row, -1).astype(np.int64)

    @cached_property
    def _partition_index(self) -> tuple[pd.Index, pd.Index]:
        """Names of partitions, and (P,) the number of each partition's tenant and name."""
        number, names = pd.factorize(self.partition_names)
        return pd.Index(names), pd.Index(self.tenant * max(len(names), 1) + number)

    @cached_property
    def _node_index(self) -> pd.Index:
        names: pd.Index = pd.Index(self.node_names)
        return names

    @cached_property
    def _tenant_index(self) -> pd.Index:
        names: pd.Index = pd.Index(self.tenant_names)
        return names

    def find_nodes(self, names: pd.Series) -> Ints:
        """Return the nodes of these names; -1 for none."""
        return _find_in(self._node_index, names)

    def find_tenants(self, names: pd.Series) -> Ints:
        """Return the tenants of these names; -1 for none."""
        return _find_in(self._tenant_index, names)

    @cached_property
    def placed_replicas(self) -> tuple[Ints, Ints]:
        """Return the partition and the node of each replica that is placed now, by partition."""
        if self.placed is None or not len(self.placed):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        partition, node = self.find_partitions(self.placed), self.find_nodes(self.placed["node"])
        order = np.lexsort((node, partition))
        return partition[order], node[order]

    def _mark(self, table: pd.DataFrame | None) -> Bools | None:
        """Return (P, N) whether a table of rules names a partition and a node; None without rules."""
        if table is None or not len(table):
            return None
        tenant, partition = (table[name].astype(str).to_numpy(object) for name in ("tenant", "partition"))
        any_tenant, any_partition = tenant == ANY, partition == ANY
        node = self.find_nodes(table["node"])
        has_node = node >= 0  # else it is any
        name_of, names = pd.factorize(self.partition_names)
        marked = np.zeros((len(self.partitions), len(self.nodes)), dtype=bool)
        for is_chosen, row, group_of in (
            (~any_tenant & ~any_partition, self.find_partitions(table), np.arange(len(marked))),
            (~any_tenant & any_partition, pd.Index(self.tenant_names).get_indexer(tenant), self.tenant),
            (any_tenant & ~any_partition, pd.Index(names).get_indexer(partition), name_of),
            (any_tenant & any_partition, np.zeros(len(table), dtype=np.int64), np.zeros_like(name_of)),
        ):
            if is_chosen.any():
                groups = np.zeros((int(group_of.max()) + 1, len(self.nodes)), dtype=bool)
                groups[row[is_chosen & ~has_node]] = True
                groups[row[is_chosen & has_node], node[is_chosen & has_node]] = True
                marked |= groups[group_of]
        return marked

    @cached_property
    def is_pinned(self) -> Bools | None:
        """(P, N) whether a partition must have a replica on a node that works; None without such rules."""
        marked = self._mark(self.pinned)
        return None if marked is None else marked & ~self.is_failed

    @cached_property
    def is_forbidden(self) -> Bools | None:
        """(P, N) whether a partition must have no replica on a node; None without such rules."""
        return self._mark(self.forbidden)

    @cached_property
    def write_share(self) -> Floats:
        """(T,) part of each tenant's requests that are writes."""
        return self._blank_column(self.tenants, "write_share", 0.0)

    def _blank_column(self, table: pd.DataFrame, name: str, value: float | Floats) -> Floats:
        """Return an optional column of a table, with a value where it has none."""
        if name not in table:
            return np.full(len(table), value, dtype=float)
        column = table[name].to_numpy(float)
        return np.where(np.isnan(column), value, column)

    @cached_property
    def own_resources(self) -> dict[str, tuple[Floats, Floats]]:
        """Capacity at each node (N,), and use by a thousand requests of each tenant (T,), by resource.

        Requests; reads and writes where nodes limit them; the cost of requests where writes cost more.
        """
        rate, writes = self.nodes["rate_kops"].to_numpy(float), self.write_share
        resources = {REQUESTS: (rate, np.ones(len(self.tenants)))}
        for name, column, share in ((READS, "read_kops", 1 - writes), (WRITES, "write_kops", writes)):
            if column in self.nodes and self.nodes[column].notna().any():
                resources[name] = (self._blank_column(self.nodes, column, rate), share)
        cost = self._blank_column(self.tenants, "write_cost", 1.0)
        if ((cost > 1) & (writes > 0)).any():
            resources[COST] = (rate, 1 + writes * (cost - 1))
        return resources

    @cached_property
    def resource_names(self) -> list[str]:
        """(R,) names of the resources; the first one is requests."""
        further = (
            [] if self.resources is None else list(dict.fromkeys(self.resources["resource"].astype(str)))
        )
        return [*self.own_resources, *further]

    @cached_property
    def capacity(self) -> Floats:
        """(N, R) capacity of each resource of each node: thousands of requests per second, then as given.

        A node without a row of a resource has none of it.
        """
        matrix = np.zeros((len(self.nodes), len(self.resource_names)))
        for number, (capacity, _) in enumerate(self.own_resources.values()):
            matrix[:, number] = capacity
        if self.resources is not None and len(self.resources):
            column = pd.Index(self.resource_names).get_indexer(
                pd.Index(self.resources["resource"].astype(str))
            )
            matrix[self.find_nodes(self.resources["node"]), column] = self.resources["capacity"]
        matrix[self.is_failed] = 0.0
        return matrix

    @cached_property
    def per_op(self) -> Floats:
        """(T, R) use of each resource by a thousand requests of a tenant; 1 of requests."""
        matrix = np.zeros((len(self.tenants), len(self.resource_names)))
        for number, (_, use) in enumerate(self.own_resources.values()):
            matrix[:, number] = use
        if self.uses is not None and len(self.uses):
            column = pd.Index(self.resource_names).get_indexer(pd.Index(self.uses["resource"].astype(str)))
            row = pd.Index(self.tenant_names).get_indexer(pd.Index(self.uses["tenant"].astype(str)))
            matrix[row, column] = self.uses["per_op"]
        return matrix
