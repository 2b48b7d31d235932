"""Wrong or coarse observations of failures and delays, and the messages of control planes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.contract.degradation import Noise, Seed, add_noise, drift
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner.contract.units import DAY_S
from planner_models.membership.plan.check import read_plan
from planner_models.membership.plan.joining import join_metrics
from planner_models.membership.plan.plan import MembershipPlan
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.schema import KINDS, MAX_RATE

Coarse = Annotated[
    float,
    Field(
        ge=0,
        le=2,
        description="below 1: failures of each site; below 2: means of kinds of sites; 2: of hosts alone",
    ),
]
AgeS = Annotated[float, Field(ge=0, description="age of the measured rates of failures, s")]
RATE_MEMORY_S: Final = 90 * DAY_S
"""Time in which the autocorrelation of a site's rate of failures falls to 1/e: assumed."""
RATE_SPREAD: Final = 0.5
"""Standard deviation of the logarithm of a site's rate over time: assumed."""


def observe(
    problem: Membership,
    *,
    noise: Noise = 0.0,
    lost_heartbeats: Annotated[
        float, Field(ge=0, lt=1, description="share of heartbeats that are lost more than is known")
    ] = 0.0,
    coarse: Coarse = 0.0,
    age_s: AgeS = 0.0,
    seed: Seed = 0,
) -> Membership:
    """Return the problem with failures as a control plane estimates them.

    noise   every rate of failures is multiplied by a lognormal factor of median 1
    coarse  1: rates are the mean of their kind; 2: those of hosts alone are known
    age_s   rates have drifted since
    """
    changed = problem
    if noise or age_s or coarse >= 1:
        rate = problem.sites["fails_per_month"].to_numpy(float)
        random = np.random.default_rng(seed)
        rate = drift(rate, age=age_s, memory=RATE_MEMORY_S, spread=RATE_SPREAD, rng=random)
        rate = add_noise(rate, noise, random)
        if coarse >= 2:
            rate = np.where(problem.kind == KINDS.index("host"), rate, 0.0)
        elif coarse >= 1:
            rate = np.array([rate[problem.kind == kind].mean() for kind in problem.kind.tolist()])
        changed = replace(changed, sites=problem.sites.assign(fails_per_month=np.minimum(rate, MAX_RATE)))
    if lost_heartbeats and changed.delays is not None:
        loss = changed.delays["loss"].to_numpy(float) if "loss" in changed.delays else 0.0
        known_loss = np.maximum(0.0, 1 - (1 - np.asarray(loss)) / (1 - lost_heartbeats))
        changed = replace(changed, delays=changed.delays.assign(loss=known_loss))
    return changed


def signal_votes(problem: Membership, plan: MembershipPlan) -> Signalling:
    """Count an election of each service: a request to each member, and its vote."""
    sizes = [item.placement.size for item in read_plan(problem, plan)]
    messages = sum(2 * (size - 1) for size in sizes)
    return Signalling(messages=messages, bytes=messages * (NAME + FIGURE))


def signal_reports(problem: Membership, plan: MembershipPlan) -> Signalling:
    """Count a report of a failure: managers agree on it, and tell each member."""
    messages = 0
    for item in read_plan(problem, plan):
        managers = sum(item.placement.managers.values())
        messages += 2 * max(managers - 1, 0) + item.placement.size
    return Signalling(messages=messages, bytes=messages * (2 * NAME + FIGURE))


def signal_rounds(problem: Membership, plan: MembershipPlan) -> Signalling:
    """Count a decision of each service: in each round a message of each member to each other one."""
    messages = sum(
        item.placement.rounds * item.placement.size * (item.placement.size - 1)
        for item in read_plan(problem, plan)
    )
    return Signalling(messages=messages, bytes=messages * (NAME + FIGURE))


def signal_group(problem: Membership, plan: MembershipPlan) -> Signalling:
    """Count the messages until the group knows a join, or all of itself."""
    messages = round(join_metrics(problem, plan)["join_messages"] or 0.0)
    return Signalling(messages=messages, bytes=messages * (NAME + FIGURE))


def signal_plan(problem: Membership, plan: MembershipPlan) -> Signalling:
    """Count all failures and delays that one planner gathers, and the places that it sends."""
    delays = 0 if problem.delays is None else len(problem.delays)
    size = sum(item.placement.size for item in read_plan(problem, plan))
    messages = len(problem.sites) + delays + size
    return Signalling(messages=messages, bytes=messages * (NAME + 2 * FIGURE))
