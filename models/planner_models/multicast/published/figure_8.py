"""Figure 8: route stretch and unreachable members under local rerouting."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.contract.targets import Curve, Study, TargetValues
from planner_models.multicast.plan import rerouting
from planner_models.multicast.plan.plan import build_plan
from planner_models.multicast.problem import (
    failures,
)
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.published.figure_7_and_table_2 import generate_datacenter


def find_figure_8(study: Study) -> TargetValues:
    """Return route stretch and unreachable members as aggregation switches fail."""
    counts = (50, 58, 230) if study.quick else (10, 25, 50, 58, 115, 230, 345, 576)
    divisor = 10 if study.quick else 1
    frames = []
    survived = []
    for placement, groups in (("near", 100_000), ("random", 30_000)):
        problem = generate_datacenter("near" if placement == "near" else "random", groups // divisor)
        copies = problem.aggregation_copies
        plan = build_plan(problem, np.ones(len(problem.groups), dtype=bool), copies)
        rng = np.random.default_rng(0)
        rows = []
        for count in counts:
            state = failures.find_working_links(
                problem.wiring, switches=failures.draw_failures(problem.wiring, count, rng)
            )
            found = rerouting.reroute_groups(problem, plan, state, rng=rng)
            got = found.stretch[np.isfinite(found.stretch)]
            rows.append(
                (
                    count,
                    got.mean(),
                    np.median(got),
                    np.quantile(got, 0.95),
                    100 * found.unreachable.mean(),
                    100 * (found.unreachable > 0).mean(),
                )
            )
        columns = ["failed", "mean", "median", "p95", "unreachable", "affected"]
        frames.append(pd.DataFrame(rows, columns=columns))
        if placement == "near":
            survived = [
                _count_survived_failures(problem, np.random.default_rng(seed))
                for seed in range(5 if study.quick else 21)
            ]
    at = [frame.set_index("failed").loc[58] for frame in frames]
    return TargetValues(
        values={
            "mcast_f8_aggr": float(len(problem.wiring.aggregations)),
            "mcast_f8_pods": float(problem.pods),
            "mcast_f8_safe": float(np.median(survived)),
            "mcast_f8_stretch": all(bool(each["median"] <= 1.05 and each["mean"] <= 1.05) for each in at),
            "mcast_f8_avail": all(bool(each["affected"] < 50 and each["unreachable"] < 1) for each in at),
        },
        notes={
            "mcast_f8_safe": "failures in a random order before the first member is lost; median of orders",
            "mcast_f8_stretch": "58 of 1,152 failed: mean and median of the groups at most 1.05",
            "mcast_f8_avail": "58 of 1,152 failed: most groups lose nobody, fewer than 1% of members lost",
        },
        curves=(
            _draw_curve("links on a way, divided by those without failures", frames, "mean", ""),
            _draw_curve("members that packets miss", frames, "unreachable", "%"),
        ),
    )


def _draw_curve(title: str, frames: list[pd.DataFrame], column: str, unit: str) -> Curve:
    """Return a column of both frames, against failed aggregation switches."""
    near, far = (frame.set_index("failed")[column] for frame in frames)
    lines = pd.DataFrame({"tenants near": near, "tenants random": far})
    return Curve(
        title=f"{title}, against failed aggregation switches",
        frame=lines.reset_index(),
        units=dict.fromkeys(["tenants near", "tenants random"], unit) if unit else {},
        log_x=True,
    )


def _count_survived_failures(problem: Multicast, rng: np.random.Generator) -> int:
    """Return the failures, in a random order, before a partition loses its last switch in a pod."""
    held = problem.distribution(problem.aggregation_copies)
    wires = problem.wiring
    order = rng.permutation(len(wires.aggregations))
    copies = np.zeros((wires.pods, held.partitions), dtype=np.int64)
    np.add.at(copies, wires.aggregation_pod, held.aggregation)
    for count, switch in enumerate(order.tolist()):
        in_pod = copies[wires.aggregation_pod[switch]]
        in_pod -= held.aggregation[switch]
        if (in_pod == 0).any():
            return count
    return len(order)
