"""Metrics of distribution trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.contract.metrics import Headline, Metric
from planner.formatting import counted, counted_of, number
from planner_models.livevideo.plan.check import Delivery, compute_delivery, is_overloaded, received_mbps
from planner_models.livevideo.plan.plan import Trees, diff, moved_objects
from planner_models.livevideo.problem.problem import LiveVideo

OBJECTIVE: Final = "service_minus_cost"

AT_BITRATE: Final = "Mukerjee 2018, section 4.7.1"

METRICS: Final = tuple(
    Metric(name=name, unit=unit, better=better, about=about, source=source)  # type: ignore[arg-type]
    for name, unit, better, source, about in (
        (OBJECTIVE, "points", "more", "Mukerjee 2018, Fig. 4.8",
         "weighted priority of clients served at a bitrate they accept minus weighted cost of all traffic"),
        ("requested_service", "points", "more", "", "weighted priority of all clients"),
        ("clients_at_bitrate", "%", "more", AT_BITRATE,
         "clients served at the requested bitrate: over links without overload"),
        ("clients_served", "%", "more", "",
         "clients served at the requested bitrate, or at a lower one of their channel"),
        ("lower_bitrate_clients", "clients", "less", "",
         "clients served only at a lower bitrate of their channel than the requested one"),
        ("unserved_clients", "clients", "less", "",
         "clients that no tree reaches at the requested bitrate or a lower one of their channel"),
        ("degraded_clients", "clients", "less", "", "clients served over a link with overload"),
        ("average_bitrate_kbps", "kbit/s", "more", AT_BITRATE,
         "mean bitrate of the clients, 0 for those not served at a bitrate that they accept"),
        ("delivered_kbps", "kbit/s", "more", AT_BITRATE,
         "mean bitrate of the clients, at the requested bitrate or the highest lower one that reaches them"),
        ("cost_per_satisfied", "cost x Mbit/s", "less", AT_BITRATE,
         "cost of all traffic over the number of clients served at a bitrate that they accept"),
        ("cost", "cost x Mbit/s", "less", "",
         "cost of all traffic on all links, and what it adds to bills of links together"),
        ("added_to_bills", "cost x Mbit/s", "less", "Mukerjee 2018, section 4.5",
         "what the window adds to the month's bills by percentile"),
        ("bills", "cost x Mbit/s", "less", "Mukerjee 2018, section 4.5",
         "bills of the month by percentile, with the window"),
        ("billed_mbps", "Mbit/s", "less", "", "traffic of all links that are on a bill"),
        ("requests_served", "%", "more", "", "requests served at a bitrate that the clients accept"),
        ("partial_requests", "requests", "less", "",
         "requests of which some clients are served and others not, as a unicast last hop allows"),
        ("traffic_mbps", "Mbit/s", "less", "", "total traffic of all links"),
        ("source_load", "", "less", "", "total load over total capacity of the links out of sources"),
        ("overloaded_links", "links", "less", "", "links with more load than capacity"),
        ("mean_latency_ms", "ms", "less", "",
         "mean delay of the links from source to group, over clients served at a bitrate that they accept"),
        ("join_s", "s", "less", "Mukerjee 2018, section 4.7.2",
         "median time from request to first chunk of the clients served at a bitrate they accept: waiting, "  # noqa: ISC004
         "round trips up to a source, and transfer over the narrowest link"),
        ("moved_objects", "objects", "less", "", "objects in both plans with a different tree"),
        ("moved_links", "rows", "less", "", "rows that the previous plan lacks or that this plan dropped"),
        ("clients", "clients", "more", "", "clients of all requests"),
    )
)  # fmt: skip


def describe_service(metrics: Mapping[str, float | None]) -> str:
    """Return the clients that are served as they requested, and the cost of the traffic, in words."""
    everyone = metrics.get("clients") or 0.0
    served = (metrics.get("clients_at_bitrate") or 0.0) * everyone / 100
    says = f"serves {counted_of(round(served), everyone, 'clients')} at the requested bitrate"
    if partial := metrics.get("partial_requests"):
        says += f", {counted(partial, 'requests')} in part"
    says += f", at a traffic cost of {number(metrics.get('cost'))} (link cost x Mbit/s)"
    added = metrics.get("added_to_bills")
    return says if added is None else f"{says}, of which {number(added)} are added to bills"


HEADLINE: Final = Headline(
    metric=OBJECTIVE,
    verb="reaches a service minus cost of",
    total="requested_service",
    words=describe_service,
    losses={
        "degraded_clients": "degrades the video of",
        "lower_bitrate_clients": "lowers the bitrate of",
        "unserved_clients": "cannot serve",
    },
    table=(
        OBJECTIVE, "clients_at_bitrate", "unserved_clients", "degraded_clients", "average_bitrate_kbps",
        "cost_per_satisfied", "join_s", "overloaded_links",
    ),
)  # fmt: skip
LIMITS: Final = {
    "capacity": "overloaded links",
    "cap": "exceeded caps on traffic",
    "forbidden": "forbidden links in use",
    "pinned": "pinned streams that are missing",
}


def losing_clients(problem: LiveVideo, delivery: Delivery) -> dict[str, Floats]:
    """Return the losing clients of each request, by the metric that counts these: each (Q,), disjoint."""
    unserved = problem.clients - delivery.clients
    lowered = np.where(delivery.intact == problem.object, 0.0, delivery.intact_clients)
    if not problem.is_unicast:  # clients without a stream that they accept may receive that of others
        receives = received_mbps(problem, delivery) > 0
        lowered += np.where(receives, unserved, 0.0)
        unserved = np.where(receives, 0.0, unserved)
    return {
        "unserved_clients": unserved,
        "degraded_clients": delivery.clients - delivery.intact_clients,
        "lower_bitrate_clients": lowered,
    }


def measure(problem: LiveVideo, plan: Trees, previous: Trees | None) -> dict[str, float | None]:
    """Return all metrics of a plan on the true problem. A request behind an overload counts as not served."""
    delivery = compute_delivery(problem, plan)
    intact = delivery.intact >= 0
    clients, item = delivery.intact_clients[intact], delivery.intact[intact]
    everyone = float(problem.clients.sum())
    satisfied = float(clients.sum())
    at_bitrate = float(delivery.intact_clients[delivery.intact == problem.object].sum())
    received_kbps = 1000 * received_mbps(problem, delivery)
    # a multicast stream reaches all clients of its group
    receiving = delivery.intact_clients if problem.is_unicast else problem.clients
    losing = losing_clients(problem, delivery)
    tariffs = problem.tariffs
    billed = tariffs.load(delivery.load_mbps)
    added = float(tariffs.added(billed).sum())
    cost = float(problem.cost @ delivery.load_mbps) + added
    core = problem.level[problem.tail] == 0
    core_mbps = float(problem.capacity_mbps[core].sum())
    paths = _find_paths(problem, delivery)
    return {
        OBJECTIVE: float(problem.service_weight * (problem.priority[item] @ clients))
        - problem.cost_weight * cost,
        "requested_service": float(problem.largest_value.sum()),
        "clients_at_bitrate": 100 * at_bitrate / everyone if everyone else None,
        "clients_served": 100 * float(receiving[received_kbps > 0].sum()) / everyone if everyone else None,
        "lower_bitrate_clients": float(losing["lower_bitrate_clients"].sum()),
        "unserved_clients": float(losing["unserved_clients"].sum()),
        "degraded_clients": float(losing["degraded_clients"].sum()),
        "clients": everyone,
        "average_bitrate_kbps": (
            1000 * float(clients @ problem.bitrate_mbps[item]) / everyone if everyone else None
        ),
        "delivered_kbps": float(receiving @ received_kbps) / everyone if everyone else None,
        "cost_per_satisfied": cost / satisfied if satisfied else None,
        "cost": cost,
        "added_to_bills": added if problem.has_bills else None,
        "bills": float(tariffs.total(billed).sum()) if problem.has_bills else None,
        "billed_mbps": float(billed.sum()) if problem.has_bills else None,
        "requests_served": (
            100 * float((delivery.intact_clients >= problem.clients).mean()) if len(intact) else None
        ),
        "partial_requests": float(
            ((delivery.intact_clients > 0) & (delivery.intact_clients < problem.clients)).sum()
        ),
        "traffic_mbps": float(delivery.load_mbps.sum()),
        "source_load": float(delivery.load_mbps[core].sum()) / core_mbps if core_mbps else None,
        "overloaded_links": float(is_overloaded(problem, delivery.load_mbps).sum()),
        "mean_latency_ms": _weighted_mean(paths.delay_ms, paths.clients),
        "join_s": _weighted_median(_join_s(problem, plan, paths), paths.clients),
        "moved_objects": None if previous is None else float(len(moved_objects(previous, plan))),
        "moved_links": None if previous is None else float(len(diff(previous, plan))),
    }


class _Paths(NamedTuple):
    """Paths from sources to clients over links without overload, (P,) arrays.

    request         that the path serves
    object          on the path
    clients         on the path: all of the request, or those of an edge where the last hop is unicast
    delay_ms        of its links together
    narrowest_mbps  smallest capacity of its links
    """

    request: Ints
    object: Ints
    clients: Floats
    delay_ms: Floats
    narrowest_mbps: Floats


def _find_paths(problem: LiveVideo, delivery: Delivery) -> _Paths:
    """Return the paths to all clients that are served over links without overload."""
    item, link = delivery.object, delivery.link
    count = len(problem.clusters)
    delay = problem.latency_ms[link].copy()  # of the path from the source over each row
    narrowest = problem.capacity_mbps[link].copy()
    level = problem.level[problem.tail[link]]
    arrives = item * count + problem.head[link]
    order = np.argsort(arrives)

    def find_rows(keys: Ints) -> Ints:
        return order[np.searchsorted(arrives[order], keys)]

    for step in range(1, problem.group_level):
        rows = np.flatnonzero(level == step)
        above = find_rows(item[rows] * count + problem.tail[link[rows]])
        delay[rows] += delay[above]
        narrowest[rows] = np.minimum(narrowest[rows], narrowest[above])
    if problem.is_unicast:
        row = np.flatnonzero(delivery.is_intact & problem.is_last_hop[link])
        request = problem.request_rows(item[row], problem.head[link[row]])
        clients = delivery.count[row]
    else:
        request = np.flatnonzero(delivery.intact >= 0)
        row = find_rows(delivery.intact[request] * count + problem.group[request])
        clients = problem.clients[request]
    return _Paths(request, item[row], clients, delay[row], narrowest[row])


def _join_s(problem: LiveVideo, plan: Trees, paths: _Paths) -> Floats:
    """Return the time from request to first chunk on each path, (P,), s."""
    transfer_s = problem.chunk_s * problem.bitrate_mbps[paths.object] / paths.narrowest_mbps
    join_s = 2 * paths.delay_ms / 1000 + transfer_s
    if plan.waits is not None:
        key = ["group", "channel", "bitrate_kbps"]
        waits = problem.requests.iloc[paths.request][key].merge(plan.waits, on=key, how="left")["waited_s"]
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
