"""Lexicographic weighted max-min rates for given replicas, by maximum flows and Newton's method over cuts.

Each level starts from a level that no plan exceeds. A maximum flow source -> tenants -> partitions -> nodes
either carries the rates of the level, or its minimum cut is a set of tenants and nodes that cannot: the level
at which that cut is just full is tried next. The last cut holds its tenants at the level; its nodes are full,
and the search goes on without them.

Source: Megiddo 1974; Fujishige 1980; Gallo, Grigoriadis, Tarjan 1989 (parametric maximum flow); Newton's
method over cuts as in Radzik 1993.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.fairshare.plan.fair_shares import entitlement, fill_level
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem.problem import SharedStore, add_up

RESOLUTION: Final = 2.0**50  # units of flow in all capacity together: maximum flows are of whole numbers
UNLIMITED: Final = 1 << 53
FEASIBLE: Final = 1e-9  # part of the flow that may be missing: capacities are rounded to whole units
MOST_FLOWS: Final = 200  # of one level; two to six are usual


class Level(NamedTuple):
    """One level of the rates.

    level    rate of its tenants over what they are due at level 1
    tenants  (m,) tenants that no plan can serve more than at this level
    nodes    (k,) full nodes that hold them back; none where tenants have all their demand
    """

    level: float
    tenants: Ints
    nodes: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class MaxMin:
    """Rates of tenants (T,) and of replicas (K,), thousands of requests per second; the levels, lowest first.

    flows  number of maximum flows
    """

    rate: Floats
    kops: Floats
    levels: tuple[Level, ...]
    flows: int


class _Cut(NamedTuple):
    """Source side of a cut, by row of the problem: tenants that are elastic, partitions, nodes."""

    tenants: Bools
    partitions: Bools
    nodes: Bools


class _Flow:
    """Network of the tenants, partitions and nodes that no level holds yet.

    Partitions that the source serves, not their tenant, are one vertex for each set of nodes with replicas.
    """

    def __init__(self, search: _Search) -> None:
        from ortools.graph.python import max_flow

        problem, replicas = search.problem, search.replicas
        self.search = search
        is_open = search.open_partition
        self.node = np.flatnonzero(search.open_node)
        through = is_open & ~problem.is_fixed[problem.tenant] & search.is_free[problem.tenant]
        self.through, self.direct = np.flatnonzero(through), np.flatnonzero(is_open & ~through)
        self.tenant = np.unique(problem.tenant[self.through])
        _, first, self.group = np.unique(search.set_of[self.direct], return_index=True, return_inverse=True)
        self.vertices = 2 + np.cumsum([0, len(self.tenant), len(self.through), len(first), len(self.node)])
        tenant_at, partition_at, node_at = (
            np.full(len(rows), -1) for rows in (problem.tenants, problem.partitions, problem.nodes)
        )
        tenant_at[self.tenant] = self.vertices[0] + np.arange(len(self.tenant))
        partition_at[self.through] = self.vertices[1] + np.arange(len(self.through))
        groups = self.vertices[2] + np.arange(len(first))
        partition_at[self.direct[first]] = groups
        node_at[self.node] = self.vertices[3] + np.arange(len(self.node))
        self.replica = np.flatnonzero(is_open[replicas.partition] & search.open_node[replicas.node])
        used = self.replica[partition_at[replicas.partition[self.replica]] >= 0]
        tail, head = partition_at[replicas.partition[used]], node_at[replicas.node[used]]
        zero, one = np.zeros, np.ones
        tails = [
            zero(len(self.tenant)), tenant_at[problem.tenant[self.through]], zero(len(groups)), tail,
            node_at[self.node],
        ]  # fmt: skip
        heads = [
            tenant_at[self.tenant], partition_at[self.through], groups, head, one(len(self.node)),
        ]  # fmt: skip
        offsets = np.cumsum([0, *(len(part) for part in tails)])
        self.blocks = [slice(*pair) for pair in itertools.pairwise(offsets.tolist())]
        capacity = np.zeros(offsets[-1], dtype=np.int64)
        capacity[self.blocks[1]] = self._units(problem.demand_kops[self.through])
        capacity[self.blocks[3]] = UNLIMITED
        capacity[self.blocks[4]] = self._units(search.rate_kops[self.node])
        self.graph = max_flow.SimpleMaxFlow()
        self.arcs = self.graph.add_arcs_with_capacity(
            np.concatenate(tails).astype(np.int32), np.concatenate(heads).astype(np.int32), capacity
        )
        self._keys = tail * len(node_at) + replicas.node[used]
        self._vertex_of = partition_at
        self._vertex_of[self.direct] = groups[self.group]
        self._sent = np.zeros(len(self.direct))

    def _units(self, kops: Floats) -> Ints:
        return np.floor(kops * self.search.units).astype(np.int64)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to serve."""
        return not len(self.arcs)

    def carries(self, rate: Floats) -> bool:
        """Return whether the nodes can serve these rates of the tenants, (T,)."""
        if self.is_empty:
            return True
        self._sent = self.search.direct_kops(self.direct, rate)
        together = add_up(self.group, self._sent, self.blocks[2].stop - self.blocks[2].start)
        arcs = np.concatenate([self.arcs[self.blocks[0]], self.arcs[self.blocks[2]]])
        units = self._units(np.concatenate([rate[self.tenant], together]))
        if len(arcs):
            self.graph.set_arcs_capacity(arcs, units)
        status = self.graph.solve(0, 1)
        if status != self.graph.OPTIMAL:
            raise RuntimeError(f"maximum flow ended with status {status}")
        total = int(units.sum())
        return total - int(self.graph.optimal_flow()) <= FEASIBLE * total + 2 * len(arcs)

    def find_cut(self) -> _Cut:
        """Return the largest source side of a minimum cut of the last flow."""
        full = np.ones(self.vertices[-1], dtype=bool)
        full[np.asarray(self.graph.get_sink_side_min_cut(), dtype=np.int64)] = False
        problem = self.search.problem
        tenants = np.zeros(len(problem.tenants), dtype=bool)
        partitions = np.zeros(len(problem.partitions), dtype=bool)
        nodes = np.zeros(len(problem.nodes), dtype=bool)
        tenants[self.tenant] = full[self.vertices[0] : self.vertices[1]]
        partitions[self.through] = full[self.vertices[1] : self.vertices[2]]
        partitions[self.direct] = full[self.vertices[2] : self.vertices[3]][self.group]
        nodes[self.node] = full[self.vertices[3] : self.vertices[4]]
        return _Cut(tenants, partitions, nodes)

    def find_kops(self) -> Floats:
        """Return the flow to the open replicas; that of a vertex is split by what its partitions are sent."""
        replicas, nodes = self.search.replicas, len(self.search.problem.nodes)
        flows = np.asarray(self.graph.flows(self.arcs[self.blocks[3]]), dtype=float) / self.search.units
        order = np.argsort(self._keys, kind="stable")
        partition = replicas.partition[self.replica]
        keys = self._vertex_of[partition] * nodes + replicas.node[self.replica]
        kops = flows[order[np.searchsorted(self._keys, keys, sorter=order)]]
        together = add_up(self.group, self._sent, self.blocks[2].stop - self.blocks[2].start)[self.group]
        part = np.ones(len(self._vertex_of))
        part[self.direct] = np.divide(self._sent, together, out=np.zeros_like(together), where=together > 0)
        return np.asarray(kops * part[partition])


def number_sets(replicas: Replicas, partitions: int, nodes: int) -> Ints:
    """Return a number for each partition, (partitions,): the same for those with replicas on the same nodes.

    replicas  by partition, then by node
    """
    count = np.bincount(replicas.partition, minlength=partitions)
    width = int(count.max(initial=0))
    place = np.arange(len(replicas.partition)) - np.repeat(np.cumsum(count) - count, count)
    table = np.full((partitions, max(width, 1)), -1)
    table[replicas.partition, place] = replicas.node
    numbers = np.zeros(partitions, dtype=np.int64)
    for column in table.T:  # renumbered after each column, so that products stay small
        numbers = np.unique(numbers * (nodes + 1) + column + 1, return_inverse=True)[1].astype(np.int64)
    return numbers


class _Search:
    """State of the search: what no level holds yet."""

    def __init__(self, problem: SharedStore, replicas: Replicas, due: Floats, rate_kops: Floats) -> None:
        self.problem, self.replicas, self.due, self.rate_kops = problem, replicas, due, rate_kops
        self.demand = problem.demand_of_tenant
        self.is_free = (self.demand > 0) & (due > 0)
        self.open_partition = (problem.demand_kops > 0) & self.is_free[problem.tenant]
        self.open_node = rate_kops > 0
        self.rate = np.zeros(len(problem.tenants))
        self.kops = np.zeros(len(replicas.partition))
        self.units = RESOLUTION / max(float(rate_kops.sum()), float(self.demand.sum()), 1e-300)
        self.levels: list[Level] = []
        self.flows = 0
        self.set_of = number_sets(replicas, len(problem.partitions), len(problem.nodes))

    def rates(self, level: float) -> Floats:
        """Return the rate of each tenant at a level, (T,); those that a level holds keep theirs."""
        reached = self.demand if np.isinf(level) else np.minimum(self.demand, level * self.due)
        return np.where(self.is_free, reached, self.rate)

    def direct_kops(self, partitions: Ints, rate: Floats) -> Floats:
        """Return what partitions are served that the source serves: of fixed mix, or of held tenants."""
        owner = self.problem.tenant[partitions]
        is_fixed = self.problem.is_fixed[owner]
        part = self.problem.share_of_tenant[partitions] * rate[owner]
        return np.asarray(np.where(is_fixed, part, self.problem.demand_kops[partitions]))

    def level_of(self, cut: _Cut) -> float:
        """Return the level at which a cut is just full."""
        problem = self.problem
        owner, inside = problem.tenant, cut.partitions & self.open_partition
        is_fixed, is_free = problem.is_fixed[owner], self.is_free[owner]
        cost = add_up(
            owner, weights=np.where(inside & is_fixed & is_free, problem.share_of_tenant, 0.0),
            minlength=len(self.demand),
        )  # fmt: skip
        cost = cost + cut.tenants
        held = np.flatnonzero(inside & ~is_free)
        leaving = cut.tenants[owner] & self.open_partition & ~cut.partitions
        capacity = float(self.rate_kops[cut.nodes].sum()) + float(problem.demand_kops[leaving].sum())
        capacity -= float(self.direct_kops(held, self.rate).sum())
        return fill_level(cost, np.where(self.is_free, self.demand, 0.0), self.due, max(capacity, 0.0))

    def everything(self) -> _Cut:
        """Return the cut of all that is open: the nodes are one pool."""
        tenants = np.zeros(len(self.demand), dtype=bool)
        owner = self.problem.tenant[self.open_partition]
        tenants[owner[~self.problem.is_fixed[owner] & self.is_free[owner]]] = True
        return _Cut(tenants, self.open_partition.copy(), self.open_node.copy())

    def raise_level(self) -> bool:
        """Find the next level and hold its tenants; return whether any tenant may get more."""
        network = _Flow(self)
        cut = self.everything()
        level = self.level_of(cut)
        for _ in range(MOST_FLOWS):
            self.flows += 1
            if network.carries(self.rates(level)):
                break
            cut = network.find_cut()
            lower = self.level_of(cut)
            if lower >= level:  # the cut is full at this level, but for rounding
                break
            level = lower
        else:
            raise RuntimeError("the search for a level did not end")
        rate = self.rates(level)
        flow = np.zeros(0) if network.is_empty else network.find_kops()
        if np.isinf(level):  # all demand is served
            self.kops[network.replica] = flow
            self.rate = rate
            return False
        owner, inside = self.problem.tenant, cut.partitions & self.open_partition
        held = cut.tenants.copy()
        held[owner[inside & self.problem.is_fixed[owner]]] = True
        held &= self.is_free
        self.rate = np.where(held, rate, self.rate)
        self.is_free &= ~held
        self.levels.append(
            Level(
                level, np.flatnonzero(held & (rate < self.demand)), np.flatnonzero(cut.nodes & self.open_node)
            )
        )
        mine = inside[self.replicas.partition[network.replica]]
        self.kops[network.replica[mine]] = flow[mine]
        self.open_partition &= ~inside
        self.open_node &= ~cut.nodes
        if not self.is_free.any():  # what is left are partitions of held tenants, served in full
            if self.open_partition.any():
                rest = _Flow(self)
                rest.carries(self.rate)
                self.kops[rest.replica] = rest.find_kops()
                self.flows += 1
            return False
        return True


def share_max_min(
    problem: SharedStore,
    replicas: Replicas,
    *,
    due: Floats | None = None,
    most_levels: int | None = None,
    rate_kops: Floats | None = None,
) -> MaxMin:
    """Return the lexicographically largest rates over what tenants are due, for given replicas.

    Requests are the only resource here; see `program.share_dominant` for several.

    due          (T,) rates at level 1; default: `entitlement`
    most_levels  levels after which the search ends, with rates of their tenants alone; default: all
    rate_kops    (N,) requests that nodes serve; default: those of the problem
    """
    rates = problem.rate_kops if rate_kops is None else rate_kops
    search = _Search(problem, replicas, entitlement(problem) if due is None else due, rates)
    while search.is_free.any() and search.raise_level():
        if most_levels is not None and len(search.levels) >= most_levels:
            break
    rate, kops = _match(problem, replicas, search)
    return MaxMin(rate=rate, kops=kops, levels=tuple(search.levels), flows=search.flows)


def _match(problem: SharedStore, replicas: Replicas, search: _Search) -> tuple[Floats, Floats]:
    """Return rates and flows that agree exactly: flows are of whole units, and sums differ by rounding."""
    owner = problem.tenant
    flow = add_up(replicas.partition, weights=search.kops, minlength=len(owner))
    due = np.where(
        problem.is_fixed[owner],
        problem.share_of_tenant * search.rate[owner],
        np.minimum(flow, problem.demand_kops),
    )
    elastic = ~problem.is_fixed
    sums = add_up(owner, weights=due, minlength=len(elastic))
    factor = np.divide(search.rate, sums, out=np.ones_like(sums), where=elastic & (sums > 0))
    due = np.where(elastic[owner], np.minimum(due * factor[owner], problem.demand_kops), due)
    first = np.searchsorted(replicas.partition, np.arange(len(owner)))
    empty = np.flatnonzero((flow <= 0) & (due > 0))
    kops = search.kops.copy()
    kops[first[empty]] = due[empty]
    flow[empty] = due[empty]
    scale = np.divide(due, flow, out=np.zeros_like(due), where=flow > 0)
    kops *= scale[replicas.partition]
    rate = add_up(owner, weights=due, minlength=len(elastic))
    return rate, kops
