"""The plan of system `brokering`: the clients of each kind in each cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner_models.brokering.problem.problem import Brokering
from planner_models.brokering.problem.schema import PLAN_TABLES

KEY: Final = ("location", "isp", "content", "bitrate_kbps", "cluster")


@dataclass(frozen=True, kw_only=True)
class MessageCounts:
    """Numbers of messages behind one plan, over all brokers and rounds.

    rounds    rounds of messages between a broker and all CDNs, over all brokers
    shares    kinds of clients that brokers share with every CDN
    offers    clusters on offer, by kind of client where these are shared, else by location
    figures   number of figures of an offer: performance, price, capacity
    accepted  offers that the plan uses
    """

    rounds: int
    shares: int
    offers: int
    figures: int
    accepted: int

    @classmethod
    def of(cls, problem: Brokering, assignments: pd.DataFrame) -> MessageCounts | None:
        """Count the messages behind an observed problem and its plan; None for a true problem."""
        announcement = problem.announcement
        if announcement is None:
            return None
        on_offer = problem.offered.sum(axis=1)
        if announcement.by_client:
            rows = problem.location[problem.count > 0]
            shares, offers, accepted = len(rows), int(on_offer[rows].sum()), len(assignments)
        else:
            pairs = assignments[["location", "cluster"]].drop_duplicates()
            shares, offers, accepted = 0, int(on_offer.sum()), len(pairs)
        figures = announcement.figures
        return cls(rounds=1, shares=shares, offers=offers, figures=figures, accepted=accepted)

    @classmethod
    def total(cls, parts: Sequence[MessageCounts | None]) -> MessageCounts | None:
        """Return the messages of several brokers or rounds together; None where one is unknown."""
        counted = [count for count in parts if count is not None]
        if not counted or len(counted) < len(parts):
            return None
        return cls(
            rounds=sum(count.rounds for count in counted),
            shares=sum(count.shares for count in counted),
            offers=sum(count.offers for count in counted),
            figures=max(count.figures for count in counted),
            accepted=sum(count.accepted for count in counted),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """Clients by cluster.

    assignments     location, isp, content, bitrate_kbps, cluster, clients
    shed            location, isp, content, bitrate_kbps, clients that are left without a cluster on purpose
    rounds          round, overbooked, withdrawn, where the protocol took several; else empty
    offers          cluster, markup, promise, where CDNs learn how to bid; else empty
    traffic         window, cdn, region, mbps of earlier windows, by contract; empty in the first
    message_counts  messages between brokers and CDNs behind it; None where unknown
    """

    assignments: pd.DataFrame
    shed: pd.DataFrame | None = None
    rounds: pd.DataFrame | None = None
    offers: pd.DataFrame | None = None
    traffic: pd.DataFrame | None = None
    message_counts: MessageCounts | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        others = {table.name: getattr(self, table.name) for table in PLAN_TABLES[1:]}
        empty = {table.name: pd.DataFrame(columns=list(table.columns)) for table in PLAN_TABLES[1:]}
        present = {name: frame for name, frame in others.items() if frame is not None}
        return {"assignments": self.assignments, **empty, **present}

    def diff(self, other: Assignment) -> pd.DataFrame:
        """Return the rows that differ, with the clients that `other` has more (positive) or fewer."""
        before, after = (plan.assignments.groupby(list(KEY))["clients"].sum() for plan in (self, other))
        change = after.sub(before, fill_value=0.0)
        return change[change != 0].rename("clients").reset_index()


def from_tables(problem: Brokering, tables: Mapping[str, pd.DataFrame]) -> Assignment:  # noqa: ARG001
    """Return the plan in tables made elsewhere."""
    return Assignment(**{table.name: tables.get(table.name) for table in PLAN_TABLES})  # type: ignore[arg-type]


def from_groups(problem: Brokering, assigned: Any) -> Assignment:
    """Return the plan with those clients of each group in each cluster.

    assigned  (G, C) sparse array of whole numbers whose rows add up to the groups' clients; in one more
              column, (G, C + 1), the clients that are shed

    Rows of clients in one group fill its clusters one after the other, in the order of the table.
    """
    assigned = assigned.tocsr()
    assigned.sort_indices()
    groups = problem.groups
    rows = np.flatnonzero(groups.of_row >= 0)
    rows = rows[np.argsort(groups.of_row[rows], kind="stable")]
    row, arc, clients = _common_pieces(problem.count[rows], assigned.data.astype(np.int64))
    source, cluster = rows[row], assigned.indices[arc]
    table = problem.clients
    names = np.append(problem.clusters["cluster"].to_numpy(object), "")
    frame = pd.DataFrame(
        {
            **{name: table[name].to_numpy()[source] for name in ("location", "isp", "content")},
            "bitrate_kbps": table["bitrate_kbps"].to_numpy(float)[source],
            "cluster": names[cluster],
            "clients": clients.astype(float),
        }
    )
    shed = None
    if (is_shed := cluster == len(problem.clusters)).any():
        shed = sum_clients(frame[is_shed].drop(columns="cluster"))
        frame = frame[~is_shed].reset_index(drop=True)
    if table.duplicated(list(KEY[:-1])).any():
        frame = sum_clients(frame)
    return Assignment(assignments=frame, shed=shed, message_counts=MessageCounts.of(problem, frame))


def locate_rows(problem: Brokering, plan: Assignment) -> tuple[Ints, Ints, Floats]:
    """Return location and cluster (rows of the problem's tables; -1: unknown) and Mbit/s of each row."""
    frame = plan.assignments
    location = problem.location_index.get_indexer(pd.Index(frame["location"])).astype(np.int64)
    cluster = problem.cluster_index.get_indexer(pd.Index(frame["cluster"])).astype(np.int64)
    return location, cluster, frame["clients"].to_numpy(float) * frame["bitrate_kbps"].to_numpy(float) / 1000


def cluster_traffic(problem: Brokering, plan: Assignment) -> Floats:
    """Return the traffic of a plan in each cluster of the problem, (C,) Mbit/s."""
    _, cluster, mbps = locate_rows(problem, plan)
    is_known = cluster >= 0  # an earlier window may have had other clusters
    return np.bincount(cluster[is_known], weights=mbps[is_known], minlength=len(problem.clusters)).astype(
        float
    )


def read_bids(problem: Brokering, plan: Assignment) -> tuple[Floats, Floats]:
    """Return the markup and promise of each cluster, (C,), in a plan; 1 where CDNs do not learn."""
    if plan.offers is None or plan.offers.empty:
        return np.ones(len(problem.clusters)), np.ones(len(problem.clusters))
    table = plan.offers.set_index("cluster").reindex(problem.clusters["cluster"]).fillna(1.0)
    return table["markup"].to_numpy(float), table["promise"].to_numpy(float)


def sum_clients(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of assignments, or of clients that are shed, with clients summed over equal rows."""
    keys = [name for name in KEY if name in frame]
    return frame.groupby(keys, sort=False)["clients"].sum().reset_index()


def _common_pieces(first: Ints, other: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the common refinement of two partitions: part of either for each piece, and its length."""
    ends = np.cumsum(first), np.cumsum(other)
    cuts = np.unique(np.concatenate([[0], *ends]))
    start, length = cuts[:-1], np.diff(cuts)
    return (
        np.searchsorted(ends[0], start, side="right").astype(np.int64),
        np.searchsorted(ends[1], start, side="right").astype(np.int64),
        length,
    )
