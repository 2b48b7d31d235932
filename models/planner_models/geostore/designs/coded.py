"""Strongly consistent groups as pieces of an erasure code, with a bound.

Coded Atomic Storage (Cadambe et al. 2017; Zare et al. 2022, LEGOStore): each of n regions has a piece of 1/k
of a value. A read asks `query` regions for the newest write, then waits for r pieces; a write asks them too,
then waits until w regions have its pieces, and until n + 1 - query regions know that it has ended. With
query + r > n and r + w >= n + k an operation sees every write that ended before it.

The times of the phases of an operation add up, which covers cannot say: at first each phase has the limit
less the shortest times of the others. Where the regions of the relaxation are too slow for a user, or its
cheapest pieces are, the time of one phase is branched on: below that of these regions, or not.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.deadline import Deadline
from planner_models.geostore.designs.component import Costs, failover_rows
from planner_models.geostore.designs.placement import solve_component
from planner_models.geostore.designs.quorum_parts import (
    StrongChoice,
    component_of_group,
    most_replicas,
    read_costs,
    trip_ms,
    user_limits,
    zoned_regions,
)
from planner_models.geostore.plan.plan import GroupPlan
from planner_models.geostore.problem.costs import month_gb, payload_bytes
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import CODED

MAX_NODES: Final = 200
"""Placements of a code; beyond, its bound is that of the open nodes."""
TOLERANCE: Final = 1e-9


class Code(NamedTuple):
    """Numbers of pieces: all, those from which a value is read, and those that phases wait for."""

    n: int
    k: int
    query: int
    r: int
    w: int

    @property
    def end(self) -> int:
        """Regions that must know that a write has ended."""
        return self.n + 1 - self.query

    @property
    def needed(self) -> int:
        """Regions without which some operation stops."""
        return max(self.query, self.r, self.w, self.end)


def list_codes(failures: int) -> list[Code]:
    """Return all codes that survive so many failures, with the least quorums."""
    codes = []
    for n in range(1, most_replicas(failures) + 1):
        limit = n - failures
        for k, query, r in itertools.product(
            range(1, limit + 1), range(failures + 1, limit + 1), range(1, limit + 1)
        ):
            code = Code(n=n, k=k, query=query, r=r, w=n + k - r)
            if r >= k and query + r > n and max(code.w, code.end) <= limit:
                codes.append(code)
    return codes


@dataclass(frozen=True, kw_only=True, eq=False)
class _Times:
    """Limits of the phases of users' operations in one node, ms.

    lower  (users, 5) no time of a phase is shorter: query and pieces of reads; query, pieces, end of writes
    upper  (users, 5) no time of a phase is longer, beside what `lower` leaves of the page's limit
    """

    lower: Floats
    upper: Floats

    def limits(self, read_limit: Floats, write_limit: Floats) -> Floats:
        """Return the limit of each phase, (users, 5): what the least times of the others leave."""
        limits = np.empty_like(self.lower)
        for columns, limit in ((slice(0, 2), read_limit), (slice(2, 5), write_limit)):
            others = self.lower[:, columns].sum(axis=1)[:, None] - self.lower[:, columns]
            limits[:, columns] = limit[:, None] - others
        return np.minimum(limits, self.upper)

    def split(self, user: int, phase: int, time: float) -> tuple[_Times, _Times]:
        """Return both halves: the phase takes less than a time, and at least as long."""
        shorter, longer = self.upper.copy(), self.lower.copy()
        shorter[user, phase] = np.nextafter(time, 0.0) * (1 - 2 * TOLERANCE)
        longer[user, phase] = time
        return replace(self, upper=shorter), replace(self, lower=longer)


def place_coded(
    problem: Geostore,
    group: int,
    costs: Costs,
    factor: float,
    *,
    gap: float,
    deadline: Deadline,
    survives: bool = True,
) -> list[StrongChoice]:
    """Return the cheapest plan of pieces, with a bound on all codes; none where limits are too tight.

    factor    of the limits of pages
    survives  whether a zone or provider may be lost, and pieces are near after failures
    """
    data = _Group.of(problem, group, costs, factor)
    codes = [(data.lowest_cost(code), code) for code in list_codes(int(problem.failures[group]))]
    best: StrongChoice | None = None
    bounds: list[float] = []
    for lowest, code in sorted(codes, key=lambda item: item[0]):
        if best is not None and lowest >= best.cost:
            bounds.append(lowest)
            break
        choice, bound = _Search(data, code, survives).solve(
            gap, deadline, np.inf if best is None else best.cost
        )
        bounds.append(bound)
        if choice is not None and (best is None or choice.cost < best.cost):
            best = choice
    return [] if best is None else [replace(best, bound=min([best.cost, *bounds]))]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Group:
    """One group with its users: times, limits and costs.

    time          (users, N) of a page with one round trip for each operation, ms; inf where no piece may be
    read_limit, write_limit  (users,) ms
    requests      (users, N) cost of a piece that is read, without its bytes, USD a month
    read_bytes    (users, N) cost of whole values that are read
    replica       (N,) cost of a piece, without its bytes
    replica_bytes (N,) cost of a whole replica's storage and copies
    """

    problem: Geostore
    group: int
    time: Floats
    read_limit: Floats
    write_limit: Floats
    requests: Floats
    read_bytes: Floats
    replica: Floats
    replica_bytes: Floats

    @classmethod
    def of(cls, problem: Geostore, group: int, costs: Costs, factor: float) -> _Group:
        """Return the group with limits longer by a factor."""
        users = problem.users_of[group]
        region = problem.user_region[users]
        size = float(problem.groups["size_gb"].iloc[group])
        stored = size * problem.price("storage_usd_gb_month")
        sent = costs.volume[users] @ problem.usd_per_gb[region]
        read_gb = month_gb(problem.use("reads_per_s"), payload_bytes(problem))[users]
        read_bytes = read_gb[:, None] * problem.usd_per_gb[:, region].T
        free = ~problem.is_forbidden[group]
        return cls(
            problem=problem,
            group=group,
            time=np.where(free, trip_ms(problem, group), np.inf),
            read_limit=user_limits(problem, group, "read_ms", factor),
            write_limit=user_limits(problem, group, "write_ms", factor),
            requests=read_costs(problem, group, costs) - read_bytes,
            read_bytes=read_bytes,
            replica=costs.opening[group] - stored,
            replica_bytes=stored + sent,
        )

    @property
    def free(self) -> Bools:
        """(N,) where a piece may be."""
        return np.asarray(~self.problem.is_forbidden[self.group])

    def opening(self, k: int) -> Floats:
        """Return the cost of a piece in each region, (N,)."""
        return np.asarray(self.replica + self.replica_bytes / k)

    def reading(self, k: int) -> Floats:
        """Return the cost of a piece that each user reads in each region, (users, N)."""
        return np.asarray(self.requests + self.read_bytes / k)

    def lowest_cost(self, code: Code) -> float:
        """Return a cost that no placement of a code is below: its cheapest pieces, and those of each user."""
        if self.free.sum() < code.n:
            return np.inf
        reading = np.sort(self.reading(code.k)[:, self.free], axis=1)[:, : code.r]
        return float(np.sort(self.opening(code.k)[self.free])[: code.n].sum() + reading.sum())


class _Search:
    """Branch and bound on the times of phases, for one code."""

    def __init__(self, data: _Group, code: Code, survives: bool) -> None:
        self.data, self.code, self.survives = data, code, survives
        self.number = np.array([code.query, code.r, code.query, code.w, code.end])
        self.opening, self.reading = data.opening(code.k), data.reading(code.k)
        self.choice: StrongChoice | None = None

    def solve(self, gap: float, deadline: Deadline, upper: float) -> tuple[StrongChoice | None, float]:
        """Return the best plan of the code below a cost, None without one, and a bound on all of them."""
        data, code, problem = self.data, self.code, self.data.problem
        zoned = zoned_regions(problem, data.group, code.n, code.needed) if self.survives else data.free
        if zoned is None:
            return None, np.inf
        if (zoned & data.free).sum() < code.n or problem.is_pinned[data.group].sum() > code.n:
            return None, np.inf
        order = itertools.count()
        lower = np.sort(data.time, axis=1)[:, self.number - 1]
        root = _Times(lower=lower, upper=np.full(lower.shape, np.inf))
        heap = [(-np.inf, next(order), root)]
        fathomed, nodes = np.inf, 0
        while heap and heap[0][0] < upper * (1 - gap) and nodes < MAX_NODES and not deadline.is_over:
            _, _, times = heapq.heappop(heap)
            nodes += 1
            solved = self._relax(times, zoned, gap, deadline)
            if solved is None:
                continue
            opened, bound = solved
            pieces, slow = self._read_and_write(opened, times)
            if pieces is not None:
                cost = self._cost(opened, pieces)
                if cost < upper:
                    upper = cost
                    plan = coded_plan(problem, data.group, code, opened, pieces)
                    self.choice = StrongChoice(plan=plan, cost=cost, bound=cost, in_limits=True)
            if slow is None:
                fathomed = min(fathomed, bound)
            else:
                for half in times.split(*slow):
                    heapq.heappush(heap, (bound, next(order), half))
        return self.choice, min([fathomed, *(entry[0] for entry in heap[:1])])

    def _relax(
        self, times: _Times, zoned: Bools, gap: float, deadline: Deadline
    ) -> tuple[Bools, float] | None:
        """Return the regions of least cost whose phases are each within their limits, and a bound."""
        data, code, problem, group = self.data, self.code, self.data.problem, self.data.group
        limits = times.limits(data.read_limit, data.write_limit)
        near = data.time[:, None, :] <= limits[:, :, None] * (1 + TOLERANCE)  # (users, 5, N)
        near &= np.isfinite(data.time)[:, None, :] & zoned
        if (near.sum(axis=2) < self.number).any():
            return None
        cover, need = [near.reshape(-1, near.shape[2])], [np.tile(self.number, len(near))]
        for rows, count in self._survival() if self.survives else ():
            cover.append(rows & zoned)
            need.append(np.full(len(rows), count))
        state = np.where(data.free & zoned, -1, 0)
        state[problem.is_pinned[group]] = 1
        component = component_of_group(
            problem,
            group,
            (code.n, code.r),
            opening=self.opening,
            attachment=np.where(near[:, 1], self.reading, np.inf),
            state=state.astype(np.int64),
            cover=np.concatenate(cover),
            need=np.concatenate(need),
        )
        solved = solve_component(component, gap=gap / 2, deadline=deadline)
        return None if solved.opened is None else (solved.opened[0], solved.bound)

    def _survival(self) -> Iterator[tuple[Bools, int]]:
        """Yield regions, (K, N), and how many of each row have a piece, for goals of survival."""
        data, problem = self.data, self.data.problem
        yield failover_rows(problem, data.group)
        if problem.survive[data.group] == "provider":
            others = [data.free & (problem.provider != lost) for lost in np.unique(problem.provider)]
            yield np.array(others), self.code.needed

    def _read_and_write(
        self, opened: Bools, times: _Times
    ) -> tuple[Bools | None, tuple[int, int, float] | None]:
        """Return the pieces that each user reads, None where a page is late, and the phase to branch on.

        The phase is a user, a phase and its time, of a page that is late, or whose cheapest pieces are. It is
        None where the relaxation has the true cost.
        """
        data = self.data
        held = np.where(opened, data.time, np.inf)
        reached = np.sort(held, axis=1)[:, self.number - 1]  # time of each phase with the nearest pieces
        limits = times.limits(data.read_limit, data.write_limit)
        late = reached[:, 2:].sum(axis=1) > data.write_limit * (1 + TOLERANCE)
        remaining = np.minimum(data.read_limit - reached[:, 0], limits[:, 1])
        usd = np.where(held <= remaining[:, None] * (1 + TOLERANCE), self.reading, np.inf)
        relaxed = np.where(held <= limits[:, 1, None] * (1 + TOLERANCE), self.reading, np.inf)
        late_read = ~np.isfinite(np.sort(usd, axis=1)[:, self.code.r - 1])
        dearer = np.zeros(len(late), dtype=bool)
        total = [np.sort(cost, axis=1)[:, : self.code.r].sum(axis=1) for cost in (usd, relaxed)]
        dearer[~late_read] = total[0][~late_read] > total[1][~late_read] + TOLERANCE * abs(
            total[1][~late_read]
        )
        slow: tuple[int, int, float] | None = None
        for user in np.flatnonzero(late)[:1].tolist():
            phase = 2 + int(np.argmax(reached[user, 2:] - times.lower[user, 2:]))
            slow = user, phase, float(reached[user, phase])
        for user in np.flatnonzero(late_read | dearer)[:1].tolist():
            slow = slow or (user, 0, float(reached[user, 0]))
        if (late | late_read).any():
            return None, slow
        pieces = np.zeros(held.shape, dtype=bool)
        order = np.argsort(usd, axis=1, kind="stable")[:, : self.code.r]
        np.put_along_axis(pieces, order, True, axis=1)
        return pieces, slow

    def _cost(self, opened: Bools, pieces: Bools) -> float:
        return float(self.opening[opened].sum() + self.reading[pieces].sum())


def coded_plan(problem: Geostore, group: int, code: Code, opened: Bools, pieces: Bools) -> GroupPlan:
    """Return a group as pieces of a code, in the regions (N,), of which each user reads some, (users, N)."""
    users = problem.users_of[group]
    regions = problem.user_region[users]
    writes = np.zeros(pieces.shape, dtype=bool)
    order = np.argsort(np.where(opened, problem.rtt_ms[regions], np.inf), axis=1, kind="stable")
    np.put_along_axis(writes, order[:, : code.w], True, axis=1)
    writing = problem.use("writes_per_s")[users] > 0
    votes: Ints = opened.astype(np.int64)
    return GroupPlan(
        group=group,
        copies=votes,
        votes=votes,
        reads=pieces,
        writes=writes,
        edges=[
            (origin, origin, target)
            for origin in np.unique(regions[writing]).tolist()
            for target in np.flatnonzero(opened).tolist()
            if target != origin
        ],
        kind=CODED,
        read_quorum=code.r,
        write_quorum=code.w,
        pieces=code.k,
        query=code.query,
    )
