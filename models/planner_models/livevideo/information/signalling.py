"""Signalling: messages and bytes that the control planes of system `livevideo` exchange for one window.

Counted from the realized trees and the requests of the window. An object is named by its channel and
bitrate; static facts, such as links and their prices, are known to all. Clusters are those above the
client groups; DNS maps clients to edges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.livevideo.information.observe import window_end_s
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.plan import Streams, Trees, requests_by_arrival
from planner_models.livevideo.problem.problem import LiveVideo

OBJECT_BYTES: Final = NAME + FIGURE  # channel and bitrate
LINK_BYTES: Final = NAME + FIGURE  # other end of a link and its capacity
ANNOUNCEMENT_PERIOD_S: Final = 1.0  # between two announcements of a cluster (Mukerjee 2018, 4.4.2)


def count_central(problem: LiveVideo, plan: Trees) -> Signalling:
    """Count reports of clusters to one controller, and its decisions to clusters and DNS.

    Clusters report their links and requests; the controller sends next hops, and the edge of each client.

    source  Mukerjee 2018, sections 4.3.1 and 4.4.1, Table 4.1
    """
    return _count_reports(problem) + _count_decisions(problem, plan)


def count_per_channel(problem: LiveVideo, plan: Trees) -> Signalling:
    """Count as `count_central`, with one controller for each requested channel.

    source  Mukerjee 2018, section 4.7.1 (Overlay Multicast)
    """
    channel = problem.channel_number
    controllers = len(np.unique(channel[problem.object]))
    return _count_reports(problem, controllers) + _count_decisions(problem, plan, channel)


def count_distributed(problem: LiveVideo, plan: Trees) -> Signalling:
    """Count the announcements of each cluster to those one tier down, every second.

    An announcement has a row for each object that the cluster receives, from the first request on, and
    one row for all others: distance and path capacity (Table 4.2).

    source  Mukerjee 2018, section 4.4.2
    """
    rounds = int(window_end_s(problem) // ANNOUNCEMENT_PERIOD_S)
    inner = problem.level[problem.head] < problem.group_level  # groups hear no announcements
    below = np.bincount(problem.tail[inner], minlength=len(problem.clusters))
    _, cluster, since_s = _first_requests(problem, plan)
    rows = np.clip(rounds - np.floor(since_s / ANNOUNCEMENT_PERIOD_S), 0, None) * below[cluster]
    messages = int(inner.sum()) * rounds
    return Signalling(
        messages=messages,
        bytes=int(messages * 2 * FIGURE + rows.sum() * (OBJECT_BYTES + 2 * FIGURE)),
    )


def count_hybrid(problem: LiveVideo, plan: Trees) -> Signalling:
    """Count as `count_central` and `count_distributed` together."""
    return count_central(problem, plan) + count_distributed(problem, plan)


def count_dns(ttl_s: float) -> Callable[[LiveVideo, Trees], Signalling]:
    """Return a function that counts reports to monitors, once a window, and DNS queries.

    ttl_s   lifetime of an answer
    source  Mukerjee 2018, sections 4.2.1 and 4.7.1
    """
    return partial(_count_dns, ttl_s=ttl_s)


def _count_dns(problem: LiveVideo, plan: Trees, *, ttl_s: float) -> Signalling:
    """Count for `count_dns`. A query names a channel, an answer a cluster and its lifetime.

    Each cluster on a request's path queries without a valid answer; denied requests query once.
    """
    item, _, _ = _first_requests(problem, plan)
    reports = Signalling(
        messages=int(_is_cluster(problem).sum()),
        bytes=int(len(problem.links) * LINK_BYTES + len(item) * OBJECT_BYTES),
    )
    channel = problem.channel_number.tolist()
    planned, current = Streams(problem), Streams(problem)
    planned.add_plan(plan)
    answered_s: dict[tuple[int, int], float] = {}
    queries = 0
    for o, group, time in requests_by_arrival(problem):
        if current.has(o, group):
            continue
        path = planned.path(o, group, up_to=current) if planned.has(o, group) else []
        for cluster in [current.head[link] for link in path] or [group]:
            key = (channel[o], cluster)
            if time - answered_s.get(key, -np.inf) >= ttl_s:
                answered_s[key] = time
                queries += 1
        current.add_path(o, path)
    return reports + Signalling(messages=2 * queries, bytes=queries * (2 * NAME + FIGURE))


def _is_cluster(problem: LiveVideo) -> Bools:
    """Return whether each cluster is above the groups, (C,)."""
    return np.asarray(problem.level < problem.group_level)


def _count_reports(problem: LiveVideo, controllers: int = 1) -> Signalling:
    """Count reports of every link, with other end and capacity, to each controller, and of every request."""
    requests = len(problem.requests) * (NAME + OBJECT_BYTES + FIGURE)
    return Signalling(
        messages=int(_is_cluster(problem).sum()) * controllers,
        bytes=len(problem.links) * LINK_BYTES * controllers + requests,
    )


def _count_decisions(problem: LiveVideo, plan: Trees, controller: Ints | None = None) -> Signalling:
    """Count decisions: next hops with a version to each cluster that receives any object, edges to DNS.

    controller  (O,) controller of each object; default: one for all
    """
    delivery = compute_delivery(problem, plan)
    head = problem.head[delivery.link]
    inner = problem.level[head] < problem.group_level
    sender = np.zeros(len(head), dtype=np.int64) if controller is None else controller[delivery.object]
    to_clusters = len(np.unique(sender[inner] * len(problem.clusters) + head[inner]))
    to_dns = len(np.unique(sender[~inner]))
    hops, clients = int(inner.sum()), int((~inner).sum())
    return Signalling(
        messages=to_clusters + to_dns,
        bytes=to_clusters * FIGURE + hops * (OBJECT_BYTES + NAME) + clients * (OBJECT_BYTES + 2 * NAME),
    )


def _first_requests(problem: LiveVideo, plan: Trees) -> tuple[Ints, Ints, Floats]:
    """Return each object that a cluster receives: object, cluster, and time of its first request there."""
    planned = Streams(problem)
    planned.add_plan(plan)
    first_s: dict[tuple[int, int], float] = {}
    for o, group, time in requests_by_arrival(problem):
        cluster = group if planned.has(o, group) else None
        while cluster is not None and planned.level[cluster] > 0:
            if planned.level[cluster] < problem.group_level:
                if (o, cluster) in first_s:
                    break  # clusters above have the object too
                first_s[o, cluster] = time
            cluster = planned.tail[planned.parent[o, cluster]]
    item, cluster_of = (np.array([key[i] for key in first_s], dtype=np.int64) for i in range(2))
    return item, cluster_of, np.array(list(first_s.values()), dtype=float)
