"""The metrics of system `coflows`: the plan is replayed from its tables, and counted."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner_models.circuits.plan.metrics import metric
from planner_models.coflows.plan.check import find_setups, switch_numbers
from planner_models.coflows.plan.completion import find_met, mean_completion_ms, met_share, replay
from planner_models.coflows.plan.lower_bounds import alone_ms
from planner_models.coflows.plan.plan import Service, find_flows
from planner_models.coflows.problem.problem import CoflowsInTime

GB_BITS: Final = 8e9
MEAN: Final = (
    "mean time from the arrival of a coflow until its last flow is complete, over coflows whose racks work, "
    "by their weights; unknown where one is not complete"
)
SLOWDOWN: Final = "completion time of a coflow over the least that it takes alone, which no plan beats"
CARRIES: Final = (
    "time in which circuits carry, over the time of all ports from the first arrival to the last completion"
)
VARYS: Final = "Chowdhury et al. 2014 (Varys)"
SUNFLOW: Final = "Huang et al. 2016 (Sunflow)"
METRICS: Final = (
    metric("mean_completion_ms", "ms", "less", MEAN, VARYS),
    metric("median_completion_ms", "ms", "less", "median completion time of coflows"),
    metric("p95_completion_ms", "ms", "less", "95th percentile of completion times of coflows", VARYS),
    metric("longest_completion_ms", "ms", "less", "longest completion time of a coflow"),
    metric("mean_slowdown", "times", "less", f"mean {SLOWDOWN}", SUNFLOW),
    metric("p95_slowdown", "times", "less", f"95th percentile of the {SLOWDOWN}", SUNFLOW),
    metric("least_p95_ms", "ms", "more", "95th percentile of the least times alone: no plan's is less"),
    metric(
        "deadlines_met",
        "",
        "more",
        "share of deadlines, by weights, by which their coflows are complete; none without deadlines",
        VARYS,
    ),
    metric(
        "missed_deadlines",
        "coflows",
        "less",
        "coflows that are not complete by their deadline; none without deadlines",
    ),
    metric("done_ms", "ms", "less", "time until the last coflow is complete; unknown where one is not"),
    metric("complete_coflows", "coflows", "more", "coflows that are complete"),
    metric(
        "incomplete_coflows",
        "coflows",
        "less",
        "coflows that are not, also those that a failed rack cuts off",
    ),
    metric("offered_gb", "GB", "more", "data of all flows"),
    metric("circuit_gb", "GB", "more", "data that circuits carry"),
    metric("packet_gb", "GB", "less", "data that the packet switch carries"),
    metric("setups", "circuits", "less", "circuits that are set up", SUNFLOW),
    metric("duty_cycle", "", "more", CARRIES, SUNFLOW),
)


def measure(
    problem: CoflowsInTime,
    plan: Service,
    previous: Service | None,  # noqa: ARG001
) -> dict[str, float | None]:
    """Return every metric of the plan, from the problem and the plan alone."""
    completion = replay(problem, plan)
    taken = completion.coflow_ms[problem.can_complete]
    is_complete = bool(len(taken)) and not np.isnan(taken).any()
    flow = find_flows(problem, plan.circuits)
    start, end = (plan.circuits[name].to_numpy(float) for name in ("start_ms", "end_ms"))
    _, stays = find_setups(problem, flow, start, end, switch_numbers(plan))
    complete = int((~np.isnan(completion.coflow_ms)).sum())
    alone = alone_ms(problem)[problem.can_complete]
    values: dict[str, float | None] = dict.fromkeys(item.name for item in METRICS)
    if is_complete:
        slowdown = taken / alone
        last = float((taken + problem.arrival_ms[problem.can_complete]).max())
        span_ms = last - float(problem.arrival_ms[problem.can_complete].min())
        ports = len(problem.racks) * problem.switches
        values |= {
            "mean_completion_ms": mean_completion_ms(problem, completion.coflow_ms),
            "median_completion_ms": float(np.median(taken)),
            "p95_completion_ms": float(np.quantile(taken, 0.95)),
            "longest_completion_ms": float(taken.max()),
            "mean_slowdown": float(slowdown.mean()),
            "p95_slowdown": float(np.quantile(slowdown, 0.95)),
            "done_ms": last,
            "duty_cycle": float((end - start).sum()) / (ports * span_ms) if span_ms > 0 else None,
        }
    is_met = find_met(problem, completion.coflow_ms)
    return values | {
        "deadlines_met": met_share(problem, is_met),
        "missed_deadlines": (
            float(np.isfinite(problem.due_ms).sum() - is_met.sum()) if problem.has_deadlines else None
        ),
        "least_p95_ms": float(np.quantile(alone, 0.95)) if len(alone) else None,
        "complete_coflows": float(complete),
        "incomplete_coflows": float(len(problem.coflows) - complete),
        "offered_gb": float(problem.bits.sum()) / GB_BITS,
        "circuit_gb": float(completion.circuit_bits.sum()) / GB_BITS,
        "packet_gb": float(completion.packet_bits.sum()) / GB_BITS,
        "setups": float((~stays).sum()),
    }
