"""Takes traffic that runs in circles out of a flow: solvers leave it where it costs nothing."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from planner_models.traffic.problem import Traffic


def without(problem: Traffic, flow_mbps: sp.coo_array) -> sp.coo_array:
    """The flow per target (D, E) without circles; no link carries more, every node keeps its surplus."""
    flow = sp.coo_array(flow_mbps)
    flow.sum_duplicates()
    row, link, amount = flow.row.astype(np.int64), flow.col, flow.data.copy()
    for arcs in _knots(problem, row, link, amount):
        _cancel(problem, link[arcs], amount, arcs)
    keep = amount > 0
    return sp.coo_array((amount[keep], (row[keep], link[keep])), shape=flow.shape)


def _knots(
    problem: Traffic, row: NDArray[np.int64], link: NDArray[np.int64], amount: NDArray[np.float64]
) -> list[NDArray[np.int64]]:
    """The entries between nodes that can reach each other, apart for each target."""
    count = len(problem.nodes)
    places = int(row.max(initial=-1) + 1) * count
    tail, head = row * count + problem.tail[link], row * count + problem.head[link]
    used = amount > 0
    graph = sp.csr_array((np.ones(int(used.sum())), (tail[used], head[used])), shape=(places, places))
    _, knot = connected_components(graph, directed=True, connection="strong")
    tied = np.flatnonzero(used & (knot[tail] == knot[head])) if places else np.zeros(0, dtype=np.int64)
    order = tied[np.argsort(knot[tail[tied]], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(knot[tail[order]])) + 1) if len(order) else []


def _cancel(
    problem: Traffic, links: NDArray[np.int64], amount: NDArray[np.float64], arcs: NDArray[np.int64]
) -> None:
    """Reduce `amount` at `arcs` in place until no circle is left: walk on until a node comes again."""
    leaving: dict[int, list[tuple[int, int]]] = {}
    for arc, link in zip(arcs.tolist(), links.tolist(), strict=True):
        leaving.setdefault(int(problem.tail[link]), []).append((arc, int(problem.head[link])))
    for start in list(leaving):
        walk: list[tuple[int, int]] = []  # (arc, node it leaves)
        seen = {start: 0}
        node = start
        while True:
            ways = leaving.get(node, [])
            while ways and amount[ways[-1][0]] <= 0:
                ways.pop()
            if not ways:  # a dead end: whoever led here is on no circle
                if not walk:
                    break
                del seen[node]
                _, node = walk.pop()
                leaving[node].pop()
                continue
            arc, after = ways[-1]
            walk.append((arc, node))
            if after not in seen:
                seen[after] = len(walk)
                node = after
                continue
            circle = [step for step, _ in walk[seen[after] :]]
            amount[circle] -= amount[circle].min()  # the smallest becomes exactly 0
            for _, left in walk[seen[after] :][1:]:
                del seen[left]
            del walk[seen[after] :]
            node = after
