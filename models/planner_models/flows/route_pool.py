"""A pool of routes of demands that grows, none in it twice."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from planner.arrays import Ints
from planner_models.graphs.path_search import FoundPaths


class RoutePool:
    """Paths of demands, in the order found, none twice.

    demand  (P,) of each path
    links   its links in order
    width   number of links of the network
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.demand = np.zeros(0, dtype=np.int64)
        self.links: list[tuple[int, ...]] = []
        self._known: set[tuple[int, tuple[int, ...]]] = set()

    def add(self, paths: FoundPaths, selected: Ints) -> int:
        """Add the selected paths that are new; return their number."""
        demand: list[int] = []
        for path in selected.tolist():
            links = tuple(paths.link[paths.start[path] : paths.start[path + 1]].tolist())
            key = (int(paths.demand[path]), links)
            if key not in self._known:
                self._known.add(key)
                self.links.append(links)
                demand.append(key[0])
        self.demand = np.r_[self.demand, np.array(demand, dtype=np.int64)].astype(np.int64)
        return len(demand)

    def uses(self, first: int = 0) -> sp.csr_array:
        """Return 1 where a path goes over a link, of the paths from `first` on."""
        links = self.links[first:]
        start = np.r_[0, np.cumsum([len(path) for path in links])].astype(np.int64)
        link = np.array([link for path in links for link in path], dtype=np.int64)
        return sp.csr_array((np.ones(len(link)), link, start), shape=(len(links), self.width))

    def paths(self, count: int | None = None) -> tuple[FoundPaths, Ints]:
        """Return the first paths, or all, by demand, and the place of each in the pool."""
        order = np.argsort(self.demand[:count], kind="stable")
        links = [self.links[path] for path in order.tolist()]
        paths = FoundPaths(
            demand=self.demand[order],
            start=np.r_[0, np.cumsum([len(path) for path in links])].astype(np.int64),
            link=np.array([link for path in links for link in path], dtype=np.int32),
        )
        return paths, order
