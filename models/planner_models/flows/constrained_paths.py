"""Cheapest paths within a latency limit, compiled; and paths that must pass or avoid sequences of nodes.

Resource-constrained shortest paths by label setting in the order of A*: labels leave the heap by their cost
plus the cost of a shortest path to the target. At a node, labels then leave in the order of their cost, so
that a label is dominated exactly where one before it had at most its latency.

source  Desrosiers et al. 1995 ("Time constrained routing and scheduling"); Hart, Nilsson and Raphael 1968
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner_models.flows.problem import FlowProblem
from planner_models.flows.route_limits import Conditions, RouteLimits
from planner_models.graphs.binary_heap import pop_heap, push_heap
from planner_models.graphs.path_search import FoundPaths, grow
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra

MAX_LABELS: Final = 50_000  # of one path under conditions, after which only its bound is known


class CheapestPaths(NamedTuple):
    """The cheapest path of each demand asked for.

    found  the paths, of demands that have one
    cost   (n,) lower bound on the cost of each demand's path: its cost where one was found; inf for none
    is_proven  whether each demand without a path is proven to have none
    """

    found: FoundPaths
    cost: Floats
    is_proven: bool


class ConstrainedPathSearch:
    """Searches the cheapest path of each of some demands that keeps its limits."""

    def __init__(self, problem: FlowProblem, limits: RouteLimits, demand: Ints) -> None:
        nodes = len(problem.nodes)
        self.limits = limits
        self._backward = Graph.of(nodes, problem.tail, problem.head)
        reverse = Graph.of(nodes, problem.head, problem.tail)
        self._first, self._leaving = reverse.first, reverse.entering
        has_conditions = np.isin(demand, np.array(sorted(limits.conditions), dtype=np.int64))
        self.demand = demand
        plain = np.flatnonzero(~has_conditions)
        key = limits.allowed_of[demand[plain]] * nodes + problem.target[demand[plain]]
        self._plain = plain[np.argsort(key, kind="stable")]
        self._conditioned = np.flatnonzero(has_conditions)
        self._source, self._target = problem.source, problem.target

    def search(self, cost: Floats) -> CheapestPaths:
        """Return the cheapest paths by the cost of links, (E,) at least 0."""
        cheapest = np.full(len(self.demand), np.inf)
        demand = self.demand[self._plain]
        limits = self.limits
        network = _Network(
            self._backward,
            self._first,
            self._leaving,
            limits.allowed,
            np.maximum(cost, 0.0),
            limits.latency_ms,
        )
        requests = _Requests(
            self._source[demand],
            self._target[demand],
            limits.allowed_of[demand],
            limits.max_latency_ms[demand],
        )
        hops, link, cost_found = _search(network, requests)
        cheapest[self._plain] = cost_found
        has_path = np.isfinite(cost_found)
        owner = self._plain[has_path]
        parts = [link]
        lengths = hops[has_path].tolist()
        is_proven = True
        more: list[int] = []
        for index in self._conditioned.tolist():
            path, bound = self._search_conditioned(int(self.demand[index]), np.maximum(cost, 0.0))
            cheapest[index] = bound
            if path is None:
                is_proven &= not np.isfinite(bound)
                continue
            parts.append(np.array(path, dtype=np.int32))
            lengths.append(len(path))
            more.append(index)
        owner = np.r_[owner, np.array(more, dtype=np.int64)].astype(np.int64)
        paths = FoundPaths(
            demand=self.demand[owner],
            start=np.r_[0, np.cumsum(lengths)].astype(np.int64),
            link=np.concatenate(parts).astype(np.int32),
        )
        return CheapestPaths(found=paths, cost=cheapest, is_proven=is_proven)

    # --- under conditions -----------------------------------------------------------------

    def _search_conditioned(self, demand: int, cost: Floats) -> tuple[list[int] | None, float]:
        """Return the cheapest loopless path of a demand with conditions, and a lower bound on its cost."""
        conditions, target = self.limits.conditions[demand], int(self._target[demand])
        allowed = self.limits.allowed[self.limits.allowed_of[demand]]
        to_go, time_to_go = (
            _RemainingCost(self._backward, conditions, target, np.where(allowed, amount, np.inf))
            for amount in (cost, self.limits.latency_ms)
        )
        max_latency = float(self.limits.max_latency_ms[demand])
        source = int(self._source[demand])
        state = conditions.start(source)
        if state is None or not np.isfinite(to_go(source, *state)):
            return None, np.inf
        counter = itertools.count()
        first = _Label(source, *state, visited=1 << source, cost=0.0, latency=0.0, link=-1, before=None)
        heap = [(to_go(source, *state), next(counter), first)]
        settled: dict[tuple[object, ...], list[_Label]] = {}
        labels = 0
        while heap:
            bound, _, label = heapq.heappop(heap)
            if label.node == target:
                return label.links(), label.cost
            before = settled.setdefault((label.node, label.met, label.passed), [])
            if any(other.dominates(label) for other in before):
                continue
            before.append(label)
            labels += 1
            if labels > MAX_LABELS:
                return None, bound
            for onward in self._extend(label, conditions, allowed, cost, target):
                position = onward.node, onward.met, onward.passed
                total = max(bound, onward.cost + to_go(*position))
                if onward.latency + time_to_go(*position) <= max_latency and np.isfinite(total):
                    heapq.heappush(heap, (total, next(counter), onward))
        return None, np.inf

    def _extend(
        self, label: _Label, conditions: Conditions, allowed: Bools, cost: Floats, target: int
    ) -> Iterator[_Label]:
        """Yield the label of each path that goes one link on, to a node that it has not visited."""
        first = self._first
        for link in self._leaving[first[label.node] : first[label.node + 1]].tolist():
            node = int(self._backward.head[link])
            if not allowed[link] or label.visited >> node & 1:
                continue
            state = conditions.step(label.met, label.passed, node)
            if state is not None and (node != target or state[0] == conditions.all_met):
                yield _Label(
                    node,
                    *state,
                    visited=label.visited | 1 << node,
                    cost=label.cost + float(cost[link]),
                    latency=label.latency + float(self.limits.latency_ms[link]),
                    link=link,
                    before=label,
                )


@dataclass(frozen=True, slots=True, eq=False)
class _Label:
    """A path from the source to a node: the conditions met, nodes visited as bits, cost and latency."""

    node: int
    met: int
    passed: tuple[int, ...]
    visited: int
    cost: float
    latency: float
    link: int
    before: _Label | None

    def dominates(self, other: _Label) -> bool:
        """Return whether every way on from another path with no less cost is one from this path too."""
        return self.latency <= other.latency and self.visited & other.visited == self.visited

    def links(self) -> list[int]:
        """Return the links of the path in order."""
        links: list[int] = []
        label = self
        while label.before is not None:
            links.append(label.link)
            label = label.before
        return links[::-1]


class _RemainingCost:
    """Lower bound on the cost from a node to the target through the remaining conditions of a path.

    Each group that is not met bounds it by itself: through the cheapest of its sequences, from where the path
    is in it or from its start.
    """

    def __init__(self, backward: Graph, conditions: Conditions, target: int, cost: Floats) -> None:
        self._conditions, self._cost = conditions, cost
        roots = {target} | {node for group in conditions.needs for nodes in group for node in nodes}
        self._to = {root: _distances(backward, cost, root) for root in roots}
        self._target = target
        self._place = list(itertools.accumulate((len(group) for group in conditions.needs), initial=0))

    def __call__(self, node: int, met: int, passed: Sequence[int]) -> float:
        direct = self._to[self._target]
        largest = float(direct[node])
        for number, group in enumerate(self._conditions.needs):
            if met >> number & 1:
                continue
            smallest = np.inf
            for nodes, count in zip(group, passed[self._place[number] :], strict=False):
                # the sequence is followed to its end, whatever its steps cost, and then to the target
                direct_cost = float(direct[nodes[-1]])
                smallest = min(smallest, float(self._to[nodes[0]][node]) + direct_cost)
                if count:
                    smallest = min(smallest, float(self._to[nodes[count]][node]) + direct_cost)
            largest = max(largest, smallest)
        return largest


def _distances(backward: Graph, cost: Floats, root: int) -> Floats:
    tree, parent = allocate(backward.nodes), np.empty(backward.nodes, dtype=np.int32)
    dijkstra(backward, cost, root, tree, parent)
    return np.array(tree.distance)


# --- compiled -----------------------------------------------------------------------------


class _Network(NamedTuple):
    """Links: those that leave node v are leaving[first[v] : first[v + 1]].

    backward         graph of trees towards their roots
    allowed          (sets, E) links of each set that demands may take
    cost, latency    (E,)
    """

    backward: Graph
    first: Ints32
    leaving: Ints32
    allowed: Bools
    cost: Floats
    latency: Floats


class _Requests(NamedTuple):
    """Demands that ask for a path, (n,) each: ends, row of their links in `allowed`, and latency limit."""

    source: Ints
    target: Ints
    allowed_of: Ints
    max_latency: Floats


class _Towards(NamedTuple):
    """Costs and delays of links that are allowed, (E,), and of the cheapest and the fastest way, (N,)."""

    length: Floats
    delay: Floats
    cost_to_go: Floats
    time_to_go: Floats


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _search(network, requests):  # type: ignore[no-untyped-def]
    """Return the number of links of each demand's cheapest path, all links, and each cost; inf for no path.

    Demands with one target and one set of links stand together and share their trees.
    """
    backward, cost, latency, max_latency = (
        network.backward,
        network.cost,
        network.latency,
        requests.max_latency,
    )
    source, target, allowed_of = requests.source, requests.target, requests.allowed_of
    nodes, count = backward.nodes, len(source)
    tree, quick = allocate(nodes), allocate(nodes)
    parent, faster = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    hops, cost_found = np.zeros(count, np.int64), np.full(count, np.inf)
    link, size = np.empty(16 * count + nodes, np.int32), 0
    length, delay = np.empty(len(cost)), np.empty(len(cost))
    path = np.empty(nodes, np.int32)
    shortest = np.empty(nodes)
    towards = _Towards(length, delay, tree.distance, quick.distance)
    for k in range(count):
        s, t = source[k], target[k]
        if k == 0 or target[k - 1] != t or allowed_of[k - 1] != allowed_of[k]:
            for e in range(len(cost)):
                is_allowed = network.allowed[allowed_of[k], e]
                length[e] = cost[e] if is_allowed else np.inf
                delay[e] = latency[e] if is_allowed else np.inf
            dijkstra(backward, length, t, tree, parent)
            dijkstra(backward, delay, t, quick, faster)
        if tree.distance[s] == np.inf or quick.distance[s] > max_latency[k]:
            continue
        steps, time, v = 0, 0.0, s
        while v != t:
            path[steps] = parent[v]
            time += latency[parent[v]]
            steps += 1
            v = backward.head[parent[v]]
        cost_found[k] = tree.distance[s]
        if time > max_latency[k]:
            steps, cost_found[k] = _within(network, towards, s, t, max_latency[k], shortest, path)
        hops[k] = steps
        if size + steps > len(link):
            longer = np.empty(2 * (size + steps), np.int32)
            longer[:size] = link[:size]
            link = longer
        link[size : size + steps] = path[:steps]
        size += steps
    return hops, link[:size].copy(), cost_found


@njit(cache=True)
def _within(network, towards, s, t, max_latency, shortest, path):  # type: ignore[no-untyped-def]
    """Write the cheapest path from s to t within a delay to `path`; return its links' number and its cost."""
    head, first, leaving = network.backward.head, network.first, network.leaving
    length, delay, to_go, time_to_go = towards
    capacity = 1024
    node, link, before = (
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
    )
    spent, time, key = np.empty(capacity), np.empty(capacity), np.empty(capacity)
    heap = np.empty(capacity, np.int32)
    for v in range(len(shortest)):
        shortest[v] = np.inf  # least delay of the labels that have left the heap
    node[0], link[0], before[0], spent[0], time[0], key[0] = s, -1, -1, 0.0, 0.0, to_go[s]
    size, labels = push_heap(heap, key, None, 0, 0, time), 1
    while size > 0:
        top, size = pop_heap(heap, key, None, size, time)
        v = node[top]
        if time[top] >= shortest[v]:
            continue
        shortest[v] = time[top]
        if v == t:
            return _write_path(before, link, top, path), spent[top]
        for j in range(first[v], first[v + 1]):
            e = leaving[j]
            u = head[e]
            if length[e] == np.inf:
                continue
            later = time[top] + delay[e]
            if later >= shortest[u] or later + time_to_go[u] > max_latency or to_go[u] == np.inf:
                continue
            if labels == capacity:
                capacity *= 2
                node, link, before = grow(node, capacity), grow(link, capacity), grow(before, capacity)
                spent, time, key = grow(spent, capacity), grow(time, capacity), grow(key, capacity)
                heap = grow(heap, capacity)
            new = labels
            labels += 1
            node[new], link[new], before[new] = u, e, top
            spent[new], time[new] = spent[top] + length[e], later
            key[new] = max(key[top], spent[new] + to_go[u])
            size = push_heap(heap, key, None, size, new, time)
    return 0, np.inf


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


@njit(cache=True)
def _write_path(before, link, last, path):  # type: ignore[no-untyped-def]
    """Write the links that lead to label `last`, in order; return their number."""
    steps, label = 0, last
    while before[label] >= 0:
        steps += 1
        label = before[label]
    label = last
    for i in range(steps - 1, -1, -1):
        path[i] = link[label]
        label = before[label]
    return steps
