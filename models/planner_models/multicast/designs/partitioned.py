"""Designs without shared entries: addresses partitioned over switches, or stored everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.table_limits import TableLimits, admit_in_order, build_limits
from planner_models.multicast.problem.problem import LAYERS, Multicast

Choose = Annotated[
    Literal["value", "arrival"],
    Field(description="groups with entries: value: those that save the most; arrival: first come"),
]


def store_everywhere(problem: Multicast) -> Decision[Channels]:
    """Store every group, first come, first served, at all core and aggregation switches that may get it.

    Groups that do not fit go by unicast.
    """
    return _admit(problem, problem.whole_copies)


def partition_addresses(
    problem: Multicast, *, choose: Choose = "value", options: Options = Options()
) -> Decision[Channels]:
    """Store groups at the core and aggregation switches that hold their partition; others go by unicast.

    The bound covers partitions given in turn and entries that are not shared.
    """
    copies = problem.aggregation_copies
    if choose == "arrival":
        return _admit(problem, copies)
    kept, proof = select_groups(problem, LAYERS, options)
    proof = replace(proof, bound_scope=f"{BOUND_SCOPE}, no shared entries")
    return Decision(plan=None if kept is None else build_plan(problem, kept, copies), proof=proof)


def selection_program(problem: Multicast, *, choose: Choose = "value") -> LinearProgram:  # noqa: ARG001
    """Return the integer program of `partition_addresses`."""
    return selection_model(problem, build_limits(problem, problem.aggregation_copies))


def _admit(problem: Multicast, copies: int) -> Decision[Channels]:
    kept = admit_in_order(build_limits(problem, copies))
    traffic = unicast_mbps(problem) - float(saved_mbps(problem)[kept].sum())
    proof = Proof(status=Status.FEASIBLE, objective=traffic, metric=METRIC, seconds=None)
    return Decision(plan=build_plan(problem, kept, copies), proof=proof)


METRIC: Final = "host_traffic_mbps"
BOUND_SCOPE: Final = "partitions given in turn"


def unicast_mbps(problem: Multicast) -> float:
    """Return the host traffic where every group goes by unicast: each copy is sent and received."""
    return float(2 * problem.rate_mbps @ problem.member_counts)


def saved_mbps(problem: Multicast) -> Floats:
    """Return the host traffic that entries of a group save, (G,): its source sends one copy only."""
    return problem.rate_mbps * (problem.member_counts - 1)


def selection_model(problem: Multicast, limits: TableLimits) -> LinearProgram:
    """Return the integer program of least host traffic: variable `hardware`, 1 for groups with entries."""
    names = problem.groups["group"].tolist
    return LinearProgram.build(
        cost=-saved_mbps(problem),
        offset=unicast_mbps(problem),
        rows=[Rows("table", limits.uses, upper=limits.free.astype(float))],
        columns=[Columns("hardware", len(problem.groups), labels=names)],
        upper=1.0,
        integer=True,
        name="groups in hardware",
    )


def select_groups(
    problem: Multicast, layers: tuple[str, ...], options: Options
) -> tuple[Bools | None, Proof]:
    """Return the groups with entries, (G,), where only tables of `layers` are limited, and the proof."""
    limits = build_limits(problem, problem.aggregation_copies, layers=layers)
    if limits.can_hold_all:
        least = float(problem.rate_mbps @ (1 + problem.member_counts))
        proof = Proof(status=Status.OPTIMAL, objective=least, bound=least, metric=METRIC)
        return np.ones(len(problem.groups), dtype=bool), proof
    solution = backends.solve(selection_model(problem, limits), options)
    proof = Proof(
        status=solution.status,
        objective=solution.objective,
        bound=solution.bound,
        metric=METRIC,
        backend=solution.backend,
        reasons=solution.reasons,
    )
    return (None if solution.x is None else solution.x > 0.5), proof
