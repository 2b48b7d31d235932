"""Equal-cost next hops: towards each target, the links by which a shortest path goes on from a node."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner_models.traffic.problem import Traffic
from planner_models.traffic.splits import EQUAL


@dataclass(frozen=True, kw_only=True, eq=False)
class NextHops:
    """The nodes that traffic to each target can meet on shortest paths, and where it goes on.

    demand, first_demand  demands with a rate, by target: those to row d of `targets` are
                          demand[first_demand[d]:first_demand[d + 1]]
    node, first_node      nodes met on the way to a target, farthest first, without the target
    link, first_link      links of place i of `node`: link[first_link[i]:first_link[i + 1]], in the
                          order of the table
    """

    demand: NDArray[np.int64]
    first_demand: NDArray[np.int64]
    node: NDArray[np.int64]
    first_node: NDArray[np.int64]
    link: NDArray[np.int64]
    first_link: NDArray[np.int64]


def of(problem: Traffic) -> NextHops:
    """The next hops by `weight`, of the nodes that a demand with a rate can come through."""
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    demand = wanted[np.argsort(problem.target[wanted], kind="stable")]
    first_demand = np.searchsorted(problem.target[demand], problem.targets).astype(np.int64)
    leaving = np.argsort(problem.tail, kind="stable")
    first_leaving = np.searchsorted(problem.tail[leaving], np.arange(len(problem.nodes) + 1))
    node, first_node, link, first_link = _search(
        problem.distance,
        problem.weight,
        problem.head,
        leaving,
        first_leaving.astype(np.int64),
        problem.source[demand],
        np.r_[first_demand, len(demand)],
        problem.targets,
        EQUAL,
    )
    return NextHops(
        demand=demand,
        first_demand=np.r_[first_demand, len(demand)],
        node=node,
        first_node=first_node,
        link=link,
        first_link=first_link,
    )


def random_paths(
    problem: Traffic, hops: NextHops, random: np.random.Generator, *, copies: int = 1
) -> sp.csr_array:
    """(copies * K, E) 1 where a path takes a link; row `copies * k + i` is path i of demand k.

    At every node each next hop is as likely as the others, as a hash of the flow's header makes it.
    """
    start, link = _draw(
        hops.demand,
        hops.first_demand,
        hops.node,
        hops.first_node,
        hops.link,
        hops.first_link,
        problem.source,
        problem.head,
        problem.targets,
        len(problem.nodes),
        len(problem.demands),
        copies,
        random,
    )
    shape = (copies * len(problem.demands), len(problem.links))
    return sp.csr_array((np.ones(len(link)), link, start), shape=shape)


def even_shares(problem: Traffic, hops: NextHops) -> sp.csr_array:
    """(K, E) share of each demand on each link when every node splits it evenly over its next hops."""
    start, link, share = _divide(
        hops.demand,
        hops.first_demand,
        hops.node,
        hops.first_node,
        hops.link,
        hops.first_link,
        problem.source,
        problem.head,
        len(problem.nodes),
    )
    shape = (len(problem.demands), len(problem.links))
    demand = np.repeat(hops.demand, np.diff(start))
    return sp.csr_array(sp.coo_array((share, (demand, link)), shape=shape))


@numba.njit(cache=True)
def grown(array, need):  # type: ignore[no-untyped-def]
    """The array, copied to twice the length where `need` entries do not fit."""
    if need <= len(array):
        return array
    longer = np.empty(max(need, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@numba.njit(cache=True)
def _search(distance, weight, head, leaving, first_leaving, source, first_source, targets, equal):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    count = distance.shape[1]
    seen = np.full(count, -1)
    met = np.empty(count, dtype=np.int64)
    node = np.empty(1024, dtype=np.int64)
    link = np.empty(1024, dtype=np.int64)
    first_link = np.empty(1025, dtype=np.int64)
    first_node = np.zeros(len(targets) + 1, dtype=np.int64)
    nodes, links = 0, 0
    for d in range(len(targets)):
        far = distance[d]
        size = 0
        for s in source[first_source[d] : first_source[d + 1]]:
            if seen[s] != d:
                seen[s] = d
                met[size] = s
                size += 1
        place = 0
        while place < size:  # everything that shortest paths lead through
            v = met[place]
            place += 1
            for e in leaving[first_leaving[v] : first_leaving[v + 1]]:
                w = head[e]
                if far[w] < np.inf and far[w] + weight[e] - far[v] <= equal * far[v] and seen[w] != d:
                    seen[w] = d
                    if w != targets[d]:
                        met[size] = w
                        size += 1
        order = np.argsort(-far[met[:size]], kind="mergesort")
        node = grown(node, nodes + size)
        first_link = grown(first_link, nodes + size + 1)
        for i in order:
            v = met[i]
            node[nodes] = v
            first_link[nodes] = links
            nodes += 1
            link = grown(link, links + first_leaving[v + 1] - first_leaving[v])
            for e in leaving[first_leaving[v] : first_leaving[v + 1]]:
                if far[head[e]] < np.inf and far[head[e]] + weight[e] - far[v] <= equal * far[v]:
                    link[links] = e
                    links += 1
        first_node[d + 1] = nodes
    first_link[nodes] = links
    return node[:nodes].copy(), first_node, link[:links].copy(), first_link[: nodes + 1].copy()


@numba.njit(cache=True)
def _draw(  # type: ignore[no-untyped-def]
    demand,
    first_demand,
    node,
    first_node,
    link,
    first_link,
    source,
    head,
    targets,
    nodes,
    demands,
    copies,
    random,
):
    start = np.zeros(demands * copies + 1, dtype=np.int64)
    place = np.empty(nodes, dtype=np.int64)
    taken = np.empty(1024, dtype=np.int64)
    began = np.zeros(demands * copies, dtype=np.int64)
    size = 0
    for d in range(len(targets)):
        for i in range(first_node[d], first_node[d + 1]):
            place[node[i]] = i
        for k in demand[first_demand[d] : first_demand[d + 1]]:
            for copy in range(copies):
                row = k * copies + copy
                began[row] = size
                v = source[k]
                while v != targets[d]:
                    i = place[v]
                    ways = first_link[i + 1] - first_link[i]
                    e = link[first_link[i] + min(int(random.random() * ways), ways - 1)]
                    taken = grown(taken, size + 1)
                    taken[size] = e
                    size += 1
                    v = head[e]
                start[row + 1] = size - began[row]
    for row in range(demands * copies):
        start[row + 1] += start[row]
    links = np.empty(size, dtype=np.int64)
    for row in range(demands * copies):
        for j in range(start[row + 1] - start[row]):
            links[start[row] + j] = taken[began[row] + j]
    return start, links


@numba.njit(cache=True)
def _divide(demand, first_demand, node, first_node, link, first_link, source, head, nodes):  # type: ignore[no-untyped-def]
    """Links and shares of the demands in the order of `demand`, from `start[i]` on."""
    start = np.zeros(len(demand) + 1, dtype=np.int64)
    taken, share = np.empty(1024, dtype=np.int64), np.empty(1024)
    passing = np.zeros(nodes)
    size = 0
    for d in range(len(first_demand) - 1):
        for place in range(first_demand[d], first_demand[d + 1]):
            passing[source[demand[place]]] = 1.0
            for i in range(first_node[d], first_node[d + 1]):
                amount = passing[node[i]]
                if amount == 0:
                    continue
                passing[node[i]] = 0.0
                ways = first_link[i + 1] - first_link[i]
                taken, share = grown(taken, size + ways), grown(share, size + ways)
                for e in link[first_link[i] : first_link[i + 1]]:
                    taken[size], share[size] = e, amount / ways
                    passing[head[e]] += amount / ways
                    size += 1
            for e in taken[start[place] : size]:  # what has arrived
                passing[head[e]] = 0.0
            start[place + 1] = size
    return start, taken[:size].copy(), share[:size].copy()
