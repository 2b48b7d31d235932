"""Workloads of section 4.1: tenants, their placement and their groups, drawn by compiled code.

All that determines how many groups fit is stratified, so that capacities vary little between seeds:
tenant sizes are quantiles of their distribution, groups are apportioned to them, group sizes run through
the quantiles of theirs, and the order of tenants on the hosts has its own parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python

Placement = Annotated[
    Literal["near", "random"], Field(description="a tenant's hosts: adjacent, or drawn at random")
]
Sizes = Annotated[
    Literal["wve", "uniform"], Field(description="group sizes: mostly small, or uniform up to the tenant")
]

VMS_PER_HOST: Final = 20  # section 4.1
SMALL_GROUP_FRACTION: Final = 0.9785  # of WVE groups, which are a small part of their tenant
MEAN_SMALL_SHARE: Final = 0.0298  # of the tenant, mean of an exponential; other groups are 0.8 to 1.0 of it
GOLDEN_RATIO: Final = 0.6180339887498949  # multiples of it spread evenly over [0, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """Groups in the order of their arrival, each with members drawn from its tenant's hosts.

    tenant      (groups,) tenant of each
    size        (groups,) members
    rate_mbps   (groups,)
    hosts       hosts of all tenants, one tenant after the other
    first_host  (tenants + 1,) first of each tenant in `hosts`
    seed        seed of the members
    """

    tenant: Ints
    size: Ints
    rate_mbps: Floats
    hosts: NDArray[np.int32]
    first_host: Ints
    seed: int

    def members(self) -> tuple[Ints, NDArray[np.int32]]:
        """Return the first member of each group (groups + 1,), and the hosts of all members."""
        start = np.concatenate([[0], np.cumsum(self.size)])
        return start, _draw_members(self.hosts.copy(), self.first_host, self.tenant, start, self.seed)

    def spread(self, edge_of: Ints, port_of: Ints, edges: int) -> Spread:
        """Return the edge switches and ports of each group, without a list of its members.

        edge_of, port_of  (hosts of the fabric,) place of each
        """
        tenant = np.repeat(np.arange(len(self.first_host) - 1), np.diff(self.first_host))
        has = np.zeros((len(self.first_host) - 1, edges), dtype=bool)
        has[tenant, edge_of[self.hosts]] = True
        start, edge, ports = _draw_spread(
            self.hosts.copy(),
            self.first_host,
            self.tenant,
            self.size,
            self.seed,
            (edge_of, port_of),
            has.sum(axis=1),
        )
        return Spread(start=start, edge=edge, ports=ports, edges=edges)


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """Edge switches of groups, group by group, with the ports of members there as bits.

    start  (groups + 1,) first of each group in `edge` and `ports`
    edges  edge switches of the fabric
    """

    start: Ints
    edge: NDArray[np.int32]
    ports: NDArray[np.uint64]
    edges: int

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.start) - 1

    def by_edge(self) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
        """Return the first group of each edge switch, the groups in their order, and their ports."""
        return _sort_by_key(self.edge, self.start, self.ports, self.edges)

    def in_pods(self, pod_of: Ints, edge_in_pod: Ints, pods: int) -> Spread:
        """Return the same one layer up: the pods of each group, with its edge switches there as bits."""
        start, pod, below = _collect_pods(self.start, self.edge, pod_of, edge_in_pod, pods)
        return Spread(start=start, edge=pod, ports=below, edges=pods)


def collect_spread(start: Ints, host: NDArray[np.int32], edge_of: Ints, port_of: Ints, edges: int) -> Spread:
    """Return edge switches and ports of groups given by their members, group by group.

    start  (groups + 1,) first member of each group in `host`
    """
    first, edge, ports = _collect_spread(start, host, edge_of, port_of, edges)
    return Spread(start=first, edge=edge, ports=ports, edges=edges)


# --- tenants and groups -------------------------------------------------------------------


def tenant_sizes(tenants: int, largest: int) -> Ints:
    """Return the hosts of each tenant, shape (tenants,): quantiles of the distribution, smallest first.

    96.6% are 10 plus an exponential of mean 120, the rest log-uniform from 300 to the largest: an
    exponential with the printed median of 100 never reaches the printed 5,000.
    """
    quantile = (np.arange(tenants) + 0.5) / tenants
    body = 10 - 120 * np.log1p(-np.minimum(quantile / 0.966, 1 - 1e-12))
    low = min(300.0, float(largest))
    tail = low * (largest / low) ** np.clip((quantile - 0.966) / 0.034, 0, 1)
    sizes = np.minimum(np.where(quantile < 0.966, body, tail), largest)
    return np.asarray(sizes, dtype=np.int64)


def apportion_groups(size: Ints, groups: int) -> Ints:
    """Return the groups of each tenant, (tenants,), in proportion to its size, by largest remainders."""
    exact = groups * size / size.sum()
    count: Ints = np.floor(exact).astype(np.int64)
    largest = np.argsort(count - exact, kind="stable")[: groups - int(count.sum())]
    count[largest] += 1
    return count


def group_sizes(quantile: Floats, size: Ints, kind: Sizes) -> Ints:
    """Return the members of groups at those quantiles, (groups,), of tenants of `size` hosts; 5 at least.

    kind  wve: 97.85% are a small part of the tenant, exponential with mean 0.0298, the others 0.8 to
          1.0 of it, which fits the numbers that section 4.1 prints of Fig. 4a; uniform from 5 to the tenant
    """
    if kind == "uniform":
        evenly: Ints = np.minimum(5 + np.floor(quantile * (size - 4)), size).astype(np.int64)
        return evenly
    small = quantile < SMALL_GROUP_FRACTION
    within = np.minimum(quantile / SMALL_GROUP_FRACTION, 1 - 1e-12)
    fraction = np.where(
        small,
        -MEAN_SMALL_SHARE * np.log1p(-within),
        0.8 + 0.2 * (quantile - SMALL_GROUP_FRACTION) / (1 - SMALL_GROUP_FRACTION),
    )
    return np.clip(np.rint(fraction * size), 5, size).astype(np.int64)


def place_tenants(
    size: Ints, hosts: int, placement: Placement, arrangement: int
) -> tuple[NDArray[np.int32], Ints]:
    """Return the hosts of each tenant, one tenant after the other, and the first of each tenant.

    near    adjacent hosts in an order of tenants drawn by `arrangement`, around the fabric as often as needed
    random  drawn from all hosts with a free VM, no host twice; the largest tenants first, as they would
            find too few later. A host has 20 VMs at most, or more where all hosts together have too few

    source  section 4.1
    """
    first = np.concatenate([[0], np.cumsum(size)])
    rng = np.random.default_rng([arrangement, 77])
    if placement == "random":
        host, free_vms = np.empty(first[-1], dtype=np.int32), np.full(hosts, VMS_PER_HOST)
        for tenant in np.argsort(-size, kind="stable").tolist():
            free = np.flatnonzero(free_vms > 0)
            while len(free) < size[tenant]:
                free_vms += 1
                free = np.flatnonzero(free_vms > 0)
            selected = rng.choice(free, size=size[tenant], replace=False)
            free_vms[selected] -= 1
            host[first[tenant] : first[tenant + 1]] = selected
        return host, first
    order = rng.permutation(len(size))
    begins = np.empty(len(size), dtype=np.int64)
    begins[order] = np.concatenate([[0], np.cumsum(size[order])[:-1]])
    offset = np.arange(first[-1]) - np.repeat(first[:-1], size)
    return ((np.repeat(begins, size) + offset) % hosts).astype(np.int32), first


@dataclass(frozen=True, kw_only=True)
class Tenancy:
    """Tenants of a fabric and their groups."""

    tenants: Annotated[int, Field(ge=1, le=10_000, description="tenants")] = 20
    groups: Annotated[int, Field(ge=1, le=10_000_000, description="groups of all tenants")] = 600
    largest_tenant: Annotated[int, Field(ge=10, le=100_000, description="most hosts of a tenant")] = 60
    placement: Placement = "near"
    sizes: Sizes = "wve"


def generate_workload(*, hosts: int, tenancy: Tenancy, arrangement: int, seed: int) -> Workload:
    """Return tenants with groups in proportion to their sizes, on a fabric of `hosts` hosts.

    Floats are whole numbers from 1 to 10: section 4.2 says only "from 1 to 10"; with any number of that
    range, shared entries would cost a thirtieth more than with whole numbers, and than it prints.
    """
    groups = tenancy.groups
    size = np.minimum(tenant_sizes(tenancy.tenants, tenancy.largest_tenant), hosts)
    host, first = place_tenants(size, hosts, tenancy.placement, arrangement)
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(tenancy.tenants), apportion_groups(size, groups))
    quantile = np.asarray((rng.random() + GOLDEN_RATIO * np.arange(groups)) % 1.0, dtype=np.float64)
    count = group_sizes(quantile, size[owner], tenancy.sizes)
    order = rng.permutation(groups)
    return Workload(
        tenant=owner[order],
        size=count[order],
        rate_mbps=np.floor(rng.uniform(1, 11, size=groups)),
        hosts=host,
        first_host=first,
        seed=int(rng.integers(2**62)),
    )


# --- compiled -----------------------------------------------------------------------------


@njit(cache=True, inline="always")
def next_random(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the next state and number of splitmix64: the same numbers on every machine."""
    state += np.uint64(0x9E3779B97F4A7C15)
    mixed = state
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, mixed ^ (mixed >> np.uint64(31))


@njit(cache=True, inline="always")
def _draw_host(
    pool: NDArray[np.int32], first: int, count: int, taken: int, state: np.uint64
) -> tuple[np.int32, np.uint64]:
    """Return one more host of a tenant, not among the first `taken` of its pool, and move it there."""
    state, bits = next_random(state)
    pick = first + taken + np.int64(((bits >> np.uint64(32)) * np.uint64(count - taken)) >> np.uint64(32))
    host = pool[pick]
    pool[pick] = pool[first + taken]
    pool[first + taken] = host
    return host, state


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _draw_members(
    pool: NDArray[np.int32], first: Ints, tenant: Ints, start: Ints, seed: int
) -> NDArray[np.int32]:
    """Return the host of each member, group by group."""
    hosts = np.empty(start[-1], dtype=np.int32)
    state = np.uint64(seed)
    for g in range(len(tenant)):
        begin = first[tenant[g]]
        count = first[tenant[g] + 1] - begin
        for i in range(start[g + 1] - start[g]):
            hosts[start[g] + i], state = _draw_host(pool, begin, count, i, state)
    return hosts


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _draw_spread(
    pool: NDArray[np.int32],
    first: Ints,
    tenant: Ints,
    size: Ints,
    seed: int,
    host_ports: tuple[Ints, Ints],
    capacity: Ints,
) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
    """Return first edge switch of each group, edge switches and ports, with the draws of `_draw_members`.

    host_ports  edge switch and port of each host
    capacity    (tenants,) edge switches of each
    """
    edge_of, port_of = host_ports
    space = 0
    for g in range(len(tenant)):
        space += min(size[g], capacity[tenant[g]])
    start = np.zeros(len(tenant) + 1, dtype=np.int64)
    edge, ports = np.empty(space, dtype=np.int32), np.zeros(space, dtype=np.uint64)
    last = np.full(edge_of.max() + 1, -1, dtype=np.int64)
    slot_of = np.zeros_like(last)
    state = np.uint64(seed)
    slot = 0
    for g in range(len(tenant)):
        begin = first[tenant[g]]
        count = first[tenant[g] + 1] - begin
        for i in range(size[g]):
            host, state = _draw_host(pool, begin, count, i, state)
            switch = edge_of[host]
            if last[switch] != g:
                last[switch] = g
                slot_of[switch] = slot
                edge[slot] = switch
                slot += 1
            ports[slot_of[switch]] |= np.uint64(1) << np.uint64(port_of[host])
        start[g + 1] = slot
    return start, edge[:slot].copy(), ports[:slot].copy()


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _collect_spread(
    start: Ints, host: NDArray[np.int32], edge_of: Ints, port_of: Ints, edges: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
    """Return first edge switch of each group, edge switches and ports of groups given by members."""
    groups = len(start) - 1
    first = np.zeros(groups + 1, dtype=np.int64)
    last, slot_of = np.full(edges, -1, dtype=np.int64), np.zeros(edges, dtype=np.int64)
    for g in range(groups):
        count = 0
        for i in range(start[g], start[g + 1]):
            if last[edge_of[host[i]]] != g:
                last[edge_of[host[i]]] = g
                count += 1
        first[g + 1] = first[g] + count
    edge, ports = np.empty(first[-1], dtype=np.int32), np.zeros(first[-1], dtype=np.uint64)
    last[:] = -1
    for g in range(groups):
        slot = first[g]
        for i in range(start[g], start[g + 1]):
            switch = edge_of[host[i]]
            if last[switch] != g:
                last[switch] = g
                slot_of[switch] = slot
                edge[slot] = switch
                slot += 1
            ports[slot_of[switch]] |= np.uint64(1) << np.uint64(port_of[host[i]])
    return first, edge, ports


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _sort_by_key(
    key: NDArray[np.int32], start: Ints, bits: NDArray[np.uint64], keys: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
    """Return the first pair of each key, and the groups and port sets of the pairs, by key, then group."""
    begin = np.zeros(keys + 1, dtype=np.int64)
    for i in range(len(key)):
        begin[key[i] + 1] += 1
    for i in range(keys):
        begin[i + 1] += begin[i]
    cursor = begin[:-1].copy()
    group, sets = np.empty(len(key), dtype=np.int32), np.empty(len(key), dtype=np.uint64)
    for g in range(len(start) - 1):
        for i in range(start[g], start[g + 1]):
            slot = cursor[key[i]]
            group[slot] = g
            sets[slot] = bits[i]
            cursor[key[i]] += 1
    return begin, group, sets


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _collect_pods(
    start: Ints, edge: NDArray[np.int32], pod_of: Ints, edge_in_pod: Ints, pods: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
    """Return first pod of each group, pods, and edge switches of the pods as bits."""
    groups = len(start) - 1
    first = np.zeros(groups + 1, dtype=np.int64)
    pod = np.empty(len(edge), dtype=np.int32)
    below = np.zeros(len(edge), dtype=np.uint64)
    last, slot_of = np.full(pods, -1, dtype=np.int64), np.zeros(pods, dtype=np.int64)
    slot = 0
    for g in range(groups):
        for i in range(start[g], start[g + 1]):
            here = pod_of[edge[i]]
            if last[here] != g:
                last[here] = g
                slot_of[here] = slot
                pod[slot] = here
                slot += 1
            below[slot_of[here]] |= np.uint64(1) << np.uint64(edge_in_pod[edge[i]])
        first[g + 1] = slot
    return first, pod[:slot].copy(), below[:slot].copy()
