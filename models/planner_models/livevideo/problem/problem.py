"""Problem of system `livevideo`: channels at sources, and client groups that request them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.tables import validate_fields
from planner.errors import InputError
from planner_models.livevideo.problem import validation
from planner_models.livevideo.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.livevideo.problem.tables import VideoTables


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveVideo(VideoTables):
    """Live video problem: objects, clusters and links that may carry them, and client groups' requests.

    clusters   one row a cluster: cluster, tier, latitude?, longitude?
    links      one row a link: tail, head, capacity_mbps, cost, latency_ms
    objects    one row a channel and bitrate: channel, bitrate_kbps, priority
    requests   one row a group and object: group, channel, bitrate_kbps, clients, arrival_s?
    holders    one row a channel and source: channel, source; no row: every source has the channel
    pinned, forbidden  rules: channel, bitrate_kbps, tail, head, each a value or *
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
        given: dict[str, Any] = {table.name: tables[table.name] for table in TABLES if table.name in tables}
        return cls(**given)

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
