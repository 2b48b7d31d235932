"""Per-flow consistency: flows keep the old path until they end, new flows take the new one.

The present rule of a class at an ingress gets a timeout. As new flows match it too, it may never expire. It
is divided into rules for parts of the flows, which expire sooner, and take more space and time to install.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.updates.designs.decision import Evidence, decide
from planner_models.updates.designs.two_phase import CONSISTENT, DrainS, Phases, drain_time_s, phases
from planner_models.updates.plan.flows import expiry_lives
from planner_models.updates.plan.plan import Step, UpdatePlan, count_rules, make_plan, read_operations, work_s
from planner_models.updates.plan.replay import ADD, FLIP, REMOVE, SPLIT
from planner_models.updates.problem.problem import Update

COARSEST: Final = 8
"""Most flows of one rule: it lasts for 400 mean lives of a flow; each flow more nearly triples that."""
MOST_TIMES: Final = 1_000
"""Most times, by which all rules have expired, that are tried."""
SCOPE: Final = "equal parts of the flows of each class"

FlowsPerRule = Annotated[
    int | None,
    Field(
        ge=1,
        le=COARSEST,
        description="flows that a rule of the present path matches until they have ended; 1: each flow has "
        "a rule that new flows do not match; default: as many as end the update soonest within tables",
    ),
]


class Division(NamedTuple):
    """Division of the present rules at ingresses into parts.

    parts      (M,) rules in place of each
    expiry_s   mean time until all of them have expired, s
    is_within  whether they fit in the tables
    is_best    whether no other division that fits ends the update sooner
    """

    parts: Ints
    expiry_s: float
    is_within: bool
    is_best: bool


def update_with_flows(
    problem: Update,
    *,
    drain_s: DrainS = None,
    flows_per_rule: FlowsPerRule = None,
    options: Options = Options(),
) -> Decision[UpdatePlan]:
    """Keep old rules for present flows until the last has ended, and give new flows the next rules.

    The wait is the mean time until all old rules have expired, for flows with exponential lives that begin at
    random times. Of all divisions of rules into equal parts that tables hold, the one that ends the update
    soonest is chosen. Classes without flow lives are flipped at once.

    source  Foster et al. 2013, IV.B
    """
    slots = problem.slots
    classes = np.flatnonzero(slots.changes)
    has_flows = np.isfinite(problem.flow_life_s) & slots.changes & problem.enters_now
    rule_phases = phases(problem, classes)
    wait_s = drain_time_s(problem, classes, drain_s)
    slow = rule_phases.flip[has_flows[slots.owner[rule_phases.flip]]]
    undivided = Division(np.ones(len(slow), dtype=np.int64), 0.0, is_within=True, is_best=False)
    division = undivided
    if len(slow):
        free = _find_free(problem, _steps(problem, rule_phases, slow, undivided, wait_s))
        division = _divide(problem, slow, free, wait_s, flows_per_rule)
    return decide(
        problem,
        _steps(problem, rule_phases, slow, division, wait_s),
        claims=(*CONSISTENT, "flows", *(["tables"] if len(slow) and division.is_within else [])),
        options=options,
        evidence=Evidence(
            metric="seconds" if len(slow) else None,
            scope=SCOPE if division.is_best else None,
            is_optimal=division.is_best,
        ),
    )


def _steps(problem: Update, rule_phases: Phases, slow: Ints, division: Division, wait_s: float) -> list[Step]:
    """Return the steps: install, split and wait for flows, flip, delete."""
    slots = problem.slots
    quick = rule_phases.flip[~np.isin(rule_phases.flip, slow)]
    only = problem.ingress[slots.owner[slow]] == slots.switch[slow]
    held = slow[only & slots.now.has_rule()[slow]]
    actions = np.concatenate([np.full(len(slow), SPLIT), np.full(len(quick), FLIP)])
    return [
        Step("install", rule_phases.add, ADD),
        Step(
            "split" if len(slow) else "flip",
            np.concatenate([slow, quick]),
            actions,
            max(division.expiry_s, wait_s),
            {int(each): 1.0 for each in np.unique(slots.owner[slow])},
            np.concatenate([division.parts, np.ones(len(quick), dtype=np.int64)]),
        ),
        Step("flip", slow, FLIP, wait_s),
        Step("delete", np.concatenate([rule_phases.remove, held]), REMOVE),
    ]


def _find_free(problem: Update, steps: list[Step]) -> Floats:
    """Return the (S,) rules that fit in each table besides those of a plan, from its split to its flip."""
    plan = make_plan(problem, steps)
    ops = read_operations(problem, plan)
    first = int(ops.step[ops.action == SPLIT].min())
    last = int(ops.step[ops.action == FLIP].max())
    held = [rules for step, rules in count_rules(problem, ops).items() if first <= step <= last]
    free: Floats = problem.rule_capacity - np.max(held, axis=0)
    return free


def _divide(problem: Update, slow: Ints, free: Floats, wait_s: float, flows_per_rule: int | None) -> Division:
    """Return the division of rules that ends the update soonest within tables; else the least beyond them.

    For each time by which rules may have expired, every class takes its fewest rules that expire by then, as
    these also take the least time to install.
    """
    slots = problem.slots
    owner, each = np.unique(slots.owner[slow], return_inverse=True)
    doors = np.bincount(each)
    sizes = np.arange(1, COARSEST + 1) if flows_per_rule is None else np.array([flows_per_rule])
    # (C, D) rules at each ingress, and the time until all have expired, by flows of a rule
    rules = np.ceil(problem.flows[owner][:, None] / doors[:, None] / sizes - 1e-9).astype(np.int64)
    rules = np.maximum(rules, 1)
    expiry_s = np.array(
        [
            [
                (expiry_lives(problem.flows[class_id], np.full(count, rule_parts)) or np.inf)
                * problem.flow_life_s[class_id]
                for rule_parts in row
            ]
            for class_id, count, row in zip(owner.tolist(), doors.tolist(), rules, strict=True)
        ]
    )
    times = np.unique(expiry_s)
    times = times[(times >= expiry_s.min(axis=1).max()) & np.isfinite(times)]
    is_all = len(times) <= MOST_TIMES
    if not is_all:
        times = times[np.linspace(0, len(times) - 1, MOST_TIMES).astype(np.int64)]
    best: tuple[float, float, Ints, float] | None = None
    for until_s in times:
        allowed = expiry_s <= until_s
        picked = np.where(allowed, rules, np.iinfo(np.int64).max).argmin(axis=1)
        rows = np.arange(len(owner))
        parts = rules[rows, picked][each]
        more = np.bincount(slots.switch[slow], weights=slots.rules[slow] * (parts - 1), minlength=len(free))
        beyond = float(np.maximum(more - np.maximum(free, 0.0), 0.0).sum())
        last_s = float(expiry_s[rows, picked].max())
        takes_s = work_s(problem, slow, parts) + max(last_s, wait_s)
        if best is None or (beyond, takes_s) < best[:2]:
            best = beyond, takes_s, parts, last_s
    if best is None:
        raise AssertionError("every class has a division that expires")
    is_within = best[0] <= 0 and bool((free >= 0).all())
    is_best = is_within and is_all and flows_per_rule is None
    return Division(best[2], best[3], is_within=is_within, is_best=is_best)
