"""The plan with the least lost traffic, of several designs' plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import judged
from planner_models.updates.designs import batches, congestion_free, in_place
from planner_models.updates.designs.two_phase import DrainS, update_changed
from planner_models.updates.plan.metrics import measure
from planner_models.updates.plan.plan import UpdatePlan
from planner_models.updates.problem.problem import Update

METRIC = "lost_traffic_mbit"


def update_with_least_loss(
    problem: Update, *, drain_s: DrainS = None, options: Options = Options()
) -> Decision[UpdatePlan]:
    """Decide by several designs, and take the plan with the fewest broken classes and the least lost traffic.

    Batches within tables and links come first; only where these break something, shares within links, batches
    within tables, rounds in place and one two-phase update are tried. A plan that loses nothing is optimal.
    """
    best: Decision[UpdatePlan] | None = None
    least_loss = (float("inf"),) * 3
    attempts: tuple[Callable[[], Decision[UpdatePlan]], ...] = (
        lambda: batches.update_jointly(problem, drain_s=drain_s, options=options),
        lambda: congestion_free.update_without_congestion(problem, drain_s=drain_s, options=options),
        lambda: batches.update_in_batches(problem, drain_s=drain_s, options=options),
        lambda: in_place.update_in_order(problem, options=options),
        lambda: update_changed(problem, drain_s=drain_s, options=options),
    )
    for attempt in attempts:
        decision = attempt()
        if decision.plan is None:
            best = best or decision
            continue
        figures = measure(problem, decision.plan, None)
        loss = (figures["broken_classes"] or 0.0, figures["overflow_rules"] or 0.0, figures[METRIC] or 0.0)
        if loss < least_loss:
            best, least_loss = decision, loss
        if not any(loss):
            break
    assert best is not None
    if best.plan is None:
        return best
    lost = least_loss[2]
    return replace(best, proof=judged("min", lost, 0.0, metric=METRIC))
