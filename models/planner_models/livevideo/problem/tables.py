"""Tables of a live video problem, and the arrays that are read from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models.livevideo.problem.schema import (
    BILLS,
    FORBIDDEN,
    HOLDERS,
    PINNED,
    SAMPLES,
    UNICAST,
    default_settings,
    empty_table,
)
from planner_models.livevideo.problem.tariffs import Tariffs, read_tariffs
from planner_models.networks.nodes import find_names

Pair = tuple[str, str]


def linked_tiers(tail_tier: np.ndarray, head_tier: np.ndarray) -> dict[Pair, int]:
    """Return the pairs of tiers that links connect, each with its first link.

    tail_tier, head_tier  (L,) tiers of both ends of each link
    """
    pairs = pd.DataFrame({"tail": tail_tier, "head": head_tier})
    first = np.flatnonzero(~pairs.duplicated().to_numpy()).tolist()
    return {(str(tail_tier[row]), str(head_tier[row])): row for row in first}


def order_tiers(pairs: Iterable[Pair]) -> list[str] | None:
    """Return the tiers in the order of the links between them; None where they form no single chain."""
    pairs = list(pairs)
    after = dict(pairs)
    first = set(after) - set(after.values())
    if len(after) != len(pairs) or len(first) != 1:
        return None
    chain = [first.pop()]
    while chain[-1] in after and len(chain) <= len(after):
        chain.append(after[chain[-1]])
    return chain if len(chain) == len(after) + 1 and len(set(chain)) == len(chain) else None


def find_cycle(pairs: Iterable[Pair]) -> list[str] | None:
    """Return tiers that lead from one back to itself, by depth-first search; None where there is no cycle."""
    after: dict[str, list[str]] = {}
    for tail, head in pairs:
        after.setdefault(tail, []).append(head)
    for start in after:
        paths = [[start]]
        visited: set[str] = set()
        while paths:
            path = paths.pop()
            for tier in after.get(path[-1], []):
                if tier == start:
                    return [*path, tier]
                if tier not in visited:
                    visited.add(tier)
                    paths.append([*path, tier])
    return None


def _column(table: str, column: str) -> cached_property[Floats]:
    """Return a property: a column of a table as an array."""
    return cached_property(lambda problem: getattr(problem, table)[column].to_numpy(float))


def _setting(column: str) -> cached_property[float]:
    """Return a property: the only value in a column of the settings."""
    return cached_property(lambda problem: float(problem.settings[column].iloc[0]))


class Steps(NamedTuple):
    """Bitrates at which requests may be served: (A,) arrays, by request and from the highest bitrate down.

    The first step of each request is the requested bitrate.

    request, object  of each step
    value            of serving the request at this step: ws x priority x clients
    """

    request: Ints
    object: Ints
    value: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class VideoTables:
    """Tables of a live video problem, not yet validated; `LiveVideo` describes and validates them.

    C, L, O, Q and S are the numbers of clusters, links, objects, requests and sources. Clusters, links,
    objects and requests are numbered by their row.
    """

    clusters: pd.DataFrame
    links: pd.DataFrame
    objects: pd.DataFrame
    requests: pd.DataFrame
    holders: pd.DataFrame = field(default_factory=lambda: empty_table(HOLDERS))
    pinned: pd.DataFrame = field(default_factory=lambda: empty_table(PINNED))
    forbidden: pd.DataFrame = field(default_factory=lambda: empty_table(FORBIDDEN))
    bills: pd.DataFrame = field(default_factory=lambda: empty_table(BILLS))
    samples: pd.DataFrame = field(default_factory=lambda: empty_table(SAMPLES))
    settings: pd.DataFrame = field(default_factory=default_settings)

    # columns of the tables
    service_weight = _setting("service_weight")  # ws of Fig. 4.8, per unit of priority
    cost_weight = _setting("cost_weight")  # wc of Fig. 4.8, per unit of cost x Mbit/s
    chunk_s = _setting("chunk_s")  # length of a chunk
    capacity_mbps = _column("links", "capacity_mbps")  # (L,)
    cost = _column("links", "cost")  # (L,) per Mbit/s
    latency_ms = _column("links", "latency_ms")  # (L,) one-way delay
    priority = _column("objects", "priority")  # (O,) value of serving each object to one client
    clients = _column("requests", "clients")  # (Q,) number of clients of each request

    @cached_property
    def is_unicast(self) -> bool:
        """Whether links into groups carry a stream once for each viewer, not once for all of them."""
        return "last_hop" in self.settings and self.settings["last_hop"].iloc[0] == UNICAST

    # --- clusters and links ---------------------------------------------------------------

    @cached_property
    def linked_tiers(self) -> dict[tuple[str, str], int]:
        """Pairs of tiers that links connect, each with its first link."""
        tier = self.clusters["tier"].to_numpy()
        return linked_tiers(tier[self.tail], tier[self.head])

    @cached_property
    def tiers(self) -> list[str]:
        """Tiers from the sources to the groups."""
        return order_tiers(self.linked_tiers) or sorted(set(self.clusters["tier"]))

    @cached_property
    def level(self) -> Ints:
        """(C,) tier of each cluster: 0 for sources up to `group_level` for groups."""
        number = {tier: i for i, tier in enumerate(self.tiers)}
        return np.array([number.get(tier, -1) for tier in self.clusters["tier"]], dtype=np.int64)

    @property
    def group_level(self) -> int:
        """Level of the client groups, the last tier."""
        return len(self.tiers) - 1

    @cached_property
    def tail(self) -> Ints:
        """(L,) cluster where each link starts."""
        return self.cluster_rows(self.links["tail"])

    @cached_property
    def head(self) -> Ints:
        """(L,) cluster where each link ends."""
        return self.cluster_rows(self.links["head"])

    @cached_property
    def is_last_hop(self) -> Bools:
        """(L,) whether each link leads into a group."""
        return np.asarray(self.level[self.head] == self.group_level)

    @cached_property
    def tariffs(self) -> Tariffs:
        """Bills and caps of links together."""
        return read_tariffs(self)

    @property
    def has_bills(self) -> bool:
        """Whether traffic of any link is on a bill."""
        return bool((self.tariffs.of_link >= 0).any())

    # --- objects and sources --------------------------------------------------------------

    @cached_property
    def bitrate_mbps(self) -> Floats:
        """(O,) bitrate in Mbit/s, the unit of capacities."""
        return self.objects["bitrate_kbps"].to_numpy(float) / 1000.0

    @cached_property
    def channel_number(self) -> Ints:
        """(O,) channel of each object, numbered from 0 by name."""
        _, number = np.unique(self.objects["channel"].to_numpy(), return_inverse=True)
        return np.asarray(number)

    @cached_property
    def lower_object(self) -> Ints:
        """(O,) object at the next lower bitrate of each object's channel; -1 for the lowest."""
        order = np.lexsort((self.bitrate_mbps, self.channel_number))
        lower = np.full(len(order), -1, dtype=np.int64)
        is_same = self.channel_number[order[1:]] == self.channel_number[order[:-1]]
        lower[order[1:][is_same]] = order[:-1][is_same]
        return lower

    @cached_property
    def sources(self) -> Ints:
        """(S,) clusters of the first tier."""
        return np.flatnonzero(self.level == 0)

    @cached_property
    def is_at_source(self) -> Bools:
        """(O, S) whether each source has each object; sources in the order of `sources`."""
        is_at = np.ones((len(self.objects), len(self.sources)), dtype=bool)
        if len(self.holders):
            number = {int(cluster): s for s, cluster in enumerate(self.sources)}
            channels: dict[str, list[int]] = {}
            rows = zip(
                self.holders["channel"], self.cluster_rows(self.holders["source"]).tolist(), strict=True
            )
            for channel, cluster in rows:
                channels.setdefault(channel, []).append(number[cluster])
            for o, channel in enumerate(self.objects["channel"]):
                if channel in channels:
                    is_at[o] = False
                    is_at[o, channels[channel]] = True
        return is_at

    # --- requests -------------------------------------------------------------------------

    @cached_property
    def group(self) -> Ints:
        """(Q,) cluster of the group that requests."""
        return self.cluster_rows(self.requests["group"])

    @cached_property
    def object(self) -> Ints:
        """(Q,) requested object."""
        return self.object_rows(self.requests["channel"], self.requests["bitrate_kbps"])

    @cached_property
    def value(self) -> Floats:
        """(Q,) value of serving each request: ws x priority x clients."""
        return np.asarray(self.service_weight * self.priority[self.object] * self.clients)

    @cached_property
    def lowest_mbps(self) -> Floats:
        """(Q,) lowest bitrate that the clients of each request accept."""
        requested = self.bitrate_mbps[self.object]
        if "lowest_kbps" not in self.requests:
            return requested
        lowest = self.requests["lowest_kbps"].to_numpy(float) / 1000.0
        return np.where(np.isnan(lowest), requested, lowest)

    @cached_property
    def steps(self) -> Steps:
        """The bitrates at which each request may be served; pinned requests only as requested."""
        request, item = np.arange(len(self.requests)), self.object
        lowest = self.lowest_mbps * (1 - 1e-9)  # a bitrate in kbit/s may be rounded
        lowest[self.pinned_requests] = np.inf
        parts = [(request, item)]
        while len(request):
            item = self.lower_object[item]
            is_accepted = item >= 0
            is_accepted[is_accepted] = self.bitrate_mbps[item[is_accepted]] >= lowest[request[is_accepted]]
            request, item = request[is_accepted], item[is_accepted]
            parts.append((request, item))
        request = np.concatenate([rows for rows, _ in parts])
        item = np.concatenate([rows for _, rows in parts])
        order = np.argsort(request, kind="stable")
        request, item = request[order], item[order]
        return Steps(request, item, self.service_weight * self.priority[item] * self.clients[request])

    @cached_property
    def largest_value(self) -> Floats:
        """(Q,) value of serving each request at the bitrate of most value that its clients accept."""
        largest = self.value.copy()
        np.maximum.at(largest, self.steps.request, self.steps.value)
        return largest

    @property
    def has_ladders(self) -> bool:
        """Return whether clients of any request accept a lower bitrate than the requested one."""
        return len(self.steps.request) > len(self.requests)

    @cached_property
    def arrival_s(self) -> Floats:
        """(Q,) arrival time of each request; without times, in the table's order over one minute."""
        if "arrival_s" in self.requests:
            return self.requests["arrival_s"].to_numpy(float)
        count = len(self.requests)
        return np.asarray(60.0 * np.arange(count) / max(count, 1))

    # --- names and rows -------------------------------------------------------------------

    @cached_property
    def link_labels(self) -> list[str]:
        """(L,) `tail->head` of each link."""
        return [f"{t}->{h}" for t, h in zip(self.links["tail"], self.links["head"], strict=True)]

    @cached_property
    def object_labels(self) -> list[str]:
        """(O,) `channel/bitrate` of each object."""
        rows = zip(self.objects["channel"], self.objects["bitrate_kbps"], strict=True)
        return [f"{channel}/{bitrate:g}" for channel, bitrate in rows]

    @cached_property
    def cluster_index(self) -> pd.Index:
        """Names of the clusters in the order of their rows."""
        index: pd.Index = pd.Index(self.clusters["cluster"])
        return index

    @cached_property
    def _object_index(self) -> pd.MultiIndex:
        return pd.MultiIndex.from_frame(self.objects[["channel", "bitrate_kbps"]])

    @cached_property
    def _link_index(self) -> pd.Index:
        index: pd.Index = pd.Index(self.tail * len(self.clusters) + self.head)
        return index

    def cluster_rows(self, names: pd.Series) -> Ints:
        """Return the row of each cluster; -1 for unknown."""
        return find_names(self.cluster_index, names)

    def object_rows(self, channel: pd.Series, bitrate_kbps: pd.Series) -> Ints:
        """Return the row of each object; -1 for unknown."""
        if not len(channel):
            return np.zeros(0, dtype=np.int64)
        keys = pd.MultiIndex.from_arrays([channel.astype(str), bitrate_kbps.astype(float)])
        return self._object_index.get_indexer(keys).astype(np.int64)

    def link_rows(self, tail: pd.Series, head: pd.Series) -> Ints:
        """Return the row of each link; -1 for unknown."""
        start, end = self.cluster_rows(tail), self.cluster_rows(head)
        keys = np.where((start >= 0) & (end >= 0), start * len(self.clusters) + end, -1)
        return self._link_index.get_indexer(pd.Index(keys)).astype(np.int64)

    # --- rules ----------------------------------------------------------------------------

    def request_rows(self, item: Ints, group: Ints) -> Ints:
        """Return the request of each object (n,) and group (n,); -1 where the group does not request it."""
        count = len(self.clusters)
        is_named = (item >= 0) & (group >= 0)
        keys = pd.Index(np.where(is_named, item * count + group, -1))
        return self._request_index.get_indexer(keys).astype(np.int64)

    @cached_property
    def _request_index(self) -> pd.Index:
        index: pd.Index = pd.Index(self.object * len(self.clusters) + self.group)
        return index

    def match_rules(self, rules: pd.DataFrame) -> Iterator[tuple[bool, Ints, Ints]]:
        """Yield for each rule whether it names no link, its objects and its links."""
        bitrates = self.objects["bitrate_kbps"].to_numpy(float)
        for rule in rules.itertuples():
            objects, links = np.ones(len(self.objects), dtype=bool), np.ones(len(self.links), dtype=bool)
            if rule.channel != "*":
                objects &= (self.objects["channel"] == rule.channel).to_numpy()
            if rule.bitrate_kbps != "*":
                objects &= np.isclose(bitrates, float(str(rule.bitrate_kbps)))
            for column, end in (("tail", rule.tail), ("head", rule.head)):
                if end != "*":
                    links &= (self.links[column] == end).to_numpy()
            is_everywhere = bool(rule.tail == "*" and rule.head == "*")
            yield is_everywhere, np.flatnonzero(objects), np.flatnonzero(links)

    @cached_property
    def forbidden_pairs(self) -> Bools | None:
        """(O, L) True where an object must not cross a link; None where nothing is forbidden."""
        if not len(self.forbidden):
            return None
        mask = np.zeros((len(self.objects), len(self.links)), dtype=bool)
        for _, objects, links in self.match_rules(self.forbidden):
            mask[np.ix_(objects, links)] = True
        return mask

    @cached_property
    def pinned_requests(self) -> Ints:
        """Requests that must be served."""
        is_pinned = np.zeros(len(self.requests), dtype=bool)
        for is_everywhere, objects, _ in self.match_rules(self.pinned):
            if is_everywhere:
                is_pinned |= np.isin(self.object, objects)
        return np.flatnonzero(is_pinned)

    @cached_property
    def pinned_links(self) -> Ints:
        """(P, 2) objects and the links that each must cross."""
        pairs: set[tuple[Any, ...]] = {
            (o, link)
            for is_everywhere, objects, links in self.match_rules(self.pinned)
            if not is_everywhere
            for o in objects.tolist()
            for link in links.tolist()
        }
        return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
