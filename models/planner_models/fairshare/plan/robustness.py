"""Measures of the tenants' remaining rates as load or nodes change, before anything is decided again."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.max_min import Network, share_max_min
from planner_models.fairshare.plan.plan import Content, Replicas, Sharing
from planner_models.fairshare.plan.service import divide_limits, serve
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

MOST_WORK: Final = 1_000_000  # nodes times replicas up to which the loss of each node is computed


def find_isolation(problem: SharedStore, plan: Sharing, content: Content) -> float:
    """Return the least part of its rate that a tenant keeps when every second tenant doubles its demand.

    Placement and local weights stay. The demand of odd rows of `tenants` doubles, then that of even ones;
    each time the other tenants count. A tenant that had more than its fair share of the larger demand keeps
    all if it still has that share.

    Source: Shue, Freedman, Shaikh 2013 (Pisces), Figure 3, bottom row.
    """
    owner = problem.tenant[content.replicas.partition]
    tenants = len(problem.tenants)
    before = add_up(owner, content.kops, tenants)
    limits = divide_limits(problem, content.replicas, content.weight)
    retained = 1.0
    for parity in range(2):
        doubles = np.arange(tenants) % 2 == parity
        demand = problem.demand_of_tenant * np.where(doubles, 2.0, 1.0)
        served = serve(
            problem,
            content.replicas,
            content.split,
            content.weight,
            queueing=plan.queueing,
            replica_choice=plan.replica_choice,
            most_kops=limits,
            demand_kops=problem.demand_kops * np.where(doubles, 2.0, 1.0)[problem.tenant],
        )
        after = add_up(owner, served.kops, tenants)
        due = np.minimum(before, fair_share_kops(problem, demand_kops=demand))
        counts = ~doubles & (due > 0)
        retained = min(retained, float((after[counts] / due[counts]).min(initial=1.0)))
    return retained


def least_share_after_loss(problem: SharedStore, replicas: Replicas) -> float | None:
    """Return the least share that the replicas allow at best after the worst loss of one node.

    Rates are the fairest ones for the replicas that are left, and fair shares are those of the nodes that are
    left. None for stores with several resources, and where nodes times replicas are above `MOST_WORK`.
    """
    working = np.flatnonzero(problem.rate_kops > 0)
    if problem.capacity.shape[1] > 1:
        return None
    if _is_lost_with_a_node(problem, replicas):
        return 0.0
    if len(working) * len(replicas.partition) > MOST_WORK:
        return None
    lowest, network = 1.0, Network(problem, replicas)
    for n in working.tolist():
        rate = problem.rate_kops.copy()
        rate[n] = 0.0
        fair = fair_share_kops(problem, capacity=np.array([rate.sum()]))
        if fair.sum() <= 0:
            return 0.0
        shares = share_max_min(problem, replicas, due=fair, most_levels=1, rate_kops=rate, network=network)
        lowest = min([lowest, *(level.level for level in shares.levels)])
    return lowest


def _is_lost_with_a_node(problem: SharedStore, replicas: Replicas) -> bool:
    """Return whether some node has all replicas of a partition that stops its tenant of fixed mix."""
    works = problem.rate_kops[replicas.node] > 0
    count = np.bincount(replicas.partition[works], minlength=len(problem.partitions))
    stops = problem.is_fixed[problem.tenant] & (problem.demand_kops > 0)
    return bool((count[stops] <= 1).any())
