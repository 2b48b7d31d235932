"""The problem of system `livevideo`: channels that sources hold, and client groups that ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import InputError, did_you_mean
from planner.tables import Table, adopt, few, file_name, label, number, row_name, strangers

CLUSTERS: Final = Table(
    name="clusters",
    about="a cluster of servers, or a client group (the clients of one city and AS), and its tier",
    columns={
        "cluster": label("its name"),
        "tier": label("its tier, e.g. source, reflector, edge, group; links tell the tiers' order"),
        "latitude": number("degrees north", at_least=-90, at_most=90, optional=True),
        "longitude": number("degrees east", at_least=-180, at_most=180, optional=True),
    },
    key=("cluster",),
)
LINKS: Final = Table(
    name="links",
    about="a one-way overlay link from a cluster to one of the next tier",
    columns={
        "tail": label("cluster that sends"),
        "head": label("cluster that receives"),
        "capacity_mbps": number("most video, Mbit/s", more_than=0),
        "cost": number("price of carrying video, per Mbit/s", at_least=0, optional=True, default=0.0),
        "latency_ms": number("one-way delay, ms", at_least=0, optional=True, default=0.0),
    },
    key=("tail", "head"),
)
OBJECTS: Final = Table(
    name="objects",
    about="a video object: a channel at one of its bitrates",
    columns={
        "channel": label("its channel"),
        "bitrate_kbps": number("its bitrate, kbit/s", more_than=0),
        "priority": number("worth of serving it to one client", more_than=0, optional=True, default=1.0),
    },
    key=("channel", "bitrate_kbps"),
)
REQUESTS: Final = Table(
    name="requests",
    about="clients of one group that ask for a channel at a bitrate",
    columns={
        "group": label("client group that asks"),
        "channel": label("channel asked for"),
        "bitrate_kbps": number("bitrate asked for, kbit/s", more_than=0),
        "clients": number("how many clients ask", more_than=0, optional=True, default=1.0),
        "arrival_s": number(
            "when the first of them asks, s from the start of the window", at_least=0, optional=True
        ),
    },
    key=("group", "channel", "bitrate_kbps"),
    may_be_empty=True,
)
HOLDERS: Final = Table(
    name="holders",
    about="a source that has a channel; channels without a row are at every source",
    columns={"channel": label("the channel"), "source": label("cluster of the first tier")},
    key=("channel", "source"),
    may_be_empty=True,
)
_RULE: Final[dict[str, Any]] = {
    "channel": label("a channel, or * for all"),
    "bitrate_kbps": label("a bitrate in kbit/s, or * for all"),
    "tail": label("where a link starts, or * for all"),
    "head": label("where a link ends, or * for all"),
}
PINNED: Final = Table(
    name="pinned",
    about="objects that must be served to all who ask (tail and head *), or must cross a link",
    columns=_RULE,
    may_be_empty=True,
)
FORBIDDEN: Final = Table(
    name="forbidden",
    about="objects that must not cross a link; * stands for all",
    columns=_RULE,
    may_be_empty=True,
)
SETTINGS: Final = Table(
    name="settings",
    about="one row: what serving and carrying are worth to the operator, and the length of a chunk",
    columns={
        "service_weight": number("worth of one unit of priority served", at_least=0),
        "cost_weight": number("worth of one unit of cost x Mbit/s saved", at_least=0),
        "chunk_s": number("length of a chunk, s", more_than=0, optional=True, default=2.0),
    },
)
TABLES: Final = (CLUSTERS, LINKS, OBJECTS, REQUESTS, HOLDERS, PINNED, FORBIDDEN, SETTINGS)
OPTIONAL_TABLES: Final = ("holders", "pinned", "forbidden", "settings")

SERVICE_WEIGHT: Final = 1.0
COST_WEIGHT: Final = 1e-4


def empty(table: Table) -> pd.DataFrame:
    """The table without rows."""
    return pd.DataFrame({name: pd.Series(dtype=str) for name in table.columns})


def default_settings() -> pd.DataFrame:
    """Service weight 1 and cost weight 1e-4, so that a path of cost 60 at 30 Mbit/s costs 0.18."""
    return pd.DataFrame({"service_weight": [SERVICE_WEIGHT], "cost_weight": [COST_WEIGHT], "chunk_s": [2.0]})


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
        faults = adopt(self, TABLES)
        for step in (
            self._settings_faults,
            self._unknown_names,
            self._tier_faults,
            self._lost_groups,
            self._lost_objects,
            self._rule_faults,
        ):
            if not faults:
                faults += step()
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> LiveVideo:
        """The problem in the tables clusters, links, objects, requests and those that may be absent."""
        given: dict[str, Any] = {table.name: tables[table.name] for table in TABLES if table.name in tables}
        return cls(**given)

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that make this problem again."""
        frames = {table.name: getattr(self, table.name).reset_index(drop=True) for table in TABLES}
        return {
            name: frame
            for name, frame in frames.items()
            if len(frame) or name in ("clusters", "links", "objects", "requests", "settings")
        }

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
        return _chain(self._tier_links()) or sorted(set(self.clusters["tier"]))

    @cached_property
    def level(self) -> NDArray[np.int64]:
        """(C,) 0 for sources up to len(tiers) - 1 for groups."""
        place = {tier: i for i, tier in enumerate(self.tiers)}
        return np.array([place.get(tier, -1) for tier in self.clusters["tier"]], dtype=np.int64)

    @cached_property
    def tail(self) -> NDArray[np.int64]:
        """(L,) cluster where each link starts."""
        return self._places(self.links["tail"])

    @cached_property
    def head(self) -> NDArray[np.int64]:
        """(L,) cluster where each link ends."""
        return self._places(self.links["head"])

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
        return self._places(self.requests["group"])

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
            rows = zip(self.holders["channel"], self._places(self.holders["source"]).tolist(), strict=True)
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
        one, other = self._places(tail), self._places(head)
        keys = np.where((one >= 0) & (other >= 0), one * len(self.clusters) + other, -1)
        return self._link_places.get_indexer(pd.Index(keys)).astype(np.int64)

    def _places(self, names: pd.Series) -> NDArray[np.int64]:
        return self.cluster_places.get_indexer(pd.Index(names.astype(str))).astype(np.int64)

    # --- rules ----------------------------------------------------------------------------

    @cached_property
    def forbidden_pairs(self) -> NDArray[np.bool_] | None:
        """(O, L) True where an object must not cross a link; None where nothing is forbidden."""
        if not len(self.forbidden):
            return None
        mask = np.zeros((len(self.objects), len(self.links)), dtype=bool)
        for objects, links in self._rules(self.forbidden):
            mask[np.ix_(objects, links)] = True
        return mask

    @cached_property
    def pinned_requests(self) -> NDArray[np.int64]:
        """Requests that must be served."""
        served = np.zeros(len(self.requests), dtype=bool)
        for objects, links in self._rules(self.pinned):
            if len(links) == len(self.links):
                served |= np.isin(self.object, objects)
        return np.flatnonzero(served)

    @cached_property
    def pinned_links(self) -> NDArray[np.int64]:
        """(P, 2) objects and the links that each must cross."""
        pairs = [
            (o, link)
            for objects, links in self._rules(self.pinned)
            if len(links) < len(self.links)
            for o in objects.tolist()
            for link in links.tolist()
        ]
        return np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)

    def _rules(self, frame: pd.DataFrame) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Objects and links that each rule is of."""
        channels, bitrates = self.objects["channel"].to_numpy(), self.objects["bitrate_kbps"].to_numpy(float)
        tails, heads = self.links["tail"].to_numpy(), self.links["head"].to_numpy()
        for rule in frame.itertuples():
            wanted = np.ones(len(channels), dtype=bool)
            if rule.channel != "*":
                wanted &= channels == rule.channel
            if rule.bitrate_kbps != "*":
                wanted &= np.isclose(bitrates, float(str(rule.bitrate_kbps)))
            over = np.ones(len(tails), dtype=bool)
            if rule.tail != "*":
                over &= tails == rule.tail
            if rule.head != "*":
                over &= heads == rule.head
            yield np.flatnonzero(wanted), np.flatnonzero(over)

    # --- validation -----------------------------------------------------------------------

    def _settings_faults(self) -> Iterator[str]:
        if len(self.settings) != 1:
            yield f"{file_name(self.settings, 'settings')}: has {len(self.settings)} rows, must have one"

    def _unknown_names(self) -> Iterator[str]:
        for table, column in (
            ("links", "tail"),
            ("links", "head"),
            ("requests", "group"),
            ("holders", "source"),
        ):
            frame: pd.DataFrame = getattr(self, table)
            yield from strangers(frame, table, column, self.cluster_places, "no cluster")
        unknown = np.flatnonzero(self.object < 0).tolist()
        faults = []
        for row in unknown[:6]:
            channel, bitrate = self.requests["channel"].iloc[row], self.requests["bitrate_kbps"].iloc[row]
            known = self.objects.loc[self.objects["channel"] == channel, "bitrate_kbps"]
            if len(known):
                hint = f"; '{channel}' has " + ", ".join(f"{rate:g}" for rate in known.head(8)) + " kbit/s"
            else:
                hint = did_you_mean(channel, set(self.objects["channel"]))
            faults.append(
                f"{row_name(self.requests, 'requests', row)}: asks for an unknown object, "
                f"channel '{channel}' at {bitrate:g} kbit/s{hint}"
            )
        yield from few(
            faults, file_name(self.requests, "requests"), "for an unknown object", count=len(unknown)
        )
        channels = set(self.objects["channel"])
        faults = [
            f"{row_name(self.holders, 'holders', row)}: channel '{channel}' is no channel of the objects"
            + did_you_mean(channel, channels)
            for row, channel in enumerate(self.holders["channel"])
            if channel not in channels
        ]
        yield from few(faults, file_name(self.holders, "holders"), "with an unknown channel")

    def _tier_links(self) -> dict[tuple[str, str], int]:
        """The pairs of tiers that links join, with the first link of each."""
        tier = self.clusters["tier"].to_numpy()
        pairs = pd.DataFrame({"one": tier[self.tail], "other": tier[self.head]})
        places = np.flatnonzero(~pairs.duplicated().to_numpy()).tolist()
        return {(str(pairs["one"].iloc[row]), str(pairs["other"].iloc[row])): row for row in places}

    def _tier_faults(self) -> Iterator[str]:
        pairs = self._tier_links()
        where = file_name(self.links, "links")
        for (one, other), row in pairs.items():
            if one == other:
                where = row_name(self.links, "links", row)
                yield f"{where}: joins two clusters of tier '{one}', must lead to the next"
                return
        if cycle := _cycle(pairs):
            yield f"{where}: the tiers form a cycle: " + " -> ".join(cycle)
            return
        chain = _chain(pairs)
        if chain is None:
            for (one, other), row in pairs.items():
                longer = [p for p in pairs if p[0] == one and p[1] != other]
                if longer:
                    yield (
                        f"{row_name(self.links, 'links', row)}: "
                        f"leads from tier '{one}' to '{other}', other links "
                        f"from '{one}' to '{longer[0][1]}': a tier must lead to one next tier only"
                    )
                    return
            yield f"{where}: the tiers must form one chain, found " + ", ".join(f"{a}->{b}" for a, b in pairs)
            return
        alone = sorted(set(self.clusters["tier"]) - set(chain))
        if alone:
            yield f"{file_name(self.clusters, 'clusters')}: no link joins tier '{alone[0]}' to another"
            return
        level = self.level
        for frame, table, column, wanted in (
            (self.requests, "requests", "group", len(chain) - 1),
            (self.holders, "holders", "source", 0),
        ):
            places = self._places(frame[column])
            faults = [
                f"{row_name(frame, table, row)}: {column} '{frame[column].iloc[row]}' is of tier "
                f"'{chain[level[places[row]]]}', must be of tier '{chain[wanted]}'"
                for row in np.flatnonzero(level[places] != wanted).tolist()
            ]
            yield from few(faults, file_name(frame, table), f"with a {column} of another tier")

    def _lost_groups(self) -> Iterator[str]:
        if self.lost == "unserved":
            return
        fed = np.zeros(len(self.clusters), dtype=bool)
        fed[self.head] = True
        lost = np.flatnonzero(~fed & (self.level == len(self.tiers) - 1))
        above = self.tiers[-2] if len(self.tiers) > 1 else "?"
        faults = [
            f"{row_name(self.clusters, 'clusters', row)}: group '{self.clusters['cluster'].iloc[row]}' "
            f"has no link from any cluster of tier '{above}'"
            for row in lost.tolist()
        ]
        yield from few(faults, file_name(self.clusters, "clusters"), "of groups without a link")

    def _lost_objects(self) -> Iterator[str]:
        if self.lost == "unserved" or not len(self.requests):
            return
        largest = float(self.capacity_mbps.max())
        asked = np.unique(self.object)
        above = asked[self.bitrate_mbps[asked] > largest]
        where = file_name(self.objects, "objects")
        yield from few(
            [
                f"{row_name(self.objects, 'objects', o)}: "
                f"bitrate_kbps {1000 * self.bitrate_mbps[o]:g} is above "
                f"the capacity of every link (at most {1000 * largest:g} kbit/s)"
                for o in above.tolist()
            ],
            where,
            "with a bitrate above every link",
        )
        faults = []
        for o in np.setdiff1d(asked[~self.reached[asked]], above).tolist():
            channel = self.objects["channel"].iloc[o]
            faults.append(
                f"{row_name(self.objects, 'objects', o)}: channel '{channel}' is unreachable: "
                f"no path of links with {1000 * self.bitrate_mbps[o]:g} kbit/s "
                "from a source that has it to a group that asks for it"
            )
        yield from few(faults, where, "of unreachable channels")

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """(O,) whether some group that asks for the object can be reached from a source that has it."""
        reached = np.zeros(len(self.objects), dtype=bool)
        patterns, kind = np.unique(self.held, axis=0, return_inverse=True)
        for bitrate in np.unique(self.bitrate_mbps[self.object]).tolist():
            wide = self.capacity_mbps >= bitrate
            for p in range(len(patterns)):
                on = np.zeros(len(self.clusters), dtype=bool)
                on[self.sources[patterns[p]]] = True
                for step in range(len(self.tiers) - 1):
                    use = wide & on[self.tail] & (self.level[self.tail] == step)
                    on[self.head[use]] = True
                mine = (self.bitrate_mbps[self.object] == bitrate) & (kind.ravel()[self.object] == p)
                reached[self.object[mine & on[self.group]]] = True
        return reached

    def _rule_faults(self) -> Iterator[str]:  # noqa: C901
        columns = {
            "channel": set(self.objects["channel"]),
            "tail": set(self.clusters["cluster"]),
            "head": set(self.clusters["cluster"]),
        }
        for table in ("pinned", "forbidden"):
            frame: pd.DataFrame = getattr(self, table)
            if not len(frame):
                continue
            faults = []
            for row, rule in enumerate(frame.to_dict(orient="records")):
                where = row_name(frame, table, row)
                for column, known in columns.items():
                    if rule[column] != "*" and rule[column] not in known:
                        faults.append(
                            f"{where}: {column} '{rule[column]}' is unknown"
                            + did_you_mean(rule[column], known)
                        )
                try:
                    rule["bitrate_kbps"] == "*" or float(rule["bitrate_kbps"])
                except ValueError:
                    faults.append(f"{where}: bitrate_kbps is '{rule['bitrate_kbps']}', must be a number or *")
            if not faults:
                for row, (objects, links) in enumerate(self._rules(frame)):
                    what = "object" if not len(objects) else "link" if not len(links) else ""
                    if what:
                        faults.append(f"{row_name(frame, table, row)}: there is no such {what}")
            yield from few(faults, file_name(frame, table), "that name nothing")
            if faults:
                return
        if self.forbidden_pairs is None:
            return
        for o, link in self.pinned_links.tolist():
            if self.forbidden_pairs[o, link]:
                yield f"{self.object_labels[o]} on {self.link_labels[link]} is both pinned and forbidden"
                return


def _chain(pairs: Mapping[tuple[str, str], int]) -> list[str] | None:
    """The tiers in the order of the links between them; None where they form no single chain."""
    after = dict(pairs.keys())
    if len(after) != len(pairs):
        return None
    first = set(after) - set(after.values())
    if len(first) != 1:
        return None
    chain = [first.pop()]
    while chain[-1] in after and len(chain) <= len(after):
        chain.append(after[chain[-1]])
    return chain if len(chain) == len(after) + 1 and len(set(chain)) == len(chain) else None


def _cycle(pairs: Mapping[tuple[str, str], int]) -> list[str] | None:
    """Tiers that lead back to the first of them."""
    after: dict[str, list[str]] = {}
    for one, other in pairs:
        after.setdefault(one, []).append(other)
    for start in after:
        paths = [[start]]
        seen: set[str] = set()
        while paths:
            path = paths.pop()
            for tier in after.get(path[-1], []):
                if tier == start:
                    return [*path, tier]
                if tier not in seen:
                    seen.add(tier)
                    paths.append([*path, tier])
    return None
