"""Metrics of system `updates`: what an update takes, and what packets can meet during it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from planner.contract.metrics import Headline, Metric, less
from planner_models.updates.plan.check import Evaluation, evaluate
from planner_models.updates.plan.plan import UpdatePlan
from planner_models.updates.plan.replay import FLIP, HOLES, LOOPS, MISSES, MIXES
from planner_models.updates.problem.problem import Update

FOSTER: Final = "Foster et al. 2013, IV"


METRICS: Final = (
    Metric(
        name="kept_classes",
        unit="classes",
        better="more",
        about="classes whose guarantee holds in every mixture, and that are up to date in the end",
        source=FOSTER,
    ),
    Metric(name="classes", unit="classes", better="more", about="all classes"),
    less("broken_classes", "classes", "classes whose guarantee some mixture breaks", FOSTER),
    less("rounds", "rounds", "steps that change rules, one after another"),
    less("batches", "batches", "steps in which packets move to other rules"),
    less(
        "seconds",
        "s",
        "time from the first change to the last, with the time that packets need to leave",
        title="duration",
    ),
    less("operations", "rules", "rules that are added, removed or changed, each time"),
    less(
        "extra_rules_share",
        "",
        "most rules of a switch beyond the larger of before and after, as a part of that; largest of all",
        FOSTER,
    ),
    less("overflow_rules", "rules", "rules beyond the size of tables, sum of the largest of each switch"),
    less("loops", "classes", "classes of which packets can loop in some mixture"),
    less("black_holes", "classes", "classes of which packets can be lost for want of a rule in some mixture"),
    less("waypoint_missed", "classes", "classes of which packets can miss a waypoint in some mixture"),
    less("mixed_classes", "classes", "classes of which packets can use rules of both configurations", FOSTER),
    less(
        "mixed_packets_share",
        "",
        "packets of changed classes that use rules of both, of those that enter while rules change",
        FOSTER,
    ),
    less(
        "overload_mbps",
        "Mbit/s",
        "load beyond capacity and beyond that before and after, largest of all links",
    ),
    less("overload_volume_mbit", "Mbit", "the same of all links over the time of the steps, at most"),
    less(
        "lost_traffic_mbit",
        "Mbit",
        "traffic that loops or is lost while rules change in random order, and that of overload, at most",
    ),
)
HEADLINE: Final = Headline(
    metric="kept_classes",
    verb="keeps the guarantee of",
    total="classes",
    then="rounds",
    then_words="in",
    required={"tables": "overflow_rules", "links": "overload_mbps"},
    losses={
        "broken_classes": "breaks the guarantee of {}",
        "overflow_rules": "exceeds tables by {}",
        "overload_mbps": "overloads a link by {}",
    },
    table=(
        "kept_classes",
        "broken_classes",
        "rounds",
        "seconds",
        "operations",
        "extra_rules_share",
        "overflow_rules",
        "overload_mbps",
    ),
)
LIMITS: Final = {
    "loop": "loops",
    "black_hole": "black holes",
    "waypoint": "missed waypoints",
    "mixture": "mixtures of rules",
    "flows": "interrupted classes",
    "tables": "full tables",
    "links": "overloaded links",
    "drain": "early changes",
    "versions": "unsupported versions",
    "complete": "missing changes",
    "time": "short steps",
}


def measure(
    problem: Update,
    plan: UpdatePlan,
    previous: UpdatePlan | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric of a plan."""
    evaluation = evaluate(problem, plan)
    slots, ops = problem.slots, evaluation.ops
    base = np.maximum(problem.rules_now, problem.rules_next)
    largest = np.max(np.stack([problem.rules_now, *evaluation.held.values()]), axis=0)
    extra = np.divide(largest - base, base, out=np.zeros(len(base)), where=base > 0)
    limit = problem.load_limit_mbps
    excess = {step: np.maximum(load - limit, 0.0) for step, load in evaluation.loads.items()}
    beyond = {step: np.where(over > 1e-6 * limit, over, 0.0) for step, over in excess.items()}
    time = {step: float(evaluation.end_s[step] - evaluation.start_s[step]) for step in beyond}
    overload = float(sum(over.sum() * time[step] for step, over in beyond.items()))
    broken = int(evaluation.broken.sum())
    return {
        "kept_classes": float(len(problem.classes) - broken),
        "classes": float(len(problem.classes)),
        "broken_classes": float(broken),
        **{name: count(plan, evaluation) for name, count in OBJECTIVES.items()},
        "operations": float((slots.rules[ops.slot] * ops.parts).sum()),
        "extra_rules_share": float(extra.max(initial=0.0)),
        "overflow_rules": float(np.maximum(largest - problem.rule_capacity, 0.0).sum()),
        "loops": float(evaluation.classes_that(LOOPS).sum()),
        "black_holes": float(evaluation.classes_that(HOLES).sum()),
        "waypoint_missed": float(evaluation.classes_that(MISSES).sum()),
        "mixed_classes": float(evaluation.classes_that(MIXES).sum()),
        "mixed_packets_share": _share_mixed(evaluation),
        "overload_mbps": float(max((over.max(initial=0.0) for over in beyond.values()), default=0.0)),
        "overload_volume_mbit": overload,
        "lost_traffic_mbit": overload + _find_lost_mbit(evaluation),
    }


OBJECTIVES: Final[Mapping[str, Callable[[UpdatePlan, Evaluation], float]]] = {
    "rounds": lambda plan, _: float(plan.rounds),
    "batches": lambda _, evaluation: float(_count_batches(evaluation)),
    "seconds": lambda _, evaluation: float(evaluation.end_s.max(initial=0.0)),
}
"""Metrics that designs minimise, which need no sampling of packets."""


def _find_lost_mbit(evaluation: Evaluation) -> float:
    """Return the traffic of packets that loop or meet no rule, in the mean over random orders, Mbit."""
    if not (evaluation.outcome.bits & (LOOPS | HOLES)).any():
        return 0.0
    time = evaluation.end_s[evaluation.steps] - evaluation.start_s[evaluation.steps]
    loops, holes, _ = evaluation.samples
    return float(((loops + holes) * time * evaluation.problem.traffic_mbps[evaluation.classes]).sum())


def _count_batches(evaluation: Evaluation) -> int:
    """Return the number of steps in which packets move: that flip, split, or change rules in place."""
    moves = np.isin(evaluation.ops.action, [FLIP, 3, 4])
    return len(np.unique(evaluation.ops.step[moves]))


def _share_mixed(evaluation: Evaluation) -> float | None:
    """Return the share of packets of changed classes that use rules of both; None without changed classes."""
    changed = int(evaluation.problem.slots.changes.sum())
    time = evaluation.end_s[evaluation.steps] - evaluation.start_s[evaluation.steps]
    total = float((evaluation.end_s - evaluation.start_s)[np.unique(evaluation.steps)].sum())
    if not changed or total <= 0:
        return None
    mixed = evaluation.samples[2]
    return float((mixed * time).sum() / (total * changed))
