"""Playback of clients in time: their arrival, their bitrate, and the duration of their stalls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner_models.livevideo.plan.streams import Streams
from planner_models.livevideo.problem.problem import LiveVideo


@dataclass
class Client:
    """State of one request.

    items    objects of its channel, from the requested bitrate downwards
    item     object that it receives; None while it is denied
    hops     links that were set up for it
    edge     cluster that serves it
    bits     received so far, Mbit
    """

    request: int
    channel: str
    group: int
    items: list[int]
    requested_s: float
    item: int | None = None
    joined_s: float | None = None
    hops: int = 0
    edge: int | None = None
    watched_s: float = 0.0
    stalled_s: float = 0.0
    bits: float = 0.0


def play(
    clients: Iterable[Client],
    streams: Streams,
    capacity_mbps: Floats,
    now_s: float,
    until_s: float,
) -> None:
    """Let clients watch from now until a time; they stall where a link on their path is overloaded."""
    lasted_s = until_s - now_s
    share = passed_shares(streams, capacity_mbps)
    for client in clients:
        if client.item is None or client.joined_s is None or client.joined_s > until_s:
            continue
        rate = received_share(client.item, client.group, streams, share)
        client.watched_s += lasted_s
        client.stalled_s += lasted_s * (1 - rate)
        client.bits += lasted_s * rate * streams.bitrate[client.item]


def passed_shares(streams: Streams, capacity_mbps: Floats) -> Floats:
    """Return the share of its load that each link passes on, (L,); less than 1 where it is overloaded."""
    load = capacity_mbps - streams.residual_mbps
    is_overloaded = load > capacity_mbps * (1 + 1e-9)
    return np.divide(capacity_mbps, load, out=np.ones(len(load)), where=is_overloaded)


def received_share(item: int, cluster: int, streams: Streams, share: Floats) -> float:
    """Return the share of an object's bitrate that a cluster receives; share: `passed_shares`, (L,)."""
    rate = 1.0
    while streams.level[cluster] > 0:
        link = streams.parent.get((item, cluster))
        if link is None:
            return 0.0
        rate = min(rate, float(share[link]))
        cluster = streams.tail[link]
    return rate


def join_time_s(streams: Streams, capacity_mbps: Floats, item: int, group: int, hops: int) -> float:
    """Return the time to join: round trips over the new hops, and transfer of a chunk over the slowest link.

    A link with overload is slower in proportion.
    """
    problem = streams.problem
    trips_s, slowest_mbps, cluster = 0.0, np.inf, group
    for step in range(problem.group_level):
        link = streams.parent[item, cluster]
        if step < hops:
            trips_s += 2 * float(problem.latency_ms[link]) / 1000
        capacity = float(capacity_mbps[link])
        load = max(capacity - streams.residual_mbps[link], 1e-9)
        slowest_mbps = min(slowest_mbps, capacity * min(1.0, capacity / load))
        cluster = streams.tail[link]
    return trips_s + problem.chunk_s * float(problem.bitrate_mbps[item]) / max(slowest_mbps, 1e-9)


def join_bound_s(problem: LiveVideo, item: int) -> float:
    """Return the bound on the time to join.

    Hops to a source x the longest round trip, and transfer of a chunk over the narrowest planned link.
    """
    trips_s = problem.group_level * 2 * float(problem.latency_ms.max()) / 1000
    return trips_s + problem.chunk_s * float(problem.bitrate_mbps[item] / problem.capacity_mbps.min())


def tabulate_clients(problem: LiveVideo, clients: Iterable[Client], now_s: float) -> pd.DataFrame:
    """Return one row for each client that has arrived, with the bound on its time to join."""
    names = problem.clusters["cluster"]
    bitrate_kbps = problem.bitrate_mbps * 1000
    return pd.DataFrame(
        [
            {
                "channel": client.channel,
                "group": names.iloc[client.group],
                "asked_s": client.requested_s,
                "join_s": None if client.joined_s is None else client.joined_s - client.requested_s,
                "hops": client.hops,
                "bound_s": join_bound_s(problem, client.items[0]),
                "bitrate_kbps": 0.0 if client.item is None else float(bitrate_kbps[client.item]),
                "watched_s": client.watched_s,
                "stalled_s": client.stalled_s,
                "mean_kbps": 1000 * client.bits / max(now_s - client.requested_s, 1e-9),
            }
            for client in clients
            if client.requested_s < now_s
        ]
    )
