"""Realization of a plan under true demand: nodes and routers serve what comes, with the plan's settings."""

from __future__ import annotations

import numpy as np

from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import LIMITS, Sharing, make_plan, read_plan
from planner_models.fairshare.plan.service import serve
from planner_models.fairshare.problem.problem import SharedStore


def realize(truth: SharedStore, observed: SharedStore, plan: Sharing) -> Sharing:
    """Return the plan with the rates of true demand; placement, split and local weights stay.

    Routers that choose replicas by latency observe true latency, and so do so again.
    """
    if truth is observed:
        return plan
    content = read_plan(truth, plan)
    owner, node = truth.tenant[content.replicas.partition], content.replicas.node
    limits = None
    if plan.queueing == LIMITS:  # limits are local weights, divided among a tenant's replicas at a node
        count = np.zeros_like(content.weight)
        np.add.at(count, (owner, node), 1.0)
        limits = (content.weight / np.maximum(count, 1.0))[owner, node]
    served = serve(
        truth,
        content.replicas,
        content.split,
        content.weight,
        queueing=plan.queueing,
        replica_choice=plan.replica_choice,
        most_kops=limits,
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
