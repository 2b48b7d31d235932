"""Realization of a schedule that was made on an observation."""

from __future__ import annotations

from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.plan.plan import Schedule, packet_table
from planner_models.circuits.problem import packet_switch
from planner_models.circuits.problem.problem import Circuits


def realize(truth: Circuits, observed: Circuits, plan: Schedule) -> Schedule:  # noqa: ARG001
    """Return the planned circuits with the most that the packet switch can carry of what truly remains."""
    circuits = Schedule(configurations=plan.configurations, packet=plan.packet.iloc[:0])
    left = truth.bits - derive_carried(truth, circuits).circuit_bits
    window = truth.window_us
    extra = left if window is None else packet_switch.fill_links(left, truth.packet_mbps * window)
    return Schedule(configurations=plan.configurations, packet=packet_table(truth, extra), ports=plan.ports)
