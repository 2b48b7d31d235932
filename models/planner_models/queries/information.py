"""Signalling of system `queries`: messages to decide on a plan and to install it."""

from __future__ import annotations

from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.queries.plan.plan import Answers
from planner_models.queries.problem.problem import Monitoring


def install(problem: Monitoring, plan: Answers) -> Signalling:  # noqa: ARG001 - the signature of `signalling`
    """Count a message for each rule that is installed ahead: switch, table, priority, match and action."""
    rules = len(plan.rules)
    return Signalling(messages=rules, bytes=rules * (3 * NAME + 2 * FIGURE))


def report_traffic(problem: Monitoring, plan: Answers) -> Signalling:
    """Count a report of each flow that switches have seen, and the rules that are installed ahead."""
    flows = len(problem.flows)
    return install(problem, plan) + Signalling(messages=flows, bytes=flows * (2 * NAME + 4 * FIGURE))
