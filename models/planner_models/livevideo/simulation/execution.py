"""Data plane in time: clients arrive, links and clusters change, agents of clusters react.

Each cluster's agent forwards requests by its routing information base (`rib`), and without an entry there
by Algorithm 1 on the announcements of the clusters above (`distributed.Announcements`, Table 4.2), which
age between two announcements. Requests only travel upwards, so that there are no loops.

Playback of clients in time: their arrival, their bitrate, and the duration of their stalls.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import NetworkMap
from planner.contract.frames import FrameRecorder, no_frames
from planner_models.livevideo.designs.distributed import Announcements, find_path
from planner_models.livevideo.plan.plan import SLACK, Streams, Trees, plan_rows
from planner_models.livevideo.problem.drawing import draw_network
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.simulation.events import (
    Announcement,
    Change,
    Control,
    Observation,
    Partition,
    Update,
)
from planner_models.livevideo.simulation.rib import STALE_CHANGE, Ribs
from planner_models.livevideo.simulation.switching import Switch, SwitchRule, tabulate_switches

ASSESSES: Final = 3  # kind of the event that a client assesses its stream


@dataclass
class DataPlane:
    """Execution of livevideo on the engine's control loop (`planner.contract.control_loop`).

    problem     network and requests; each arrives at its `arrival_s` and stays
    control     who may decide: clusters, the controller, or both
    loss        probability that an update does not reach a cluster
    partitions  clusters that are cut off from the controller
    timeout_s   time without an update of the controller after which a cluster acts alone
    stale_change  relative change of a link's capacity beyond which decisions on it are stale
    changes     of the capacities of links and clusters
    adapt       whether denied clients request the next lower bitrate of their channel; where `lowest_kbps`
                is given they request those that they accept, whatever this says
    switching   how clients switch their bitrate in the middle of a session; None: they do not
    frames      of links by load and clients that lose
    """

    problem: LiveVideo
    control: Control
    loss: float = 0.0
    partitions: tuple[Partition, ...] = ()
    timeout_s: float = float("inf")
    stale_change: float = STALE_CHANGE
    changes: tuple[Change, ...] = ()
    adapt: bool = True
    switching: SwitchRule | None = None
    seed: int = 0
    frames: FrameRecorder = field(default_factory=no_frames)
    now_s: float = 0.0
    touched: list[int] = field(default_factory=list)  # clusters that each request set up
    overloads: list[tuple[float, float, float]] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)

    def __post_init__(self) -> None:
        problem = self.problem
        self.streams = Streams(problem)
        self.capacity = problem.capacity_mbps.copy()
        self.random = np.random.default_rng(self.seed)
        self.announcements = Announcements(self.streams)
        self.ribs = Ribs(
            len(problem.clusters),
            capacity=self._usable_mbps,
            can_act_alone=self.control != "centralized",
            timeout_s=self.timeout_s,
            stale_change=self.stale_change,
        )
        self.assigned: dict[int, dict[int, int]] = {}  # DNS: by group, the link into it for each object
        self.down: set[int] = set()  # clusters
        self.clients = self._list_clients()
        self.events = sorted(self._list_events())
        self.next_event = 0

    def _list_events(self) -> list[tuple[float, int, int]]:
        """Return time, kind and number of each event: changes and requests, which `_handle` handles."""
        changes = [(change.time_s, 0, number) for number, change in enumerate(self.changes)]
        requests = [(client.requested_s, 1, number) for number, client in enumerate(self.clients)]
        if self.switching is None:
            return changes + requests
        period_s = self.switching.period_s
        return changes + requests + [(time + period_s, ASSESSES, number) for time, _, number in requests]

    def _list_clients(self) -> list[Client]:
        problem = self.problem
        ladder: dict[str, list[int]] = {}
        for o in np.argsort(-problem.bitrate_mbps, kind="stable").tolist():
            ladder.setdefault(str(problem.objects["channel"].iloc[o]), []).append(o)
        accepted: list[list[int]] = [[] for _ in range(len(problem.requests))]
        for q, item in zip(problem.steps.request.tolist(), problem.steps.object.tolist(), strict=True):
            accepted[q].append(item)
        clients = []
        for q, time in enumerate(problem.arrival_s.tolist()):
            channel = str(problem.requests["channel"].iloc[q])
            first = ladder[channel].index(int(problem.object[q]))
            items = ladder[channel][first:] if self.adapt else ladder[channel][first : first + 1]
            if problem.has_ladders:
                items = accepted[q]
            group = int(problem.group[q])
            clients.append(Client(request=q, channel=channel, group=group, items=items, requested_s=time))
        return sorted(clients, key=lambda client: client.requested_s)

    # --- contract of the control loop -----------------------------------------------------

    def advance(self, until_s: float) -> None:
        """Let requests arrive and capacities change until a time."""
        while self.next_event < len(self.events) and self.events[self.next_event][0] < until_s:
            time, kind, number = self.events[self.next_event]
            self.next_event += 1
            self._pass_time(time)
            self._handle(kind, number)
        self._pass_time(until_s)

    def _handle(self, kind: int, number: int) -> None:
        """Let the event of a kind happen."""
        if kind == 1:
            self._request(self.clients[number])
        elif kind == ASSESSES:
            self._assess(number)
        else:
            self._change(self.changes[number])

    def apply(self, decision: Update | Announcement) -> None:
        """Apply an update of the controller where it arrives, or let clusters announce distances."""
        if isinstance(decision, Announcement):
            self.announcements = Announcements(self.streams)
            if self.control != "centralized":
                self._request_again()
            return
        item, link = plan_rows(self.problem, decision.plan)
        evidence = decision.capacity_mbps[link]
        head = self.problem.head[link]
        for cluster in np.flatnonzero(self.problem.level > 0).tolist():
            if self._is_cut_off(cluster) or self.random.random() < self.loss:
                continue
            into = head == cluster
            rows = list(zip(item[into].tolist(), link[into].tolist(), evidence[into].tolist(), strict=True))
            self.ribs.receive_update(cluster, decision.observed_s, self.now_s, rows)
            if self.streams.level[cluster] == self.problem.group_level:
                self._assign(cluster, {o: used for o, used, _ in rows}, decision)
        self._apply_switches()
        self._reroute()
        self._request_again()

    def _assign(self, group: int, links: dict[int, int], decision: Update) -> None:  # noqa: ARG002
        """Store the link into a group that the controller assigns for each object."""
        self.assigned[group] = links

    def observe(self) -> Observation:
        """Return the requests that have arrived and current capacities, as the controller observes them."""
        requests = tuple(
            (client.request, item)
            for client in self.clients
            if client.requested_s <= self.now_s
            and not (client.edge is not None and self._is_cut_off(client.edge))
            for item in self._list_wishes(client)
        )
        return Observation(
            time_s=self.now_s, network=self.problem, requests=requests, capacity_mbps=self.capacity.copy()
        )

    def _list_wishes(self, client: Client) -> list[int]:
        """Return the objects that a client requests: one, or two where it watches one and asks for a higher.

        Where clients accept lower bitrates, the controller chooses among those up to this one.
        """
        asked = client.asked
        if client.item is None or (self.problem.has_ladders and not client.asks_for_lower):
            return [client.items[0]]  # with ladders: may be served at a higher bitrate again
        if asked is None:
            return [client.item]
        return [asked] if client.asks_for_lower else [asked, client.item]

    def record(self) -> dict[str, pd.DataFrame]:
        """Return tables clients (`tabulate_clients`), overloads: time_s, over_mbps, lasted_s, and switches.

        There is no table switches where clients do not switch.
        """
        return self._record_with(tabulate_clients(self.problem, self.clients, self.now_s))

    def _record_with(self, clients: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Return the tables that are recorded, with the table of clients."""
        overloads = pd.DataFrame(self.overloads, columns=["time_s", "over_mbps", "lasted_s"])
        tables = {"clients": clients, "overloads": overloads}
        return tables if self.switching is None else {**tables, "switches": tabulate_switches(self.switches)}

    def plan(self) -> Trees:
        """Return the current trees."""
        return self.streams.plan()

    # --- time and changes -----------------------------------------------------------------

    def _pass_time(self, until_s: float) -> None:
        """Let clients watch until a time, and note overload."""
        if until_s <= self.now_s:
            return
        over_mbps = float(np.clip(-self.streams.residual_mbps, 0.0, None).sum())
        if over_mbps > 1e-9:
            self.overloads.append((self.now_s, over_mbps, until_s - self.now_s))
        play(self.clients, self.streams, self.capacity, self.now_s, until_s)
        self.take_frames(until_s)
        self.now_s = until_s

    def take_frames(self, until_s: float = float("inf")) -> None:
        """Draw the state at the times before `until_s`, up to which nothing changes."""
        for time_s in self.frames.due(until_s):
            self.frames.take(time_s, *self._draw(time_s))

    def _receive(self, client: Client, time_s: float, share: Floats) -> tuple[float, float]:
        """Return the share of its stream that reaches a client, and the bitrate that it watches, kbit/s."""
        if client.item is None:
            return 0.0, 0.0
        rate = received_share(client.item, client.group, self.streams, share)
        is_joined = client.joined_s is not None and client.joined_s <= time_s
        return rate, 1000 * rate * self.streams.bitrate[client.item] if is_joined else 0.0

    def _draw(self, time_s: float) -> tuple[NetworkMap, float | None]:
        """Return the picture at a time, and the mean bitrate that present clients receive, kbit/s."""
        problem, share = self.problem, passed_shares(self.streams, self.capacity)
        is_up = np.array([not self.is_down(link) for link in range(len(self.capacity))], dtype=bool)
        clusters_up = ~np.isin(np.arange(len(problem.clusters)), list(self.down))
        lost, mean_kbps = self._count_lost(time_s, share)
        capacity = np.where(is_up, self.capacity, problem.capacity_mbps)
        now = problem
        if (capacity != problem.capacity_mbps).any():
            now = replace(problem, links=problem.links.assign(capacity_mbps=capacity))
        load = np.zeros(len(capacity))
        for item, link, count in self.streams.carried():  # a cluster forwards only what it receives
            if is_up[link] and received_share(item, self.streams.tail[link], self.streams, share) > 0:
                load[link] += count * self.streams.bitrate[item]
        # a link that is full but for rounding is not overloaded
        load = np.where(load <= capacity * (1 + SLACK), np.minimum(load, capacity), load)
        picture = draw_network(
            now,
            "Video from sources to clients",
            load_mbps=load,
            losses={"lost": lost},
            is_up=(is_up, clusters_up),
        )
        return picture, mean_kbps

    def _count_lost(self, time_s: float, share: Floats) -> tuple[Floats, float | None]:
        """Return the clients of each request that lose, (Q,), and the mean bitrate of all, kbit/s."""
        lost, received = np.zeros(len(self.problem.requests)), []
        for client in self.clients:
            if client.requested_s <= time_s:
                rate, received_kbps = self._receive(client, time_s, share)
                lost[client.request] = 0.0 if rate >= 1 - SLACK else self.problem.clients[client.request]
                received.append(received_kbps)
        return lost, float(np.mean(received)) if received else None

    def _change(self, change: Change) -> None:
        """Change the capacity of a link or a cluster; clusters react."""
        if change.link is not None:
            self._resize(change.link, change.share)
        if change.cluster is not None:
            if change.share > 0:
                self.down.discard(change.cluster)
            else:
                self.down.add(change.cluster)
            ends = zip(self.streams.tail, self.streams.head, strict=True)
            for link, (tail, head) in enumerate(ends):
                if change.cluster in (tail, head):
                    self._resize(link, change.share)
        self.announcements.distances.clear()
        if self.control != "centralized":
            self._drop_unusable()

    def _resize(self, link: int, share: float) -> None:
        before = self.capacity[link]
        self.capacity[link] = share * self.problem.capacity_mbps[link]
        self.streams.residual_mbps[link] += self.capacity[link] - before

    def _usable_mbps(self, link: int) -> float:
        return 0.0 if self.is_down(link) else float(self.capacity[link])

    def is_down(self, link: int) -> bool:
        ends = (self.streams.tail[link], self.streams.head[link])
        return bool(self.capacity[link] <= 0 or ends[0] in self.down or ends[1] in self.down)

    def _is_cut_off(self, cluster: int) -> bool:
        return any(
            cluster in partition.clusters and partition.from_s <= self.now_s < partition.to_s
            for partition in self.partitions
        )

    # --- requests -------------------------------------------------------------------------

    def _request(self, client: Client) -> None:
        """Serve a client at the highest bitrate for which there is a path."""
        for item in client.items:
            if self._serve(client, item):
                return

    def _request_again(self) -> None:
        """Let clients that were denied, or lost their stream, request again."""
        for client in self.clients:
            if client.requested_s > self.now_s:
                break
            if client.item is not None and (client.item, client.group) not in self.streams.parent:
                client.item = None
            if client.item is None:
                self._request(client)

    def _serve(self, client: Client, item: int) -> bool:
        """Set up an object's stream to a client; return whether there was a path."""
        streams, group = self.streams, client.group
        if not streams.has(item, group):
            path = self._find_path_to_group(item, group)
            if path is None:
                return False
            new = [link for link in path if not streams.has(item, streams.head[link])]
            tails = {streams.tail[link] for link in new}
            self.touched.append(sum(streams.level[tail] > 0 for tail in tails))
            streams.add_path(item, path)
            client.hops = len(new)
        client.item, client.asked = item, None
        client.edge = streams.tail[streams.parent[item, group]]
        if client.joined_s is None:
            hops = max(client.hops, 1)
            links = streams.path(item, group)[::-1]
            client.joined_s = self.now_s + join_time_s(streams, self.capacity, item, links, hops)
        return True

    def _find_path_to_group(self, item: int, group: int) -> list[int] | None:
        """Return the links down to a group, by the edge that DNS assigned or another; None without a path."""
        streams = self.streams
        latency = self.problem.latency_ms
        assigned = self.assigned.get(group, {}).get(item)
        links = sorted(
            streams.into[group],
            key=lambda link: (link != assigned, not streams.has(item, streams.tail[link]), latency[link]),
        )
        for link in links:
            if self.is_down(link) or not streams.can_carry(item, link):
                continue
            if self.control == "centralized" and link != assigned:
                continue
            above = self._find_path_up(item, streams.tail[link])
            if above is not None and streams.keeps_caps(item, [*above, link]):
                return [*above, link]
        return None

    def _find_path_up(self, item: int, cluster: int) -> list[int] | None:
        """Return the links down to a cluster from one that has the object; None without a path.

        The request is tagged with the version under which it was first forwarded. A cluster without that
        version, or whose link there is full, changes to Algorithm 1.
        """
        streams = self.streams
        path: list[int] = []
        tag: float | None = None
        while not streams.has(item, cluster):
            entry = self.ribs.forwarding_entry(cluster, item, self.now_s, tag)
            if entry is None or not streams.can_carry(item, entry.link):
                if self.control == "centralized":
                    return None
                local = find_path(streams, self.announcements, item, cluster, self.random)
                if local is None or any(self.is_down(link) for link in local):
                    return None
                for link in local:
                    self.ribs.decide_locally(streams.head[link], item, link, self.now_s)
                return [*local, *path[::-1]]
            if entry.is_central:
                tag = entry.version_s
            path.append(entry.link)
            cluster = streams.tail[entry.link]
        return path[::-1]

    # --- switches of bitrates -------------------------------------------------------------

    def _assess(self, number: int) -> None:
        """Let a client assess the stream of its last period, and request another bitrate where it says so."""
        assert self.switching is not None
        client = self.clients[number]
        self._schedule_assessment(number)
        share = self._assess_stream(number)
        client.asked = None
        if client.item is None or share is None:
            return  # a denied client requests anyway
        client.received_share = share
        current = client.items.index(client.item)
        rates = [self.streams.bitrate[item] for item in client.items]
        index = self.switching.choose(rates, current, client.received_share)
        if index == current:
            return
        client.asked = client.items[index]
        if self.control == "centralized":
            return  # asks the controller, by its next decision
        for item in client.items[index:] if index > current else [client.asked]:
            if self._switch(client, item):  # where a lower bitrate is denied, asks for the next lower one
                return

    def _assess_stream(self, number: int) -> float | None:
        """Return the share of its stream that came since a client's last assessment; None: it saw nothing."""
        client = self.clients[number]
        watched_s, stalled_s = client.watched_s - client.assessed[0], client.stalled_s - client.assessed[1]
        client.assessed = (client.watched_s, client.stalled_s)
        return 1 - stalled_s / watched_s if watched_s > 0 else None

    def _schedule_assessment(self, number: int) -> None:
        """Let a client assess its stream a period from now."""
        assert self.switching is not None
        event = (self.now_s + self.switching.period_s, ASSESSES, number)
        bisect.insort(self.events, event, lo=self.next_event)

    def _switch(self, client: Client, item: int) -> bool:
        """Move a client to another object, or let it keep its own where there is no path; return whether.

        Links that its own stream gives free are used for the new one. Where there is no path for a lower
        bitrate, it takes the place of the client's own stream, whose links it loads less.
        """
        old, group, streams = client.item, client.group, self.streams
        assert old is not None
        path = streams.path(old, group)
        others = (other for other in self.clients if other is not client and other.group == group)
        links = [] if any(other.item == old for other in others) else self._release(old, group)
        self._announce_links(links)
        is_served = self._serve(client, item)
        if not is_served and self._can_replace(item, old, path, links):
            self._replace(item, path)
            is_served = self._serve(client, item)
        if is_served:
            self._announce_links(streams.path(item, group))
            self._note_switch(client, old, item)
            return True
        for link in links:
            streams.add(old, link)
        self._announce_links(links)
        return False

    def _can_replace(self, item: int, old: int, path: Sequence[int], links: Sequence[int]) -> bool:
        """Return whether an object of a lower bitrate can take the path of another one.

        links  of the path that the other object has left
        """
        streams = self.streams
        new = [link for link in path if not streams.has(item, streams.head[link])]
        return streams.bitrate[item] < streams.bitrate[old] and all(
            streams.can_carry(item, link) or (link in links and streams.is_allowed(item, link))
            for link in new
        )

    def _replace(self, item: int, path: Sequence[int]) -> None:
        """Send an object down a path, by decisions of the clusters on it."""
        streams = self.streams
        for link in path:
            if not streams.has(item, streams.head[link]):
                if streams.level[streams.head[link]] < self.problem.group_level:
                    self.ribs.decide_locally(streams.head[link], item, link, self.now_s)
                streams.add(item, link)

    def _announce_links(self, links: Sequence[int]) -> None:
        """Let clusters know the residual capacity of links on which they just started or ended a stream."""
        for link in links:
            self.announcements.residual_mbps[link] = self.streams.residual_mbps[link]
        self.announcements.distances.clear()

    def _note_switch(self, client: Client, old: int, item: int) -> None:
        """Record the switch of a client between two objects."""
        bitrate_kbps = 1000 * self.problem.bitrate_mbps
        client.asked, client.assessed = None, (client.watched_s, client.stalled_s)
        self.switches.append(
            Switch(
                time_s=self.now_s,
                group=str(self.problem.clusters["cluster"].iloc[client.group]),
                channel=client.channel,
                from_kbps=float(bitrate_kbps[old]),
                to_kbps=float(bitrate_kbps[item]),
                received_share=client.received_share,
                viewers=client.viewers,
            )
        )

    def _apply_switches(self) -> None:
        """Let clients watch the objects that they asked for and that the controller assigned."""
        for client in self.clients:
            old, item = client.item, client.asked
            if old is not None and item is not None and item in self.assigned.get(client.group, {}):
                client.item = item
                self._note_switch(client, old, item)

    def _release(self, item: int, cluster: int) -> list[int]:
        """Remove an object's stream to a cluster that feeds nobody, and so on upwards; return its links."""
        streams, links = self.streams, []
        while streams.level[cluster] > 0 and (item, cluster) in streams.parent:
            if any(streams.carries(item, link) for link in streams.out_of[cluster]):
                break
            link = streams.parent[item, cluster]
            streams.remove(item, link)
            links.append(link)
            cluster = streams.tail[link]
        return links

    # --- changes of existing streams ------------------------------------------------------

    def _reroute(self) -> None:
        """Move streams to the current forwarding entries; drop those without clients.

        The controller's trees go first: what clusters set up since it observed stays only where it fits
        beside them.
        """
        watching = [client for client in self.clients if client.item is not None]
        new_streams = Streams(self.problem)
        new_streams.residual_mbps = self.capacity.copy()
        old, self.streams = self.streams, new_streams
        paths = [self._trace_path(client, old) for client in watching]
        for central in (True, False):
            for client, (path, is_central) in zip(watching, paths, strict=True):
                if path is not None and is_central == central:
                    _extend(new_streams, client, path, must_fit=not central)
        self.announcements.streams = new_streams

    def _trace_path(self, client: Client, old: Streams) -> tuple[list[int] | None, bool]:
        """Return the links down to a client by current entries or as before, and whether all are central."""
        assert client.item is not None
        return self.trace_up(client.item, client.group, old)

    def trace_up(self, item: int, cluster: int, old: Streams) -> tuple[list[int] | None, bool]:
        """Return the links down to a cluster by current entries or as before, and whether all are central."""
        path: list[int] = []
        tag: float | None = None
        is_central = True
        while not (old.level[cluster] == 0 and old.has(item, cluster)):
            entry = self.ribs.forwarding_entry(cluster, item, self.now_s, tag)
            if entry is None and self.control == "centralized":
                return None, False
            link = entry.link if entry is not None else old.parent.get((item, cluster))
            if link is None or self.is_down(link):
                return None, False
            is_central &= entry is not None and entry.is_central
            tag = entry.version_s if entry is not None and entry.is_central else None
            path.append(link)
            cluster = old.tail[link]
        return path[::-1], is_central

    def _drop_unusable(self) -> None:
        """Treat streams over links that changed too much as new requests (4.4.2), as far as needed."""
        if self._drop_streams():
            self.announcements = Announcements(self.streams)
            self._prune()
            self._request_again()

    def _drop_streams(self) -> bool:
        """Stop streams over links that failed, or changed too much and are overloaded; return whether any."""
        streams = self.streams
        has_dropped = False
        for (item, _), link in sorted(streams.parent.items()):
            is_overloaded = streams.residual_mbps[link] < -1e-9 and self._has_changed(link)
            if self.is_down(link) or is_overloaded:
                streams.remove(item, link)
                has_dropped = True
        return has_dropped

    def _has_changed(self, link: int) -> bool:
        change = abs(self.capacity[link] / self.problem.capacity_mbps[link] - 1)
        return bool(change > self.stale_change)

    def _prune(self) -> None:
        """Remove streams from a tail without their object, and streams that feed no group."""
        self._prune_starved()
        self._prune_unused()

    def _prune_starved(self) -> None:
        """Remove streams from a tail without their object."""
        streams = self.streams
        for level in range(1, self.problem.group_level + 1):
            for (item, head), link in list(streams.parent.items()):
                if streams.level[head] == level and not streams.has(item, streams.tail[link]):
                    streams.remove(item, link)

    def _prune_unused(self) -> None:
        """Remove streams that feed no group."""
        streams = self.streams
        for level in range(self.problem.group_level - 1, 0, -1):
            feeding = {(item, streams.tail[link]) for item, link, _ in streams.carried()}
            for (item, head), link in list(streams.parent.items()):
                if streams.level[head] == level and (item, head) not in feeding:
                    streams.remove(item, link)


@dataclass
class Client:
    """State of one request, or of viewers of a request who are served alike over a unicast last hop.

    items    objects of its channel, from the requested bitrate downwards
    item     object that it receives; None while it is denied
    hops     links that were set up for it
    edge     cluster that serves it
    bits     received so far by each, Mbit
    viewers  number of viewers where the last hop is unicast; a request counts once where it is multicast
    link     into the group, where the last hop is unicast; None while denied
    leaves_s  time at which the viewers leave
    asked    object that it asks for in the middle of its session; None: no other than its item
    assessed time watched and time stalled up to its last assessment of its stream, s
    received_share  share of its stream that came between its last two assessments
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
    viewers: float = 1.0
    link: int | None = None
    leaves_s: float = float("inf")
    asked: int | None = None
    assessed: tuple[float, float] = (0.0, 0.0)
    received_share: float = 1.0

    @property
    def asks_for_lower(self) -> bool:
        """Whether it asks for a lower bitrate than that of its stream."""
        if self.item is None or self.asked is None:
            return False
        return self.items.index(self.asked) > self.items.index(self.item)


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


def join_time_s(streams: Streams, capacity_mbps: Floats, item: int, links: Sequence[int], hops: int) -> float:
    """Return the time to join: round trips over the new hops, and transfer of a chunk over the slowest link.

    A link with overload is slower in proportion.

    links  from the group up to the source
    """
    problem = streams.problem
    trips_s, slowest_mbps = 0.0, np.inf
    for step, link in enumerate(links):
        if step < hops:
            trips_s += 2 * float(problem.latency_ms[link]) / 1000
        capacity = float(capacity_mbps[link])
        load = max(capacity - streams.residual_mbps[link], 1e-9)
        slowest_mbps = min(slowest_mbps, capacity * min(1.0, capacity / load))
    return trips_s + problem.chunk_s * float(problem.bitrate_mbps[item]) / max(slowest_mbps, 1e-9)


def join_bounds_s(problem: LiveVideo) -> Floats:
    """Return the bound on the time to join of each object, (O,), s; infinite where no link has capacity.

    Hops to a source x the longest round trip, and transfer of a chunk over the narrowest planned link.
    """
    trips_s = problem.group_level * 2 * float(problem.latency_ms.max(initial=0.0)) / 1000
    capacity = problem.capacity_mbps[problem.capacity_mbps > 0]
    if not len(capacity):
        return np.full(len(problem.objects), np.inf)
    return trips_s + problem.chunk_s * problem.bitrate_mbps / float(capacity.min())


def tabulate_clients(problem: LiveVideo, clients: Iterable[Client], now_s: float) -> pd.DataFrame:
    """Return one row for each client that has arrived, with the bound on its time to join."""
    names = problem.clusters["cluster"]
    bitrate_kbps = problem.bitrate_mbps * 1000
    bounds_s = join_bounds_s(problem).tolist()
    return pd.DataFrame(
        [
            {
                "channel": client.channel,
                "group": names.iloc[client.group],
                "asked_s": client.requested_s,
                "join_s": None if client.joined_s is None else client.joined_s - client.requested_s,
                "hops": client.hops,
                "bound_s": bounds_s[client.items[0]],
                "bitrate_kbps": 0.0 if client.item is None else float(bitrate_kbps[client.item]),
                "watched_s": client.watched_s,
                "stalled_s": client.stalled_s,
                "mean_kbps": 1000 * client.bits / max(min(now_s, client.leaves_s) - client.requested_s, 1e-9),
            }
            for client in clients
            if client.requested_s < now_s
        ]
    )


def _extend(streams: Streams, client: Client, path: Sequence[int], *, must_fit: bool) -> None:
    """Add the links of a client's path on which its object does not flow yet."""
    item = client.item
    assert item is not None
    new = list(itertools.takewhile(lambda link: not streams.has(item, streams.head[link]), reversed(path)))
    if not must_fit or streams.fits_along(item, new):
        streams.add_path(item, new[::-1])
