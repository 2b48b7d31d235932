"""Shortcuts in the IGP: routers take reservations for next hops towards all nodes behind their ends.

Demands with a setup priority are label-switched paths, reserved as by design `cspf`. All other traffic
follows shortest paths hop by hop. In the shortest-path tree of a router, the end of a path that starts
there has the path as first hop, in place of what it would inherit, and the nodes behind it inherit the
path. A path counts with the metric of the IGP to its end, so that each hop and each path leads nearer to
the target.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible
from planner.search.tolerances import ROUNDING
from planner_models.graphs.distances import find_distances
from planner_models.traffic.designs.reserved_paths import (
    Order,
    Path,
    PathSearch,
    Reservations,
    Tie,
    signal_all,
)
from planner_models.traffic.designs.routable import shed_unreachable_by_demand
from planner_models.traffic.plan.plan import Routing, routing_by_target
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.tables import lightest_links

Hop = int
"""First hop: a link, or -1 - k for path k."""


@shed_unreachable_by_demand
def route(
    problem: Traffic, *, order: Order = "priority", tie: Tie = "first", options: Options = Options()
) -> Decision[Routing]:
    """Reserve demands that have a setup priority, and send all others on shortest paths with shortcuts.

    A demand with a priority that is refused follows the IGP as the others. All demands are served, and links
    may be overloaded, as traffic of the IGP reserves nothing. Among equal first hops traffic splits evenly.

    source  RFC 3906 (shortest paths over tunnels); RFC 3209
    """
    is_reserved = _reserved_demands(problem)
    reserved = problem.with_rates(np.where(is_reserved, problem.rate_mbps, 0.0))
    reservations = Reservations.of(reserved, problem.setup_priority, problem.hold_priority)
    signal_all(reserved, reservations, PathSearch(reserved, tie), order, Deadline.of(options))
    shortcuts = _Shortcuts(problem, [path for path in reservations.path if path is not None])
    sent = np.flatnonzero(problem.rate_mbps > 0)
    commodity, row_of = np.unique(problem.commodity[sent], return_inverse=True)  # a class and a target each
    flow = np.zeros((len(commodity), len(problem.links)))
    waiting = np.zeros((len(commodity), len(problem.nodes)))
    for demand, row in zip(sent.tolist(), row_of.tolist(), strict=True):
        path, rate = reservations.path[demand], problem.rate_mbps[demand]
        if path is None:
            waiting[row, problem.source[demand]] += rate
        else:
            flow[row, list(path)] += rate
    for row in np.flatnonzero(waiting.any(axis=1)).tolist():
        target = int(np.searchsorted(problem.targets, commodity[row] % len(problem.nodes)))
        shortcuts.forward(target, waiting[row], flow[row])
    plan = routing_by_target(problem, sp.csr_array(flow), commodity.astype(np.int64))
    return Decision(plan=plan, proof=feasible(), guarantees=frozenset({"demand"}))


def _reserved_demands(problem: Traffic) -> Bools:
    """Return the demands with a setup priority of their own, (K,)."""
    if "setup_priority" not in problem.demands:
        return np.zeros(len(problem.demands), dtype=bool)
    return np.asarray(problem.demands["setup_priority"].notna())


class _Shortcuts:
    """First hops of routers in the IGP, where paths start."""

    def __init__(self, problem: Traffic, paths: list[Path]) -> None:
        self.problem, self.paths = problem, paths
        self.ends: dict[int, dict[int, list[Hop]]] = defaultdict(lambda: defaultdict(list))
        for index, path in enumerate(paths):
            start, end = int(problem.tail[path[0]]), int(problem.head[path[-1]])
            self.ends[start][end].append(-1 - index)
        order = np.argsort(problem.tail, kind="stable")
        ends = np.cumsum(np.bincount(problem.tail, minlength=len(problem.nodes)))[:-1]
        self._leaving = [links.tolist() for links in np.split(order, ends)]
        self._head, self._weight = problem.head.tolist(), problem.weight.tolist()
        self._first_hops: dict[int, dict[int, frozenset[Hop]]] = {}

    def forward(self, row: int, traffic: Floats, flow: Floats) -> None:
        """Add the flow of traffic to a target to `flow`, (E,), from the farthest node on.

        row      of the target
        traffic  (N,) that enters at each node, Mbit/s
        """
        problem = self.problem
        distance, target = problem.distance[row], int(problem.targets[row])
        arriving = traffic.copy()
        for node in np.argsort(-distance, kind="stable").tolist():
            amount = arriving[node]
            if node == target or amount <= 0:
                continue
            hops = self.next_hops(node, row)
            for hop in hops:
                part = amount / len(hops)
                links = [hop] if hop >= 0 else list(self.paths[-1 - hop])
                flow[links] += part
                arriving[self._head[links[-1]]] += part

    def next_hops(self, node: int, row: int) -> list[Hop]:
        """Return the first hops from a node to a target, links and paths."""
        problem = self.problem
        if node in self.ends:
            if node not in self._first_hops:
                self._first_hops[node] = self._search(node)
            return sorted(self._first_hops[node][int(problem.targets[row])])
        distance = problem.distance[row]
        longest = distance[node] * (1 + ROUNDING)
        return [
            link for link in self._leaving[node] if self._weight[link] + distance[self._head[link]] <= longest
        ]

    def _search(self, root: int) -> dict[int, frozenset[Hop]]:
        """Return the first hops of a router to each node, nodes in the order of their distance."""
        problem = self.problem
        # distances from the root: to it, over links that are turned round
        turned = lightest_links(len(problem.nodes), problem.head, problem.tail, problem.weight)
        distance = np.asarray(find_distances(turned, np.array([root])))[0]
        hops: dict[int, set[Hop]] = defaultdict(set)
        result: dict[int, frozenset[Hop]] = {}
        for node in np.argsort(distance, kind="stable").tolist():
            if not np.isfinite(distance[node]):
                break
            own = self.ends[root].get(node)
            result[node] = frozenset(own if own else hops[node])
            for link in self._leaving[node]:
                head = self._head[link]
                if distance[node] + self._weight[link] <= distance[head] * (1 + ROUNDING):
                    hops[head] |= {link} if node == root else result[node]
        return result
