"""Designs without shared entries: addresses partitioned over switches, or stored everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.design import Decision
from planner.contract.proof import OPTIMAL_GAP, Proof, Status
from planner.options import Options, Service
from planner_models.multicast.designs import group_selection
from planner_models.multicast.designs.universal_bound import bound_mbps
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
    until = options.deadline()
    kept, proof = select_groups(problem, build_limits(problem, copies), options)
    if proof.bound is not None:
        proof = widen_bound(problem, proof, f"{BOUND_SCOPE}, no shared entries", until=until)
    return Decision(plan=None if kept is None else build_plan(problem, kept, copies), proof=proof)


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
    kept = admit_in_order(limits)
    if options.service == "all" and not kept.all():
        return Decision(plan=None, proof=refuse(limits))
    proof = Proof(status=Status.FEASIBLE, objective=traffic_mbps(problem, kept), metric=METRIC, seconds=None)
    return Decision(plan=build_plan(problem, kept, copies), proof=proof)


def traffic_mbps(problem: Multicast, kept: Bools) -> float:
    """Return the host traffic where groups `kept` (G,) have their own entries and others go by unicast."""
    return float(2 * problem.rate_mbps @ problem.member_counts) - float(saved_mbps(problem)[kept].sum())


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
        least = traffic_mbps(problem, everyone)
        return everyone, Proof(status=Status.OPTIMAL, objective=least, bound=least, metric=METRIC)
    if options.service == "all":
        return None, refuse(limits)
    if len(everyone) <= MAX_GROUPS_MODELLED:
        solution = backends.solve(selection_model(problem, limits), options)
        if solution.x is not None:
            kept = solution.x > 0.5
            return kept, Proof(
                status=solution.status,
                objective=traffic_mbps(problem, kept),
                bound=solution.bound,
                metric=METRIC,
                backend=solution.backend,
            )
    by_unicast = traffic_mbps(problem, ~everyone)
    gap = OPTIMAL_GAP if options.gap is None else options.gap
    least = by_unicast - float(saved_mbps(problem).sum())
    found = group_selection.select_by_prices(
        saved_mbps(problem), limits, gap_mbps=gap * least, until=options.deadline()
    )
    objective, bound = traffic_mbps(problem, found.kept), by_unicast - found.bound_mbps
    is_proven = objective - bound <= gap * objective
    status = Status.OPTIMAL if is_proven else Status.FEASIBLE
    return found.kept, Proof(status=status, objective=objective, bound=min(bound, objective), metric=METRIC)


def refuse(limits: TableLimits) -> Proof:
    """Return the proof that the tables cannot hold all groups: the switches that overflow."""
    reasons = tuple(f"table: {line}" for line in limits.describe_overflows())
    return Proof(status=Status.INFEASIBLE, metric=METRIC, bound_scope=BOUND_SCOPE, reasons=reasons)


def widen_bound(problem: Multicast, proof: Proof, scope: str, *, until: float | None = None) -> Proof:
    """Return the proof with the better of its bound within the scope, and the bound of all plans.

    until  a time of clock.now() at which the bound of all plans may be weaker
    """
    least = bound_mbps(problem, until=until)
    if proof.bound is not None and proof.bound > least * (1 + 1e-9):
        return replace(proof, bound_scope=scope)
    # headers in packets need no entries: then no plan has less than a copy for each source and member
    of_all = least <= float(problem.rate_mbps @ (1 + problem.member_counts)) * (1 + 1e-9)
    return replace(proof, bound=least, bound_scope=None if of_all else WITHOUT_HEADERS)
