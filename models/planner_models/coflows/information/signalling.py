"""Signalling between applications, the scheduler and switches, counted from the needs of a plan."""

from __future__ import annotations

import numpy as np

from planner.contract.signalling import FIGURE, NAME, NONE, Signalling
from planner_models.coflows.plan.plan import Service
from planner_models.coflows.problem.problem import CoflowsInTime


def count_reports(problem: CoflowsInTime, plan: Service) -> Signalling:
    """Return the signalling of applications that report each coflow's flows and sizes when it arrives.

    Circuit switches get each circuit, and the packet switch gets its priorities.
    """
    reports = Signalling(
        messages=len(problem.coflows),
        bytes=len(problem.flows) * (2 * NAME + FIGURE) + len(problem.coflows) * NAME,
    )
    return reports + _count_circuits(plan) + _count_priorities(problem, plan)


def count_attained_service(problem: CoflowsInTime, plan: Service) -> Signalling:
    """Return the signalling of racks that report the sent data of coflows, whenever priorities change.

    No application says a size. Every rack gets the priorities.

    source  Chowdhury, Stoica 2015 (Aalo), coordination of daemons
    """
    times = plan.priorities["at_ms"].nunique() if len(plan.priorities) else 0
    reports = Signalling(
        messages=times * len(problem.racks), bytes=len(plan.priorities) * len(problem.racks) * (NAME + FIGURE)
    )
    return reports + _count_priorities(problem, plan)


def _count_circuits(plan: Service) -> Signalling:
    """Return a message for each circuit: its ends and its time."""
    count = len(plan.circuits)
    return Signalling(messages=count, bytes=count * (2 * NAME + 2 * FIGURE)) if count else NONE


def _count_priorities(problem: CoflowsInTime, plan: Service) -> Signalling:
    """Return a message to each rack whenever priorities change."""
    if not len(plan.priorities):
        return NONE
    times = len(np.unique(plan.priorities["at_ms"].to_numpy(float)))
    racks = len(problem.racks)
    return Signalling(messages=times * racks, bytes=len(plan.priorities) * racks * (NAME + FIGURE))
