"""Plan of system `livevideo`: the links that carry each object form a tree.

Streams set up one by one: the link over which each cluster receives an object, and residual capacity.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.contract.table import Table, label, number
from planner.contract.tables import validate
from planner.errors import InputError
from planner.search.tolerances import ROUNDING
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import MOST_S

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
PLAN_TABLES: Final = (TREES, WAITS, UNSERVED)
SLACK = ROUNDING


@dataclass(frozen=True, kw_only=True, eq=False)
class Trees:
    """Distribution trees.

    trees  one row a link and object: channel, bitrate_kbps, tail, head
    waits  one row a request that waited for a decision: group, channel, bitrate_kbps, waited_s; None: none
    unserved  one row a request that no tree reaches: group, channel, bitrate_kbps, clients; None: unknown
    """

    trees: pd.DataFrame
    waits: pd.DataFrame | None = None
    unserved: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the table `trees`, `waits` where requests waited, and `unserved` where it is known."""
        tables = {"trees": self.trees, "waits": self.waits, "unserved": self.unserved}
        return {name: table for name, table in tables.items() if table is not None}


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


def build_plan(problem: LiveVideo, item: Ints, link: Ints) -> Trees:
    """Return the plan in which object `item[i]` crosses link `link[i]`, sorted by object and tier."""
    is_served = find_received(problem, item * len(problem.clusters) + problem.head[link]) >= 0
    columns = ["group", "channel", "bitrate_kbps", "clients"]
    unserved = problem.requests.loc[~is_served, columns].reset_index(drop=True)
    order = np.lexsort((link, problem.level[problem.tail[link]], item))
    item, link = item[order], link[order]
    return Trees(
        trees=pd.DataFrame(
            {
                "channel": problem.objects["channel"].to_numpy()[item],
                "bitrate_kbps": problem.objects["bitrate_kbps"].to_numpy(float)[item],
                "tail": problem.links["tail"].to_numpy()[link],
                "head": problem.links["head"].to_numpy()[link],
            }
        ),
        unserved=unserved,
    )


def plan_rows(problem: LiveVideo, plan: Trees) -> tuple[Ints, Ints]:
    """Return the object and the link of each row of a plan; -1 for unknown."""
    trees = plan.trees
    return (
        problem.object_rows(trees["channel"], trees["bitrate_kbps"]),
        problem.link_rows(trees["tail"], trees["head"]),
    )


def build_waits(problem: LiveVideo, requests: Ints, waited_s: float) -> pd.DataFrame:
    """Return the table `waits` in which requests, given by row, waited `waited_s`."""
    waiting = problem.requests.iloc[requests][["group", "channel", "bitrate_kbps"]]
    return waiting.assign(waited_s=waited_s).reset_index(drop=True)


def from_tables(problem: LiveVideo, tables: Mapping[str, pd.DataFrame]) -> Trees:  # noqa: ARG001
    """Build the plan from tables `trees`, `waits` and `unserved`.

    raises  InputError with every fault of the tables
    """
    if "trees" not in tables:
        raise InputError("trees: the plan has no such table")
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
    both = before.trees.merge(after.trees, how="outer", indicator=True)
    moved = both[both["_merge"] != "both"]
    change = np.where(moved["_merge"] == "right_only", "+", "-")
    return moved.drop(columns="_merge").assign(change=change).reset_index(drop=True)


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
    parent         by object and cluster: the link over which the cluster receives the object
    into           links into each cluster
    """

    def __init__(self, problem: LiveVideo) -> None:
        self.problem = problem
        self.residual_mbps = problem.capacity_mbps.copy()
        self.parent: dict[tuple[int, int], int] = {}
        self.tail = problem.tail.tolist()
        self.head = problem.head.tolist()
        self.level = problem.level.tolist()
        self.bitrate = problem.bitrate_mbps.tolist()
        self.into: list[list[int]] = [[] for _ in self.level]
        for link, head in enumerate(self.head):
            self.into[head].append(link)
        self._source = {int(cluster): s for s, cluster in enumerate(problem.sources)}
        self._is_at_source = problem.is_at_source
        self._forbidden = problem.forbidden_pairs

    @cached_property
    def nearest(self) -> list[list[int]]:
        """Links into each cluster in ascending order of delay."""
        latency = self.problem.latency_ms.tolist()
        return [sorted(links, key=lambda link: (latency[link], link)) for links in self.into]

    def has(self, item: int, cluster: int) -> bool:
        """Return whether the cluster receives the object, or is a source that holds it."""
        if self.level[cluster] == 0:
            return bool(self._is_at_source[item, self._source[cluster]])
        return (item, cluster) in self.parent

    def is_allowed(self, item: int, link: int) -> bool:
        """Return whether no rule forbids the object on the link, and a source at its tail holds it."""
        if self._forbidden is not None and self._forbidden[item, link]:
            return False
        tail = self.tail[link]
        return self.level[tail] > 0 or bool(self._is_at_source[item, self._source[tail]])

    def fits(self, item: int, link: int) -> bool:
        """Return whether the link has residual capacity for the object."""
        return bool(self.residual_mbps[link] >= self.bitrate[item] * (1 - SLACK))

    def can_carry(self, item: int, link: int) -> bool:
        """Return whether the object fits on the link and is allowed there."""
        return self.fits(item, link) and self.is_allowed(item, link)

    def add(self, item: int, link: int) -> None:
        """Send the object over the link; its head must not receive it yet."""
        self.parent[item, self.head[link]] = link
        self.residual_mbps[link] -= self.bitrate[item]

    def remove(self, item: int, link: int) -> None:
        """Stop sending the object over the link."""
        del self.parent[item, self.head[link]]
        self.residual_mbps[link] += self.bitrate[item]

    def add_path(self, item: int, links: list[int]) -> None:
        """Send the object down the links, from the last cluster on them that has it."""
        for link in links:
            if not self.has(item, self.head[link]):
                self.add(item, link)

    def add_plan(self, plan: Trees) -> None:
        """Send objects as a plan says."""
        for item, link in zip(*(rows.tolist() for rows in plan_rows(self.problem, plan)), strict=True):
            self.add(item, link)

    def copy(self) -> Streams:
        """Return independent streams, equal to these."""
        other = copy.copy(self)
        other.residual_mbps, other.parent = self.residual_mbps.copy(), dict(self.parent)
        return other

    def path(self, item: int, cluster: int, up_to: Streams | None = None) -> list[int]:
        """Return the links from a source down to a cluster that receives the object.

        up_to  other streams: the path starts at the lowest cluster that has the object there
        """
        links: list[int] = []
        while not (self.level[cluster] == 0 or (up_to is not None and up_to.has(item, cluster))):
            links.append(self.parent[item, cluster])
            cluster = self.tail[links[-1]]
        return links[::-1]

    def plan(self) -> Trees:
        """Return the trees as a plan."""
        pairs: Ints = np.array(
            [(item, link) for (item, _), link in self.parent.items()], dtype=np.int64
        ).reshape(-1, 2)
        return build_plan(self.problem, pairs[:, 0], pairs[:, 1])


def requests_by_arrival(problem: LiveVideo, requests: Ints | None = None) -> list[tuple[int, int, float]]:
    """Return (object, group, time) of all or some requests, given by row, in order of arrival."""
    rows = np.arange(len(problem.requests)) if requests is None else requests
    order = rows[np.argsort(problem.arrival_s[rows], kind="stable")]
    columns = (problem.object, problem.group, problem.arrival_s)
    return list(zip(*(column[order].tolist() for column in columns), strict=True))
