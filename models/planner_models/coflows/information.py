"""Observations of coflows: reports of applications that are late, noisy or coarse.

Realization of a plan that was made on an observation: the packet switch carries the remaining demand.

Signalling between applications, the scheduler and switches, counted from the needs of a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.degradation import Noise, Seed, add_noise, round_up
from planner.contract.parameters import spread
from planner.contract.signalling import FIGURE, NAME, NONE, Signalling
from planner.search.tolerances import ROUNDING
from planner_models.coflows.plan.completion import replay_circuits
from planner_models.coflows.plan.plan import Service, find_coflows, make_settings
from planner_models.coflows.problem.problem import CoflowsInTime

Age = Annotated[
    float,
    Field(ge=0, allow_inf_nan=False, description="time from the arrival of a coflow until it is known, ms"),
]
Granularity = Annotated[
    float,
    Field(
        ge=0, description="sizes of flows are reported in whole steps of this, rounded up, bytes; 0: exactly"
    ),
]
INTERVAL_MS: Final = 10.0
"""Least time between changes of rates in the packet switch, where a plan did not use it."""

LEAST_MS: Final = 1e-6
"""Time that is left until a deadline that is over when a coflow becomes known."""


@dataclass(frozen=True, kw_only=True)
class Reports:
    """Age and accuracy of the reports of coflows."""

    age_ms: Age = 0.0
    noise: Noise = 0.0
    granularity_bytes: Granularity = 0.0
    seed: Seed = 0


def observe_arrivals(problem: CoflowsInTime, *, age_ms: Age = 0.0) -> CoflowsInTime:
    """Return the coflows as they become known, some time after they arrive."""
    if age_ms == 0:
        return problem
    later = problem.coflows.assign(arrival_ms=problem.coflows["arrival_ms"] + age_ms)
    if "deadline_ms" in later:
        later = later.assign(deadline_ms=np.maximum(later["deadline_ms"].to_numpy(float) - age_ms, LEAST_MS))
    return replace(problem, coflows=later)


@spread(reports=Reports())
def observe_coflows(problem: CoflowsInTime, *, reports: Reports) -> CoflowsInTime:
    """Return the coflows as applications report them: late, with noise in sizes, and in whole steps."""
    observed = observe_arrivals(problem, age_ms=reports.age_ms)
    if reports.noise == 0 and reports.granularity_bytes == 0:
        return observed
    rng = np.random.default_rng(reports.seed)
    sizes = add_noise(problem.flows["bytes"].to_numpy(float), reports.noise, rng)
    return replace(observed, flows=observed.flows.assign(bytes=round_up(sizes, reports.granularity_bytes)))


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
