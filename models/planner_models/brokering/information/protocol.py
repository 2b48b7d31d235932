"""Messages of one round of the decision protocol.

Estimate  CDNs know capacity, cost and performance of their clusters: the problem's own tables
Gather    the broker counts its clients: the problem's groups
Share     `share_messages`: the broker's clients, sent to CDNs
Matching  `problem.cluster_matching`: clusters that each CDN offers
Announce  `bid_messages`: the offers, sent to the broker
Optimize  `designs.broker.assignment.assign`: the broker decides on its observation
Accept    `accept_messages`: the bids that were used

source  Mukerjee 2018, 3.4.1 and Fig. 3.9; formats: 3.6.1
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem.problem import Brokering


def share_messages(problem: Brokering) -> pd.DataFrame:
    """Return one row for each kind of client: its share_id, and its number.

    Columns: share_id, location, isp, content_id, data_size (bitrate of each client, kbit/s), client_count.
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


def bid_messages(observed: Brokering, shares: pd.DataFrame) -> pd.DataFrame:
    """Return the CDNs' bids for `shares`: cluster_id, share_id, performance_estimate, capacity, price.

    observed  the broker's observation, such as `observe.marketplace(problem)`: its offers are by
              location, and so the same for all shares there
    """
    location = observed.location_index.get_indexer(pd.Index(shares["location"]))
    share, cluster = np.nonzero(observed.offered[location])
    location_of = location[share]
    return pd.DataFrame(
        {
            "cluster_id": observed.clusters["cluster"].to_numpy()[cluster],
            "share_id": shares["share_id"].to_numpy()[share],
            "performance_estimate": observed.score[location_of, cluster],
            "capacity": observed.residual_mbps[cluster],
            "price": observed.price[location_of, cluster],
        }
    )


def accept_messages(observed: Brokering, shares: pd.DataFrame, plan: Assignment) -> pd.DataFrame:
    """Return the bids that a plan uses, in the columns of `bid_messages`; capacity is the used Mbit/s."""
    frame = plan.assignments[plan.assignments["clients"] > 0].merge(
        shares.rename(columns={"content_id": "content", "data_size": "bitrate_kbps"}),
        on=["location", "isp", "content", "bitrate_kbps"],
    )
    location = observed.location_index.get_indexer(pd.Index(frame["location"]))
    cluster = observed.cluster_index.get_indexer(pd.Index(frame["cluster"]))
    return pd.DataFrame(
        {
            "cluster_id": frame["cluster"].to_numpy(),
            "share_id": frame["share_id"].to_numpy(),
            "performance_estimate": observed.score[location, cluster],
            "capacity": frame["clients"].to_numpy(float) * frame["bitrate_kbps"].to_numpy(float) / 1000,
            "price": observed.price[location, cluster],
        }
    )
