"""Equal-cost next hops: towards each target, the links by which shortest paths leave each node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.flows.problem import FlowProblem
from planner_models.flows.split_ratios import WEIGHT_TOLERANCE


class NextHops(NamedTuple):
    """The nodes on shortest paths towards each target, and the links by which traffic leaves them.

    demand, first_demand  demands with a rate, by target: those to row d of `targets` are
                          demand[first_demand[d]:first_demand[d + 1]]
    row                   (K,) row of `targets` for each demand, -1 for those without a rate
    node, first_node      nodes on the way to a target, farthest first, without the target
    link, first_link      links of place i of `node`: link[first_link[i]:first_link[i + 1]], in the
                          order of the table

    and of the problem: source (K,), head (E,), targets (D,), nodes N.
    """

    demand: Ints
    first_demand: Ints
    row: Ints
    node: Ints
    first_node: Ints
    link: Ints
    first_link: Ints
    source: Ints
    head: Ints
    targets: Ints
    nodes: int


def find_next_hops(problem: FlowProblem) -> NextHops:
    """Return the next hops by `weight` of all nodes on shortest paths of demands with a rate."""
    demands = np.flatnonzero(problem.rate_mbps > 0)
    return _find(problem, problem.source, problem.target, demands, problem.targets, problem.distance)


def next_hops_of_legs(problem: FlowProblem, source: Ints, target: Ints) -> NextHops:
    """Return the next hops on shortest paths from each source to its target, nodes (P,), as of P demands.

    Legs without a path, and those from a node to itself, have none.
    """
    targets = np.unique(target)
    distance = dijkstra(problem.link_weights.T, indices=targets)
    demands = np.flatnonzero(
        np.isfinite(distance[np.searchsorted(targets, target), source]) & (source != target)
    )
    return _find(problem, source, target, demands, targets, distance)


def _find(
    problem: FlowProblem, source: Ints, target: Ints, demands: Ints, targets: Ints, distance: Floats
) -> NextHops:
    """Return the next hops of the wanted demands; `distance` (D, N) is to each of `targets` (D,)."""
    demand = demands[np.argsort(target[demands], kind="stable")]
    first_demand = np.r_[np.searchsorted(target[demand], targets), len(demand)]
    row = np.full(len(source), -1)
    row[demand] = np.searchsorted(targets, target[demand])
    leaving = np.argsort(problem.tail, kind="stable")
    first_leaving = np.searchsorted(problem.tail[leaving], np.arange(len(problem.nodes) + 1))
    network = _Network(
        problem.weight,
        problem.head,
        leaving,
        first_leaving.astype(np.int64),
        WEIGHT_TOLERANCE,
        float(problem.weight[0]) if (problem.weight == problem.weight[0]).all() else 0.0,
    )
    by_target = _Demands(source[demand], first_demand.astype(np.int64), targets)
    node, first_node, link, first_link = _search(distance, network, by_target)
    return NextHops(
        demand=demand,
        first_demand=first_demand.astype(np.int64),
        row=row,
        node=node,
        first_node=first_node,
        link=link,
        first_link=first_link,
        source=source,
        head=problem.head,
        targets=targets,
        nodes=len(problem.nodes),
    )


def draw_paths(hops: NextHops, random: np.random.Generator, *, copies: int = 1) -> sp.csr_array:
    """Draw `copies` random shortest paths for each demand, as `path_matrix` (copies * K, E).

    Row `copies * k + i` is path i of demand k. At every node each next hop is as likely as the
    others, as with a hash of the flow's header.
    """
    start, link = _draw(hops, copies, random)
    return path_matrix(hops, start, link)


def draw_stable_paths(problem: FlowProblem, random: np.random.Generator, *, copies: int = 1) -> sp.csr_array:
    """Draw `copies` random shortest paths for each demand with a rate, (copies * K, E), as `draw_paths` does.

    They are drawn for demands without a rate too, so that a demand keeps its paths as others begin or end,
    as with a hash of its header.
    """
    has_rate = problem.rate_mbps > 0
    if has_rate.all():
        return draw_paths(find_next_hops(problem), random, copies=copies)
    of_all = draw_paths(next_hops_of_legs(problem, problem.source, problem.target), random, copies=copies)
    paths = sp.csr_array(sp.diags_array(np.repeat(has_rate, copies).astype(float)) @ of_all)
    paths.eliminate_zeros()
    return paths


def path_matrix(hops: NextHops, start: Ints, link: Ints) -> sp.csr_array:
    """Return the matrix (P, E) that is 1 where a path takes a link; links of path p from start[p] on."""
    return sp.csr_array((np.ones(len(link)), link, start), shape=(len(start) - 1, len(hops.head)))


def even_shares(hops: NextHops) -> sp.csr_array:
    """Return the share of each demand on each link, shape (K, E), with even splits over next hops."""
    start, link, share = _divide(hops)
    demand = np.repeat(hops.demand, np.diff(start))
    return sp.csr_array(sp.coo_array((share, (demand, link)), shape=(len(hops.source), len(hops.head))))


def flow_by_target(hops: NextHops, rate_mbps: Floats, *, is_split: bool) -> sp.csr_array:
    """Return the flow to each target on each link, (D, E) Mbit/s, of demands with rates (K,).

    is_split  whether traffic splits evenly over next hops; else it takes the first of them
    """
    amount = np.zeros(len(hops.link))
    _add_traffic(hops, rate_mbps, is_split, np.arange(len(hops.link)), amount)
    start = hops.first_link[hops.first_node]
    flow = sp.csr_array((amount, hops.link, start), shape=(len(hops.targets), len(hops.head)))
    flow.eliminate_zeros()
    return flow


def sum_loads(hops: NextHops, rate_mbps: Floats) -> Floats:
    """Return the load of each link, (E,) Mbit/s, of demands with rates (K,) that split evenly."""
    load = np.zeros(len(hops.head))
    _add_traffic(hops, rate_mbps, True, hops.link, load)
    return load


@njit(cache=True)
def enlarge(array, size):  # type: ignore[no-untyped-def]
    """Return the array, copied to at least twice its length where it is shorter than `size`."""
    if size <= len(array):
        return array
    longer = np.empty(max(size, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _order_by_hops(distance, step, order, first):  # type: ignore[no-untyped-def]
    """Write the places of distances that are multiples of a step, the largest first, equal ones in order."""
    farthest = 0
    for i in range(len(distance)):
        farthest = max(farthest, round(distance[i] / step))
    first[: farthest + 1] = 0
    for i in range(len(distance)):
        first[farthest - round(distance[i] / step)] += 1
    before = 0
    for i in range(farthest + 1):
        first[i], before = before, before + first[i]
    for i in range(len(distance)):
        hops = farthest - round(distance[i] / step)
        order[first[hops]] = i
        first[hops] += 1


class _Network(NamedTuple):
    """Links by the node that they leave: leaving[first_leaving[v] : first_leaving[v + 1]].

    tolerance  relative difference of the lengths of equally short paths
    step       weight of all links; 0 where they differ
    """

    weight: Floats
    head: Ints
    leaving: Ints
    first_leaving: Ints
    tolerance: float
    step: float


class _Demands(NamedTuple):
    """Demands by target: source[first[d] : first[d + 1]] are the sources of target d."""

    source: Ints
    first: Ints
    targets: Ints


class _Work(NamedTuple):
    """Arrays of a search.

    reached  (N,) last target, by its row, for which each node was reached
    queue    (N,) nodes in the order they are reached
    begin    (N + 1,) where the links of each of these begin in `on_way`
    on_way   (E,) links on shortest paths
    """

    reached: Ints
    queue: Ints
    begin: Ints
    on_way: Ints


@njit(cache=True)
def _search(distance, network, demands):  # type: ignore[no-untyped-def]
    """Return the nodes, their links, and where both begin."""
    count = distance.shape[1]
    work = _Work(
        np.full(count, -1),
        np.empty(count, dtype=np.int64),
        np.empty(count + 1, dtype=np.int64),
        np.empty(len(network.head), dtype=np.int64),
    )
    order, first_of_hops = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
    node = np.empty(1024, dtype=np.int64)
    link = np.empty(1024, dtype=np.int64)
    first_link = np.empty(1025, dtype=np.int64)
    first_node = np.zeros(len(demands.targets) + 1, dtype=np.int64)
    nodes, links = 0, 0
    for d in range(len(demands.targets)):
        to_target = distance[d]
        size, link_total = _reach(to_target, network, demands, d, work)
        if network.step > 0.0:
            _order_by_hops(to_target[work.queue[:size]], network.step, order, first_of_hops)
        else:
            order[:size] = np.argsort(-to_target[work.queue[:size]], kind="mergesort")
        node = enlarge(node, nodes + size)
        first_link = enlarge(first_link, nodes + size + 1)
        link = enlarge(link, links + link_total)
        for i in order[:size]:
            node[nodes] = work.queue[i]
            first_link[nodes] = links
            nodes += 1
            for j in range(work.begin[i], work.begin[i + 1]):
                link[links] = work.on_way[j]
                links += 1
        first_node[d + 1] = nodes
    first_link[nodes] = links
    return node[:nodes].copy(), first_node, link[:links].copy(), first_link[: nodes + 1].copy()


@njit(cache=True)
def _reach(to_target, network, demands, d, work):  # type: ignore[no-untyped-def]
    """Write all nodes on shortest paths to target d, with their links; return the numbers of both."""
    reached, queue = work.reached, work.queue
    size = 0
    for s in demands.source[demands.first[d] : demands.first[d + 1]]:
        if reached[s] != d:
            reached[s] = d
            queue[size] = s
            size += 1
    index, link_total = 0, 0
    while index < size:
        v = queue[index]
        work.begin[index] = link_total
        index += 1
        for e in network.leaving[network.first_leaving[v] : network.first_leaving[v + 1]]:
            w = network.head[e]
            excess = to_target[w] + network.weight[e] - to_target[v]
            if not (to_target[w] < np.inf and excess <= network.tolerance * to_target[v]):
                continue
            work.on_way[link_total] = e
            link_total += 1
            if reached[w] != d:
                reached[w] = d
                if w != demands.targets[d]:
                    queue[size] = w
                    size += 1
    work.begin[size] = link_total
    return size, link_total


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _draw(hops, copies, random):  # type: ignore[no-untyped-def]
    """Return the first links of each path, and the links."""
    demands = len(hops.source)
    start = np.zeros(demands * copies + 1, dtype=np.int64)
    position_of = np.empty(hops.nodes, dtype=np.int64)
    drawn = np.empty(1024, dtype=np.int64)
    begin = np.zeros(demands * copies, dtype=np.int64)
    size = 0
    for d in range(len(hops.targets)):
        for i in range(hops.first_node[d], hops.first_node[d + 1]):
            position_of[hops.node[i]] = i
        for k in hops.demand[hops.first_demand[d] : hops.first_demand[d + 1]]:
            for copy in range(copies):
                row = k * copies + copy
                begin[row] = size
                v = hops.source[k]
                while v != hops.targets[d]:
                    e = draw_link(hops, position_of[v], random)
                    drawn = enlarge(drawn, size + 1)
                    drawn[size] = e
                    size += 1
                    v = hops.head[e]
                start[row + 1] = size - begin[row]
    for row in range(demands * copies):
        start[row + 1] += start[row]
    links = np.empty(size, dtype=np.int64)
    for row in range(demands * copies):
        for j in range(start[row + 1] - start[row]):
            links[start[row] + j] = drawn[begin[row] + j]
    return start, links


@njit(cache=True)
def draw_link(hops, i, random):  # type: ignore[no-untyped-def]
    """Return a random next hop of place i of `node`."""
    count = hops.first_link[i + 1] - hops.first_link[i]
    return hops.link[hops.first_link[i] + min(int(random.random() * count), count - 1)]


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _divide(hops):  # type: ignore[no-untyped-def]
    """Return links and shares of the demands in the order of `demand`, from `start[i]` on."""
    demand, node, link, first_link = hops.demand, hops.node, hops.link, hops.first_link
    start = np.zeros(len(demand) + 1, dtype=np.int64)
    used, share = np.empty(1024, dtype=np.int64), np.empty(1024)
    passing = np.zeros(hops.nodes)
    size = 0
    for d in range(len(hops.first_demand) - 1):
        for index in range(hops.first_demand[d], hops.first_demand[d + 1]):
            passing[hops.source[demand[index]]] = 1.0
            for i in range(hops.first_node[d], hops.first_node[d + 1]):
                amount = passing[node[i]]
                if amount == 0:
                    continue
                passing[node[i]] = 0.0
                count = first_link[i + 1] - first_link[i]
                used, share = enlarge(used, size + count), enlarge(share, size + count)
                for e in link[first_link[i] : first_link[i + 1]]:
                    used[size], share[size] = e, amount / count
                    passing[hops.head[e]] += amount / count
                    size += 1
            for e in used[start[index] : size]:  # the share that arrived at the target
                passing[hops.head[e]] = 0.0
            start[index + 1] = size
    return start, used[:size].copy(), share[:size].copy()


@njit(cache=True)
def _add_traffic(hops, rate, is_split, index, amount):  # type: ignore[no-untyped-def]
    """Add the traffic of all demands on each entry of `link` to the amount of its index."""
    node, link, first_link = hops.node, hops.link, hops.first_link
    passing = np.zeros(hops.nodes)
    for d in range(len(hops.targets)):
        for k in hops.demand[hops.first_demand[d] : hops.first_demand[d + 1]]:
            passing[hops.source[k]] += rate[k]
        for i in range(hops.first_node[d], hops.first_node[d + 1]):
            begin, end = first_link[i], first_link[i + 1]
            if not is_split:
                end = min(end, begin + 1)
            share = passing[node[i]] / max(end - begin, 1)
            passing[node[i]] = 0.0
            for j in range(begin, end):
                amount[index[j]] += share
                passing[hops.head[link[j]]] += share
        passing[hops.targets[d]] = 0.0
