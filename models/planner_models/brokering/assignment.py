"""The plan of system `brokering`: how many clients of each kind go to which cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.brokering.problem import Brokering
from planner_models.brokering.tables import PLAN_TABLES


@dataclass(frozen=True, kw_only=True)
class Told:
    """How much is told for one plan: rows over all brokers and rounds.

    times     how often a broker and the CDNs tell each other: once for every broker and round
    shares    kinds of clients that brokers told every CDN of
    offers    clusters on offer, by kind of client where those were told, else by location
    figures   how many of performance, price and capacity an offer has
    accepted  offers that were used
    """

    times: int
    shares: int
    offers: int
    figures: int
    accepted: int

    @classmethod
    def of(cls, problem: Brokering, assignments: pd.DataFrame) -> Told | None:
        """What one broker was told that believes `problem`; None where nothing says how."""
        how = problem.announced
        if how is None:
            return None
        on_offer = problem.offered.sum(axis=1)
        if how.shares:
            rows = problem.location[problem.count > 0]
            shares, offers, accepted = len(rows), int(on_offer[rows].sum()), len(assignments)
        else:
            pairs = assignments[["location", "cluster"]].drop_duplicates()
            shares, offers, accepted = 0, int(on_offer.sum()), len(pairs)
        return cls(times=1, shares=shares, offers=offers, figures=how.figures, accepted=accepted)

    @classmethod
    def together(cls, parts: Sequence[Told | None]) -> Told | None:
        """What is told for several plans, by brokers each for itself or in several rounds."""
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        return cls(
            times=sum(part.times for part in known),
            shares=sum(part.shares for part in known),
            offers=sum(part.offers for part in known),
            figures=max(part.figures for part in known),
            accepted=sum(part.accepted for part in known),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """Clients by cluster.

    assignments  location, isp, content, bitrate_kbps, cluster, clients
    rounds       round, overbooked, withdrawn, where the protocol took several; else empty
    offers       cluster, markup, promise, where CDNs learn how to bid; else empty
    traffic      window, cdn, mbps, charge_per_hour of the windows before; empty in the first
    told         what brokers and CDNs told each other for it; None where that is not known
    """

    assignments: pd.DataFrame
    rounds: pd.DataFrame | None = None
    offers: pd.DataFrame | None = None
    traffic: pd.DataFrame | None = None
    told: Told | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the plan."""
        others = {table.name: getattr(self, table.name) for table in PLAN_TABLES[1:]}
        empty = {table.name: pd.DataFrame(columns=list(table.columns)) for table in PLAN_TABLES[1:]}
        present = {name: frame for name, frame in others.items() if frame is not None}
        return {"assignments": self.assignments, **empty, **present}

    def diff(self, other: Assignment) -> pd.DataFrame:
        """What `other` has more (positive) or fewer clients of; rows that are the same are left out."""
        mine, its = (plan.assignments.groupby(list(KEY))["clients"].sum() for plan in (self, other))
        change = its.sub(mine, fill_value=0.0)
        return change[change != 0].rename("clients").reset_index()


def from_tables(problem: Brokering, tables: Mapping[str, pd.DataFrame]) -> Assignment:  # noqa: ARG001
    """The plan in tables made elsewhere."""
    return Assignment(**{table.name: tables.get(table.name) for table in PLAN_TABLES})  # type: ignore[arg-type]


def of_groups(problem: Brokering, sent: Any) -> Assignment:
    """The plan that sends so many clients of each group to each cluster.

    sent  (G, C) sparse array of whole numbers whose rows add up to the groups' clients

    Rows of clients in one group fill its clusters one after the other, in the order of the table.
    """
    sent = sent.tocsr()
    sent.sort_indices()
    groups = problem.groups
    rows = np.flatnonzero(groups.of_row >= 0)
    rows = rows[np.argsort(groups.of_row[rows], kind="stable")]
    row, arc, clients = _overlaps(problem.count[rows], sent.data.astype(np.int64))
    source = rows[row]
    table = problem.clients
    frame = pd.DataFrame(
        {
            **{name: table[name].to_numpy()[source] for name in ("location", "isp", "content")},
            "bitrate_kbps": table["bitrate_kbps"].to_numpy(float)[source],
            "cluster": problem.clusters["cluster"].to_numpy()[sent.indices[arc]],
            "clients": clients.astype(float),
        }
    )
    alike = table.duplicated(list(KEY[:-1])).any()
    frame = added_up(frame) if alike else frame
    return Assignment(assignments=frame, told=Told.of(problem, frame))


KEY: Final = ("location", "isp", "content", "bitrate_kbps", "cluster")


def added_up(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of assignments with those that differ only in `clients` added up."""
    clients = frame.groupby(list(KEY), sort=False)["clients"].sum()
    return clients.reset_index()


def _overlaps(
    one: NDArray[np.int64], other: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Two ways to cut the same length: for each common piece its part of either, and its length."""
    ends = np.cumsum(one), np.cumsum(other)
    cuts = np.unique(np.concatenate([[0], *ends]))
    start, length = cuts[:-1], np.diff(cuts)
    return (
        np.searchsorted(ends[0], start, side="right").astype(np.int64),
        np.searchsorted(ends[1], start, side="right").astype(np.int64),
        length,
    )
