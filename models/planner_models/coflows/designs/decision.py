"""Decisions of the designs: objective value, lower bound and guarantees."""

from __future__ import annotations

import numpy as np

from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.formatting import counted
from planner.options import Options
from planner.search.judged import infeasible, judged, undecided
from planner.search.tolerances import OPTIMALITY
from planner_models.coflows.plan.completion import mean_completion_ms, replay
from planner_models.coflows.plan.lower_bounds import Fabric, mean_completion_bound_ms
from planner_models.coflows.plan.plan import TIME_STEPS, Service
from planner_models.coflows.problem.problem import CoflowsInTime

METRIC = "mean_completion_ms"
PROVEN = OPTIMALITY


def decide(
    problem: CoflowsInTime,
    plan: Service,
    fabric: Fabric,
    scope: str | None,
    options: Options,
    *,
    proven: float | None = None,
    backend: str | None = None,
) -> Decision[Service]:
    """Return the decision of a plan, with a bound on all plans over the same switches.

    proven   a bound on the plans of `scope`, found elsewhere; None: none but that of the ports
    backend  the solver that found it

    With `service = "all"` there is no plan where a coflow stays incomplete.
    """
    if options.service == "all" and (proof := _prove_incomplete(problem, plan)):
        return Decision(plan=None, proof=proof)
    taken = replay(problem, plan).coflow_ms[problem.can_complete]
    is_complete = bool(len(taken)) and not np.isnan(taken).any()
    objective = mean_completion_ms(problem, replay(problem, plan).coflow_ms) if is_complete else None
    bound = mean_completion_bound_ms(problem, fabric)
    if proven is not None:
        bound = proven if bound is None else max(bound, proven)
    rounding = 0.0
    if objective is not None:
        # completion times are differences of times, which late in a trace have coarse steps
        steps = TIME_STEPS * float(np.spacing(problem.arrival_ms.max() + objective))
        rounding = steps / max(objective, 1e-9)
    proof = judged(
        "min",
        objective,
        bound,
        consistency=OPTIMALITY + rounding,
        bound_scope=scope if bound is not None else None,
        metric=METRIC,
        backend=backend,
    )
    guarantees = None if is_complete or not len(taken) else frozenset({"ports", "setup", "arrival"})
    return Decision(plan=plan, proof=proof, guarantees=guarantees)


def _prove_incomplete(problem: CoflowsInTime, plan: Service) -> Proof | None:
    """Return the proof, or the reason why there is none, that coflows stay incomplete, else None."""
    lost = int((~problem.can_complete).sum())
    if lost:
        first = problem.names[problem.is_failed]
        need = f"{_count(lost)} need{'s' * (lost == 1)}"
        reason = f"racks have failed that {need}: {', '.join(map(str, first[:3]))}"
        return infeasible(reason, metric=METRIC)
    missing = int(np.isnan(replay(problem, plan).coflow_ms).sum())
    if missing:
        reason = f"this plan leaves {_count(missing)} incomplete; another may complete all"
        return undecided(reason, metric=METRIC)
    return None


def circuits_scope(problem: CoflowsInTime) -> str | None:
    """Return the scope of a bound on plans that use circuits alone; None where there is nothing else."""
    return "circuits alone" if problem.has_packet_switch else None


def decide_on_circuits(problem: CoflowsInTime, plan: Service, options: Options) -> Decision[Service]:
    """Return the decision of a plan that uses circuits alone."""
    return decide(problem, plan, "circuits", circuits_scope(problem), options)


def decide_on_packets(problem: CoflowsInTime, plan: Service, options: Options) -> Decision[Service]:
    """Return the decision of a plan that uses the packet switch alone."""
    return decide(problem, plan, "packets", "the packet switch alone", options)


def _count(coflows: int) -> str:
    """Return a number of coflows in words: `1 coflow`, `2 coflows`."""
    return counted(coflows, "coflows")
