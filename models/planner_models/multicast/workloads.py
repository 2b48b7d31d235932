"""Tenants, where they lie, and their groups: the workloads of section 4.1, drawn by compiled code.

What decides how many groups fit is stratified, so that capacities do not jump between seeds: tenants
are quantiles of their distribution, groups are shared out in proportion, group sizes run through the
quantiles of theirs, and which tenants lie side by side is its own parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Placement = Literal["near", "random"]
Sizes = Literal["wve", "uniform"]

VMS_PER_HOST: Final = 20  # section 4.1
SMALL_GROUPS: Final = 0.9785  # share of WVE groups that are a small part of their tenant
SMALL_PART: Final = 0.0298  # the mean part, of an exponential; the other groups are 0.8 to 1.0 of it
GOLDEN: Final = 0.6180339887498949  # multiples of it spread evenly over [0, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """Groups in the order in which they come, each with members drawn from its tenant's hosts.

    tenant      (groups,) whose group it is
    size        (groups,) members
    rate_mbps   (groups,)
    hosts       hosts of all tenants, one after the other
    first_host  (tenants + 1,) where each tenant's begin in `hosts`
    seed        where members are drawn
    """

    tenant: Ints
    size: Ints
    rate_mbps: NDArray[np.float64]
    hosts: NDArray[np.int32]
    first_host: Ints
    seed: int

    def members(self) -> tuple[Ints, NDArray[np.int32]]:
        """Where the members of each group begin (groups + 1,), and the host of each, group by group."""
        start = np.concatenate([[0], np.cumsum(self.size)])
        return start, _drawn(self.hosts.copy(), self.first_host, self.tenant, start, self.seed)

    def spread(self, edge_of: Ints, port_of: Ints, edges: int) -> Spread:
        """Edge switches and ports of each group, without a list of its members.

        edge_of, port_of  (hosts of the fabric,) where each is
        """
        pool = self.hosts.copy()
        # each group once for the room it takes, and once more for good: the same draws twice
        start = _touched(pool, self.first_host, self.tenant, self.size, self.seed, edge_of, edges)
        pool[:] = self.hosts
        edge, ports = _spread_drawn(
            pool, self.first_host, self.tenant, self.size, self.seed, edge_of, port_of, edges, start
        )
        return Spread(start=start, edge=edge, ports=ports, edges=edges)


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """Where groups have members: group by group its edge switches, and its ports there as bits.

    start  (groups + 1,) where each group's edge switches begin in `edge` and `ports`
    edges  edge switches of the fabric
    """

    start: Ints
    edge: NDArray[np.int32]
    ports: NDArray[np.uint64]
    edges: int

    @property
    def groups(self) -> int:
        return len(self.start) - 1

    def by_edge(self) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
        """Where the groups of each edge switch begin, the groups in their order, and their ports."""
        return _by_key(self.edge, self.start, self.ports, self.edges)

    def in_pods(self, pod_of: Ints, edge_in_pod: Ints, pods: int) -> Spread:
        """The same a layer up: the pods of each group, and its edge switches there as bits."""
        start, pod, below = _in_pods(self.start, self.edge, pod_of, edge_in_pod, pods)
        return Spread(start=start, edge=pod, ports=below, edges=pods)


def spread_of(start: Ints, host: NDArray[np.int32], edge_of: Ints, port_of: Ints, edges: int) -> Spread:
    """Edge switches and ports of groups given by their members, group by group.

    start  (groups + 1,) where each group's begin in `host`
    """
    first, edge, ports = _spread_given(start, host, edge_of, port_of, edges)
    return Spread(start=first, edge=edge, ports=ports, edges=edges)


# --- tenants and groups -------------------------------------------------------------------


def tenant_sizes(tenants: int, largest: int) -> Ints:
    """(tenants,) hosts of each tenant: the quantiles of the distribution, smallest first.

    96.6% are 10 plus an exponential of mean 120, the rest log-uniform from 300 to the largest: an
    exponential with the printed median of 100 never reaches the printed 5,000.
    """
    quantile = (np.arange(tenants) + 0.5) / tenants
    body = 10 - 120 * np.log1p(-np.minimum(quantile / 0.966, 1 - 1e-12))
    low = min(300.0, float(largest))
    tail = low * (largest / low) ** np.clip((quantile - 0.966) / 0.034, 0, 1)
    sizes = np.minimum(np.where(quantile < 0.966, body, tail), largest)
    return np.asarray(sizes, dtype=np.int64)


def shares(size: Ints, groups: int) -> Ints:
    """(tenants,) groups of each tenant, in proportion to its size, largest remainders first."""
    exact = groups * size / size.sum()
    count: Ints = np.floor(exact).astype(np.int64)
    most = np.argsort(count - exact, kind="stable")[: groups - int(count.sum())]
    count[most] += 1
    return count


def group_sizes(quantile: NDArray[np.float64], size: Ints, kind: Sizes) -> Ints:
    """(groups,) members of groups at those quantiles, of tenants of `size` hosts; 5 at least.

    kind  wve: 97.85% are a small part of the tenant, exponential with mean 0.0298, the others 0.8 to
          1.0 of it, which fits what section 4.1 prints of Fig. 4a; uniform from 5 to the tenant
    """
    if kind == "uniform":
        evenly: Ints = np.minimum(5 + np.floor(quantile * (size - 4)), size).astype(np.int64)
        return evenly
    small = quantile < SMALL_GROUPS
    within = np.minimum(quantile / SMALL_GROUPS, 1 - 1e-12)
    part = np.where(
        small, -SMALL_PART * np.log1p(-within), 0.8 + 0.2 * (quantile - SMALL_GROUPS) / (1 - SMALL_GROUPS)
    )
    return np.clip(np.rint(part * size), 5, size).astype(np.int64)


def placed(size: Ints, hosts: int, placement: Placement, arrangement: int) -> tuple[NDArray[np.int32], Ints]:
    """The hosts of each tenant, one tenant after the other, and where each begins.

    near    side by side in an order that `arrangement` draws, around the fabric as often as it takes
    random  drawn from all hosts that have room, no host twice; the largest tenants first, or they would
            find too few. A host has 20 VMs at most, or more where all together have no room

    source  section 4.1
    """
    first = np.concatenate([[0], np.cumsum(size)])
    rng = np.random.default_rng([arrangement, 77])
    if placement == "random":
        host, room = np.empty(first[-1], dtype=np.int32), np.full(hosts, VMS_PER_HOST)
        for tenant in np.argsort(-size, kind="stable").tolist():
            free = np.flatnonzero(room > 0)
            while len(free) < size[tenant]:
                room += 1
                free = np.flatnonzero(room > 0)
            chosen = rng.choice(free, size=size[tenant], replace=False)
            room[chosen] -= 1
            host[first[tenant] : first[tenant + 1]] = chosen
        return host, first
    order = rng.permutation(len(size))
    begins = np.empty(len(size), dtype=np.int64)
    begins[order] = np.concatenate([[0], np.cumsum(size[order])[:-1]])
    place = np.arange(first[-1]) - np.repeat(first[:-1], size)
    return ((np.repeat(begins, size) + place) % hosts).astype(np.int32), first


def drawn(
    *,
    hosts: int,
    tenants: int,
    largest_tenant: int,
    groups: int,
    placement: Placement,
    sizes: Sizes,
    arrangement: int,
    seed: int,
) -> Workload:
    """Tenants with groups in proportion to their sizes, on a fabric of `hosts` hosts.

    Rates are whole numbers from 1 to 10 (section 4.2 says no more than "from 1 to 10"; any number of
    that range would make shared entries cost a thirtieth more than whole ones do, and than it prints).
    """
    size = np.minimum(tenant_sizes(tenants, largest_tenant), hosts)
    host, first = placed(size, hosts, placement, arrangement)
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(tenants), shares(size, groups))
    quantile = np.asarray((rng.random() + GOLDEN * np.arange(groups)) % 1.0, dtype=np.float64)
    count = group_sizes(quantile, size[owner], sizes)
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
def next_draw(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """splitmix64: the same draws on every machine."""
    state += np.uint64(0x9E3779B97F4A7C15)
    mixed = state
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, mixed ^ (mixed >> np.uint64(31))


@njit(cache=True, inline="always")
def _draw(
    pool: NDArray[np.int32], first: int, count: int, taken: int, state: np.uint64
) -> tuple[np.int32, np.uint64]:
    """One more host of a tenant that is not among the first `taken` of its pool, and puts it there."""
    state, bits = next_draw(state)
    pick = first + taken + np.int64(((bits >> np.uint64(32)) * np.uint64(count - taken)) >> np.uint64(32))
    host = pool[pick]
    pool[pick] = pool[first + taken]
    pool[first + taken] = host
    return host, state


@njit(cache=True)
def _drawn(pool: NDArray[np.int32], first: Ints, tenant: Ints, start: Ints, seed: int) -> NDArray[np.int32]:
    hosts = np.empty(start[-1], dtype=np.int32)
    state = np.uint64(seed)
    for g in range(len(tenant)):
        begin = first[tenant[g]]
        count = first[tenant[g] + 1] - begin
        for i in range(start[g + 1] - start[g]):
            hosts[start[g] + i], state = _draw(pool, begin, count, i, state)
    return hosts


@njit(cache=True)
def _touched(
    pool: NDArray[np.int32], first: Ints, tenant: Ints, size: Ints, seed: int, edge_of: Ints, edges: int
) -> Ints:
    start = np.zeros(len(tenant) + 1, dtype=np.int64)
    last = np.full(edges, -1, dtype=np.int64)
    state = np.uint64(seed)
    for g in range(len(tenant)):
        begin = first[tenant[g]]
        count = first[tenant[g] + 1] - begin
        found = 0
        for i in range(size[g]):
            host, state = _draw(pool, begin, count, i, state)
            edge = edge_of[host]
            if last[edge] != g:
                last[edge] = g
                found += 1
        start[g + 1] = start[g] + found
    return start


@njit(cache=True)
def _spread_drawn(
    pool: NDArray[np.int32],
    first: Ints,
    tenant: Ints,
    size: Ints,
    seed: int,
    edge_of: Ints,
    port_of: Ints,
    edges: int,
    start: Ints,
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    edge, ports = np.empty(start[-1], dtype=np.int32), np.zeros(start[-1], dtype=np.uint64)
    last, place = np.full(edges, -1, dtype=np.int64), np.zeros(edges, dtype=np.int64)
    state = np.uint64(seed)
    for g in range(len(tenant)):
        begin = first[tenant[g]]
        count = first[tenant[g] + 1] - begin
        at = start[g]
        for i in range(size[g]):
            host, state = _draw(pool, begin, count, i, state)
            switch = edge_of[host]
            if last[switch] != g:
                last[switch] = g
                place[switch] = at
                edge[at] = switch
                at += 1
            ports[place[switch]] |= np.uint64(1) << np.uint64(port_of[host])
    return edge, ports


@njit(cache=True)
def _spread_given(
    start: Ints, host: NDArray[np.int32], edge_of: Ints, port_of: Ints, edges: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
    groups = len(start) - 1
    first = np.zeros(groups + 1, dtype=np.int64)
    last, place = np.full(edges, -1, dtype=np.int64), np.zeros(edges, dtype=np.int64)
    for g in range(groups):
        found = 0
        for i in range(start[g], start[g + 1]):
            if last[edge_of[host[i]]] != g:
                last[edge_of[host[i]]] = g
                found += 1
        first[g + 1] = first[g] + found
    edge, ports = np.empty(first[-1], dtype=np.int32), np.zeros(first[-1], dtype=np.uint64)
    last[:] = -1
    for g in range(groups):
        at = first[g]
        for i in range(start[g], start[g + 1]):
            switch = edge_of[host[i]]
            if last[switch] != g:
                last[switch] = g
                place[switch] = at
                edge[at] = switch
                at += 1
            ports[place[switch]] |= np.uint64(1) << np.uint64(port_of[host[i]])
    return first, edge, ports


@njit(cache=True)
def _by_key(
    key: NDArray[np.int32], start: Ints, bits: NDArray[np.uint64], keys: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
    begin = np.zeros(keys + 1, dtype=np.int64)
    for i in range(len(key)):
        begin[key[i] + 1] += 1
    for i in range(keys):
        begin[i + 1] += begin[i]
    at = begin[:-1].copy()
    group, sets = np.empty(len(key), dtype=np.int32), np.empty(len(key), dtype=np.uint64)
    for g in range(len(start) - 1):
        for i in range(start[g], start[g + 1]):
            place = at[key[i]]
            group[place] = g
            sets[place] = bits[i]
            at[key[i]] += 1
    return begin, group, sets


@njit(cache=True)
def _in_pods(
    start: Ints, edge: NDArray[np.int32], pod_of: Ints, edge_in_pod: Ints, pods: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
    groups = len(start) - 1
    first = np.zeros(groups + 1, dtype=np.int64)
    pod = np.empty(len(edge), dtype=np.int32)
    below = np.zeros(len(edge), dtype=np.uint64)
    last, place = np.full(pods, -1, dtype=np.int64), np.zeros(pods, dtype=np.int64)
    at = 0
    for g in range(groups):
        for i in range(start[g], start[g + 1]):
            here = pod_of[edge[i]]
            if last[here] != g:
                last[here] = g
                place[here] = at
                pod[at] = here
                at += 1
            below[place[here]] |= np.uint64(1) << np.uint64(edge_in_pod[edge[i]])
        first[g + 1] = at
    return first, pod[:at].copy(), below[:at].copy()
