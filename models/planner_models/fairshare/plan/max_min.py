"""Lexicographic weighted max-min rates for given replicas, by decomposition at minimum cuts.

A region of the store is a set of tenants, partitions and nodes; the first one is all. The level at which a
region would be full if its nodes were one pool is tried by a maximum flow source -> tenants -> partitions ->
nodes. Either its nodes can serve that: then all its tenants are held at the level, for the nodes are full. Or
the minimum cut is a smaller region that cannot: its tenants have lower levels, and it is solved first, by
itself; then the rest of the region is tried again. Each flow ends a level or splits a region, so that there
are about two flows for a level, in ever smaller regions. Tenants of fixed mix may have partitions in several
regions; one that no cut of a region holds below the level of its cut is left to the larger region.

Source: Fujishige 1980 (decomposition of polymatroids); Megiddo 1974; Gallo, Grigoriadis, Tarjan 1989.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.tolerances import ROUNDING, SUM_ROUNDING
from planner_models.fairshare.plan.fair_shares import entitlement, fill_in_order, order_by_level
from planner_models.fairshare.plan.group_shares import Division
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up
from planner_models.graphs.maximum_flow import find_flow

RESOLUTION: Final = 2.0**50  # units of flow in all capacity together: maximum flows are of whole numbers
UNLIMITED: Final = 1 << 53
MOST_NUMBER: Final = 1 << 62
FEASIBLE: Final = ROUNDING  # part of the flow that may be missing: capacities are rounded to whole units
EQUAL: Final = SUM_ROUNDING  # relative difference of levels, and of rates and demands, that is rounding


class Level(NamedTuple):
    """One level of the rates.

    level    rate of its tenants over what they are due at level 1
    tenants  (m,) tenants that no plan can serve more than at this level
    nodes    (k,) full nodes that hold them back
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


class Network:
    """Partitions with demand, as pairs: those of a tenant with replicas on the same nodes are one.

    Of M pairs:

    pair, count   (P,) pair of each partition, -1 without demand; its replicas
    owner, group  (M,) tenant; number of the set of nodes
    demand_kops   (M,) sum over the partitions
    share         (M,) part of the tenant's requests
    entry_pair, entry_node, entry_place  (E,) for each pair and node of its set; its place among those of sets
    """

    def __init__(self, problem: SharedStore, replicas: Replicas) -> None:
        self.problem, self.replicas = problem, replicas
        partitions, nodes = len(problem.partitions), len(problem.nodes)
        group_of = number_sets(replicas, partitions, nodes)
        asked = np.flatnonzero(problem.demand_kops > 0)
        groups = int(group_of.max(initial=0)) + 1
        keys = problem.tenant[asked] * groups + group_of[asked]
        pairs, pair = np.unique(keys, return_inverse=True)
        self.pair = np.full(partitions, -1)
        self.pair[asked] = pair
        self.owner, self.group, self.groups = pairs // groups, pairs % groups, groups
        self.demand_kops = add_up(pair, problem.demand_kops[asked], len(pairs))
        self.share = add_up(pair, problem.share_of_tenant[asked], len(pairs))
        self.is_fixed = problem.is_fixed[self.owner]
        self.count = count = np.bincount(replicas.partition, minlength=partitions)
        first = np.cumsum(count) - count
        like = np.zeros(groups, dtype=np.int64)
        like[group_of] = np.arange(partitions)  # a partition of each set
        self.starts = np.cumsum(np.concatenate([[0], count[like]]))  # of the places of sets
        self.place_node = replicas.node[_ranges(first[like], count[like])]
        self.place_group = np.repeat(np.arange(groups), count[like])
        width = count[like][self.group]
        self.entry_start = np.cumsum(width) - width
        self.entry_pair = np.repeat(np.arange(len(pairs)), width)
        self.entry_place = _ranges(self.starts[self.group], width)
        self.entry_node = self.place_node[self.entry_place]

    def split(self, entry_kops: Floats) -> Floats:
        """Return rates of replicas (K,) from those of entries (E,): partitions of a pair by their demand."""
        has_pair = self.pair >= 0
        first, fraction = np.zeros(len(self.pair), dtype=np.int64), np.zeros(len(self.pair))
        pair = self.pair[has_pair]
        first[has_pair] = self.entry_start[pair]
        fraction[has_pair] = self.problem.demand_kops[has_pair] / self.demand_kops[pair]
        count = np.where(has_pair, self.count, 0)
        kops = np.zeros(len(self.replicas.partition))
        kops[np.repeat(has_pair, self.count)] = entry_kops[_ranges(first, count)] * np.repeat(fraction, count)
        return kops


def _ranges(first: Ints, count: Ints) -> Ints:
    """Return first[0], first[0] + 1, ..., as many as count[0], and so on."""
    before = np.cumsum(count) - count
    return np.arange(int(count.sum())) - np.repeat(before - first, count)


def number_sets(replicas: Replicas, partitions: int, nodes: int) -> Ints:
    """Return a number for each partition, (partitions,): the same for those with replicas on the same nodes.

    replicas  by partition, then by node
    """
    count = np.bincount(replicas.partition, minlength=partitions)
    width = int(count.max(initial=0))
    rank = np.arange(len(replicas.partition)) - np.repeat(np.cumsum(count) - count, count)
    table = np.full((partitions, max(width, 1)), -1)
    table[replicas.partition, rank] = replicas.node
    numbers, below = np.zeros(partitions, dtype=np.int64), 1
    for column in table.T:
        if below * (nodes + 1) >= MOST_NUMBER:
            numbers, below = np.unique(numbers, return_inverse=True)[1], partitions
        numbers, below = numbers * (nodes + 1) + column + 1, below * (nodes + 1)
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


class _Region(NamedTuple):
    """A part of the store, by row: tenants that are elastic (T,), pairs (M,), nodes (N,); highest level."""

    tenants: Bools
    pairs: Bools
    nodes: Bools
    highest: float


class _Pairs(NamedTuple):
    """Pairs (M,) of free elastic tenants of a region: those in it, and those out of it.

    direct  rows of pairs in the region whose requests follow from the rates of tenants
    """

    through: Bools
    leaving: Bools
    direct: Ints


class _Solved(NamedTuple):
    """A maximum flow in a region: whether all is served, rates of entries (E,), the cut where not."""

    carries: bool
    entry_kops: Floats
    cut: _Region


class _Search:
    """State of the search: tenants that no level holds yet, pairs and nodes that no region has closed."""

    def __init__(
        self, network: Network, due: Floats, rate_kops: Floats, reserved_kops: Floats | None
    ) -> None:
        problem = network.problem
        self.network, self.due, self.rate_kops = network, due, rate_kops
        self.demand, self.is_fixed = problem.demand_of_tenant, problem.is_fixed
        self.reserved = None if reserved_kops is None else np.minimum(reserved_kops, self.demand)
        self.is_free = (self.demand > 0) & (due > 0)
        self.open_pair = self.is_free[network.owner]
        self.open_node = rate_kops > 0
        self.rate = np.zeros(len(self.demand))
        self.entry_kops = np.zeros(len(network.entry_pair))
        self.units = RESOLUTION / max(float(rate_kops.sum()), float(self.demand.sum()), 1e-300)
        self.order = order_by_level(self.demand, due)
        self.demand_units = self._units(network.demand_kops)
        self.levels: list[Level] = []
        self.flows = 0

    def rates(self, level: float) -> Floats:
        """Return the rate of each tenant at a level, (T,); those that a level holds keep theirs."""
        reached = self.demand if np.isinf(level) else np.minimum(self.demand, level * self.due)
        if self.reserved is not None:
            reached = np.maximum(reached, self.reserved)
        return np.where(self.is_free, reached, self.rate)

    def everything(self, highest: float = np.inf) -> _Region:
        """Return the region of all that is open."""
        return _Region(self.is_free & ~self.is_fixed, self.open_pair, self.open_node, highest)

    def reduce(self, region: _Region) -> _Region:
        """Return the region without its closed parts."""
        return _Region(
            region.tenants & self.is_free,
            region.pairs & self.open_pair,
            region.nodes & self.open_node,
            region.highest,
        )

    def divide(self, region: _Region) -> _Pairs:
        """Return the pairs of a region, divided by the form of their requests."""
        is_through = region.tenants[self.network.owner] & ~self.network.is_fixed & self.open_pair
        through = is_through & region.pairs
        return _Pairs(through, is_through & ~region.pairs, np.flatnonzero(region.pairs & ~through))

    def direct_kops(self, pairs: Ints, rate: Floats) -> Floats:
        """Return the service of pairs by rates of tenants, of fixed mix or held: (len(pairs),)."""
        network = self.network
        owner = network.owner[pairs]
        served = np.where(
            network.is_fixed[pairs], network.share[pairs] * rate[owner], network.demand_kops[pairs]
        )
        return np.asarray(served)

    def level_of(self, region: _Region, pairs: _Pairs) -> float:
        """Return the level at which a region is just full."""
        network, direct = self.network, pairs.direct
        cost = region.tenants.astype(float)
        capacity = float(self.rate_kops[region.nodes].sum()) + float(network.demand_kops[pairs.leaving].sum())
        if len(direct):
            rises = self.is_free[network.owner[direct]] & network.is_fixed[direct]
            cost += add_up(network.owner[direct[rises]], network.share[direct[rises]], len(cost))
            capacity -= float(self.direct_kops(direct[~rises], self.rate).sum())
        demand = np.where(self.is_free, self.demand, 0.0)
        if self.reserved is not None:
            rows = np.flatnonzero((demand > 0) & (cost > 0))
            lower, upper = (cost[rows] * rates[rows] for rates in (self.reserved, demand))
            return Division.of(lower, upper, cost[rows] * self.due[rows]).find_level(max(capacity, 0.0))
        return float(fill_in_order(self.order, cost, demand, self.due, max(capacity, 0.0)))

    def solve(self, region: _Region, level: float, pairs: _Pairs) -> _Solved:
        """Return the maximum flow of a region at a level."""
        network, rate = self.network, self.rates(level)
        through, leaving, direct = pairs
        tenants = np.flatnonzero(region.tenants)
        nodes = np.flatnonzero(region.nodes)
        sent = self.direct_kops(direct, rate)
        sent_of = add_up(network.group[direct], sent, network.groups)
        groups = np.flatnonzero(sent_of > 0)
        # arcs of pairs: from the tenant where the pair has one node in the region, else by way of the pair
        entries = np.flatnonzero(through[network.entry_pair] & region.nodes[network.entry_node])
        pair_of = network.entry_pair[entries]
        is_wide = np.bincount(pair_of, minlength=len(through)) > 1
        wide = np.flatnonzero(is_wide)
        bases = np.cumsum([2, len(tenants), len(wide), len(groups), len(nodes)])
        tenant_at, pair_at = np.zeros(len(rate), dtype=np.int64), np.zeros(len(through), dtype=np.int64)
        group_at, node_at = (
            np.zeros(network.groups, dtype=np.int64),
            np.zeros(len(region.nodes), dtype=np.int64),
        )
        tenant_at[tenants] = bases[0] + np.arange(len(tenants))
        pair_at[wide] = bases[1] + np.arange(len(wide))
        group_at[groups] = bases[2] + np.arange(len(groups))
        node_at[nodes] = bases[3] + np.arange(len(nodes))
        cells = groups[:0]
        if len(groups):
            cells = np.flatnonzero((group_at > 0)[network.place_group] & region.nodes[network.place_node])
        demand = self.demand_units
        out, upper = self._sum_by_owner(leaving), self._sum_by_owner(through)
        requested = np.minimum(self._units(rate), upper + out)[tenants]
        asked = self._units(sent_of[groups])
        owner = network.owner[pair_of]
        zero, ones = np.zeros, np.ones
        tail = np.concatenate([
            zero(len(tenants)), zero(len(groups)), tenant_at[tenants], tenant_at[network.owner[wide]],
            np.where(is_wide[pair_of], pair_at[pair_of], tenant_at[owner]),
            group_at[network.place_group[cells]], node_at[nodes],
        ]).astype(np.int64)  # fmt: skip
        head = np.concatenate([
            tenant_at[tenants], group_at[groups], ones(len(tenants)), pair_at[wide],
            node_at[network.entry_node[entries]], node_at[network.place_node[cells]], ones(len(nodes)),
        ]).astype(np.int64)  # fmt: skip
        capacity = np.concatenate([
            requested, asked, out[tenants], demand[wide], demand[pair_of], np.full(len(cells), UNLIMITED),
            self._units(self.rate_kops[nodes]),
        ])  # fmt: skip
        full = int(requested.sum()) + int(asked.sum())
        enough = full - int(FEASIBLE * full) - 2 * (len(tenants) + len(groups))
        total, flow, inside = find_flow(int(bases[4]), tail, head, capacity, enough)
        self.flows += 1
        carries = total >= enough
        ends = np.cumsum([2 * len(tenants) + len(groups) + len(wide), len(entries), len(cells)])
        kops = np.zeros(len(network.entry_pair))
        kops[entries] = flow[ends[0] : ends[1]] / self.units
        if len(direct):
            by_place = np.zeros(len(network.place_node))
            by_place[cells] = flow[ends[1] : ends[2]] / self.units
            width = np.diff(network.starts)[network.group[direct]]
            together = sent_of[network.group[direct]]
            fraction = np.divide(sent, together, out=np.zeros_like(sent), where=together > 0)
            entries_of = _ranges(network.entry_start[direct], width)
            kops[entries_of] = by_place[network.entry_place[entries_of]] * np.repeat(fraction, width)
        return _Solved(carries, kops, self._cut(region, inside, through, tenant_at, group_at, node_at, level))

    def _cut(
        self,
        region: _Region,
        inside: Bools,
        through: Bools,
        tenant_at: Ints,
        group_at: Ints,
        node_at: Ints,
        level: float,
    ) -> _Region:
        """Return the source side of a minimum cut: a pair is in it unless the flow through it is full."""
        network = self.network
        inside[:2] = False
        tenants, nodes = inside[tenant_at], inside[node_at]
        outside = through[network.entry_pair] & (region.nodes & ~nodes)[network.entry_node]
        may_leave = np.zeros(len(through), dtype=bool)
        may_leave[network.entry_pair[outside]] = True
        pairs = np.where(
            through, tenants[network.owner] & ~may_leave, region.pairs & inside[group_at][network.group]
        )
        return _Region(tenants & region.tenants, pairs, nodes & region.nodes, level)

    def _sum_by_owner(self, pairs: Bools) -> Ints:
        """Return the units of demand of some pairs (M,) of each tenant, (T,)."""
        rows = np.flatnonzero(pairs)
        sums = np.zeros(len(self.demand), dtype=np.int64)
        if len(rows):
            owner = self.network.owner[rows]
            sums = np.bincount(owner, self.demand_units[rows], len(sums)).astype(np.int64)
        return sums

    def _units(self, kops: Floats) -> Ints:
        return np.floor(kops * self.units).astype(np.int64)

    def find_tenants(self, region: _Region) -> Bools:
        """Return the tenants that a region may still hold, a mask (T,)."""
        network = self.network
        tenants = region.tenants.copy()
        tenants[network.owner[region.pairs & network.is_fixed]] = True
        return tenants & self.is_free

    def hold(self, region: _Region, level: float, entry_kops: Floats) -> None:
        """Hold the tenants of a region at a level and close it."""
        held = self.find_tenants(region)
        rate = self.rates(level)
        self.rate = np.where(held, rate, self.rate)
        self.is_free &= ~held
        limited = np.flatnonzero(held & (rate < self.demand * (1 - EQUAL)))
        if len(limited):
            self.levels.append(Level(level, limited, np.flatnonzero(region.nodes)))
        entries = region.pairs[self.network.entry_pair]
        self.entry_kops[entries] = entry_kops[entries]
        self.open_pair = self.open_pair & ~region.pairs
        self.open_node = self.open_node & ~region.nodes

    def run(self, most_levels: int | None) -> None:
        """Find levels, the lowest first, up to some number of them."""
        stack = [(self.everything(), -1)]  # regions, each in the one before; free tenants when it was cut
        while stack and (most_levels is None or len(self.levels) < most_levels):
            region, before = stack[-1]
            region = self.reduce(region)
            tenants = self.find_tenants(region)
            if not tenants.any():
                stack.pop()
                continue
            pairs = self.divide(region)
            level = self.level_of(region, pairs)
            is_full = level < region.highest * (1 - EQUAL)
            level = min(level, region.highest)
            solved = self.solve(region, level, pairs)
            if solved.carries:
                stack.pop()
                if is_full or np.isinf(level) or int(self.is_free.sum()) == before:
                    self.hold(region, level, solved.entry_kops)
            elif self._is_smaller(solved.cut, region):
                stack.append((solved.cut, int(self.is_free.sum())))
            else:  # short by rounding alone
                stack.pop()
                self.hold(region, level, solved.entry_kops)
        if most_levels is None and self.open_pair.any():  # of held tenants, served in full
            everything = self.everything()
            self.hold(everything, np.inf, self.solve(everything, np.inf, self.divide(everything)).entry_kops)

    def _is_smaller(self, cut: _Region, region: _Region) -> bool:
        """Return whether a cut has tenants to hold, and is not the whole region."""
        is_whole = (cut.pairs == region.pairs).all() and (cut.nodes == region.nodes).all()
        return bool(self.find_tenants(cut).any()) and not (is_whole and (cut.tenants == region.tenants).all())


def share_max_min(
    problem: SharedStore,
    replicas: Replicas,
    *,
    due: Floats | None = None,
    most_levels: int | None = None,
    rate_kops: Floats | None = None,
    network: Network | None = None,
    reserved_kops: Floats | None = None,
) -> MaxMin:
    """Return the lexicographically largest rates over the tenants' fair shares, for given replicas.

    Requests are the only resource here; see `fair_rates.share_dominant` for several.

    due          (T,) rates at level 1; default: `entitlement`
    most_levels  levels after which the search ends, with rates of their tenants alone; default: all
    rate_kops    (N,) requests that nodes serve; default: those of the problem
    network      of the problem and replicas, where it is made already
    reserved_kops  (T,) rates that all tenants can have together, and do whatever their level; None: no such
    """
    network = Network(problem, replicas) if network is None else network
    rates = problem.rate_kops if rate_kops is None else rate_kops
    search = _Search(network, entitlement(problem) if due is None else due, rates, reserved_kops)
    search.run(most_levels)
    rate, kops = _match(problem, replicas, search)
    return MaxMin(rate=rate, kops=kops, levels=tuple(search.levels), flows=search.flows)


def serve_reserved(
    problem: SharedStore,
    replicas: Replicas,
    *,
    rate_kops: Floats | None = None,
    network: Network | None = None,
) -> Floats:
    """Return the part of each reserved rate that replicas serve at best, (T,), see `share_max_min`.

    All of them where that is possible; else the max-min fair rates over reserved ones, up to these.
    """
    reserved = problem.reserved_kops
    rate = share_max_min(problem, replicas, due=reserved, rate_kops=rate_kops, network=network).rate
    return limit_to_reserved(rate, reserved)


def limit_to_reserved(rate_kops: Floats, reserved_kops: Floats) -> Floats:
    """Return rates up to reserved ones, (T,); the reserved one where only rounding is missing."""
    is_met = rate_kops >= reserved_kops * (1 - EQUAL)
    return np.where(is_met, reserved_kops, np.minimum(rate_kops, reserved_kops))


def _match(problem: SharedStore, replicas: Replicas, search: _Search) -> tuple[Floats, Floats]:
    """Return rates and flows that agree exactly: flows are of whole units, and sums differ by rounding."""
    owner = problem.tenant
    kops = search.network.split(search.entry_kops)
    flow = add_up(replicas.partition, weights=kops, minlength=len(owner))
    due = np.where(
        problem.is_fixed[owner],
        problem.share_of_tenant * search.rate[owner],
        np.minimum(flow, problem.demand_kops),
    )
    elastic = ~problem.is_fixed
    sums = add_up(owner, weights=due, minlength=len(elastic))
    factor = np.divide(search.rate, sums, out=np.ones_like(sums), where=elastic & (sums > 0))
    due = np.where(elastic[owner], np.minimum(due * factor[owner], problem.demand_kops), due)
    count = np.bincount(replicas.partition, minlength=len(owner))
    first = np.cumsum(count) - count
    empty = np.flatnonzero((flow <= 0) & (due > 0))
    kops[first[empty]] = due[empty]
    flow[empty] = due[empty]
    scale = np.divide(due, flow, out=np.zeros_like(due), where=flow > 0)
    kops *= scale[replicas.partition]
    rate = add_up(owner, weights=due, minlength=len(elastic))
    return rate, kops
