"""Designs without shared entries: addresses partitioned over switches, or stored everywhere.

Lower bound on the host traffic of any plan, whatever its partitions, copies and shared entries.

Lagrangian relaxation of the choice of groups with entries: for problems too large for branch and bound.

A price for each entry of a full table leaves a choice by group: it has entries where it saves more than they
cost. The value at any prices bounds every choice. Subgradient steps lower it; groups in the order of what is
left of their savings fill the tables.

source  Lagrangian relaxation of the multidimensional knapsack problem: Fisher 1981
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Final, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.contract.proof import OPTIMAL_GAP, Proof
from planner.options import Options, Service
from planner.search.ascent import Ascent
from planner.search.deadline import NEVER, Deadline
from planner.search.judged import feasible, infeasible, judged, of_solution, optimal
from planner.search.tolerances import ROUNDING
from planner_models.multicast.designs import edge_bound
from planner_models.multicast.plan.meta_groups import extra_mbps_bound
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
    p-median at each switch (`edge_bound`). Cores: groups of several pods need an entry in at least one, where
    none can be shared.

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
        switches = edge_bound.split_switches(edge, masks, rate[group], unicast, free)
        tighter = edge_bound.bound_extra_mbps(switches, deadline=deadline)
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
