"""Cost and service of a plan, re-derived from its rows by code of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.tolerances import exceeds
from planner.contract.units import MONTH_S
from planner.errors import PlanRejected
from planner_models.geostore.plan.key_shards import carried_share, read_shards
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.plan.remote_checks import RemoteChecks, find_checks, find_open_gaps
from planner_models.geostore.problem import costs
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import CODED, JOIN, STRONG
from planner_models.geostore.protocol.views import Gap
from planner_models.geostore.shards.sharding import Sharding
from planner_models.networks.nodes import find_names


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """A plan as arrays.

    copies     (G, N) replicas in each region
    votes      (G, N) those that vote
    leader     (G,) region of the leader; -1 for none
    kind       (G,) consistency that the plan gives
    quorums    (G, 2) replicas that reads and writes wait for
    pieces     (G,) pieces from which a value is read; 1: each replica has it whole
    query      (G,) replicas that say their newest write before an operation on pieces; 0: none
    checks     (G,) where causal writes wait for what they depend on
    reads      (A, N) regions that a read waits for
    writes     (A, N) regions that a write waits for
    edges      (C, 4) group, origin, source and target of copies
    copy_ms    (C,) time from the write at its origin until it is visible at the target
    servers    (N,) servers of each region
    sharding   servers of the ranges of keys; None without ranges
    """

    problem: Geostore
    plan: StorePlan
    copies: Ints
    votes: Ints
    leader: Ints
    kind: list[str]
    quorums: Ints
    pieces: Ints
    query: Ints
    checks: list[str]
    reads: Bools
    writes: Bools
    edges: Ints
    copy_ms: Floats
    servers: Floats
    sharding: Sharding | None = None

    # --- users ------------------------------------------------------------------------------

    @cached_property
    def is_strong(self) -> Bools:
        """(G,) whether a group is strongly consistent."""
        return np.array([name in STRONG for name in self.kind], dtype=bool)

    @cached_property
    def is_causal(self) -> Bools:
        """(G,) whether a group carries the metadata of causal consistency."""
        return np.array([name == "causal" for name in self.kind], dtype=bool)

    @cached_property
    def origin(self) -> Ints:
        """(A,) region in which a user's writes enter."""
        problem = self.problem
        group = problem.user_group
        entry = np.argmax(self.writes, axis=1)
        entry = np.where(self.leader[group] >= 0, self.leader[group], entry)
        is_quorum = self.is_strong[group] & (self.leader[group] < 0)
        return np.where(is_quorum, problem.user_region, entry).astype(np.int64)

    @cached_property
    def read_ms(self) -> Floats:
        """(A,) time of a page's reads."""
        problem = self.problem
        group = problem.user_group
        trip = problem.rtt_ms[problem.user_region] + problem.service_ms
        first, _ = self._phase_ms
        strong = problem.use("operations_per_page") * (np.where(self.reads, trip, 0.0).max(axis=1) + first)
        weak = np.where(self.reads, problem.latency_ms, 0.0).max(axis=1)
        return np.asarray(np.where(self.is_strong[group], strong, weak))

    @cached_property
    def write_ms(self) -> Floats:
        """(A,) time of a page's writes."""
        problem = self.problem
        group, region = problem.user_group, problem.user_region
        held = self.copies[group] > 0
        nearest = np.where(held, problem.latency_ms, np.inf).min(axis=1)
        entry = np.where(self.writes, problem.latency_ms, 0.0).max(axis=1)
        is_direct = ~held[np.arange(len(group)), self.origin]
        weak = np.where(is_direct, nearest, entry)
        trip = problem.rtt_ms + problem.service_ms
        quorum = np.where(self.writes, trip[region], 0.0).max(axis=1)
        led = trip[region, self.leader[group]] + self._leader_wait[group]
        first, last = self._phase_ms
        operation = np.where(self.leader[group] >= 0, led, first + quorum + last)
        strong = problem.use("operations_per_page") * operation
        return np.where(self.is_strong[group], strong, weak)

    @cached_property
    def _phase_ms(self) -> tuple[Floats, Floats]:
        """(A,) each: time until the newest write is known, and until enough pieces know a write's end; ms.

        Both are 0 for groups without pieces.
        """
        problem, group = self.problem, self.problem.user_group
        first, last = np.zeros(len(group)), np.zeros(len(group))
        for row in np.flatnonzero(self.query[group] > 0).tolist():
            g = group[row]
            trip = problem.rtt_ms[problem.user_region[row]] + problem.service_ms
            times = np.sort(np.repeat(trip, self.votes[g]))
            first[row] = times[self.query[g] - 1]
            last[row] = times[self.votes[g].sum() - self.query[g]]
        return first, last

    @cached_property
    def needed(self) -> Ints:
        """(G,) voting replicas without which operations of a strongly consistent group stop; 1 for others."""
        largest = np.maximum(self.quorums.max(axis=1), self.query)
        ends = np.where(self.query > 0, self.votes.sum(axis=1) + 1 - self.query, 0)
        return np.asarray(np.where(self.is_strong, np.maximum(largest, ends), 1), dtype=np.int64)

    @cached_property
    def _leader_wait(self) -> Floats:
        """(G,) time until enough voters have a write of the leader, ms; 0 without a leader."""
        wait = np.zeros(len(self.leader))
        trip = self.problem.rtt_ms + self.problem.service_ms
        for group in np.flatnonzero(self.leader >= 0).tolist():
            times = np.sort(np.repeat(trip[self.leader[group]], self.votes[group]))
            needed = int(self.quorums[group, 1])
            wait[group] = times[needed - 1] if needed > 1 else 0.0
        return wait

    @cached_property
    def remote_checks(self) -> RemoteChecks:
        """Checks of dependent writes at other datacenters."""
        is_remote = self.is_causal & np.array([name == "remote" for name in self.checks], dtype=bool)
        return find_checks(self.problem, self.copies > 0, is_remote)

    @cached_property
    def gaps(self) -> list[Gap]:
        """Dependencies that checks at other datacenters leave open."""
        gaps: list[Gap] = []
        for members in self.problem.components:
            if len(members) > 1 and any(self.checks[group] == "remote" for group in members.tolist()):
                gaps += find_open_gaps(self.problem, self.copies > 0, members)
        return gaps

    @cached_property
    def stale_ms(self) -> Floats:
        """(G,) longest time until a write is visible at every replica, after its checks elsewhere."""
        longest = np.zeros(len(self.copies))
        wait = self.remote_checks.delay_ms(self.problem)
        np.maximum.at(longest, self.edges[:, 0], self.copy_ms + wait[self.edges[:, 0], self.edges[:, 3]])
        return longest

    @cached_property
    def in_limits(self) -> tuple[Bools, Bools]:
        """(A,) each: whether reads and writes keep the limits of their group."""
        group = self.problem.user_group
        read = ~exceeds(self.read_ms, self.problem.limit_ms("read_ms")[group])
        write = ~exceeds(self.write_ms, self.problem.limit_ms("write_ms")[group])
        return read, write

    # --- goals of groups --------------------------------------------------------------------

    @cached_property
    def class_kept(self) -> Bools:
        """(G,) whether a group has the consistency that it asks for."""
        fulfilled = []
        for requested, actual, rule in zip(
            self.problem.group_class, self.kind, self.problem.has_invariant.tolist(), strict=True
        ):
            if requested == "leader":
                fulfilled.append(actual == "leader")
            elif requested in ("quorum", CODED):
                fulfilled.append(actual in STRONG)  # all of them are atomic
            elif requested == "causal":
                fulfilled.append(actual != "eventual")
            else:
                fulfilled.append(actual in STRONG or not rule)
        return np.array(fulfilled, dtype=bool)

    @cached_property
    def survived(self) -> Bools:
        """(G,) whether the goal of survival is kept."""
        problem = self.problem
        return np.array([self._survives(row) for row in range(len(problem.groups))], dtype=bool)

    def _survives(self, group: int) -> bool:
        """Return whether a group survives the worst of its failures."""
        problem = self.problem
        votes, failures = self.votes[group], int(problem.failures[group])
        needed = int(self.needed[group])
        remaining = votes.sum() - np.sort(votes)[::-1][:failures].sum()
        if remaining < needed:
            return False
        if problem.survive[group] == "provider":
            lost = np.bincount(problem.provider, weights=votes)
            if votes.sum() - lost.max() < needed:
                return False
        if problem.survive[group] == "zone":
            zones = np.minimum(problem.price("zones"), votes)
            lost = np.ceil(votes / np.maximum(zones, 1)).max()
            if votes.sum() - lost < needed and not (
                needed == 1 and (votes * problem.price("zones") > 1).any()
            ):
                return False
        return self._fails_over(group)

    def _fails_over(self, group: int) -> bool:
        """Return whether enough replicas are near each user for after failures, or all that there are."""
        problem = self.problem
        limit = float(problem.limit_ms("failover_ms")[group])
        if not np.isfinite(limit):
            return True
        users, count = problem.active_users(group), int(problem.failures[group]) + 1
        latency = np.where(problem.is_forbidden[group], np.inf, problem.latency_ms[users])
        limits = np.maximum(limit, np.sort(latency, axis=1)[:, count - 1])
        held = self.copies[group] > 0
        near = ((latency <= limits[:, None] * (1 + 1e-9)) & held).sum(axis=1)
        return bool((near >= count).all())

    @cached_property
    def stale_kept(self) -> Bools:
        """(G,) whether every write is visible in time at every replica."""
        return ~exceeds(self.stale_ms, self.problem.limit_ms("stale_ms"))

    @cached_property
    def unchecked(self) -> list[tuple[int, int, int]]:
        """Triples of a group, one that it depends on, and a region with the first alone: no local checks."""
        result = []
        groups, others = self.problem.causal_edges
        for group, on in zip(groups.tolist(), others.tolist(), strict=True):
            if not self.is_causal[group] or self.is_strong[on] or self.checks[group] == "remote":
                continue
            alone = (self.copies[group] > 0) & ~(self.copies[on] > 0)
            result += [(group, on, region) for region in np.flatnonzero(alone).tolist()]
        return result

    @cached_property
    def order_kept(self) -> Bools:
        """(G,) whether the order of dependent writes is kept."""
        is_ordered = np.ones(len(self.copies), dtype=bool)
        for group, _, _ in self.unchecked:
            is_ordered[group] = False
        for gap in self.gaps:
            is_ordered[gap.group] = False
        children, parents = self.problem.causal_edges
        for child, parent in zip(children.tolist(), parents.tolist(), strict=True):
            if self.kind[child] == "eventual" or self.kind[parent] == "eventual":
                is_ordered[child] = False
        return is_ordered

    @cached_property
    def good_per_s(self) -> Floats:
        """(A,) operations a second that keep limits, consistency and survival."""
        problem = self.problem
        read, write = self.in_limits
        goal = self.class_kept & self.survived & self.order_kept & self.stale_kept
        reads = problem.use("reads_per_s") * read * self._carried(self.reads)
        entry = np.zeros(self.writes.shape, dtype=bool)
        entry[np.arange(len(entry)), self.origin] = True
        writes = (
            problem.use("writes_per_s") * write * self._carried(entry & (self.copies[problem.user_group] > 0))
        )
        return np.asarray((reads + writes) * goal[problem.user_group])

    def _carried(self, waited: Bools) -> Floats:
        """Return the share of operations that the regions that they wait for carry, (A,)."""
        return np.asarray(np.where(waited, self.carried_share, 1.0).min(axis=1))

    # --- bill -------------------------------------------------------------------------------

    @cached_property
    def _volumes(self) -> tuple[Floats, Floats]:
        """(A,) each: bytes of a read and of a write at a replica, with the metadata of causal groups."""
        causal = self.is_causal[self.problem.user_group]
        payload = costs.payload_bytes(self.problem) / self.pieces[self.problem.user_group]
        return (
            np.asarray(payload + causal * costs.read_metadata(self.problem)),
            np.asarray(payload + causal * costs.write_metadata(self.problem)),
        )

    @cached_property
    def storage_usd(self) -> float:
        """Price of storage, USD a month."""
        size = self.problem.groups["size_gb"].to_numpy(float)
        size = size / self.pieces + self.is_causal * costs.version_gb(self.problem)
        return float(size @ (self.copies @ self.problem.price("storage_usd_gb_month")))

    @cached_property
    def request_usd(self) -> float:
        """Price of read and write requests, USD a month."""
        problem = self.problem
        keys = problem.use("keys_per_op") * MONTH_S
        get = problem.use("reads_per_s") * keys * (self.reads @ problem.price("get_usd"))
        put = (
            problem.use("writes_per_s") * keys * (self.copies @ problem.price("put_usd"))[problem.user_group]
        )
        return float(get.sum() + put.sum())

    @cached_property
    def egress_usd(self) -> float:
        """Price of traffic between regions, USD a month."""
        problem = self.problem
        price, region, group = problem.usd_per_gb, problem.user_region, problem.user_group
        read_bytes, write_bytes = self._volumes
        read_gb = costs.month_gb(problem.use("reads_per_s"), read_bytes)
        write_gb = costs.month_gb(problem.use("writes_per_s"), write_bytes)
        total = float((read_gb[:, None] * self.reads * price[:, region].T).sum())
        is_sent = self.is_strong[group] | (not problem.is_colocated)
        total += float((write_gb * is_sent * price[region, self.origin]).sum())
        entering = np.zeros(self.copies.shape)
        np.add.at(entering, (group, self.origin), write_gb)
        edges = self.edges
        volume = entering[edges[:, 0], edges[:, 1]]
        total += self.remote_checks.usd(problem)
        return total + float((volume * price[edges[:, 2], edges[:, 3]]).sum())

    @cached_property
    def load(self) -> Floats:
        """(N,) operations a second on the servers, with the overhead of causal consistency."""
        problem = self.problem
        group = problem.user_group
        reads, writes = problem.use("reads_per_s"), problem.use("writes_per_s")
        by_group = np.bincount(group, weights=writes, minlength=len(self.copies))
        factor = 1.0 / (1.0 - self.is_causal * problem.term("overhead"))
        share = problem.term("replication_load")
        copied = (share * by_group * factor) @ self.copies
        load = copied + (reads * factor[group]) @ self.reads
        held = self.copies[group, self.origin] > 0
        extra = (1 - share) * writes * factor[group] * held
        np.add.at(load, self.origin, extra)
        return np.asarray(load)

    @cached_property
    def needed_servers(self) -> Floats:
        """(N,) servers that the load needs, as many as there may be."""
        return servers_for(self.problem, self.load)

    @cached_property
    def refused(self) -> Floats:
        """(N,) operations a second that a region with a largest number of servers has too few servers for."""
        capacity = np.minimum(
            1000.0 * self.problem.price("server_kops") * self.servers, self.problem.capacity
        )
        return refused_load(self.problem, self.load, capacity)

    @cached_property
    def carried_share(self) -> Floats:
        """(N,) share of the operations of a region that its servers, and those of its ranges, carry."""
        share = 1.0 - self.refused / np.maximum(self.load, 1e-12)
        return share if self.sharding is None else share * carried_share(self.problem, self.sharding)

    @property
    def penalized_usd(self) -> float:
        """The bill of a month, and the penalty of operations that servers refuse."""
        return self.usd + self.problem.refused_usd * float(self.refused.sum())

    @cached_property
    def server_usd(self) -> float:
        """Price of servers, USD a month."""
        return float(self.problem.price("server_usd_month") @ self.servers)

    @property
    def usd(self) -> float:
        """The bill of a month."""
        return self.storage_usd + self.request_usd + self.egress_usd + self.server_usd


def servers_for(problem: Geostore, load: Floats) -> Floats:
    """Return the servers for loads, (N,): by use, or whole ones where a least number is stated."""
    needed = load / (1000.0 * problem.price("server_kops"))
    minimum = problem.price("least_servers")
    integer = np.maximum(np.ceil(needed * (1 - 1e-12)), minimum)
    number = np.where(minimum > 0, np.where(load > 0, integer, 0.0), needed)
    return np.minimum(number, problem.capacity / (1000.0 * problem.price("server_kops")))


def refused_load(problem: Geostore, load: Floats, capacity: Floats) -> Floats:
    """Return the operations a second beyond the capacity of regions that have a largest one, (N,)."""
    excess = np.maximum(load - capacity, 0.0)
    return np.where(problem.is_limited & (excess > 1e-9 * load), excess, 0.0)


def evaluate(problem: Geostore, plan: StorePlan) -> Evaluation:
    """Return the plan as arrays; raises PlanRejected where it is none.

    That is where a table names what is not there, users have no route, read where no replica is, or copies do
    not come to every replica.
    """
    copies, votes, leader = read_replicas(problem, plan.replicas)
    kind, quorums, checks = read_classes(problem, plan.classes)
    pieces, query = quorums[:, 3], quorums[:, 4]
    for group in range(len(copies)):
        name = problem.group_index[group]
        if not copies[group].any():
            raise PlanRejected(f"replicas: group '{name}' has none")
        if (leader[group] >= 0) != (kind[group] == "leader"):
            raise PlanRejected(
                f"replicas: group '{name}' of class {kind[group]} must have a leader if it is led"
            )
        if votes[group].sum() != quorums[group, 2]:
            raise PlanRejected(f"classes: group '{name}' has {votes[group].sum()} replicas that vote, not n")
    reads, writes = read_routes(problem, plan.routes)
    result = Evaluation(
        problem=problem,
        plan=plan,
        copies=copies,
        votes=votes,
        leader=leader,
        kind=kind,
        quorums=quorums[:, :2],
        pieces=pieces,
        query=query,
        checks=checks,
        reads=reads,
        writes=writes,
        edges=read_edges(problem, plan.propagation),
        copy_ms=np.zeros(0),
        servers=read_servers(problem, plan.servers),
        sharding=read_shards(problem, plan.shards),
    )
    _require_routes(result)
    copy_ms = follow_copies(result)
    return replace(result, copy_ms=copy_ms)


def _rows_of(index: pd.Index, frame: pd.DataFrame, table: str, column: str) -> Ints:
    rows = find_names(index, frame[column])
    for bad in np.flatnonzero(rows < 0)[:1].tolist():
        noun = "group" if column in ("group", "component") else "region"
        raise PlanRejected(f"{table} row {bad + 1}: '{frame[column].iloc[bad]}' is no {noun}")
    return rows


def read_replicas(problem: Geostore, frame: pd.DataFrame) -> tuple[Ints, Ints, Ints]:
    """Return the replicas in each region, (G, N), those that vote, and the region of each leader, (G,)."""
    group = _rows_of(problem.group_index, frame, "replicas", "group")
    region = _rows_of(problem.region_index, frame, "replicas", "region")
    number = frame["copies"].to_numpy(float) if "copies" in frame else np.ones(len(frame))
    if not (np.isfinite(number) & (number >= 1) & (np.floor(number) == number)).all():
        raise PlanRejected("replicas: copies must be whole numbers from 1")
    copies = np.zeros((len(problem.groups), len(problem.regions)), dtype=np.int64)
    np.add.at(copies, (group, region), number.astype(np.int64))
    votes = np.zeros_like(copies)
    follows = (frame["role"] == "follower").to_numpy()
    np.add.at(votes, (group[~follows], region[~follows]), number[~follows].astype(np.int64))
    leader = np.full(len(copies), -1, dtype=np.int64)
    for row in np.flatnonzero((frame["role"] == "leader").to_numpy()).tolist():
        if leader[group[row]] >= 0 or number[row] != 1:
            raise PlanRejected(f"replicas row {row + 1}: group '{frame['group'].iloc[row]}' has two leaders")
        leader[group[row]] = region[row]
    return copies, votes, leader


def read_classes(problem: Geostore, frame: pd.DataFrame) -> tuple[list[str], Ints, list[str]]:
    """Return the class of each group, its r, w, n, k and query, (G, 5), and where order is checked."""
    group = _rows_of(problem.group_index, frame, "classes", "group")
    missing = np.setdiff1d(np.arange(len(problem.groups)), group)
    if len(missing) or len(group) != len(problem.groups):
        name = problem.group_index[missing[0]] if len(missing) else frame["group"].iloc[0]
        raise PlanRejected(f"classes: group '{name}' must have one row")
    order = np.argsort(group)
    defaults = {"k": 1.0, "query": 0.0}
    columns = frame.assign(**{name: value for name, value in defaults.items() if name not in frame})
    quorums = columns[["r", "w", "n", "k", "query"]].to_numpy(float)[order]
    kind = [str(name) for name in frame["class"].iloc[order]]
    if not (np.isfinite(quorums) & (np.floor(quorums) == quorums)).all() or (quorums[:, :4] < 1).any():
        raise PlanRejected("classes: n, r, w and k must be whole numbers from 1, and query from 0")
    for row, name in enumerate(kind):
        where = f"classes: group '{problem.group_index[row]}' of class {name}"
        _require_quorums(where, name, *quorums[row, :3].tolist())
        _require_pieces(where, name, *quorums[row].tolist())
    checks = [str(name) for name in frame["checks"].iloc[order]]
    return kind, quorums.astype(np.int64), checks


def _require_quorums(where: str, name: str, r: float, w: float, n: float) -> None:
    """Raise PlanRejected where operations of a group wait for more replicas than it has, or for too few."""
    if max(r, w) > n:
        raise PlanRejected(f"{where} waits for more than its {n:g} replicas")
    if name == "quorum" and r + w <= n:
        raise PlanRejected(f"{where} has r + w = {r + w:g}, must be above n = {n:g}")
    if name in ("quorum", "leader") and 2 * w <= n:
        raise PlanRejected(f"{where} has w = {w:g}, must be above n / 2 = {n / 2:g}")


def _require_pieces(where: str, name: str, r: float, w: float, n: float, k: float, query: float) -> None:
    """Raise PlanRejected where operations on pieces may miss a write, or a group of another class has some.

    A value needs k pieces of a write that w replicas have; the newest write is known by one of `query`
    replicas, and its end by n + 1 - query (Cadambe et al. 2017, Coded Atomic Storage).
    """
    if name != CODED:
        if k != 1 or query != 0:
            raise PlanRejected(f"{where} has k = {k:g} and query = {query:g}, must have 1 and 0")
    elif not 1 <= query <= n:
        raise PlanRejected(f"{where} has query = {query:g}, must be from 1 to n = {n:g}")
    elif query + r <= n:
        raise PlanRejected(f"{where} has query + r = {query + r:g}, must be above n = {n:g}")
    elif r < k or r + w < n + k:
        raise PlanRejected(f"{where} has r = {r:g} and r + w = {r + w:g}, must be k = {k:g} and n + k")


def read_routes(problem: Geostore, frame: pd.DataFrame) -> tuple[Bools, Bools]:
    """Return the regions that reads and writes of each user wait for, (A, N) each."""
    user = find_users(problem, frame)
    missing = np.setdiff1d(np.arange(len(problem.access)), user)
    for row in missing[:1].tolist():
        raise PlanRejected(
            f"routes: has no row of group '{problem.access['group'].iloc[row]}' for region "
            f"'{problem.access['region'].iloc[row]}'"
        )
    if len(user) != len(problem.access):
        raise PlanRejected("routes: has two rows of the same group and region")
    return (
        _read_sets(problem, frame, "read_from", user),
        _read_sets(problem, frame, "write_to", user),
    )


def find_users(problem: Geostore, frame: pd.DataFrame) -> Ints:
    """Return the row of access of each row of `routes`; raises PlanRejected where there is none."""
    group = _rows_of(problem.group_index, frame, "routes", "group")
    region = _rows_of(problem.region_index, frame, "routes", "region")
    count = len(problem.regions)
    keys = problem.user_group * count + problem.user_region
    order = np.argsort(keys)
    row_key = group * count + region
    position = np.minimum(np.searchsorted(keys[order], row_key), len(keys) - 1)
    user: Ints = order[position]
    for bad in np.flatnonzero(keys[user] != row_key)[:1].tolist():
        raise PlanRejected(
            f"routes row {bad + 1}: group '{frame['group'].iloc[bad]}' has no access from region "
            f"'{frame['region'].iloc[bad]}'"
        )
    return user


def _read_sets(problem: Geostore, frame: pd.DataFrame, column: str, user: Ints) -> Bools:
    """Return the regions named in each cell, (A, N)."""
    sets = np.zeros((len(problem.access), len(problem.regions)), dtype=bool)
    rows = {name: row for row, name in enumerate(problem.region_index.tolist())}
    for position, text in enumerate(frame[column].astype(str).tolist()):
        names = [text] if text in rows else text.split(JOIN)
        for name in names:
            if name not in rows:
                raise PlanRejected(f"routes row {position + 1}: {column} '{name}' is no region")
            sets[user[position], rows[name]] = True
    return sets


def read_edges(problem: Geostore, frame: pd.DataFrame) -> Ints:
    """Return group, origin, source and target of each copy, (C, 4)."""
    columns = [_rows_of(problem.group_index, frame, "propagation", "group")]
    columns += [
        _rows_of(problem.region_index, frame, "propagation", name) for name in ("origin", "source", "target")
    ]
    return np.column_stack(columns).astype(np.int64)


def read_servers(problem: Geostore, frame: pd.DataFrame | None) -> Floats:
    """Return the servers of each region, (N,)."""
    servers = np.zeros(len(problem.regions))
    if frame is not None:
        number = frame["servers"].to_numpy(float)
        if not (np.isfinite(number) & (number >= 0)).all():
            raise PlanRejected("servers: must be numbers from 0")
        np.add.at(servers, _rows_of(problem.region_index, frame, "servers", "region"), number)
    return servers


def read_refused(problem: Geostore, frame: pd.DataFrame | None) -> Floats:
    """Return the operations a second that each region refuses by the plan, (N,)."""
    refused = np.zeros(len(problem.regions))
    if frame is not None and "refused_per_s" in frame:
        region = _rows_of(problem.region_index, frame, "servers", "region")
        np.add.at(refused, region, frame["refused_per_s"].to_numpy(float))
    return refused


def _require_routes(result: Evaluation) -> None:
    """Raise PlanRejected where users read or write other replicas than their class asks for."""
    problem = result.problem
    group = problem.user_group
    held = result.copies[group] > 0
    votes = result.votes[group] > 0
    led = result.leader[group] >= 0
    strong = result.is_strong[group] & ~led
    only_leader = np.zeros(held.shape, dtype=bool)
    rows = np.flatnonzero(led)
    only_leader[rows, result.leader[group[rows]]] = True
    reads, writes = result.reads, result.writes
    voting = result.votes[group]
    kinds = (
        ((reads & ~held).any(axis=1), "reads where no replica is"),
        (
            led & ((reads != only_leader).any(axis=1) | (writes != only_leader).any(axis=1)),
            "must read and write at the leader",
        ),
        (strong & ((reads | writes) & ~votes).any(axis=1), "waits for a region that does not vote"),
        (strong & ((reads * voting).sum(axis=1) < result.quorums[group, 0]), "reads fewer replicas than r"),
        (strong & ((writes * voting).sum(axis=1) < result.quorums[group, 1]), "writes fewer replicas than w"),
        (
            ~result.is_strong[group] & ((reads.sum(axis=1) != 1) | (writes.sum(axis=1) != 1)),
            "must read and write in one region",
        ),
        (
            ~result.is_strong[group]
            & (writes & ~held).any(axis=1)
            & (np.argmax(writes, axis=1) != problem.user_region),
            "writes where no replica is",
        ),
    )
    for is_bad, words in kinds:
        for row in np.flatnonzero(is_bad)[:1].tolist():
            name, region = problem.access["group"].iloc[row], problem.access["region"].iloc[row]
            raise PlanRejected(f"routes: group '{name}' of region '{region}' {words}")


def follow_copies(result: Evaluation) -> Floats:
    """Return the time of each copy from its origin, (C,), ms.

    raises  PlanRejected where a copy comes from a region that does not have the write, or a replica gets none
    """
    problem, edges = result.problem, result.edges
    count = len(problem.regions)
    group, origin = edges[:, 0], edges[:, 1]
    tree = group * count + origin
    target_key = tree * count + edges[:, 3]
    order = np.argsort(target_key)
    for row in np.flatnonzero(np.diff(target_key[order]) == 0)[:1].tolist():
        raise PlanRejected(f"propagation row {order[row + 1] + 1}: a replica gets the same copy twice")
    source_key = tree * count + edges[:, 2]
    hop = problem.copy_ms[edges[:, 2], edges[:, 3]]
    time = np.full(len(edges), np.nan)
    time[edges[:, 2] == origin] = hop[edges[:, 2] == origin]
    position = np.minimum(np.searchsorted(target_key[order], source_key), max(len(edges) - 1, 0))
    before = order[position] if len(edges) else position
    has_before = (target_key[before] == source_key) if len(edges) else np.zeros(0, dtype=bool)
    for _ in range(count):
        is_open = np.isnan(time) & has_before
        if not is_open.any():
            break
        time[is_open] = time[before[is_open]] + hop[is_open]
    names = problem.region_index
    for row in np.flatnonzero(np.isnan(time))[:1].tolist():
        raise PlanRejected(
            f"propagation row {row + 1}: region '{names[edges[row, 2]]}' does not have the writes of "
            f"'{names[edges[row, 1]]}'"
        )
    _require_copies(result, target_key)
    return time


def _require_copies(result: Evaluation, target_key: Ints) -> None:
    """Raise PlanRejected where a replica gets no copy of writes, or a region without one does."""
    problem, count = result.problem, len(result.problem.regions)
    edges = result.edges
    for row in np.flatnonzero(~(result.copies[edges[:, 0], edges[:, 3]] > 0))[:1].tolist():
        region = problem.region_index[edges[row, 3]]
        raise PlanRejected(f"propagation row {row + 1}: region '{region}' has no replica of the group")
    writing = problem.use("writes_per_s") > 0
    trees = np.unique(problem.user_group[writing] * count + result.origin[writing])
    group, origin = trees // count, trees % count
    held = result.copies[group] > 0
    held[np.arange(len(trees)), origin] = False
    tree, target = np.nonzero(held)
    missing = np.flatnonzero(~np.isin(trees[tree] * count + target, target_key))
    for row in missing[:1].tolist():
        name = problem.group_index[group[tree[row]]]
        raise PlanRejected(
            f"propagation: the replica of group '{name}' in region "
            f"'{problem.region_index[target[row]]}' gets no "
            f"writes of '{problem.region_index[origin[tree[row]]]}'"
        )
