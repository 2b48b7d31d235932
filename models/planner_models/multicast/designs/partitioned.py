"""Designs without shared entries: addresses partitioned over switches, or stored everywhere.

Lower bound on the host traffic of any plan, whatever its partitions, copies and shared entries.

Lagrangian relaxation of the choice of groups with entries: for problems too large for branch and bound.

A price for each entry of a full table leaves a choice by group: it has entries where it saves more than they
cost. The value at any prices bounds every choice. Subgradient steps lower it; groups in the order of what is
left of their savings fill the tables.

source  Lagrangian relaxation of the multidimensional knapsack problem: Fisher 1981

Lagrangian bound of a p-median at each edge switch, over unions of its port sets.

An edge switch with T free entries opens T unions of port sets. Each group with members there goes to one that
covers its ports, at its rate for each port too many, or by unicast, at its part of what that costs. Relaxing
the assignment with a price for each group, in ports, a union has a value by itself: what its groups save. The
sum of prices less the T largest values is a lower bound, for any prices that unicast does not undercut.

At prices up to d + 1 ports, only groups with at most d ports less than a union save something there. So all
unions of value are near the port sets, and are listed; d grows as far as the list stays short. A union that
is more than its near port sets together saves no more than those, and is left out.

source  Lagrangian relaxation of the p-median: Cornuejols, Fisher and Nemhauser 1977

The design that makes no plan: lower bounds on host traffic.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import comb
from typing import Annotated, Final, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.contract.proof import OPTIMAL_GAP, Proof
from planner.options import Options, Service
from planner.search.ascent import Ascent
from planner.search.deadline import NEVER, Deadline
from planner.search.judged import feasible, infeasible, judged, of_solution, optimal, undecided
from planner.search.tolerances import ROUNDING
from planner_models.multicast.plan.meta_groups import Masks, extra_mbps_bound
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.table_limits import TableLimits, admit_in_order, build_limits
from planner_models.multicast.problem.problem import Multicast

METRIC: Final = "host_traffic_mbps"
WITHOUT_HEADERS: Final = "groups by table entries or unicast"
BOUND_SCOPE: Final = "partitions given in turn"
MAX_GROUPS_MODELLED: Final = 50_000  # in an integer program

Choose = Annotated[
    Literal["value", "arrival"],
    Field(description="groups with entries: value: those that save the most; arrival: first come"),
]
_KNOWN: WeakKeyDictionary[Multicast, float] = WeakKeyDictionary()  # several designs need the same bound
MAX_STEPS: Final = 300
FIRST_STEP: Final = 1.0  # of the length that would close the gap
LAST_STEP: Final = 0.02
STEPS_WITHOUT_GAIN: Final = 8  # then steps are half as long
PLAN_PERIOD: Final = 15  # steps from one choice to the next
MAX_LISTED: Final = 1_500_000  # pairs of port set and union, of one switch
MAX_LISTED_IN_ALL: Final = 6_000_000
MIN_SHARE_BOUNDED: Final = 0.2  # of the switches, roughly; with fewer the gain is not worth the time
MAX_EDGE_STEPS: Final = 100  # of the subgradient method
FIRST_EDGE_STEP: Final = 0.6  # of prices, in ports
LAST_EDGE_STEP: Final = 0.01
MOST_SURPLUS: Final = 3.0  # unions that take a set too often, which lower its price in one step


def store_everywhere(problem: Multicast, *, options: Options = Options()) -> Decision[Channels]:
    """Store every group, first come, first served, at all core and aggregation switches that may get it.

    Groups that do not fit go by unicast; with service `all` there is then no plan.
    """
    return _admit(problem, problem.whole_copies, options)


def partition_addresses(
    problem: Multicast, *, choose: Choose = "value", options: Options = Options()
) -> Decision[Channels]:
    """Store groups at the core and aggregation switches that hold their partition; others go by unicast.

    The bound covers partitions given in turn and entries that are not shared. With service `all`, every
    group must have entries.
    """
    copies = problem.aggregation_copies
    if choose == "arrival":
        return _admit(problem, copies, options)
    deadline = Deadline.of(options)
    selected, proof = select_groups(problem, build_limits(problem, copies), options)
    if proof.bound is not None:
        proof = widen_bound(problem, proof, f"{BOUND_SCOPE}, no shared entries", deadline=deadline)
    return Decision(plan=None if selected is None else build_plan(problem, selected, copies), proof=proof)


def selection_program(
    problem: Multicast,
    *,
    choose: Choose = "value",  # noqa: ARG001
    service: Service = "best",
) -> LinearProgram:
    """Return the integer program of `partition_addresses`; with service "all", all groups have entries."""
    program = selection_model(problem, build_limits(problem, problem.aggregation_copies))
    about = "the traffic that hosts receive, groups without entries included"
    program = program.describe(about, metric="host_traffic_mbps", unit="Mbit/s")
    return program if service == "best" else replace(program, lower=program.upper)


def _admit(problem: Multicast, copies: int, options: Options) -> Decision[Channels]:
    limits = build_limits(problem, copies)
    selected = admit_in_order(limits)
    if options.service == "all" and not selected.all():
        return Decision(plan=None, proof=refuse(limits))
    proof = feasible(traffic_mbps(problem, selected), metric=METRIC, seconds=None)
    return Decision(plan=build_plan(problem, selected, copies), proof=proof)


def traffic_mbps(problem: Multicast, selected: Bools) -> float:
    """Return the host traffic with entries for groups `selected` (G,) and unicast for the others."""
    return float(2 * problem.rate_mbps @ problem.member_counts) - float(saved_mbps(problem)[selected].sum())


def saved_mbps(problem: Multicast) -> Floats:
    """Return the host traffic that entries of a group save, (G,): its source sends one copy only."""
    return problem.rate_mbps * (problem.member_counts - 1)


def selection_model(problem: Multicast, limits: TableLimits) -> LinearProgram:
    """Return the integer program of least host traffic: variable `hardware`, 1 for groups with entries."""
    offset = traffic_mbps(problem, np.zeros(len(problem.groups), dtype=bool))
    m = ProgramBuilder(name="groups in hardware", offset=offset)
    hardware = m.variables(
        "hardware",
        len(problem.groups),
        upper=1.0,
        cost=-saved_mbps(problem),
        integer=True,
        labels=problem.groups["group"].tolist,
    )
    m.constrain("table", limits.uses @ hardware, upper=limits.free)
    return m.build()


def select_groups(problem: Multicast, limits: TableLimits, options: Options) -> tuple[Bools | None, Proof]:
    """Return the groups with entries that save the most, (G,), within the limits, and the proof.

    Many groups, and those for which the solver ends without a plan, are chosen by Lagrangian relaxation. No
    groups are returned where service is `all` and not all fit.
    """
    everyone = np.ones(len(problem.groups), dtype=bool)
    if limits.can_hold_all:
        lower = traffic_mbps(problem, everyone)
        return everyone, optimal(lower, metric=METRIC)
    if options.service == "all":
        return None, refuse(limits)
    if len(everyone) <= MAX_GROUPS_MODELLED:
        solution = backends.solve(selection_model(problem, limits), options)
        if solution.x is not None:
            selected = solution.x > 0.5
            return selected, of_solution(
                solution, objective=traffic_mbps(problem, selected), bound=solution.bound, metric=METRIC
            )
    by_unicast = traffic_mbps(problem, ~everyone)
    gap = OPTIMAL_GAP if options.gap is None else options.gap
    lower = by_unicast - float(saved_mbps(problem).sum())
    priced = select_by_prices(
        saved_mbps(problem), limits, gap_mbps=gap * lower, deadline=Deadline.of(options)
    )
    objective, bound = traffic_mbps(problem, priced.kept), by_unicast - priced.bound_mbps
    is_proven = objective - bound <= gap * objective
    return priced.kept, judged("min", objective, bound, is_optimal=is_proven, metric=METRIC)


def refuse(limits: TableLimits) -> Proof:
    """Return the proof that the tables cannot hold all groups: the switches that overflow."""
    reasons = tuple(f"table: {line}" for line in limits.describe_overflows())
    return infeasible(*reasons, metric=METRIC, bound_scope=BOUND_SCOPE)


def widen_bound(problem: Multicast, proof: Proof, scope: str, *, deadline: Deadline = NEVER) -> Proof:
    """Return the proof with the better of its bound within the scope, and the bound of all plans.

    deadline  at which the bound of all plans may be weaker
    """
    lower = bound_mbps(problem, deadline=deadline)
    if proof.bound is not None and proof.bound > lower * (1 + 1e-9):
        return replace(proof, bound_scope=scope)
    # headers in packets need no entries: then no plan has less than a copy for each source and member
    of_all = lower <= float(problem.rate_mbps @ (1 + problem.member_counts)) * (1 + 1e-9)
    return replace(proof, bound=lower, bound_scope=None if of_all else WITHOUT_HEADERS)


def bound_mbps(problem: Multicast, *, deadline: Deadline = NEVER) -> float:
    """Return the traffic of all groups with entries, and the least that full tables add to it.

    Edge switches: groups at one without a free entry go by unicast. At others all port sets beyond the table
    cost extra: a group is either carried to ports too many, at least one, or by unicast, which adds its rate
    for all members but one; that is divided evenly over its edge switches. The least of this is bounded by a
    p-median at each switch (`bound_extra_mbps`). Cores: groups of several pods need an entry in at least
    one, where none can be shared.

    deadline  at which a weaker bound is returned
    """
    if problem not in _KNOWN:
        bound = _bound_mbps(problem, deadline)
        if deadline.is_over:
            return bound
        _KNOWN[problem] = bound
    return _KNOWN[problem]


def _bound_mbps(problem: Multicast, deadline: Deadline) -> float:
    edge, group, masks = problem.at_edge
    rate, members = problem.rate_mbps, problem.member_counts
    reached = problem.edges_in_pod.sum(axis=1)
    weight, saved = rate * np.minimum(1.0, (members - 1) / reached), rate * (members - 1)
    refused = np.bincount(group, problem.free("edge")[edge] < 1, minlength=len(rate)) > 0
    others = ~refused[group]
    edge, group, masks = edge[others], group[others], masks[others]
    free = problem.free("edge")
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    simple = np.zeros(len(free))
    for switch, (size, (a, b)) in enumerate(zip(free.tolist(), pairwise(start), strict=True)):
        if deadline.is_over:
            break
        if b - a > size:
            simple[switch] = extra_mbps_bound(masks[a:b], weight[group[a:b]], size)
    at_edges = float(saved[refused].sum() + simple.sum())
    if simple.any():
        unicast = (saved / reached)[group]
        switches = split_switches(edge, masks, rate[group], unicast, free)
        tighter = bound_extra_mbps(switches, deadline=deadline)
        at_edges += float(np.maximum(tighter - simple, 0.0).sum())
    across = np.diff(problem.below.start) > 1
    beyond = max(0, int(across.sum()) - int(problem.free("core").sum()))
    at_cores = float(np.sort(saved[across])[:beyond].sum())
    return float(rate @ (1 + members)) + max(at_edges, at_cores)


class Selection(NamedTuple):
    """Groups with entries, their saving, and the bound on the saving of any choice, Mbit/s."""

    kept: Bools
    saved_mbps: float
    bound_mbps: float


def select_by_prices(
    saved_mbps: Floats, limits: TableLimits, *, gap_mbps: float, deadline: Deadline = NEVER
) -> Selection:
    """Return groups that save much, within the limits, and a bound.

    saved_mbps  (G,) what each group saves
    gap_mbps    difference to the bound at which the search ends
    deadline    at which it ends
    """
    uses, free = limits.uses.astype(float), limits.free.astype(float)
    of_group = uses.T.tocsr()
    refused = np.asarray(of_group @ (free < 1) > 0)
    value = np.where(refused, 0.0, saved_mbps)
    price = _first_prices(value, limits)
    best, admitted_best = -1.0, np.zeros(len(value), dtype=bool)
    descent = Ascent(price, factor=FIRST_STEP, stall_limit=STEPS_WITHOUT_GAIN)  # of the bound from above
    for step in range(MAX_STEPS):
        reduced_value = value - of_group @ price
        selected = reduced_value > 0
        reached = float(reduced_value[selected].sum() + price @ free) * (1 + ROUNDING)
        if step % PLAN_PERIOD == 0:
            admitted = admit_in_order(limits, order=np.argsort(-reduced_value, kind="stable")) & ~refused
            if (total_value := float(value[admitted].sum())) > best:
                best, admitted_best = total_value, admitted
        if descent.tell(-reached, price):
            price = descent.go_back()
            continue
        is_late = deadline.is_over
        if -descent.best - best <= gap_mbps or descent.factor < LAST_STEP or is_late:
            break
        slope = uses @ selected - free
        slope = np.where((slope > 0) | (price > 0), slope, 0.0)
        norm = float(slope @ slope)
        if norm == 0:
            break
        price = np.maximum(price + descent.length(reached - best, norm) * slope, 0.0)
    return Selection(admitted_best, best, max(-descent.best, best))


def _first_prices(value: Floats, limits: TableLimits) -> Floats:
    """Return prices at which each table by itself holds the groups that save the most for each entry."""
    uses = limits.uses.tocsr()
    each = value / np.maximum(np.bincount(uses.indices, minlength=len(value)), 1)
    price = np.zeros(len(limits.free))
    for row, free in enumerate(limits.free.tolist()):
        here = each[uses.indices[uses.indptr[row] : uses.indptr[row + 1]]]
        if len(here) > free > 0:
            price[row] = np.partition(here, len(here) - free - 1)[len(here) - free - 1]
    return price


class Switch(NamedTuple):
    """Groups with members at an edge switch.

    ports    (groups,) port sets
    rate     (groups,) Mbit/s
    unicast  (groups,) what unicast costs more, the switch's part, Mbit/s
    free     table entries
    """

    ports: Masks
    rate: Floats
    unicast: Floats
    free: int


def split_switches(switch: Ints, ports: Masks, rate: Floats, unicast: Floats, free: Ints) -> list[Switch]:
    """Return the edge switches, of pairs of switch and group in the order of the switches."""
    start = np.searchsorted(switch, np.arange(len(free) + 1)).tolist()
    return [
        Switch(ports[a:b], rate[a:b], unicast[a:b], size)
        for size, (a, b) in zip(free.tolist(), pairwise(start), strict=True)
    ]


def bound_extra_mbps(switches: list[Switch], *, deadline: Deadline = NEVER) -> Floats:
    """Return a lower bound of the traffic that each switch adds, (switches,), Mbit/s.

    Where switches are many and large, those with the most traffic come first, and others get 0; so do those
    without a free entry, and all where only a few could be bounded.

    deadline  at which the bounds found so far are returned
    """
    best = np.zeros(len(switches))
    full = [index for index, switch in enumerate(switches) if len(switch.ports) > switch.free > 0]
    sets = {row: np.unique(switches[row].ports) for row in full}
    full = [row for row in full if len(sets[row]) > switches[row].free]
    if sum(_count_near(sets[row], 1) for row in full) > MAX_LISTED_IN_ALL / MIN_SHARE_BOUNDED:
        return best
    full.sort(key=lambda row: (-float(switches[row].rate.sum()), row))
    budget = MAX_LISTED_IN_ALL
    for finished, switch_index in enumerate(full):
        if deadline.is_over:
            break
        share = min(MAX_LISTED, max(budget // (len(full) - finished), budget // 50))
        search = _LagrangianBound(switches[switch_index], share)
        if search.depth < 1:
            continue
        budget -= search.listed
        best[switch_index] = search.run(deadline)
    return best


def _count_near(sets: Masks, depth: int) -> int:
    """Return the number of pairs of a port set and a set of at most `depth` ports more."""
    ports = int(np.bitwise_count(np.bitwise_or.reduce(sets)))
    return len(sets) * sum(comb(ports, more) for more in range(depth + 1))


class _LagrangianBound:
    """Subgradient method on the price of each port set of a switch, in ports.

    depth      ports by which a union may exceed a set that saves something
    set, extra, union  (n,) pairs of port set and union near it, and the ports that it exceeds the set
    """

    def __init__(self, switch: Switch, limit: int) -> None:
        self.free = switch.free
        sets, inverse = np.unique(switch.ports, return_inverse=True)
        # groups with the same ports and the same cost of unicast are one
        key, group = np.unique(np.c_[inverse, switch.unicast / switch.rate], axis=0, return_inverse=True)
        self.place, self.limit = key[:, 0].astype(np.int64), key[:, 1]
        self.rate = np.bincount(group.ravel(), switch.rate)
        self.sets = sets
        ports = int(np.bitwise_count(np.bitwise_or.reduce(sets)))
        self.depth, self.listed = -1, 0
        for depth in range(ports):
            listed = _count_near(sets, depth)
            if listed > limit:
                break
            self.depth, self.listed = depth, listed
        if self.depth >= 1:
            self.set, self.extra, self.union = self._list_unions()
            self.count = int(self.union.max()) + 1

    def _list_unions(self) -> tuple[Ints, Ints, Ints]:
        every = int(np.bitwise_or.reduce(self.sets))
        bits = [np.uint64(1 << bit) for bit in range(64) if every >> bit & 1]
        row, mask = np.arange(len(self.sets)), self.sets
        first = np.zeros(len(row), dtype=np.int64)  # bits are added in ascending order
        levels = [(row, mask)]
        for _ in range(self.depth):
            parts = []
            for index, bit in enumerate(bits):
                fits = (first <= index) & ((mask & bit) == 0)
                parts.append((row[fits], mask[fits] | bit, np.full(int(fits.sum()), index + 1)))
            row, mask, first = (np.concatenate(column) for column in zip(*parts, strict=True))
            levels.append((row, mask))
        extra = np.repeat(np.arange(len(levels)), [len(level_sets) for level_sets, _ in levels])
        row, mask = (np.concatenate(column) for column in zip(*levels, strict=True))
        order = np.argsort(mask, kind="stable")
        row, mask, extra = row[order], mask[order], extra[order]
        new = np.r_[True, mask[1:] != mask[:-1]]
        start = np.flatnonzero(new)
        joined = np.bitwise_or.reduceat(self.sets[row], start)  # of the sets near each union
        is_first = (joined == mask[start])[np.cumsum(new) - 1]
        union = np.unique(mask[is_first], return_inverse=True)[1]
        return row[is_first], extra[is_first], union.astype(np.int64)

    def run(self, deadline: Deadline) -> float:
        """Return the best bound, Mbit/s."""
        best = 0.0
        price = np.ones(len(self.sets))
        weight = np.bincount(self.place, self.rate, minlength=len(price))
        for length in np.geomspace(FIRST_EDGE_STEP, LAST_EDGE_STEP, MAX_EDGE_STEPS):
            if deadline.is_over:
                break
            paid = np.minimum(price[self.place], self.limit)
            saved = self._savings(paid)
            value = np.bincount(self.union, saved[self.extra, self.set], minlength=self.count)
            is_open = np.zeros(self.count, dtype=bool)
            top = np.argsort(-value, kind="stable")[: self.free]
            is_open[top] = value[top] > 0
            best = max(best, float(self.rate @ paid - value[top].sum()) * (1 - ROUNDING))
            # unions that take each set at each number of ports too many
            takes = is_open[self.union]
            count = np.zeros((self.depth + 1, len(price)))
            np.add.at(count, (self.extra[takes], self.set[takes]), 1.0)
            taken = sum(count[extra, self.place] * (paid > extra) for extra in range(self.depth + 1))
            slope = np.where(paid < self.limit, 1.0 - taken, np.minimum(1.0 - taken, 0.0))
            change = np.bincount(self.place, self.rate * slope, minlength=len(price)) / weight
            price = np.clip(price + length * np.clip(change, -MOST_SURPLUS, 1.0), 0.0, self.depth + 1.0)
        return best

    def _savings(self, paid: Floats) -> Floats:
        """Return the saving of each set in a union that exceeds it by 0, 1, ... ports: (depth + 1, sets)."""
        return np.array(
            [
                np.bincount(self.place, self.rate * np.maximum(paid - extra, 0.0), minlength=len(self.sets))
                for extra in range(self.depth + 1)
            ]
        )


def bound_host_traffic(problem: Multicast, *, options: Options = Options()) -> Decision[Channels]:
    """Return no plan, but a bound that no plan with partitions in turn beats, whatever edge switches share.

    The better of two bounds: the linear relaxation of the groups that core and aggregation tables hold, and
    the least that full tables add in any plan.
    """
    deadline = Deadline.of(options)
    solution = backends.solve(relaxation_model(problem), options)
    proof = undecided(bound=solution.bound, metric=METRIC, backend=solution.backend)
    scope = f"{BOUND_SCOPE}, entries shared by edge switches"
    return Decision(plan=None, proof=widen_bound(problem, proof, scope, deadline=deadline))


def relaxation_model(problem: Multicast) -> LinearProgram:
    """Return the linear program: groups may be stored in part, and edge switches hold all."""
    limits = build_limits(problem, problem.aggregation_copies, layers=("core", "aggregation"))
    about = "host traffic, where groups may be stored in part and edge switches hold all: a lower bound"
    return replace(selection_model(problem, limits), integer=None).describe(about)
