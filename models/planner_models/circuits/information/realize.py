"""Realization of a schedule that was made on an observation."""

from __future__ import annotations

from dataclasses import replace

from planner.search.tolerances import ROUNDING
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.plan.plan import Schedule, fill_packet_switch, packet_table, unserved_table
from planner_models.circuits.problem.problem import Circuits


def realize(truth: Circuits, observed: Circuits, plan: Schedule) -> Schedule:  # noqa: ARG001
    """Return the planned circuits with the most true remaining demand that the packet switch can carry."""
    circuits = Schedule(configurations=plan.configurations, packet=plan.packet.iloc[:0])
    remaining = (truth.bits - derive_carried(truth, circuits).circuit_bits)[truth.pairs]
    remaining[remaining <= ROUNDING * truth.pair_bits] = 0.0
    extra = fill_packet_switch(truth, remaining)
    return replace(plan, packet=packet_table(truth, extra), unserved=unserved_table(truth, remaining - extra))
