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
            excess, full, long = _run_pass(
                graph, links, self.roots, self.begin, self.node, self.rate, self.arcs, self.flow
            )
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
def _run_pass(graph, links, roots, begin, node, rate, arcs, flow):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return the relative excess cost, and whether slots or hops were too few (then nothing is complete)."""
    nodes, count_links = graph.nodes, len(graph.tail)
    slots, hops = arcs.shape[1], arcs.shape[2]
    parent, path, work = np.empty(nodes, np.int32), np.empty(nodes, np.int32), allocate(nodes)
    side = np.zeros(count_links, np.int8)
    capacity, length, sharpness = links.capacity, links.length, links.sharpness
    for e in range(count_links):
        _update_length(links, e)
    used_cost, shortest_cost = 0.0, 0.0
    for r in range(len(roots)):
        dijkstra(graph, length, roots[r], work, parent)
        for c in range(begin[r], begin[r + 1]):
            # the tree's path
            count, v, tree_cost = 0, node[c], 0.0
            while v != roots[r]:
                path[count] = parent[v]
                tree_cost += length[parent[v]]
                count += 1
                v = graph.head[parent[v]]
            best, cheapest, free, has_path = -1, np.inf, -1, False
            for q in range(slots):
                if flow[c, q] > 0.0:
                    has_path = True
                    cost = 0.0
                    for h in range(hops):
                        if arcs[c, q, h] < 0:
                            break
                        cost += length[arcs[c, q, h]]
                    used_cost += flow[c, q] * cost
                    if cost < cheapest:
                        best, cheapest = q, cost
                elif free < 0:
                    free = q
            shortest_cost += rate[c] * min(tree_cost, cheapest)
            if best < 0 or tree_cost < cheapest * (1.0 - 1e-9):
                if count > hops:
                    return 0.0, False, True
                if free < 0:
                    if slots < MAX_PATHS:
                        return 0.0, True, False
                    free = 0 if best != 0 else 1  # the path with the least flow moves to the cheapest
                    for q in range(slots):
                        if q != best and flow[c, q] < flow[c, free]:
                            free = q
                    _shift_flow(links, c, free, best, flow[c, free], arcs, flow)
                best = free
                for h in range(hops):
                    arcs[c, best, h] = path[h] if h < count else -1
                if not has_path:
                    for h in range(count):
                        links.load[path[h]] += rate[c]
                        _update_length(links, path[h])
                    flow[c, best] = rate[c]
                    continue
            for h in range(hops):
                if arcs[c, best, h] < 0:
                    break
                side[arcs[c, best, h]] = 1
            for q in range(slots):
                if q == best or flow[c, q] <= 0.0:
                    continue
                slope, curvature = 0.0, 0.0
                for h in range(hops):
                    e = arcs[c, q, h]
                    if e < 0:
                        break
                    if side[e] == 1:
                        side[e] = 2  # on both paths: its load does not change
                    else:
                        slope += length[e]
                        curvature += sharpness * length[e] / capacity[e]
                narrowest = np.inf
                for h in range(hops):
                    e = arcs[c, best, h]
                    if e < 0:
                        break
                    if side[e] == 1:
                        slope -= length[e]
                        curvature += sharpness * length[e] / capacity[e]
                        narrowest = min(narrowest, capacity[e])
                    side[e] = 1
                if slope > 0.0:
                    # at most as far as prices change by a constant factor
                    step = min(flow[c, q], slope / curvature, 2.0 * narrowest / sharpness)
                    if flow[c, q] - step < 1e-12 * rate[c]:
                        step = flow[c, q]
                    _shift_flow(links, c, q, best, step, arcs, flow)
            for h in range(hops):
                if arcs[c, best, h] < 0:
                    break
                side[arcs[c, best, h]] = 0
    return (used_cost - shortest_cost) / shortest_cost if shortest_cost > 0 else 0.0, False, False


@njit(cache=True)
def _shift_flow(links, c, origin, destination, step, arcs, flow):  # type: ignore[no-untyped-def]
    """Shift flow of pair c from path `origin` to path `destination`; update loads and lengths."""
    for q, sign in ((origin, -1.0), (destination, 1.0)):
        flow[c, q] = max(flow[c, q] + sign * step, 0.0)
        for h in range(arcs.shape[2]):
            e = arcs[c, q, h]
            if e < 0:
                break
            links.load[e] = max(links.load[e] + sign * step, 0.0)
            _update_length(links, e)


@njit(cache=True)
def _update_length(links, e):  # type: ignore[no-untyped-def]
    exponent = links.sharpness * (links.load[e] / links.capacity[e] - links.top)
    links.length[e] = (math.exp(min(exponent, 300.0)) + PRICE_FLOOR) / links.capacity[e]
