"""Signalling between hosts, racks and switches for the circuits of one week.

The packet switch gets no plan of its own: it serves the racks' queues. A schedule that is set once needs
no messages week by week.
"""

from __future__ import annotations

import numpy as np

from planner.contract.signalling import FIGURE, NAME, NONE, Signalling
from planner_models.circuits.information.observe import CONNECTIONS, UNIT_BYTES
from planner_models.circuits.plan.plan import Schedule
from planner_models.circuits.problem.problem import Circuits


def count_queue_reports(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the signalling of racks that report their queues: the lengths of those that are not empty.

    Both switches get the schedule.

    source  Mukerjee 2018, 2.2.2 (the loop of scheduling)
    """
    return _count_reports(problem) + _count_schedule(problem, plan)


def count_data_units(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the signalling of hosts that report each data unit, its flow and size, when it is handed over.

    Racks report what they have seen of each pair, and both switches get the schedule.

    Units are as large, and connections as many, as the defaults of `observe.observe_data_units`.

    source  Mukerjee 2018, 2.5.2: libADU reports units; racks' queues count bytes, so that the scheduler
            knows what has left the rack
    """
    unit = 8 * UNIT_BYTES
    units = np.ceil(np.minimum(problem.pair_bits, CONNECTIONS * unit) / unit)
    return _count_units(problem, plan, int(units.sum()))


def count_transfers(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the signalling where applications hand over all of a pair, or of a coflow's part, at once."""
    units = problem.coflows if problem.coflows is not None else problem.pair_bits
    return _count_units(problem, plan, len(units))


def _count_units(problem: Circuits, plan: Schedule, units: int) -> Signalling:
    """Return the signalling of so many data units, of racks' reports and of the schedule."""
    unit_reports = Signalling(messages=units, bytes=units * (2 * NAME + FIGURE))
    return unit_reports + _count_reports(problem) + _count_schedule(problem, plan)


def _count_reports(problem: Circuits) -> Signalling:
    """Return one message of each rack, with the target and a figure for each pair that has demand."""
    return Signalling(messages=len(problem.racks), bytes=len(problem.pair_bits) * (NAME + FIGURE))


def _count_schedule(problem: Circuits, plan: Schedule) -> Signalling:
    """Return the schedule's messages: to each circuit switch its own circuits, to the packet switch all."""
    frame = plan.configurations
    if not len(frame):
        return NONE
    size = frame["day"].nunique() * FIGURE + len(frame) * 2 * NAME
    switches_used = frame["switch"].nunique() if problem.switches > 1 else 1
    return Signalling(messages=switches_used + 1, bytes=2 * size)
