"""Designs without shared entries: addresses partitioned over switches, or stored everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner_models.multicast.designs.entry_selection import (
    BOUND_SCOPE,
    METRIC,
    saved_mbps,
    select_groups,
    selection_model,
    unicast_mbps,
)
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.table_limits import admit_in_order, build_limits
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
