"""Path search for many demands, compiled: k shortest paths, and link-disjoint paths in two ways.

Demands with the same target share its tree of shortest paths. Distances to the target are the potentials of
all further searches (A*), which therefore settle few nodes besides those of the path they find: links that
other paths use or ban only make paths longer.

source  Yen, "Finding the k shortest loopless paths in a network" (1971), with Lawler's rule (1972), by which
        no path is found twice; disjoint paths of least weight: Suurballe (1974)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import njit, run_small_in_python
from planner_models.graphs.binary_heap import pop_heap, rise
from planner_models.graphs.shortest_path_trees import Graph, allocate, dijkstra

PathChoice = Literal["shortest", "disjoint", "most_disjoint"]
DEMANDS_PER_CALL: Final = 20_000  # between two of which Ctrl-C is heard


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundPaths:
    """Paths one after another: the links of path p are link[start[p] : start[p + 1]].

    demand  (P,) place of each path's demand; paths of a demand stand together, in the order they were found
    start   (P + 1,)
    link    int32
    """

    demand: Ints
    start: Ints
    link: Ints32


class _Forward(NamedTuple):
    """Links by the node that they leave: leaving[first[v] : first[v + 1]]."""

    head: Ints32
    tail: Ints32
    first: Ints32
    leaving: Ints32


class _Work(NamedTuple):
    """Arrays of one search; entries of nodes without the present stamp are void.

    distance, parent, place  (N,) length from the source, link to the node, its place in the heap
    stamp   (N,) last search that reached the node; done: last search that settled it
    key     (N,) distance plus potential
    heap    (N,)
    closed, banned  (N,) nodes and (A,) links that the search must not use
    number  (1,) of the present search
    """

    distance: Floats
    parent: Ints32
    place: Ints32
    stamp: Ints
    done: Ints
    key: Floats
    heap: Ints32
    closed: NDArray[np.int8]
    banned: NDArray[np.int8]
    number: Ints


class _Found(NamedTuple):
    """Paths found so far.

    demand, hops  (count * K,) place of each path's demand, and its number of links
    written       (2,) number of paths, and of their links together
    """

    demand: Ints
    hops: Ints
    written: Ints


def search(
    *,
    nodes: int,
    tail: Ints,
    head: Ints,
    weight: Floats,
    source: Ints,
    target: Ints,
    count: int,
    kind: PathChoice,
) -> FoundPaths:
    """Return up to `count` loopless paths for each of K demands, (K,) sources and targets.

    shortest       those of least weight, ascending
    disjoint       the shortest path, then the shortest one without the links of those before, and so on
    most_disjoint  as many link-disjoint paths as there are, of least weight together, ascending

    weight  (A,) positive
    """
    backward = Graph.of(nodes, tail, head)
    reverse = Graph.of(nodes, head, tail)
    forward = _Forward(backward.head, backward.tail, reverse.first, reverse.entering)
    order = np.lexsort((source, target))
    parts: list[tuple[Ints, Ints, Ints32]] = []
    for begin in range(0, len(order), DEMANDS_PER_CALL):
        chunk = order[begin : begin + DEMANDS_PER_CALL]
        ends = source[chunk].astype(np.int32), target[chunk].astype(np.int32)
        index, hops, link = SEARCH[kind](backward, forward, weight, *ends, count)
        parts.append((chunk[index], hops, link))
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return FoundPaths(demand=nothing, start=np.zeros(1, dtype=np.int64), link=nothing.astype(np.int32))
    demand, hops, link = (np.concatenate([columns[i] for columns in parts]) for i in range(3))
    paths = FoundPaths(demand=demand, start=np.r_[0, np.cumsum(hops)], link=link)
    return take(paths, np.argsort(demand, kind="stable"))


def take(result: FoundPaths, selected: Ints) -> FoundPaths:
    """Return the chosen paths, in that order."""
    hops = np.diff(result.start)[selected]
    start = np.r_[0, np.cumsum(hops)]
    entry = np.arange(start[-1]) + np.repeat(result.start[selected] - start[:-1], hops)
    return FoundPaths(demand=result.demand[selected], start=start, link=result.link[entry])


# --- compiled -----------------------------------------------------------------------------


@njit(cache=True)
def _allocate(nodes, links):  # type: ignore[no-untyped-def]
    return _Work(
        np.empty(nodes),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int32),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.empty(nodes),
        np.empty(nodes, np.int32),
        np.zeros(nodes, np.int8),
        np.zeros(links, np.int8),
        np.zeros(1, np.int64),
    )


@njit(cache=True)
def _begin(nodes, links, demands, count):  # type: ignore[no-untyped-def]
    """Return the state of a search for `count` paths of each demand."""
    size = count * demands
    buffer = _Found(np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(2, np.int64))
    link = np.empty(16 * demands + nodes, np.int32)
    return allocate(nodes), np.empty(nodes, np.int32), _allocate(nodes, links), buffer, link


@njit(cache=True)
def _is_in_reach(backward, weight, source, target, k, tree, parent):  # type: ignore[no-untyped-def]
    """Return whether a demand has a path; find the tree of its target where that is not the last one's."""
    if k == 0 or target[k - 1] != target[k]:
        dijkstra(backward, weight, target[k], tree, parent)
    return tree.distance[source[k]] < np.inf


@njit(cache=True)
def _append(buffer, link, k, paths):  # type: ignore[no-untyped-def]
    """Write the paths of demand `k`, their links to `link`; return `link`, longer where it was too short."""
    flat, ends = paths
    number, size = buffer.written
    if size + len(flat) > len(link):
        longer = np.empty(2 * (size + len(flat)), np.int32)
        longer[:size] = link[:size]
        link = longer
    link[size : size + len(flat)] = flat
    last = 0
    for end in ends:
        buffer.demand[number], buffer.hops[number] = k, end - last
        last = end
        number += 1
    buffer.written[0], buffer.written[1] = number, size + len(flat)
    return link


@njit(cache=True)
def _written(buffer, link):  # type: ignore[no-untyped-def]
    """Return for each path its demand and its number of links, and the links of all."""
    number, size = buffer.written
    return buffer.demand[:number], buffer.hops[:number], link[:size].copy()


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _search_shortest(backward, forward, weight, source, target, count):  # type: ignore[no-untyped-def]
    """Return the output of `_written` for shortest paths."""
    tree, parent, work, buffer, link = _begin(backward.nodes, len(weight), len(source), count)
    for k in range(len(source)):
        if _is_in_reach(backward, weight, source, target, k, tree, parent):
            paths = _yen(forward, weight, tree.distance, parent, source[k], target[k], count, work)
            link = _append(buffer, link, k, paths)
    return _written(buffer, link)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _search_disjoint(backward, forward, weight, source, target, count):  # type: ignore[no-untyped-def]
    """Return the output of `_written` for successive shortest paths."""
    tree, parent, work, buffer, link = _begin(backward.nodes, len(weight), len(source), count)
    for k in range(len(source)):
        if _is_in_reach(backward, weight, source, target, k, tree, parent):
            paths = _successive(forward, weight, tree.distance, parent, source[k], target[k], count, work)
            link = _append(buffer, link, k, paths)
    return _written(buffer, link)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _search_most_disjoint(backward, forward, weight, source, target, count):  # type: ignore[no-untyped-def]
    """Return the output of `_written` for link-disjoint paths."""
    tree, parent, work, buffer, link = _begin(backward.nodes, len(weight), len(source), count)
    for k in range(len(source)):
        if _is_in_reach(backward, weight, source, target, k, tree, parent):
            paths = _suurballe(forward, weight, tree.distance.copy(), source[k], target[k], count, work)
            link = _append(buffer, link, k, paths)
    return _written(buffer, link)


@njit(cache=True)
def _astar(forward, weight, potential, source, target, limit, work):  # type: ignore[no-untyped-def]
    """Find the shortest path without closed nodes and banned links; return its length, inf for none.

    Nodes from which the target is out of reach, or only at a length above `limit`, are left out.
    """
    work.number[0] += 1
    now = work.number[0]
    heap, position, key = work.heap, work.place, work.key
    work.distance[source] = 0.0
    work.stamp[source] = now
    key[source] = potential[source]
    heap[0], size = source, 1
    while size > 0:
        if heap[0] == target:
            return work.distance[target]
        v, size = pop_heap(heap, key, position, size)
        work.done[v] = now
        for j in range(forward.first[v], forward.first[v + 1]):
            arc = forward.leaving[j]
            u = forward.head[arc]
            if work.banned[arc] or work.closed[u] or work.done[u] == now or potential[u] == np.inf:
                continue
            length = work.distance[v] + weight[arc]
            if length + potential[u] > limit:
                continue
            if work.stamp[u] != now:
                work.stamp[u] = now
                i = size
                size += 1
            elif length < work.distance[u]:
                i = position[u]
            else:
                continue
            work.distance[u] = length
            work.parent[u] = arc
            key[u] = length + potential[u]
            rise(heap, key, position, i, u)
    return np.inf


@njit(cache=True)
def _write_path(forward, work, source, target, path):  # type: ignore[no-untyped-def]
    """Write the links of the path that was found, in order; return their number."""
    count, v = 0, target
    while v != source:
        path[count] = work.parent[v]
        count += 1
        v = forward.tail[work.parent[v]]
    for i in range(count // 2):
        path[i], path[count - 1 - i] = path[count - 1 - i], path[i]
    return count


@njit(cache=True)
def _walk_tree(forward, parent, source, target, path):  # type: ignore[no-untyped-def]
    count, v = 0, source
    while v != target:
        path[count] = parent[v]
        count += 1
        v = forward.head[parent[v]]
    return count


@njit(cache=True)
def _successive(forward, weight, potential, parent, source, target, count, work):  # type: ignore[no-untyped-def]
    """Return the links of successive shortest paths without those before, and where each path ends."""
    flat, size = np.empty(len(work.banned), np.int32), 0  # no link comes twice
    ends, path_count = np.empty(count, np.int64), 0
    path = np.empty(len(potential), np.int32)
    for number in range(count):
        if number == 0:
            hops = _walk_tree(forward, parent, source, target, path)
        elif _astar(forward, weight, potential, source, target, np.inf, work) < np.inf:
            hops = _write_path(forward, work, source, target, path)
        else:
            break
        for i in range(hops):
            flat[size] = path[i]
            work.banned[path[i]] = 1
            size += 1
        ends[path_count] = size
        path_count += 1
    for i in range(size):
        work.banned[flat[i]] = 0
    return flat[:size], ends[:path_count]


@njit(cache=True)
def _yen(forward, weight, potential, parent, source, target, count, work):  # type: ignore[no-untyped-def]  # noqa: C901
    """Return the links of the `count` shortest paths, and where each ends."""
    nodes = len(potential)
    # found paths and candidates: links, number of links, length, and the place where each leaves its parent
    size_limit = 8
    path = np.empty((size_limit, nodes), np.int32)
    hops, leaves = np.empty(size_limit, np.int64), np.empty(size_limit, np.int64)
    length, rank = np.empty(size_limit), np.full(size_limit, -1, np.int64)
    spur = np.empty(nodes, np.int32)
    hops[0] = _walk_tree(forward, parent, source, target, path[0])
    length[0], leaves[0], rank[0] = potential[source], 0, 0
    size, path_count = 1, 1
    accepted = np.empty(count, np.int64)
    accepted[0] = 0
    while path_count < count:
        newest = accepted[path_count - 1]
        before, v = 0.0, source
        for i in range(hops[newest]):
            if i >= leaves[newest]:
                for j in range(path_count):  # paths with the same beginning take no link twice from here
                    p = accepted[j]
                    same = hops[p] > i
                    for h in range(i):
                        if not same or path[p, h] != path[newest, h]:
                            same = False
                            break
                    if same:
                        work.banned[path[p, i]] = 1
                limit = _candidate_limit(length, rank, size, count - path_count)
                spur_cost = _astar(forward, weight, potential, v, target, limit - before, work)
                if spur_cost < np.inf:
                    if size == size_limit:
                        size_limit *= 2
                        path = _longer(path, size_limit)
                        hops, leaves, rank = (
                            grow(hops, size_limit),
                            grow(leaves, size_limit),
                            grow(rank, size_limit),
                        )
                        length = grow(length, size_limit)
                    extra = _write_path(forward, work, v, target, spur)
                    for h in range(i):
                        path[size, h] = path[newest, h]
                    for h in range(extra):
                        path[size, i + h] = spur[h]
                    hops[size], leaves[size] = i + extra, i
                    length[size], rank[size] = before + spur_cost, -1
                    size += 1
                for j in range(path_count):
                    if hops[accepted[j]] > i:
                        work.banned[path[accepted[j], i]] = 0
            work.closed[v] = 1
            before += weight[path[newest, i]]
            v = forward.head[path[newest, i]]
        v = source
        for i in range(hops[newest]):
            work.closed[v] = 0
            v = forward.head[path[newest, i]]
        best = -1
        for p in range(size):
            if rank[p] < 0 and (best < 0 or length[p] < length[best]):
                best = p
        if best < 0:
            break
        rank[best] = path_count
        accepted[path_count] = best
        path_count += 1
    total = 0
    for j in range(path_count):
        total += hops[accepted[j]]
    flat, ends, position = np.empty(total, np.int32), np.empty(path_count, np.int64), 0
    for j in range(path_count):
        p = accepted[j]
        flat[position : position + hops[p]] = path[p, : hops[p]]
        position += hops[p]
        ends[j] = position
    return flat, ends


@njit(cache=True)
def _candidate_limit(length, rank, size, missing):  # type: ignore[no-untyped-def]
    """Return the length of the `missing`-th shortest candidate; a longer one is never chosen."""
    open_ = np.empty(size)
    count = 0
    for p in range(size):
        if rank[p] < 0:
            open_[count] = length[p]
            count += 1
    if count < missing:
        return np.inf
    return np.sort(open_[:count])[missing - 1] * (1 + 1e-12)


@njit(cache=True)
def grow(values, size):  # type: ignore[no-untyped-def]
    """Return an array of a larger size that begins with the values."""
    longer = np.empty(size, values.dtype)
    longer[: len(values)] = values
    return longer


@njit(cache=True)
def _longer(path, size):  # type: ignore[no-untyped-def]
    longer = np.empty((size, path.shape[1]), path.dtype)
    longer[: len(path)] = path
    return longer


@njit(cache=True)
def _suurballe(forward, weight, potential, source, target, count, work):  # type: ignore  # noqa: C901
    """Return the links of disjoint paths by minimum-cost flow, and where each ends; changes `potential`.

    `work.banned` is 1 on links with flow. A path of the residual network may run backwards over them.
    """
    heap, position, key = work.heap, work.place, work.key
    flow, flows = np.empty(len(work.banned), np.int32), 0  # links with flow, and some without any more
    settled = np.empty(len(potential), np.int32)
    backward = np.zeros(len(potential), np.int8)
    path_count = 0
    while path_count < count:
        work.number[0] += 1
        now = work.number[0]
        # Dijkstra on reduced lengths: weight + potential(head) - potential(tail), at least 0 but for rounding
        work.distance[source], key[source] = 0.0, 0.0
        work.stamp[source] = now
        heap[0], size, settled_count = source, 1, 0
        reached = False
        while size > 0:
            v, size = pop_heap(heap, key, position, size)
            work.done[v] = now
            settled[settled_count] = v
            settled_count += 1
            if v == target:
                reached = True
                break
            first = forward.first[v]
            degree = forward.first[v + 1] - first
            for j in range(degree + flows):
                if j < degree:
                    arc = forward.leaving[first + j]
                    if work.banned[arc]:
                        continue
                    u, cost, turn = forward.head[arc], weight[arc], 0
                else:
                    arc = flow[j - degree]
                    if forward.head[arc] != v or not work.banned[arc]:
                        continue
                    u, cost, turn = forward.tail[arc], -weight[arc], 1
                if work.done[u] == now or potential[u] == np.inf:
                    continue
                length = key[v] + max(cost + potential[u] - potential[v], 0.0)
                if work.stamp[u] != now:
                    work.stamp[u] = now
                    i = size
                    size += 1
                elif length < key[u]:
                    i = position[u]
                else:
                    continue
                key[u] = length
                work.parent[u] = arc
                backward[u] = turn
                rise(heap, key, position, i, u)
        if not reached:
            break
        target_distance = key[target]
        for i in range(settled_count):
            potential[settled[i]] += target_distance - key[settled[i]]
        v = target
        while v != source:
            arc = work.parent[v]
            if backward[v]:
                work.banned[arc] = 0
                v = forward.head[arc]
            else:
                work.banned[arc] = 1
                v = forward.tail[arc]
        # the links with flow: those before that still have it, and those of this path
        next_count = 0
        for i in range(flows):
            if work.banned[flow[i]]:
                flow[next_count] = flow[i]
                next_count += 1
        flows = next_count
        v = target
        while v != source:
            arc = work.parent[v]
            if not backward[v]:
                flow[flows] = arc
                flows += 1
            v = forward.head[arc] if backward[v] else forward.tail[arc]
        path_count += 1
    # decompose: every link with flow is on one path
    flat, size = np.empty(flows, np.int32), 0
    ends, length = np.zeros(path_count + 1, np.int64), np.zeros(path_count)
    for number in range(path_count):
        v = source
        while v != target:
            for j in range(forward.first[v], forward.first[v + 1]):
                arc = forward.leaving[j]
                if work.banned[arc]:
                    work.banned[arc] = 0
                    flat[size] = arc
                    size += 1
                    length[number] += weight[arc]
                    v = forward.head[arc]
                    break
        ends[number + 1] = size
    for i in range(flows):
        work.banned[flow[i]] = 0
    by_length, last, offset = np.empty(size, np.int32), np.empty(path_count, np.int64), 0
    order = np.argsort(length)
    for j in range(path_count):
        p = order[j]
        for i in range(ends[p], ends[p + 1]):
            by_length[offset] = flat[i]
            offset += 1
        last[j] = offset
    return by_length, last


SEARCH: Final[dict[PathChoice, Callable[..., tuple[Ints, Ints, Ints32]]]] = {
    "shortest": _search_shortest,
    "disjoint": _search_disjoint,
    "most_disjoint": _search_most_disjoint,
}
