"""Evens out the load where pairs are few: traffic of each pair shifts between its own paths.

With a handful of pairs to a root (data centres, not gravity) whole trees are too coarse to mix:
balancing w uplinks takes w trees whose sides all fit. Here every pair keeps its own paths. Round
after round each root's shortest tree offers every pair a path, and from each path in use as much
shifts to the pair's cheapest as Newton's method on the softened largest utilization asks for (see
`sweeps`). Unlike steps towards a vertex, shifts between paths in use converge quickly, and what
converges has exact prices wherever links are equally full.

source  Jayakrishnan, Tsai, Prashker and Rajadhyaksha, "A faster path-based algorithm for traffic
        assignment" (1994), for the shifts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from planner_models.traffic.trees import Floats, Graph, Ints, settle

PATHS: Final = 64  # of one pair, at most; the one with the least traffic makes room


@dataclass(kw_only=True, eq=False)
class Paths:
    """Paths of pairs and what goes over them; a slot without traffic is free.

    roots  (R,) nodes; begin (R + 1,): the pairs of root r are begin[r] to begin[r + 1]
    node   (C,) where each pair starts; rate (C,) what it sends
    arcs   (C, Q, H) int32 arcs of each path, -1 behind its last; flow (C, Q) what goes over it
    load   (A,) of all
    """

    roots: Ints
    begin: NDArray[np.int64]
    node: Ints
    rate: Floats
    arcs: Ints
    flow: Floats
    load: Floats

    @classmethod
    def of(
        cls,
        graph: Graph,
        roots: NDArray[np.int64],
        row: NDArray[np.int64],
        node: NDArray[np.int64],
        rate: Floats,
    ) -> Paths:
        """No paths yet, for pairs in the order of their root's row."""
        return cls(
            roots=roots.astype(np.int32),
            begin=np.searchsorted(row, np.arange(len(roots) + 1)).astype(np.int64),
            node=node.astype(np.int32),
            rate=rate,
            arcs=np.full((len(node), 4, 8), -1, dtype=np.int32),
            flow=np.zeros((len(node), 4)),
            load=np.zeros(len(graph.tail)),
        )

    def sweep(self, graph: Graph, capacity: Floats, sharpness: float) -> float:
        """One round over all pairs; returns by how much used paths cost more than the shortest, relative."""
        while True:
            self.load[:] = self._total()
            excess, full, long = _sweep(
                graph.first,
                graph.entering,
                graph.tail,
                graph.head,
                capacity,
                sharpness,
                self.roots,
                self.begin,
                self.node,
                self.rate,
                self.arcs,
                self.flow,
                self.load,
            )
            if not full and not long:
                return float(excess)
            self._widen(graph, full, long)

    def _total(self) -> Floats:
        used = self.arcs >= 0
        share = np.broadcast_to(self.flow[:, :, None], self.arcs.shape)
        return np.bincount(self.arcs[used], share[used], minlength=len(self.load)).astype(float)

    def _widen(self, graph: Graph, full: bool, long: bool) -> None:
        """Room for more paths, or for longer ones."""
        pairs, slots, hops = self.arcs.shape
        more = min(2 * slots, PATHS) if full else slots
        further = min(2 * hops, graph.nodes) if long else hops
        arcs = np.full((pairs, more, further), -1, dtype=np.int32)
        arcs[:, :slots, :hops] = self.arcs
        flow = np.zeros((pairs, more))
        flow[:, :slots] = self.flow
        self.arcs, self.flow = arcs, flow

    def ways(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """The arcs of all paths in use: (pair, arc, share of the pair's traffic), shares adding up to 1."""
        share = self.flow / self.flow.sum(axis=1, keepdims=True)
        pair, slot, hop = np.nonzero((self.arcs >= 0) & (share > 0)[:, :, None])
        return pair, self.arcs[pair, slot, hop].astype(np.int64), share[pair, slot]


@numba.njit(cache=True)
def _sweep(  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    first, entering, tail, head, capacity, sharpness, roots, begin, node, rate, arcs, flow, load
):
    nodes, links = len(first) - 1, len(tail)
    slots, hops = arcs.shape[1], arcs.shape[2]
    distance = np.empty(nodes)
    parent, order = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    heap, place = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    length, way, side = np.empty(links), np.empty(nodes, np.int32), np.zeros(links, np.int8)
    top = 0.0
    for e in range(links):
        top = max(top, load[e] / capacity[e])
    floor = np.exp(-30.0)  # keeps the unloaded part in order, below what any price is exact to
    for e in range(links):
        length[e] = (np.exp(sharpness * (load[e] / capacity[e] - top)) + floor) / capacity[e]
    paid, least = 0.0, 0.0
    full, long = False, False
    for r in range(len(roots)):
        settle(first, entering, tail, length, roots[r], distance, parent, order, heap, place)
        for c in range(begin[r], begin[r + 1]):
            # the tree's path, if none at hand is the same or as short
            count, v, fresh = 0, node[c], 0.0
            while v != roots[r]:
                way[count] = parent[v]
                fresh += length[parent[v]]
                count += 1
                v = head[parent[v]]
            best, cheapest, spare, used = -1, np.inf, -1, False
            for q in range(slots):
                if flow[c, q] > 0.0:
                    used = True
                    cost = 0.0
                    for h in range(hops):
                        if arcs[c, q, h] < 0:
                            break
                        cost += length[arcs[c, q, h]]
                    paid += flow[c, q] * cost
                    if cost < cheapest:
                        best, cheapest = q, cost
                elif spare < 0:
                    spare = q
            least += rate[c] * min(fresh, cheapest)
            if best < 0 or fresh < cheapest * (1.0 - 1e-9):
                if count > hops:
                    return 0.0, False, True
                if spare < 0:
                    if slots < PATHS:
                        return 0.0, True, False
                    spare = 0 if best != 0 else 1  # the least used moves over to the cheapest
                    for q in range(slots):
                        if q != best and flow[c, q] < flow[c, spare]:
                            spare = q
                    _move(
                        c,
                        spare,
                        best,
                        flow[c, spare],
                        arcs,
                        flow,
                        load,
                        length,
                        capacity,
                        sharpness,
                        top,
                        floor,
                    )
                best = spare
                for h in range(hops):
                    arcs[c, best, h] = way[h] if h < count else -1
                if not used:
                    for h in range(count):
                        e = way[h]
                        load[e] += rate[c]
                        length[e] = (
                            np.exp(min(sharpness * (load[e] / capacity[e] - top), 300.0)) + floor
                        ) / capacity[e]
                    flow[c, best] = rate[c]
                    continue
            for h in range(hops):
                if arcs[c, best, h] < 0:
                    break
                side[arcs[c, best, h]] = 1
            for q in range(slots):
                if q == best or flow[c, q] <= 0.0:
                    continue
                slope, bend = 0.0, 0.0
                for h in range(hops):
                    e = arcs[c, q, h]
                    if e < 0:
                        break
                    if side[e] == 1:
                        side[e] = 2  # on both: nothing changes
                    else:
                        slope += length[e]
                        bend += sharpness * length[e] / capacity[e]
                near = np.inf
                for h in range(hops):
                    e = arcs[c, best, h]
                    if e < 0:
                        break
                    if side[e] == 1:
                        slope -= length[e]
                        bend += sharpness * length[e] / capacity[e]
                        near = min(near, capacity[e])
                    side[e] = 1
                if slope > 0.0:
                    # no further than prices stay within a factor of their own
                    step = min(flow[c, q], slope / bend, 2.0 * near / sharpness)
                    if flow[c, q] - step < 1e-12 * rate[c]:
                        step = flow[c, q]
                    _move(c, q, best, step, arcs, flow, load, length, capacity, sharpness, top, floor)
            for h in range(hops):
                if arcs[c, best, h] < 0:
                    break
                side[arcs[c, best, h]] = 0
    return (paid - least) / least if least > 0 else 0.0, full, long


@numba.njit(cache=True)
def _move(c, one, other, step, arcs, flow, load, length, capacity, sharpness, top, floor):  # type: ignore[no-untyped-def]
    """Shift from path `one` of pair c to path `other`; lengths follow."""
    for q, sign in ((one, -1.0), (other, 1.0)):
        flow[c, q] = max(flow[c, q] + sign * step, 0.0)
        for h in range(arcs.shape[2]):
            e = arcs[c, q, h]
            if e < 0:
                break
            load[e] = max(load[e] + sign * step, 0.0)
            exponent = sharpness * (load[e] / capacity[e] - top)
            length[e] = (np.exp(min(exponent, 300.0)) + floor) / capacity[e]
