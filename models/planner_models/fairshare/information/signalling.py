"""Signalling between nodes, routers and the controller, counted from the messages of each protocol."""

from __future__ import annotations

from typing import Final

from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.fairshare.plan.plan import Sharing
from planner_models.fairshare.problem.problem import SharedStore

ROUNDS: Final = 20
"""Rounds of weight allocation until it converges (Shue, Freedman, Shaikh 2013, 3.2: less than 20)."""


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
