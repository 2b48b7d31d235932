"""The data plane in time: clients come, links and clusters change, and agents act on what they know.

Each cluster's agent keeps, per object, the decision of the controller and its own (the routing
information base, RIB, of Table 4.1), each with the time of the state it was made on and the
capacity of the link it uses as evidence; which of them counts is its forwarding entry (FIB).
Clusters announce distances and path capacities downwards (Table 4.2); between two announcements
what others know of them is old. Requests only travel upwards, so there are no loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import pandas as pd

from planner_models.livevideo.local import Table, climb
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.streams import Streams
from planner_models.livevideo.trees import Trees, rows_of

Control = Literal["distributed", "centralized", "hybrid"]

STALE: Final = 0.2
"""Change of a link's capacity beyond which what was decided on it is stale (4.4.2)."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What an agent holds for an object: where to ask for it, and why.

    link         link to the next hop
    seen_s       time of the state it was decided on: its version
    central      decided by the controller, not by the cluster
    evidence_mbps  capacity of the link in that state
    """

    link: int
    seen_s: float
    central: bool
    evidence_mbps: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Update:
    """A decision of the controller: trees for the state of `seen_s`."""

    plan: Trees
    seen_s: float


@dataclass(frozen=True)
class Exchange:
    """Every cluster announces its distances to those one tier down."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What a controller is told: the time, and the requests and links of then."""

    time_s: float
    problem: LiveVideo


@dataclass(frozen=True, kw_only=True)
class Change:
    """From `time_s` on a link has another share of its capacity, or a cluster is down.

    share  of the capacity that is left; 1 restores it
    """

    time_s: float
    link: int | None = None
    cluster: int | None = None
    share: float = 0.0


@dataclass
class _Client:
    """One request of the problem, as it fares."""

    request: int
    channel: str
    group: int
    rungs: list[int]  # objects of its channel, from the bitrate asked for downwards
    object: int | None = None
    asked_s: float = 0.0
    joined_s: float | None = None
    hops: int = 0
    watched_s: float = 0.0
    stalled_s: float = 0.0
    bits: float = 0.0


@dataclass
class Delivery:
    """An `Execution` of the engine's control loop (`planner.loop`).

    problem    network and requests; each comes at its `arrival_s` and stays
    control    who may decide: clusters, the controller, or both
    loss       probability that an update does not reach a cluster
    cut_off    clusters that no update reaches
    changes    what happens to links and clusters
    adapt      clients that are denied ask for the next lower bitrate of their channel
    """

    problem: LiveVideo
    control: Control
    loss: float = 0.0
    cut_off: frozenset[int] = frozenset()
    changes: tuple[Change, ...] = ()
    adapt: bool = True
    seed: int = 0
    now_s: float = 0.0
    touched: list[int] = field(default_factory=list)
    overloads: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        one = self.problem
        self.streams = Streams(one)
        self.capacity = one.capacity_mbps.copy()
        self.random = np.random.default_rng(self.seed)
        self.table = Table(self.streams)
        self.told_s = 0.0
        self.rib: dict[tuple[int, int], dict[bool, Entry]] = {}
        self.assigned: dict[tuple[int, int], int] = {}  # DNS: the link into a group, by (object, group)
        self.clients: list[_Client] = []
        self.down: set[int] = set()
        rungs: dict[str, list[int]] = {}
        for o in np.argsort(-one.bitrate_mbps, kind="stable").tolist():
            rungs.setdefault(str(one.objects["channel"].iloc[o]), []).append(o)
        events: list[tuple[float, int, int]] = []
        for q, time in enumerate(one.arrival_s.tolist()):
            channel = str(one.requests["channel"].iloc[q])
            mine = rungs[channel]
            first = mine.index(int(one.object[q]))
            last = len(mine) if self.adapt else first + 1
            self.clients.append(
                _Client(
                    request=q, channel=channel, group=int(one.group[q]), rungs=mine[first:last], asked_s=time
                )
            )
            events.append((time, 1, q))
        events += [(change.time_s, 0, n) for n, change in enumerate(self.changes)]
        self.events = sorted(events)
        self.next = 0

    # --- the engine's contract ------------------------------------------------------------

    def advance(self, until_s: float) -> None:
        """Let requests come and things change until then."""
        while self.next < len(self.events) and self.events[self.next][0] < until_s:
            time, kind, which = self.events[self.next]
            self.next += 1
            self._watch(time)
            if kind == 1:
                self._come(self.clients[which])
            else:
                self._change(self.changes[which])
        self._watch(until_s)

    def apply(self, decision: Update | Exchange) -> None:
        """Take in an update of the controller, as far as it gets through, or exchange distances."""
        if isinstance(decision, Exchange):
            self.table = Table(self.streams)
            self.told_s = self.now_s
            if self.control != "centralized":
                self._ask_again()
            return
        item, link = rows_of(self.problem, decision.plan)
        reached: dict[int, bool] = {}
        for o, used in zip(item.tolist(), link.tolist(), strict=True):
            head = self.streams.head[used]
            if head not in reached:
                reached[head] = head not in self.cut_off and self.random.random() >= self.loss
            if not reached[head]:
                continue
            entry = Entry(
                link=used, seen_s=decision.seen_s, central=True, evidence_mbps=float(self.capacity[used])
            )
            self.rib.setdefault((o, head), {})[True] = entry
            if self.streams.level[head] == len(self.problem.tiers) - 1:
                self.assigned[o, head] = used
        self._forward()
        self._ask_again()

    def observe(self) -> Seen:
        """The requests that have come, and the capacities of now."""
        here = [client for client in self.clients if client.asked_s <= self.now_s]
        rows = self.problem.requests.iloc[[client.request for client in here]].copy()
        objects = self.problem.objects
        wanted = [client.object if client.object is not None else client.rungs[0] for client in here]
        rows["bitrate_kbps"] = objects["bitrate_kbps"].to_numpy(float)[wanted] if wanted else []
        merged = rows.groupby(["group", "channel", "bitrate_kbps"], sort=False, as_index=False)[
            ["clients"]
        ].sum()
        alive = self.capacity > 0
        links = self.problem.links[alive].assign(capacity_mbps=self.capacity[alive])
        view = replace(self.problem, links=links, requests=merged, lost="unserved")
        return Seen(time_s=self.now_s, problem=view)

    def record(self) -> Mapping[str, pd.DataFrame]:
        """clients: one row each; overloads: (time_s, over_mbps) by which links were overloaded."""
        names = self.problem.clusters["cluster"]
        rates = self.problem.bitrate_mbps * 1000
        clients = pd.DataFrame(
            [
                {
                    "channel": client.channel,
                    "group": names.iloc[client.group],
                    "asked_s": client.asked_s,
                    "join_s": None if client.joined_s is None else client.joined_s - client.asked_s,
                    "hops": client.hops,
                    "bitrate_kbps": 0.0 if client.object is None else float(rates[client.object]),
                    "watched_s": client.watched_s,
                    "stalled_s": client.stalled_s,
                    "mean_kbps": 1000 * client.bits / max(self.now_s - client.asked_s, 1e-9),
                }
                for client in self.clients
                if client.asked_s < self.now_s
            ]
        )
        overloads = pd.DataFrame(self.overloads, columns=["time_s", "over_mbps"])
        return {"clients": clients, "overloads": overloads}

    def plan(self) -> Trees:
        """The trees of now."""
        return self.streams.plan()

    # --- what happens -----------------------------------------------------------------------

    def _watch(self, until_s: float) -> None:
        """Time passes: clients watch, or stall where a link on their way carries more than it can."""
        lasted = until_s - self.now_s
        if lasted <= 0:
            return
        streams = self.streams
        load = self.capacity - streams.room_mbps
        share = np.divide(
            self.capacity, load, out=np.ones(len(load)), where=load > self.capacity * (1 + 1e-9)
        )
        over = float(np.clip(-streams.room_mbps, 0.0, None).sum())
        if over > 1e-9:
            self.overloads.append((self.now_s, over))
        for client in self.clients:
            if client.object is None or client.joined_s is None or client.joined_s > until_s:
                continue
            part = 1.0
            at = client.group
            while streams.level[at] > 0:
                used = streams.parent.get((client.object, at))
                if used is None:
                    part = 0.0
                    break
                part = min(part, float(share[used]))
                at = streams.tail[used]
            client.watched_s += lasted
            client.stalled_s += lasted * (1 - part)
            client.bits += lasted * part * float(self.problem.bitrate_mbps[client.object])
        self.now_s = until_s

    def _come(self, client: _Client) -> None:
        for item in client.rungs:
            if self._serve(client, item):
                return

    def _ask_again(self) -> None:
        """Clients that were denied, or lost their stream, ask again."""
        for client in self.clients:
            if client.asked_s > self.now_s:
                break
            if client.object is not None and (client.object, client.group) not in self.streams.parent:
                client.object = None
            if client.object is None:
                self._come(client)

    def _serve(self, client: _Client, item: int) -> bool:
        """Find a way for a client's object; whether there was one."""
        streams, group = self.streams, client.group
        if not streams.has(item, group):
            path = self._way(item, group)
            if path is None:
                return False
            new = [link for link in path if not streams.has(item, streams.head[link])]
            self.touched.append(
                len({streams.tail[link] for link in new if streams.level[streams.tail[link]] > 0})
            )
            streams.add_path(item, path)
            client.hops = len(new)
        first = client.joined_s is None
        client.object = item
        if first:
            client.joined_s = self.now_s + self._join_s(item, group, max(client.hops, 1))
        return True

    def _join_s(self, item: int, group: int, hops: int) -> float:
        """Round trips up to where the object was, and the fetch of a chunk over the narrowest link."""
        trips, narrowest, at = 0.0, np.inf, group
        one = self.problem
        for step in range(len(one.tiers) - 1):
            link = self.streams.parent[item, at]
            if step < hops:
                trips += 2 * float(one.latency_ms[link]) / 1000
            narrowest = min(narrowest, float(self.capacity[link]))
            at = self.streams.tail[link]
        return trips + one.chunk_s * float(one.bitrate_mbps[item]) / max(narrowest, 1e-9)

    def _way(self, item: int, group: int) -> list[int] | None:
        """The links down to a group: by forwarding entries, and by Algorithm 1 where there are none."""
        streams = self.streams
        latency = self.problem.latency_ms
        assigned = self.assigned.get((item, group))
        links = sorted(
            streams.into[group],
            key=lambda link: (link != assigned, not streams.has(item, streams.tail[link]), latency[link]),
        )
        for link in links:
            if self._dead(link) or not streams.fits(item, link) or not streams.allowed(item, link):
                continue
            if self.control == "centralized" and link != assigned:
                continue
            above = self._up(item, streams.tail[link])
            if above is not None:
                return [*above, link]
        return None

    def _up(self, item: int, cluster: int) -> list[int] | None:
        streams = self.streams
        path: list[int] = []
        while not streams.has(item, cluster):
            entry = self._fib(item, cluster)
            if entry is not None and streams.fits(item, entry.link):
                link = entry.link
            elif self.control == "centralized":
                return None
            else:
                rest = climb(streams, self.table, item, cluster, self.random)
                if rest is None or any(self._dead(one) for one in rest):
                    return None
                for one in rest:
                    self.rib.setdefault((item, streams.head[one]), {})[False] = Entry(
                        link=one, seen_s=self.now_s, central=False, evidence_mbps=float(self.capacity[one])
                    )
                return [*rest, *path[::-1]]
            path.append(link)
            cluster = streams.tail[link]
        return path[::-1]

    def _fib(self, item: int, cluster: int) -> Entry | None:
        """The entry that counts: the controller's unless it is stale, or older than the cluster's own."""
        entries = self.rib.get((item, cluster), {})
        central, own = entries.get(True), entries.get(False)
        if central is not None and not self._stale(central) and (own is None or own.seen_s <= central.seen_s):
            return central
        if self.control == "centralized":
            return central if central is not None and not self._dead(central.link) else None
        return own if own is not None and not self._stale(own) else None

    def _stale(self, entry: Entry) -> bool:
        now = float(self.capacity[entry.link])
        return self._dead(entry.link) or abs(now - entry.evidence_mbps) > STALE * entry.evidence_mbps

    def _dead(self, link: int) -> bool:
        return bool(
            self.capacity[link] <= 0
            or self.streams.tail[link] in self.down
            or self.streams.head[link] in self.down
        )

    def _forward(self) -> None:
        """Move streams to where forwarding entries now say; drop what nobody watches."""
        streams = self.streams
        watched = [client for client in self.clients if client.object is not None]
        fresh = Streams(self.problem)
        fresh.room_mbps = self.capacity.copy()
        old, self.streams = self.streams, fresh
        for client in watched:
            assert client.object is not None
            chain: list[int] = []
            at = client.group
            while not fresh.has(client.object, at):
                entry = self._fib(client.object, at)
                used = entry.link if entry is not None else old.parent.get((client.object, at))
                if used is None or self._dead(used):
                    break
                chain.append(used)
                at = streams.tail[used]
            if fresh.has(client.object, at):
                fresh.add_path(client.object, chain[::-1])
        self.table.streams = fresh

    def _change(self, change: Change) -> None:
        if change.link is not None:
            self._resize(change.link, change.share)
        if change.cluster is not None:
            if change.share > 0:
                self.down.discard(change.cluster)
            else:
                self.down.add(change.cluster)
            ends = [self.streams.tail, self.streams.head]
            for link in range(len(self.capacity)):
                if change.cluster in (ends[0][link], ends[1][link]):
                    self._resize(link, change.share)
        self.table.known.clear()
        if self.control != "centralized":
            self._react()

    def _resize(self, link: int, share: float) -> None:
        before = self.capacity[link]
        self.capacity[link] = share * self.problem.capacity_mbps[link]
        self.streams.room_mbps[link] += self.capacity[link] - before

    def _react(self) -> None:
        """Streams over links that changed too much are treated as new requests (4.4.2), as far as needed."""
        streams = self.streams
        dropped = False
        for (item, head), link in sorted(streams.parent.items()):
            overloaded = streams.room_mbps[link] < -1e-9 and self._changed(link)
            if self._dead(link) or overloaded:
                del streams.parent[item, head]
                streams.room_mbps[link] += streams.bitrate[item]
                dropped = True
        if dropped:
            self.table = Table(self.streams)
            self._prune()
            self._ask_again()

    def _changed(self, link: int) -> bool:
        return bool(abs(self.capacity[link] / self.problem.capacity_mbps[link] - 1) > STALE)

    def _prune(self) -> None:
        """Take away what hangs in the air, and what leads to nobody."""
        streams, last = self.streams, len(self.problem.tiers) - 1
        for level in range(1, last + 1):
            for (item, head), link in list(streams.parent.items()):
                if streams.level[head] == level and not streams.has(item, streams.tail[link]):
                    del streams.parent[item, head]
                    streams.room_mbps[link] += streams.bitrate[item]
        for level in range(last - 1, 0, -1):
            feeding = {(item, streams.tail[link]) for (item, _), link in streams.parent.items()}
            for (item, head), link in list(streams.parent.items()):
                if streams.level[head] == level and (item, head) not in feeding:
                    del streams.parent[item, head]
                    streams.room_mbps[link] += streams.bitrate[item]
