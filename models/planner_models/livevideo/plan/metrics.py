"""Metrics of distribution trees."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.metrics import Metric
from planner_models.livevideo.plan.check import TOLERANCE, Delivery, compute_delivery, served_without_overload
from planner_models.livevideo.plan.plan import Trees, diff, moved_objects
from planner_models.livevideo.problem.problem import LiveVideo

OBJECTIVE: Final = "service_minus_cost"

METRICS: Final = (
    Metric(
        name=OBJECTIVE,
        unit="",
        better="more",
        about="weighted priority of the served requests minus weighted cost of the traffic",
        source="Mukerjee 2018, Fig. 4.8",
    ),
    Metric(
        name="clients_at_bitrate",
        unit="%",
        better="more",
        about="clients served at the requested bitrate, over links without overload",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Metric(
        name="average_bitrate_kbps",
        unit="kbit/s",
        better="more",
        about="mean bitrate of the clients, 0 for those not served",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Metric(
        name="cost_per_satisfied",
        unit="cost x Mbit/s",
        better="less",
        about="cost of all traffic over the number of clients served at the requested bitrate",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Metric(name="cost", unit="cost x Mbit/s", better="less", about="cost of all traffic on all links"),
    Metric(name="requests_served", unit="%", better="more", about="requests whose group the tree reaches"),
    Metric(name="traffic_mbps", unit="Mbit/s", better="less", about="total traffic of all links"),
    Metric(
        name="source_load",
        unit="",
        better="less",
        about="total load over total capacity of the links out of sources",
    ),
    Metric(name="overloaded_links", unit="links", better="less", about="links with more load than capacity"),
    Metric(
        name="mean_latency_ms",
        unit="ms",
        better="less",
        about="mean delay of the links from source to group, over clients served",
    ),
    Metric(
        name="join_s",
        unit="s",
        better="less",
        about="median time from request to first chunk of the clients served: wait for a decision, round "
        "trips up to a source, and transfer over the narrowest link",
        source="Mukerjee 2018, section 4.7.2",
    ),
    Metric(
        name="moved_objects",
        unit="objects",
        better="less",
        about="objects in both plans with a different tree",
    ),
    Metric(
        name="moved_links",
        unit="rows",
        better="less",
        about="rows that the previous plan lacks or that this plan dropped",
    ),
)


def measure(problem: LiveVideo, plan: Trees, previous: Trees | None) -> dict[str, float | None]:
    """Return all metrics of a plan on the true problem."""
    found = compute_delivery(problem, plan)
    clients, bitrate = problem.clients, problem.bitrate_mbps
    intact = served_without_overload(problem, found)
    everyone = float(clients.sum())
    satisfied = float(clients[intact].sum())
    cost = float(problem.cost @ found.load_mbps)
    service = float(problem.value[found.served].sum())
    core = problem.level[problem.tail] == 0
    core_mbps = float(problem.capacity_mbps[core].sum())
    delay_ms, narrowest_mbps = _path_figures(problem, found)
    return {
        OBJECTIVE: service - problem.cost_weight * cost,
        "clients_at_bitrate": 100 * satisfied / everyone if everyone else None,
        "average_bitrate_kbps": (
            1000 * float(clients[intact] @ bitrate[problem.object[intact]]) / everyone if everyone else None
        ),
        "cost_per_satisfied": cost / satisfied if satisfied else None,
        "cost": cost,
        "requests_served": 100 * float(found.served.mean()) if len(found.served) else None,
        "traffic_mbps": float(found.load_mbps.sum()),
        "source_load": float(found.load_mbps[core].sum()) / core_mbps if core_mbps else None,
        "overloaded_links": float((found.load_mbps > problem.capacity_mbps * (1 + TOLERANCE)).sum()),
        "mean_latency_ms": _weighted_mean(delay_ms, clients[found.served]),
        "join_s": _weighted_median(
            _join_s(problem, plan, found, delay_ms, narrowest_mbps), clients[found.served]
        ),
        "moved_objects": None if previous is None else float(len(moved_objects(previous, plan))),
        "moved_links": None if previous is None else float(len(diff(previous, plan))),
    }


def _path_figures(problem: LiveVideo, found: Delivery) -> tuple[Floats, Floats]:
    """Return delay in ms and smallest capacity in Mbit/s of each served request's path from its source."""
    item, link, served = found.object, found.link, found.served
    count = len(problem.clusters)
    delay = problem.latency_ms[link].copy()  # of the path from the source over each row
    narrowest = problem.capacity_mbps[link].copy()
    level = problem.level[problem.tail[link]]
    arrives = item * count + problem.head[link]
    order = np.argsort(arrives)
    for step in range(1, problem.group_level):
        at = np.flatnonzero(level == step)
        above = order[np.searchsorted(arrives[order], item[at] * count + problem.tail[link[at]])]
        delay[at] += delay[above]
        narrowest[at] = np.minimum(narrowest[at], narrowest[above])
    group = problem.object[served] * count + problem.group[served]
    row = order[np.searchsorted(arrives[order], group)]
    return delay[row], narrowest[row]


def _join_s(
    problem: LiveVideo,
    plan: Trees,
    found: Delivery,
    delay_ms: Floats,
    narrowest_mbps: Floats,
) -> Floats:
    """Return the time from request to first chunk of each served request, s."""
    transfer_s = problem.chunk_s * problem.bitrate_mbps[problem.object[found.served]] / narrowest_mbps
    join_s = 2 * delay_ms / 1000 + transfer_s
    if plan.waits is not None:
        key = ["group", "channel", "bitrate_kbps"]
        waits = problem.requests.loc[found.served, key].merge(plan.waits, on=key, how="left")["waited_s"]
        join_s += waits.fillna(0.0).to_numpy(float)
    return np.asarray(join_s)


def _weighted_mean(values: Floats, weights: Floats) -> float | None:
    """Return the weighted mean; None without weight."""
    total = float(weights.sum())
    return float(weights @ values) / total if total else None


def _weighted_median(values: Floats, weights: Floats) -> float | None:
    """Return the smallest value at which half of the weight is reached; None without weight."""
    if not weights.sum():
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
