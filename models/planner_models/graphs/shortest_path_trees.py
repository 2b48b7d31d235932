"""Shortest-path trees and the traffic on them, compiled: the columns of column generation.

A tree leads from every node to its root. Trees rooted at sources are those of the reversed network.
Arcs of length 0 are allowed: traffic is added up in topological order of the tree, never by distance,
because distance does not tell a parent from its child over an arc of length 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner_models.graphs.binary_heap import pop_heap, push_heap


class Graph(NamedTuple):
    """Directed arcs, and for each node the arcs that enter it.

    tail, head  (A,) int32 ends of each arc
    first       (N + 1,) int32, the arcs into node v are entering[first[v] : first[v + 1]]
    entering    (A,) int32
    """

    nodes: int
    tail: Ints32
    head: Ints32
    first: Ints32
    entering: Ints32

    @classmethod
    def of(cls, nodes: int, tail: NDArray[Any], head: NDArray[Any]) -> Graph:
        """Return the graph of these arcs, in their order; parallel arcs are allowed."""
        entering = np.argsort(head, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(head, minlength=nodes))])
        return cls(
            nodes=nodes,
            tail=tail.astype(np.int32),
            head=head.astype(np.int32),
            first=first.astype(np.int32),
            entering=entering.astype(np.int32),
        )


class Workspace(NamedTuple):
    """Arrays that Dijkstra's algorithm writes, (N,) each.

    distance  from each node to the root
    order     the nodes that reach the root, nearest first
    heap      nodes as a binary heap by distance; place: each node's place in it, -1 none, -2 removed
    """

    distance: Floats
    order: Ints32
    heap: Ints32
    place: Ints32


def shortest_trees(
    graph: Graph, length: Floats, roots: NDArray[Any], amount: Floats
) -> tuple[Ints32, Floats]:
    """Return the shortest tree of each root, and the cost to send `amount` to the root over it.

    length   (A,) at least 0
    roots    (R,) nodes
    amount   (R, N) traffic that each node sends to the root

    returns  (R, N) int32 arc by which each node leaves, -1 for the root and for nodes that cannot
             reach it; (R,) sum over nodes of amount times distance
    raises   ValueError where a node that sends traffic cannot reach the root
    """
    parent = np.empty((len(roots), graph.nodes), dtype=np.int32)
    value = np.empty(len(roots))
    _shortest_trees(graph, length, roots.astype(np.int32), amount, parent, value)
    if np.isnan(value).any():
        raise ValueError(f"traffic to node {roots[np.isnan(value)][0]} has no path")
    return parent, value


def tree_flows(graph: Graph, parent: Ints32, amount: Floats, owner: NDArray[Any]) -> Floats:
    """Return the traffic that leaves each node over its arc of each tree, shape (P, N), 0 at the root.

    Tree p, (N,) of `parent` (P, N), carries row owner[p] of `amount`.
    """
    flow = np.empty(parent.shape)
    _add_flows(graph.head, parent, amount, owner.astype(np.int64), flow)
    return flow


def tree_loads(
    graph: Graph,
    parent: Ints32,
    flow: Floats,
    arcs: NDArray[Any] | None = None,
    selected: NDArray[Any] | None = None,
) -> Floats:
    """Return the load of each tree on each of `arcs` (all where None), shape (P, arcs).

    flow    (C, N) of the trees' nodes, as `tree_flows` returns it
    selected  (P,) rows of the trees in `parent` and `flow`; all C where None
    """
    selected = np.arange(len(parent)) if selected is None else selected
    arcs = np.arange(len(graph.tail)) if arcs is None else arcs
    column = np.full(len(graph.tail), -1, dtype=np.int64)
    column[arcs] = np.arange(len(arcs))
    load = np.zeros((len(selected), len(arcs)))
    _spread_flows(parent, flow, selected, column, load)
    return load


def weighted_load(
    graph: Graph, parent: Ints32, flow: Floats, weight: Floats, selected: NDArray[Any] | None = None
) -> Floats:
    """Return the sum over trees of weight (P,) times load, shape (A,); the others as in `tree_loads`."""
    load = np.zeros(len(graph.tail))
    _sum_flows(parent, flow, np.arange(len(parent)) if selected is None else selected, weight, load)
    return load


def weighted_load_by_row(
    graph: Graph, parent: Ints32, amount: Floats, tree: NDArray[Any], row: NDArray[Any], weight: Floats
) -> Floats:
    """Return for each row of `amount` (T, N) the sum of weight[i] times its load on tree[i], shape (T, A)."""
    load = np.zeros((len(amount), len(graph.tail)))
    _add_loads(graph.head, parent, amount, tree.astype(np.int64), row.astype(np.int64), weight, load)
    return load


def walk_to_root(graph: Graph, parent: Ints32, tree: NDArray[Any], node: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the arcs from each (tree, node) to the root, in order: (place of the pair, arc)."""
    hops = np.zeros(len(tree) + 1, dtype=np.int64)
    _count_hops(graph.head, parent, tree.astype(np.int64), node.astype(np.int64), hops)
    start = np.cumsum(hops) - hops
    arc = np.empty(int(start[-1]), dtype=np.int64)
    _list_arcs(graph.head, parent, tree.astype(np.int64), node.astype(np.int64), start, arc)
    return np.repeat(np.arange(len(tree)), hops[:-1]), arc


# --- compiled -----------------------------------------------------------------------------


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def allocate(nodes):  # type: ignore[no-untyped-def]
    """Return the workspace for a graph of so many nodes."""
    return Workspace(
        np.zeros(nodes), np.zeros(nodes, np.int32), np.zeros(nodes, np.int32), np.zeros(nodes, np.int32)
    )


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def dijkstra(graph, length, root, work, parent):  # type: ignore[no-untyped-def]
    """Find the shortest tree towards `root` with a binary heap; return the number of nodes that reach it.

    Writes `parent` (N,) and the workspace.
    """
    distance, order, heap, position = work.distance, work.order, work.heap, work.place
    for v in range(len(distance)):
        distance[v] = np.inf
        parent[v] = -1
        position[v] = -1
    distance[root] = 0.0
    size, count = push_heap(heap, distance, position, 0, root), 0
    while size > 0:
        v, size = pop_heap(heap, distance, position, size)
        position[v] = -2
        order[count] = v
        count += 1
        for j in range(graph.first[v], graph.first[v + 1]):
            arc = graph.entering[j]
            u = graph.tail[arc]
            if position[u] == -2:
                continue
            candidate = distance[v] + length[arc]
            if candidate < distance[u]:
                distance[u] = candidate
                parent[u] = arc
                size = push_heap(heap, distance, position, size, u)
    return count


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _shortest_trees(graph, length, roots, amount, parent, value):  # type: ignore[no-untyped-def]
    work = allocate(graph.nodes)
    for r in range(len(roots)):
        dijkstra(graph, length, roots[r], work, parent[r])
        total = 0.0
        for v in range(graph.nodes):
            if amount[r, v] > 0:
                total += amount[r, v] * work.distance[v] if work.distance[v] < np.inf else np.nan
        value[r] = total


@njit(cache=True)
def topological_order(head, parent, waiting, order):  # type: ignore[no-untyped-def]
    """Write the nodes of a tree in `order`, each before the next on its path; return their number.

    Removes leaves one by one, so it needs no distances.
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
            if u > v:  # the outer loop comes to it
                break
    return count


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _add_flows(head, parent, amount, owner, flow):  # type: ignore[no-untyped-def]
    nodes = parent.shape[1]
    waiting, order = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    for p in range(len(parent)):
        count = topological_order(head, parent[p], waiting, order)
        flow[p] = amount[owner[p]]
        for j in range(count):
            v = order[j]
            flow[p, head[parent[p, v]]] += flow[p, v]
        for v in range(nodes):
            if parent[p, v] < 0:
                flow[p, v] = 0.0


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _spread_flows(parent, flow, selected, column, load):  # type: ignore[no-untyped-def]
    """Write the flows of each tree's nodes to the columns of their arcs, -1 for none."""
    for i in range(len(selected)):
        p = selected[i]
        for v in range(parent.shape[1]):
            if parent[p, v] >= 0 and column[parent[p, v]] >= 0:
                load[i, column[parent[p, v]]] = flow[p, v]


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _sum_flows(parent, flow, selected, weight, load):  # type: ignore[no-untyped-def]
    for i in range(len(selected)):
        p = selected[i]
        if weight[i] > 0.0:
            for v in range(parent.shape[1]):
                if parent[p, v] >= 0:
                    load[parent[p, v]] += weight[i] * flow[p, v]


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _add_loads(head, parent, amount, tree, row, weight, load):  # type: ignore[no-untyped-def]
    """Add weight[i] times the load of amount[row[i]] on tree[i] to load[row[i]]."""
    nodes = parent.shape[1]
    waiting, order, passing = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes)
    for i in range(len(tree)):
        if weight[i] <= 0:
            continue
        p = tree[i]
        count = topological_order(head, parent[p], waiting, order)
        passing[:] = amount[row[i]]
        for j in range(count):
            arc = parent[p, order[j]]
            load[row[i], arc] += weight[i] * passing[order[j]]
            passing[head[arc]] += passing[order[j]]


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _count_hops(head, parent, tree, node, hops):  # type: ignore[no-untyped-def]
    for i in range(len(tree)):
        v = node[i]
        while parent[tree[i], v] >= 0:
            v = head[parent[tree[i], v]]
            hops[i] += 1


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _list_arcs(head, parent, tree, node, start, arcs):  # type: ignore[no-untyped-def]
    for i in range(len(tree)):
        v, position = node[i], start[i]
        while parent[tree[i], v] >= 0:
            arcs[position] = parent[tree[i], v]
            position += 1
            v = head[parent[tree[i], v]]
