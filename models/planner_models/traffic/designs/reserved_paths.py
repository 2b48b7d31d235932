"""Reservations of demands on one path each, and the search for a path with enough available bandwidth."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.flows.constrained_paths import ConstrainedPathSearch
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.route_limits import RouteLimits
from planner_models.graphs.path_search import FoundPaths
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra
from planner_models.traffic.plan.flow_decision import flows_over_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.reservations import PRIORITIES

Path = tuple[int, ...]
"""Links in order."""
Tie = Annotated[
    Literal["first", "least_filled", "most_filled"],
    Field(
        description="which of equal shortest paths: at each hop the first link of the table, or the path "
        "whose fullest link has the largest, or the smallest, share of its capacity available"
    ),
]
Order = Annotated[
    Literal["priority", "table"],
    Field(
        description="in which reservations are signalled: by setup priority and then as in the table, so "
        "that none is preempted; or as in the table, so that later ones of a stronger priority preempt"
    ),
]
FITS: Final = 1 - ROUNDING
"""Share of a rate that a link must have available, so that rounding refuses nothing."""


@dataclass(kw_only=True, eq=False)
class Reservations:
    """Reservations of K demands on E links.

    setup, hold  (K,) priorities of demands, 0 the strongest
    rate_mbps    (K,) bandwidth of each demand's reservation
    used     (8, E) bandwidth by hold priority, Mbit/s
    path     links of each demand, None where it has no reservation
    on_link  demands with a reservation on each link, in the order of their admission
    """

    problem: Traffic
    setup: Ints
    hold: Ints
    rate_mbps: Floats
    used: Floats
    path: list[Path | None]
    on_link: list[dict[int, None]] = field(default_factory=list)

    @classmethod
    def of(cls, problem: Traffic, setup: Ints, hold: Ints) -> Reservations:
        """Return the state without reservations."""
        return cls(
            problem=problem,
            setup=setup,
            hold=hold,
            rate_mbps=problem.rate_mbps.copy(),
            used=np.zeros((PRIORITIES, len(problem.links))),
            path=[None] * len(problem.demands),
            on_link=[{} for _ in range(len(problem.links))],
        )

    def rank(self, demand: int) -> tuple[int, int]:
        """Return the key by which reservations are signalled again: setup priority, and row of the table."""
        return int(self.setup[demand]), demand

    def available(self, priority: int) -> Floats:
        """Return the bandwidth of each link that reservations of a priority and stronger ones leave, (E,)."""
        return np.asarray(self.problem.capacity_mbps - self.used[: priority + 1].sum(axis=0))

    def available_on(self, link: int, priority: int) -> float:
        """Return the same for one link."""
        return float(self.problem.capacity_mbps[link] - self.used[: priority + 1, link].sum())

    def admit(self, demand: int, path: Path) -> list[int]:
        """Reserve a path; return the reservations that it preempts."""
        hold, rate = self.hold[demand], self.rate_mbps[demand]
        self.path[demand] = path
        self.used[hold, list(path)] += rate
        for link in path:
            self.on_link[link][demand] = None
        preempted: list[int] = []
        for link in path:
            preempted += self._free(link, int(self.setup[demand]))
        return preempted

    def _free(self, link: int, setup: int) -> list[int]:
        """Remove reservations from an overbooked link, the weakest and of these the latest first."""
        preempted: list[int] = []
        if not self._is_overbooked(link):
            return preempted
        for victim in self._weakest_first(link, setup):
            self.remove(victim)
            preempted.append(victim)
            if not self._is_overbooked(link):
                break
        return preempted

    def _is_overbooked(self, link: int) -> bool:
        return bool(self.used[:, link].sum() * FITS > self.problem.capacity_mbps[link])

    def _weakest_first(self, link: int, setup: int) -> Iterator[int]:
        """Yield the reservations on a link with a hold priority weaker than a setup priority."""
        hold = self.hold
        latest_first = [demand for demand in reversed(self.on_link[link]) if hold[demand] > setup]
        yield from sorted(latest_first, key=lambda demand: -int(hold[demand]))

    def remove(self, demand: int) -> None:
        """Remove the reservation of a demand."""
        path = self.path[demand]
        assert path is not None
        self.path[demand] = None
        hold = self.hold[demand]
        self.used[hold, list(path)] -= self.rate_mbps[demand]
        for link in path:
            del self.on_link[link][demand]
            if not any(self.hold[other] == hold for other in self.on_link[link]):
                self.used[hold, link] = 0.0  # no residue of rounding


class PathSearch:
    """Searches the shortest path of one demand after another over links with enough available bandwidth."""

    def __init__(self, problem: Traffic, tie: Tie = "first") -> None:
        self.problem, self.tie = problem, tie
        self.limits = RouteLimits.of(problem)
        nodes = len(problem.nodes)
        self._graph = Graph.of(nodes, problem.tail, problem.head)
        self._work = allocate(nodes)
        self._parent = np.empty(nodes, dtype=np.int32)
        self._rank = np.zeros(nodes, dtype=np.int64)  # of nodes by their distance to the target
        order = np.argsort(problem.tail, kind="stable")
        ends = np.cumsum(np.bincount(problem.tail, minlength=nodes))[:-1]
        self._leaving = [links.tolist() for links in np.split(order, ends)]
        self._head = problem.head.tolist()

    def find(self, demand: int, available: Floats, weight: Floats) -> Path | None:
        """Return the links of a demand's shortest path that keeps its limits; None where there is none.

        available  (E,) bandwidth of links, Mbit/s
        weight     (E,) of links, above 0
        """
        is_enough = available >= self.problem.rate_mbps[demand] * FITS
        return self.find_within(demand, np.where(is_enough, weight, np.inf), available)

    def find_within(self, demand: int, length: Floats, available: Floats) -> Path | None:
        """Return the same over the links with a finite length, (E,)."""
        problem, limits = self.problem, self.limits
        if limits is not None:
            length = np.where(limits.allowed[limits.allowed_of[demand]], length, np.inf)
            if demand in limits.conditions or np.isfinite(limits.max_latency_ms[demand]):
                return self._find_limited(demand, length)
        source, target = int(problem.source[demand]), int(problem.target[demand])
        count = dijkstra(self._graph, length, target, self._work, self._parent)
        if not np.isfinite(self._work.distance[source]):
            return None
        self._rank[self._work.order[:count]] = np.arange(count)
        if self.tie == "first":
            return self._walk_first(source, target, length)
        return self._walk_filled(source, target, length, available / problem.capacity_mbps)

    def _find_limited(self, demand: int, length: Floats) -> Path | None:
        """Return the shortest path that keeps a latency limit or conditions; None where there is none."""
        search = ConstrainedPathSearch(self.problem, self._limits_within(length), np.array([demand]))
        result = search.search(np.where(np.isfinite(length), length, 0.0)).found
        return tuple(result.link.tolist()) if len(result.demand) else None

    def _limits_within(self, length: Floats) -> RouteLimits:
        """Return the limits in which the links of a finite length are allowed."""
        assert self.limits is not None
        limits = self.limits
        return RouteLimits(
            max_latency_ms=limits.max_latency_ms,
            latency_ms=limits.latency_ms,
            allowed=np.isfinite(length)[None, :],
            allowed_of=np.zeros(len(limits.allowed_of), dtype=np.int64),
            conditions=limits.conditions,
        )

    def _shortest_links(self, node: int, length: Floats) -> list[int]:
        """Return the links of shortest paths that leave a node, in the order of the table."""
        distance, rank = self._work.distance, self._rank
        longest = distance[node] * (1 + ROUNDING)
        return [
            link
            for link in self._leaving[node]
            if length[link] + distance[self._head[link]] <= longest and rank[self._head[link]] < rank[node]
        ]

    def _walk_first(self, source: int, target: int, length: Floats) -> Path:
        path, node = [], source
        while node != target:
            path.append(self._shortest_links(node, length)[0])
            node = self._head[path[-1]]
        return tuple(path)

    def _walk_filled(self, source: int, target: int, length: Floats, share: Floats) -> Path:
        """Return the shortest path with the largest or smallest available share of its fullest link.

        share  (E,) of the capacity that is available
        """
        sign = -1.0 if self.tie == "least_filled" else 1.0
        available = {target: np.inf}  # share of the fullest link from a node on
        following: dict[int, int] = {}
        for node in self._nearest_first(source, target, length):
            options = [
                (min(float(share[link]), available[self._head[link]]), link)
                for link in self._shortest_links(node, length)
            ]
            available[node], following[node] = min(options, key=lambda option: (sign * option[0], option[1]))
        path, node = [], source
        while node != target:
            path.append(following[node])
            node = self._head[path[-1]]
        return tuple(path)

    def _nearest_first(self, source: int, target: int, length: Floats) -> list[int]:
        """Return the nodes on shortest paths from a source, the nearest to the target first, without it."""
        reached, waiting = {source}, [source]
        while waiting:
            for link in self._shortest_links(waiting.pop(), length):
                node = self._head[link]
                if node not in reached and node != target:
                    reached.add(node)
                    waiting.append(node)
        return sorted(reached, key=lambda node: int(self._rank[node]))


def signal_all(
    problem: Traffic, reservations: Reservations, search: PathSearch, order: Order, deadline: Deadline
) -> None:
    """Signal all reservations, and those that are preempted or were refused again until nothing changes.

    Each admission adds to the reservations of its hold priority and takes away weaker ones only: it ends.
    """
    rows = np.flatnonzero(problem.rate_mbps > 0)
    if order == "priority":
        rows = rows[np.argsort(reservations.setup[rows], kind="stable")]
    waiting, refused = deque(rows.tolist()), []
    while waiting and not deadline.is_over:
        demand = waiting.popleft()
        available = reservations.available(int(reservations.setup[demand]))
        path = search.find(demand, available, problem.weight)
        if path is None:
            refused.append(demand)
            continue
        preempted = reservations.admit(demand, path)
        if preempted:  # their bandwidth on other links may admit what was refused
            waiting.extend(sorted([*preempted, *refused], key=reservations.rank))
            refused = []


def admit_paths(problem: Traffic, path_of: list[Path | None]) -> Routing:
    """Return the plan in which demands with a path are sent whole on it, and the others are shed."""
    result = list_paths(path_of)
    paths = CandidatePaths(found=result, width=len(problem.links))
    return flows_over_paths(problem, paths, problem.rate_mbps[result.demand], is_partial=True).make_plan(1.0)


def list_paths(path_of: list[Path | None]) -> FoundPaths:
    """Return the paths of the demands that have one."""
    admitted = {row: path for row, path in enumerate(path_of) if path is not None}
    links = list(admitted.values())
    return FoundPaths(
        demand=np.array(list(admitted), dtype=np.int64),
        start=np.cumsum([0, *map(len, links)]).astype(np.int64),
        link=np.array([link for path in links for link in path], dtype=np.int32),
    )
