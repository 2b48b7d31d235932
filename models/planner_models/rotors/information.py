"""Signalling of schedules that are made for the demand: racks' reports, and the circuits for the switches."""

from __future__ import annotations

from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.rotors.plan.plan import Routing
from planner_models.rotors.problem.problem import RotorNetwork


def count_reports(problem: RotorNetwork, plan: Routing) -> Signalling:
    """Return one report of each rack with its demands, and one message to each switch with its circuits."""
    pairs = int((problem.demand_mbps > 0).sum())
    used = plan.circuits["switch"].nunique()
    circuits = len(plan.circuits) * (2 * FIGURE + 2 * NAME)
    return Signalling(messages=len(problem.racks) + used, bytes=pairs * (NAME + FIGURE) + circuits)
