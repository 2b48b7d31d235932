"""Realization of a plan under true demand: nodes and routers serve requests with the plan's settings."""

from __future__ import annotations

from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import Sharing, make_plan, read_plan
from planner_models.fairshare.plan.service import divide_limits, serve
from planner_models.fairshare.problem.problem import SharedStore


def realize(truth: SharedStore, observed: SharedStore, plan: Sharing) -> Sharing:
    """Return the plan with the rates of true demand; placement, split and local weights stay.

    Routers that choose replicas by latency observe true latency, and so do so again.
    """
    if truth is observed:
        return plan
    content = read_plan(truth, plan)
    served = serve(
        truth,
        content.replicas,
        content.split,
        content.weight,
        queueing=plan.queueing,
        replica_choice=plan.replica_choice,
        most_kops=divide_limits(truth, content.replicas, content.weight),
    )
    return make_plan(
        truth,
        content.replicas,
        served.kops,
        served.split,
        content.weight,
        fair_share_kops=fair_share_kops(truth),
        queueing=plan.queueing,
        replica_choice=plan.replica_choice,
    )
