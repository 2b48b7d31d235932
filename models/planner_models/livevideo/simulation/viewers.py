"""Data plane in time with a unicast last hop: viewers come, take a stream each from edges, and go.

Agents of clusters set up the trees down to the edges as `execution` does. DNS sends each viewer to an edge
whose link into the group has capacity for one more stream: first to those that the controller assigned, as
many viewers as it assigned them; under centralized control to no other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner_models.livevideo.plan.plan import SLACK, Streams, list_streams
from planner_models.livevideo.simulation.events import Observation, Update
from planner_models.livevideo.simulation.execution import (
    Client,
    DataPlane,
    join_time_s,
    passed_shares,
    received_share,
    tabulate_clients,
)

LEAVES: Final = 2  # kind of the event that viewers leave

Key = tuple[int, int]  # object and link of a unicast last hop


@dataclass
class ViewerPlane(DataPlane):
    """Execution of livevideo where the last hop is unicast.

    until_s  end of the simulation
    watch_s  mean time that a viewer watches, exponential; others come at the rate that keeps the mean number
             of each request's viewers, from its arrival on. None: viewers come at the arrival and stay

    A `Client` is a number of viewers of a request who are served alike; it is split where only some of them
    are. Viewers who find no stream ask again as `DataPlane` lets clients do.
    """

    until_s: float = 0.0
    watch_s: float | None = None
    watching: dict[int, Client] = field(default_factory=dict)  # by identity, in order of service
    denied: list[Client] = field(default_factory=list)
    assigned_viewers: dict[Key, float] = field(default_factory=dict)
    watched_until_s: dict[int, float] = field(default_factory=dict)  # by identity of watching clients

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_streams(Streams(self.problem))
        self.announcements.streams = self.streams

    def _set_streams(self, streams: Streams) -> None:
        """Use streams in which nobody waits: viewers who wait are in `denied`."""
        streams.waiting = defaultdict(float)
        self.streams = streams

    # --- who comes and goes ---------------------------------------------------------------

    def _list_clients(self) -> list[Client]:
        requests = super()._list_clients()
        count = self.problem.clients
        if self.watch_s is None:
            return [replace(client, viewers=float(count[client.request])) for client in requests]
        random = np.random.default_rng([self.seed, 1])
        viewers = []
        for client in requests:
            present, lasts_s = int(count[client.request]), self.until_s - client.requested_s
            if lasts_s <= 0:
                continue
            later = np.sort(random.uniform(0.0, lasts_s, random.poisson(present * lasts_s / self.watch_s)))
            came_s = client.requested_s + np.append(np.zeros(present), later)
            leaves_s = came_s + random.exponential(self.watch_s, len(came_s))
            times = zip(came_s.tolist(), leaves_s.tolist(), strict=True)
            viewers += [replace(client, requested_s=came, leaves_s=leaves) for came, leaves in times]
        return sorted(viewers, key=lambda client: client.requested_s)

    def _list_events(self) -> list[tuple[float, int, int]]:
        leaving = [
            (client.leaves_s, LEAVES, number)
            for number, client in enumerate(self.clients)
            if client.leaves_s < self.until_s
        ]
        return super()._list_events() + leaving

    def _handle(self, kind: int, number: int) -> None:
        if kind != LEAVES:
            super()._handle(kind, number)
            return
        client = self.clients[number]  # a single viewer, so that it was never split
        if client.item is not None:
            self._stop(client, is_denied=False)

    # --- contract of the control loop -----------------------------------------------------

    def _assign(self, group: int, links: dict[int, int], decision: Update) -> None:  # noqa: ARG002
        streams = list_streams(self.problem, decision.plan)
        rows = zip(streams.object.tolist(), streams.link.tolist(), streams.number.tolist(), strict=True)
        for key in [key for key in self.assigned_viewers if self.streams.head[key[1]] == group]:
            del self.assigned_viewers[key]
        self.assigned_viewers |= {
            (item, link): number for item, link, number in rows if self.streams.head[link] == group
        }

    def observe(self) -> Observation:
        """Return the viewers who are present and current capacities, as the controller observes them."""
        present: dict[tuple[int, int], float] = {}
        for client in self._list_present():
            if client.edge is None or not self._is_cut_off(client.edge):
                for item in self._list_wishes(client):
                    key = (client.request, item)
                    present[key] = present.get(key, 0.0) + client.viewers
        return Observation(
            time_s=self.now_s,
            network=self.problem,
            requests=tuple(present),
            capacity_mbps=self.capacity.copy(),
            clients=tuple(present.values()),
        )

    def _list_present(self) -> list[Client]:
        return [
            *self.watching.values(),
            *(client for client in self.denied if client.leaves_s > self.now_s),
        ]

    def record(self) -> dict[str, pd.DataFrame]:
        """Return tables clients, with the viewers of each row and when they left, and overloads."""
        for client in self.watching.values():
            self._watch(client, self.now_s, 1.0)
        arrived = [client for client in self.clients if client.requested_s < self.now_s]
        table = tabulate_clients(self.problem, arrived, self.now_s)
        table["viewers"] = [client.viewers for client in arrived]
        table["left_s"] = [client.leaves_s if client.leaves_s < self.now_s else None for client in arrived]
        return self._record_with(table)

    # --- playback -------------------------------------------------------------------------

    def _pass_time(self, until_s: float) -> None:
        if until_s <= self.now_s:
            return
        over_mbps = float(np.clip(-self.streams.residual_mbps, 0.0, None).sum())
        if over_mbps > 1e-9:  # else all who watch receive the whole stream, which is added up later
            self.overloads.append((self.now_s, over_mbps, until_s - self.now_s))
            share = passed_shares(self.streams, self.capacity)
            for client in self.watching.values():
                self._watch(client, self.now_s, 1.0)
                self._watch(client, until_s, self._share(client, share))
        self.take_frames(until_s)
        self.now_s = until_s

    def _watch(self, client: Client, until_s: float, rate: float) -> None:
        """Let viewers watch until a time, at a share of their bitrate."""
        assert client.item is not None
        assert client.joined_s is not None
        lasted_s = until_s - max(self.watched_until_s[id(client)], client.joined_s)
        if lasted_s > 0:
            client.watched_s += lasted_s
            client.stalled_s += lasted_s * (1 - rate)
            client.bits += lasted_s * rate * self.streams.bitrate[client.item]
        self.watched_until_s[id(client)] = until_s

    def _share(self, client: Client, share: Floats) -> float:
        """Return the share of its stream that reaches a client who watches."""
        assert client.item is not None
        assert client.link is not None
        above = received_share(client.item, self.streams.tail[client.link], self.streams, share)
        return min(float(share[client.link]), above)

    def _count_lost(self, time_s: float, share: Floats) -> tuple[Floats, float | None]:
        lost, viewers, received = np.zeros(len(self.problem.requests)), 0.0, 0.0
        for client in self._list_present():
            rate = 0.0 if client.item is None else self._share(client, share)
            viewers += client.viewers
            if rate < 1 - SLACK:
                lost[client.request] += client.viewers
            if client.item is not None and client.joined_s is not None and client.joined_s <= time_s:
                received += 1000 * rate * self.streams.bitrate[client.item] * client.viewers
        return lost, received / viewers if viewers else None

    # --- requests -------------------------------------------------------------------------

    def _request(self, client: Client) -> None:
        """Serve viewers at the highest bitrate for which there are paths; those left over are denied."""
        for item in client.items:
            for link in self._order_links(item, client.group):
                remainder = self._serve_over(client, item, link)
                if remainder is None:
                    return
                client = remainder
        self.denied.append(client)

    def _order_links(self, item: int, group: int) -> list[int]:
        """Return the links into a group: those with viewers assigned first, then by tree and latency."""
        streams, latency = self.streams, self.problem.latency_ms
        return sorted(
            streams.into[group],
            key=lambda link: (
                self._count_assigned(item, link) <= 0,
                not streams.has(item, streams.tail[link]),
                latency[link],
            ),
        )

    def _count_assigned(self, item: int, link: int) -> float:
        """Return the viewers whom the controller assigned to a link and who do not watch over it."""
        return self.assigned_viewers.get((item, link), 0.0) - self.streams.viewers.get((item, link), 0.0)

    def _count_fitting(self, streams: Streams, client: Client, item: int, link: int) -> float:
        """Return the viewers of a client for whom a link has capacity."""
        streams.waiting[item, client.group] = client.viewers
        fitting = streams.count_fitting(item, link)
        streams.waiting[item, client.group] = 0.0
        return fitting

    def _serve_over(
        self, client: Client, item: int, link: int, *, must_fit_all: bool = False
    ) -> Client | None:
        """Serve the viewers who fit on a link into their group; return the others, None for none.

        must_fit_all  whether nobody is served where some do not fit
        """
        streams = self.streams
        if self.is_down(link) or not streams.is_allowed(item, link):
            return client
        fitting = self._count_fitting(streams, client, item, link)
        if self.control == "centralized":
            fitting = min(fitting, max(0.0, self._count_assigned(item, link)))
        above = self._find_path_up(item, streams.tail[link]) if fitting > 0 else None
        if above is None or not streams.keeps_caps(item, above):
            return client
        new = [used for used in above if not streams.has(item, streams.head[used])]
        streams.add_path(item, new)
        fitting = min(fitting, self._count_fitting(streams, client, item, link))  # a cap may count both hops
        if fitting <= 0 or (must_fit_all and fitting < client.viewers):
            self._release(item, streams.tail[link])
            return client
        remainder = self._split(client, fitting)
        self.touched.append(sum(streams.level[streams.tail[used]] > 0 for used in [*new, link]))
        client.hops = len(new) + 1
        self._start(client, item, link)
        if client.joined_s is None:
            links = [link, *streams.path(item, streams.tail[link])[::-1]]
            client.joined_s = self.now_s + join_time_s(streams, self.capacity, item, links, client.hops)
        return remainder

    def _split(self, client: Client, viewers: float) -> Client | None:
        """Leave a number of viewers in a client; return the others as a new one, None for none."""
        if client.viewers <= viewers:
            return None
        remainder = replace(client, viewers=client.viewers - viewers)
        client.viewers = viewers
        self.clients.append(remainder)
        if self.switching is not None:
            self._schedule_assessment(len(self.clients) - 1)
        if id(client) in self.watching:
            self.watching[id(remainder)] = remainder
            self.watched_until_s[id(remainder)] = self.watched_until_s[id(client)]
        return remainder

    def _start(self, client: Client, item: int, link: int) -> None:
        """Send a stream to each viewer of a client over a link into their group."""
        self.streams.waiting[item, client.group] = client.viewers
        self.streams.add(item, link, client.viewers)
        client.item, client.link, client.edge, client.asked = item, link, self.streams.tail[link], None
        self.watching[id(client)] = client
        self.watched_until_s[id(client)] = self.now_s

    def _stop(self, client: Client, *, is_denied: bool = True) -> None:
        """Stop the streams to a client's viewers, and that of their edge where nobody else needs it."""
        item, link = client.item, client.link
        assert item is not None
        assert link is not None
        self._watch(client, self.now_s, 1.0)
        self.streams.remove(item, link, client.viewers)
        self.streams.waiting[item, client.group] = 0.0
        self._forget(client, is_denied=is_denied)
        self._release(item, self.streams.tail[link])

    def _forget(self, client: Client, *, is_denied: bool) -> None:
        """List a client as denied, or as gone."""
        del self.watching[id(client)], self.watched_until_s[id(client)]
        client.item = client.link = client.edge = None
        if is_denied:
            self.denied.append(client)

    def _request_again(self) -> None:
        denied, self.denied = self.denied, []
        failed: set[tuple[int, tuple[int, ...]]] = set()  # capacity only falls meanwhile
        for client in denied:
            if client.leaves_s <= self.now_s:
                continue
            key = (client.group, tuple(client.items))
            if key in failed:
                self.denied.append(client)
                continue
            count = len(self.denied)
            self._request(client)
            if len(self.denied) > count:
                failed.add(key)

    # --- switches of bitrates -------------------------------------------------------------

    def _assess(self, number: int) -> None:
        client = self.clients[number]
        if client.leaves_s <= self.now_s:
            return
        if client.item is not None:
            self._watch(client, self.now_s, 1.0)
        super()._assess(number)

    def _switch(self, client: Client, item: int) -> bool:
        """Move viewers to another object if one edge has capacity for all of them; return whether."""
        old, link, asked, streams = client.item, client.link, client.asked, self.streams
        assert old is not None
        assert link is not None
        above = streams.path(old, streams.tail[link])
        streams.remove(old, link, client.viewers)
        streams.waiting[old, client.group] = 0.0
        links = self._release(old, streams.tail[link])
        self._announce_links([link, *links])
        into = self._serve_all(client, item)
        if into is None and self._can_replace(item, old, above, links):
            self._replace(item, above)
            self._start(client, item, link)
            into = link
        if into is not None:
            self._announce_links([into, *streams.path(item, streams.tail[into])])
            self._note_switch(client, old, item)
            return True
        for used in links:
            streams.add(old, used)
        self._start(client, old, link)
        client.asked = asked
        self._announce_links([link, *links])
        return False

    def _serve_all(self, client: Client, item: int) -> int | None:
        """Serve all viewers of a client from one edge; return the link from it, None where nobody fits."""
        for link in self._order_links(item, client.group):
            if self._serve_over(client, item, link, must_fit_all=True) is None:
                return link
        return None

    def _apply_switches(self) -> None:
        remaining: dict[Key, float] = {}
        for client in list(self.watching.values()):
            old, item = client.item, client.asked
            if item is None or old is None:
                continue
            for link in self.streams.into[client.group]:
                number = remaining.setdefault((item, link), self._count_assigned(item, link))
                if number >= client.viewers:
                    remaining[item, link] -= client.viewers
                    self._watch(client, self.now_s, 1.0)
                    client.item, client.link, client.edge = item, link, self.streams.tail[link]
                    self._note_switch(client, old, item)
                    break

    # --- changes of existing streams ------------------------------------------------------

    def _reroute(self) -> None:
        """Move viewers to the links that the controller assigns; others stay where their streams fit.

        The controller's trees and viewers go first, as in `DataPlane`.
        """
        clients = list(self.watching.values())
        for client in clients:
            self._watch(client, self.now_s, 1.0)
        paths = _Paths(self, self.streams)
        self._set_streams(Streams(self.problem))
        self.streams.residual_mbps = self.capacity.copy()
        self.announcements.streams = self.streams
        assigned = dict(self.assigned_viewers)
        central: list[tuple[Client, list[int]]] = []
        others: list[Client] = []
        for client in clients:  # who already watch over an assigned link stay there
            others += self._take_assigned(client, [client.link], paths, assigned, central)
        clients, others = others, []
        for client in clients:
            others += self._take_assigned(client, self.streams.into[client.group], paths, assigned, central)
        for client, path in central:
            self._move(client, path, must_fit=False)
        for client in others:
            self._move(client, paths.find(client.item, client.link)[0], must_fit=True)

    def _take_assigned(
        self,
        client: Client,
        links: Sequence[int | None],
        paths: _Paths,
        assigned: dict[Key, float],
        central: list[tuple[Client, list[int]]],
    ) -> list[Client]:
        """List viewers with central paths over links that have viewers assigned; return the others.

        assigned  by object and link: viewers who are not yet listed; reduced by those who are
        central   clients and paths, added to
        """
        for link in links:
            path, is_central = paths.find(client.item, link)
            number = assigned.get((client.item, link), 0.0) if is_central else 0.0  # type: ignore[arg-type]
            if number <= 0:
                continue
            remainder = self._split(client, number)
            assigned[client.item, link] -= client.viewers  # type: ignore[index]
            central.append((client, path))
            if remainder is None:
                return []
            client = remainder
        return [client]

    def _move(self, client: Client, path: list[int], *, must_fit: bool) -> None:
        """Send streams to viewers down a path, to those who fit where they must; deny the others."""
        streams, item = self.streams, client.item
        assert item is not None
        new = [link for link in path[:-1] if not streams.has(item, streams.head[link])]
        viewers = client.viewers if path else 0.0
        if path and must_fit:
            fits = streams.fits_along(item, new)
            viewers = self._count_fitting(streams, client, item, path[-1]) if fits else 0.0
        if viewers <= 0:
            self._forget(client, is_denied=True)
            return
        remainder = self._split(client, viewers)
        streams.add_path(item, new)
        self._start(client, item, path[-1])
        if remainder is not None:
            self._forget(remainder, is_denied=True)

    def _drop_streams(self) -> bool:
        has_dropped = super()._drop_streams()
        residual = self.streams.residual_mbps
        for client in list(self.watching.values()):
            link, item = client.link, client.item
            assert link is not None
            assert item is not None
            if self.is_down(link):
                self._stop(client)
            elif residual[link] < -1e-9 and self._has_changed(link):
                over = math.ceil(-float(residual[link]) / self.streams.bitrate[item] * (1 - SLACK))
                self._split(client, over)
                self._stop(client)
            else:
                continue
            has_dropped = True
        return has_dropped

    def _prune(self) -> None:
        self._prune_starved()
        for client in list(self.watching.values()):
            assert client.item is not None
            assert client.edge is not None
            if not self.streams.has(client.item, client.edge):
                self._stop(client)
        self._prune_unused()


class _Paths:
    """Paths down to edges and on to groups, by current entries or as streams were before an update."""

    def __init__(self, plane: ViewerPlane, old: Streams) -> None:
        self.plane, self.old = plane, old
        self.traced: dict[tuple[int | None, int | None], tuple[list[int], bool]] = {}

    def find(self, item: int | None, link: int | None) -> tuple[list[int], bool]:
        """Return the links of an object's path that ends in a link, and whether it is central; else empty."""
        assert item is not None
        assert link is not None
        if (item, link) not in self.traced:
            above, is_central = self.plane.trace_up(item, self.old.tail[link], self.old)
            is_path = above is not None and not self.plane.is_down(link)
            self.traced[item, link] = ([*(above or ()), link], is_central) if is_path else ([], False)
        return self.traced[item, link]
