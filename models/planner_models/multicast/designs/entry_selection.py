"""Selection of the groups that get table entries: a multi-dimensional knapsack by what each group saves."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner import backends
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner_models.multicast.plan.table_limits import TableLimits, build_limits
from planner_models.multicast.problem.problem import Multicast

METRIC: Final = "host_traffic_mbps"
BOUND_SCOPE: Final = "partitions given in turn"


def unicast_mbps(problem: Multicast) -> float:
    """Return the host traffic where every group goes by unicast: each copy is sent and received."""
    return float(2 * problem.rate_mbps @ problem.member_counts)


def saved_mbps(problem: Multicast) -> NDArray[np.float64]:
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
) -> tuple[NDArray[np.bool_] | None, Proof]:
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
