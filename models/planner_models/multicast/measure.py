"""What a plan is worth: the metrics of system `multicast`."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.system import Metric
from planner_models.multicast import failures, repair
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import LAYERS, Multicast
from planner_models.multicast.stored import at_aggregations, rows_of

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
    Metric(
        name="overhead_busiest",
        unit="",
        better="less",
        about="the same on the 1% of links to hosts that carry the most",
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
        about="the same over what edge switches have members for",
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
        name="edge_entries_several",
        unit="entries",
        better="less",
        about="of the fullest edge switch, that go to several ports; others could be unicast entries",
        source="section 4.2",
    ),
    Metric(
        name="unreachable_share",
        unit="",
        better="less",
        about="members of a group that packets miss while switches reroute locally around what has failed",
        source="section 4.4",
    ),
    Metric(
        name="route_stretch",
        unit="",
        better="less",
        about="links that packets take meanwhile, over those without failures; mean of the groups",
        source="section 4.4",
    ),
    Metric(
        name="rebuilt_roots",
        unit="cores",
        better="less",
        about="cores that a group needs when trees are rebuilt, of groups in several pods",
        source="section 3.3.2",
    ),
    Metric(
        name="rebuilt_entries",
        unit="entries",
        better="less",
        about="entries to add for rebuilt trees, of all groups",
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
    """Every metric of the plan, from the true problem and the plan's tables alone."""
    kept = np.zeros(len(problem.groups), dtype=bool)
    kept[rows_of(problem.group_names, plan.partitions["group"])] = True
    rate, members = problem.rate_mbps, problem.member_counts
    wanted, extra = host_links_mbps(problem, plan, kept)
    links, more = edge_links_mbps(problem, plan, kept)
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
        "edge_entries_several": float(several_ports(problem, plan, kept).max()),
        **_with_failures(problem, plan),
        "rules_changed": None if previous is None else float(_changed(plan, previous)),
    }


def _with_failures(problem: Multicast, plan: Channels) -> dict[str, float | None]:
    names = ("unreachable_share", "route_stretch", "rebuilt_roots", "rebuilt_entries")
    if problem.failed is None or not len(plan.partitions):
        return dict.fromkeys(names)
    state = failures.alive(problem.wiring, switches=problem.failed["switch"])
    reached = failures.rerouted(problem, plan, state)
    trees = repair.repaired(problem, plan, state, exact=False).table
    got = np.isfinite(reached.stretch)
    values = (
        float(reached.unreachable.mean()),
        float(reached.stretch[got].mean()) if got.any() else None,
        float(trees["roots"].mean()) if len(trees) else None,
        float(trees["entries"].sum()),
    )
    return dict(zip(names, values, strict=True))


def host_links_mbps(
    problem: Multicast, plan: Channels, kept: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(edge switches, ports) traffic of groups with entries to each host: what it asked for, and the rest.

    kept  (G,) groups with entries
    """
    edge, group, masks = problem.at_edge
    here = kept[group]
    edge, group, masks = edge[here], group[here], masks[here]
    count, rate = problem.edge_count, problem.rate_mbps[group]
    wanted = np.column_stack(
        [
            np.bincount(edge, weights=rate * _has(masks, port), minlength=count)
            for port in range(problem.ports)
        ]
    )
    first = len(problem.wiring.cores) + len(problem.wiring.aggregations)
    reached, switch, of = _shared_ports(problem, plan, first, edge, group, masks)
    rates = problem.rate_mbps[of]
    extra = np.column_stack(
        [
            np.bincount(switch, weights=rates * _has(reached, port), minlength=count)
            for port in range(problem.ports)
        ]
    )
    return wanted.astype(float), extra.astype(float)


def edge_links_mbps(
    problem: Multicast, plan: Channels, kept: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(aggregation switches,) traffic to edge switches below: what they have members for, and the rest.

    A group takes one of the switches that hold its partition in a pod; each has its equal part.
    """
    wires = problem.wiring
    if not len(plan.partitions):
        return np.zeros(len(wires.aggregations)), np.zeros(len(wires.aggregations))
    of = rows_of(problem.group_names, plan.partitions["group"])
    given = plan.partitions["partition"].to_numpy(np.int64)
    copies = plan.partitions["copies"].to_numpy(np.int64)
    wanted, extra = np.zeros(len(wires.aggregations)), np.zeros(len(wires.aggregations))
    for ra in np.unique(copies).tolist():
        held, mine = problem.distribution(ra), np.zeros(len(problem.groups), dtype=bool)
        mine[of[copies == ra]] = True
        partition = np.zeros(len(problem.groups), dtype=np.int64)
        partition[of] = given
        stored = at_aggregations(problem, partition, held, mine & kept)
        switch = stored.switch
        holders = np.zeros((wires.pods, held.partitions))
        np.add.at(holders, wires.aggregation_pod, held.aggregation)
        part = 1.0 / holders[wires.aggregation_pod[switch], partition[stored.group]]
        rates = problem.rate_mbps[stored.group] * part
        count = len(wires.aggregations)
        wanted += np.bincount(switch, weights=rates * np.bitwise_count(stored.ports), minlength=count)
        reached, at, group = _shared_ports(
            problem, plan, len(wires.cores), switch, stored.group, stored.ports
        )
        part = 1.0 / holders[wires.aggregation_pod[at], partition[group]]
        rates = problem.rate_mbps[group] * part
        extra += np.bincount(at, weights=rates * np.bitwise_count(reached), minlength=count)
    return wanted, extra


def several_ports(problem: Multicast, plan: Channels, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(edge switches,) entries that go to more than one port; the others could be unicast entries."""
    edge, group, masks = problem.at_edge
    first = len(problem.wiring.cores) + len(problem.wiring.aggregations)
    shares = np.zeros(problem.edge_count, dtype=bool)
    switch = rows_of(problem.wiring.switches, plan.meta_groups["switch"]) - first
    shares[switch[switch >= 0]] = True
    own = kept[group] & ~shares[edge] & (np.bitwise_count(masks) > 1)
    count = np.bincount(edge[own], minlength=problem.edge_count)
    if shares.any():
        _, at, unions = _entries(problem, plan, first, edge, group, masks)
        count += np.bincount(at[np.bitwise_count(unions) > 1], minlength=problem.edge_count)
    return np.asarray(count, dtype=np.int64)


def _has(masks: NDArray[np.uint64], port: int) -> NDArray[np.bool_]:
    return (masks >> np.uint64(port)) & np.uint64(1) > 0


def _entries(
    problem: Multicast,
    plan: Channels,
    first: int,
    at: NDArray[np.int64],
    group: NDArray[np.int64],
    masks: NDArray[np.uint64],
) -> tuple[
    tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64], NDArray[np.uint64]
]:
    """Shared entries of one layer: (place in `masks`, entry, group) of each row; switch and ports of each.

    first  the layer's first switch; at, group, masks  the pairs that the layer stores
    """
    shared, groups = plan.meta_groups, len(problem.groups)
    switch = rows_of(problem.wiring.switches, shared["switch"]) - first
    here = (switch >= 0) & (switch < (int(at.max()) + 1 if len(at) else 0))
    switch = switch[here]
    of = rows_of(problem.group_names, shared["group"])[here]
    meta = shared["meta_group"].to_numpy(np.int64)[here]
    pairs = at * groups + group
    order = np.argsort(pairs, kind="stable") if (pairs[1:] < pairs[:-1]).any() else np.arange(len(pairs))
    place = order[np.minimum(np.searchsorted(pairs[order], switch * groups + of), len(pairs) - 1)]
    found = pairs[place] == switch * groups + of
    switch, of, meta, place = switch[found], of[found], meta[found], place[found]
    if not len(place):
        nothing = np.zeros(0, dtype=np.int64)
        return (nothing, nothing, nothing), nothing, np.zeros(0, dtype=np.uint64)
    key, entry = np.unique(switch * (int(meta.max()) + 1) + meta, return_inverse=True)
    rows = np.argsort(entry, kind="stable")
    start = np.searchsorted(entry[rows], np.arange(len(key)))
    unions = np.bitwise_or.reduceat(masks[place][rows], start)
    return (place, entry, of), key // (int(meta.max()) + 1), unions


def _shared_ports(
    problem: Multicast,
    plan: Channels,
    first: int,
    at: NDArray[np.int64],
    group: NDArray[np.int64],
    masks: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Ports that shared entries reach and their groups do not want, with the switch and the group of each."""
    (place, entry, of), switch, unions = _entries(problem, plan, first, at, group, masks)
    return unions[entry] & ~masks[place], switch[entry], of


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _busiest(extra: NDArray[np.float64], wanted: NDArray[np.float64]) -> float | None:
    """Overhead of the 1% of links with the most traffic, one at least."""
    extra, wanted = extra.ravel(), wanted.ravel()
    carried = extra + wanted
    top = np.argsort(-carried, kind="stable")[: max(1, int((carried > 0).sum()) // 100)]
    return _share(extra[top].sum(), wanted[top].sum())


def _changed(plan: Channels, previous: Channels) -> int:
    rows = [
        pd.MultiIndex.from_frame(each.partitions[["group", "partition", "copies"]].astype({"group": str}))
        for each in (plan, previous)
    ]
    return len(rows[0].symmetric_difference(rows[1]))
