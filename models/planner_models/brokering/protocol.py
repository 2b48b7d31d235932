"""The decision protocol as steps with messages: who tells whom what, in one round.

Estimate  CDNs know capacity, cost and performance of their clusters: the problem's own tables
Gather    the broker counts its clients: the problem's groups
Share     `shares`: what the broker tells of its clients
Matching  `planner_models.brokering.matching`: which clusters a CDN offers
Announce  `bids`: what CDNs tell the broker
Optimize  `market.assign`: the broker decides on what it believes
Accept    `accepts`: the bids that were used

source  Mukerjee 2018, 3.4.1 and Fig. 3.9; formats: 3.6.1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.brokering.assignment import Assignment
from planner_models.brokering.check import served
from planner_models.brokering.problem import Brokering


def shares(problem: Brokering) -> pd.DataFrame:
    """share_id, location, isp, content_id, data_size, client_count: one row for each kind of client.

    data_size is the bitrate of each client, kbit/s.
    """
    rows = problem.clients[problem.clients["clients"] > 0]
    return pd.DataFrame(
        {
            "share_id": np.arange(len(rows)),
            "location": rows["location"].to_numpy(),
            "isp": rows["isp"].to_numpy(),
            "content_id": rows["content"].to_numpy(),
            "data_size": rows["bitrate_kbps"].to_numpy(float),
            "client_count": rows["clients"].to_numpy(np.int64),
        }
    )


def bids(believed: Brokering, told: pd.DataFrame) -> pd.DataFrame:
    """cluster_id, share_id, performance_estimate, capacity, price: what CDNs answer to `told` shares.

    believed  what the broker makes of the bids, such as `sees.marketplace(problem)`: its offers are
              by location, and so the same for all shares there
    """
    place = believed.location_places.get_indexer(pd.Index(told["location"]))
    share, cluster = np.nonzero(believed.offered[place])
    at = place[share]
    return pd.DataFrame(
        {
            "cluster_id": believed.clusters["cluster"].to_numpy()[cluster],
            "share_id": told["share_id"].to_numpy()[share],
            "performance_estimate": believed.score[at, cluster],
            "capacity": believed.free_mbps[cluster],
            "price": believed.price[at, cluster],
        }
    )


def accepts(believed: Brokering, told: pd.DataFrame, plan: Assignment) -> pd.DataFrame:
    """cluster_id, share_id, performance_estimate, capacity, price of the bids that a plan uses.

    capacity is what of it is used, Mbit/s.
    """
    frame = plan.assignments[plan.assignments["clients"] > 0].merge(
        told.rename(columns={"content_id": "content", "data_size": "bitrate_kbps"}),
        on=["location", "isp", "content", "bitrate_kbps"],
    )
    place = believed.location_places.get_indexer(pd.Index(frame["location"]))
    cluster = believed.cluster_places.get_indexer(pd.Index(frame["cluster"]))
    return pd.DataFrame(
        {
            "cluster_id": frame["cluster"].to_numpy(),
            "share_id": frame["share_id"].to_numpy(),
            "performance_estimate": believed.score[place, cluster],
            "capacity": frame["clients"].to_numpy(float) * frame["bitrate_kbps"].to_numpy(float) / 1000,
            "price": believed.price[place, cluster],
        }
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Accept:
    """Accept, added up by cluster: what a CDN needs to bid better the next time.

    load_mbps  (C,) traffic that was accepted
    price      (C,) at what price
    """

    load_mbps: NDArray[np.float64]
    price: NDArray[np.float64]


def accepted(problem: Brokering, plan: Assignment, *, price: NDArray[np.float64]) -> Accept:
    """Accept of a plan whose bids asked `price` (C,)."""
    return Accept(load_mbps=served(problem, plan).load_mbps, price=price)
