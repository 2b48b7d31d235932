"""What distribution trees are worth: the metrics of system `livevideo`."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.system import Metric
from planner_models.livevideo.check import TOLERANCE, delivered, intact
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees, diff, moved_objects

OBJECTIVE: Final = "service_minus_cost"

METRICS: Final = (
    Metric(
        name=OBJECTIVE,
        unit="",
        better="more",
        about="weighted priority of what is served less weighted cost of what is carried",
        source="Mukerjee 2018, Fig. 4.8",
    ),
    Metric(
        name="clients_at_bitrate",
        unit="%",
        better="more",
        about="clients served at the bitrate they ask for, over links that are not overloaded",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Metric(
        name="average_bitrate_kbps",
        unit="kbit/s",
        better="more",
        about="bitrate that a client gets on average, 0 for those not served",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Metric(
        name="cost_per_satisfied",
        unit="cost x Mbit/s",
        better="less",
        about="cost of all traffic over the number of clients served as they ask",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Metric(name="cost", unit="cost x Mbit/s", better="less", about="cost of all traffic on all links"),
    Metric(name="requests_served", unit="%", better="more", about="requests of groups that trees reach"),
    Metric(name="traffic_mbps", unit="Mbit/s", better="less", about="traffic on all links together"),
    Metric(
        name="source_load",
        unit="",
        better="less",
        about="load over capacity of all links out of sources together",
    ),
    Metric(name="overloaded_links", unit="links", better="less", about="links that carry more than they can"),
    Metric(
        name="mean_latency_ms",
        unit="ms",
        better="less",
        about="mean delay of the links from source to group, by client served",
    ),
    Metric(
        name="moved_objects",
        unit="objects",
        better="less",
        about="objects carried before and now whose trees changed",
    ),
    Metric(
        name="moved_links",
        unit="rows",
        better="less",
        about="rows of the plan that are new or gone since the last",
    ),
)


def measure(problem: LiveVideo, plan: Trees, previous: Trees | None) -> dict[str, float | None]:
    """Every metric of the plan, from the true problem and the plan alone."""
    found = delivered(problem, plan)
    clients, bitrate = problem.clients, problem.bitrate_mbps
    good = intact(problem, found)
    everyone = float(clients.sum())
    satisfied = float(clients[good].sum())
    cost = float(problem.cost @ found.load_mbps)
    service = float(problem.value[found.served].sum())
    core = problem.level[problem.tail] == 0
    core_mbps = float(problem.capacity_mbps[core].sum())
    return {
        OBJECTIVE: service - problem.cost_weight * cost,
        "clients_at_bitrate": 100 * satisfied / everyone if everyone else None,
        "average_bitrate_kbps": (
            1000 * float(clients[good] @ bitrate[problem.object[good]]) / everyone if everyone else None
        ),
        "cost_per_satisfied": cost / satisfied if satisfied else None,
        "cost": cost,
        "requests_served": 100 * float(found.served.mean()) if len(found.served) else None,
        "traffic_mbps": float(found.load_mbps.sum()),
        "source_load": float(found.load_mbps[core].sum()) / core_mbps if core_mbps else None,
        "overloaded_links": float((found.load_mbps > problem.capacity_mbps * (1 + TOLERANCE)).sum()),
        "mean_latency_ms": _latency(problem, found.object, found.link, found.served),
        "moved_objects": None if previous is None else float(len(moved_objects(previous, plan))),
        "moved_links": None if previous is None else float(len(diff(previous, plan))),
    }


def _latency(
    problem: LiveVideo,
    item: np.ndarray,
    link: np.ndarray,
    served: np.ndarray,
) -> float | None:
    clients = problem.clients[served]
    if not clients.sum():
        return None
    count = len(problem.clusters)
    delay = problem.latency_ms[link].copy()  # from the source to where each row ends
    level = problem.level[problem.tail[link]]
    arrives = item * count + problem.head[link]
    order = np.argsort(arrives)
    for step in range(1, len(problem.tiers) - 1):
        at = np.flatnonzero(level == step)
        above = order[np.searchsorted(arrives[order], item[at] * count + problem.tail[link[at]])]
        delay[at] += delay[above]
    wanted = problem.object[served] * count + problem.group[served]
    row = order[np.searchsorted(arrives[order], wanted)]
    return float(clients @ delay[row]) / float(clients.sum())
