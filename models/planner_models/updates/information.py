"""Information of control planes of system `updates`: the traffic as it was measured, and signalling.

Observation of the traffic of classes: as it was measured some time ago, with noise.

Signalling of updates: changes of rules that a controller sends, and the answers of switches.

Realization of a plan: switches make the changes of each step in the time that they really take.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner.contract.degradation import AgeS, Noise, Seed, add_noise, drift
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.updates.plan.plan import (
    DRAIN,
    UpdatePlan,
    join_stages,
    read_operations,
    read_stages,
    work_s,
)
from planner_models.updates.problem.problem import Update

MEMORY_S: Final = 600.0
"""Time in which the autocorrelation of a class's traffic falls to 1/e."""
SPREAD: Final = 0.5
"""Standard deviation of the logarithm of a class's traffic over time."""
RULE = 3 * NAME + FIGURE  # class, switch, next hop, and its share


def observe_traffic(problem: Update, *, age_s: AgeS = 0.0, noise: Noise = 0.0, seed: Seed = 0) -> Update:
    """Return the problem with the traffic of classes as the controller measured it; rules are known."""
    if age_s == 0 and noise == 0:
        return problem
    rng = np.random.default_rng(seed)
    traffic = drift(problem.traffic_mbps, age=age_s, memory=MEMORY_S, spread=SPREAD, rng=rng)
    traffic = add_noise(traffic, noise, rng)
    return replace(problem, classes=problem.classes.assign(traffic_mbps=traffic))


def count_commands(problem: Update, plan: UpdatePlan) -> Signalling:  # noqa: ARG001
    """Return one message to each switch in each step with its changes, and one answer when they are done."""
    asked = len(plan.operations[["step", "switch"]].drop_duplicates())
    return Signalling(messages=2 * asked, bytes=int(plan.parts.sum()) * RULE + asked * NAME)


def count_announcements(problem: Update, plan: UpdatePlan) -> Signalling:
    """Return the next rules for each switch, and an announcement of each change to the neighbours."""
    slots = problem.slots
    changed = int((~slots.same).sum())
    return Signalling(messages=2 * changed, bytes=changed * RULE + len(plan.operations) * 2 * NAME)


def realize(truth: Update, observed: Update, plan: UpdatePlan) -> UpdatePlan:
    """Return the plan with the times of the true switches; the controller waits for their answers.

    Steps in which packets leave last as planned.
    """
    if truth is observed or (truth.rule_ms == observed.rule_ms).all():
        return plan
    if plan.paths is not None:
        stages = zip(read_stages(truth, plan), read_stages(observed, plan), strict=True)
        plans = [realize(true.problem, seen.problem, true.plan) for true, seen in stages]
        return join_stages(plans, plan.paths)
    ops = read_operations(truth, plan)
    steps = plan.steps.sort_values("step", kind="stable")
    is_drain = (steps["kind"] == DRAIN).to_numpy()
    planned = (steps["end_s"] - steps["start_s"]).to_numpy(float)
    step_masks = [ops.step == number for number in range(len(steps))]
    needed = np.array([work_s(truth, ops.slot[mask], ops.parts[mask]) for mask in step_masks])
    end = np.cumsum(np.where(is_drain, planned, needed))
    return replace(plan, steps=steps.assign(start_s=np.concatenate([[0.0], end[:-1]])[: len(end)], end_s=end))
