"""Realization of a plan that was made on an observation: the packet switch carries the remaining demand."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from planner.search.tolerances import ROUNDING
from planner_models.coflows.plan.completion import replay_circuits
from planner_models.coflows.plan.plan import Service, find_coflows, make_settings
from planner_models.coflows.problem.problem import CoflowsInTime

INTERVAL_MS: Final = 10.0
"""Least time between changes of rates in the packet switch, where a plan did not use it."""


def realize(truth: CoflowsInTime, observed: CoflowsInTime, plan: Service) -> Service:  # noqa: ARG001
    """Return the plan as it plays out; circuits stay as they are planned.

    A circuit of a flow that was thought larger is idle in the end. What circuits leave of a flow that was
    thought smaller goes by the packet switch, once the planned circuits of its coflow are over: the coflow
    whose circuits end first is sent first. Where the plan uses the packet switch itself, its priorities stay.
    """
    if plan.settings["sharing"].iloc[0] != "none":
        return plan
    bits, _ = replay_circuits(truth, plan.circuits)
    short = truth.bits - bits > ROUNDING * truth.bits
    ends = np.full(len(truth.coflows), np.nan)
    planned = find_coflows(truth, plan.circuits, "circuits")
    np.fmax.at(ends, planned, plan.circuits["end_ms"].to_numpy(float))
    rows = np.unique(truth.coflow[short])
    rows = rows[~np.isnan(ends[rows])]
    if not len(rows):
        return plan
    rows = rows[np.argsort(ends[rows], kind="stable")]
    priorities = pd.DataFrame(
        {"at_ms": ends[rows], "coflow": truth.coflow_names[rows], "priority": ends[rows]}
    )
    return replace(plan, priorities=priorities, settings=make_settings("fair", INTERVAL_MS))
