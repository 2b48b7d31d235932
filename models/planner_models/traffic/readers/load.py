"""The load that shortest-path routing puts on each link."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

TIE: Final = 1e-9  # relative difference of length below which two paths are equally short
BLOCK: Final = 1 << 23  # distances held at once (8 bytes each)


def shortest_path_load(
    *,
    nodes: int,
    tail: NDArray[np.intp],
    head: NDArray[np.intp],
    weight: NDArray[np.float64],
    source: NDArray[np.intp],
    target: NDArray[np.intp],
    rate: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Load of each link, in the unit of `rate`, when every node splits evenly over its shortest next links.

    Splitting as OSPF does (equal-cost multipath) makes the load a property of the network: it does
    not hang on how ties between paths are broken. A demand without a path loads nothing.

    tail, head, weight    (links,) directed links; weights must be positive: with zeros, "next" has no order
    source, target, rate  (demands,)
    """
    if not np.all(weight > 0):
        raise ValueError("weights must be positive")
    load = np.zeros(len(tail))
    out, first, degree = _links_by_tail(nodes, tail)
    backwards = _shortest_only(nodes, head, tail, weight)
    targets, column = np.unique(target, return_inverse=True)
    step = max(1, BLOCK // max(nodes, 1))
    for begin in range(0, len(targets), step):
        block = targets[begin : begin + step]
        distance = np.atleast_2d(dijkstra(backwards, indices=block))
        mine = (column >= begin) & (column < begin + step)
        flow = np.zeros(distance.shape)
        np.add.at(flow, (column[mine] - begin, source[mine]), rate[mine])
        flow[np.isinf(distance)] = 0
        # farthest first: when a node's turn comes, all that passes through it has arrived
        settle = np.argsort(-distance, axis=1, kind="stable")
        for node in settle[:, : nodes - 1].T:
            rows = np.flatnonzero(flow[np.arange(len(block)), node])
            at = node[rows]
            count = degree[at]
            owner = np.repeat(np.arange(len(rows)), count)
            link = out[np.repeat(first[at] - (np.cumsum(count) - count), count) + np.arange(len(owner))]
            here, there = distance[rows, at][owner], distance[rows[owner], head[link]]
            short = (there < here) & (np.abs(weight[link] + there - here) <= TIE * here)
            owner, link = owner[short], link[short]
            ways = np.bincount(owner, minlength=len(rows))
            share = (flow[rows, at] / ways)[owner]
            load += np.bincount(link, share, minlength=len(tail))
            np.add.at(flow, (rows[owner], head[link]), share)
    return load


def _links_by_tail(
    nodes: int, tail: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Links in the order of their tails, where each node's begin among them, and how many it has."""
    degree = np.bincount(tail, minlength=nodes)
    return np.argsort(tail, kind="stable"), np.cumsum(degree) - degree, degree


def _shortest_only(
    nodes: int, tail: NDArray[np.intp], head: NDArray[np.intp], weight: NDArray[np.float64]
) -> csr_array[np.float64]:
    """The weights as a matrix, of parallel links the smallest (a sparse matrix would add them up)."""
    order = np.lexsort((weight, head, tail))
    tail, head, weight = tail[order], head[order], weight[order]
    again = (tail[1:] == tail[:-1]) & (head[1:] == head[:-1])
    keep = np.concatenate([[True], ~again])[: len(tail)]
    return csr_array((weight[keep], (tail[keep], head[keep])), shape=(nodes, nodes))
