"""Metrics of system `rotors`."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.contract.metrics import Headline, less, more
from planner_models.rotors.plan.check import Evaluation, evaluate
from planner_models.rotors.plan.plan import Routing
from planner_models.rotors.problem.problem import RotorNetwork

METRICS: Final = (
    more("delivered_mbps", "Mbit/s", "traffic that arrives, period after period"),
    more("offered_mbps", "Mbit/s", "all demand"),
    more("served_share", "", "part of the demand that arrives"),
    less("unserved_mbps", "Mbit/s", "demand that does not arrive"),
    less("relayed_share", "", "part of the traffic that arrives over more than one link"),
    less("mean_hops", "links", "mean number of links that traffic takes; unknown without traffic"),
    more("duty_cycle", "", "part of the time in which switches with circuits are not dark"),
    less("cycle_us", "us", "time after which the circuits repeat"),
    less(
        "mean_wait_us",
        "us",
        "mean time that traffic waits for circuits, without queues; unknown without traffic",
    ),
    less("worst_wait_us", "us", "longest time that traffic waits for circuits, without queues"),
    less(
        "urgent_wait_us",
        "us",
        "mean wait of the urgent traffic that arrives, without queues; unknown where there is none",
    ),
    more("urgent_at_once", "", "part of the urgent traffic that never waits; unknown where there is none"),
)
HEADLINE: Final = Headline(
    metric="delivered_mbps",
    verb="delivers",
    total="offered_mbps",
    losses={"unserved_mbps": "leaves {} unserved"},
    table=(
        "delivered_mbps",
        "served_share",
        "relayed_share",
        "mean_hops",
        "cycle_us",
        "mean_wait_us",
        "worst_wait_us",
        "urgent_wait_us",
    ),
)
LIMITS: Final = {
    "failed": "circuits of failed racks",
    "ports": "ports in use",
    "night": "nights too short",
    "capacity": "overloaded circuits",
    "instant": "circuits with too much traffic at once",
    "demand": "pairs served twice",
    "urgent": "pairs with too much urgent traffic",
    "unserved": "pairs listed with false unserved traffic",
}


def measure(
    problem: RotorNetwork,
    plan: Routing,
    previous: Routing | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric."""
    evaluation = evaluate(problem, plan)
    offered, delivered = float(problem.offered_mbps.sum()), float(evaluation.delivered.sum())
    mean, worst = measure_waits(evaluation)
    hops, relayed = _count_links(evaluation)
    urgent, at_once = float(problem.urgent_mbps.sum()), float(evaluation.at_once.sum())
    return {
        "delivered_mbps": delivered,
        "offered_mbps": offered,
        "served_share": delivered / offered if offered > 0 else 1.0,
        "unserved_mbps": max(offered - delivered, 0.0),
        "relayed_share": relayed / delivered if delivered > 0 else None,
        "mean_hops": hops / delivered if delivered > 0 else None,
        "duty_cycle": evaluation.timetable.duty_cycle,
        "cycle_us": evaluation.timetable.period_us,
        "mean_wait_us": mean,
        "worst_wait_us": worst,
        "urgent_wait_us": _measure_urgent_wait(evaluation),
        "urgent_at_once": at_once / urgent if urgent > 0 else None,
    }


def measure_waits(evaluation: Evaluation) -> tuple[float | None, float | None]:
    """Return the mean and longest wait of the traffic that arrives, us; None without traffic."""
    delivered = float(evaluation.delivered.sum())
    if delivered <= 0:
        return None, None
    mean, worst = evaluation.waits
    total = float((mean * evaluation.paths.rate).sum()) / delivered
    longest = float(worst.max(initial=0.0))
    return (total, longest) if np.isfinite(total) else (None, None)


def _count_links(evaluation: Evaluation) -> tuple[float, float]:
    """Return the sum of the links of traffic, and the traffic of more than one, Mbit/s."""
    paths = evaluation.paths
    by_other = float(paths.rate[paths.via != paths.source].sum())
    hops, relayed = float(paths.rate.sum()) + by_other, by_other
    if evaluation.at_once.any():
        links = np.where(evaluation.at_once > 0, evaluation.expander.hops, 0.0)
        hops += float((evaluation.at_once * np.where(np.isfinite(links), links, 0.0)).sum())
        relayed += float(evaluation.at_once[links > 1].sum())
    return hops, relayed


def _measure_urgent_wait(evaluation: Evaluation) -> float | None:
    """Return the mean wait of urgent traffic that arrives, us; None where there is none.

    What waits does so as its pair's other traffic.
    """
    urgent = np.minimum(evaluation.problem.urgent_mbps, evaluation.delivered)
    total = float(urgent.sum())
    if total <= 0:
        return None
    waiting = np.maximum(urgent - evaluation.at_once, 0.0)
    some = waiting > 0
    waited = float((waiting[some] * evaluation.mean_wait[some]).sum()) / total
    return waited if np.isfinite(waited) else None
