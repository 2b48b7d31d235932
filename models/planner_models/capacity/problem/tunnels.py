"""The only paths that some demands may take: configured tunnels, and paths within a latency limit.

Both are the same to a design: a demand has a list of paths, and its traffic takes these only, in every state.

Latency limits of demands: the paths within them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import file_name
from planner.search.tolerances import ROUNDING
from planner_models.networks.node_lists import LinkNames
from planner_models.networks.tunnels import read_paths

if TYPE_CHECKING:
    from planner_models.capacity.problem.tables import PlanningTables

MOST_PATHS: Final = 50_000
"""Paths within latency limits that a problem may have."""
LATENCY_TOLERANCE: Final = ROUNDING  # relative; a path may be longer than its limit by rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class TunnelPaths:
    """Paths of demands: T of them, for P groups of demands that may take nothing else.

    A group is all demands between two nodes, or those of them with the same latency limit.

    names    (T,) of the paths
    pair     (T,) group of each path
    arcs     (T, A) 1 where a path takes an arc: a link from tail to head, or, where links have both
             directions, L + a link from head to tail
    uses     (T, L) 1 where a path takes a link
    pair_of  (D,) group of each demand, -1 for demands that may take any route
    pairs    number of groups; one without a path is cut off
    limit_ms (P,) latency limit of each group, inf for none
    """

    names: list[str]
    pair: Ints
    arcs: sp.csr_array
    uses: sp.csr_array
    pair_of: Ints
    pairs: int
    limit_ms: Floats

    def work(self, up: Bools) -> Bools:
        """Return whether each path has all its links, (T,).

        up  (L,) links that can be used
        """
        missing: Floats = self.uses @ (~up).astype(float)
        return np.asarray(missing == 0)

    def are_up(self, up: Bools) -> Bools:
        """Return whether each group has a path with all its links, (P,)."""
        reached = np.zeros(self.pairs, dtype=bool)
        reached[self.pair[self.work(up)]] = True
        return reached


@dataclass(frozen=True, kw_only=True, eq=False)
class _Path:
    """One path of a group: its name and its arcs in order."""

    name: str
    group: int
    arcs: tuple[int, ...]


def read_tunnels(problem: PlanningTables) -> tuple[TunnelPaths | None, list[str]]:
    """Return the paths of demands with tunnels or a latency limit, and all faults; None where there are none.

    Tunnels between nodes without a demand are left out, and those beyond the limit of a demand.
    """
    tunnels, faults = _read_table(problem)
    if faults:
        return None, faults
    ends = _pair_keys(problem, problem.source, problem.target)
    limit = effective_limits(problem)
    is_bound = np.isfinite(limit) | np.isin(ends, list(tunnels))
    if not is_bound.any():
        return None, []
    bound = np.flatnonzero(is_bound)
    groups, row = np.unique(np.column_stack([ends[bound], limit[bound]]), axis=0, return_inverse=True)
    pair_of = np.full(len(ends), -1)
    pair_of[bound] = row.ravel()
    paths = _list_paths(problem, tunnels, groups)
    if paths is None:
        fault = (
            f"{file_name(problem.demands, 'demands')}: max_latency_ms leaves more than {MOST_PATHS:,} paths; "
            "tighten the limits, or give the paths in the table tunnels"
        )
        return None, [fault]
    return _as_arrays(problem, paths, pair_of, groups[:, 1]), []


def find_tunnel_faults(problem: PlanningTables) -> list[str]:
    """Return the faults of the table of tunnels alone."""
    return _read_table(problem)[1]


def _read_table(problem: PlanningTables) -> tuple[dict[int, list[tuple[str, tuple[int, ...]]]], list[str]]:
    """Return the tunnels of the table by the key of their ends, name and arcs each, and its faults."""
    if problem.tunnels is None:
        return {}, []
    paths, faults = read_paths(problem.tunnels, problem.nodes["node"].tolist(), _find_arcs(problem))
    if faults:
        return {}, faults
    keys = _pair_keys(problem, paths.source, paths.target).tolist()
    pairs = set(_pair_keys(problem, problem.source, problem.target).tolist())
    tunnels: dict[int, list[tuple[str, tuple[int, ...]]]] = {}
    for key, name, links in zip(keys, paths.name, paths.links, strict=True):
        if key in pairs:
            tunnels.setdefault(key, []).append((name, links))
    return tunnels, []


def _list_paths(
    problem: PlanningTables, tunnels: dict[int, list[tuple[str, tuple[int, ...]]]], groups: Floats
) -> list[_Path] | None:
    """Return the paths of each group (P, 2) of ends and limit; None for more than MOST_PATHS.

    Where the demands between two nodes have several limits, names of paths say which.
    """
    walk = FastPaths(problem) if np.isfinite(groups[:, 1]).any() else None
    seen: set[tuple[int, str]] = set()
    paths_found: list[_Path] = []
    for group, (ends, limit) in enumerate(groups.tolist()):
        key = int(ends)
        candidates: Iterator[tuple[str, tuple[int, ...]]] | list[tuple[str, tuple[int, ...]]]
        if key in tunnels:
            candidates = [
                candidate for candidate in tunnels[key] if walk is None or walk.latency(candidate[1]) <= limit
            ]
        else:
            assert walk is not None
            candidates = walk.within(*divmod(key, len(problem.nodes)), limit)
        for name, arcs in candidates:
            shown = name if (key, name) not in seen else f"{name} (within {limit:g} ms)"
            seen.add((key, name))
            paths_found.append(_Path(name=shown, group=group, arcs=arcs))
            if len(paths_found) > MOST_PATHS:
                return None
    return paths_found


def _as_arrays(problem: PlanningTables, paths: Sequence[_Path], pair_of: Ints, limit: Floats) -> TunnelPaths:
    lines = len(problem.lines)
    row = np.repeat(np.arange(len(paths)), [len(path.arcs) for path in paths])
    arc = np.array([arc_of for path in paths for arc_of in path.arcs], dtype=np.int64)
    count = lines if problem.direction == "directed" else 2 * lines
    ones = np.ones(len(arc))
    return TunnelPaths(
        names=[path.name for path in paths],
        pair=np.array([path.group for path in paths], dtype=np.int64),
        arcs=sp.csr_array((ones, (row, arc)), shape=(len(paths), count)),
        uses=sp.csr_array((ones, (row, arc % lines)), shape=(len(paths), lines)),
        pair_of=pair_of,
        pairs=len(limit),
        limit_ms=limit,
    )


def _find_arcs(problem: PlanningTables) -> LinkNames:
    """Return the arcs of links by their ends and numbers: from tail to head, then the other way."""
    numbers: dict[tuple[int, int], int] = {}
    ends: list[tuple[int, int, int]] = []
    is_directed = problem.direction == "directed"
    for tail, head in zip(problem.tail.tolist(), problem.head.tolist(), strict=True):
        key = (tail, head) if is_directed else (min(tail, head), max(tail, head))
        numbers[key] = numbers.get(key, 0) + 1
        ends.append((tail, head, numbers[key]))
    if not is_directed:
        ends += [(head, tail, nth) for tail, head, nth in ends]
    return LinkNames(ends)


def _pair_keys(problem: PlanningTables, source: Ints, target: Ints) -> Ints:
    """Return a number for each pair of nodes; the same for both directions where links are undirected."""
    if problem.direction == "undirected":
        source, target = np.minimum(source, target), np.maximum(source, target)
    return source * len(problem.nodes) + target


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
