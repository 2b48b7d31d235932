"""Checks an assignment against the raw problem; knows the rules, not the method that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import PlanRejected, did_you_mean
from planner.system import Violations
from planner_models.brokering import restrictions
from planner_models.brokering.assignment import Assignment
from planner_models.brokering.problem import Brokering

TOLERANCE: Final = 1e-9  # of a cluster's capacity: clients are whole, so only sums round


@dataclass(frozen=True, kw_only=True, eq=False)
class Served:
    """What an assignment does, read back from its table; P rows, one for each of the table's.

    kind          (P,) which kind of client: rows of `Kinds`
    location      (P,) row of the problem's locations
    cluster       (P,) row of the problem's clusters
    count         (P,) clients
    bitrate_mbps  (P,) of each client
    load_mbps     (C,) this broker's traffic in each cluster
    """

    kind: NDArray[np.int64]
    location: NDArray[np.int64]
    cluster: NDArray[np.int64]
    count: NDArray[np.int64]
    bitrate_mbps: NDArray[np.float64]
    load_mbps: NDArray[np.float64]


class Kinds:
    """The kinds of clients of a problem: what is the same in all columns is one kind.

    wanted  (K,) clients of each kind
    """

    def __init__(self, problem: Brokering) -> None:
        frame = problem.clients
        self._labels = {name: pd.Index(pd.unique(frame[name])) for name in ("isp", "content")}
        self._labels["location"] = problem.location_places
        self._bitrates = np.unique(frame["bitrate_kbps"].to_numpy(float))
        self._keys, of_row = np.unique(self._key(frame), return_inverse=True)
        self.wanted = np.bincount(of_row.ravel(), weights=problem.count).astype(np.int64)

    def _key(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """(rows,) one number for each kind; -1 for what the problem does not have."""
        bitrate = frame["bitrate_kbps"].to_numpy(float)
        level = np.minimum(np.searchsorted(self._bitrates, bitrate), len(self._bitrates) - 1)
        stranger = self._bitrates[level] != bitrate
        key = level.astype(np.int64)
        for name, index in self._labels.items():
            place = index.get_indexer(pd.Index(frame[name])).astype(np.int64)
            stranger |= place < 0
            key = key * np.int64(len(index)) + place
        return np.where(stranger, -1, key)

    def of(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """(rows,) kind of each row; PlanRejected for one that the problem does not have."""
        key = self._key(frame)
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        stranger = np.flatnonzero((key < 0) | (self._keys[place] != key))
        if len(stranger):
            row = frame.iloc[int(stranger[0])]
            raise PlanRejected(f"assignments row {int(stranger[0]) + 1}: {self.name(row)} are no clients")
        return place.astype(np.int64)

    @staticmethod
    def name(row: Any) -> str:
        """`location/isp/content at 3000 kbit/s`."""
        return f"{row['location']}/{row['isp']}/{row['content']} at {row['bitrate_kbps']:g} kbit/s"


def served(problem: Brokering, plan: Assignment) -> Served:
    """What the plan does; PlanRejected where it is no assignment of whole clients to bids."""
    frame = plan.assignments
    count = frame["clients"].to_numpy(float)
    bad = np.flatnonzero(~np.isfinite(count) | (count < 0) | (count != np.floor(count)))
    if len(bad):
        raise PlanRejected(
            f"assignments row {int(bad[0]) + 1}: clients is {count[bad[0]]}, "
            "must be a whole number, 0 or more"
        )
    kinds = Kinds(problem)
    kind = kinds.of(frame)
    cluster = problem.cluster_places.get_indexer(pd.Index(frame["cluster"])).astype(np.int64)
    if (cluster < 0).any():
        row = int(np.flatnonzero(cluster < 0)[0])
        name = str(frame["cluster"].iloc[row])
        raise PlanRejected(
            f"assignments row {row + 1}: '{name}' is no cluster"
            + did_you_mean(name, problem.clusters["cluster"])
        )
    location = problem.location_places.get_indexer(pd.Index(frame["location"])).astype(np.int64)
    # who is pinned is served there whatever is on offer
    pinned = restrictions.obeyed(frame, problem.clusters, problem.pinned, None)[0]
    without = np.flatnonzero(~problem.offered[location, cluster] & ~pinned & (count > 0))
    if len(without):
        row = int(without[0])
        raise PlanRejected(
            f"assignments row {row + 1}: cluster '{frame['cluster'].iloc[row]}' is not on offer to "
            f"'{frame['location'].iloc[row]}'"
        )
    sent = np.bincount(kind, weights=count, minlength=len(kinds.wanted))
    over = np.flatnonzero(sent > kinds.wanted)
    if len(over):
        row = int(np.flatnonzero(kind == over[0])[0])
        raise PlanRejected(
            f"assignments: {sent[over[0]]:.0f} clients of {kinds.name(frame.iloc[row])} are assigned, "
            f"there are {kinds.wanted[over[0]]}"
        )
    bitrate = frame["bitrate_kbps"].to_numpy(float) / 1000
    load = np.bincount(cluster, weights=count * bitrate, minlength=len(problem.clusters))
    return Served(
        kind=kind,
        location=location,
        cluster=cluster,
        count=count.astype(np.int64),
        bitrate_mbps=bitrate,
        load_mbps=load.astype(float),
    )


def check(problem: Brokering, plan: Assignment) -> Violations:
    """Clusters above their capacity, clients that no cluster serves, and rules that are broken.

    A cluster that the background alone fills is no fault of a plan that sends nobody there.
    PlanRejected where the plan is none: unknown clients or clusters, a cluster that is not on
    offer, parts of clients, more clients than there are.
    """
    done = served(problem, plan)
    total = done.load_mbps + problem.background_mbps
    allowed = problem.capacity_mbps
    over = np.flatnonzero(overloaded(problem, done.load_mbps))
    capacity = Violations.of(
        "capacity",
        where=problem.clusters["cluster"].iloc[over].tolist(),
        amount=total[over],
        allowed=allowed[over],
        unit="Mbit/s",
    )
    sent = np.bincount(done.location, weights=done.count, minlength=len(problem.locations))
    wanted = np.bincount(problem.location, weights=problem.count, minlength=len(problem.locations))
    short = np.flatnonzero(sent < wanted)
    demand = Violations.of(
        "demand",
        where=problem.locations["location"].iloc[short].tolist(),
        amount=sent[short],
        allowed=wanted[short],
        unit="clients",
    )
    _, elsewhere, wrong = restrictions.obeyed(
        plan.assignments, problem.clusters, problem.pinned, problem.forbidden
    )
    return capacity + demand + _against("pinned", plan, elsewhere) + _against("forbidden", plan, wrong)


def _against(limit: str, plan: Assignment, rows: NDArray[np.bool_]) -> Violations:
    """Clients in clusters where a rule does not let them be."""
    frame = plan.assignments[rows]
    names = zip(frame["location"], frame["isp"], frame["content"], frame["cluster"], strict=True)
    return Violations.of(
        limit,
        where=[f"{location}/{isp}/{content} in {cluster}" for location, isp, content, cluster in names],
        amount=frame["clients"].to_numpy(float),
        allowed=np.zeros(len(frame)),
        unit="clients",
    )


def overloaded(problem: Brokering, load_mbps: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(C,) True where this broker sends traffic and the cluster then has more than it can carry."""
    total = load_mbps + problem.background_mbps
    slack = TOLERANCE * np.maximum(total, 1.0)
    return (load_mbps > 0) & (total > problem.capacity_mbps + slack)
