"""Signalling of updates: changes of rules that a controller sends, and the answers of switches."""

from __future__ import annotations

from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.updates.plan.plan import UpdatePlan
from planner_models.updates.problem.problem import Update

RULE = 3 * NAME + FIGURE  # class, switch, next hop, and its share


def count_commands(problem: Update, plan: UpdatePlan) -> Signalling:  # noqa: ARG001
    """Return one message to each switch in each step with its changes, and one answer when they are done."""
    asked = len(plan.operations[["step", "switch"]].drop_duplicates())
    return Signalling(messages=2 * asked, bytes=int(plan.parts.sum()) * RULE + asked * NAME)


def count_announcements(problem: Update, plan: UpdatePlan) -> Signalling:
    """Return the next rules for each switch, and an announcement of each change to the neighbours."""
    slots = problem.slots
    changed = int((~slots.same).sum())
    return Signalling(messages=2 * changed, bytes=changed * RULE + len(plan.operations) * 2 * NAME)
