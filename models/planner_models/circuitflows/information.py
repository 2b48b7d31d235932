"""Signalling between hosts, racks and switches during a run.

Settings made once, before the run, are not counted. Marks in replies (reTCP) are no messages.

Observation of the demand in reports that may be old, noisy or coarse.

The network runs as it does; an observed problem differs in the reports that schedulers get of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from planner.contract.degradation import Noise, Seed
from planner.contract.signalling import FIGURE, NAME, NONE, Signalling
from planner_models.circuitflows.plan.metrics import replay
from planner_models.circuitflows.plan.plan import Operation
from planner_models.circuitflows.problem.problem import FlowsInTime, Reports
from planner_models.circuits.information import Age, Granularity


def count_queue_reports(problem: FlowsInTime, plan: Operation) -> Signalling:
    """Return the signalling of racks that report their queues' lengths every week, and of the schedules.

    source  Mukerjee 2018, 2.2.2 and 2.5.1
    """
    return _count_reports(problem) + _count_schedules(problem, plan)


def count_application_reports(problem: FlowsInTime, plan: Operation) -> Signalling:
    """Return the signalling of hosts that report flows handed over and closed; racks report too.

    source  Mukerjee 2018, 2.5.2: libADU on `send` and `close`, and racks' queues count the bytes that they
            saw; counted there for each flow, here for each pair of racks, which is all that is planned on
    """
    network = replay(problem, plan).network
    begun = network.us("start") < problem.of("horizon_us")
    begun &= (problem.before < 0) | (network.by_flow("next_number") > 0)
    opened, closed = int(begun.sum()), int((~np.isnan(network.of("end_ticks"))).sum())
    hosts = Signalling(messages=opened + closed, bytes=opened * (2 * NAME + FIGURE) + closed * 2 * NAME)
    return hosts + _count_reports(problem) + _count_schedules(problem, plan)


def _count_reports(problem: FlowsInTime) -> Signalling:
    """Return a message of every rack in every week, with a figure for each other rack."""
    racks = len(problem.racks)
    weeks = int(np.ceil(problem.of("horizon_us") / problem.of("week_us") - 1e-9))
    return Signalling(messages=weeks * racks, bytes=weeks * racks * (racks - 1) * (NAME + FIGURE))


def _count_schedules(problem: FlowsInTime, plan: Operation) -> Signalling:
    """Return the schedules: lengths of days and ends of circuits, to both switches in weeks with days.

    Where queues are resized, each rack with circuits in the week gets its own too: to where, from when,
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
    return Signalling(messages=messages, bytes=said)


def observe_reports(
    problem: FlowsInTime,
    *,
    age_us: Age = 0.0,
    noise: Noise = 0.0,
    granularity_bytes: Granularity = 0.0,
    seed: Seed = 0,
) -> FlowsInTime:
    """Return the network with such reports; the problem itself where they are immediate and exact."""
    reports = Reports(age_us=age_us, noise=noise, granularity_bytes=granularity_bytes, seed=seed)
    return problem if reports.are_exact else replace(problem, reports=reports)
