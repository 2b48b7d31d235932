"""Segment lists: the load of each, and the best ones under prices of links.

A segment list of a demand is its intermediate nodes, at most `max_segments` - 1, and then its target; between
consecutive nodes traffic follows all shortest paths (ECMP). A list is padded with its target, so that the
lists of P demands are an array (P, max_segments - 1), in which every entry is the target where traffic stays
on its shortest paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import inner, njit, run_small_in_python
from planner.search.tolerances import IMPROVEMENT
from planner_models.flows import next_hops
from planner_models.flows.problem import FlowProblem

PRICE_TOLERANCE = IMPROVEMENT  # relative; a list with another node must be cheaper by more


class Legs(NamedTuple):
    """Link shares of traffic on shortest paths between all nodes.

    start, link, share  shares on links from node u to node v: link[start[i]:start[i + 1]] with i = u * N + v
    exists              (N, N) whether v can be reached from u; from a node to itself with no links
    middle              (M,) nodes that may be intermediate
    """

    start: Ints
    link: Ints
    share: Floats
    exists: np.ndarray
    middle: Ints


def find_legs(problem: FlowProblem, middle: Ints) -> Legs:
    """Return the link shares of ECMP between all nodes where demands start, may pass (`middle`) and end."""
    count = len(problem.nodes)
    is_positive = problem.rate_mbps > 0
    starts, ends = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    starts[problem.source[is_positive]] = ends[problem.target[is_positive]] = True
    starts[middle] = ends[middle] = True
    source, target = (
        axis.ravel() for axis in np.meshgrid(starts.nonzero()[0], ends.nonzero()[0], indexing="ij")
    )
    shares = next_hops.even_shares(next_hops.next_hops_of_legs(problem, source, target))
    shares.sort_indices()
    size = np.zeros(count * count, dtype=np.int64)
    size[source * count + target] = np.diff(shares.indptr)
    exists = (size > 0).reshape(count, count)
    np.fill_diagonal(exists, True)
    return Legs(
        start=np.r_[0, np.cumsum(size)].astype(np.int64),
        link=shares.indices.astype(np.int64),
        share=shares.data,
        exists=exists,
        middle=np.asarray(middle, dtype=np.int64),
    )


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def price_legs(legs, price):  # type: ignore[no-untyped-def]
    """Return the price of each leg, (N, N), for prices of links (E,); inf where there is none."""
    count = len(legs.exists)
    price_of = np.full((count, count), np.inf)
    for u in range(count):
        for v in range(count):
            if legs.exists[u, v]:
                total = 0.0
                for i in range(legs.start[u * count + v], legs.start[u * count + v + 1]):
                    total += legs.share[i] * price[legs.link[i]]
                price_of[u, v] = total
    return price_of


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def cheapest_lists(leg_price, middle, max_segments):  # type: ignore[no-untyped-def]
    """Return the price of the cheapest list with at most j + 1 segments, and its first node, (k, N, N).

    The first node is the target where the leg to it is as cheap.
    """
    count = len(leg_price)
    price = np.empty((max_segments, count, count))
    first = np.empty((max_segments, count, count), dtype=np.int32)
    price[0] = leg_price
    for u in range(count):
        for v in range(count):
            first[0, u, v] = v
    for j in range(1, max_segments):
        price[j], first[j] = price[j - 1], first[j - 1]
        for u in range(count):
            for m in middle:
                to_m = leg_price[u, m]
                if m != u and to_m < np.inf:
                    _take_cheaper(m, to_m, price[j - 1, m], price[j, u], first[j, u])
    return price, first


@inner
def _take_cheaper(m: int, to_m: float, onward: Floats, price: Floats, first: Ints32) -> None:
    """Take lists through node m to all targets, (N,), where they are cheaper than those so far."""
    for v in range(len(price)):
        total = to_m + onward[v]
        if total < price[v]:
            if total < price[v] * (1 - PRICE_TOLERANCE):
                first[v] = m
            price[v] = total


@njit(cache=True)
def follow(first, u, v, row):  # type: ignore[no-untyped-def]
    """Write the cheapest list from u to v into `row`, (max_segments - 1,)."""
    j = len(first) - 1
    for index in range(len(row)):
        row[index] = v
    index = 0
    while j > 0:
        m = first[j, u, v]
        if m == v:
            return
        row[index] = m
        index += 1
        u = m
        j -= 1


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def follow_all(first, source, target):  # type: ignore[no-untyped-def]
    """Return the cheapest list of each demand, (K, max_segments - 1)."""
    lists = np.empty((len(source), len(first) - 1), dtype=np.int32)
    for k in range(len(source)):
        follow(first, source[k], target[k], lists[k])
    return lists


@njit(cache=True)
def add_list(legs, u, row, v, amount, load):  # type: ignore[no-untyped-def]
    """Add `amount` times the link shares of a list from u to v to `load`, (E,)."""
    count = len(legs.exists)
    for index in range(len(row) + 1):
        m = row[index] if index < len(row) else v
        if m != u:
            for i in range(legs.start[u * count + m], legs.start[u * count + m + 1]):
                load[legs.link[i]] += amount * legs.share[i]
        u = m


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def load_of_lists(legs, source, target, amount, lists, links):  # type: ignore[no-untyped-def]
    """Return the load (E,) of amounts (K,) on their lists."""
    load = np.zeros(links)
    for k in range(len(source)):
        if amount[k] > 0:
            add_list(legs, source[k], lists[k], target[k], amount[k], load)
    return load


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def load_by_group(legs, source, target, amount, lists, group, load):  # type: ignore[no-untyped-def]
    """Add the load of each group of demands to `load`, (G, E)."""
    for k in range(len(source)):
        if amount[k] > 0:
            add_list(legs, source[k], lists[k], target[k], amount[k], load[group[k]])


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def flow_of_lists(legs, source, target, lists, amount):  # type: ignore[no-untyped-def]
    """Return the first links of each list, the links, and the traffic on them; links may repeat."""
    start = np.zeros(len(source) + 1, dtype=np.int64)
    for k in range(len(source)):
        start[k + 1] = start[k] + _count_links(legs, source[k], lists[k], target[k])
    link, flow = np.empty(start[-1], dtype=np.int64), np.empty(start[-1])
    for k in range(len(source)):
        begin, end = start[k], start[k + 1]
        _write_links(legs, source[k], lists[k], target[k], link[begin:end], flow[begin:end])
        flow[begin:end] *= amount[k]
    return start, link, flow


@inner
def _count_links(legs: Legs, u: int, row: Ints32, v: int) -> int:
    """Return the number of links of a list from u to v; links may repeat."""
    count, total = len(legs.exists), 0
    for index in range(len(row) + 1):
        m = row[index] if index < len(row) else v
        if m != u:
            total += legs.start[u * count + m + 1] - legs.start[u * count + m]
        u = m
    return total


@inner
def _write_links(legs: Legs, u: int, row: Ints32, v: int, link: Ints, share: Floats) -> None:
    """Write the links of a list from u to v, and the share of its traffic on each."""
    count, size = len(legs.exists), 0
    for index in range(len(row) + 1):
        m = row[index] if index < len(row) else v
        if m != u:
            for i in range(legs.start[u * count + m], legs.start[u * count + m + 1]):
                link[size], share[size] = legs.link[i], legs.share[i]
                size += 1
        u = m


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def follow_through(first, node, target):  # type: ignore[no-untyped-def]
    """Return the list of each target that goes to a node, and on by the cheapest list, (P, k - 1)."""
    lists = np.empty((len(node), len(first) - 1), dtype=np.int32)
    for i in range(len(node)):
        lists[i, 0] = node[i]
        if lists.shape[1] > 1:
            follow(first[: len(first) - 1], node[i], target[i], lists[i, 1:])
    return lists
