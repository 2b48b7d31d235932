"""The problem of system `livevideo`: channels that sources hold, and client groups that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import InputError
from planner.tables import adopt
from planner_models.livevideo import faults, rules
from planner_models.livevideo import tiers as order
from planner_models.livevideo.schema import (
    FORBIDDEN,
    HOLDERS,
    OPTIONAL_TABLES,
    PINNED,
    TABLES,
    default_settings,
    empty,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveVideo:
    """Video objects, the clusters that may carry them, and the client groups that ask for them.

    clusters   one row a cluster: cluster, tier, latitude?, longitude?
    links      one row a link: tail, head, capacity_mbps, cost, latency_ms
    objects    one row a channel and bitrate: channel, bitrate_kbps, priority
    requests   one row a group and object: group, channel, bitrate_kbps, clients, arrival_s?
    holders    one row a channel and source: channel, source; no row: every source has the channel
    pinned, forbidden  rules: channel, bitrate_kbps, tail, head, each a value or *
    settings   one row: service_weight, cost_weight, chunk_s
    lost       whether a group without a link, or a channel without a path, is an error; what has
               failed makes such groups, and their requests go "unserved"

    Below, C, L, O and Q are the numbers of clusters, links, objects and requests, meant by row.
    InputError with every fault: values out of range, unknown clusters, objects or sources, links
    that do not lead from a tier to the next, tiers in a cycle, groups without a link, bitrates
    above the capacity of every link, channels that reach none who ask, contradicting rules.
    """

    clusters: pd.DataFrame
    links: pd.DataFrame
    objects: pd.DataFrame
    requests: pd.DataFrame
    holders: pd.DataFrame = field(default_factory=lambda: empty(HOLDERS))
    pinned: pd.DataFrame = field(default_factory=lambda: empty(PINNED))
    forbidden: pd.DataFrame = field(default_factory=lambda: empty(FORBIDDEN))
    settings: pd.DataFrame = field(default_factory=default_settings)
    lost: Literal["error", "unserved"] = "error"

    def __post_init__(self) -> None:
        found = adopt(self, TABLES) or faults.find(self)
        if found:
            raise InputError(*found)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> LiveVideo:
        """The problem in the tables clusters, links, objects, requests and those that may be absent."""
        given: dict[str, Any] = {table.name: tables[table.name] for table in TABLES if table.name in tables}
        return cls(**given)

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that make this problem again."""
        frames = {table.name: getattr(self, table.name).reset_index(drop=True) for table in TABLES}
        kept = {name: frame for name, frame in frames.items() if len(frame) or name not in OPTIONAL_TABLES}
        return {**kept, "settings": frames["settings"]}

    def size(self) -> dict[str, int]:
        """Numbers of clusters, links, channels, objects and requests."""
        return {
            "clusters": len(self.clusters),
            "links": len(self.links),
            "channels": int(self.objects["channel"].nunique()),
            "objects": len(self.objects),
            "requests": len(self.requests),
        }

    def with_requests(self, requests: pd.DataFrame) -> LiveVideo:
        """The same network and objects with other requests."""
        return replace(self, requests=requests)

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def service_weight(self) -> float:
        """ws of Fig. 4.8, per unit of priority."""
        return float(self.settings["service_weight"].iloc[0])

    @cached_property
    def cost_weight(self) -> float:
        """wc of Fig. 4.8, per unit of cost x Mbit/s."""
        return float(self.settings["cost_weight"].iloc[0])

    @cached_property
    def chunk_s(self) -> float:
        """Length of a chunk, s."""
        return float(self.settings["chunk_s"].iloc[0])

    @cached_property
    def tiers(self) -> list[str]:
        """The tiers from the sources to the groups."""
        return order.chain(order.joined(self)) or sorted(set(self.clusters["tier"]))

    @cached_property
    def level(self) -> NDArray[np.int64]:
        """(C,) 0 for sources up to len(tiers) - 1 for groups."""
        place = {tier: i for i, tier in enumerate(self.tiers)}
        return np.array([place.get(tier, -1) for tier in self.clusters["tier"]], dtype=np.int64)

    @cached_property
    def tail(self) -> NDArray[np.int64]:
        """(L,) cluster where each link starts."""
        return self.places(self.links["tail"])

    @cached_property
    def head(self) -> NDArray[np.int64]:
        """(L,) cluster where each link ends."""
        return self.places(self.links["head"])

    @cached_property
    def capacity_mbps(self) -> NDArray[np.float64]:
        """(L,)"""
        return self.links["capacity_mbps"].to_numpy(float)

    @cached_property
    def cost(self) -> NDArray[np.float64]:
        """(L,) price per Mbit/s."""
        return self.links["cost"].to_numpy(float)

    @cached_property
    def latency_ms(self) -> NDArray[np.float64]:
        """(L,) one-way delay."""
        return self.links["latency_ms"].to_numpy(float)

    @cached_property
    def bitrate_mbps(self) -> NDArray[np.float64]:
        """(O,) in Mbit/s, the unit of capacities."""
        return self.objects["bitrate_kbps"].to_numpy(float) / 1000.0

    @cached_property
    def priority(self) -> NDArray[np.float64]:
        """(O,)"""
        return self.objects["priority"].to_numpy(float)

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """(Q,) cluster that asks."""
        return self.places(self.requests["group"])

    @cached_property
    def object(self) -> NDArray[np.int64]:
        """(Q,) object asked for."""
        return self.objects_of(self.requests["channel"], self.requests["bitrate_kbps"])

    @cached_property
    def clients(self) -> NDArray[np.float64]:
        """(Q,) how many ask."""
        return self.requests["clients"].to_numpy(float)

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """(Q,) worth of serving each request: ws x priority x clients."""
        return np.asarray(self.service_weight * self.priority[self.object] * self.clients)

    @cached_property
    def arrival_s(self) -> NDArray[np.float64]:
        """(Q,) when each request comes; without times, in the table's order over one minute."""
        if "arrival_s" in self.requests:
            return self.requests["arrival_s"].to_numpy(float)
        count = len(self.requests)
        return np.asarray(60.0 * np.arange(count) / max(count, 1))

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """(O, S) whether each source has each object; S sources in the order of `sources`."""
        held = np.ones((len(self.objects), len(self.sources)), dtype=bool)
        if len(self.holders):
            place = {int(cluster): s for s, cluster in enumerate(self.sources)}
            channels: dict[str, list[int]] = {}
            rows = zip(self.holders["channel"], self.places(self.holders["source"]).tolist(), strict=True)
            for channel, cluster in rows:
                channels.setdefault(channel, []).append(place[cluster])
            for o, channel in enumerate(self.objects["channel"]):
                if channel in channels:
                    held[o] = False
                    held[o, channels[channel]] = True
        return held

    @cached_property
    def sources(self) -> NDArray[np.int64]:
        """(S,) clusters of the first tier."""
        return np.flatnonzero(self.level == 0)

    @cached_property
    def link_labels(self) -> list[str]:
        """`tail->head` for each link."""
        return [f"{t}->{h}" for t, h in zip(self.links["tail"], self.links["head"], strict=True)]

    @cached_property
    def object_labels(self) -> list[str]:
        """`channel/bitrate` for each object."""
        rows = zip(self.objects["channel"], self.objects["bitrate_kbps"], strict=True)
        return [f"{channel}/{bitrate:g}" for channel, bitrate in rows]

    @cached_property
    def cluster_places(self) -> pd.Index:
        """Turns names of clusters into rows of `clusters`."""
        places: pd.Index = pd.Index(self.clusters["cluster"])
        return places

    @cached_property
    def _object_places(self) -> pd.MultiIndex:
        return pd.MultiIndex.from_frame(self.objects[["channel", "bitrate_kbps"]])

    @cached_property
    def _link_places(self) -> pd.Index:
        places: pd.Index = pd.Index(self.tail * len(self.clusters) + self.head)
        return places

    def objects_of(self, channel: pd.Series, bitrate_kbps: pd.Series) -> NDArray[np.int64]:
        """The row of each object; -1 for unknown."""
        if not len(channel):
            return np.zeros(0, dtype=np.int64)
        keys = pd.MultiIndex.from_arrays([channel.astype(str), bitrate_kbps.astype(float)])
        return self._object_places.get_indexer(keys).astype(np.int64)

    def links_of(self, tail: pd.Series, head: pd.Series) -> NDArray[np.int64]:
        """The row of each link; -1 for unknown."""
        one, other = self.places(tail), self.places(head)
        keys = np.where((one >= 0) & (other >= 0), one * len(self.clusters) + other, -1)
        return self._link_places.get_indexer(pd.Index(keys)).astype(np.int64)

    def places(self, names: pd.Series) -> NDArray[np.int64]:
        """The row of each cluster; -1 for unknown."""
        return self.cluster_places.get_indexer(pd.Index(names.astype(str))).astype(np.int64)

    # --- rules ----------------------------------------------------------------------------

    @cached_property
    def forbidden_pairs(self) -> NDArray[np.bool_] | None:
        """(O, L) True where an object must not cross a link; None where nothing is forbidden."""
        return rules.forbidden_pairs(self)

    @cached_property
    def pinned_requests(self) -> NDArray[np.int64]:
        """Requests that must be served."""
        return rules.pinned_requests(self)

    @cached_property
    def pinned_links(self) -> NDArray[np.int64]:
        """(P, 2) objects and the links that each must cross."""
        return rules.pinned_links(self)
