"""Cycle cancelling: remove traffic that runs in cycles, which solvers leave where it costs nothing."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from planner.arrays import Bools, Floats, Ints
from planner_models.flows.problem import FlowProblem


def remove_cycles(problem: FlowProblem, flow_mbps: sp.coo_array) -> sp.coo_array:
    """Return the flow per target, (D, E), without cycles.

    No link carries more than before, and every node keeps its surplus.
    """
    flow = sp.coo_array(flow_mbps)
    flow.sum_duplicates()
    row, link, amount = flow.row.astype(np.int64), flow.col, flow.data.copy()
    used = np.flatnonzero(amount > 0)
    component, cyclic = cyclic_entries(problem, row[used], link[used])
    order = np.flatnonzero(cyclic)[np.argsort(component[cyclic], kind="stable")]
    for arcs in np.split(used[order], np.flatnonzero(np.diff(component[order])) + 1):
        _cancel_cycles(problem, link[arcs], amount, arcs)
    keep = amount > 0
    return sp.coo_array((amount[keep], (row[keep], link[keep])), shape=flow.shape)


def cyclic_entries(problem: FlowProblem, row: Ints, link: Ints) -> tuple[Ints, Bools]:
    """Find the entries of a flow (commodities, E) that lie on cycles.

    row, link  (n,) commodity and link of each entry
    returns    (n,) strongly connected component of the tail of each entry (each commodity has its own),
               and (n,) whether its head is in the same component
    """
    count = len(problem.nodes)
    row = row.astype(np.int64)
    size = int(row.max(initial=0) + 1) * count
    tail, head = row * count + problem.tail[link], row * count + problem.head[link]
    graph = sp.csr_array((np.ones(len(row)), (tail, head)), shape=(size, size))
    _, component = connected_components(graph, directed=True, connection="strong")
    return component[tail].astype(np.int64), component[tail] == component[head]


def _cancel_cycles(problem: FlowProblem, links: Ints, amount: Floats, arcs: Ints) -> None:
    """Reduce `amount` at `arcs` in place until no cycle is left: walk along arcs until a node repeats."""
    leaving: dict[int, list[tuple[int, int]]] = {}
    for arc, link in zip(arcs.tolist(), links.tolist(), strict=True):
        leaving.setdefault(int(problem.tail[link]), []).append((arc, int(problem.head[link])))
    for start in list(leaving):
        walk: list[tuple[int, int]] = []  # (arc, node it leaves)
        step_at = {start: 0}  # number of the step that leaves a node of the walk
        node = start
        while True:
            ways = leaving.get(node, [])
            while ways and amount[ways[-1][0]] <= 0:
                ways.pop()
            if not ways:  # a dead end: the arc that led here is on no cycle
                if not walk:
                    break
                del step_at[node]
                _, node = walk.pop()
                leaving[node].pop()
                continue
            arc, after = ways[-1]
            walk.append((arc, node))
            if after not in step_at:
                step_at[after] = len(walk)
                node = after
                continue
            cycle = [step for step, _ in walk[step_at[after] :]]
            amount[cycle] -= amount[cycle].min()  # the smallest becomes exactly 0
            for _, other in walk[step_at[after] :][1:]:
                del step_at[other]
            del walk[step_at[after] :]
            node = after
