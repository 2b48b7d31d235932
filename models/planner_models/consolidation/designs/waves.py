"""Times of moves over links, and their order in waves.

A move sends the memory of a machine, then what it wrote meanwhile, and so on: of rate R and dirty rate D, k
rounds take GB/R (1 - r^(k+1)) / (1 - r) with r = D/R. A machine that writes as fast as the link sends never
arrives. Moves begin as soon as both hosts have a free stream and the new host has the capacity, those of the
busiest hosts first.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of
from planner_models.consolidation.problem.schema import WHOLE_HOST

GBIT_PER_GB: Final = 8.0
DEFAULT_GBPS: Final = 10.0
"""Rate of hosts without a row in `links`."""
LEAST_S: Final = 0.1
"""Time that a move takes at least, such as one of a pod that requests no memory, s."""
ROUNDS: Final = 3
"""Rounds of copies of what a machine wrote while it was sent."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A machine of a shape that moves."""

    shape: int
    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class Link:
    """Rate of a host's link, and moves over it at once."""

    gbps: float
    streams: int


def links_of(problem: Consolidation, hosts: Sequence[str]) -> dict[str, Link]:
    """Return the link of each host."""
    common = Link(gbps=DEFAULT_GBPS, streams=1)
    listed: dict[str, Link] = {}
    if problem.links is not None:
        for row in rows_of(problem.links):
            listed[str(row.host)] = Link(gbps=float(row.gbps), streams=int(row.moves_at_once))
    common = listed.get(WHOLE_HOST, common)
    return {host: listed.get(host, common) for host in hosts}


def send_gb(memory_gb: float, dirty_gbps: float, gbps: float, rounds: int = ROUNDS) -> float | None:
    """Return the memory that a move sends, GB; None where a machine writes as fast as the link sends."""
    ratio = dirty_gbps / gbps
    if ratio >= 1:
        return None
    return memory_gb * (1 - ratio ** (rounds + 1)) / (1 - ratio)


def find_rate(links: dict[str, Link], move: Move) -> float:
    """Return the rate of a move, Gbit/s: the smaller share of both links."""
    ends = (links[move.source], links[move.target])
    return min(link.gbps / link.streams for link in ends)


def schedule(problem: Consolidation, moves: Sequence[Move], hosts: Sequence[str]) -> pd.DataFrame:
    """Return the table of moves with their times, in the order of their begin.

    A move's wave is one more than the largest of those that ended before it on the same hosts, or of a group
    of which only some may move at once. The new host has the capacity already: moves go where a plan found
    some beside the machines of today.
    """
    links = links_of(problem, hosts)
    tasks = []
    for move in moves:
        rate = find_rate(links, move)
        sent = send_gb(float(problem.memory_gb[move.shape]), _dirty(problem, move.shape), rate)
        assert sent is not None, "a plan moves no machine that cannot arrive"
        tasks.append((move, sent, max(sent * GBIT_PER_GB / rate, LEAST_S)))
    limits = [(members, limit) for members, limit, _ in problem.move_limits]
    starts = _list_schedule(tasks, links, limits)
    waves = _Waves(limits)
    rows = []
    for number, index in enumerate(sorted(range(len(tasks)), key=lambda row: (starts[row], row))):
        move, sent, seconds = tasks[index]
        wave = waves.find(move, starts[index], starts[index] + seconds)
        name = problem.machine_index[move.shape]
        rows.append((number + 1.0, wave, name, move.source, move.target, sent, starts[index], seconds))
    columns = ["move", "wave", "machine", "from_host", "to_host", "gb", "start_s", "seconds"]
    return pd.DataFrame(rows, columns=columns)


class _Waves:
    """Waves of moves in the order of their begin: each after those that ended before it on its hosts.

    Moves of a wave that share a host or a limit were under way together, so that a wave may begin at once.
    """

    def __init__(self, limits: Sequence[tuple[Bools, float]]) -> None:
        self._limits = limits
        self._running: dict[str | int, list[tuple[float, float]]] = {}
        self._ended: dict[str | int, float] = {}

    def find(self, move: Move, start: float, end: float) -> float:
        """Return the wave of the next move."""
        keys: list[str | int] = [move.source, move.target]
        keys += [row for row, (members, _) in enumerate(self._limits) if members[move.shape]]
        for key in keys:
            running = self._running.setdefault(key, [])
            while running and running[0][0] <= start + 1e-9:
                self._ended[key] = max(self._ended.get(key, 0.0), heapq.heappop(running)[1])
        wave = 1.0 + max(self._ended.get(key, 0.0) for key in keys)
        for key in keys:
            heapq.heappush(self._running[key], (end, wave))
        return wave


def _dirty(problem: Consolidation, shape: int) -> float:
    return float(problem.machines["dirty_gbps"].to_numpy(float)[shape])


def _list_schedule(
    tasks: Sequence[tuple[Move, float, float]],
    links: dict[str, Link],
    limits: Sequence[tuple[Bools, float]],
) -> list[float]:
    """Return the begin of each task: whenever a move ends, those of the busiest hosts begin first.

    limits  (M,) machines of which only some may move together, and their number
    """
    queue = _Queue(tasks, links, limits)
    touched, now = set(queue.free), 0.0
    events: list[tuple[float, int]] = []
    while True:
        for index in queue.start(touched, now):
            heapq.heappush(events, (now + tasks[index][2], index))
        if not events:
            return queue.starts
        now, index = heapq.heappop(events)
        ended = [index]
        while events and events[0][0] <= now + 1e-9:
            ended.append(heapq.heappop(events)[1])
        touched = queue.end(ended)


class _Queue:
    """Moves that wait for streams of their hosts."""

    def __init__(
        self,
        tasks: Sequence[tuple[Move, float, float]],
        links: dict[str, Link],
        limits: Sequence[tuple[Bools, float]],
    ) -> None:
        self._tasks, self._links = tasks, links
        self._members = [members for members, _ in limits]
        self._may_begin = [limit for _, limit in limits]
        self._remaining: dict[str, float] = {}
        self._waiting: dict[str, list[int]] = {}
        for index, (move, _, seconds) in enumerate(tasks):
            for host in (move.source, move.target):
                self._remaining[host] = self._remaining.get(host, 0.0) + seconds / links[host].streams
                self._waiting.setdefault(host, []).append(index)
        self.free = {host: links[host].streams for host in self._remaining}
        self.starts = [-1.0] * len(tasks)

    def _priority(self, index: int) -> tuple[float, float, int]:
        move, _, seconds = self._tasks[index]
        low, high = sorted((self._remaining[move.source], self._remaining[move.target]))
        return (-high, -low - seconds, index)

    def start(self, touched: set[str], now: float) -> list[int]:
        """Begin moves of some hosts while streams are free; return them."""
        candidates = {
            index
            for host in touched
            if self.free[host] > 0
            for index in self._waiting[host]
            if self.starts[index] < 0
        }
        begun = []
        for index in sorted(candidates, key=self._priority):
            move, _, seconds = self._tasks[index]
            limits = self._limits_of(move)
            may_move = all(self._may_begin[row] > 0 for row in limits)
            if may_move and self.free[move.source] > 0 and self.free[move.target] > 0:
                for row in limits:
                    self._may_begin[row] -= 1
                self.starts[index] = now
                begun.append(index)
                for host in (move.source, move.target):
                    self.free[host] -= 1
                    self._remaining[host] -= seconds / self._links[host].streams
        return begun

    def _limits_of(self, move: Move) -> list[int]:
        """Return the limits of moves at once that a move is under."""
        return [row for row, members in enumerate(self._members) if members[move.shape]]

    def end(self, ended: Sequence[int]) -> set[str]:
        """Free the streams of moves that ended; return their hosts."""
        touched = set()
        for index in ended:
            for row in self._limits_of(self._tasks[index][0]):
                self._may_begin[row] += 1
                members = self._members[row]
                touched |= {move.source for move, _, _ in self._tasks if members[move.shape]}
            for host in (self._tasks[index][0].source, self._tasks[index][0].target):
                self.free[host] += 1
                touched.add(host)
                self._waiting[host] = [row for row in self._waiting[host] if self.starts[row] < 0]
        return touched


def bound_s(problem: Consolidation, moves: pd.DataFrame, hosts: Sequence[str]) -> float:
    """Return the time that no order of the moves is below: the largest sum of a host over its streams."""
    links = links_of(problem, hosts)
    busy = dict.fromkeys(hosts, 0.0)
    longest = 0.0
    for row in rows_of(moves):
        for host in (str(row.from_host), str(row.to_host)):
            busy[host] += float(row.seconds) / links[host].streams
        longest = max(longest, float(row.seconds))
    return float(max([longest, *busy.values()], default=0.0)) if len(moves) else 0.0


def can_move(problem: Consolidation, hosts: Sequence[str]) -> Bools:
    """Return whether a machine of each shape may move, and arrives over the slowest link, (M,)."""
    links = links_of(problem, hosts)
    slowest = min((link.gbps / link.streams for link in links.values()), default=DEFAULT_GBPS)
    arrives = np.array([_dirty(problem, shape) < slowest for shape in range(len(problem.machines))])
    return np.asarray(arrives & (problem.at_once > 0))
