"""What a plan is worth: the metrics of system `multicast`."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.system import Metric
from planner_models.multicast.plan import Channels, edge_name
from planner_models.multicast.problem import LAYERS, Multicast

METRICS: Final = (
    Metric(
        name="host_traffic_mbps",
        unit="Mbit/s",
        better="less",
        about="what all hosts send and receive: a group with entries is sent once, others once a member",
    ),
    Metric(name="hardware_groups", unit="groups", better="more", about="groups with table entries"),
    Metric(name="unicast_groups", unit="groups", better="less", about="groups sent to each member apart"),
    Metric(
        name="overhead_mbps",
        unit="Mbit/s",
        better="less",
        about="traffic on ports to hosts that did not ask for it",
        source="equation (6) with linear cost",
    ),
    Metric(
        name="overhead_share",
        unit="",
        better="less",
        about="the same over what members of groups with entries asked for",
        source="section 4.2",
    ),
    *(
        Metric(
            name=f"{layer}_entries_max", unit="entries", better="less", about=f"of the fullest {layer} switch"
        )
        for layer in LAYERS
    ),
    *(
        Metric(
            name=f"{layer}_entries_mean",
            unit="entries",
            better="less",
            about=f"of a {layer} switch, on average",
        )
        for layer in LAYERS
    ),
    Metric(
        name="rules_changed",
        unit="rules",
        better="less",
        about="groups added, removed or moved since the last plan",
    ),
)


def measure(problem: Multicast, plan: Channels, previous: Channels | None) -> dict[str, float | None]:
    """Every metric of the plan, from the true problem and the plan's tables alone."""
    names = pd.Index(problem.groups["group"])
    kept = np.zeros(len(names), dtype=bool)
    kept[names.get_indexer(pd.Index(plan.partitions["group"]))] = True
    rate, members = problem.rate_mbps, problem.member_counts
    extra = _extra_mbps(problem, plan)
    wanted = float((rate * members)[kept].sum())
    unicast = float((2 * rate * members)[~kept].sum())
    by_layer = plan.entries.groupby("layer")["entries"]
    return {
        "host_traffic_mbps": float(rate[kept].sum()) + wanted + extra + unicast,
        "hardware_groups": float(kept.sum()),
        "unicast_groups": float((~kept).sum()),
        "overhead_mbps": extra,
        "overhead_share": extra / wanted if wanted > 0 else None,
        **{f"{layer}_entries_max": float(by_layer.max()[layer]) for layer in LAYERS},
        **{f"{layer}_entries_mean": float(by_layer.mean()[layer]) for layer in LAYERS},
        "rules_changed": None if previous is None else float(_changed(plan, previous)),
    }


def _extra_mbps(problem: Multicast, plan: Channels) -> float:
    """Rates times ports that a shared entry reaches and its group does not want."""
    shared = plan.meta_groups
    if not len(shared):
        return 0.0
    edge, group, masks = problem.at_edge
    switch_names = pd.Index([edge_name(problem, i) for i in range(problem.k * problem.half)])
    switch = switch_names.get_indexer(pd.Index(shared["switch"]))
    member = pd.Index(problem.groups["group"]).get_indexer(pd.Index(shared["group"]))
    pairs = edge * len(problem.groups) + group
    place = np.searchsorted(pairs, switch * len(problem.groups) + member)
    wants = (masks[place][:, None] >> np.arange(problem.half, dtype=np.uint64)) & np.uint64(1)
    keys = pd.MultiIndex.from_arrays([switch, shared["meta_group"]])
    entry = keys.factorize()[0]
    reached = np.zeros((entry.max() + 1, problem.half), dtype=np.uint64)
    np.maximum.at(reached, entry, wants)
    return float(problem.rate_mbps[member] @ (reached[entry] - wants).sum(axis=1).astype(float))


def _changed(plan: Channels, previous: Channels) -> int:
    rows = [
        pd.MultiIndex.from_frame(each.partitions[["group", "partition", "copies"]])
        for each in (plan, previous)
    ]
    return len(rows[0].symmetric_difference(rows[1]))
