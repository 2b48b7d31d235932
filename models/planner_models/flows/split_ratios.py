"""Split ratios: at every node, for each target, the share of traffic that takes each outgoing link.

Traffic that runs in cycles, which solvers leave where it costs nothing, is cancelled first.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from planner.arrays import Bools, Floats, Ints
from planner.search.tolerances import NEGLIGIBLE, ROUNDING
from planner_models.flows.problem import FlowProblem, RoutedNetwork
from planner_models.graphs.indexing import sum_by_index

WEIGHT_TOLERANCE: Final = ROUNDING  # relative; paths whose weights differ by less are equally short
NOISE: Final = NEGLIGIBLE  # of the largest flow to a target; smaller flows of a solver are rounding
MAX_HOPS: Final = 20_000  # ratios with cycles need many hops until all traffic has arrived
MIN_SHARE: Final = 1e-15  # of a demand's rate; ratios with cycles send ever smaller rests around


def shortest_path_links(problem: RoutedNetwork) -> sp.coo_array:
    """Return 1 for each link on a shortest path to a target by `weight`, shape (D, E)."""
    away, near = problem.distance[:, problem.tail], problem.distance[:, problem.head]
    with np.errstate(invalid="ignore"):  # inf - inf where neither end reaches the target
        slack = near + problem.weight - away
    tolerance = WEIGHT_TOLERANCE * np.where(np.isfinite(away), away, 1.0)
    row, link = np.nonzero(np.isfinite(near) & (slack <= tolerance))
    on_path = problem.tail[link] != problem.targets[row]
    return _entries(problem, row[on_path], link[on_path], np.ones(int(on_path.sum())))


def split_evenly(problem: RoutedNetwork, links: sp.coo_array) -> sp.coo_array:
    """Return equal shares, (D, E), for the links that leave a node towards a target."""
    _, group, count = np.unique(_keys(problem, links), return_inverse=True, return_counts=True)
    return _entries(problem, links.row, links.col, 1.0 / count[group])


def take_first_link(problem: RoutedNetwork, links: sp.coo_array) -> sp.coo_array:
    """Return the share 1, (D, E), for the first of the links that leave a node towards a target.

    The first in the order of the table `links`.
    """
    key = _keys(problem, links)
    order = np.lexsort((links.col, key))
    _, first = np.unique(key[order], return_index=True)
    first_entries = order[first]
    return _entries(problem, links.row[first_entries], links.col[first_entries], np.ones(len(first_entries)))


def compute_ratios(problem: RoutedNetwork, flow_mbps: sp.sparray) -> sp.coo_array:
    """Return the shares, (D, E), in which a flow per target, (D, E) Mbit/s, splits at each node.

    The rows may also be demands or other commodities.
    """
    flow = sp.coo_array(flow_mbps)
    _, group = np.unique(_keys(problem, flow), return_inverse=True)
    out = sum_by_index(group, flow.data, 0)[group]
    keep = flow.data > 0
    share = flow.data[keep] / out[keep]
    return sp.coo_array((share, (flow.row[keep], flow.col[keep])), shape=flow.shape)


def drop_stranded_flow(problem: RoutedNetwork, flow_mbps: sp.coo_array) -> sp.coo_array:
    """Return the flow, (D, E), without traffic to nodes from which nothing goes on to the target.

    Solvers keep flow conservation to a tolerance only, so small amounts end on the way.
    """
    count = len(problem.nodes)
    row, link, amount = flow_mbps.row.astype(np.int64), flow_mbps.col, flow_mbps.data
    leaves, enters = row * count + problem.tail[link], row * count + problem.head[link]
    arrives = problem.head[link] == problem.targets[row]
    keep = amount > 0
    while True:
        goes_on = keep & (arrives | np.isin(enters, leaves[keep]))
        if goes_on.sum() == keep.sum():
            return _entries(problem, row[keep], link[keep], amount[keep])
        keep = goes_on


def complete_ratios(problem: RoutedNetwork, ratios: sp.coo_array) -> sp.coo_array:
    """Return the ratios, (D, E), with a shortest path from each node that has none.

    Where the given ratios lead to the target without cycles, so do all: a shortest path comes nearer
    with each hop, and never leaves a node with given ratios again.
    """
    shortest = take_first_link(problem, shortest_path_links(problem))
    joined = _append(problem, ratios, shortest, ~np.isin(_keys(problem, shortest), _keys(problem, ratios)))
    # a shortest path may lead back to where traffic came from: there, take shortest paths all the way
    while True:
        _, cyclic = cyclic_entries(problem, joined.row, joined.col)
        if not cyclic.any():
            return joined
        in_cycle = np.unique(_keys(problem, joined)[cyclic])
        outside = ~np.isin(_keys(problem, joined), in_cycle)
        outside_ratios = _entries(problem, joined.row[outside], joined.col[outside], joined.data[outside])
        before = joined
        joined = _append(problem, outside_ratios, shortest, np.isin(_keys(problem, shortest), in_cycle))
        if np.array_equal(before.col, joined.col) and np.array_equal(before.row, joined.row):
            return joined


def ratios_of_solution(problem: RoutedNetwork, flow_mbps: sp.coo_array) -> sp.coo_array:
    """Return the split ratios, (D, E), of a solver's flow per target.

    Solvers keep flow conservation to about 1e-7 only. Applying their split ratios makes it exact, and
    demands below their tolerance use the shortest path.
    """
    flow = flow_mbps.copy()
    largest = np.zeros(len(problem.targets))
    np.maximum.at(largest, flow.row, flow.data)
    flow.data[flow.data <= NOISE * largest[flow.row]] = 0.0
    return complete_ratios(
        problem, compute_ratios(problem, drop_stranded_flow(problem, remove_cycles(problem, flow)))
    )


def _keys(problem: RoutedNetwork, entries: sp.coo_array) -> Ints:
    """Return a number for the commodity and the tail node of each entry."""
    return np.asarray(entries.row.astype(np.int64) * len(problem.nodes) + problem.tail[entries.col])


def _entries(problem: RoutedNetwork, row: Ints, link: Ints, value: Floats) -> sp.coo_array:
    return sp.coo_array((value, (row, link)), shape=(len(problem.targets), len(problem.links)))


def _append(problem: RoutedNetwork, ratios: sp.coo_array, others: sp.coo_array, mask: Bools) -> sp.coo_array:
    """Return the ratios followed by the chosen entries of the others."""
    return _entries(
        problem,
        np.concatenate([ratios.row, others.row[mask]]),
        np.concatenate([ratios.col, others.col[mask]]),
        np.concatenate([ratios.data, others.data[mask]]),
    )


def apply_ratios_by_target(problem: FlowProblem, ratios: sp.coo_array, rate_mbps: Floats) -> sp.csr_array:
    """Return the flow to each target, (D, E) Mbit/s, when rate_mbps (K,) follows the ratios (D, E).

    The sum of `apply_ratios` over sources, in the memory of one row for each target.
    """
    count, targets = len(problem.nodes), len(problem.targets)
    demands = np.flatnonzero(rate_mbps > 0)
    row = problem.target_row[demands]
    share = sp.csr_array((ratios.data, (ratios.row, ratios.col)), shape=ratios.shape)
    injected = sp.csr_array((rate_mbps[demands], (row, problem.source[demands])), shape=(targets, count))
    out = sp.csr_array(
        (np.ones(len(problem.links)), (problem.tail, np.arange(len(problem.links)))),
        shape=(count, len(problem.links)),
    )
    into = sp.csr_array(
        (np.ones(len(problem.links)), (np.arange(len(problem.links)), problem.head)),
        shape=(len(problem.links), count),
    )
    smallest = MIN_SHARE * float(rate_mbps.max(initial=0.0))
    flow = sp.csr_array((targets, len(problem.links)))
    moving = injected
    while moving.nnz:  # all traffic moves one hop a round
        hop = sp.csr_array((moving @ out).multiply(share))
        flow = flow + hop
        arrived = (hop @ into).tocoo()
        going = (arrived.col != problem.targets[arrived.row]) & (arrived.data > smallest)
        moving = sp.csr_array(
            (arrived.data[going], (arrived.row[going], arrived.col[going])), shape=(targets, count)
        )
    return sp.csr_array(flow)


def apply_ratios(problem: FlowProblem, ratios: sp.coo_array, rate_mbps: Floats) -> sp.coo_array:
    """Return the flow of each demand, (K, E) Mbit/s, when rate_mbps (K,) follows the ratios (D, E).

    raises  ValueError where ratios keep traffic in a cycle
    """
    count = len(problem.nodes)
    key = _keys(problem, ratios)
    order = np.argsort(key, kind="stable")
    key, link, share = key[order], ratios.col[order], ratios.data[order]

    demand = np.flatnonzero(rate_mbps > 0)
    row_of = problem.target_row  # row of each demand's target
    node, amount = problem.source[demand], rate_mbps[demand]
    flows: list[tuple[Ints, Ints, Floats]] = []
    # all traffic moves one hop a round; parts of a demand that meet at a node go on as one
    while len(demand):
        if len(flows) > MAX_HOPS:
            raise ValueError(f"split ratios keep {problem.demand_labels[demand[0]]} in a cycle")
        here = row_of[demand] * count + node
        start, stop = np.searchsorted(key, here, "left"), np.searchsorted(key, here, "right")
        ways = stop - start
        taken = np.repeat(start, ways) + _count_up(ways)
        demand, amount = np.repeat(demand, ways), np.repeat(amount, ways) * share[taken]
        flows.append((demand, link[taken], amount))
        meeting, group = np.unique(demand * count + problem.head[link[taken]], return_inverse=True)
        demand, node = meeting // count, meeting % count
        amount = sum_by_index(group, amount, len(meeting))
        going = (node != problem.target[demand]) & (amount > MIN_SHARE * rate_mbps[demand])
        demand, node, amount = demand[going], node[going], amount[going]
    rows, links, amounts = (
        (np.concatenate(column) for column in zip(*flows, strict=True)) if flows else ([], [], [])
    )
    flow = sp.coo_array((amounts, (rows, links)), shape=(len(problem.demands), len(problem.links)))
    flow.sum_duplicates()
    return flow


def _count_up(lengths: Ints) -> Ints:
    """Return 0, 1, ..., length - 1 for each length in turn."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def remove_cycles(problem: RoutedNetwork, flow_mbps: sp.coo_array) -> sp.coo_array:
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


def cyclic_entries(problem: RoutedNetwork, row: Ints, link: Ints) -> tuple[Ints, Bools]:
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


def _cancel_cycles(problem: RoutedNetwork, links: Ints, amount: Floats, arcs: Ints) -> None:
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
