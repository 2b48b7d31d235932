"""Plan of system `livevideo`: the links that carry each object form a tree.

Streams set up one by one: the link over which each cluster receives an object, and residual capacity.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.contract.table import Table, label, number
from planner.contract.tables import validate
from planner.errors import InputError
from planner.search.tolerances import ROUNDING
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import MOST_CLIENTS, MOST_S

TREES: Final = Table(
    name="trees",
    about="an object on a link that carries it",
    columns={
        "channel": label("its channel"),
        "bitrate_kbps": number("its bitrate, kbit/s", more_than=0),
        "tail": label("cluster that sends it"),
        "head": label("cluster that receives it"),
    },
    key=("channel", "bitrate_kbps", "tail", "head"),
    may_be_empty=True,
)
_REQUEST: Final = {
    "group": label("their client group"),
    "channel": label("the channel they requested"),
    "bitrate_kbps": number("the bitrate they requested, kbit/s", more_than=0),
}
WAITS: Final = Table(
    name="waits",
    about="clients that waited for a decision before they were served",
    columns={**_REQUEST, "waited_s": number("waiting time, s", at_least=0, at_most=MOST_S)},
    key=("group", "channel", "bitrate_kbps"),
    may_be_empty=True,
)
UNSERVED: Final = Table(
    name="unserved",
    about="clients that receive nothing of what they requested, nor a lower bitrate that they accept",
    columns={**_REQUEST, "clients": number("number of clients", more_than=0)},
    key=("group", "channel", "bitrate_kbps"),
    may_be_empty=True,
)
VIEWERS: Final = Table(
    name="viewers",
    about="viewers to whom an edge sends a stream each, where the last hop is unicast",
    columns={
        **_REQUEST,
        "edge": label("cluster that serves them, of the tier above the groups"),
        "clients": number("number of viewers", more_than=0, at_most=MOST_CLIENTS),
    },
    key=("group", "channel", "bitrate_kbps", "edge"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (TREES, WAITS, UNSERVED, VIEWERS)
SLACK = ROUNDING


@dataclass(frozen=True, kw_only=True, eq=False)
class Trees:
    """Distribution trees.

    trees  one row a link and object: channel, bitrate_kbps, tail, head
    waits  one row a request that waited for a decision: group, channel, bitrate_kbps, waited_s; None: none
    unserved  one row a request of which clients are not served: group, channel, bitrate_kbps, clients;
              None: unknown
    viewers   one row a request and edge: group, channel, bitrate_kbps, edge, clients; None where the last hop
              is multicast. Where it is unicast, `trees` end at the edges
    """

    trees: pd.DataFrame
    waits: pd.DataFrame | None = None
    unserved: pd.DataFrame | None = None
    viewers: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the table `trees`, `waits` where requests waited, and the others where they are known."""
        tables = {
            "trees": self.trees, "waits": self.waits, "unserved": self.unserved, "viewers": self.viewers
        }  # fmt: skip
        return {name: table for name, table in tables.items() if table is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class PortsetTrees(Trees):
    """Trees of a CDN with answers of DNS for bins of channels.

    portset  (V,) bin of each channel, by the channel's number
    """

    portset: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class PricedDecision(Decision[Trees]):
    """Decision with the dual prices of its bound, from which the next window can start.

    prices  by row: label of a link, and the least bitrate that the row counts, 0 for its capacity
    """

    prices: dict[tuple[str, float], float] = field(default_factory=dict)


def find_received(problem: LiveVideo, arrivals: Ints) -> Ints:
    """Return the object of most value, of those that each request accepts, which arrives; -1 for none.

    arrivals  keys, object times number of clusters plus cluster, of what arrives
    """
    steps = problem.steps
    arrives = np.isin(steps.object * len(problem.clusters) + problem.group[steps.request], arrivals)
    request, item, value = steps.request[arrives], steps.object[arrives], steps.value[arrives]
    order = np.lexsort((-value, request))  # stable: of equal values the highest bitrate
    request, first = np.unique(request[order], return_index=True)
    received = np.full(len(problem.requests), -1, dtype=np.int64)
    received[request] = item[order][first]
    return received


class CarriedStreams(NamedTuple):
    """Streams of a plan on links, (n,) arrays: each row is an object on a link.

    object, link  -1 for unknown
    number        of streams: 1, or the viewers on a link of a unicast last hop
    """

    object: Ints
    link: Ints
    number: Floats


def list_streams(problem: LiveVideo, plan: Trees) -> CarriedStreams:
    """Return the streams of a plan: those of its trees, then those of its viewers."""
    item, link = plan_rows(problem, plan)
    count = np.ones(len(item))
    if plan.viewers is not None:
        viewers = plan.viewers
        item = np.append(item, problem.object_rows(viewers["channel"], viewers["bitrate_kbps"]))
        link = np.append(link, problem.link_rows(viewers["edge"], viewers["group"]))
        count = np.append(count, viewers["clients"].to_numpy(float))
    return CarriedStreams(item, link, count)


def load_per_link(problem: LiveVideo, streams: CarriedStreams) -> Floats:
    """Return the load of each link, (L,), Mbit/s."""
    rate = problem.bitrate_mbps[streams.object] * streams.number
    return np.bincount(streams.link, weights=rate, minlength=len(problem.links)).astype(float)


def served_clients(problem: LiveVideo, streams: CarriedStreams, received: Ints | None = None) -> Floats:
    """Return the clients of each request that streams serve at a bitrate they accept, (Q,).

    received  (Q,) result of `find_received` for the streams, where it is known
    """
    item, link, count = streams
    if not problem.is_unicast:
        if received is None:
            received = find_received(problem, item * len(problem.clusters) + problem.head[link])
        return np.where(received >= 0, problem.clients, 0.0)
    last = problem.is_last_hop[link]
    request = problem.request_rows(item[last], problem.head[link[last]])
    is_known = request >= 0
    served = np.bincount(request[is_known], count[last][is_known], minlength=len(problem.requests))
    return served.astype(float)


def build_plan(problem: LiveVideo, item: Ints, link: Ints, count: Floats | None = None) -> Trees:
    """Return the plan in which object `item[i]` crosses link `link[i]`, sorted by object and tier.

    count  number of streams of each row; default: 1. Where the last hop is unicast, the rows into groups are
           listed as viewers
    """
    streams = CarriedStreams(item, link, np.ones(len(item)) if count is None else count)
    waiting = problem.clients - served_clients(problem, streams)
    columns = ["group", "channel", "bitrate_kbps", "clients"]
    requests = problem.requests.assign(clients=waiting)
    unserved = requests.loc[waiting > 0, columns].reset_index(drop=True)
    order = np.lexsort((link, problem.level[problem.tail[link]], item))
    item, link = item[order], link[order]
    rows = pd.DataFrame(
        {
            "channel": problem.objects["channel"].to_numpy()[item],
            "bitrate_kbps": problem.objects["bitrate_kbps"].to_numpy(float)[item],
            "tail": problem.links["tail"].to_numpy()[link],
            "head": problem.links["head"].to_numpy()[link],
        }
    )
    if not problem.is_unicast:
        return Trees(trees=rows, unserved=unserved)
    last = problem.is_last_hop[link]
    viewers = rows[last].rename(columns={"tail": "edge", "head": "group"})
    viewers = viewers.assign(clients=streams.number[order][last])[list(VIEWERS.columns)]
    return Trees(
        trees=rows[~last].reset_index(drop=True),
        unserved=unserved,
        viewers=viewers.reset_index(drop=True),
    )


def restate(problem: LiveVideo, plan: Trees) -> Trees:
    """Return the streams of a plan as a plan for this problem, whose requests may be others."""
    return build_plan(problem, *list_streams(problem, plan))


def plan_rows(problem: LiveVideo, plan: Trees) -> tuple[Ints, Ints]:
    """Return the object and the link of each row of a plan's trees; -1 for unknown."""
    trees = plan.trees
    return (
        problem.object_rows(trees["channel"], trees["bitrate_kbps"]),
        problem.link_rows(trees["tail"], trees["head"]),
    )


def build_waits(problem: LiveVideo, requests: Ints, waited_s: float) -> pd.DataFrame:
    """Return the table `waits` in which requests, given by row, waited `waited_s`."""
    waiting = problem.requests.iloc[requests][["group", "channel", "bitrate_kbps"]]
    return waiting.assign(waited_s=waited_s).reset_index(drop=True)


def from_tables(problem: LiveVideo, tables: Mapping[str, pd.DataFrame]) -> Trees:
    """Build the plan from tables `trees`, `waits`, `unserved` and, for a unicast last hop, `viewers`.

    raises  InputError with every fault of the tables
    """
    if "trees" not in tables:
        raise InputError("trees: the plan has no such table")
    if problem.is_unicast and "viewers" not in tables:
        raise InputError(
            "viewers: the plan has no such table; with last_hop = unicast it says how many viewers each edge "
            "serves"
        )
    if "viewers" in tables and not problem.is_unicast:
        raise InputError(
            "viewers: the plan is for a unicast last hop, the problem has a multicast one; set "
            "problem.last_hop = unicast"
        )
    frames = {
        table.name: validate(
            table, tables[table.name], where=tables[table.name].attrs.get("where")
        ).reset_index(drop=True)
        for table in PLAN_TABLES
        if table.name in tables
    }
    return Trees(**frames)


def diff(before: Trees, after: Trees) -> pd.DataFrame:
    """Return the links that trees gain and lose: channel, bitrate_kbps, tail, head, change ("+" or "-")."""
    both = _links_of_objects(before).merge(_links_of_objects(after), how="outer", indicator=True)
    moved = both[both["_merge"] != "both"]
    change = np.where(moved["_merge"] == "right_only", "+", "-")
    return moved.drop(columns="_merge").assign(change=change).reset_index(drop=True)


def _links_of_objects(plan: Trees) -> pd.DataFrame:
    """Return the rows of trees, and those of viewers as links: channel, bitrate_kbps, tail, head."""
    if plan.viewers is None:
        return plan.trees
    last = plan.viewers.rename(columns={"edge": "tail", "group": "head"})
    return pd.concat([plan.trees, last[list(plan.trees)]], ignore_index=True)


def moved_objects(before: Trees, after: Trees) -> pd.DataFrame:
    """Return the objects of both plans with different trees: channel, bitrate_kbps, links gained and lost."""
    key = ["channel", "bitrate_kbps"]
    changes = diff(before, after)
    common = before.trees[key].drop_duplicates().merge(after.trees[key].drop_duplicates())
    counts = (
        changes.assign(gained=changes["change"] == "+", lost=changes["change"] == "-")
        .groupby(key, as_index=False)[["gained", "lost"]]
        .sum()
    )
    return common.merge(counts)


class Streams:
    """Distribution trees under construction.

    residual_mbps  (L,) residual capacity; negative where decisions on old state overload a link
    cap_left_mbps  residual traffic of each bill with a cap, infinite for others
    parent         by object and cluster: the link over which the cluster receives the object; without groups
                   where the last hop is unicast
    into           links into each cluster
    viewers        by object and link of a unicast last hop: clients with a stream each
    waiting        by object and group: clients without a stream where the last hop is unicast
    """

    def __init__(self, problem: LiveVideo) -> None:
        self.problem = problem
        self.residual_mbps = problem.capacity_mbps.copy()
        self.cap_left_mbps: list[float] = [
            *problem.tariffs.cap_mbps.tolist(),
            np.inf,
        ]  # the last is of no bill
        self.bill: list[int] = problem.tariffs.of_link.tolist()  # -1, for none, is the last one
        self.parent: dict[tuple[int, int], int] = {}
        self.tail = problem.tail.tolist()
        self.head = problem.head.tolist()
        self.level = problem.level.tolist()
        self.bitrate = problem.bitrate_mbps.tolist()
        self.into: list[list[int]] = [[] for _ in self.level]
        for link, head in enumerate(self.head):
            self.into[head].append(link)
        self.viewers: dict[tuple[int, int], float] = {}
        self.waiting: dict[tuple[int, int], float] = {}
        self.is_unicast_link = (problem.is_last_hop & problem.is_unicast).tolist()
        if problem.is_unicast:
            rows = zip(*(column.tolist() for column in _requested(problem)), strict=True)
            self.waiting = {(item, group): clients for item, group, clients in rows}
        self._source = {int(cluster): s for s, cluster in enumerate(problem.sources)}
        self._is_at_source = problem.is_at_source
        self._forbidden = problem.forbidden_pairs

    @cached_property
    def out_of(self) -> list[list[int]]:
        """Links out of each cluster."""
        links: list[list[int]] = [[] for _ in self.level]
        for link, tail in enumerate(self.tail):
            links[tail].append(link)
        return links

    @cached_property
    def nearest(self) -> list[list[int]]:
        """Links into each cluster in ascending order of delay."""
        latency = self.problem.latency_ms.tolist()
        return [sorted(links, key=lambda link: (latency[link], link)) for links in self.into]

    def has(self, item: int, cluster: int) -> bool:
        """Return whether the cluster receives the object, or is a source that holds it.

        A group has it where all of its clients do.
        """
        if self.level[cluster] == 0:
            return bool(self._is_at_source[item, self._source[cluster]])
        return (item, cluster) in self.parent or self.waiting.get((item, cluster)) == 0

    def carries(self, item: int, link: int) -> bool:
        """Return whether the object crosses the link."""
        if self.is_unicast_link[link]:
            return (item, link) in self.viewers
        return self.parent.get((item, self.head[link])) == link

    def carried(self) -> list[tuple[int, int, float]]:
        """Return object, link and number of streams of all that is sent."""
        trees = [(item, link, 1.0) for (item, _), link in self.parent.items()]
        return trees + [(item, link, count) for (item, link), count in self.viewers.items()]

    def links_into(self, item: int, cluster: int) -> list[int]:
        """Return the links over which the cluster receives the object, in part or for all of its clients."""
        return [link for link in self.into[cluster] if self.carries(item, link)]

    def is_allowed(self, item: int, link: int) -> bool:
        """Return whether no rule forbids the object on the link, and a source at its tail holds it."""
        if self._forbidden is not None and self._forbidden[item, link]:
            return False
        tail = self.tail[link]
        return self.level[tail] > 0 or bool(self._is_at_source[item, self._source[tail]])

    def fits(self, item: int, link: int) -> bool:
        """Return whether the link, and the cap of its bill, have residual capacity for the object."""
        need = self.bitrate[item] * (1 - SLACK)
        return bool(self.residual_mbps[link] >= need) and self.cap_left_mbps[self.bill[link]] >= need

    def fits_along(self, item: int, links: list[int]) -> bool:
        """Return whether all links, and the caps of their bills, have residual capacity for the object."""
        return all(self.fits(item, link) for link in links) and self.keeps_caps(item, links)

    def keeps_caps(self, item: int, links: list[int]) -> bool:
        """Return whether the caps of the links' bills have residual traffic for the object on all of them.

        Links whose ends have the object already add nothing.
        """
        times = Counter(self.bill[link] for link in links if not self.has(item, self.head[link]))
        need = self.bitrate[item] * (1 - SLACK)
        return all(self.cap_left_mbps[bill] >= count * need for bill, count in times.items())

    def _use(self, link: int, mbps: float) -> None:
        """Take residual capacity of a link and of its bill's cap, or give it back where it is negative."""
        self.residual_mbps[link] -= mbps
        self.cap_left_mbps[self.bill[link]] -= mbps

    def can_carry(self, item: int, link: int) -> bool:
        """Return whether the object fits on the link and is allowed there."""
        return self.fits(item, link) and self.is_allowed(item, link)

    def add(self, item: int, link: int, clients: float | None = None) -> None:
        """Send the object over the link; its head must not receive it yet.

        clients  of a group, where the last hop is unicast; default: as many as wait and fit
        """
        if not self.is_unicast_link[link]:
            self.parent[item, self.head[link]] = link
            self._use(link, self.bitrate[item])
            return
        clients = self.count_fitting(item, link) if clients is None else clients
        if clients > 0:
            self.viewers[item, link] = self.viewers.get((item, link), 0.0) + clients
            self.waiting[item, self.head[link]] -= clients
            self._use(link, clients * self.bitrate[item])

    def count_fitting(self, item: int, link: int) -> float:
        """Return the clients who wait for the object and fit on a link of a unicast last hop."""
        waiting = self.waiting.get((item, self.head[link]), 0.0)
        room = min(float(self.residual_mbps[link]), self.cap_left_mbps[self.bill[link]]) / self.bitrate[item]
        return waiting if room >= waiting else max(0.0, float(np.floor(room * (1 + SLACK))))

    def remove(self, item: int, link: int, clients: float | None = None) -> None:
        """Stop sending the object over the link.

        clients  of a group who wait again, where the last hop is unicast; default: all on the link
        """
        if not self.is_unicast_link[link]:
            del self.parent[item, self.head[link]]
            self._use(link, -self.bitrate[item])
            return
        on_link = self.viewers.pop((item, link))
        clients = on_link if clients is None else clients
        if clients < on_link:
            self.viewers[item, link] = on_link - clients
        self.waiting[item, self.head[link]] += clients
        self._use(link, -clients * self.bitrate[item])

    def add_path(self, item: int, links: list[int], clients: float | None = None) -> None:
        """Send the object down the links, from the last cluster on them that has it.

        clients  of a group at the end, where the last hop is unicast; default: as many as wait and fit
        """
        for link in links:
            if not self.has(item, self.head[link]):
                self.add(item, link, clients)

    def add_plan(self, plan: Trees) -> None:
        """Send objects as a plan says."""
        streams = list_streams(self.problem, plan)
        for item, link, count in zip(*(rows.tolist() for rows in streams), strict=True):
            self.add(item, link, count)

    def copy(self) -> Streams:
        """Return independent streams, equal to these."""
        other = copy.copy(self)
        other.residual_mbps, other.parent = self.residual_mbps.copy(), dict(self.parent)
        other.cap_left_mbps = self.cap_left_mbps.copy()
        other.viewers, other.waiting = dict(self.viewers), dict(self.waiting)
        return other

    def path(self, item: int, cluster: int, up_to: Streams | None = None) -> list[int]:
        """Return the links from a source down to a cluster that receives the object, upper tiers first.

        up_to  other streams: the path starts at the lowest cluster that has the object there
        """
        if (item, cluster) in self.waiting and not (up_to is not None and up_to.has(item, cluster)):
            last = self.links_into(item, cluster)  # several edges may serve the group
            used = {upper for link in last for upper in self.path(item, self.tail[link], up_to)}
            return [*sorted(used, key=lambda link: (self.level[self.tail[link]], link)), *last]
        links: list[int] = []
        while not (self.level[cluster] == 0 or (up_to is not None and up_to.has(item, cluster))):
            links.append(self.parent[item, cluster])
            cluster = self.tail[links[-1]]
        return links[::-1]

    def cheapest_path(self, item: int, cluster: int, price: list[float], limit: float) -> list[int] | None:
        """Return the cheapest links with capacity that bring an object to a cluster; None from `limit` on.

        price  of each link per Mbit/s, in units of the limit
        """
        if self.has(item, cluster):
            return []
        best: list[int] | None = None
        for link in self.into[cluster]:
            spent = price[link] * self.bitrate[item]
            if spent >= limit or not self.can_carry(item, link):
                continue
            above = self.cheapest_path(item, self.tail[link], price, limit - spent)  # none into a source
            if above is None:
                continue
            limit = spent + sum(price[used] for used in above) * self.bitrate[item]
            best = [*above, link]
        return best

    def plan(self) -> Trees:
        """Return the trees as a plan."""
        keys = [(item, link) for (item, _), link in self.parent.items()] + list(self.viewers)
        pairs: Ints = np.array(keys, dtype=np.int64).reshape(-1, 2)
        count = np.append(np.ones(len(self.parent)), np.array(list(self.viewers.values())))
        return build_plan(self.problem, pairs[:, 0], pairs[:, 1], count)


def _requested(problem: LiveVideo) -> tuple[Ints, Ints, Floats]:
    """Return object, group and clients of each request, (Q,)."""
    return problem.object, problem.group, problem.clients


def requests_by_arrival(problem: LiveVideo, requests: Ints | None = None) -> list[tuple[int, int, float]]:
    """Return (object, group, time) of all or some requests, given by row, in order of arrival."""
    rows = np.arange(len(problem.requests)) if requests is None else requests
    order = rows[np.argsort(problem.arrival_s[rows], kind="stable")]
    columns = (problem.object, problem.group, problem.arrival_s)
    return list(zip(*(column[order].tolist() for column in columns), strict=True))
