"""What distribution trees are worth: the metrics of system `livevideo`."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.system import Metric
from planner_models.livevideo.check import TOLERANCE, Delivered, delivered, intact
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
        name="join_s",
        unit="s",
        better="less",
        about="median time from request to first chunk of the clients served: the wait for a decision, round "
        "trips up to a source, and the fetch over the narrowest link",
        source="Mukerjee 2018, section 4.7.2",
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
    delay_ms, narrowest_mbps = _ways(problem, found)
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
        "mean_latency_ms": _mean(delay_ms, clients[found.served]),
        "join_s": _median(_join_s(problem, plan, found, delay_ms, narrowest_mbps), clients[found.served]),
        "moved_objects": None if previous is None else float(len(moved_objects(previous, plan))),
        "moved_links": None if previous is None else float(len(diff(previous, plan))),
    }


def _ways(problem: LiveVideo, found: Delivered) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each request served: the delay of the links from a source, ms, and the narrowest of them."""
    item, link, served = found.object, found.link, found.served
    count = len(problem.clusters)
    delay = problem.latency_ms[link].copy()  # from the source to where each row ends
    narrowest = problem.capacity_mbps[link].copy()
    level = problem.level[problem.tail[link]]
    arrives = item * count + problem.head[link]
    order = np.argsort(arrives)
    for step in range(1, len(problem.tiers) - 1):
        at = np.flatnonzero(level == step)
        above = order[np.searchsorted(arrives[order], item[at] * count + problem.tail[link[at]])]
        delay[at] += delay[above]
        narrowest[at] = np.minimum(narrowest[at], narrowest[above])
    wanted = problem.object[served] * count + problem.group[served]
    row = order[np.searchsorted(arrives[order], wanted)]
    return delay[row], narrowest[row]


def _join_s(
    problem: LiveVideo,
    plan: Trees,
    found: Delivered,
    delay_ms: NDArray[np.float64],
    narrowest_mbps: NDArray[np.float64],
) -> NDArray[np.float64]:
    """For each request served: seconds from the request to the first chunk."""
    fetch_s = problem.chunk_s * problem.bitrate_mbps[problem.object[found.served]] / narrowest_mbps
    join_s = 2 * delay_ms / 1000 + fetch_s
    if plan.waits is not None:
        key = ["group", "channel", "bitrate_kbps"]
        waits = problem.requests.loc[found.served, key].merge(plan.waits, on=key, how="left")["waited_s"]
        join_s += waits.fillna(0.0).to_numpy(float)
    return np.asarray(join_s)


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float | None:
    total = float(weights.sum())
    return float(weights @ values) / total if total else None


def _median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float | None:
    """The least value that half of the weight does not exceed."""
    if not weights.sum():
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
