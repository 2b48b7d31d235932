"""Metrics of system `updates`: what an update takes, and what packets can meet during it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from planner.arrays import Bools
from planner.contract.metrics import Headline, Metric, less
from planner_models.updates.plan.check import Evaluation, evaluate
from planner_models.updates.plan.plan import UpdatePlan, read_stages
from planner_models.updates.plan.replay import FLIP, HOLES, LOOPS, MISSES, MIXES, SPLIT, SWAP
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
    less("class_moves", "classes", "classes that a step moves to other rules, each time"),
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
    stages = [(stage.problem, stage.plan) for stage in read_stages(problem, plan)]
    by_stage = [_measure_stage(*stage) for stage in stages]
    if len(by_stage) == 1:
        return by_stage[0]
    joined = {name: _join_values(name, [values[name] for values in by_stage]) for name in by_stage[0]}
    evaluations = [evaluate(*stage) for stage in stages]
    classes = len(problem.classes)
    for name, bit in BITS.items():
        joined[name] = float(np.any([each.classes_that(bit) for each in evaluations], axis=0).sum())
    broken = float(np.any([each.broken for each in evaluations], axis=0).sum())
    return {**joined, "broken_classes": broken, "kept_classes": classes - broken, "classes": float(classes)}


BITS: Final = {"loops": LOOPS, "black_holes": HOLES, "waypoint_missed": MISSES, "mixed_classes": MIXES}
"""Metrics that count classes of which packets meet a kind of mixture."""
LARGEST: Final = ("extra_rules_share", "overflow_rules", "overload_mbps", "mixed_packets_share")
"""Metrics of several updates that are the largest of each; others add up."""


def _join_values(name: str, values: list[float | None]) -> float | None:
    """Return the value of a metric for updates one after another, from that of each."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return max(known) if name in LARGEST else sum(known)


def _measure_stage(problem: Update, plan: UpdatePlan) -> dict[str, float | None]:
    """Return a value for every metric of one update."""
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
        **{name: float(evaluation.classes_that(bit).sum()) for name, bit in BITS.items()},
        "mixed_packets_share": _share_mixed(evaluation),
        "overload_mbps": float(max((over.max(initial=0.0) for over in beyond.values()), default=0.0)),
        "overload_volume_mbit": overload,
        "lost_traffic_mbit": overload + _find_lost_mbit(evaluation),
    }


OBJECTIVES: Final[Mapping[str, Callable[[UpdatePlan, Evaluation], float]]] = {
    "rounds": lambda plan, _: float(plan.rounds),
    "batches": lambda _, evaluation: float(_count_batches(evaluation)),
    "class_moves": lambda _, evaluation: float(_moving_groups(evaluation).sum()),
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
    return len(np.unique(evaluation.steps[_moving_groups(evaluation)]))


def _moving_groups(evaluation: Evaluation) -> Bools:
    """Return whether each group, a class in a step, moves packets to other rules, (G,)."""
    if not len(evaluation.steps):
        return np.zeros(0, dtype=bool)
    return np.logical_or.reduceat(np.isin(evaluation.ops.action, [FLIP, SWAP, SPLIT]), evaluation.starts[:-1])


def _share_mixed(evaluation: Evaluation) -> float | None:
    """Return the share of packets of changed classes that use rules of both; None without changed classes."""
    changed = int(evaluation.problem.slots.changes.sum())
    time = evaluation.end_s[evaluation.steps] - evaluation.start_s[evaluation.steps]
    total = float((evaluation.end_s - evaluation.start_s)[np.unique(evaluation.steps)].sum())
    if not changed or total <= 0:
        return None
    mixed = evaluation.samples[2]
    return float((mixed * time).sum() / (total * changed))
