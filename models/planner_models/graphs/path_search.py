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


class _Search(NamedTuple):
    """The network and the arrays of the searches for one demand's paths.

    potential, parent  (N,) distance to the target, and the first link on the way
    """

    forward: _Forward
    weight: Floats
    potential: Floats
    parent: Ints32
    work: _Work


class _Candidates(NamedTuple):
    """Paths of one demand, of which some are accepted.

    path          (P, N) links of each
    hops, leaves  (P,) number of links, and the first link off the path that it was found from
    length        (P,)
    rank          (P,) place among the accepted paths; -1 of a candidate
    """

    path: NDArray[np.int32]
    hops: Ints
    leaves: Ints
    length: Floats
    rank: Ints


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
    ends: tuple[Ints, Ints],
    count: int,
    kind: PathChoice,
) -> FoundPaths:
    """Return up to `count` loopless paths for each of K demands.

    shortest       those of least weight, ascending
    disjoint       the shortest path, then the shortest one without the links of those before, and so on
    most_disjoint  as many link-disjoint paths as there are, of least weight together, ascending

    weight  (A,) positive
    ends    (K,) sources and (K,) targets of the demands
    """
    source, target = ends
    backward = Graph.of(nodes, tail, head)
    reverse = Graph.of(nodes, head, tail)
    forward = _Forward(backward.head, backward.tail, reverse.first, reverse.entering)
    order = np.lexsort((source, target))
    parts: list[tuple[Ints, Ints, Ints32]] = []
    for begin in range(0, len(order), DEMANDS_PER_CALL):
        chunk = order[begin : begin + DEMANDS_PER_CALL]
        index, hops, link = SEARCH[kind](
            backward, forward, weight, source[chunk].astype(np.int32), target[chunk].astype(np.int32), count
        )
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
def _demand_searchshortest(backward, forward, weight, source, target, count):  # type: ignore[no-untyped-def]
    """Return the output of `_written` for shortest paths."""
    tree, parent, work, buffer, link = _begin(backward.nodes, len(weight), len(source), count)
    for k in range(len(source)):
        if _is_in_reach(backward, weight, source, target, k, tree, parent):
            demand_search = _Search(forward, weight, tree.distance, parent, work)
            paths = _yen(demand_search, source[k], target[k], count)
            link = _append(buffer, link, k, paths)
    return _written(buffer, link)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _demand_searchdisjoint(backward, forward, weight, source, target, count):  # type: ignore[no-untyped-def]
    """Return the output of `_written` for successive shortest paths."""
    tree, parent, work, buffer, link = _begin(backward.nodes, len(weight), len(source), count)
    for k in range(len(source)):
        if _is_in_reach(backward, weight, source, target, k, tree, parent):
            demand_search = _Search(forward, weight, tree.distance, parent, work)
            paths = _successive(demand_search, source[k], target[k], count)
            link = _append(buffer, link, k, paths)
    return _written(buffer, link)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _demand_searchmost_disjoint(backward, forward, weight, source, target, count):  # type: ignore[no-untyped-def]
    """Return the output of `_written` for link-disjoint paths."""
    tree, parent, work, buffer, link = _begin(backward.nodes, len(weight), len(source), count)
    for k in range(len(source)):
        if _is_in_reach(backward, weight, source, target, k, tree, parent):
            demand_search = _Search(forward, weight, tree.distance.copy(), parent, work)
            paths = _suurballe(demand_search, source[k], target[k], count)
            link = _append(buffer, link, k, paths)
    return _written(buffer, link)


@njit(cache=True)
def _astar(search, source, target, limit):  # type: ignore[no-untyped-def]
    """Find the shortest path without closed nodes and banned links; return its length, inf for none.

    Nodes from which the target is out of reach, or only at a length above `limit`, are left out.
    """
    forward, weight, potential, work = search.forward, search.weight, search.potential, search.work
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
def _write_path(search, source, target, path):  # type: ignore[no-untyped-def]
    """Write the links of the path that was found, in order; return their number."""
    parent, tail = search.work.parent, search.forward.tail
    count, v = 0, target
    while v != source:
        path[count] = parent[v]
        count += 1
        v = tail[parent[v]]
    for i in range(count // 2):
        path[i], path[count - 1 - i] = path[count - 1 - i], path[i]
    return count


@njit(cache=True)
def _walk_tree(search, source, target, path):  # type: ignore[no-untyped-def]
    """Write the links of the shortest path, by the tree of the target; return their number."""
    parent, head = search.parent, search.forward.head
    count, v = 0, source
    while v != target:
        path[count] = parent[v]
        count += 1
        v = head[parent[v]]
    return count


@njit(cache=True)
def _successive(search, source, target, count):  # type: ignore[no-untyped-def]
    """Return the links of successive shortest paths without those before, and where each path ends."""
    banned = search.work.banned
    flat, size = np.empty(len(banned), np.int32), 0  # no link comes twice
    ends, path_count = np.empty(count, np.int64), 0
    path = np.empty(len(search.potential), np.int32)
    for number in range(count):
        if number == 0:
            hops = _walk_tree(search, source, target, path)
        elif _astar(search, source, target, np.inf) < np.inf:
            hops = _write_path(search, source, target, path)
        else:
            break
        for i in range(hops):
            flat[size] = path[i]
            banned[path[i]] = 1
            size += 1
        ends[path_count] = size
        path_count += 1
    for i in range(size):
        banned[flat[i]] = 0
    return flat[:size], ends[:path_count]


@njit(cache=True)
def _yen(search, source, target, count):  # type: ignore[no-untyped-def]
    """Return the links of the `count` shortest paths, and where each ends."""
    nodes, size = len(search.potential), 8
    paths = _Candidates(
        np.empty((size, nodes), np.int32),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size),
        np.full(size, -1, np.int64),
    )
    paths.hops[0] = _walk_tree(search, source, target, paths.path[0])
    paths.length[0], paths.leaves[0], paths.rank[0] = search.potential[source], 0, 0
    size, path_count = 1, 1
    accepted = np.empty(count, np.int64)
    accepted[0] = 0
    while path_count < count:
        paths, size = _branch(search, paths, size, accepted[:path_count], source, target, count - path_count)
        best = -1
        for p in range(size):
            if paths.rank[p] < 0 and (best < 0 or paths.length[p] < paths.length[best]):
                best = p
        if best < 0:
            break
        paths.rank[best] = path_count
        accepted[path_count] = best
        path_count += 1
    return _join(paths, accepted[:path_count])


@njit(cache=True)
def _branch(search, paths, size, accepted, source, target, missing):  # type: ignore[no-untyped-def]
    """Add the shortest path that leaves the newest one at each of its nodes; return paths and their number.

    size     number of paths, candidates and accepted ones
    missing  number of paths that are still asked for
    """
    weight, head, work = search.weight, search.forward.head, search.work
    newest = accepted[-1]
    before, v = 0.0, source
    for i in range(paths.hops[newest]):
        if i >= paths.leaves[newest]:
            _ban_continuations(paths, accepted, i, work.banned)
            limit = _candidate_limit(paths.length, paths.rank, size, missing)
            spur_cost = _astar(search, v, target, limit - before)
            if spur_cost < np.inf:
                if size == len(paths.hops):
                    paths = _enlarge(paths)
                extra = _write_path(search, v, target, paths.path[size, i:])
                for h in range(i):
                    paths.path[size, h] = paths.path[newest, h]
                paths.hops[size], paths.leaves[size] = i + extra, i
                paths.length[size], paths.rank[size] = before + spur_cost, -1
                size += 1
            for p in accepted:
                if paths.hops[p] > i:
                    work.banned[paths.path[p, i]] = 0
        work.closed[v] = 1
        before += weight[paths.path[newest, i]]
        v = head[paths.path[newest, i]]
    v = source
    for i in range(paths.hops[newest]):
        work.closed[v] = 0
        v = head[paths.path[newest, i]]
    return paths, size


@njit(cache=True)
def _ban_continuations(paths, accepted, i, banned):  # type: ignore[no-untyped-def]
    """Ban link i of the accepted paths that begin like the newest: no path is found twice from there."""
    newest = accepted[-1]
    for p in accepted:
        same = paths.hops[p] > i
        for h in range(i):
            if not same or paths.path[p, h] != paths.path[newest, h]:
                same = False
                break
        if same:
            banned[paths.path[p, i]] = 1


@njit(cache=True)
def _join(paths, accepted):  # type: ignore[no-untyped-def]
    """Return the links of the accepted paths one after another, and where each ends."""
    total = 0
    for p in accepted:
        total += paths.hops[p]
    flat, ends, position = np.empty(total, np.int32), np.empty(len(accepted), np.int64), 0
    for j in range(len(accepted)):
        p = accepted[j]
        flat[position : position + paths.hops[p]] = paths.path[p, : paths.hops[p]]
        position += paths.hops[p]
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
def _enlarge(paths):  # type: ignore[no-untyped-def]
    """Return arrays for twice as many paths that begin with these."""
    size, nodes = paths.path.shape
    path = np.empty((2 * size, nodes), paths.path.dtype)
    path[:size] = paths.path
    return _Candidates(
        path,
        grow(paths.hops, 2 * size),
        grow(paths.leaves, 2 * size),
        grow(paths.length, 2 * size),
        grow(paths.rank, 2 * size),
    )


@njit(cache=True)
def _suurballe(search, source, target, count):  # type: ignore[no-untyped-def]
    """Return the links of disjoint paths by minimum-cost flow, and where each ends; changes the potentials.

    `banned` is 1 on links with flow. A path of the residual network may run backwards over them.
    """
    work, potential = search.work, search.potential
    flow, flows = np.empty(len(work.banned), np.int32), 0  # links with flow, and some without any more
    settled = np.empty(len(potential), np.int32)
    backward = np.zeros(len(potential), np.int8)
    path_count = 0
    while path_count < count:
        settled_count = _find_residual_path(search, source, target, flow[:flows], settled, backward)
        if settled_count < 0:
            break
        for i in range(settled_count):
            potential[settled[i]] += work.key[target] - work.key[settled[i]]
        flows = _augment(search, source, target, flow, flows, backward)
        path_count += 1
    return _decompose(search, source, target, flow[:flows], path_count)


@njit(cache=True)
def _find_residual_path(search, source, target, flow, settled, backward):  # type: ignore[no-untyped-def]
    """Find the shortest path of the residual network; return the number of settled nodes, -1 for no path.

    Dijkstra on reduced lengths: weight + potential(head) - potential(tail), at least 0 but for rounding.
    """
    forward, weight, potential, work = search.forward, search.weight, search.potential, search.work
    heap, position, key = work.heap, work.place, work.key
    work.number[0] += 1
    now = work.number[0]
    work.distance[source], key[source] = 0.0, 0.0
    work.stamp[source] = now
    heap[0], size, settled_count = source, 1, 0
    while size > 0:
        v, size = pop_heap(heap, key, position, size)
        work.done[v] = now
        settled[settled_count] = v
        settled_count += 1
        if v == target:
            return settled_count
        first = forward.first[v]
        degree = forward.first[v + 1] - first
        for j in range(degree + len(flow)):
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
    return -1


@njit(cache=True)
def _augment(search, source, target, flow, flows, backward):  # type: ignore[no-untyped-def]
    """Send a unit along the path that was found; return the number of links in `flow`."""
    forward, work = search.forward, search.work
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
    count = 0
    for i in range(flows):
        if work.banned[flow[i]]:
            flow[count] = flow[i]
            count += 1
    v = target
    while v != source:
        arc = work.parent[v]
        if not backward[v]:
            flow[count] = arc
            count += 1
        v = forward.head[arc] if backward[v] else forward.tail[arc]
    return count


@njit(cache=True)
def _decompose(search, source, target, flow, path_count):  # type: ignore[no-untyped-def]
    """Return the links of the paths of a flow, the shortest path first, and where each ends."""
    forward, weight, banned = search.forward, search.weight, search.work.banned
    flat, size = np.empty(len(flow), np.int32), 0
    ends, length = np.zeros(path_count + 1, np.int64), np.zeros(path_count)
    for number in range(path_count):
        v = source
        while v != target:
            arc = _link_with_flow(forward, banned, v)
            banned[arc] = 0  # every link with flow is on one path
            flat[size] = arc
            size += 1
            length[number] += weight[arc]
            v = forward.head[arc]
        ends[number + 1] = size
    for i in range(len(flow)):
        banned[flow[i]] = 0
    by_length, last, offset = np.empty(size, np.int32), np.empty(path_count, np.int64), 0
    order = np.argsort(length)
    for j in range(path_count):
        p = order[j]
        for i in range(ends[p], ends[p + 1]):
            by_length[offset] = flat[i]
            offset += 1
        last[j] = offset
    return by_length, last


@njit(cache=True)
def _link_with_flow(forward, has_flow, v):  # type: ignore[no-untyped-def]
    """Return the first link with flow that leaves a node which the flow passes."""
    j = forward.first[v]
    while not has_flow[forward.leaving[j]]:
        j += 1
    return forward.leaving[j]


SEARCH: Final[dict[PathChoice, Callable[..., tuple[Ints, Ints, Ints32]]]] = {
    "shortest": _demand_searchshortest,
    "disjoint": _demand_searchdisjoint,
    "most_disjoint": _demand_searchmost_disjoint,
}
