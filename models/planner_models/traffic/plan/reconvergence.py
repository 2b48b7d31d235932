"""Shortest paths after failures, compiled: loads, delivered and admitted traffic of many failures.

The paths of the network without failures are updated, not searched again: a failure changes the distance to
a target only of nodes all of whose shortest paths to it use a failed link, and these are few. The routes
to a target on which no failed link has traffic stay as they are.

source  Ramalingam and Reps, "An incremental algorithm for a generalization of the shortest-path problem"
        (1996)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numba
import numpy as np

from planner.arrays import Floats, Ints
from planner_models.traffic.plan.check import TOLERANCE
from planner_models.traffic.plan.delivery import PRECISION
from planner_models.traffic.plan.split_ratios import WEIGHT_TOLERANCE
from planner_models.traffic.plan.tcp_rates import fill_progressively
from planner_models.traffic.problem.problem import Traffic

MOST_STEPS: Final = 5_000  # of the fixed point of the shares that links pass
DROP, PRIORITY, MAX_MIN = range(3)
OVERLOADS: Final = {"drop": DROP, "priority": PRIORITY, "max-min": MAX_MIN}


@numba.njit(cache=True, nogil=True)
def admit_flows(first, link, amount, sent, residual, order):  # type: ignore[no-untyped-def]
    """Return how much fits of demands whose flows on links are link, amount[first[k]:first[k + 1]].

    sent      (K,) what demands send with these flows
    residual  (E,) capacities, which are used up
    order     (K,) demands in the order of admission
    """
    admitted = 0.0
    for k in order:
        part = 1.0
        for i in range(first[k], first[k + 1]):
            if amount[i] > 0:
                part = min(part, residual[link[i]] / amount[i])
        for i in range(first[k], first[k + 1]):
            residual[link[i]] = max(residual[link[i]] - part * amount[i], 0.0)
        admitted += part * sent[k]
    return admitted


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


class Outcomes(NamedTuple):
    """Outcomes of S failures, traffic in Mbit/s.

    disconnected, sent, delivered, admitted  (S,) traffic without a path; sent; that arrives where links drop
              what overloads them; and that fits where demands are admitted in order, one after the other
    overloaded_links  (S,) number of links with more load than capacity
    max_utilization, busiest  (S,) largest load over capacity, and its link, -1 for none
    min_share  (S,) smallest delivered share of a demand with a path, 1 where there is none
    error     (S,) of the fixed point where it did not converge, else 0
    load      (S, E) loads where no link drops traffic; no rows unless asked for
    by_demand (S, K) delivered traffic; no rows unless asked for
    lost      (K,) sum over failures of probability times traffic that does not arrive
    served    (K,) sum of the probabilities of failures under which all of a demand arrives
    """

    disconnected: Floats
    sent: Floats
    delivered: Floats
    admitted: Floats
    overloaded_links: Ints
    max_utilization: Floats
    busiest: Ints
    min_share: Floats
    error: Floats
    load: Floats
    by_demand: Floats
    lost: Floats
    served: Floats


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
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    by_priority = problem.overload == "priority" and problem.has_classes
    layer = problem.class_of if by_priority else np.zeros(len(problem.demands), dtype=np.int64)
    layers = len(problem.class_table) if by_priority else 1
    rate = np.zeros((layers, len(problem.targets), nodes))
    row = problem.target_row[wanted]
    np.add.at(rate, (layer[wanted], row, problem.source[wanted]), problem.rate_mbps[wanted])
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
        tail=problem.tail,
        head=problem.head,
        weight=problem.weight if weight is None else weight,
        capacity=problem.capacity_mbps,
        leaving=leaving,
        first_leaving=first_leaving,
        entering=entering,
        first_entering=first_entering,
        targets=problem.targets,
        rate=rate,
        level=level.astype(np.int64),
        layer_weight=layer_weight,
        source=problem.source,
        row=np.where(problem.rate_mbps > 0, problem.target_row, 0),
        layer=layer,
        demand_rate=problem.rate_mbps,
        order=order[problem.rate_mbps[order] > 0],
        is_single=is_single,
        overload=OVERLOADS[problem.overload] if by_priority or problem.overload != "priority" else DROP,
    )


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


@numba.njit(cache=True, nogil=True)
def push_heap(heap, key, place, size, node):  # type: ignore[no-untyped-def]
    """Insert a node into the heap by its key, or move it up where it is in it."""
    i = place[node]
    if i < 0:
        i = size
        size += 1
    while i > 0:
        above = (i - 1) // 2
        if key[heap[above]] <= key[node]:
            break
        heap[i] = heap[above]
        place[heap[i]] = i
        i = above
    heap[i] = node
    place[node] = i
    return size


@numba.njit(cache=True, nogil=True)
def pop_heap(heap, key, place, size):  # type: ignore[no-untyped-def]
    """Take the node with the smallest key out of the heap."""
    top = heap[0]
    place[top] = -1
    size -= 1
    if size:
        moved = heap[size]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
                child += 1
            if key[heap[child]] >= key[moved]:
                break
            heap[i] = heap[child]
            place[heap[i]] = i
            i = child
        heap[i] = moved
        place[moved] = i
    return top, size


@numba.njit(cache=True, nogil=True)
def find_trees(net):  # type: ignore[no-untyped-def]
    """Return the shortest paths to each target, and the traffic on them."""
    nodes, links, targets = len(net.first_leaving) - 1, len(net.tail), len(net.targets)
    distance = np.full((targets, nodes), np.inf)
    settled = np.zeros((targets, nodes), dtype=np.int64)
    first_way = np.zeros((targets, nodes + 1), dtype=np.int64)
    way = np.empty(targets * nodes + links, dtype=np.int64)
    ways = 0
    parent = np.full(nodes, -1)
    count = np.zeros(targets, dtype=np.int64)
    hops = np.zeros((targets, links), dtype=np.int64)
    share = np.zeros((targets, links))
    size = np.zeros(targets, dtype=np.int64)
    load = np.zeros((targets, links))
    heap, place = np.empty(nodes, dtype=np.int64), np.full(nodes, -1)
    down, no_node = np.zeros(links, dtype=np.bool_), np.zeros(nodes, dtype=np.bool_)
    at = np.zeros(nodes)
    for t in range(targets):
        key = distance[t]
        key[net.targets[t]] = 0.0
        length = push_heap(heap, key, place, 0, net.targets[t])
        while length:
            v, length = pop_heap(heap, key, place, length)
            settled[t, count[t]] = v
            count[t] += 1
            for i in range(net.first_entering[v], net.first_entering[v + 1]):
                e = net.entering[i]
                u = net.tail[e]
                if key[v] + net.weight[e] < key[u]:
                    key[u] = key[v] + net.weight[e]
                    parent[u] = e
                    length = push_heap(heap, key, place, length, u)
        if ways + links > len(way):
            way = np.append(way, np.empty(len(way) + links, dtype=np.int64))
        for v in range(nodes):
            first_way[t, v] = ways
            if v != net.targets[t] and key[v] < np.inf:
                way[ways] = parent[v]
                ways += 1
                for j in range(net.first_leaving[v], net.first_leaving[v + 1]):
                    e = net.leaving[j]
                    near = key[net.head[e]]
                    if (
                        e != parent[v]
                        and near < np.inf
                        and near + net.weight[e] - key[v] <= WEIGHT_TOLERANCE * key[v]
                    ):
                        way[ways] = e
                        ways += 1
        first_way[t, nodes] = ways
        size[t] = _follow(
            net,
            t,
            key,
            settled[t],
            count[t],
            down,
            no_node,
            first_way[t],
            way,
            at,
            hops[t],
            share[t],
            load[t],
        )
    return Trees(distance, settled, count, first_way, way[:ways].copy(), hops, share, size, load)


@numba.njit(cache=True, nogil=True)
def _follow(net, t, distance, settled, count, down, affected, first_way, way, at, hops, share, load):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Write the hops of all traffic to a target, the shares and the loads; return the number of hops.

    affected        (N,) nodes whose distance is another one than in the trees
    first_way, way  of the trees
    """
    size = 0
    load[:] = 0.0
    at[:] = net.rate[0, t]
    for g in range(1, net.rate.shape[0]):
        at += net.rate[g, t]
    for i in range(count - 1, 0, -1):
        v = settled[i]
        amount = at[v]
        if amount == 0.0:
            continue
        first = size
        if not affected[v]:  # some of its ways may be lost, but there are no others
            for j in range(first_way[v], first_way[v + 1]):
                e = way[j]
                w = net.head[e]
                if not down[e] and (
                    not affected[w]
                    or distance[w] + net.weight[e] - distance[v] <= WEIGHT_TOLERANCE * distance[v]
                ):
                    hops[size] = e
                    size += 1
        else:
            for j in range(net.first_leaving[v], net.first_leaving[v + 1]):
                e = net.leaving[j]
                near = distance[net.head[e]]
                if (
                    not down[e]
                    and near < np.inf
                    and near + net.weight[e] - distance[v] <= WEIGHT_TOLERANCE * distance[v]
                ):
                    hops[size] = e
                    size += 1
        if net.is_single and size > first + 1:
            for j in range(first + 1, size):
                hops[first] = min(hops[first], hops[j])
            size = first + 1
        part = 1.0 / (size - first)
        for j in range(first, size):
            e = hops[j]
            share[j] = part
            load[e] = amount * part
            at[net.head[e]] += amount * part
    return size


@numba.njit(cache=True, nogil=True)
def _update(net, trees, t, down, distance, affected, heap, place, settled):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Write distances and settled nodes of a target without the failed links; return how many are settled.

    affected  (N,) false; becomes true for nodes with another distance
    """
    far = trees.distance[t]
    distance[:] = far
    length, changed, first = 0, 0, 0
    for i in range(1, trees.number[t]):
        v = trees.settled[t, i]
        begin, end = trees.first_way[t, v], trees.first_way[t, v + 1]
        e = trees.way[begin]
        keeps = not down[e] and not affected[net.head[e]]
        for j in range(begin + 1, end):
            if keeps:
                break
            e = trees.way[j]
            w = net.head[e]  # a node of the same distance, but for rounding, may depend on this one
            keeps = not down[e] and not affected[w] and far[w] < far[v] and far[w] + net.weight[e] == far[v]
        if not keeps:
            affected[v] = True
            changed += 1
            if changed == 1:
                first = i
    if not changed:
        settled[:] = trees.settled[t]
        return trees.number[t]
    for i in range(first, trees.number[t]):
        v = trees.settled[t, i]
        if not affected[v]:
            continue
        distance[v] = np.inf
        for j in range(net.first_leaving[v], net.first_leaving[v + 1]):
            e = net.leaving[j]
            w = net.head[e]
            if not down[e] and not affected[w] and distance[w] + net.weight[e] < distance[v]:
                distance[v] = distance[w] + net.weight[e]
        if distance[v] < np.inf:
            length = push_heap(heap, distance, place, length, v)
    settled[:first] = trees.settled[t, :first]
    count = i = first
    while True:  # merge the nodes that keep their distance with those that are reached anew
        while i < trees.number[t] and affected[trees.settled[t, i]]:
            i += 1
        if i < trees.number[t] and (length == 0 or distance[trees.settled[t, i]] <= distance[heap[0]]):
            settled[count] = trees.settled[t, i]
            i += 1
            count += 1
            continue
        if length == 0:
            break
        v, length = pop_heap(heap, distance, place, length)
        settled[count] = v
        count += 1
        for j in range(net.first_entering[v], net.first_entering[v + 1]):
            e = net.entering[j]
            u = net.tail[e]
            if affected[u] and not down[e] and distance[v] + net.weight[e] < distance[u]:
                distance[u] = distance[v] + net.weight[e]
                length = push_heap(heap, distance, place, length, u)
    return count


@numba.njit(cache=True, nogil=True)
def _share_link(available, wanted, weight, first, stop, given):  # type: ignore[no-untyped-def]  # noqa: C901 - one loop
    """Write what each layer of a level gets of a link, by weight; what one does not want goes to others."""
    rest = available
    for g in range(first, stop):
        given[g] = -1.0
    while True:
        heavy = 0.0
        for g in range(first, stop):
            if given[g] < 0:
                heavy += weight[g]
        if heavy == 0.0:
            return
        is_any = False
        water = rest / heavy
        for g in range(first, stop):
            if given[g] < 0 and wanted[g] <= weight[g] * water:
                given[g] = wanted[g]
                rest = max(rest - wanted[g], 0.0)
                is_any = True
        if not is_any:
            for g in range(first, stop):
                if given[g] < 0:
                    given[g] = weight[g] * water
            return


@numba.njit(cache=True, nogil=True)
def _arriving(net, g, meets, hops, share, start, stop, passed, at, load):  # type: ignore[no-untyped-def]
    """Add the traffic of a layer that arrives at each link, where links pass these shares of it."""
    for t in range(len(net.targets)):
        if not meets[t]:
            continue
        at[:] = net.rate[g, t]
        for i in range(start[t], stop[t]):
            e = hops[i]
            amount = at[net.tail[e]] * share[i]
            load[e] += amount
            at[net.head[e]] += amount * passed[e]


@numba.njit(cache=True, nogil=True)
def _solve_drops(  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    net, hops, share, start, stop, total, used, passed, first, stop_layer, meets, at, load, given
):
    """Write the share that links pass of the traffic of a level's layers; return the error of the last step.

    total  (G, E) loads of the layers where no link drops traffic
    used   (E,) what the levels before take of the links; that of this level is added
    """
    links, targets = len(net.tail), len(net.targets)
    over = np.zeros(links, dtype=np.bool_)
    is_any = False
    for e in range(links):
        amount = 0.0
        for g in range(first, stop_layer):
            amount += total[g, e]
        if amount > 0 and used[e] + amount > net.capacity[e] * (1 + TOLERANCE):
            over[e] = True
            is_any = True
    passed[first:stop_layer] = 1.0
    meets[:] = False
    error = 0.0
    if is_any:
        for t in range(targets):
            for i in range(start[t], stop[t]):
                if over[hops[i]]:
                    meets[t] = True
                    break
        constant = np.zeros((stop_layer - first, links))
        for g in range(first, stop_layer):  # the traffic of other targets is constant
            _arriving(net, g, ~meets, hops, share, start, stop, passed[g], at, constant[g - first])
        damping, best, stalled = 1.0, np.inf, 0
        for _ in range(MOST_STEPS):
            error = 0.0
            for g in range(first, stop_layer):
                load[g] = constant[g - first]
                _arriving(net, g, meets, hops, share, start, stop, passed[g], at, load[g])
            for e in range(links):
                if not over[e]:
                    continue
                _share_link(
                    max(net.capacity[e] - used[e], 0.0),
                    load[:, e],
                    net.layer_weight,
                    first,
                    stop_layer,
                    given,
                )
                for g in range(first, stop_layer):
                    new = min(given[g] / load[g, e], 1.0) if load[g, e] > 0 else 1.0
                    old = passed[g, e]
                    error = max(error, abs(new - old) / max(new, 1e-300) if new > 0 else old)
                    if damping < 1.0 and new > 0 and old > 0:
                        new = old * (new / old) ** damping
                    passed[g, e] = new
            if error <= PRECISION:
                error = 0.0
                break
            if error < 0.99 * best:
                best, stalled = error, 0
            else:  # the map may swing: shorter steps
                stalled += 1
                if stalled >= 8:
                    damping, stalled, best = max(0.5 * damping, 0.05), 0, np.inf
    for g in range(first, stop_layer):
        arrives = total[g]
        if is_any:
            arrives = load[g]
        for e in range(links):
            used[e] += arrives[e] * passed[g, e]
    return error


class _Lists(NamedTuple):
    """The overloaded links on the routes from each node to each target, as linked lists.

    head  (T, N) first entry of each list, -1 for none
    link, share, after  overloaded link, share of the traffic that takes it, and the next entry
    """

    head: Ints
    link: Ints
    share: Floats
    after: Ints


@numba.njit(cache=True, nogil=True)
def _list_overloaded(net, hops, share, start, stop, over, lists, scratch, touched):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return the lists of overloaded links, with entries in arrays that are enlarged where they are short."""
    head, link, part, after = lists.head, lists.link, lists.share, lists.after
    size = 0
    for t in range(len(net.targets)):
        head[t] = -1
        i = stop[t] - 1
        while i >= start[t]:  # nearest nodes first
            v = net.tail[hops[i]]
            first = i
            while first > start[t] and net.tail[hops[first - 1]] == v:
                first -= 1
            if size + len(net.tail) >= len(link):
                longer = max(2 * len(link), size + len(net.tail) + 1)
                link = np.append(link, np.zeros(longer - len(link), dtype=np.int64))
                after = np.append(after, np.zeros(longer - len(after), dtype=np.int64))
                part = np.append(part, np.zeros(longer - len(part)))
            if first == i:  # one way: the list of the next node, and the link
                e = hops[i]
                head[t, v] = head[t, net.head[e]]
                if over[e]:
                    link[size], part[size], after[size] = e, 1.0, head[t, v]
                    head[t, v] = size
                    size += 1
            else:
                count = 0
                for j in range(first, i + 1):
                    e = hops[j]
                    if over[e]:
                        if scratch[e] == 0.0:
                            touched[count] = e
                            count += 1
                        scratch[e] += share[j]
                    place = head[t, net.head[e]]
                    while place >= 0:
                        if scratch[link[place]] == 0.0:
                            touched[count] = link[place]
                            count += 1
                        scratch[link[place]] += share[j] * part[place]
                        place = after[place]
                for j in range(count):
                    e = touched[j]
                    link[size], part[size], after[size] = e, scratch[e], head[t, v]
                    scratch[e] = 0.0
                    head[t, v] = size
                    size += 1
            i = first - 1
    return _Lists(head, link, part, after)


@numba.njit(cache=True, nogil=True)
def _admit(net, lists, is_reached, residual):  # type: ignore[no-untyped-def]
    """Return the traffic that fits where demands are admitted in order; `residual` (E,) is used up."""
    admitted = 0.0
    for k in net.order:
        t, v = net.row[k], net.source[k]
        if not is_reached[t, v]:
            continue
        amount = net.demand_rate[k]
        first = lists.head[t, v]
        place = first
        while place >= 0 and amount > 0:
            share = lists.share[place]
            fits = residual[lists.link[place]]
            amount = min(amount, fits if share == 1.0 else fits / share)
            place = lists.after[place]
        if amount <= 0:
            continue
        place = first
        while place >= 0:
            e = lists.link[place]
            residual[e] = max(residual[e] - amount * lists.share[place], 0.0)
            place = lists.after[place]
        admitted += amount
    return admitted


@numba.njit(cache=True, nogil=True)
def _slow_down(net, lists, is_reached):  # type: ignore[no-untyped-def]
    """Return the max-min fair rate of each demand over the overloaded links, (K,); 0 without a path."""
    demands = len(net.source)
    start = np.zeros(demands + 1, dtype=np.int64)
    for k in range(demands):
        start[k + 1] = start[k]
        if net.demand_rate[k] > 0 and is_reached[net.row[k], net.source[k]]:
            place = lists.head[net.row[k], net.source[k]]
            while place >= 0:
                start[k + 1] += 1
                place = lists.after[place]
    link, share = np.empty(start[demands], dtype=np.int64), np.empty(start[demands])
    cap = np.zeros(demands)
    for k in range(demands):
        if net.demand_rate[k] > 0 and is_reached[net.row[k], net.source[k]]:
            cap[k] = net.demand_rate[k]
            place, i = lists.head[net.row[k], net.source[k]], start[k]
            while place >= 0:
                link[i], share[i] = lists.link[place], lists.share[place]
                place = lists.after[place]
                i += 1
    weight = np.ones(demands)
    return fill_progressively(start, link, share, net.capacity, cap, weight, cap, np.argsort(cap))


@numba.njit(cache=True, nogil=True)
def evaluate(net, trees, first_link, link, probability, with_load, with_demands, with_admission):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return the outcomes of failures: failure s takes link[first_link[s]:first_link[s + 1]] down.

    probability  (S,) of each, or () where it is unknown
    """
    failures, links, targets = len(first_link) - 1, len(net.tail), len(net.targets)
    nodes, layers, demands = len(net.first_leaving) - 1, net.rate.shape[0], len(net.source)
    out = Outcomes(
        np.zeros(failures), np.zeros(failures), np.zeros(failures), np.zeros(failures),
        np.zeros(failures, dtype=np.int64), np.zeros(failures), np.full(failures, -1), np.ones(failures),
        np.zeros(failures), np.zeros((failures if with_load else 0, links)),
        np.zeros((failures if with_demands else 0, demands)),
        np.zeros(demands), np.zeros(demands),
    )  # fmt: skip
    down = np.zeros(links, dtype=np.bool_)
    affected = np.zeros(nodes, dtype=np.bool_)
    heap, place = np.empty(nodes, dtype=np.int64), np.full(nodes, -1)
    distance, settled, at = np.empty(nodes), np.empty(nodes, dtype=np.int64), np.zeros(nodes)
    # hops of all targets, one after the other; those that failures do not change come first
    size = int(trees.size.sum())
    hops, share = np.empty(size + targets * links, dtype=np.int64), np.empty(size + targets * links)
    base = np.zeros(targets + 1, dtype=np.int64)
    for t in range(targets):
        base[t + 1] = base[t] + trees.size[t]
        hops[base[t] : base[t + 1]] = trees.hops[t, : trees.size[t]]
        share[base[t] : base[t + 1]] = trees.share[t, : trees.size[t]]
    start, stop = np.empty(targets, dtype=np.int64), np.empty(targets, dtype=np.int64)
    reached = trees.distance < np.inf
    is_cut = np.zeros(targets, dtype=np.bool_)
    routable = 0.0
    for t in range(targets):
        for v in range(nodes):
            if reached[t, v]:
                for g in range(layers):
                    routable += net.rate[g, t, v]
    total, row_load = np.zeros((layers, links)), np.zeros(links)
    summed = np.zeros(links)
    load, passed = np.zeros((layers, links)), np.ones((layers, links))
    used, given = np.zeros(links), np.zeros(layers)
    meets, over = np.zeros(targets, dtype=np.bool_), np.zeros(links, dtype=np.bool_)
    lists = _Lists(
        np.full((targets, nodes), -1),
        np.zeros(4 * links, dtype=np.int64),
        np.zeros(4 * links),
        np.zeros(4 * links, dtype=np.int64),
    )
    scratch, touched = np.zeros(links), np.empty(links, dtype=np.int64)
    arrives = np.zeros((layers, targets, nodes))
    every = np.ones(targets, dtype=np.bool_)
    offered = net.demand_rate.sum()
    wants_demands = with_demands or len(probability) > 0
    slowed = np.zeros(0)
    for s in range(failures):
        for i in range(first_link[s], first_link[s + 1]):
            down[link[i]] = True
        summed[:] = 0.0
        end = size
        cut = 0.0
        for t in range(targets):
            is_changed = False
            for i in range(first_link[s], first_link[s + 1]):
                if trees.load[t, link[i]] > 0:
                    is_changed = True
                    break
            if is_changed:
                count = _update(net, trees, t, down, distance, affected, heap, place, settled)
                start[t] = end
                end += _follow(
                    net,
                    t,
                    distance,
                    settled,
                    count,
                    down,
                    affected,
                    trees.first_way[t],
                    trees.way,
                    at,
                    hops[end:],
                    share[end:],
                    row_load,
                )
                affected[:] = False
                stop[t] = end
                for e in range(links):
                    summed[e] += row_load[e]
                if count < trees.number[t]:
                    is_cut[t] = True
                    reached[t] = False
                    for i in range(count):
                        reached[t, settled[i]] = True
                    for g in range(layers):
                        for v in range(nodes):
                            if not reached[t, v] and trees.distance[t, v] < np.inf:
                                cut += net.rate[g, t, v]
            else:
                start[t], stop[t] = base[t], base[t + 1]
                for e in range(links):
                    summed[e] += trees.load[t, e]
        sent = max(routable - cut, 0.0)
        out.sent[s] = sent
        out.disconnected[s] = max(offered - sent, 0.0)
        busiest, number = 0.0, 0
        for e in range(links):
            over[e] = summed[e] > net.capacity[e] * (1 + TOLERANCE)
            number += over[e]
            if summed[e] > busiest * net.capacity[e]:
                busiest = summed[e] / net.capacity[e]
                out.busiest[s] = e
        out.max_utilization[s], out.overloaded_links[s] = busiest, number
        if with_load:
            out.load[s] = summed
        out.delivered[s] = out.admitted[s] = sent
        smallest = 1.0
        if number:
            if with_admission or net.overload == MAX_MIN:
                lists = _list_overloaded(net, hops, share, start, stop, over, lists, scratch, touched)
            if with_admission:
                out.admitted[s] = _admit(net, lists, reached, net.capacity.copy())
            if net.overload == MAX_MIN:
                slowed = _slow_down(net, lists, reached)
                out.delivered[s] = slowed.sum()
            else:
                if layers == 1:
                    total[0] = summed
                else:
                    passed[:] = 1.0
                    total[:] = 0.0
                    for g in range(layers):
                        _arriving(net, g, every, hops, share, start, stop, passed[g], at, total[g])
                used[:] = 0.0
                first = 0
                while first < layers:
                    after = first
                    while after < layers and net.level[after] == net.level[first]:
                        after += 1
                    error = _solve_drops(
                        net,
                        hops,
                        share,
                        start,
                        stop,
                        total,
                        used,
                        passed,
                        first,
                        after,
                        meets,
                        at,
                        load,
                        given,
                    )
                    out.error[s] = max(out.error[s], error)
                    first = after
        is_dropping = number > 0 and net.overload != MAX_MIN
        is_slowing = number > 0 and net.overload == MAX_MIN
        if is_dropping:
            delivered = 0.0
            for g in range(layers):
                for t in range(targets):
                    at_node = arrives[g, t]
                    at_node[:] = 0.0
                    at_node[net.targets[t]] = 1.0
                    for i in range(stop[t] - 1, start[t] - 1, -1):
                        e = hops[i]
                        at_node[net.tail[e]] += share[i] * passed[g, e] * at_node[net.head[e]]
                    for v in range(nodes):
                        if net.rate[g, t, v] > 0 and reached[t, v]:
                            at_node[v] = min(at_node[v], 1.0)
                            delivered += net.rate[g, t, v] * at_node[v]
                            smallest = min(smallest, at_node[v])
            out.delivered[s] = min(delivered, sent)
        if wants_demands or is_slowing:
            for k in range(demands):
                rate = net.demand_rate[k]
                t, v = net.row[k], net.source[k]
                part = 0.0
                if rate > 0 and reached[t, v]:
                    part = 1.0
                    if is_dropping:
                        part = arrives[net.layer[k], t, v]
                    if is_slowing:
                        part = min(slowed[k] / rate, 1.0)
                        smallest = min(smallest, part)
                if with_demands:
                    out.by_demand[s, k] = part * rate
                if len(probability):
                    out.lost[k] += probability[s] * (1 - part) * rate
                    if part >= 1 - TOLERANCE:
                        out.served[k] += probability[s]
        out.min_share[s] = smallest
        for i in range(first_link[s], first_link[s + 1]):
            down[link[i]] = False
        for t in range(targets):
            if is_cut[t]:
                is_cut[t] = False
                for v in range(nodes):
                    reached[t, v] = trees.distance[t, v] < np.inf
    return out
