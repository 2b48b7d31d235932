"""Realization of a plan: switches make the changes of each step in the time that they really take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner_models.updates.plan.plan import DRAIN, UpdatePlan, read_operations, work_s
from planner_models.updates.problem.problem import Update


def realize(truth: Update, observed: Update, plan: UpdatePlan) -> UpdatePlan:
    """Return the plan with the times of the true switches; the controller waits for their answers.

    Steps in which packets leave last as planned.
    """
    if truth is observed or (truth.rule_ms == observed.rule_ms).all():
        return plan
    ops = read_operations(truth, plan)
    steps = plan.steps.sort_values("step", kind="stable")
    is_drain = (steps["kind"] == DRAIN).to_numpy()
    planned = (steps["end_s"] - steps["start_s"]).to_numpy(float)
    step_masks = [ops.step == number for number in range(len(steps))]
    needed = np.array([work_s(truth, ops.slot[mask], ops.parts[mask]) for mask in step_masks])
    end = np.cumsum(np.where(is_drain, planned, needed))
    return replace(plan, steps=steps.assign(start_s=np.concatenate([[0.0], end[:-1]])[: len(end)], end_s=end))
