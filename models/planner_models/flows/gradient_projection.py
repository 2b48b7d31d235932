"""Gradient projection over paths: traffic of each pair shifts between the pair's own paths.

For few pairs per root (data centres, not gravity matrices) whole trees are too coarse: to balance w
uplinks takes w trees that all fit. Here every pair keeps its own paths. In each pass the shortest tree
of a root offers every pair a path; then each path in use shifts traffic to the pair's cheapest path,
as much as a Newton step on the smoothed largest utilization asks for (see `coordinate_descent`).
Shifts between paths in use converge quickly, unlike steps towards a vertex, and the prices at the end
are exact also where many links are equally full.

source  Jayakrishnan, Tsai, Prashker and Rajadhyaksha, "A faster path-based algorithm for traffic
        assignment" (1994)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner_models.flows.reduced_problem import WeightedPaths
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra

MAX_PATHS: Final = 64  # of one pair; then the path with the least traffic is replaced
PRICE_FLOOR: Final = float(np.exp(-30.0))  # orders unloaded links, below the precision of any price


class _Links(NamedTuple):
    """Links under the smoothed maximum: `length` (A,) is its derivative by load, up to a factor."""

    capacity: Floats
    load: Floats
    length: Floats
    sharpness: float
    top: float  # largest utilization when the pass began


class _Pairs(NamedTuple):
    """Pairs as in `PathFlows`."""

    roots: Ints32
    begin: Ints
    node: Ints32
    rate: Floats


class _Paths(NamedTuple):
    """Paths of pairs as in `PathFlows`."""

    arcs: Ints32
    flow: Floats


@dataclass(kw_only=True, eq=False)
class PathFlows:
    """Flows of pairs on paths; a slot without flow is free.

    roots  (R,) nodes; begin (R + 1,): the pairs of root r are begin[r] to begin[r + 1]
    node   (C,) where each pair starts; rate (C,) its traffic
    arcs   (C, Q, H) int32 arcs of each path, -1 behind its last; flow (C, Q) traffic on it
    load   (A,) of all paths
    """

    roots: Ints32
    begin: Ints
    node: Ints32
    rate: Floats
    arcs: Ints32
    flow: Floats
    load: Floats

    @classmethod
    def of(cls, graph: Graph, roots: Ints, row: Ints, node: Ints, rate: Floats) -> PathFlows:
        """Return flows without any path yet, for pairs in the order of their root's row."""
        return cls(
            roots=roots.astype(np.int32),
            begin=np.searchsorted(row, np.arange(len(roots) + 1)).astype(np.int64),
            node=node.astype(np.int32),
            rate=rate,
            arcs=np.full((len(node), 4, 8), -1, dtype=np.int32),
            flow=np.zeros((len(node), 4)),
            load=np.zeros(len(graph.tail)),
        )

    def run_pass(self, graph: Graph, capacity: Floats, sharpness: float) -> float:
        """Run one pass over all pairs; return the relative excess cost of used over shortest paths."""
        while True:
            self.load[:] = self._total_load()
            links = _Links(
                capacity=capacity,
                load=self.load,
                length=np.empty(len(capacity)),
                sharpness=float(sharpness),
                top=float(max((self.load / capacity).max(initial=0.0), 0.0)),
            )
            pairs = _Pairs(self.roots, self.begin, self.node, self.rate)
            excess, full, long = _run_pass(graph, links, pairs, _Paths(self.arcs, self.flow))
            if not full and not long:
                return float(excess)
            self._extend(graph, full, long)

    def _total_load(self) -> Floats:
        used = self.arcs >= 0
        flow = np.broadcast_to(self.flow[:, :, None], self.arcs.shape)
        return np.bincount(self.arcs[used], flow[used], minlength=len(self.load)).astype(float)

    def _extend(self, graph: Graph, full: bool, long: bool) -> None:
        """Allocate twice the slots for paths of a pair, or twice the hops of a path."""
        pairs, slots, hops = self.arcs.shape
        more_slots = min(2 * slots, MAX_PATHS) if full else slots
        more_hops = min(2 * hops, graph.nodes) if long else hops
        arcs = np.full((pairs, more_slots, more_hops), -1, dtype=np.int32)
        arcs[:, :slots, :hops] = self.arcs
        flow = np.zeros((pairs, more_slots))
        flow[:, :slots] = self.flow
        self.arcs, self.flow = arcs, flow

    def weighted_paths(self) -> WeightedPaths:
        """Return the arcs of all paths in use, with their shares of the pairs' traffic."""
        share = self.flow / self.flow.sum(axis=1, keepdims=True)
        pair, slot, hop = np.nonzero((self.arcs >= 0) & (share > 0)[:, :, None])
        return WeightedPaths(
            pair=pair, arc=self.arcs[pair, slot, hop].astype(np.int64), share=share[pair, slot]
        )


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _run_pass(graph, links, pairs, paths):  # type: ignore[no-untyped-def]
    """Return the relative excess cost, and whether slots or hops were too few (then nothing is complete)."""
    nodes, length, rate, flow = graph.nodes, links.length, pairs.rate, paths.flow
    hops = paths.arcs.shape[2]
    parent, path, work = np.empty(nodes, np.int32), np.empty(nodes, np.int32), allocate(nodes)
    side = np.zeros(len(graph.tail), np.int8)
    for e in range(len(graph.tail)):
        _update_length(links, e)
    used_cost, shortest_cost = 0.0, 0.0
    for r in range(len(pairs.roots)):
        dijkstra(graph, length, pairs.roots[r], work, parent)
        for c in range(pairs.begin[r], pairs.begin[r + 1]):
            # the tree's path
            count, v, tree_cost = 0, pairs.node[c], 0.0
            while v != pairs.roots[r]:
                path[count] = parent[v]
                tree_cost += length[parent[v]]
                count += 1
                v = graph.head[parent[v]]
            best, cheapest, used_cost, has_path = _find_cheapest(links, paths, c, used_cost)
            shortest_cost += rate[c] * min(tree_cost, cheapest)
            if best < 0 or tree_cost < cheapest * (1.0 - 1e-9):
                if count > hops:
                    return 0.0, False, True
                free = _free_slot(links, paths, c, best)
                if free < 0:
                    return 0.0, True, False
                best = free
                for h in range(hops):
                    paths.arcs[c, best, h] = path[h] if h < count else -1
                if not has_path:
                    flow[c, best] = rate[c]
                    _add_load(links, path[:count], rate[c])
                    continue
            _shift_to_cheapest(links, paths, c, best, rate[c], side)
    return (used_cost - shortest_cost) / shortest_cost if shortest_cost > 0 else 0.0, False, False


@njit(cache=True)
def _add_load(links, path, rate):  # type: ignore[no-untyped-def]
    for e in path:
        links.load[e] += rate
        _update_length(links, e)


@njit(cache=True)
def _find_cheapest(links, paths, c, used_cost):  # type: ignore[no-untyped-def]
    """Return the cheapest path of pair c with its cost, the cost of all used paths, and whether any is used.

    used_cost  that of the pairs before, to which this pair's is added
    """
    arcs, flow = paths.arcs, paths.flow
    best, cheapest, has_path = -1, np.inf, False
    for q in range(arcs.shape[1]):
        if flow[c, q] <= 0.0:
            continue
        has_path = True
        cost = 0.0
        for h in range(arcs.shape[2]):
            if arcs[c, q, h] < 0:
                break
            cost += links.length[arcs[c, q, h]]
        used_cost += flow[c, q] * cost
        if cost < cheapest:
            best, cheapest = q, cost
    return best, cheapest, used_cost, has_path


@njit(cache=True)
def _free_slot(links, paths, c, best):  # type: ignore[no-untyped-def]
    """Return a slot of pair c without flow; -1 where more slots can be allocated.

    With as many slots as there may be, the path with the least flow moves to the cheapest one, `best`.
    """
    flow, slots = paths.flow, paths.arcs.shape[1]
    for q in range(slots):
        if not flow[c, q] > 0.0:
            return q
    if slots < MAX_PATHS:
        return -1
    free = 0 if best != 0 else 1
    for q in range(slots):
        if q != best and flow[c, q] < flow[c, free]:
            free = q
    _shift_flow(links, paths, c, free, best, flow[c, free])
    return free


@njit(cache=True)
def _shift_to_cheapest(links, paths, c, best, rate, side):  # type: ignore[no-untyped-def]
    """Shift flow of pair c to its cheapest path, by a projected Newton step for each other path."""
    arcs, flow = paths.arcs, paths.flow
    _mark(arcs[c, best], side, 1)
    for q in range(arcs.shape[1]):
        if q == best or flow[c, q] <= 0.0:
            continue
        slope, curvature, narrowest = _compare(links, arcs[c, q], arcs[c, best], side)
        if slope > 0.0:
            # at most as far as prices change by a constant factor
            step = min(flow[c, q], slope / curvature, 2.0 * narrowest / links.sharpness)
            if flow[c, q] - step < 1e-12 * rate:
                step = flow[c, q]
            _shift_flow(links, paths, c, q, best, step)
    _mark(arcs[c, best], side, 0)


@njit(cache=True)
def _mark(path, side, value):  # type: ignore[no-untyped-def]
    for h in range(len(path)):
        if path[h] < 0:
            break
        side[path[h]] = value


@njit(cache=True)
def _compare(links, path, best, side):  # type: ignore[no-untyped-def]
    """Return the cost of a path less that of the best, its derivative, and the least capacity of the best.

    Links on both paths count in neither, as their load does not change.
    """
    capacity, length, sharpness = links.capacity, links.length, links.sharpness
    slope, curvature = 0.0, 0.0
    for h in range(len(path)):
        e = path[h]
        if e < 0:
            break
        if side[e] == 1:
            side[e] = 2
        else:
            slope += length[e]
            curvature += sharpness * length[e] / capacity[e]
    narrowest = np.inf
    for h in range(len(best)):
        e = best[h]
        if e < 0:
            break
        if side[e] == 1:
            slope -= length[e]
            curvature += sharpness * length[e] / capacity[e]
            narrowest = min(narrowest, capacity[e])
        side[e] = 1
    return slope, curvature, narrowest


@njit(cache=True)
def _shift_flow(links, paths, c, origin, destination, step):  # type: ignore[no-untyped-def]
    """Shift flow of pair c from path `origin` to path `destination`; update loads and lengths."""
    for q, sign in ((origin, -1.0), (destination, 1.0)):
        paths.flow[c, q] = max(paths.flow[c, q] + sign * step, 0.0)
        for h in range(paths.arcs.shape[2]):
            e = paths.arcs[c, q, h]
            if e < 0:
                break
            links.load[e] = max(links.load[e] + sign * step, 0.0)
            _update_length(links, e)


@njit(cache=True)
def _update_length(links, e):  # type: ignore[no-untyped-def]
    exponent = links.sharpness * (links.load[e] / links.capacity[e] - links.top)
    links.length[e] = (math.exp(min(exponent, 300.0)) + PRICE_FLOOR) / links.capacity[e]
