"""Information of control planes: observations of demand, realization of plans, and signalling.

Reports of demand are old, measured with noise, or of groups of partitions. Under true demand, nodes and
routers serve requests with the plan's settings. Signalling between nodes, routers and the controller is
counted from the messages of each protocol.
"""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.degradation import AgeS, Noise, Seed, add_noise, average_within, drift
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import Sharing, make_plan, read_plan
from planner_models.fairshare.plan.service import divide_limits, serve
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import LEAST_KOPS

MEMORY_S: Final = 600.0
"""Time in which the autocorrelation of a partition's demand falls to 1/e."""
SPREAD: Final = 0.5
"""Standard deviation of the logarithm of a partition's demand over time."""

Granularity = Annotated[
    int,
    Field(ge=0, description="partitions of a tenant that are reported together, as their mean; 0 or 1: each"),
]
ROUNDS: Final = 20
"""Rounds of weight allocation until it converges (Shue, Freedman, Shaikh 2013, 3.2: less than 20)."""


def observe_demand(
    problem: SharedStore,
    *,
    age_s: AgeS = 0.0,
    noise: Noise = 0.0,
    granularity_partitions: Granularity = 0,
    seed: Seed = 0,
) -> SharedStore:
    """Return the problem with the demand of partitions as nodes report it."""
    if age_s == 0 and noise == 0 and granularity_partitions <= 1:
        return problem
    rng = np.random.default_rng(seed)
    demand = drift(problem.demand_kops, age=age_s, memory=MEMORY_S, spread=SPREAD, rng=rng)
    demand = add_noise(demand, noise, rng)
    if granularity_partitions > 1:
        first = np.full(len(problem.tenants), len(demand))
        np.minimum.at(first, problem.tenant, np.arange(len(demand)))
        order = np.argsort(problem.tenant, kind="stable")
        owner = problem.tenant[order]
        rank = np.arange(len(order)) - np.searchsorted(owner, owner)
        groups = np.zeros(len(demand), dtype=np.int64)
        groups[order] = rank // granularity_partitions
        keys = problem.tenant * (groups.max() + 1) + groups
        block = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        demand = average_within(demand, block)
    return problem.with_demand(
        np.where(demand < LEAST_KOPS, 0.0, demand) if demand.max() >= LEAST_KOPS else problem.demand_kops
    )


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


def count_placement(problem: SharedStore, plan: Sharing) -> Signalling:
    """Return the demand reports of nodes, and the placement that the controller sends them."""
    replicas = len(plan.placement)
    return Signalling(
        messages=2 * len(problem.nodes), bytes=replicas * (2 * NAME + FIGURE) + replicas * 2 * NAME
    )


def count_weights(problem: SharedStore, plan: Sharing) -> Signalling:
    """Return those of placement, and in each round latency reports of nodes and weights for them."""
    entries = len(plan.shares)
    each = Signalling(messages=2 * len(problem.nodes), bytes=2 * entries * (NAME + FIGURE))
    rounds = Signalling(messages=ROUNDS * each.messages, bytes=ROUNDS * each.bytes)
    return count_placement(problem, plan) + rounds


def count_flow_weights(problem: SharedStore, plan: Sharing) -> Signalling:
    """Return those of placement, one latency report of each node, and one message with its weights."""
    entries = len(plan.shares)
    return count_placement(problem, plan) + Signalling(
        messages=2 * len(problem.nodes), bytes=2 * entries * (NAME + FIGURE)
    )


def count_everything(problem: SharedStore, plan: Sharing) -> Signalling:
    """Return demand reports, placement and weights for nodes, and the split for each tenant's router."""
    split = Signalling(messages=len(problem.tenants), bytes=len(plan.serving) * (2 * NAME + FIGURE))
    weights = Signalling(messages=len(problem.nodes), bytes=len(plan.shares) * (NAME + FIGURE))
    return count_placement(problem, plan) + split + weights
