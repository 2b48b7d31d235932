"""Proofs of decisions: the status that follows from an objective value and a bound, by one rule for all.

A plan is optimal where its objective value is within a relative gap of the bound. Where the bound is on the
wrong side of the objective value by no more than rounding, it is moved to that value; by no more than the
tolerance of solvers it is moved too, with a note in the proof and in the log; by more it is an error of the
search, and raises.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Final, Literal

from planner.backends.solution import Solution
from planner.contract.proof import LevelProof, Proof, RankProof, Status, relative_gap
from planner.errors import PlanRejected
from planner.options import Options
from planner.search.tolerances import CONSISTENCY, OPTIMALITY, ROUNDING

Sense = Literal["min", "max"]
"""Whether smaller objective values are better, or larger ones."""

log: Final = logging.getLogger(__name__)


def gap_of(options: Options, *, default: float = OPTIMALITY, minimum: float = OPTIMALITY) -> float:
    """Return the relative gap at which a plan is optimal.

    default  where options state none
    minimum  the tolerances of a search, below which no gap is reached
    """
    return max(default if options.gap is None else options.gap, minimum)


def judged(
    sense: Sense,
    objective: float | None,
    bound: float | None,
    *,
    gap: float = OPTIMALITY,
    is_optimal: bool | None = None,
    consistency: float = CONSISTENCY,
    **fields: Any,
) -> Proof:
    """Return the proof of a plan: optimal within a relative gap of its bound, else feasible.

    Parameters
    ----------
    sense
        Whether smaller or larger objective values are better.
    objective, bound
        Value of the plan, and what no plan is better than; None for unknown.
    gap
        Relative gap at which the plan is optimal; with ranks or levels, of each of them.
    is_optimal
        Whether the plan is proven optimal by other means, or is not, whatever the bound; None: by the gap.
    consistency
        Largest relative amount by which the objective value may be better than the bound.
    fields
        Other fields of the proof, such as metric, bound_scope and backend.

    Raises
    ------
    PlanRejected
        Where the objective value is better than its bound by more than the tolerance.
    """
    notes: tuple[str, ...] = fields.pop("notes", ())
    if objective is not None and bound is not None:
        moved, note = clamp(sense, objective, bound, consistency=consistency, metric=fields.get("metric"))
        bound, notes = moved, (*notes, *note)
    proof = Proof(status=Status.FEASIBLE, objective=objective, bound=bound, notes=notes, **fields)
    if is_optimal is None:
        steps: list[RankProof | LevelProof | Proof] = [*proof.ranks, *proof.levels]
        gaps = [relative_gap(step.objective, step.bound) for step in steps or [proof]]
        is_optimal = all(reached is not None and reached <= gap for reached in gaps)
    return replace(proof, status=Status.OPTIMAL, is_cut=False) if is_optimal else proof


def clamp(
    sense: Sense,
    objective: float,
    bound: float,
    *,
    consistency: float = CONSISTENCY,
    metric: str | None = None,
) -> tuple[float, tuple[str, ...]]:
    """Return a bound on the right side of an objective value, and notes on its move.

    consistency  largest relative amount by which the objective value may be better than the bound
    raises       PlanRejected where it is better by more
    """
    is_wrong = objective < bound if sense == "min" else objective > bound
    if not is_wrong:
        return bound, ()
    distance = relative_gap(objective, bound) or 0.0
    name = f"the {metric} of the plan" if metric else "the objective value of the plan"
    if distance > consistency:
        raise PlanRejected(f"{name}, {objective:.9g}, is better than its bound, {bound:.9g}")
    if distance <= ROUNDING:
        return objective, ()
    note = f"{name}, {objective:.9g}, is better than the bound {bound:.9g} that was found, by rounding"
    log.warning("%s", note)
    return objective, (note,)


def infeasible(*reasons: str, **fields: Any) -> Proof:
    """Return the proof that no plan satisfies the constraints, for reasons; `fields` as of `Proof`."""
    return Proof(status=Status.INFEASIBLE, reasons=reasons, **fields)


def undecided(*reasons: str, **fields: Any) -> Proof:
    """Return the proof of a search that found neither a plan nor that there is none."""
    return Proof(status=Status.UNDECIDED, reasons=reasons, **fields)


def feasible(objective: float | None = None, **fields: Any) -> Proof:
    """Return the proof of a plan without a bound."""
    return Proof(status=Status.FEASIBLE, objective=objective, **fields)


def optimal(objective: float | None = None, **fields: Any) -> Proof:
    """Return the proof of a plan that no plan is better than, such as the empty one of an empty problem."""
    return Proof(status=Status.OPTIMAL, objective=objective, bound=objective, **fields)


def of_solution(solution: Solution, **fields: Any) -> Proof:
    """Return the proof of a program's solution, with its status and backend; `fields` as of `Proof`."""
    return Proof(status=solution.status, backend=solution.backend, **fields)
