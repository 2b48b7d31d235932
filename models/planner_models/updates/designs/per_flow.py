"""Per-flow consistency: flows keep the old path until they end, new flows take the new one."""

from __future__ import annotations

import numpy as np

from planner.contract.design import Decision
from planner.options import Options
from planner_models.updates.designs.decision import decide
from planner_models.updates.designs.two_phase import CONSISTENT, DrainS, drain_time_s, phases
from planner_models.updates.plan.check import flow_expiry_s
from planner_models.updates.plan.plan import Step, UpdatePlan
from planner_models.updates.plan.replay import ADD, FLIP, REMOVE, SPLIT
from planner_models.updates.problem.problem import Update


def update_with_flows(
    problem: Update, *, drain_s: DrainS = None, options: Options = Options()
) -> Decision[UpdatePlan]:
    """Keep old rules for present flows until the last has ended, and give new flows the next rules.

    The wait is the mean time until the last of n flows with exponential lives has ended; classes without
    flow lives are flipped at once. Each present flow is taken to have a rule that new flows do not match.

    source  Foster et al. 2013, IV.B
    """
    slots = problem.slots
    classes = np.flatnonzero(slots.changes)
    life = problem.classes["flow_life_s"].to_numpy(float) if "flow_life_s" in problem.classes else None
    has_flows = np.zeros(len(problem.classes), dtype=bool)
    if life is not None:
        has_flows[classes] = np.isfinite(life[classes])
    one = phases(problem, classes)
    wait_s = drain_time_s(problem, classes, drain_s)
    slow = one.flip[has_flows[slots.owner[one.flip]]]
    quick = one.flip[~has_flows[slots.owner[one.flip]]]
    expiry_s = max((flow_expiry_s(problem, int(each)) for each in np.flatnonzero(has_flows)), default=0.0)
    only = problem.ingress[slots.owner[slow]] == slots.switch[slow]
    held = slow[only & slots.now.has_rule()[slow]]
    actions = np.concatenate([np.full(len(slow), SPLIT), np.full(len(quick), FLIP)])
    steps = [
        Step("install", one.add, ADD),
        Step(
            "split" if len(slow) else "flip",
            np.concatenate([slow, quick]),
            actions,
            max(expiry_s, wait_s),
            {int(each): 1.0 for each in np.unique(slots.owner[slow])},
        ),
        Step("flip", slow, FLIP, wait_s),
        Step("delete", np.concatenate([one.remove, held]), REMOVE),
    ]
    claims = (*CONSISTENT, "flows")
    return decide(problem, steps, claims=claims, options=options)
