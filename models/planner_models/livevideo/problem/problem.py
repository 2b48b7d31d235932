"""Problem of system `livevideo`: channels at sources, and client groups that request them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.notes import make_with_notes
from planner.contract.tables import file_name, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_graph, take_table, take_tables, to_graph
from planner_models.livevideo.problem import validation
from planner_models.livevideo.problem.schema import CLUSTERS, LINKS, OPTIONAL_TABLES, REQUESTS, TABLES
from planner_models.livevideo.problem.tables import VideoTables

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveVideo(VideoTables):
    """Live video problem: objects, clusters and links that may carry them, and client groups' requests.

    clusters   one row a cluster: cluster, tier, latitude?, longitude?
    links      one row a link: tail, head, capacity_mbps, cost, latency_ms, bill?
    objects    one row a channel and bitrate: channel, bitrate_kbps, priority
    requests   one row a group and object: group, channel, bitrate_kbps, clients, lowest_kbps?, arrival_s?
    holders    one row a channel and source: channel, source; no row: every source has the channel
    pinned, forbidden  rules: channel, bitrate_kbps, tail, head, each a value or *
    bills      one row a bill of links together: bill, price_per_mbps, percentile, commitment_mbps, cap_mbps?
    samples    one row another window of the month: bill, window, load_mbps
    settings   one row: service_weight, cost_weight, chunk_s

    Requests that no path can carry are no fault: they stay unserved (`validation.report_unreachable`).

    raises  InputError with every fault: values out of range, unknown clusters, objects or sources, links
            that do not lead from a tier to the next, tiers in a cycle, contradicting rules
    """

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES) or validation.find_faults(self)
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> LiveVideo:
        """Build the problem from tables clusters, links, objects, requests and the optional ones."""
        inputs: dict[str, Any] = dict(take_tables(TABLES, tables, optional=OPTIONAL_TABLES))
        problem = cls(**inputs)
        if len(problem.bills) and not problem.has_bills:
            where = file_name(problem.bills, "bills")
            raise InputError(f"{where}: no link is on a bill; name it in column bill of links")
        return problem

    @classmethod
    def from_networkx(
        cls,
        graph: nx.Graph,
        requests: Any,
        *,
        unit: str | None = None,
        capacity: str | None = None,
        cost: str | None = None,
        latency: str | None = None,
        objects: pd.DataFrame | None = None,
        **tables: pd.DataFrame,
    ) -> LiveVideo:
        """Build the problem from a directed networkx graph of nodes with an attribute `tier`.

        requests  data frame with group, channel, bitrate_kbps and clients; or a mapping from (group,
                  channel, bitrate_kbps) to clients
        unit      of capacities without a unit in their name, such as "Gbit/s"; default: none, and the name
                  must have one, as capacity_gbps has
        capacity  edge attribute of the capacity; default: the one named `capacity`, with or without unit
        cost      edge attribute of the price per Mbit/s; default: `cost`, or 0 where there is none
        latency   edge attribute of the delay, ms unless its name says otherwise; default: `latency_ms`
        objects   data frame with channel, bitrate_kbps and priority; default: those requested, priority 1
        tables    other tables by name: holders, pinned, forbidden, settings

        raises    InputError with every fault
        """
        if not graph.is_directed():
            raise InputError("graph: its edges have no direction; video goes one way, from tier to tier")
        attributes = {"capacity_mbps": capacity, "cost": cost, "latency_ms": latency}

        def make() -> LiveVideo:
            clusters, links = take_graph(graph, nodes=CLUSTERS, links=LINKS, attributes=attributes, unit=unit)
            data = requests
            if isinstance(requests, Mapping):
                rows = [(*map(str, key[:2]), key[2], clients) for key, clients in requests.items()]
                data = pd.DataFrame(rows, columns=["group", "channel", "bitrate_kbps", "clients"])
            request_table = take_table(REQUESTS, data, where="requests")
            requested = request_table[["channel", "bitrate_kbps"]].drop_duplicates(ignore_index=True)
            inputs = {
                "clusters": clusters,
                "links": links,
                "objects": requested if objects is None else objects,
                "requests": request_table,
            }
            return cls.from_tables({**inputs, **tables})

        return make_with_notes(make)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return clusters and links as a graph."""
        return to_graph(self.clusters, self.links)

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables from which `from_tables` builds this problem."""
        frames = {table.name: getattr(self, table.name).reset_index(drop=True) for table in TABLES}
        filled = {name: frame for name, frame in frames.items() if len(frame) or name not in OPTIONAL_TABLES}
        return {**filled, "settings": frames["settings"]}

    def size(self) -> dict[str, int]:
        """Return the numbers of clusters, links, channels, objects and requests."""
        return {
            "clusters": len(self.clusters),
            "links": len(self.links),
            "channels": int(self.objects["channel"].nunique()),
            "objects": len(self.objects),
            "requests": len(self.requests),
        }

    def utilization(self, load_mbps: Floats) -> Floats:
        """Return load over capacity of each link, (L,); 0 for links without capacity that carry nothing."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(load_mbps > 0, load_mbps / self.capacity_mbps, 0.0))

    def with_requests(self, requests: pd.DataFrame) -> LiveVideo:
        """Return the problem with other requests on the same network and objects."""
        return replace(self, requests=requests)
