"""The metrics of system `circuits`."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from planner.contract.metrics import Metric
from planner.contract.tolerances import allowance
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.plan.coflow_completion import completion_times_us
from planner_models.circuits.plan.plan import Schedule, served_rate
from planner_models.circuits.problem.problem import Circuits


def metric(name: str, unit: str, better: Literal["more", "less"], about: str, source: str = "") -> Metric:
    """Return a metric."""
    return Metric(name=name, unit=unit, better=better, about=about, source=source)


SOLSTICE: Final = "Liu et al. 2015 (Solstice)"
ECLIPSE: Final = "Venkatakrishnan et al. 2016 (Eclipse)"
DUTY: Final = "share of the week, or of the time until all is served, in which each switch's circuits are up"
UTILIZATION: Final = "bits that circuits carry over what all racks' circuits could carry while up"
COFLOWS: Final = "mean time until a coflow is complete; unknown without coflows or where one is not"
RATE: Final = "demand served, over the week; without one over the time until all is served, 0 if never"
METRICS: Final = (
    metric("served_mbps", "Mbit/s", "more", RATE),
    metric("offered_mbps", "Mbit/s", "more", "demand over the week; unknown without one"),
    metric("served_share", "", "more", "served share of all demand"),
    metric("circuit_share", "", "more", "share of all demand that circuits serve", ECLIPSE),
    metric("served_bits", "bits", "more", "demand that is served"),
    metric("unserved_bits", "bits", "less", "demand that is not served"),
    metric("done_us", "us", "less", "time until all demand is served; unknown where some is not", SOLSTICE),
    metric("configurations", "days", "less", "number of circuit configurations", SOLSTICE),
    metric("duty_cycle", "", "more", DUTY, "Mukerjee 2018, 2.2.2"),
    metric("circuit_utilization", "", "more", UTILIZATION, "Mukerjee 2018, 2.4.1"),
    metric("coflow_mean_us", "us", "less", COFLOWS),
    metric("coflow_p95_us", "us", "less", "95th percentile of the time until a coflow is complete"),
)


def measure(problem: Circuits, plan: Schedule, previous: Schedule | None) -> dict[str, float | None]:  # noqa: ARG001
    """Return every metric of the plan, from the true problem and the plan alone."""
    carried = derive_carried(problem, plan)
    offered = float(problem.offered_bits.sum())
    served = carried.served_bits(problem)
    remaining = offered - float(served.sum())
    up = float((carried.end_us - carried.start_us).sum())
    busiest = np.maximum(carried.packet_bits.sum(axis=0), carried.packet_bits.sum(axis=1))
    carries = busiest > 0
    if (problem.packet_mbps[carries] <= 0).any():
        end = None
    else:
        last = float((busiest[carries] / problem.packet_mbps[carries]).max(initial=0.0))
        end = max(last, float(carried.end_us.max(initial=0.0)))
    duration = problem.window_us if problem.window_us is not None else end
    working = up
    if problem.dark == "changed":  # a circuit that is kept works at night too
        working += float(carried.dark_us[np.diff(carried.switch, prepend=-1) == 0].sum())
    available = working * float(problem.racks.loc[~problem.is_failed, "circuit_mbps"].sum())
    ends: NDArray[np.float64] = np.zeros(0)
    if problem.coflows is not None:
        ends = np.asarray(completion_times_us(problem, plan, carried), dtype=np.float64)
    complete = len(ends) > 0 and bool(np.isfinite(ends).all())
    window = problem.window_us
    return {
        "served_mbps": served_rate(problem, float(served.sum()), end or np.inf),
        "offered_mbps": None if window is None else offered / window,
        "served_share": float(served.sum()) / offered if offered > 0 else None,
        "circuit_share": float(carried.circuit_bits.sum()) / offered if offered > 0 else None,
        "served_bits": float(served.sum()),
        "unserved_bits": max(remaining, 0.0),
        "done_us": end if remaining <= float(allowance(offered)) else None,
        "configurations": float(len(carried.start_us)),
        "duty_cycle": up / (duration * problem.switches) if duration else None,
        "circuit_utilization": float(carried.circuit_bits.sum()) / available if available > 0 else None,
        "coflow_mean_us": float(ends.mean()) if complete else None,
        "coflow_p95_us": float(np.quantile(ends, 0.95)) if complete else None,
    }
