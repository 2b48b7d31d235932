"""Shortest paths to each target, updated after failures, compiled.

A failure changes the distance to a target only of nodes all of whose shortest paths to it use a failed link,
and these are few.

source  Ramalingam and Reps, "An incremental algorithm for a generalization of the shortest-path problem"
        (1996)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints, read_only
from planner.compiled import njit, run_small_in_python
from planner_models.flows.split_ratios import WEIGHT_TOLERANCE
from planner_models.graphs.binary_heap import pop_heap, push_heap
from planner_models.traffic.problem.problem import Traffic

DROP, PRIORITY, MAX_MIN = range(3)
OVERLOADS: Final = {"drop": DROP, "priority": PRIORITY, "max-min": MAX_MIN}


class Trees(NamedTuple):
    """Shortest paths to each target without failures.

    distance  (T, N) weight of the path; inf where there is none
    settled, number  (T, N) nodes with a path, nearest first, and (T,) how many
    first_way, way  links that leave node v on shortest paths to target t, the first on the path by which it
              was settled: way[first_way[t, v]:first_way[t, v + 1]]
    hops      (T, H) links that traffic takes, those that leave the farthest nodes first
    share     (T, H) share of the traffic at their tail that they get
    size      (T,) number of hops
    load      (T, E) load of each target's traffic, Mbit/s
    """

    distance: Floats
    settled: Ints
    number: Ints
    first_way: Ints
    way: Ints
    hops: Ints
    share: Floats
    size: Ints
    load: Floats


class Work(NamedTuple):
    """Arrays of the search for the paths to one target.

    distance  (N,) weight of each node's path
    settled   (N,) nodes with a path, nearest first
    affected  (N,) nodes whose distance is another one than in the trees
    heap, place  (N,) of the search
    at, load  (N,) traffic at each node, and (E,) on each link
    """

    distance: Floats
    settled: Ints
    affected: Bools
    heap: Ints
    place: Ints
    at: Floats
    load: Floats


class Ways(NamedTuple):
    """Links that leave each node on shortest paths to a target, as in `Trees`."""

    first: Ints
    link: Ints


class Hops(NamedTuple):
    """Links that traffic takes, and the share of the traffic at their tail that they get."""

    link: Ints
    share: Floats


@run_small_in_python(max_elements=8_000)
@njit(cache=True, nogil=True)
def find_trees(net):  # type: ignore[no-untyped-def]
    """Return the shortest paths to each target, and the traffic on them."""
    nodes, links, targets = len(net.first_leaving) - 1, len(net.tail), len(net.targets)
    distance = np.full((targets, nodes), np.inf)
    settled = np.zeros((targets, nodes), dtype=np.int64)
    first_way = np.zeros((targets, nodes + 1), dtype=np.int64)
    way = np.empty(targets * nodes + links, dtype=np.int64)
    parent = np.full(nodes, -1)
    count = np.zeros(targets, dtype=np.int64)
    hops = np.zeros((targets, links), dtype=np.int64)
    share = np.zeros((targets, links))
    size = np.zeros(targets, dtype=np.int64)
    load = np.zeros((targets, links))
    heap, position = np.empty(nodes, dtype=np.int64), np.full(nodes, -1)
    down, no_node = np.zeros(links, dtype=np.bool_), np.zeros(nodes, dtype=np.bool_)
    amount_at = np.zeros(nodes)
    ways = 0
    for t in range(targets):
        work = Work(distance[t], settled[t], no_node, heap, position, amount_at, load[t])
        count[t] = _find_tree(net, net.targets[t], work, parent)
        if ways + links > len(way):
            way = np.append(way, np.empty(len(way) + links, dtype=np.int64))
        ways = _write_ways(net, net.targets[t], distance[t], parent, first_way[t], way, ways)
        size[t] = follow_paths(net, t, work, count[t], down, Ways(first_way[t], way), Hops(hops[t], share[t]))
    return Trees(distance, settled, count, first_way, way[:ways].copy(), hops, share, size, load)


@njit(cache=True, nogil=True)
def _find_tree(net, target, work, parent):  # type: ignore[no-untyped-def]
    """Write distances, settled nodes and the first links of paths; return the number of settled nodes."""
    tail, weight, entering, first_entering = net.tail, net.weight, net.entering, net.first_entering
    key, heap, position = work.distance, work.heap, work.place
    key[target] = 0.0
    length = push_heap(heap, key, position, 0, target)
    count = 0
    while length:
        v, length = pop_heap(heap, key, position, length)
        work.settled[count] = v
        count += 1
        for i in range(first_entering[v], first_entering[v + 1]):
            e = entering[i]
            u = tail[e]
            if key[v] + weight[e] < key[u]:
                key[u] = key[v] + weight[e]
                parent[u] = e
                length = push_heap(heap, key, position, length, u)
    return count


@njit(cache=True, nogil=True)
def _write_ways(net, target, distance, parent, first_way, way, ways):  # type: ignore[no-untyped-def]
    """Write the links that leave nodes on shortest paths, from place `ways` on; return where they end."""
    head, weight, leaving, first_leaving = net.head, net.weight, net.leaving, net.first_leaving
    for v in range(len(distance)):
        first_way[v] = ways
        if v == target or not distance[v] < np.inf:
            continue
        way[ways] = parent[v]
        ways += 1
        for j in range(first_leaving[v], first_leaving[v + 1]):
            e = leaving[j]
            near = distance[head[e]]
            if (
                e != parent[v]
                and near < np.inf
                and near + weight[e] - distance[v] <= WEIGHT_TOLERANCE * distance[v]
            ):
                way[ways] = e
                ways += 1
    first_way[len(distance)] = ways
    return ways


@njit(cache=True, nogil=True)
def follow_paths(net, t, work, count, down, ways, out):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Write the hops of all traffic to a target, the shares and the loads; return the number of hops.

    count  settled nodes
    ways   of the trees
    out    `Hops` to write
    """
    distance, settled, affected, flows, load = work.distance, work.settled, work.affected, work.at, work.load
    first_way, way = ways
    hops, share = out
    head, weight, leaving, first_leaving = net.head, net.weight, net.leaving, net.first_leaving
    is_single = net.is_single
    size = 0
    load[:] = 0.0
    flows[:] = net.rate[0, t]
    for g in range(1, net.rate.shape[0]):
        flows += net.rate[g, t]
    for i in range(count - 1, 0, -1):
        v = settled[i]
        amount = flows[v]
        if amount == 0.0:
            continue
        first = size
        if not affected[v]:  # some of its ways may be lost, but there are no others
            for j in range(first_way[v], first_way[v + 1]):
                e = way[j]
                w = head[e]
                if not down[e] and (
                    not affected[w] or distance[w] + weight[e] - distance[v] <= WEIGHT_TOLERANCE * distance[v]
                ):
                    hops[size] = e
                    size += 1
        else:
            for j in range(first_leaving[v], first_leaving[v + 1]):
                e = leaving[j]
                near = distance[head[e]]
                if (
                    not down[e]
                    and near < np.inf
                    and near + weight[e] - distance[v] <= WEIGHT_TOLERANCE * distance[v]
                ):
                    hops[size] = e
                    size += 1
        if is_single and size > first + 1:
            for j in range(first + 1, size):
                hops[first] = min(hops[first], hops[j])
            size = first + 1
        fraction = 1.0 / (size - first)
        for j in range(first, size):
            e = hops[j]
            share[j] = fraction
            load[e] = amount * fraction
            flows[head[e]] += amount * fraction
    return size


@njit(cache=True, nogil=True)
def update_paths(net, trees, t, down, work):  # type: ignore[no-untyped-def]
    """Write distances and settled nodes of a target without failed links; return the number of settled ones.

    The arrays of `work` are written; `affected`, which is false before, becomes true for nodes with another
    distance.
    """
    distance, settled, old, number = work.distance, work.settled, trees.settled[t], trees.number[t]
    distance[:] = trees.distance[t]
    first = _mark_affected(net, trees, t, down, work.affected)
    if first < 0:
        settled[:] = old
        return number
    length = _reach_affected(net, old[first:number], down, work)
    settled[:first] = old[:first]
    return _merge_settled(net, old[:number], first, down, work, length)


@njit(cache=True, nogil=True)
def _mark_affected(net, trees, t, down, affected):  # type: ignore[no-untyped-def]
    """Mark the nodes that lose all shortest paths; return the place of the first one, -1 for none."""
    head, weight = net.head, net.weight
    far, old, way, first_way = trees.distance[t], trees.settled[t], trees.way, trees.first_way[t]
    first = -1
    for i in range(1, trees.number[t]):
        v = old[i]
        begin, end = first_way[v], first_way[v + 1]
        e = way[begin]
        keeps = not down[e] and not affected[head[e]]
        for j in range(begin + 1, end):
            if keeps:
                break
            e = way[j]
            w = head[e]  # a node of the same distance, but for rounding, may depend on this one
            keeps = not down[e] and not affected[w] and far[w] < far[v] and far[w] + weight[e] == far[v]
        if not keeps:
            affected[v] = True
            if first < 0:
                first = i
    return first


@njit(cache=True, nogil=True)
def _reach_affected(net, nodes, down, work):  # type: ignore[no-untyped-def]
    """Put the affected ones of some nodes on the heap, by their distance over others; return its length."""
    head, weight, leaving, first_leaving = net.head, net.weight, net.leaving, net.first_leaving
    distance, affected = work.distance, work.affected
    length = 0
    for v in nodes:
        if not affected[v]:
            continue
        distance[v] = np.inf
        for j in range(first_leaving[v], first_leaving[v + 1]):
            e = leaving[j]
            w = head[e]
            if not down[e] and not affected[w] and distance[w] + weight[e] < distance[v]:
                distance[v] = distance[w] + weight[e]
        if distance[v] < np.inf:
            length = push_heap(work.heap, distance, work.place, length, v)
    return length


@njit(cache=True, nogil=True)
def _merge_settled(net, old, first, down, work, length):  # type: ignore[no-untyped-def]
    """Merge the nodes that keep their distance with those that are reached again; return their number.

    old     settled nodes of the trees; those before `first` keep their places
    length  of the heap
    """
    tail, weight, entering, first_entering = net.tail, net.weight, net.entering, net.first_entering
    distance, settled, affected, heap, position = (
        work.distance,
        work.settled,
        work.affected,
        work.heap,
        work.place,
    )
    number = len(old)
    count = i = first
    while True:
        while i < number and affected[old[i]]:
            i += 1
        if i < number and (length == 0 or distance[old[i]] <= distance[heap[0]]):
            settled[count] = old[i]
            i += 1
            count += 1
            continue
        if length == 0:
            return count
        v, length = pop_heap(heap, distance, position, length)
        settled[count] = v
        count += 1
        for j in range(first_entering[v], first_entering[v + 1]):
            e = entering[j]
            u = tail[e]
            if affected[u] and not down[e] and distance[v] + weight[e] < distance[u]:
                distance[u] = distance[v] + weight[e]
                length = push_heap(heap, distance, position, length, u)


class Network(NamedTuple):
    """A network and its demands, as arrays for compiled loops; T targets, G layers of traffic.

    tail, head, weight, capacity  (E,) of links
    leaving, first_leaving    links that leave node v, in the order of the table:
                              leaving[first_leaving[v]:first_leaving[v + 1]]
    entering, first_entering  links that enter it
    targets    (T,) nodes
    rate       (G, T, N) traffic from each node to each target, Mbit/s
    level      (G,) priority of each layer, from 0, ascending; a link serves lower levels first
    layer_weight  (G,) share of a link among layers of a level
    source, row, layer, demand_rate  (K,) node, row of `targets` and layer of each demand, and its rate
    order      (K,) demands in the order of admission
    is_single  whether all traffic takes the first of equally short links, not equal parts
    overload   DROP, PRIORITY or MAX_MIN
    """

    tail: Ints
    head: Ints
    weight: Floats
    capacity: Floats
    leaving: Ints
    first_leaving: Ints
    entering: Ints
    first_entering: Ints
    targets: Ints
    rate: Floats
    level: Ints
    layer_weight: Floats
    source: Ints
    row: Ints
    layer: Ints
    demand_rate: Floats
    order: Ints
    is_single: bool
    overload: int


def admission_order(problem: Traffic) -> Ints:
    """Return the demands in the order in which admission serves them, (K,).

    By the priority of their class, then by its weight, the largest first, then by the demand's own weight,
    the largest first, then as in the table.
    """
    if not problem.has_classes:
        return np.argsort(-problem.demand_weight, kind="stable")
    classes = problem.class_table
    priority = classes["priority"].to_numpy(float)[problem.class_of]
    weight = classes["weight"].to_numpy(float)[problem.class_of]
    return np.lexsort((-problem.demand_weight, -weight, priority))


def network_of(problem: Traffic, *, weight: Floats | None = None, is_single: bool = False) -> Network:
    """Return a problem as arrays; `weight`, (E,), is instead of the links' own."""
    nodes = len(problem.nodes)
    demands = np.flatnonzero(problem.rate_mbps > 0)
    by_priority = problem.overload == "priority" and problem.has_classes
    layer = problem.class_of if by_priority else np.zeros(len(problem.demands), dtype=np.int64)
    layers = len(problem.class_table) if by_priority else 1
    rate = np.zeros((layers, len(problem.targets), nodes))
    row = problem.target_row[demands]
    np.add.at(rate, (layer[demands], row, problem.source[demands]), problem.rate_mbps[demands])
    level, layer_weight = np.zeros(layers, dtype=np.int64), np.ones(layers)
    if by_priority:
        _, level = np.unique(problem.class_table["priority"].to_numpy(), return_inverse=True)
        layer_weight = problem.class_table["weight"].to_numpy(float)
    leaving, entering = (np.argsort(ends, kind="stable") for ends in (problem.tail, problem.head))
    first_leaving, first_entering = (
        np.searchsorted(ends[order], np.arange(nodes + 1)).astype(np.int64)
        for ends, order in ((problem.tail, leaving), (problem.head, entering))
    )
    order = admission_order(problem)
    return Network(
        tail=read_only(problem.tail),
        head=read_only(problem.head),
        weight=read_only(problem.weight if weight is None else weight),
        capacity=read_only(problem.capacity_mbps),
        leaving=read_only(leaving),
        first_leaving=read_only(first_leaving),
        entering=read_only(entering),
        first_entering=read_only(first_entering),
        targets=read_only(problem.targets),
        rate=read_only(rate),
        level=read_only(level.astype(np.int64)),
        layer_weight=read_only(layer_weight),
        source=read_only(problem.source),
        row=read_only(np.where(problem.rate_mbps > 0, problem.target_row, 0)),
        layer=read_only(layer),
        demand_rate=read_only(problem.rate_mbps),
        order=read_only(order[problem.rate_mbps[order] > 0]),
        is_single=is_single,
        overload=OVERLOADS[problem.overload] if by_priority or problem.overload != "priority" else DROP,
    )
