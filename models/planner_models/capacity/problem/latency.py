"""Latency limits of demands: the paths within them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Floats
from planner.search.tolerances import ROUNDING

if TYPE_CHECKING:
    from planner_models.capacity.problem.tables import PlanningTables

LATENCY_TOLERANCE: Final = ROUNDING  # relative; a path may be longer than its limit by rounding


def effective_limits(problem: PlanningTables) -> Floats:
    """Return the latency limit of each demand, ms, inf where no path without a circle can exceed it, (D,)."""
    limit = problem.max_latency_ms
    if not np.isfinite(limit).any():
        return limit
    longest = np.sort(problem.latency_ms[problem.is_usable])[::-1]
    longest_path = float(longest[: len(problem.nodes) - 1].sum())
    unlimited: Floats = np.where(limit >= longest_path, np.inf, limit)
    return unlimited


class FastPaths:
    """Finds all paths without a circle between two nodes within a latency limit."""

    def __init__(self, problem: PlanningTables) -> None:
        self.names = problem.nodes["node"].tolist()
        count, lines = len(self.names), len(problem.lines)
        tail, head = problem.tail, problem.head
        delay, arc = problem.latency_ms, np.arange(lines)
        usable = problem.is_usable
        if problem.direction != "directed":
            tail, head = np.r_[tail, head], np.r_[head, tail]
            delay, arc, usable = np.r_[delay, delay], np.r_[arc, lines + arc], np.r_[usable, usable]
        self._delay: dict[int, float] = dict(zip(arc.tolist(), delay.tolist(), strict=True))
        self._leaving: list[list[tuple[int, int, float]]] = [[] for _ in range(count)]
        for a, b, item, time in zip(
            tail[usable].tolist(),
            head[usable].tolist(),
            arc[usable].tolist(),
            delay[usable].tolist(),
            strict=True,
        ):
            self._leaving[a].append((b, item, time))
        dense = np.full((count, count), np.inf)
        np.minimum.at(dense, (head[usable], tail[usable]), np.maximum(delay[usable], 1e-12))
        graph = sp.csr_array(np.where(np.isfinite(dense), dense, 0.0))
        self._to_go: Floats = dijkstra(graph)  # from each target against the links

    def latency(self, arcs: Sequence[int]) -> float:
        """Return the latency of a path, ms."""
        return sum(self._delay[arc] for arc in arcs) * (1 - LATENCY_TOLERANCE)

    def within(self, source: int, target: int, limit: float) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the name and the arcs of each path from source to target within a limit, ms."""
        upper, to_go = limit * (1 + LATENCY_TOLERANCE), self._to_go[target]
        visited, steps = [source], [(-1, 0.0)]
        names: dict[str, int] = {}
        waiting = [iter(self._leaving[source])]
        while waiting:
            step = next(waiting[-1], None)
            if step is None:
                waiting.pop()
                visited.pop()
                steps.pop()
                continue
            node, arc, time = step
            spent = steps[-1][1] + time
            if node in visited or spent + to_go[node] > upper + 1e-9:
                continue
            if node == target:
                if spent <= upper:
                    name = " > ".join(self.names[item] for item in (*visited, node))
                    names[name] = names.get(name, 0) + 1
                    number = f" ({names[name]})" if names[name] > 1 else ""
                    yield name + number, (*(item for item, _ in steps[1:]), arc)
                continue
            visited.append(node)
            steps.append((arc, spent))
            waiting.append(iter(self._leaving[node]))
