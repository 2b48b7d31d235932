"""Metrics of a plan of system `multicast`."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.metrics import Metric
from planner_models.multicast.plan import overhead, rerouting, tree_repair
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.problem import failures
from planner_models.multicast.problem.problem import LAYERS, Multicast

METRICS: Final = (
    Metric(
        name="host_traffic_mbps",
        unit="Mbit/s",
        better="less",
        about="traffic that hosts send and receive; a group with entries is sent once, others once a member",
    ),
    Metric(name="hardware_groups", unit="groups", better="more", about="groups with table entries"),
    Metric(
        name="unicast_groups", unit="groups", better="less", about="groups sent to each member by unicast"
    ),
    Metric(
        name="overhead_mbps",
        unit="Mbit/s",
        better="less",
        about="traffic on ports to hosts that are no members of its group",
        source="equation (6) with linear cost",
    ),
    Metric(
        name="overhead_share",
        unit="",
        better="less",
        about="the same, divided by the traffic wanted by members of groups with entries",
        source="section 4.2",
    ),
    Metric(
        name="overhead_busiest",
        unit="",
        better="less",
        about="the same on the 1% of links to hosts with the most traffic",
        source="section 4.2",
    ),
    Metric(
        name="edge_link_overhead_mbps",
        unit="Mbit/s",
        better="less",
        about="traffic from aggregation to edge switches that have no member of its group",
        source="equation (6) with linear cost",
    ),
    Metric(
        name="edge_link_overhead_share",
        unit="",
        better="less",
        about="the same, divided by the traffic of groups with members there",
    ),
    *(
        Metric(
            name=f"{layer}_entries_max",
            unit="entries",
            better="less",
            about=f"entries of the fullest {layer} switch",
        )
        for layer in LAYERS
    ),
    *(
        Metric(
            name=f"{layer}_entries_mean",
            unit="entries",
            better="less",
            about=f"entries of a {layer} switch, on average",
        )
        for layer in LAYERS
    ),
    Metric(
        name="edge_entries_several",
        unit="entries",
        better="less",
        about="entries of the fullest edge switch with several ports; others could be unicast entries",
        source="section 4.2",
    ),
    Metric(
        name="unreachable_share",
        unit="",
        better="less",
        about="share of a group's members without packets while switches reroute locally around failures",
        source="section 4.4",
    ),
    Metric(
        name="route_stretch",
        unit="",
        better="less",
        about="links that packets take meanwhile, divided by those without failures; mean of groups",
        source="section 4.4",
    ),
    Metric(
        name="rebuilt_roots",
        unit="cores",
        better="less",
        about="cores of a rebuilt tree, mean of groups in several pods",
        source="section 3.3.2",
    ),
    Metric(
        name="rebuilt_entries",
        unit="entries",
        better="less",
        about="entries to add for rebuilt trees of all groups",
        source="section 3.3.2",
    ),
    Metric(
        name="rules_changed",
        unit="rules",
        better="less",
        about="groups added, removed or moved since the last plan",
    ),
)


def measure(problem: Multicast, plan: Channels, previous: Channels | None) -> dict[str, float | None]:
    """Return every metric of the plan, from the true problem and the plan's tables alone."""
    kept = overhead.has_entries(problem, plan)
    rate, members = problem.rate_mbps, problem.member_counts
    wanted, extra = overhead.host_links_mbps(problem, plan)
    links, more = overhead.edge_links_mbps(problem, plan)
    unicast = float((2 * rate * members)[~kept].sum())
    by_layer = plan.entries.groupby("layer")["entries"]
    return {
        "host_traffic_mbps": float(rate[kept].sum()) + float(wanted.sum() + extra.sum()) + unicast,
        "hardware_groups": float(kept.sum()),
        "unicast_groups": float((~kept).sum()),
        "overhead_mbps": float(extra.sum()),
        "overhead_share": _share(extra.sum(), wanted.sum()),
        "overhead_busiest": _busiest(extra, wanted),
        "edge_link_overhead_mbps": float(more.sum()),
        "edge_link_overhead_share": _share(more.sum(), links.sum()),
        **{f"{layer}_entries_max": float(by_layer.max()[layer]) for layer in LAYERS},
        **{f"{layer}_entries_mean": float(by_layer.mean()[layer]) for layer in LAYERS},
        "edge_entries_several": float(overhead.count_several_ports(problem, plan).max()),
        **_with_failures(problem, plan),
        "rules_changed": None if previous is None else float(_count_changed(plan, previous)),
    }


def _with_failures(problem: Multicast, plan: Channels) -> dict[str, float | None]:
    """Return the metrics of rerouting and rebuilding; None where nothing has failed."""
    names = ("unreachable_share", "route_stretch", "rebuilt_roots", "rebuilt_entries")
    if problem.failed is None or not len(plan.partitions):
        return dict.fromkeys(names)
    state = failures.find_working_links(problem.wiring, switches=problem.failed["switch"])
    reached = rerouting.reroute_groups(problem, plan, state)
    trees = tree_repair.repair_trees(problem, plan, state, exact=False).table
    got = np.isfinite(reached.stretch)
    values = (
        float(reached.unreachable.mean()),
        float(reached.stretch[got].mean()) if got.any() else None,
        float(trees["roots"].mean()) if len(trees) else None,
        float(trees["entries"].sum()),
    )
    return dict(zip(names, values, strict=True))


def _share(part: float, whole: float) -> float | None:
    """Return part / whole; None where the whole is 0."""
    return float(part / whole) if whole > 0 else None


def _busiest(extra: NDArray[np.float64], wanted: NDArray[np.float64]) -> float | None:
    """Return the overhead of the 1% of links with the most traffic, at least one link."""
    extra, wanted = extra.ravel(), wanted.ravel()
    total = extra + wanted
    top = np.argsort(-total, kind="stable")[: max(1, int((total > 0).sum()) // 100)]
    return _share(extra[top].sum(), wanted[top].sum())


def _count_changed(plan: Channels, previous: Channels) -> int:
    """Return the number of groups added, removed or moved between two plans."""
    rows = [
        pd.MultiIndex.from_frame(each.partitions[["group", "partition", "copies"]].astype({"group": str}))
        for each in (plan, previous)
    ]
    return len(rows[0].symmetric_difference(rows[1]))
