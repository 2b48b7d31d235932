"""Playback chunk by chunk: requests travel up over connections and queues of servers, chunks travel down.

A client requests a chunk from its edge, and the next one the duration of a chunk after it came (Mukerjee
2018, 4.7.2). A cluster without the chunk requests it from its parent, once for all who wait for it. On its
way a request
- sets up a connection where none is idle: some round trips of the link;
- waits for the servers of each cluster, which answer requests one after another;
- waits on each link for the chunks before it; a chunk is sent on while it still comes in.

The thesis names connection set-up and bursts of requests as what broke its test bed under heavy load, without
numbers: the round trips of a set-up, the time that connections stay idle, and the requests that servers
answer in a second are parameters (`ChunkRule`).
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.simulation.execution import (
    Client,
    DataPlane,
    join_bounds_s,
    tabulate_clients,
)

CONNECTION_TRIPS: Final = 1
"""Round trips that set up a connection: the handshake of TCP."""

KEEP_ALIVE_S: Final = 5.0
"""Time that idle connections stay open: the default of Apache, which the test bed runs (4.6)."""


@dataclass(frozen=True, kw_only=True)
class ChunkRule:
    """Rule by which chunks are requested.

    connection_trips  round trips that set up a connection
    keep_alive_s      time for which an idle connection stays open
    requests_per_s    requests that the servers of a cluster answer in a second; None: at once
    """

    connection_trips: int = CONNECTION_TRIPS
    keep_alive_s: float = KEEP_ALIVE_S
    requests_per_s: float | None = None

    @property
    def service_s(self) -> float:
        """Time that the servers of a cluster take for a request, s."""
        return 0.0 if self.requests_per_s is None else 1 / self.requests_per_s


class Chunk(NamedTuple):
    """Chunk of an object, by its number since the start."""

    item: int
    number: int


class Waiter(NamedTuple):
    """Who waits at a cluster for a chunk: a cluster or, with its number, a client.

    link  over which it comes
    """

    link: int
    client: int | None = None


@dataclass
class Cached:
    """Chunk at a cluster that receives it, or has requested it.

    first_s, last_s  when its first and its last byte came; None while they are not known
    """

    number: int
    first_s: float | None = None
    last_s: float | None = None
    waiters: list[Waiter] = field(default_factory=list)


@dataclass
class Session:
    """Chunks of a client.

    asked_s    request of the chunk that it waits for; None: it waits for none
    came_s     when its last chunk came; None before the first
    rate_mbps  bitrate of that chunk
    chunks     number that came
    fetched_s  time from requests to last bytes, of all chunks that came
    assessed   chunks and fetched_s at the last assessment of its stream
    """

    asked_s: float | None = None
    came_s: float | None = None
    rate_mbps: float = 0.0
    first_byte_s: float | None = None
    chunks: int = 0
    fetched_s: float = 0.0
    assessed: tuple[int, float] = (0, 0.0)


ASK, ARRIVE, ANSWER, RECEIVE, FINISH = range(5)


@dataclass
class ChunkPlane(DataPlane):
    """Execution of livevideo in which clients fetch chunk by chunk.

    Control, streams and admission are those of `DataPlane`; what clients receive follows from chunks.
    """

    rule: ChunkRule = field(default_factory=ChunkRule)

    def __post_init__(self) -> None:
        super().__post_init__()
        links, clusters = len(self.problem.links), len(self.problem.clusters)
        self.latency_s = (self.problem.latency_ms / 1000).tolist()
        self.link_free_s = [0.0] * links
        self.server_free_s = [0.0] * clusters
        self.connections: dict[
            tuple[int, int], list[float]
        ] = {}  # idle since, by link and client, -1 for none
        self.cache: dict[tuple[int, int], Cached] = {}  # by object and cluster
        self.sessions = [Session() for _ in self.clients]
        self.idle: set[int] = set()  # clients who have arrived and fetch nothing
        self.steps: list[tuple[float, int, int, tuple[float, ...]]] = []  # time, order, kind, numbers
        self.order = itertools.count()

    def _push(self, time_s: float, kind: int, *payload: float) -> None:
        heapq.heappush(self.steps, (time_s, next(self.order), kind, payload))

    # --- playback -------------------------------------------------------------------------

    def _handle(self, kind: int, number: int) -> None:
        super()._handle(kind, number)
        if kind == 1:
            self.idle.add(number)

    def _pass_time(self, until_s: float) -> None:
        """Let clients fetch chunks until a time, and note overload by the bitrates of streams."""
        if until_s <= self.now_s:
            return
        over_mbps = float(np.clip(-self.streams.residual_mbps, 0.0, None).sum())
        if over_mbps > 1e-9:
            self.overloads.append((self.now_s, over_mbps, until_s - self.now_s))
        for number in sorted(self.idle):
            if self.clients[number].item is not None:
                self.idle.discard(number)
                self._ask(self.now_s, number)
        while self.steps and self.steps[0][0] < until_s:
            time_s, _, kind, payload = heapq.heappop(self.steps)
            self._step(time_s, kind, payload)
        self.take_frames(until_s)
        self.now_s = until_s

    def _step(self, time_s: float, kind: int, payload: tuple[float, ...]) -> None:
        """Let an event of a request or of a chunk happen."""
        numbers = [int(value) for value in payload]
        if kind == ASK:
            self._ask(time_s, numbers[0])
        elif kind == ARRIVE:
            item, chunk, cluster, link, client = numbers
            start_s = max(time_s, self.server_free_s[cluster])
            self.server_free_s[cluster] = start_s + self.rule.service_s
            self._push(self.server_free_s[cluster], ANSWER, item, chunk, cluster, link, client)
        elif kind == ANSWER:
            item, chunk, cluster, link, client = numbers
            self._answer(time_s, Chunk(item, chunk), cluster, Waiter(link, None if client < 0 else client))
        elif kind == RECEIVE:
            item, chunk, cluster = numbers[:3]
            self._receive_chunk(time_s, Chunk(item, chunk), cluster, payload[3])
        else:
            self._finish(time_s, numbers[0], numbers[1])

    def _ask(self, time_s: float, number: int) -> None:
        """Let a client request the newest chunk of its object, where it has a stream."""
        client, session = self.clients[number], self.sessions[number]
        if client.item is None or (client.item, client.group) not in self.streams.parent:
            self.idle.add(number)
            session.asked_s = None
            return
        if session.asked_s is None:
            session.asked_s = time_s
        chunk = Chunk(client.item, math.floor(time_s / self.problem.chunk_s))
        self._request_chunk(time_s, chunk, self.streams.parent[client.item, client.group], number)

    def _request_chunk(self, time_s: float, chunk: Chunk, link: int, client: int = -1) -> None:
        """Send a request of a client, or of a cluster (-1), up a link, over a connection that may be new."""
        latency_s = self.latency_s[link]
        if not self._take_connection(time_s, link, client):
            time_s += self.rule.connection_trips * 2 * latency_s
        self._push(time_s + latency_s, ARRIVE, *chunk, self.streams.tail[link], link, client)

    def _take_connection(self, time_s: float, link: int, client: int) -> bool:
        """Use an idle connection over a link; return whether there is one."""
        idle = self.connections.get((link, client), [])
        del idle[: bisect.bisect_left(idle, time_s - self.rule.keep_alive_s)]
        ready = bisect.bisect_right(idle, time_s)
        if not ready:
            return False
        del idle[ready - 1]
        return True

    def _answer(self, time_s: float, chunk: Chunk, cluster: int, waiter: Waiter) -> None:
        """Send a chunk to a waiter, at once or when it comes; request it above where it is missing."""
        if self.streams.level[cluster] == 0:
            self._send(time_s, chunk, waiter, time_s)
            return
        cached = self.cache.get((chunk.item, cluster))
        if cached is not None and cached.number >= chunk.number:
            if cached.last_s is None:
                cached.waiters.append(waiter)
            else:
                self._send(time_s, chunk, waiter, cached.last_s)
            return
        parent = self.streams.parent.get((chunk.item, cluster))
        if parent is None or self.is_down(parent):
            self._fail(waiter, chunk.item)
            return
        if (
            cached is not None and cached.last_s is None
        ):  # an older one still comes: its waiters take this one
            cached.number = chunk.number
            cached.waiters.append(waiter)
        else:
            self.cache[chunk.item, cluster] = Cached(number=chunk.number, waiters=[waiter])
            self._request_chunk(time_s, chunk, parent)

    def _send(self, time_s: float, chunk: Chunk, waiter: Waiter, last_s: float) -> None:
        """Send a chunk down a link after those before it; it leaves no earlier than it comes.

        last_s  when its last byte came to the cluster that sends it
        """
        link, client = waiter
        if self.is_down(link):
            self._fail(waiter, chunk.item)
            return
        start_s = max(time_s, self.link_free_s[link])
        bits = self.problem.chunk_s * self.streams.bitrate[chunk.item]
        self.link_free_s[link] = start_s + bits / float(self.capacity[link])
        end_s = max(self.link_free_s[link], last_s) + self.latency_s[link]
        bisect.insort(self.connections.setdefault((link, -1 if client is None else client), []), end_s)
        if client is None:
            first_s = start_s + self.latency_s[link]
            self._push(first_s, RECEIVE, *chunk, self.streams.head[link], end_s)
            return
        session = self.sessions[client]
        if session.first_byte_s is None:
            session.first_byte_s = start_s + self.latency_s[link]
        self._push(end_s, FINISH, client, chunk.item)

    def _receive_chunk(self, time_s: float, chunk: Chunk, cluster: int, last_s: float) -> None:
        """Note the first byte of a chunk at a cluster, and send it to all who wait for it."""
        cached = self.cache[chunk.item, cluster]
        cached.first_s, cached.last_s = time_s, last_s
        waiters, cached.waiters = cached.waiters, []
        for waiter in waiters:
            self._send(time_s, chunk, waiter, last_s)

    def _fail(self, waiter: Waiter, item: int) -> None:
        """Let all clients who wait for a chunk over a link request it again when they have a stream."""
        if waiter.client is not None:
            self.idle.add(waiter.client)
            return
        cached = self.cache.pop((item, self.streams.head[waiter.link]), None)
        for below in cached.waiters if cached is not None else ():
            self._fail(below, item)

    def _finish(self, time_s: float, number: int, item: int) -> None:
        """Let a client play a chunk that came, and request the next one when it is played."""
        client, session = self.clients[number], self.sessions[number]
        assert session.asked_s is not None
        chunk_s = self.problem.chunk_s
        session.fetched_s += time_s - session.asked_s
        session.chunks += 1
        client.bits += chunk_s * self.streams.bitrate[item]
        if session.came_s is None:
            client.joined_s = time_s
        else:
            client.watched_s += time_s - session.came_s
            client.stalled_s += time_s - session.came_s - chunk_s
        session.came_s, session.asked_s = time_s, None
        session.rate_mbps = self.streams.bitrate[item]
        self._push(time_s + chunk_s, ASK, number)

    def _serve(self, client: Client, item: int) -> bool:
        joined_s = client.joined_s
        is_served = super()._serve(client, item)
        client.joined_s = joined_s  # it joins when its first chunk comes
        return is_served

    def _assess_stream(self, number: int) -> float | None:
        """Return the share of its chunks' duration in which they would have come; None without chunks."""
        session = self.sessions[number]
        chunks, fetched_s = (
            session.chunks - session.assessed[0],
            session.fetched_s - session.assessed[1],
        )
        session.assessed = (session.chunks, session.fetched_s)
        return min(1.0, chunks * self.problem.chunk_s / fetched_s) if fetched_s > 0 else None

    # --- records --------------------------------------------------------------------------

    def record(self) -> dict[str, pd.DataFrame]:
        """Return the tables of `DataPlane`; clients have first_byte_s too, the time from request to it."""
        arrived = [number for number, client in enumerate(self.clients) if client.requested_s < self.now_s]
        clients = [self._complete(number) for number in arrived]
        table = tabulate_clients(self.problem, clients, self.now_s)
        bounds_s = self._bounds_s()
        table["bound_s"] = [bounds_s[client.items[0]] for client in clients]
        table["first_byte_s"] = [
            None if first_s is None or first_s >= self.now_s else first_s - client.requested_s
            for client, first_s in zip(clients, (self.sessions[n].first_byte_s for n in arrived), strict=True)
        ]
        return self._record_with(table)

    def _complete(self, number: int) -> Client:
        """Return a client with the time since its last chunk counted as watched, played or stalled."""
        client, session = self.clients[number], self.sessions[number]
        if session.came_s is None:
            return client
        since_s = self.now_s - session.came_s
        unplayed_s = max(0.0, self.problem.chunk_s - since_s)
        return replace(
            client,
            watched_s=client.watched_s + since_s,
            stalled_s=client.stalled_s + max(0.0, since_s - self.problem.chunk_s),
            bits=client.bits - unplayed_s * session.rate_mbps,
        )

    def _bounds_s(self) -> list[float]:
        """Return `join_bounds_s` with set-up of connections and one request at each server, (O,), s."""
        problem, rule = self.problem, self.rule
        trips_s = problem.group_level * 2 * float(problem.latency_ms.max(initial=0.0)) / 1000
        extra_s = rule.connection_trips * trips_s + problem.group_level * rule.service_s
        bounds: list[float] = (join_bounds_s(problem) + extra_s).tolist()
        return bounds


def without_load_s(problem: LiveVideo, links: list[int], item: int, rule: ChunkRule) -> float:
    """Return the time from a request to the last byte of its chunk where nothing else is sent, s.

    links  from the group up to the source, over all of which connections are new
    """
    trips_s = sum(2 * float(problem.latency_ms[link]) / 1000 for link in links)
    slowest_mbps = min(float(problem.capacity_mbps[link]) for link in links)
    transfer_s = problem.chunk_s * float(problem.bitrate_mbps[item]) / slowest_mbps
    return (1 + rule.connection_trips) * trips_s + len(links) * rule.service_s + transfer_s
