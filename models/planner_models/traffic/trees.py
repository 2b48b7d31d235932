"""Shortest-path trees and what they carry, compiled: the columns of the optimum at scale.

A tree leads from every node to its root. Trees rooted at sources are those of the network turned
around. Arcs with length 0 are allowed: traffic is gathered in the order in which nodes were
settled, never by distance, which does not tell a parent from its child over an arc of length 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph:
    """Directed arcs, and for each node the arcs that enter it.

    tail, head  (A,) int32 ends of each arc
    first       (N + 1,) int32, the arcs into node v are entering[first[v] : first[v + 1]]
    entering    (A,) int32
    """

    nodes: int
    tail: Ints
    head: Ints
    first: Ints
    entering: Ints

    @classmethod
    def of(cls, nodes: int, tail: NDArray[Any], head: NDArray[Any]) -> Graph:
        """The graph of these arcs, in their order; parallel arcs are welcome."""
        entering = np.argsort(head, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(head, minlength=nodes))])
        return cls(
            nodes=nodes,
            tail=tail.astype(np.int32),
            head=head.astype(np.int32),
            first=first.astype(np.int32),
            entering=entering.astype(np.int32),
        )


def grow(graph: Graph, length: Floats, roots: NDArray[Any], amount: Floats) -> tuple[Ints, Floats]:
    """The shortest tree of each root, and what it costs to send `amount` to the root.

    length   (A,) at least 0
    roots    (R,) nodes
    amount   (R, N) traffic that each node sends to the root

    returns  (R, N) int32 arc by which each node leaves, -1 for the root and for nodes that cannot
             reach it; (R,) sum over nodes of amount times distance
    raises   ValueError where a node sends that cannot reach the root
    """
    parent = np.empty((len(roots), graph.nodes), dtype=np.int32)
    value = np.empty(len(roots))
    _grow(graph.first, graph.entering, graph.tail, length, roots.astype(np.int32), amount, parent, value)
    if np.isnan(value).any():
        raise ValueError(f"traffic to node {roots[np.isnan(value)][0]} has no path")
    return parent, value


def loads(graph: Graph, parent: Ints, amount: Floats, owner: NDArray[Any]) -> Floats:
    """(P, A) what each tree carries on each arc: tree p, (P, N), carries row owner[p] of `amount`."""
    load = np.zeros((len(parent), len(graph.tail)))
    _loads(graph.head, parent, amount, owner.astype(np.int64), load)
    return load


def loads_at(graph: Graph, parent: Ints, amount: Floats, owner: NDArray[Any], arcs: NDArray[Any]) -> Floats:
    """(P, len(arcs)) `loads` of those arcs only."""
    column = np.full(len(graph.tail), -1, dtype=np.int64)
    column[arcs] = np.arange(len(arcs))
    load = np.zeros((len(parent), len(arcs)))
    _loads_at(graph.head, parent, amount, owner.astype(np.int64), column, load)
    return load


def mixed(graph: Graph, parent: Ints, amount: Floats, owner: NDArray[Any], weight: Floats) -> Floats:
    """(A,) the sum of weight times load over all trees."""
    load = np.zeros(len(graph.tail))
    _mixed(graph.head, parent, amount, owner.astype(np.int64), weight, load)
    return load


def mixed_by(
    graph: Graph, parent: Ints, amount: Floats, tree: NDArray[Any], row: NDArray[Any], weight: Floats
) -> Floats:
    """(T, A) for each row of `amount` (T, N): the sum of weight[i] times what tree[i] carries of row[i]."""
    load = np.zeros((len(amount), len(graph.tail)))
    _mixed_by(graph.head, parent, amount, tree.astype(np.int64), row.astype(np.int64), weight, load)
    return load


def walk(
    graph: Graph,
    parent: Ints,
    tree: NDArray[Any],
    node: NDArray[Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The arcs on the way of each (tree, node) to the root: (which of them, arc), in order."""
    hops = np.zeros(len(tree) + 1, dtype=np.int64)
    _count(graph.head, parent, tree.astype(np.int64), node.astype(np.int64), hops)
    start = np.cumsum(hops) - hops
    arc = np.empty(int(start[-1]), dtype=np.int64)
    _walk(graph.head, parent, tree.astype(np.int64), node.astype(np.int64), start, arc)
    return np.repeat(np.arange(len(tree)), hops[:-1]), arc


# --- compiled -----------------------------------------------------------------------------


@numba.njit(cache=True)
def settle(first, entering, tail, length, root, distance, parent, order, heap, place):  # type: ignore[no-untyped-def]  # noqa: C901
    """Dijkstra towards `root` with a binary heap; returns how many nodes reach it, in `order`."""
    for v in range(len(distance)):
        distance[v] = np.inf
        parent[v] = -1
        place[v] = -1  # where in the heap; -2 once settled
    distance[root] = 0.0
    heap[0] = root
    place[root] = 0
    size, done = 1, 0
    while size > 0:
        v = heap[0]
        place[v] = -2
        order[done] = v
        done += 1
        size -= 1
        if size > 0:  # the last of the heap sinks from the top
            last = heap[size]
            key = distance[last]
            i = 0
            while True:
                child = 2 * i + 1
                if child >= size:
                    break
                if child + 1 < size and distance[heap[child + 1]] < distance[heap[child]]:
                    child += 1
                if distance[heap[child]] >= key:
                    break
                heap[i] = heap[child]
                place[heap[i]] = i
                i = child
            heap[i] = last
            place[last] = i
        here = distance[v]
        for j in range(first[v], first[v + 1]):
            arc = entering[j]
            u = tail[arc]
            if place[u] == -2:
                continue
            far = here + length[arc]
            if far < distance[u]:
                distance[u] = far
                parent[u] = arc
                i = place[u]
                if i < 0:
                    i = size
                    size += 1
                while i > 0:  # and rises to where it belongs
                    up = (i - 1) // 2
                    if distance[heap[up]] <= far:
                        break
                    heap[i] = heap[up]
                    place[heap[i]] = i
                    i = up
                heap[i] = u
                place[u] = i
    return done


@numba.njit(cache=True)
def _grow(first, entering, tail, length, roots, amount, parent, value):  # type: ignore[no-untyped-def]
    nodes = len(first) - 1
    distance = np.empty(nodes)
    order, heap, place = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    for r in range(len(roots)):
        settle(first, entering, tail, length, roots[r], distance, parent[r], order, heap, place)
        total = 0.0
        for v in range(nodes):
            if amount[r, v] > 0:
                total += amount[r, v] * distance[v] if distance[v] < np.inf else np.nan
        value[r] = total


@numba.njit(cache=True)
def sort_up(head, parent, waiting, order):  # type: ignore[no-untyped-def]
    """Nodes of one tree in `order` so that each comes before the next on its way; returns how many.

    By peeling leaves, so it needs no distances.
    """
    nodes = len(parent)
    for v in range(nodes):
        waiting[v] = 0
    for v in range(nodes):
        if parent[v] >= 0:
            waiting[head[parent[v]]] += 1
    count = 0
    for v in range(nodes):
        u = v
        while waiting[u] == 0 and parent[u] >= 0:
            waiting[u] = -1
            order[count] = u
            count += 1
            u = head[parent[u]]
            waiting[u] -= 1
            if u > v:  # its own turn comes
                break
    return count


@numba.njit(cache=True)
def _loads(head, parent, amount, owner, load):  # type: ignore[no-untyped-def]
    nodes = parent.shape[1]
    waiting, order, carried = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes)
    for p in range(len(parent)):
        count = sort_up(head, parent[p], waiting, order)
        carried[:] = amount[owner[p]]
        for i in range(count):
            arc = parent[p, order[i]]
            load[p, arc] = carried[order[i]]
            carried[head[arc]] += carried[order[i]]


@numba.njit(cache=True)
def _loads_at(head, parent, amount, owner, column, load):  # type: ignore[no-untyped-def]
    nodes = parent.shape[1]
    waiting, order, carried = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes)
    for p in range(len(parent)):
        count = sort_up(head, parent[p], waiting, order)
        carried[:] = amount[owner[p]]
        for i in range(count):
            arc = parent[p, order[i]]
            if column[arc] >= 0:
                load[p, column[arc]] = carried[order[i]]
            carried[head[arc]] += carried[order[i]]


@numba.njit(cache=True)
def _mixed(head, parent, amount, owner, weight, load):  # type: ignore[no-untyped-def]
    nodes = parent.shape[1]
    waiting, order, carried = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes)
    for p in range(len(parent)):
        if weight[p] <= 0:
            continue
        count = sort_up(head, parent[p], waiting, order)
        carried[:] = amount[owner[p]]
        for i in range(count):
            arc = parent[p, order[i]]
            load[arc] += weight[p] * carried[order[i]]
            carried[head[arc]] += carried[order[i]]


@numba.njit(cache=True)
def _mixed_by(head, parent, amount, tree, row, weight, load):  # type: ignore[no-untyped-def]
    nodes = parent.shape[1]
    waiting, order, carried = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes)
    for i in range(len(tree)):
        p, t = tree[i], row[i]
        count = sort_up(head, parent[p], waiting, order)
        carried[:] = amount[t]
        for j in range(count):
            arc = parent[p, order[j]]
            load[t, arc] += weight[i] * carried[order[j]]
            carried[head[arc]] += carried[order[j]]


@numba.njit(cache=True)
def _count(head, parent, tree, node, hops):  # type: ignore[no-untyped-def]
    for i in range(len(tree)):
        v = node[i]
        while parent[tree[i], v] >= 0:
            v = head[parent[tree[i], v]]
            hops[i] += 1


@numba.njit(cache=True)
def _walk(head, parent, tree, node, start, arcs):  # type: ignore[no-untyped-def]
    for i in range(len(tree)):
        v, at = node[i], start[i]
        while parent[tree[i], v] >= 0:
            arcs[at] = parent[tree[i], v]
            at += 1
            v = head[parent[tree[i], v]]
