"""What hosts, racks and switches tell each other in a run.

What is set once, before the run, is not counted. Marks in replies (reTCP) are no messages.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.exchange import FIGURE, NAME, NONE, Exchange
from planner_models.circuitflows.measure import played
from planner_models.circuitflows.plan import Operation
from planner_models.circuitflows.problem import FlowsInTime


def queues(problem: FlowsInTime, plan: Operation) -> Exchange:
    """Every rack reports its queues' lengths every week; whom a week concerns gets it.

    source  Mukerjee 2018, 2.2.2 and 2.5.1
    """
    return _reports(problem) + _weeks(problem, plan)


def told(problem: FlowsInTime, plan: Operation) -> Exchange:
    """Hosts tell a flow's ends and size when it is handed over, and when it is closed; racks report too.

    source  Mukerjee 2018, 2.5.2: libADU on `send` and `close`, and racks' queues count the bytes that they
            saw; counted there for each flow, here for each pair of racks, which is all that is planned on
    """
    network = played(problem, plan).network
    begun = network.of("start_us") < problem.of("horizon_us")
    begun &= (problem.before < 0) | (network.of("next_number") > 0)
    opened, closed = int(begun.sum()), int((~np.isnan(network.of("end_us"))).sum())
    hosts = Exchange(messages=opened + closed, bytes=opened * (2 * NAME + FIGURE) + closed * 2 * NAME)
    return hosts + _reports(problem) + _weeks(problem, plan)


def _reports(problem: FlowsInTime) -> Exchange:
    """A message of every rack in every week, with a figure for each other rack."""
    racks = len(problem.racks)
    weeks = int(np.ceil(problem.of("horizon_us") / problem.of("week_us") - 1e-9))
    return Exchange(messages=weeks * racks, bytes=weeks * racks * (racks - 1) * (NAME + FIGURE))


def _weeks(problem: FlowsInTime, plan: Operation) -> Exchange:
    """Lengths of days and both ends of circuits, to both switches in every week that has days.

    Where queues are resized, each rack with circuits in the week gets its own too: whereto, from when,
    and how long.
    """
    frame = plan.configurations
    if not len(frame):
        return NONE
    # the night before a day is of the same week
    first = frame["start_us"].to_numpy(float) - problem.of("night_us")
    week = np.floor(first / problem.of("week_us") + 1e-9).astype(np.int64)
    messages = 2 * len(np.unique(week))
    said = 2 * (frame["day"].nunique() * FIGURE + len(frame) * 2 * NAME)
    if len(plan.queues):
        messages += len(
            np.unique(week * len(problem.racks) + problem.places.get_indexer(pd.Index(frame["source_rack"])))
        )
        said += len(frame) * (NAME + 2 * FIGURE)
    return Exchange(messages=messages, bytes=said)
