"""The decision of a design of system `updates`: its plan, and its proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.formatting import amount
from planner.options import Options
from planner.search.judged import judged, undecided
from planner_models.updates.plan.check import check, evaluate
from planner_models.updates.plan.metrics import HEADLINE, OBJECTIVES, measure
from planner_models.updates.plan.plan import Step, UpdatePlan, make_plan
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import GUARANTEES

ALWAYS = ("complete", "drain", "time")
"""Guarantees that every plan claims."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a design proves of its plan.

    metric      that the objective value and `bound` are of; None for no objective
    scope       plans that the bound covers
    is_optimal  whether the design proves that no plan in its scope is better
    reasons     why no plan of the design satisfies all limits, where this one does not
    is_cut      whether a time limit ended the search
    """

    metric: str | None = None
    bound: float | None = None
    scope: str | None = None
    is_optimal: bool = False
    backend: str | None = None
    reasons: tuple[str, ...] = ()
    is_cut: bool = False


def decide(
    problem: Update,
    steps: Sequence[Step],
    *,
    claims: Iterable[str],
    options: Options,
    evidence: Evidence = Evidence(),
) -> Decision[UpdatePlan]:
    """Return the decision with the plan of some steps.

    claims  constraints that the plan satisfies, besides `ALWAYS`

    A plan that breaks a class's guarantee is never optimal, and has no bound: that would not say how many
    rounds or batches the guarantee takes.

    Where all must be kept (`service = "all"`), a plan that breaks a guarantee or a limit is no plan.
    """
    plan = make_plan(problem, steps)
    if options.service == "all" and (loss := _say_loss(problem, plan)) is not None:
        proof = undecided(loss, *evidence.reasons, backend=evidence.backend)
        return Decision(plan=None, proof=proof)
    metric, evaluation = evidence.metric, evaluate(problem, plan)
    objective = None if metric is None else OBJECTIVES[metric](plan, evaluation)
    broken = np.flatnonzero(evaluation.broken)
    if len(broken):
        evidence = replace(evidence, scope=None)
    if len(broken) and metric is not None:
        reasons = (*evidence.reasons, _say_broken(problem, broken))
        evidence = replace(evidence, bound=None, is_optimal=False, reasons=reasons)
    # rounds and batches are counted: a bound that is less than half below proves them
    is_counted = metric != "seconds"
    proof = judged(
        "min",
        objective,
        objective if evidence.is_optimal else evidence.bound,
        gap=0.5 / max(objective or 0.0, 1e-9) if is_counted else 0.0,
        is_optimal=True if evidence.is_optimal else None if is_counted else False,
        bound_scope=evidence.scope,
        metric=metric,
        backend=evidence.backend,
        reasons=evidence.reasons,
        is_cut=evidence.is_cut,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset([*ALWAYS, *claims]))


def _say_loss(problem: Update, plan: UpdatePlan) -> str | None:
    """Return in words the first limit that a plan breaks; None where it keeps all."""
    figures = measure(problem, plan, None)
    lost = {name: figures[name] or 0.0 for name in HEADLINE.losses if (figures[name] or 0.0) > 0}
    if not lost:
        return None
    name, value = next(iter(lost.items()))
    unit = {"broken_classes": "classes", "overflow_rules": "rules", "overload_mbps": "Mbit/s"}[name]
    reason = (check(problem, plan).sentences(1) or [""])[0]
    return f"the plan {HEADLINE.losses[name].format(amount(value, unit))}: {reason}"


def _say_broken(problem: Update, broken: Ints) -> str:
    """Return in words which classes' guarantees a plan breaks."""
    names = [
        f"'{problem.class_index[row]}' ({GUARANTEES[problem.guarantee[row]]})" for row in broken[:3].tolist()
    ]
    listed = ", ".join(names) + (f" and {len(broken) - 3:,} more" if len(broken) > 3 else "")
    return f"the plan breaks the guarantee of class{'es' * (len(broken) > 1)} {listed}"
