"""The outcome of a plan as hosts join and leave: switches carry it on among the true members."""

from __future__ import annotations

from planner_models.multicast.plan.adaptation import adapt_headers, adapt_plan
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.problem.problem import Multicast


def realize(truth: Multicast, observed: Multicast, plan: Channels) -> Channels:
    """Return the plan as it plays out among the true members; true rates change nothing.

    All groups of the plan must have the same number of copies.
    """
    if observed.members is truth.members:
        return plan
    if plan.headers is not None and len(plan.headers):
        return adapt_headers(truth, plan)
    if not len(plan.partitions):
        return plan
    return adapt_plan(truth, plan, before=observed)
