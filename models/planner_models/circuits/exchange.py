"""What hosts, racks and switches tell each other for one week's circuits.

The packet switch is not told what to carry: it takes what racks' queues hold. Of a schedule that is set
once nothing is said week by week.
"""

from __future__ import annotations

import numpy as np

from planner.exchange import FIGURE, NAME, NONE, Exchange
from planner_models.circuits import simple
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import Schedule
from planner_models.circuits.sees import CONNECTIONS, UNIT_BYTES


def queues(problem: Circuits, plan: Schedule) -> Exchange:
    """Every rack reports the lengths of its queues that are not empty; both switches get the schedule.

    source  Mukerjee 2018, 2.2.2 (the loop of scheduling)
    """
    return _reports(problem) + _schedule(problem, plan)


def data_units(problem: Circuits, plan: Schedule) -> Exchange:
    """Hosts tell each data unit's flow and size when it is handed over, racks what they saw of each pair.

    Units are as large, and connections as many, as `sees.data_units` has them unless told otherwise.

    source  Mukerjee 2018, 2.5.2: libADU tells units; racks' queues count bytes, so that what has left
            a host's hands and the rack is known to be gone
    """
    unit = 8 * UNIT_BYTES
    units = np.ceil(np.minimum(problem.pair_bits, CONNECTIONS * unit) / unit)
    return _told(problem, plan, int(units.sum()))


def transfers(problem: Circuits, plan: Schedule) -> Exchange:
    """The same where applications hand over all that they have of a pair at once, or of a coflow's part."""
    whole = problem.coflows if problem.coflows is not None else problem.pair_bits
    return _told(problem, plan, len(whole))


def requests(problem: Circuits, plan: Schedule) -> Exchange:
    """A request names its rack, a grant and an accept theirs; who is matched sets its circuit itself.

    source  McKeown 1999 (iSLIP)
    """
    days = plan.configurations["duration_us"]
    if not len(days):
        return NONE
    # all days are of one length but for a last one that the week cuts short
    _, said = simple.islip(problem, float(days.max()))
    return Exchange(messages=said, bytes=said * NAME)


def _told(problem: Circuits, plan: Schedule, units: int) -> Exchange:
    units_told = Exchange(messages=units, bytes=units * (2 * NAME + FIGURE))
    return units_told + _reports(problem) + _schedule(problem, plan)


def _reports(problem: Circuits) -> Exchange:
    """One message of every rack, with the target and a figure for each pair that has demand."""
    return Exchange(messages=len(problem.racks), bytes=len(problem.pair_bits) * (NAME + FIGURE))


def _schedule(problem: Circuits, plan: Schedule) -> Exchange:
    """Lengths of days and both ends of circuits: each circuit switch its own, the packet switch all."""
    frame = plan.configurations
    if not len(frame):
        return NONE
    said = frame["day"].nunique() * FIGURE + len(frame) * 2 * NAME
    own = frame["switch"].nunique() if problem.switches > 1 else 1
    return Exchange(messages=own + 1, bytes=2 * said)
