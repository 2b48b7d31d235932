"""Path formulation of multi-commodity flow: candidate paths and a linear program over them."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra, yen

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.backends.linear_program import Columns, LinearProgram
from planner_models.traffic.designs.link_flow_program import Objective, flow_program, link_cost
from planner_models.traffic.problem.problem import Traffic

PathChoice = Literal["shortest", "disjoint"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidatePaths:
    """Candidate paths of every demand with a rate.

    demand  (P,) demand of each path, ascending; a demand's paths stand from light to heavy
    links   for each path its links in order
    """

    demand: Ints
    links: tuple[tuple[int, ...], ...]

    def without_path(self, problem: Traffic) -> Bools:
        """Return the demands with a rate and without a path, shape (K,)."""
        missing = problem.rate_mbps > 0
        missing[self.demand] = False
        return missing

    @cached_property
    def uses(self) -> sp.csr_array:
        """(P, E) 1 where a path goes over a link."""
        hops = [len(path) for path in self.links]
        row = np.repeat(np.arange(len(hops)), hops)
        column = np.fromiter((link for path in self.links for link in path), dtype=np.int64, count=sum(hops))
        return sp.csr_array((np.ones(len(row)), (row, column)), shape=(len(hops), self._width))

    _width: int = 0


def find_paths(
    problem: Traffic, *, count: int, choice: PathChoice = "shortest", max_hops: int | None = None
) -> CandidatePaths:
    """Return up to `count` loopless paths for each demand, by weight.

    shortest  the `count` lightest paths (Yen 1971); under a hop limit, the lightest of those found
              within it, the path with fewest hops always among them
    disjoint  the shortest path, then the shortest without the links of those before, and so on

    A demand without a path within `max_hops` has none here.
    """
    searcher = _PathFinder(problem)
    demands: list[int] = []
    chosen: list[tuple[int, ...]] = []
    for k in np.flatnonzero(problem.rate_mbps > 0).tolist():
        source, target = int(problem.source[k]), int(problem.target[k])
        if choice == "shortest":
            found = searcher.shortest(source, target, count, max_hops)
        else:
            found = searcher.disjoint(source, target, count, max_hops)
        demands += [k] * len(found)
        chosen += found
    return CandidatePaths(
        demand=np.array(demands, dtype=np.int64), links=tuple(chosen), _width=len(problem.links)
    )


def build(
    problem: Traffic, objective: Objective, paths: CandidatePaths, *, least_mbps: float | None = None
) -> LinearProgram:
    """Return the linear program of `objective` over the rates of given paths, see `flow_program`."""
    count = len(paths.links)
    wanted, row = np.unique(paths.demand, return_inverse=True)
    return flow_program(
        problem,
        objective,
        send=sp.coo_array((np.ones(count), (row, np.arange(count))), shape=(len(wanted), count)),
        of_demand=sp.eye_array(len(wanted), format="coo"),
        wanted=wanted,
        load=paths.uses.T.tocoo(),
        columns=Columns(name="path", count=count, labels=lambda: _path_labels(problem, paths)),
        rows=("serve", lambda: [problem.demand_labels[k] for k in wanted]),
        price=paths.uses @ link_cost(problem) if objective == "cost" else None,
        least_mbps=least_mbps,
        suffix=" over paths",
    )


def route_table(problem: Traffic, paths: CandidatePaths, rate_mbps: Floats) -> pd.DataFrame:
    """Return the plan table `routes` for rates (P,), Mbit/s: a row for each path with a rate."""
    names = problem.nodes["node"].tolist()
    used = np.flatnonzero(rate_mbps > 0)
    demand = paths.demand[used]
    frame = pd.DataFrame(
        {
            "source": problem.demands["source"].to_numpy()[demand],
            "target": problem.demands["target"].to_numpy()[demand],
            "path": [
                json.dumps(_node_names(problem, paths.links[p], names), ensure_ascii=False) for p in used
            ],
            "rate_mbps": rate_mbps[used],
        }
    )
    if (problem.parallel > 1).any():
        frame["parallel"] = [
            json.dumps([int(problem.parallel[link]) for link in paths.links[p]]) for p in used
        ]
    return frame


def _path_labels(problem: Traffic, paths: CandidatePaths) -> list[str]:
    names = problem.nodes["node"].tolist()
    return ["->".join(_node_names(problem, links, names)) for links in paths.links]


def _node_names(problem: Traffic, links: tuple[int, ...], names: list[str]) -> list[str]:
    return [names[problem.tail[links[0]]], *(names[problem.head[link]] for link in links)]


class _PathFinder:
    """Shortest paths in a network with parallel links.

    SciPy's graphs have one edge between two nodes, so a parallel link gets a node of its own in its
    middle, and half its weight on either side.
    """

    def __init__(self, problem: Traffic) -> None:
        self.count = len(problem.nodes)
        extra = np.flatnonzero(problem.parallel > 1)
        middle = np.full(len(problem.links), -1)
        middle[extra] = self.count + np.arange(len(extra))
        single = np.flatnonzero(problem.parallel == 1)
        self.tail = np.concatenate([problem.tail[single], problem.tail[extra], middle[extra]])
        self.head = np.concatenate([problem.head[single], middle[extra], problem.head[extra]])
        self.link = np.concatenate([single, extra, extra])
        self.hops = np.concatenate([np.ones(len(single)), np.full(2 * len(extra), 0.5)])
        self.weight = problem.weight[self.link] * self.hops
        self.size = self.count + len(extra)
        self.link_between = dict(
            zip(zip(self.tail.tolist(), self.head.tolist(), strict=True), self.link.tolist(), strict=True)
        )
        self.by_weight = self._graph(self.weight)
        self.by_hops = self._graph(self.hops)
        self.link_weight = problem.weight

    def shortest(self, source: int, target: int, count: int, max_hops: int | None) -> list[tuple[int, ...]]:
        if max_hops is None:
            return self._yen(self.by_weight, source, target, count)
        found = self._yen(self.by_weight, source, target, 4 * count) + self._yen(
            self.by_hops, source, target, count
        )
        within = {path for path in found if len(path) <= max_hops}
        return sorted(within, key=lambda path: (sum(self.link_weight[list(path)]), len(path), path))[:count]

    def disjoint(self, source: int, target: int, count: int, max_hops: int | None) -> list[tuple[int, ...]]:
        unused = np.ones(len(self.link), dtype=bool)
        found: list[tuple[int, ...]] = []
        # under a hop limit fewest hops come first, or a light path that is too long would hide a short one
        weight = self.weight if max_hops is None else self.hops + self.weight / (1 + 4 * self.weight.sum())
        while len(found) < count:
            graph = self._graph(weight, unused)
            path = self._trace(dijkstra(graph, indices=source, return_predecessors=True)[1], source, target)
            if path is None or (max_hops is not None and len(path) > max_hops):
                break
            found.append(path)
            unused &= ~np.isin(self.link, path)
        return found

    def _yen(self, graph: sp.csr_array, source: int, target: int, count: int) -> list[tuple[int, ...]]:
        _, before = yen(graph, source, target, count, return_predecessors=True)
        paths = [self._trace(row, source, target) for row in before]
        return [path for path in paths if path is not None]

    def _trace(self, before: Ints32, source: int, target: int) -> tuple[int, ...] | None:
        nodes = [target]
        while nodes[-1] != source:
            nodes.append(int(before[nodes[-1]]))
            if nodes[-1] < 0:
                return None
        nodes.reverse()
        links = [self.link_between[hop] for hop in itertools.pairwise(nodes)]
        return tuple(dict.fromkeys(links))  # the two halves of a parallel link are one link

    def _graph(self, weight: Floats, keep: Bools | None = None) -> sp.csr_array:
        keep = np.ones(len(weight), dtype=bool) if keep is None else keep
        places = (self.tail[keep].astype(np.int32), self.head[keep].astype(np.int32))  # `yen` takes no others
        return sp.csr_array((weight[keep], places), shape=(self.size, self.size))
