"""Problem of system `cdnrouting`: a network with background traffic, and a CDN's clusters and clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import (
    collect_tables,
    file_name,
    report_unknown_names,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError, did_you_mean
from planner.io.in_memory import take_tables
from planner_models.cdnrouting.problem.network import Network
from planner_models.cdnrouting.problem.schema import DEFAULT_TERMS, OPTIONAL_TABLES, PLACED, TABLES
from planner_models.networks.nodes import find_bad_ends, find_names, nodes_of_links

SHARE_TOLERANCE = 1e-6
KBPS_PER_MBPS = 1000.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Delivery:
    """Clients of a CDN's clusters, over a network that carries other traffic too.

    nodes     node, latitude?, longitude?, x?, y?; None: the ends of links
    links     tail, head, capacity_mbps, weight, cost, latency_ms
    demands   source, target, rate_mbps: background traffic
    clients   location, content, bitrate_kbps, clients
    clusters  cluster, location, capacity_mbps
    places    location, node, share
    holdings  cluster, content; None: each cluster has all content
    ranks     who, location, cluster, rank, price?; None: designs compute ranks
    terms     one row: queueing_ms, performance_weight, cdn_rounds, step; None: the defaults

    Below, N, E, S and G are the numbers of nodes, of links with capacity, of clusters, and of pairs of a
    location and a content with clients; arrays refer to them by row.

    raises   InputError with every fault
    """

    nodes: pd.DataFrame
    links: pd.DataFrame
    demands: pd.DataFrame
    clients: pd.DataFrame
    clusters: pd.DataFrame
    places: pd.DataFrame
    holdings: pd.DataFrame | None = None
    ranks: pd.DataFrame | None = None
    terms: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += [*self._bad_network(), *self._bad_places(), *self._bad_content(), *self._bad_ranks()]
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Delivery:
        """Return the problem in its tables."""
        frames = take_tables(TABLES, tables, optional=OPTIONAL_TABLES)
        if frames.get("nodes") is None and "links" in frames:
            frames["nodes"] = nodes_of_links(frames["links"])
        return cls(**frames)

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of nodes, links, background demands, client groups and clusters."""
        return {
            "nodes": len(self.nodes),
            "links": len(self.links),
            "demands": int((self.demands["rate_mbps"].to_numpy(float) > 0).sum()),
            "groups": len(self.groups),
            "clusters": len(self.clusters),
        }

    # --- other problems -------------------------------------------------------------------

    def with_terms(self, **terms: float) -> Delivery:
        """Return the problem with other values in the table `terms`."""
        frame = self.terms if self.terms is not None and len(self.terms) else pd.DataFrame(index=[0])
        return replace(self, terms=frame.assign(**terms))

    def with_rates(self, background: Floats, clients_mbps: Floats) -> Delivery:
        """Return the problem as it is observed: other background rates, (K,), and rates of groups, (G,)."""
        rates = self.demands.assign(rate_mbps=background)
        row = self._client_group
        factor = np.divide(
            clients_mbps, self.group_mbps, out=np.ones(len(clients_mbps)), where=self.group_mbps > 0
        )
        bitrate = self.clients["bitrate_kbps"].to_numpy(float) * factor[row]
        return replace(self, demands=rates, clients=self.clients.assign(bitrate_kbps=bitrate))

    def require(self, parameter: str, names: Iterable[str], index: pd.Index, noun: str) -> Ints:
        """Return the rows of names in an index; raise InputError for every name that is not in it."""
        requested = list(names)
        faults = [
            f"{parameter}: '{name}' is no {noun}" + did_you_mean(name, index)
            for name in requested
            if name not in index
        ]
        if faults:
            raise InputError(*faults)
        return index.get_indexer(pd.Index(requested, dtype=object)).astype(np.int64)

    # --- network --------------------------------------------------------------------------

    @cached_property
    def node_index(self) -> pd.Index:
        """Index of the nodes' names, which maps a name to its row."""
        index: pd.Index = pd.Index(self.nodes["node"])
        return index

    @cached_property
    def link_labels(self) -> list[str]:
        """(all links) `tail->head`; parallel links are numbered, `tail->head#2`."""
        pairs = zip(self.links["tail"], self.links["head"], self.parallel.tolist(), strict=True)
        return [f"{tail}->{head}" + (f"#{k}" if k > 1 else "") for tail, head, k in pairs]

    @cached_property
    def parallel(self) -> Ints:
        """(all links) 1 for the first link between its ends, 2 for the second, and so on."""
        counted = self.links.groupby(["tail", "head"], observed=True).cumcount()
        return counted.to_numpy(dtype=np.int64) + np.int64(1)

    @cached_property
    def up(self) -> Ints:
        """(E,) rows of links with capacity."""
        return np.flatnonzero(self.links["capacity_mbps"].to_numpy(float) > 0)

    @cached_property
    def network(self) -> Network:
        """The links with capacity as arrays, and the nodes where traffic may end."""
        links = self.links.iloc[self.up].reset_index(drop=True)
        ends = [self._demand_ends[1], self._place_node]
        return Network.of(
            nodes=self.nodes,
            links=links,
            tail=find_names(self.node_index, links["tail"]),
            head=find_names(self.node_index, links["head"]),
            targets=np.unique(np.concatenate(ends)),
        )

    @cached_property
    def _demand_ends(self) -> tuple[Ints, Ints]:
        return (
            find_names(self.node_index, self.demands["source"]),
            find_names(self.node_index, self.demands["target"]),
        )

    @cached_property
    def rate_mbps(self) -> Floats:
        """(K,) background rates."""
        return self.demands["rate_mbps"].to_numpy(float)

    @cached_property
    def is_connected(self) -> Bools:
        """(K,) whether background traffic has a path."""
        source, target = self._demand_ends
        row = np.searchsorted(self.network.targets, target)
        return np.isfinite(self.network.distance[row, source])

    @cached_property
    def background(self) -> Floats:
        """(T, N) background traffic with a path to each target from each node, Mbit/s."""
        matrix = np.zeros((len(self.network.targets), len(self.nodes)))
        source, target = self._demand_ends
        rate = np.where(self.is_connected, self.rate_mbps, 0.0)
        np.add.at(matrix, (np.searchsorted(self.network.targets, target), source), rate)
        return matrix

    # --- CDN ------------------------------------------------------------------------------

    @cached_property
    def cluster_index(self) -> pd.Index:
        """Index of the clusters' names."""
        index: pd.Index = pd.Index(self.clusters["cluster"])
        return index

    @cached_property
    def cluster_labels(self) -> list[str]:
        """(S,) names of the clusters in sentences: `cluster NAME`, or a name with this word in it."""
        names = [str(name) for name in self.cluster_index]
        return [name if "cluster" in name.lower() else f"cluster {name}" for name in names]

    @cached_property
    def capacity_mbps(self) -> Floats:
        """(S,) capacity of each cluster."""
        return self.clusters["capacity_mbps"].to_numpy(float)

    @cached_property
    def location_index(self) -> pd.Index:
        """Index of the places' names, in the order of their first rows."""
        index: pd.Index = pd.Index(pd.unique(self.places["location"].astype(str)))
        return index

    @cached_property
    def _place_node(self) -> Ints:
        return find_names(self.node_index, self.places["node"])

    @cached_property
    def location_share(self) -> sp.csr_array:
        """(L, N) share of the traffic of each place at each node."""
        location = find_names(self.location_index, self.places["location"])
        share = self.places["share"].to_numpy(float)
        total = np.bincount(location, weights=share, minlength=len(self.location_index))
        return sp.csr_array(
            (share / total[location], (location, self._place_node)),
            shape=(len(self.location_index), len(self.nodes)),
        )

    @cached_property
    def groups(self) -> pd.DataFrame:
        """Each location and content with clients: location, content, mbps, clients; sorted by names."""
        clients = self.clients[self.clients["clients"].to_numpy(float) > 0]
        mbps = clients["clients"].to_numpy(float) * clients["bitrate_kbps"].to_numpy(float) / KBPS_PER_MBPS
        frame = pd.DataFrame(
            {
                "location": clients["location"].astype(str),
                "content": clients["content"].astype(str),
                "mbps": mbps,
                "clients": clients["clients"].to_numpy(float),
            }
        )
        grouped: pd.DataFrame = frame.groupby(["location", "content"], as_index=False, sort=True).sum()
        return grouped

    @cached_property
    def _client_group(self) -> Ints:
        """(rows of clients) the group of each; 0 for rows without clients."""
        index = pd.MultiIndex.from_frame(self.groups[["location", "content"]])
        rows = pd.MultiIndex.from_frame(self.clients[["location", "content"]].astype(str))
        return np.maximum(index.get_indexer(rows), 0).astype(np.int64)

    @cached_property
    def group_mbps(self) -> Floats:
        """(G,) traffic that each group requests."""
        return self.groups["mbps"].to_numpy(float)

    @cached_property
    def group_location(self) -> Ints:
        """(G,) place of each group."""
        return find_names(self.location_index, self.groups["location"])

    @cached_property
    def cluster_location(self) -> Ints:
        """(S,) place of each cluster."""
        return find_names(self.location_index, self.clusters["location"])

    @cached_property
    def source_share(self) -> sp.csr_array:
        """(S, N) share of a cluster's traffic that starts at each node."""
        return sp.csr_array(self.location_share[self.cluster_location])

    @cached_property
    def target_share(self) -> sp.csr_array:
        """(G, T) share of a group's traffic that ends at each target."""
        return sp.csr_array(self.location_share[self.group_location][:, self.network.targets])

    @cached_property
    def holds(self) -> Bools:
        """(G, S) whether a cluster has the content that a group requests."""
        if self.holdings is None:
            return np.ones((len(self.groups), len(self.clusters)), dtype=bool)
        contents: pd.Index = pd.Index(pd.unique(self.groups["content"]))
        has = np.zeros((len(self.clusters), len(contents) + 1), dtype=bool)
        content = find_names(contents, self.holdings["content"])
        has[find_names(self.cluster_index, self.holdings["cluster"]), content] = True
        return has[:, find_names(contents, self.groups["content"])].T

    @cached_property
    def is_reachable(self) -> Bools:
        """(G, S) whether all traffic of a group from a cluster has a path."""
        has_path = np.isfinite(self.network.distance).astype(float)
        reached = self.source_share @ has_path.T
        return np.asarray(self.target_share @ reached.T) > 1 - SHARE_TOLERANCE

    @cached_property
    def allowed(self) -> Bools:
        """(G, S) whether a cluster may serve a group: it has capacity, the content, and paths."""
        return self.holds & self.is_reachable & (self.capacity_mbps > 0)

    # --- terms ----------------------------------------------------------------------------

    def _term(self, name: str) -> float:
        if self.terms is None or not len(self.terms) or name not in self.terms:
            return DEFAULT_TERMS[name]
        return float(self.terms[name].iloc[0])

    @property
    def queueing_ms(self) -> float:
        """Delay of a link's queue at half its capacity."""
        return self._term("queueing_ms")

    @property
    def performance_weight(self) -> float:
        """Weight of latency against prices, 0 to 1."""
        return self._term("performance_weight")

    @property
    def cdn_rounds(self) -> int:
        """Moves of the CDN for each of the ISP."""
        return int(self._term("cdn_rounds"))

    @property
    def step(self) -> float:
        """Share of clients that the CDN moves at once."""
        return self._term("step")

    @property
    def offered_mbps(self) -> float:
        """All traffic, of the CDN's clients and background."""
        return float(self.rate_mbps.sum() + self.group_mbps.sum())

    # --- validation -----------------------------------------------------------------------

    def _bad_network(self) -> Iterator[str]:
        """Yield faults of the ends of links and demands."""
        for frame, table, ends in (
            (self.links, "links", ("tail", "head")),
            (self.demands, "demands", ("source", "target")),
        ):
            rows = (find_names(self.node_index, frame[ends[0]]), find_names(self.node_index, frame[ends[1]]))
            yield from find_bad_ends(frame, table, ends, self.node_index, rows)
        if self.terms is not None and len(self.terms) > 1:
            yield f"{file_name(self.terms, 'terms')}: has {len(self.terms)} rows, must have one"

    def _bad_places(self) -> Iterator[str]:
        """Yield faults of places: unknown nodes, shares that do not add up, and places that are missing."""
        yield from report_unknown_names(
            self.places, "places", "node", self.node_index, "no node of the network"
        )
        where = file_name(self.places, "places")
        total = self.places.groupby(self.places["location"].astype(str), sort=False)["share"].sum()
        faults = [
            f"{where}: shares of location '{name}' add up to {amount:g}, must be 1"
            for name, amount in total[(total - 1).abs() > SHARE_TOLERANCE].items()
        ]
        yield from shorten_faults(faults, where, "with shares that do not add up to 1")
        for table in PLACED:
            frame = getattr(self, table)
            yield from report_unknown_names(
                frame, table, "location", self.location_index, f"without node: no location of {where}"
            )

    def _bad_content(self) -> Iterator[str]:
        """Yield faults of clusters and content in `holdings`, and content that no cluster has."""
        if not (self.clients["clients"].to_numpy(float) > 0).any():
            yield f"{file_name(self.clients, 'clients')}: has no clients, one row must have some"
        if self.holdings is None:
            return
        where = file_name(self.holdings, "holdings")
        yield from report_unknown_names(
            self.holdings, "holdings", "cluster", self.cluster_index, "no cluster of the CDN"
        )
        yield from report_unknown_names(
            self.clients,
            "clients",
            "content",
            pd.Index(pd.unique(self.holdings["content"])),
            f"in no cluster of {where}",
        )

    def _bad_ranks(self) -> Iterator[str]:
        """Yield faults of ranks: unknown names, ties, and pairs that are missing."""
        frame = self.ranks
        if frame is None:
            return
        yield from report_unknown_names(
            frame, "ranks", "cluster", self.cluster_index, "no cluster of the CDN"
        )
        yield from report_unknown_names(
            frame,
            "ranks",
            "location",
            self.location_index,
            f"no location of {file_name(self.places, 'places')}",
        )
        yield from report_unknown_names(frame, "ranks", "who", pd.Index(["isp", "cdn"]), "not isp or cdn")
        tied = np.flatnonzero(frame.duplicated(["who", "location", "rank"]).to_numpy())
        faults = [
            f"{row_name(frame, 'ranks', row)}: rank {frame['rank'].iloc[row]:g} of location "
            f"'{frame['location'].iloc[row]}' is there already, must differ"
            for row in tied.tolist()
        ]
        yield from shorten_faults(faults, file_name(frame, "ranks"), "with the rank of another")
        yield from self._missing_ranks(frame)

    def _missing_ranks(self, frame: pd.DataFrame) -> Iterator[str]:
        """Yield a fault for each pair of a place with clients and a cluster that has no rank."""
        present = set(
            zip(
                frame["who"].astype(str),
                frame["location"].astype(str),
                frame["cluster"].astype(str),
                strict=True,
            )
        )
        where = file_name(frame, "ranks")
        faults = [
            f"{where}: has no rank of cluster '{cluster}' for location '{location}' by '{who}'"
            for who in pd.unique(frame["who"].astype(str))
            for location in pd.unique(self.clients["location"].astype(str))
            for cluster in self.clusters["cluster"].astype(str)
            if (who, location, cluster) not in present
        ]
        yield from shorten_faults(faults, where, "missing")
