"""Load of each link under shortest-path routing with equal-cost multipath (ECMP)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Floats
from planner.search.tolerances import ROUNDING
from planner_models.traffic.problem.tables import lightest_links

LENGTH_TOLERANCE: Final = ROUNDING  # relative difference of length below which two paths are equally short
MAX_DISTANCES: Final = 1 << 23  # distances in memory at once (8 bytes each)


def shortest_path_load(
    *,
    nodes: int,
    tail: NDArray[np.intp],
    head: NDArray[np.intp],
    weight: Floats,
    source: NDArray[np.intp],
    target: NDArray[np.intp],
    rate: Floats,
) -> Floats:
    """Return the load of each link, in the unit of `rate`, when nodes split evenly over shortest next links.

    With equal splits, as in OSPF, the load is a property of the network: it does not depend on how
    ties between paths are broken. A demand without a path loads nothing.

    tail, head, weight    (links,) directed links; weights are positive, for the order of nodes by distance
    source, target, rate  (demands,)
    raises                ValueError for a weight that is not positive
    """
    if not np.all(weight > 0):
        raise ValueError("weights must be positive")
    load = np.zeros(len(tail))
    out, first, degree = _links_by_tail(nodes, tail)
    backwards = lightest_links(nodes, head, tail, weight)
    targets, column = np.unique(target, return_inverse=True)
    step = max(1, MAX_DISTANCES // max(nodes, 1))
    for begin in range(0, len(targets), step):
        block = targets[begin : begin + step]
        distance = np.atleast_2d(dijkstra(backwards, indices=block))
        in_block = (column >= begin) & (column < begin + step)
        flow = np.zeros(distance.shape)
        np.add.at(flow, (column[in_block] - begin, source[in_block]), rate[in_block])
        flow[np.isinf(distance)] = 0
        # farthest node first: when a node is processed, all traffic through it has arrived
        by_distance = np.argsort(-distance, axis=1, kind="stable")
        for node in by_distance[:, : nodes - 1].T:
            rows = np.flatnonzero(flow[np.arange(len(block)), node])
            current_node = node[rows]
            count = degree[current_node]
            owner = np.repeat(np.arange(len(rows)), count)
            link = out[
                np.repeat(first[current_node] - (np.cumsum(count) - count), count) + np.arange(len(owner))
            ]
            here, there = distance[rows, current_node][owner], distance[rows[owner], head[link]]
            short = (there < here) & (np.abs(weight[link] + there - here) <= LENGTH_TOLERANCE * here)
            owner, link = owner[short], link[short]
            ways = np.bincount(owner, minlength=len(rows))
            share = (flow[rows, current_node] / ways)[owner]
            load += np.bincount(link, share, minlength=len(tail))
            np.add.at(flow, (rows[owner], head[link]), share)
    return load


def _links_by_tail(
    nodes: int, tail: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the links sorted by tail, the first position of each node among them, and its out-degree."""
    degree = np.bincount(tail, minlength=nodes)
    return np.argsort(tail, kind="stable"), np.cumsum(degree) - degree, degree
