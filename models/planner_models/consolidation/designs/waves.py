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

from planner.arrays import Bools, Floats
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of
from planner_models.consolidation.problem.schema import WHOLE_HOST

GBIT_PER_GB: Final = 8.0
DEFAULT_GBPS: Final = 10.0
"""Rate of hosts without a row in `links`."""
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

    A move's wave is one more than the largest of the moves before it on the same hosts. The new host has the
    capacity already: moves go where a plan found some beside the machines of today.
    """
    links = links_of(problem, hosts)
    tasks = []
    for move in moves:
        rate = find_rate(links, move)
        sent = send_gb(float(problem.memory_gb[move.shape]), _dirty(problem, move.shape), rate)
        assert sent is not None, "a plan moves no machine that cannot arrive"
        tasks.append((move, sent, sent * GBIT_PER_GB / rate))
    starts = _list_schedule(tasks, links, problem.at_once)
    wave: dict[str, int] = {}
    rows = []
    for number, index in enumerate(sorted(range(len(tasks)), key=lambda row: (starts[row], row))):
        move, sent, seconds = tasks[index]
        its_wave = 1 + max(wave.get(move.source, 0), wave.get(move.target, 0))
        if starts[index] == 0.0:
            its_wave = 1
        wave[move.source] = max(wave.get(move.source, 0), its_wave)
        wave[move.target] = max(wave.get(move.target, 0), its_wave)
        name = problem.machine_index[move.shape]
        rows.append(
            (number + 1.0, float(its_wave), name, move.source, move.target, sent, starts[index], seconds)
        )
    columns = ["move", "wave", "machine", "from_host", "to_host", "gb", "start_s", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def _dirty(problem: Consolidation, shape: int) -> float:
    return float(problem.machines["dirty_gbps"].to_numpy(float)[shape])


def _list_schedule(
    tasks: Sequence[tuple[Move, float, float]], links: dict[str, Link], at_once: Floats
) -> list[float]:
    """Return the begin of each task: whenever a move ends, those of the busiest hosts begin first.

    at_once  (M,) machines of each shape that may move together
    """
    queue = _Queue(tasks, links, at_once)
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
        self, tasks: Sequence[tuple[Move, float, float]], links: dict[str, Link], at_once: Floats
    ) -> None:
        self._tasks, self._links = tasks, links
        self._of_shape = at_once.copy()
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
            may_move = self._of_shape[move.shape] > 0
            if may_move and self.free[move.source] > 0 and self.free[move.target] > 0:
                self._of_shape[move.shape] -= 1
                self.starts[index] = now
                begun.append(index)
                for host in (move.source, move.target):
                    self.free[host] -= 1
                    self._remaining[host] -= seconds / self._links[host].streams
        return begun

    def end(self, ended: Sequence[int]) -> set[str]:
        """Free the streams of moves that ended; return their hosts."""
        touched = set()
        for index in ended:
            shape = self._tasks[index][0].shape
            self._of_shape[shape] += 1
            if np.isfinite(self._of_shape[shape]):
                touched |= {move.source for move, _, _ in self._tasks if move.shape == shape}
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
