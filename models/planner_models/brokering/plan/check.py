"""Independent check of an assignment against the problem's raw tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import EXACT, exceeds
from planner.errors import PlanRejected, did_you_mean
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem import restrictions, volume_limits
from planner_models.brokering.problem.problem import Brokering
from planner_models.networks.nodes import find_names


@dataclass(frozen=True, kw_only=True, eq=False)
class AssignmentArrays:
    """An assignment as arrays, read from its table of P rows.

    kind          (P,) kind of client: row of `ClientKinds`
    kind_location (K,) row of the problem's locations of each kind
    missing       (K,) clients of each kind that are neither assigned nor listed as shed
    location      (P,) row of the problem's locations
    cluster       (P,) row of the problem's clusters
    count         (P,) clients
    bitrate_mbps  (P,) of each client
    load_mbps     (C,) this broker's traffic in each cluster
    """

    kind: Ints
    kind_location: Ints
    missing: Ints
    location: Ints
    cluster: Ints
    count: Ints
    bitrate_mbps: Floats
    load_mbps: Floats


class ClientKinds:
    """Kinds of clients of a problem: rows that are equal in all columns are one kind.

    demand  (K,) clients of each kind
    first   (K,) first row of `clients` of each kind
    """

    def __init__(self, problem: Brokering) -> None:
        frame = problem.clients
        self._labels = {name: pd.Index(pd.unique(frame[name])) for name in ("isp", "content")}
        self._labels["location"] = problem.location_index
        self._bitrates = np.unique(frame["bitrate_kbps"].to_numpy(float))
        self._keys, self.first, of_row = np.unique(self._key(frame), return_index=True, return_inverse=True)
        self.demand = np.bincount(of_row.ravel(), weights=problem.count).astype(np.int64)

    def _key(self, frame: pd.DataFrame) -> Ints:
        """Return one number for each kind, (rows,); -1 for kinds that the problem does not have."""
        bitrate = frame["bitrate_kbps"].to_numpy(float)
        level = np.minimum(np.searchsorted(self._bitrates, bitrate), len(self._bitrates) - 1)
        is_unknown = self._bitrates[level] != bitrate
        key = level.astype(np.int64)
        for name, index in self._labels.items():
            code = find_names(index, frame[name])
            is_unknown |= code < 0
            key = key * np.int64(len(index)) + code
        return np.where(is_unknown, -1, key)

    def look_up(self, frame: pd.DataFrame, table: str = "clients") -> Ints:
        """Return the kind of each row, (rows,); PlanRejected for one that the problem does not have."""
        key = self._key(frame)
        position = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        unknown = np.flatnonzero((key < 0) | (self._keys[position] != key))
        if len(unknown):
            row = frame.iloc[int(unknown[0])]
            raise PlanRejected(f"{table} row {int(unknown[0]) + 1}: {self.describe(row)} are no clients")
        return position.astype(np.int64)

    @staticmethod
    def describe(row: Any) -> str:
        """Return `location/isp/content at 3000 kbit/s`."""
        return f"{row['location']}/{row['isp']}/{row['content']} at {row['bitrate_kbps']:g} kbit/s"


def read_assignment(problem: Brokering, plan: Assignment) -> AssignmentArrays:
    """Return the plan as arrays; PlanRejected where it is no assignment of whole clients to bids."""
    kinds, frame = ClientKinds(problem), plan.assignments
    kind, count = _read_clients(kinds, frame, "assignments")
    cluster = find_names(problem.cluster_index, frame["cluster"])
    if (cluster < 0).any():
        row = int(np.flatnonzero(cluster < 0)[0])
        name = str(frame["cluster"].iloc[row])
        raise PlanRejected(
            f"assignments row {row + 1}: '{name}' is no cluster"
            + did_you_mean(name, problem.clusters["cluster"])
        )
    location = find_names(problem.location_index, frame["location"])
    # pinned clients are served there whatever is on offer
    pinned = restrictions.match_rules(frame, problem.clusters, problem.pinned, None).pinned
    not_offered = np.flatnonzero(~problem.offered[location, cluster] & ~pinned & (count > 0))
    if len(not_offered):
        row = int(not_offered[0])
        raise PlanRejected(
            f"assignments row {row + 1}: cluster '{frame['cluster'].iloc[row]}' is not on offer to "
            f"'{frame['location'].iloc[row]}'"
        )
    assigned = np.bincount(kind, weights=count, minlength=len(kinds.demand))
    shed = np.zeros(len(kinds.demand))
    if plan.shed is not None:
        shed_kind, shed_count = _read_clients(kinds, plan.shed, "shed")
        np.add.at(shed, shed_kind, shed_count)
    excess = np.flatnonzero(assigned + shed > kinds.demand)
    if len(excess):
        of_kind = kinds.describe(problem.clients.iloc[kinds.first[excess[0]]])
        also = f" and {shed[excess[0]]:.0f} shed" if shed[excess[0]] else ""
        raise PlanRejected(
            f"assignments: {assigned[excess[0]]:.0f} clients of {of_kind} are assigned{also}, "
            f"there are {kinds.demand[excess[0]]}"
        )
    bitrate = frame["bitrate_kbps"].to_numpy(float) / 1000
    load = np.bincount(cluster, weights=count * bitrate, minlength=len(problem.clusters))
    return AssignmentArrays(
        kind=kind,
        kind_location=problem.location[kinds.first],
        missing=kinds.demand - assigned.astype(np.int64) - shed.astype(np.int64),
        location=location,
        cluster=cluster,
        count=count.astype(np.int64),
        bitrate_mbps=bitrate,
        load_mbps=load.astype(float),
    )


def _read_clients(kinds: ClientKinds, frame: pd.DataFrame, table: str) -> tuple[Ints, Floats]:
    """Return kind and number of the clients in each row; PlanRejected where it is no whole number."""
    count = frame["clients"].to_numpy(float)
    bad = np.flatnonzero(~np.isfinite(count) | (count < 0) | (count != np.floor(count)))
    if len(bad):
        raise PlanRejected(
            f"{table} row {int(bad[0]) + 1}: clients is {count[bad[0]]}, must be a whole number, 0 or more"
        )
    return kinds.look_up(frame, table), count


def check(problem: Brokering, plan: Assignment) -> Violations:
    """Return the constraint violations: overloaded clusters, clients left out, rules not kept.

    Clients that the plan lists as shed are no violation.

    A cluster that background traffic alone overloads is no violation of a plan without clients there.
    PlanRejected where the tables are no plan: unknown clients or clusters, a cluster that is not on
    offer, parts of clients, more clients than there are, and records of rounds, bids or earlier windows
    that cannot be.
    """
    _require_records(problem, plan)
    assignment = read_assignment(problem, plan)
    total = assignment.load_mbps + problem.background_mbps
    allowed = problem.capacity_mbps
    over = np.flatnonzero(is_overloaded(problem, assignment.load_mbps))
    capacity = Violations.of(
        "capacity",
        where=problem.clusters["cluster"].iloc[over].tolist(),
        amount=total[over],
        allowed=allowed[over],
        unit="Mbit/s",
    )
    missing = np.bincount(
        assignment.kind_location, weights=assignment.missing, minlength=len(problem.locations)
    )
    expected = np.bincount(problem.location, weights=problem.count, minlength=len(problem.locations))
    short = np.flatnonzero(missing > 0)
    demand = Violations.of(
        "demand",
        where=problem.locations["location"].iloc[short].tolist(),
        amount=(expected - missing)[short],
        allowed=expected[short],
        unit="clients",
    )
    rules = restrictions.match_rules(plan.assignments, problem.clusters, problem.pinned, problem.forbidden)
    pinned = _rule_violations("pinned", plan, rules.misplaced)
    forbidden = _rule_violations("forbidden", plan, rules.forbidden)
    return capacity + demand + pinned + forbidden + _limit_violations(problem, plan)


def limited_mbps(problem: Brokering, plan: Assignment) -> Floats:
    """Return the traffic that each limited CDN carries for the clients of its region, (K,), Mbit/s."""
    if problem.limits is None:
        return np.zeros(0)
    frame = plan.assignments
    cdn = frame["cluster"].map(problem.clusters.set_index("cluster")["cdn"])
    country = frame["location"].map(problem.locations.set_index("location")["country"])
    mbps = frame["clients"].to_numpy(float) * frame["bitrate_kbps"].to_numpy(float) / 1000
    return np.array(
        [
            float(mbps[(cdn == name).to_numpy() & volume_limits.contains(region, country.tolist())].sum())
            for name, region in zip(problem.limits["cdn"], problem.limits["region"], strict=True)
        ]
    )


def _limit_violations(problem: Brokering, plan: Assignment) -> Violations:
    """Return the limits of CDNs in regions that are not kept: more than a cap, or less than a floor."""
    if problem.limits is None:
        return Violations()
    load, limits = limited_mbps(problem, plan), problem.volume_limits
    names = [
        f"{cdn} in {region}"
        for cdn, region in zip(problem.limits["cdn"], problem.limits["region"], strict=True)
    ]
    over = np.flatnonzero(exceeds(load, limits.cap_mbps, relative=EXACT))
    under = np.flatnonzero(exceeds(limits.floor_mbps, load, relative=EXACT))
    return Violations.of(
        "caps",
        where=[names[row] for row in over.tolist()],
        amount=load[over],
        allowed=limits.cap_mbps[over],
        unit="Mbit/s",
    ) + Violations.of(
        "floors",
        where=[names[row] for row in under.tolist()],
        amount=load[under],
        allowed=limits.floor_mbps[under],
        unit="Mbit/s",
    )


def _require_records(problem: Brokering, plan: Assignment) -> None:
    """Raise PlanRejected where rounds, offers and earlier traffic contradict themselves or the problem."""
    for frame, require in (
        (plan.rounds, _require_rounds), (plan.offers, _require_offers), (plan.traffic, _require_traffic),
    ):  # fmt: skip
        if frame is not None and len(frame):
            require(problem, frame)


def _require_rounds(problem: Brokering, frame: pd.DataFrame) -> None:
    """Raise PlanRejected where rounds are not numbered, or only the last one has no refused clusters."""
    _require_numbers(frame["round"].to_numpy(float), "rounds", "round")
    overbooked, withdrawn = (frame[name].to_numpy(float) for name in ("overbooked", "withdrawn"))
    is_last = np.arange(len(overbooked)) == len(overbooked) - 1
    wrong = np.where(is_last, (overbooked > 0) | (withdrawn > 0), (overbooked <= 0) | (withdrawn <= 0))
    if (wrong := wrong | (overbooked > len(problem.clusters))).any():
        row = int(np.argmax(wrong))
        raise PlanRejected(
            f"rounds row {row + 1}: {overbooked[row]:g} of {len(problem.clusters)} clusters overbooked, "
            f"{withdrawn[row]:g} mappings withdrawn; the last round has none, the others have some"
        )
    if (differs := withdrawn[:-1] != withdrawn[0]).any():
        row = int(np.argmax(differs))
        raise PlanRejected(
            f"rounds row {row + 1}: {withdrawn[row]:g} mappings withdrawn, {withdrawn[0]:g} in the first "
            "round; each round withdraws those of all brokers"
        )


def _require_offers(problem: Brokering, frame: pd.DataFrame) -> None:
    """Raise PlanRejected where offers are not one for each cluster."""
    _require_known(frame, "offers", "cluster", problem.clusters["cluster"])
    if frame["cluster"].duplicated().any():
        row = int(np.argmax(frame["cluster"].duplicated()))
        raise PlanRejected(f"offers row {row + 1}: cluster '{frame['cluster'].iloc[row]}' is there twice")
    missing = ~problem.clusters["cluster"].isin(frame["cluster"]).to_numpy()
    if missing.any():
        name = problem.clusters["cluster"].iloc[int(np.argmax(missing))]
        raise PlanRejected(f"offers: cluster '{name}' has no bid, every cluster must have one")


def _require_traffic(_: Brokering, frame: pd.DataFrame) -> None:
    """Raise PlanRejected where windows are not numbered, or a CDN is there twice in one."""
    _require_numbers(np.unique(frame["window"].to_numpy(float)), "traffic", "window")
    is_twice = frame.duplicated([name for name in ("window", "cdn", "region") if name in frame])
    if is_twice.any():
        row = int(np.argmax(is_twice))
        raise PlanRejected(
            f"traffic row {row + 1}: CDN '{frame['cdn'].iloc[row]}' is there twice in a window"
        )


def _require_numbers(numbers: Floats, table: str, column: str) -> None:
    """Raise PlanRejected unless the numbers are 1, 2, 3, ... in this order."""
    wrong = np.flatnonzero(numbers != np.arange(1, len(numbers) + 1))
    if len(wrong):
        first = int(wrong[0])
        raise PlanRejected(f"{table}: {column} is {numbers[first]:g} where {first + 1} is expected")


def _require_known(frame: pd.DataFrame, table: str, column: str, names: pd.Series) -> None:
    unknown = ~frame[column].isin(names).to_numpy()
    if unknown.any():
        row = int(np.argmax(unknown))
        name = str(frame[column].iloc[row])
        raise PlanRejected(f"{table} row {row + 1}: '{name}' is no {column}" + did_you_mean(name, names))


def _rule_violations(limit: str, plan: Assignment, rows: Bools) -> Violations:
    """Return the violations of one kind of rule, for rows (P,) of the plan."""
    frame = plan.assignments[rows]
    names = zip(frame["location"], frame["isp"], frame["content"], frame["cluster"], strict=True)
    return Violations.of(
        limit,
        where=[f"{location}/{isp}/{content} in {cluster}" for location, isp, content, cluster in names],
        amount=frame["clients"].to_numpy(float),
        allowed=np.zeros(len(frame)),
        unit="clients",
    )


def is_overloaded(problem: Brokering, load_mbps: Floats) -> Bools:
    """Return the clusters with this broker's clients and more load than capacity, a mask (C,)."""
    total = load_mbps + problem.background_mbps
    return (load_mbps > 0) & exceeds(total, problem.capacity_mbps, relative=EXACT)
