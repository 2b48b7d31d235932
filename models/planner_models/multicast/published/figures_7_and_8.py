"""Figures 7 and 8 and Table 2: table updates by joins and leaves, and local rerouting around failures."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.targets import Curve, Study, TargetValues
from planner_models.multicast.plan import rerouting, switch_groups
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.problem import equations, failures, generators, workloads
from planner_models.multicast.problem.problem import Multicast

TENANT: Final = equations.Tenant(pods=8, edges=24, hosts=24, aggregation_copies=3, core_copies=9)


def find_figure_7(study: Study) -> TargetValues:  # noqa: ARG001
    """Return the updates of one group in a tenant on all hosts of eight pods, in closed form."""
    sizes = np.unique(np.geomspace(1, TENANT.size - 1, 60).astype(int)).tolist()
    curve = pd.DataFrame(
        {
            "members": sizes,
            "burst of joins": [equations.burst_updates(TENANT, size, batched=False).total for size in sizes],
            "burst, batched": [equations.burst_updates(TENANT, size, batched=True).total for size in sizes],
            "next join": [equations.join_updates(TENANT, size).total for size in sizes],
            "next leave": [equations.leave_updates(TENANT, size).total for size in sizes],
        }
    )
    return TargetValues(
        values={
            "mcast_f7_hosts": float(TENANT.size),
            "mcast_f7_edges": float(TENANT.pods * TENANT.edges),
            "mcast_f7_nobatch": equations.burst_updates(TENANT, 300, batched=False).total,
            "mcast_f7_batch": equations.burst_updates(TENANT, 300, batched=True).total,
            "mcast_f7_join": equations.join_updates(TENANT, 300).total,
            "mcast_f7_leave": equations.leave_updates(TENANT, 300).total,
        },
        curves=(
            Curve(
                title="switch updates for a join or leave",
                frame=curve,
                units=dict.fromkeys(curve.columns[1:], "updates"),
                log_x=True,
            ),
        ),
    )


def generate_datacenter(placement: workloads.Placement, groups: int) -> Multicast:
    """Return the network, tenants and groups of section 4.1."""
    return generators.datacenter(
        k=48,
        aggregation_copies=3,
        table_size=1000,
        tenants=3000,
        largest_tenant=5000,
        groups=groups,
        placement=placement,
    )


def find_table_2(study: Study) -> TargetValues:
    """Return the updates by joins and leaves in all groups, and the update rate of a switch."""
    values: dict[str, float | bool | None] = {}
    divisor = 10 if study.quick else 1
    for table_label, placement, groups, events in (
        ("a", "near", 100_000, 1_000_000),
        ("b", "random", 30_000, 300_000),
    ):
        problem = generate_datacenter("near" if placement == "near" else "random", groups // divisor)
        counts = switch_groups.count_updates(problem, events=events // divisor, rng=np.random.default_rng(1))
        for name, count, each in zip(
            ("join", "leave"), counts.events, (counts.joins, counts.leaves), strict=True
        ):
            values |= {
                f"mcast_t2{table_label}_events_{name}": float(count * divisor),
                f"mcast_t2{table_label}_edge_{name}": each.edge,
                f"mcast_t2{table_label}_aggr_{name}": each.aggregation,
                f"mcast_t2{table_label}_core_{name}": each.core,
                f"mcast_t2{table_label}_total_{name}": each.total,
            }
    mean = equations.Updates(
        edge=1.0,
        aggregation=(counts.joins.aggregation + counts.leaves.aggregation) / 2,
        core=(counts.joins.core + counts.leaves.core) / 2,
    )
    load = equations.updates_per_second(mean, k=48, events_per_pod=1000)
    values |= {
        "mcast_load_edge": load.edge,
        "mcast_load_aggr": load.aggregation,
        "mcast_load_core": load.core,
    }
    size = "the group sizes of the WVE trace are not printed: ours fit their mean and two shares"
    notes = {
        f"mcast_t2a_aggr_{event}": f"{size}; the order of tenants in pods is our choice"
        for event in ("join", "leave")
    }
    notes |= {
        f"mcast_t2a_core_{event}": "caused by tenants that just reach into a pod: ours lie side by side; "
        "kept to whole pods where they fit, they give 0.015"
        for event in ("join", "leave")
    }
    notes |= {f"mcast_t2b_core_{event}": size for event in ("join", "leave")} | {"mcast_load_core": size}
    return TargetValues(values=values, notes=notes)


def _measure_stretch(problem: Multicast, plan: Channels, counts: Sequence[int]) -> pd.DataFrame:
    """Return route stretch and unreachable members, %, by failed aggregation switches."""
    rng = np.random.default_rng(0)
    rows = []
    for count in counts:
        state = failures.find_working_links(
            problem.wiring, switches=failures.draw_failures(problem.wiring, count, rng)
        )
        rerouted = rerouting.reroute_groups(problem, plan, state, sender=rerouting.draw_senders(problem, rng))
        got = rerouted.stretch[np.isfinite(rerouted.stretch)]
        rows.append(
            (
                count,
                got.mean(),
                np.median(got),
                np.quantile(got, 0.95),
                100 * rerouted.unreachable.mean(),
                100 * (rerouted.unreachable > 0).mean(),
            )
        )
    return pd.DataFrame(rows, columns=["failed", "mean", "median", "p95", "unreachable", "affected"])


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
        frames.append(_measure_stretch(problem, plan, counts))
        if placement == "near":
            survived = [
                _count_survived_failures(problem, np.random.default_rng(seed))
                for seed in range(5 if study.quick else 21)
            ]
    by_failed = [frame.set_index("failed").to_dict("index") for frame in frames]
    at_58 = [rows[58] for rows in by_failed]
    aggregations = len(problem.wiring.aggregations)
    endured = [
        failed
        for failed in counts
        if all(_has_low_stretch(rows[failed]) and _is_available(rows[failed]) for rows in by_failed)
    ]
    return TargetValues(
        values={
            "mcast_f8_aggr": float(aggregations),
            "mcast_f8_pods": float(problem.pods),
            "mcast_f8_safe": float(np.median(survived)),
            "mcast_f8_stretch": all(_has_low_stretch(each) for each in at_58),
            "mcast_f8_avail": all(_is_available(each) for each in at_58),
            "mcast_f8_share": 100 * max(endured, default=0) / aggregations,
            "mcast_f8_share_count": 0.05 * aggregations,
        },
        notes={
            "mcast_f8_safe": "failures in a random order before the first member is lost; median of orders",
            "mcast_f8_stretch": "58 of 1,152 failed: mean and median of the groups at most 1.05",
            "mcast_f8_avail": "58 of 1,152 failed: most groups lose nobody, fewer than 1% of members lost",
            "mcast_f8_share": "the largest of the simulated shares at which both statements hold",
        },
        curves=(
            _draw_curve("links on a way, divided by those without failures", frames, "mean", ""),
            _draw_curve("members that packets miss", frames, "unreachable", "%"),
        ),
    )


def _has_low_stretch(row: Mapping[Hashable, Any]) -> bool:
    """Return whether ways of most groups are at most 5% longer than without failures."""
    return bool(row["median"] <= 1.05 and row["mean"] <= 1.05)


def _is_available(row: Mapping[Hashable, Any]) -> bool:
    """Return whether most groups lose nobody, and fewer than 1% of members are lost."""
    return bool(row["affected"] < 50 and row["unreachable"] < 1)


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
