"""Traffic that follows split ratios: at every node, per target, a share for each outgoing link."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from planner_models.traffic.problem import Traffic, totals

EQUAL: Final = 1e-9  # relative; weights that differ by less make equal paths
LONGEST: Final = 20_000  # hops; splits with circles that thin out need many
SPENT: Final = 1e-15  # of what was sent; splits with cycles send ever smaller rests around


def shortest_links(problem: Traffic) -> sp.coo_array:
    """(D, E) 1 for each link that is on a shortest path to a target, by `weight`."""
    away, near = problem.distance[:, problem.tail], problem.distance[:, problem.head]
    with np.errstate(invalid="ignore"):  # inf - inf where neither end reaches the target
        slack = near + problem.weight - away
    row, link = np.nonzero(np.isfinite(near) & (slack <= EQUAL * np.where(np.isfinite(away), away, 1.0)))
    on_path = problem.tail[link] != problem.targets[row]
    row, link = row[on_path], link[on_path]
    return sp.coo_array((np.ones(len(link)), (row, link)), shape=(len(problem.targets), len(problem.links)))


def even(problem: Traffic, links: sp.coo_array) -> sp.coo_array:
    """(D, E) the same share for each of the links that leave a node towards a target."""
    key = links.row.astype(np.int64) * len(problem.nodes) + problem.tail[links.col]
    _, group, count = np.unique(key, return_inverse=True, return_counts=True)
    return sp.coo_array((1.0 / count[group], (links.row, links.col)), shape=links.shape)


def first(problem: Traffic, links: sp.coo_array) -> sp.coo_array:
    """(D, E) all to the first, in the order of the table, of the links that leave a node towards a target."""
    key = links.row.astype(np.int64) * len(problem.nodes) + problem.tail[links.col]
    order = np.lexsort((links.col, key))
    _, chosen = np.unique(key[order], return_index=True)
    pick = order[chosen]
    return sp.coo_array((np.ones(len(pick)), (links.row[pick], links.col[pick])), shape=links.shape)


def of_flow(problem: Traffic, flow_mbps: sp.sparray) -> sp.coo_array:
    """(D, E) the shares by which a flow per target, (D, E) Mbit/s, divides at each node."""
    flow = sp.coo_array(flow_mbps)
    key = flow.row.astype(np.int64) * len(problem.nodes) + problem.tail[flow.col]
    _, group = np.unique(key, return_inverse=True)
    out = totals(group, flow.data, 0)[group]
    keep = flow.data > 0
    share = flow.data[keep] / out[keep]
    return sp.coo_array((share, (flow.row[keep], flow.col[keep])), shape=flow.shape)


def arriving(problem: Traffic, flow_mbps: sp.coo_array) -> sp.coo_array:
    """The flow (D, E) without what ends at a node from which nothing goes on to the target.

    Solvers keep conservation to a tolerance only, so some dust gets stuck on the way.
    """
    count = len(problem.nodes)
    row, link, amount = flow_mbps.row.astype(np.int64), flow_mbps.col, flow_mbps.data
    leaves, enters = row * count + problem.tail[link], row * count + problem.head[link]
    arrives = problem.head[link] == problem.targets[row]
    keep = amount > 0
    while True:
        goes_on = keep & (arrives | np.isin(enters, leaves[keep]))
        if goes_on.sum() == keep.sum():
            return sp.coo_array((amount[keep], (row[keep], link[keep])), shape=flow_mbps.shape)
        keep = goes_on


def completed(problem: Traffic, splits: sp.coo_array) -> sp.coo_array:
    """The splits (D, E), with a shortest path from each node that has none.

    Where the splits alone lead to the target without circles, so does all of it: the shortest path
    comes ever nearer, and never leaves a node with splits again.
    """
    count = len(problem.nodes)
    default = first(problem, shortest_links(problem))
    known = np.unique(splits.row.astype(np.int64) * count + problem.tail[splits.col])
    new = ~np.isin(default.row.astype(np.int64) * count + problem.tail[default.col], known)
    parts = [(splits.data, splits.row, splits.col), (default.data[new], default.row[new], default.col[new])]
    share, row, link = (np.concatenate(part) for part in zip(*parts, strict=True))
    joined = sp.coo_array((share, (row, link)), shape=splits.shape)
    # a shortest path may lead back to where traffic came from: there, shortest paths all the way
    while len(circling := _circling(problem, joined)):
        stays = ~np.isin(joined.row.astype(np.int64) * count + problem.tail[joined.col], circling)
        turned = np.isin(default.row.astype(np.int64) * count + problem.tail[default.col], circling)
        parts = [
            (joined.data[stays], joined.row[stays], joined.col[stays]),
            (default.data[turned], default.row[turned], default.col[turned]),
        ]
        share, row, link = (np.concatenate(part) for part in zip(*parts, strict=True))
        before, joined = joined, sp.coo_array((share, (row, link)), shape=splits.shape)
        if np.array_equal(before.col, joined.col) and np.array_equal(before.row, joined.row):
            break
    return joined


def _circling(problem: Traffic, splits: sp.coo_array) -> NDArray[np.int64]:
    """The places, row times nodes plus node, from which traffic can come back to where it was."""
    count = len(problem.nodes)
    row = splits.row.astype(np.int64)
    tail, head = row * count + problem.tail[splits.col], row * count + problem.head[splits.col]
    places = splits.shape[0] * count
    graph = sp.csr_array((np.ones(len(row)), (tail, head)), shape=(places, places))
    _, knot = connected_components(graph, directed=True, connection="strong")
    return np.unique(tail[knot[tail] == knot[head]])


def gathered(problem: Traffic, splits: sp.coo_array, rate_mbps: NDArray[np.float64]) -> sp.csr_array:
    """(D, E) Mbit/s to each target on each link, when rate_mbps (K,) follows the splits (D, E).

    What `follow` adds up to over sources, without ever holding a row for each demand.
    """
    count, targets = len(problem.nodes), len(problem.targets)
    wanted = np.flatnonzero(rate_mbps > 0)
    row = np.searchsorted(problem.targets, problem.target[wanted])
    share = sp.csr_array((splits.data, (splits.row, splits.col)), shape=splits.shape)
    put_in = sp.csr_array((rate_mbps[wanted], (row, problem.source[wanted])), shape=(targets, count))
    out = sp.csr_array(
        (np.ones(len(problem.links)), (problem.tail, np.arange(len(problem.links)))),
        shape=(count, len(problem.links)),
    )
    into = sp.csr_array(
        (np.ones(len(problem.links)), (np.arange(len(problem.links)), problem.head)),
        shape=(len(problem.links), count),
    )
    least = SPENT * float(rate_mbps.max(initial=0.0))
    flow = sp.csr_array((targets, len(problem.links)))
    moving = put_in
    while moving.nnz:  # all traffic moves one hop a round
        hop = sp.csr_array((moving @ out).multiply(share))
        flow = flow + hop
        arrived = (hop @ into).tocoo()
        going = (arrived.col != problem.targets[arrived.row]) & (arrived.data > least)
        moving = sp.csr_array(
            (arrived.data[going], (arrived.row[going], arrived.col[going])), shape=(targets, count)
        )
    return sp.csr_array(flow)


def follow(problem: Traffic, splits: sp.coo_array, rate_mbps: NDArray[np.float64]) -> sp.coo_array:
    """(K, E) Mbit/s of each demand on each link, when rate_mbps (K,) of it follows the splits (D, E).

    ValueError where splits send traffic round and round.
    """
    count = len(problem.nodes)
    key = splits.row.astype(np.int64) * count + problem.tail[splits.col]
    order = np.argsort(key, kind="stable")
    key, link, share = key[order], splits.col[order], splits.data[order]

    demand = np.flatnonzero(rate_mbps > 0)
    row_of = np.searchsorted(problem.targets, problem.target)  # the splits' row of each demand
    node, amount = problem.source[demand], rate_mbps[demand]
    flows: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    # all traffic moves one hop a round; what meets at a node goes on as one
    while len(demand):
        if len(flows) > LONGEST:
            raise ValueError(f"splits keep {problem.demand_labels[demand[0]]} going round and round")
        here = row_of[demand] * count + node
        start, stop = np.searchsorted(key, here, "left"), np.searchsorted(key, here, "right")
        ways = stop - start
        taken = np.repeat(start, ways) + _counting(ways)
        demand, amount = np.repeat(demand, ways), np.repeat(amount, ways) * share[taken]
        flows.append((demand, link[taken], amount))
        meeting, group = np.unique(demand * count + problem.head[link[taken]], return_inverse=True)
        demand, node = meeting // count, meeting % count
        amount = totals(group, amount, len(meeting))
        going = (node != problem.target[demand]) & (amount > SPENT * rate_mbps[demand])
        demand, node, amount = demand[going], node[going], amount[going]
    rows, links, amounts = (
        (np.concatenate(part) for part in zip(*flows, strict=True)) if flows else ([], [], [])
    )
    flow = sp.coo_array((amounts, (rows, links)), shape=(len(problem.demands), len(problem.links)))
    flow.sum_duplicates()
    return flow


def _counting(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ..., length - 1 for each length in turn."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
