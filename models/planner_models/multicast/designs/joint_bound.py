"""Lagrangian relaxation of the joint choice between unicast, own and shared entries, over all switches.

Each edge switch whose table overflows opens unions of port sets. Two kinds of constraints are relaxed, each
with a price: a group with entries goes to an open union at each of its edge switches; the tables of cores and
aggregation switches hold the groups that they must. What is left falls apart: a switch opens the unions that
save the most at its prices (`search_unions`); a group goes by unicast, or pays its prices, whichever is less.

source  Lagrangian relaxation of the p-median: Cornuejols, Fisher and Nemhauser 1977

Exact choice between unicast, own and shared entries: selection of groups and a p-median at edge switches.

Each edge switch whose table overflows opens unions of port sets, at most as many as it has free entries. A
group with entries is assigned to one open union at each of them that covers its ports there, at the traffic
of its ports without members; other tables limit the groups with entries.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.multicast.designs.channelization.p_median import list_unions, search_unions
from planner_models.multicast.designs.partitioned import METRIC, saved_mbps, traffic_mbps
from planner_models.multicast.designs.unicast_exchange import NO_ENTRY, EdgeTables
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.table_limits import TableLimits
from planner_models.multicast.problem.problem import Multicast

MAX_NODES: Final = 1_000_000  # of a search for unions
MAX_STEPS: Final = 500  # of the subgradient method
FIRST_STEP: Final = 0.7  # of Polyak's step length
LAST_STEP: Final = 1e-3
STEPS_WITHOUT_GAIN: Final = 8  # after so many the step is halved
SMOOTHING_FACTOR: Final = 0.6  # of the direction
TARGET_FACTOR: Final = 1.002  # the target of a step, as a share of the incumbent
FIRST_VALUE_SHARE: Final = 1e-3  # of the traffic of a switch: least value of a union in the first search
MAX_UNIONS: Final = 1024  # of one switch
MAX_ASSIGNMENTS: Final = 60_000  # variables of pairs and unions


class EdgeSwitch(NamedTuple):
    """Groups at an edge switch with an overflowing table.

    pairs   rows of `problem.at_edge`
    group   (groups,) the groups
    ports   (groups,) port sets
    rate    (groups,) Mbit/s
    free    table entries, at least 1
    number  the switch
    """

    pairs: Ints
    group: Ints
    ports: Masks
    rate: Floats
    free: int
    number: int


class Prices(NamedTuple):
    """Lagrangian multipliers, Mbit/s.

    pair   (pairs,) of the assignment of each pair of `problem.at_edge`; 0 where a table does not overflow
    table  (rows,) of an entry in each table of the limits
    """

    pair: Floats
    table: Floats


def list_full_switches(problem: Multicast, groups: Bools) -> list[EdgeSwitch]:
    """Return the edge switches with free entries, and more of these groups, (G,), than they have entries."""
    edge, group, ports = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1))
    switches = []
    for switch, free in enumerate(problem.free("edge").tolist()):
        rows = np.arange(start[switch], start[switch + 1])
        rows = rows[groups[group[rows]]]
        if len(rows) > free > 0:
            who = group[rows]
            switches.append(EdgeSwitch(rows, who, ports[rows], problem.rate_mbps[who], free, switch))
    return switches


class JointRelaxation:
    """Subgradient method on the prices, with the best bound and its prices.

    limits    of all tables but those of edge switches with a free entry
    refused   (G,) groups at an edge switch without a free entry, or that no plan may hold
    bound     lower bound on host traffic, Mbit/s
    opened    (switches,) unions that each switch of `switches` opens at the present prices
    """

    def __init__(self, problem: Multicast, limits: TableLimits, *, must_hold: bool = False) -> None:
        self.problem, self.limits = problem, limits
        self.saved = saved_mbps(problem)
        if must_hold:
            self.saved = np.full(len(self.saved), np.inf)
        needed = np.zeros(len(self.saved), dtype=bool)
        rows = np.flatnonzero(limits.free < 1)
        needed[limits.uses[rows].indices] = True
        self.refused = needed & (not must_hold)
        self.switches = list_full_switches(problem, ~self.refused)
        self.least = float(problem.rate_mbps @ (1 + problem.member_counts))
        self.bound = self.least + float(self.saved[self.refused].sum())
        self.best = Prices(np.zeros(len(problem.at_edge[0])), np.zeros(len(limits.free)))
        self.opened: list[Masks] = [np.zeros(0, dtype=np.uint64) for _ in self.switches]
        self._min_value = [FIRST_VALUE_SHARE * float(switch.rate.sum()) for switch in self.switches]

    def start(self, entry: Ints) -> Prices:
        """Return first prices: the cost of each pair with these entries, (pairs,), -1 for none, and a little.

        Groups without entries pay the equal part of what entries save them.
        """
        price = np.zeros(len(entry))
        reached = np.bincount(self.problem.at_edge[1], minlength=len(self.saved))
        for switch in self.switches:
            entries = entry[switch.pairs]
            has = np.flatnonzero(entries >= 0)
            union = np.zeros(int(entries.max(initial=0)) + 1, dtype=np.uint64)
            np.bitwise_or.at(union, entries[has], switch.ports[has])
            unicast = (
                np.minimum(self.saved, 1e3 * self.problem.rate_mbps)[switch.group] / reached[switch.group]
            )
            price[switch.pairs] = unicast
            extra = switch.rate[has] * (np.bitwise_count(union[entries[has]] & ~switch.ports[has]) + 0.5)
            price[switch.pairs[has]] = extra
        return Prices(price, np.zeros(len(self.limits.free)))

    def evaluate(self, prices: Prices) -> tuple[float, Bools, list[Floats], bool]:
        """Return bound, groups with entries, numbers of unions by group and switch, and validity.

        Without validity, a search for unions was too long, and the bound is none.
        """
        group = self.problem.at_edge[1]
        asked = np.bincount(group, prices.pair, minlength=len(self.saved)) + self.limits.uses.T @ prices.table
        held = (asked < self.saved) & ~self.refused
        bound = self.least + float(np.where(held, asked, self.saved).sum())
        bound -= float(prices.table @ self.limits.free)
        taken = []
        for index, switch in enumerate(self.switches):
            price = prices.pair[switch.pairs]
            total = price + switch.rate * np.bitwise_count(switch.ports)
            unions, values = self._search(index, total)
            if unions is None:
                return -np.inf, held, [], False
            order = np.argsort(-values, kind="stable")[: switch.free]
            short = switch.free - len(order)
            bound -= float(values[order].sum()) + short * self._min_value[index]
            self.opened[index] = unions[order]
            if short:
                self._min_value[index] *= 0.7
            else:
                self._min_value[index] = 0.8 * float(values[order[-1]])
            self._min_value[index] = max(self._min_value[index], ROUNDING * self.least)
            covers = (switch.ports[:, None] & ~unions[order][None, :]) == 0
            pays = total[:, None] > switch.rate[:, None] * np.bitwise_count(unions[order])[None, :]
            taken.append((covers & pays).sum(axis=1).astype(float))
        return bound * (1 - ROUNDING), held, taken, True

    def _search(self, index: int, total: Floats) -> tuple[Masks | None, Floats]:
        switch = self.switches[index]
        for _ in range(6):
            unions, values, is_complete = search_unions(
                switch.ports, switch.rate, total, self._min_value[index], MAX_NODES
            )
            if is_complete:
                return unions, values
            self._min_value[index] *= 2
        return None, values

    def step(
        self, prices: Prices, held: Bools, taken: list[Floats], slope: Prices, length: float, rise: float
    ) -> tuple[Prices, Prices]:
        """Return the next prices and the smoothed slope.

        length  share of the step to the plane where the bound would rise by `rise`
        """
        group = self.problem.at_edge[1]
        pair = SMOOTHING_FACTOR * slope.pair
        for switch, count in zip(self.switches, taken, strict=True):
            pair[switch.pairs] += held[switch.group] - count
        used = self.limits.uses @ held.astype(float) - self.limits.free
        table = SMOOTHING_FACTOR * slope.table + used
        # a price of 0 falls no further
        pair[(prices.pair <= 0) & (pair < 0)] = 0.0
        table[(prices.table <= 0) & (table < 0)] = 0.0
        norm = float(pair @ pair + table @ table)
        if norm == 0:
            return prices, Prices(pair, table)
        size = length * rise / norm
        raw_prices = Prices(
            np.maximum(prices.pair + size * pair, 0.0), np.maximum(prices.table + size * table, 0.0)
        )
        # more than unicast costs, no group pays
        asked = np.bincount(group, raw_prices.pair, minlength=len(self.saved))
        over = np.where(asked > self.saved, self.saved / np.maximum(asked, 1e-300), 1.0)
        return Prices(raw_prices.pair * np.minimum(over, 1.0)[group], raw_prices.table), Prices(pair, table)

    def list_candidates(self, incumbent_mbps: float) -> list[Masks] | None:
        """Return the unions of each switch that a plan better than the incumbent may open; None if unknown.

        Forcing a union into the relaxation, for the worst that is chosen, raises the bound.
        """
        candidates: list[Masks] = []
        for switch in self.switches:
            total = self.best.pair[switch.pairs] + switch.rate * np.bitwise_count(switch.ports)
            index = len(candidates)
            unions, values = self._search(index, total)
            if unions is None or len(values) < switch.free:
                return None
            last = float(np.sort(values)[::-1][switch.free - 1])
            needed = last - (incumbent_mbps - self.bound) - ROUNDING * incumbent_mbps
            if needed <= 0:
                return None
            unions, _, is_complete = search_unions(
                switch.ports, switch.rate, total, needed, MAX_NODES, every=True
            )
            if not is_complete:
                return None
            candidates.append(unions)
        return candidates


class Assignments(NamedTuple):
    """Possible assignments of pairs of edge switch and group to unions of the switch.

    unions  (unions,) port sets, switch by switch
    switch  (unions,) switch of each
    pair    row of `problem.at_edge` of each assignment
    union   its union
    """

    unions: Masks
    switch: Ints
    pair: Ints
    union: Ints


def list_assignments(problem: Multicast) -> Assignments | None:
    """Return the assignments at all edge switches that overflow; None where there are too many."""
    edge, _, ports = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    unions: list[tuple[int, Masks]] = []
    for switch, ((a, b), size) in enumerate(zip(pairwise(start), problem.free("edge").tolist(), strict=True)):
        if b - a <= size:
            continue
        try:
            every = list_unions(ports[a:b].tolist(), MAX_UNIONS)
        except InputError:
            return None
        unions.append((switch, np.array(every, dtype=np.uint64)))
    return assign_unions(problem, unions)


def assign_unions(problem: Multicast, unions: list[tuple[int, Masks]]) -> Assignments | None:
    """Return the assignments to these unions of edge switches; None where there are too many."""
    edge, _, ports = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    nothing = np.zeros(0, dtype=np.int64)
    parts = [(np.zeros(0, dtype=np.uint64), nothing, nothing, nothing)]
    opened = assigned = 0
    for switch, some in unions:
        a, b = start[switch : switch + 2]
        pair, union = np.nonzero((ports[a:b, None] & ~some[None, :]) == 0)
        parts.append((some, np.full(len(some), switch), a + pair, opened + union))
        opened, assigned = opened + len(some), assigned + len(pair)
        if assigned > MAX_ASSIGNMENTS:
            return None
    return Assignments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def joint_model(problem: Multicast, limits: TableLimits, assignments: Assignments) -> LinearProgram:
    """Return the integer program of least host traffic."""
    _, group, ports = problem.at_edge
    groups = len(problem.groups)
    of_group = group[assignments.pair]
    extra = problem.rate_mbps[of_group] * np.bitwise_count(
        assignments.unions[assignments.union] & ~ports[assignments.pair]
    )
    pairs, row = np.unique(assignments.pair, return_inverse=True)
    switches, of_union = np.unique(assignments.switch, return_inverse=True)

    m = ProgramBuilder(
        name="groups in hardware with shared entries",
        offset=traffic_mbps(problem, np.zeros(groups, dtype=bool)),
    )
    names = problem.groups["group"].tolist
    hardware = m.variables(
        "hardware", groups, upper=1.0, cost=-saved_mbps(problem), integer=True, labels=names
    )
    union = m.variables("union", len(assignments.unions), upper=1.0, integer=True)
    assign = m.variables("assign", len(assignments.pair), upper=1.0, cost=extra)
    m.constrain("table", limits.uses @ hardware, upper=limits.free)
    m.constrain("served", assign.sum_by(row, len(pairs)) - hardware[group[pairs]], equal=0.0)
    m.constrain("open", assign - union[assignments.union], upper=0.0)
    m.constrain("edge_table", union.sum_by(of_union, len(switches)), upper=problem.free("edge")[switches])
    return m.build()


def solve(
    problem: Multicast, limits: TableLimits, options: Options, *, found: Assignments | None = None
) -> tuple[EdgeTables, Proof] | None:
    """Return the entries of edge switches and the groups that have some, with the proof.

    None where edge switches have too many unions of port sets, or the solver ends without a plan.

    limits  of all tables but those of edge switches with a free entry
    found   assignments to unions; default: to all unions of port sets
    """
    found = list_assignments(problem) if found is None else found
    if found is None:
        return None
    model = joint_model(problem, limits, found)
    solution = backends.solve(model, options)
    if solution.x is None:
        return None
    selected = model.values("hardware", solution.x) > 0.5
    is_open = model.values("union", solution.x) > 0.5
    edge, group, ports = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count))
    entry = np.where(selected[group], np.arange(len(edge)) - start[edge], NO_ENTRY)  # own entries
    usable = is_open[found.union]
    pair, union = found.pair[usable], found.union[usable]
    extra = np.bitwise_count(found.unions[union] & ~ports[pair])
    order = np.lexsort((extra, pair))
    pair, first = np.unique(pair[order], return_index=True)
    entry[pair] = np.where(selected[group[pair]], union[order][first], NO_ENTRY)
    tables = EdgeTables(problem=problem, limits=limits, kept=selected, entry=entry)
    proof = Proof(
        status=solution.status if solution.status is Status.OPTIMAL else Status.FEASIBLE,
        objective=tables.total_mbps,
        bound=solution.bound,
        metric=METRIC,
        backend=solution.backend,
    )
    return tables, proof
