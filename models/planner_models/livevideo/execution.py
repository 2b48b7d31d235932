"""The data plane in time: clients come, links and clusters change, and agents act on what they know.

Each cluster's agent forwards requests by its routing information base (`rib`), and where that has
no answer by Algorithm 1 on what the clusters above have announced (`local.Table`, Table 4.2);
between two announcements what it knows of them is old. Requests only travel upwards, so there are
no loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from planner_models.livevideo.events import Change, Control, Exchange, Partition, Seen, Update
from planner_models.livevideo.local import Table, climb
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.rib import STALE, Ribs
from planner_models.livevideo.streams import Streams
from planner_models.livevideo.trees import Trees, rows_of


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
    edge: int | None = None  # the cluster that serves it
    watched_s: float = 0.0
    stalled_s: float = 0.0
    bits: float = 0.0


@dataclass
class Delivery:
    """An `Execution` of the engine's control loop (`planner.loop`).

    problem    network and requests; each comes at its `arrival_s` and stays
    control    who may decide: clusters, the controller, or both
    loss        probability that an update does not reach a cluster
    partitions  clusters that are cut off from the controller
    timeout_s   without news from the controller, after which a cluster acts alone
    changes     what happens to links and clusters
    adapt       clients that are denied ask for the next lower bitrate of their channel
    """

    problem: LiveVideo
    control: Control
    loss: float = 0.0
    partitions: tuple[Partition, ...] = ()
    timeout_s: float = float("inf")
    changes: tuple[Change, ...] = ()
    adapt: bool = True
    seed: int = 0
    now_s: float = 0.0
    touched: list[int] = field(default_factory=list)
    overloads: list[tuple[float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        one = self.problem
        self.streams = Streams(one)
        self.capacity = one.capacity_mbps.copy()
        self.random = np.random.default_rng(self.seed)
        self.table = Table(self.streams)
        self.ribs = Ribs(
            len(one.clusters),
            capacity=self._usable_mbps,
            alone=self.control != "centralized",
            timeout_s=self.timeout_s,
        )
        self.assigned: dict[int, dict[int, int]] = {}  # DNS: by group, the link into it for each object
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
            if self.control != "centralized":
                self._ask_again()
            return
        item, link = rows_of(self.problem, decision.plan)
        evidence = decision.capacity_mbps[link]
        head = self.problem.head[link]
        last = len(self.problem.tiers) - 1
        for cluster in np.flatnonzero(self.problem.level > 0).tolist():
            if self._cut_off(cluster) or self.random.random() < self.loss:
                continue
            mine = head == cluster
            rows = list(zip(item[mine].tolist(), link[mine].tolist(), evidence[mine].tolist(), strict=True))
            self.ribs.told(cluster, decision.seen_s, self.now_s, rows)
            if self.streams.level[cluster] == last:
                self.assigned[cluster] = {o: used for o, used, _ in rows}
        self._forward()
        self._ask_again()

    def observe(self) -> Seen:
        """The requests that have come, and the capacities of now, as far as the controller can see."""
        asked = tuple(
            (client.request, client.rungs[0] if client.object is None else client.object)
            for client in self.clients
            if client.asked_s <= self.now_s and not (client.edge is not None and self._cut_off(client.edge))
        )
        return Seen(time_s=self.now_s, network=self.problem, asked=asked, capacity_mbps=self.capacity.copy())

    def record(self) -> Mapping[str, pd.DataFrame]:
        """clients: one row each, with the bound on its join time; overloads: what links carried too much.

        overloads has time_s, over_mbps and lasted_s.
        """
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
                    "bound_s": self._bound_s(client),
                    "bitrate_kbps": 0.0 if client.object is None else float(rates[client.object]),
                    "watched_s": client.watched_s,
                    "stalled_s": client.stalled_s,
                    "mean_kbps": 1000 * client.bits / max(self.now_s - client.asked_s, 1e-9),
                }
                for client in self.clients
                if client.asked_s < self.now_s
            ]
        )
        overloads = pd.DataFrame(self.overloads, columns=["time_s", "over_mbps", "lasted_s"])
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
            self.overloads.append((self.now_s, over, lasted))
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
        client.edge = streams.tail[streams.parent[item, group]]
        if first:
            client.joined_s = self.now_s + self._join_s(item, group, max(client.hops, 1))
        return True

    def _join_s(self, item: int, group: int, hops: int) -> float:
        """Round trips up to where the object was, and the fetch of a chunk over the slowest link.

        A link that carries more than it can is slower by as much.
        """
        trips, slowest, at = 0.0, np.inf, group
        one, streams = self.problem, self.streams
        for step in range(len(one.tiers) - 1):
            link = streams.parent[item, at]
            if step < hops:
                trips += 2 * float(one.latency_ms[link]) / 1000
            capacity = float(self.capacity[link])
            slowest = min(
                slowest, capacity * min(1.0, capacity / max(capacity - streams.room_mbps[link], 1e-9))
            )
            at = streams.tail[link]
        return trips + one.chunk_s * float(one.bitrate_mbps[item]) / max(slowest, 1e-9)

    def _bound_s(self, client: _Client) -> float:
        """Hops to a source x the longest round trip, and the fetch of a chunk as asked for over the
        narrowest link of the network as it was planned."""
        one = self.problem
        trips = (len(one.tiers) - 1) * 2 * float(one.latency_ms.max()) / 1000
        return trips + one.chunk_s * float(one.bitrate_mbps[client.rungs[0]] / one.capacity_mbps.min())

    def _way(self, item: int, group: int) -> list[int] | None:
        """The links down to a group: by forwarding entries, and by Algorithm 1 where there are none."""
        streams = self.streams
        latency = self.problem.latency_ms
        assigned = self.assigned.get(group, {}).get(item)
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
        """The links down to a cluster from one that has the object; None where there is no way.

        The request is tagged with the version under which it was first sent on. A cluster that does
        not know that version, or whose link there is full, goes over to Algorithm 1.
        """
        streams = self.streams
        path: list[int] = []
        tag: float | None = None
        while not streams.has(item, cluster):
            entry = self.ribs.forwarding(cluster, item, self.now_s, tag)
            if entry is None or not streams.fits(item, entry.link) or not streams.allowed(item, entry.link):
                if self.control == "centralized":
                    return None
                rest = climb(streams, self.table, item, cluster, self.random)
                if rest is None or any(self._dead(one) for one in rest):
                    return None
                for one in rest:
                    self.ribs.decides(streams.head[one], item, one, self.now_s)
                return [*rest, *path[::-1]]
            if entry.central:
                tag = entry.version_s
            path.append(entry.link)
            cluster = streams.tail[entry.link]
        return path[::-1]

    def _usable_mbps(self, link: int) -> float:
        return 0.0 if self._dead(link) else float(self.capacity[link])

    def _dead(self, link: int) -> bool:
        return bool(
            self.capacity[link] <= 0
            or self.streams.tail[link] in self.down
            or self.streams.head[link] in self.down
        )

    def _cut_off(self, cluster: int) -> bool:
        return any(
            cluster in part.clusters and part.from_s <= self.now_s < part.to_s for part in self.partitions
        )

    def _forward(self) -> None:
        """Move streams to where forwarding entries now say; drop what nobody watches.

        The controller's trees go first: what clusters set up since it looked stays only where there
        is room beside them.
        """
        watched = [client for client in self.clients if client.object is not None]
        fresh = Streams(self.problem)
        fresh.room_mbps = self.capacity.copy()
        old, self.streams = self.streams, fresh
        chains = [self._chain(client, old) for client in watched]
        for central in (True, False):
            for client, (chain, mine) in zip(watched, chains, strict=True):
                item = client.object
                assert item is not None
                if chain is None or mine != central:
                    continue
                new: list[int] = []
                for link in reversed(chain):
                    if fresh.has(item, fresh.head[link]):
                        break
                    new.append(link)
                if central or all(fresh.fits(item, link) for link in new):
                    fresh.add_path(item, new[::-1])
        self.table.streams = fresh

    def _chain(self, client: _Client, old: Streams) -> tuple[list[int] | None, bool]:
        """The links down to a client by the entries of now, else as they were; are all of one version?"""
        item, at = client.object, client.group
        assert item is not None
        chain: list[int] = []
        tag: float | None = None
        central = True
        while not (old.level[at] == 0 and old.has(item, at)):
            entry = self.ribs.forwarding(at, item, self.now_s, tag)
            if entry is None and self.control == "centralized":
                return None, False
            used = entry.link if entry is not None else old.parent.get((item, at))
            if used is None or self._dead(used):
                return None, False
            central &= entry is not None and entry.central
            tag = entry.version_s if entry is not None and entry.central else None
            chain.append(used)
            at = old.tail[used]
        return chain[::-1], central

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
