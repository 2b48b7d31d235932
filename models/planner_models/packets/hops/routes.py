"""Links of a network, and routes over them: next hops on shortest paths, split tables, source routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools
from planner.errors import InputError
from planner_models.graphs.distances import find_distances
from planner_models.packets.hops.forwarding import (
    NO_TABLE,
    SLOTS,
    Ints32,
    NextHops,
    fill_tables,
    hash_number,
)
from planner_models.packets.hops.layout import MAX_HOPS
from planner_models.packets.state import Floats, Ints

WEIGHT_TOLERANCE: Final = 1e-9  # relative difference of the lengths of equally short paths


@dataclass(frozen=True, kw_only=True, eq=False)
class Links:
    """Links of a network.

    tail, head     (E,) nodes
    capacity_mbps  (E,)
    weight         (E,) of shortest paths
    nodes          their number
    delay_us       (E,) None: that of the settings
    """

    tail: Ints
    head: Ints
    capacity_mbps: Floats
    weight: Floats
    nodes: int
    delay_us: Floats | None = None


def without_routes(links: Links, ends: Ints, stride: int) -> NextHops:
    """Return the next hops of a network without split tables and source routes.

    ends    nodes to which packets go
    stride  of rows of links
    """
    first, link = find_next_hops(links, ends, stride)
    return NextHops(
        first=first,
        link=link,
        turn=np.zeros((links.nodes, len(ends)), np.int32),
        key=np.full(1, NO_TABLE, np.int64),
        table=np.full(1, NO_TABLE, np.int32),
        slots=np.zeros((0, SLOTS), np.int32),
        taken=np.zeros(0, np.int64),
        walk=np.full(MAX_HOPS, -1, np.int32),
        walk_node=np.full(MAX_HOPS, -1, np.int32),
    )


def select_links(links: Links, rows: Bools) -> Links:
    """Return some of the links, (E,), of the same nodes."""
    delay = None if links.delay_us is None else links.delay_us[rows]
    columns = {name: getattr(links, name)[rows] for name in ("tail", "head", "capacity_mbps", "weight")}
    return replace(links, **columns, delay_us=delay)


def build_walks(links: Links, walks: Sequence[Ints], stride: int) -> tuple[Ints, Ints32, Ints32]:
    """Return the position of each source route, all their links, and the nodes at which packets take them.

    walks   links of each, after the one by which its source sends
    stride  of rows of links
    raises  InputError for one with more links than a packet can count
    """
    count = np.array([len(walk) for walk in walks], np.int64)
    if len(count) and int(count.max()) >= MAX_HOPS:
        raise InputError(f"a source route has {int(count.max()):,} links, must have fewer than {MAX_HOPS}")
    first = np.cumsum(count + 1) - count - 1
    walk_node, walk = (np.full(int((count + 1).sum()) + MAX_HOPS, -1, np.int32) for _ in range(2))
    for start, links_of_walk in zip(first.tolist(), walks, strict=True):
        here = slice(start, start + len(links_of_walk))
        walk[here], walk_node[here] = links_of_walk * stride, links.tail[links_of_walk]
    return first, walk, walk_node


def build_tables(
    links: Links, share: sp.csr_array, rows: Ints, stride: int, *, may_loop: bool = False
) -> tuple[Ints, Ints32, Ints32]:
    """Return a hash table of node and demand, its rows, and the slots of each (T, 64).

    share   (K, E) of each demand on each link
    rows    demands with tables
    stride  of rows of links
    raises  InputError where the shares of a demand have a loop, unless they may
    """
    flow = sp.csr_array(share)[rows].tocoo()
    demand, link, amount = rows[flow.row], flow.col, flow.data
    positive = amount > WEIGHT_TOLERANCE
    demand, link, amount = demand[positive], link[positive], amount[positive]
    if not may_loop:
        require_no_loop(links, demand, link)
    keys_of_links = demand.astype(np.int64) * links.nodes + links.tail[link]
    order = np.argsort(keys_of_links, kind="stable")
    keys_of_links, link, amount = keys_of_links[order], link[order], amount[order]
    keys, first = np.unique(keys_of_links, return_index=True)
    slots = np.zeros((0, SLOTS), np.int32)
    if len(keys):
        slots = (fill_tables(amount, link, first) * stride).astype(np.int32)
    size = 1 << max(2 * len(keys), 1).bit_length()
    key, table = np.full(size, NO_TABLE, np.int64), np.full(size, NO_TABLE, np.int32)
    for row, (number, hashed) in enumerate(zip(keys.tolist(), hash_number(keys).tolist(), strict=True)):
        slot = hashed & (size - 1)
        while key[slot] != NO_TABLE:
            slot = (slot + 1) & (size - 1)
        key[slot], table[slot] = number, row
    return key, table, slots


def require_no_loop(links: Links, demand: Ints, link: Ints) -> None:
    """Raise InputError where links of a demand form a loop, in which packets would circle."""
    loop = find_loop(links, demand, link)
    if loop is not None:
        raise InputError(
            f"forwarding of demand {loop[0]} has a loop through node {loop[1]}: packets that split at each "
            "node would circle"
        )


def find_loop(links: Links, demand: Ints, link: Ints) -> tuple[int, int] | None:
    """Return a demand, and a node, at which links of that demand form a loop; None without one."""
    if not len(demand):
        return None
    keys = np.unique(np.r_[demand * links.nodes + links.tail[link], demand * links.nodes + links.head[link]])
    tail = np.searchsorted(keys, demand * links.nodes + links.tail[link])
    head = np.searchsorted(keys, demand * links.nodes + links.head[link])
    graph = sp.csr_array((np.ones(len(tail)), (tail, head)), shape=(len(keys), len(keys)))
    count, label = sp.csgraph.connected_components(graph, directed=True, connection="strong")
    if count < len(keys):
        key = int(keys[np.argmax(np.bincount(label)[label] > 1)])
        return key // links.nodes, key % links.nodes
    return None


def find_next_hops(links: Links, ends: Ints, stride: int) -> tuple[Ints32, Ints32]:
    """Return next hops on shortest paths towards each of `ends` (D,), as `NextHops.first` and `.link`."""
    order = np.lexsort((links.weight, links.head, links.tail))
    pair = links.tail[order] * links.nodes + links.head[order]
    is_first = np.r_[True, pair[1:] != pair[:-1]] if len(pair) else np.zeros(0, bool)
    of_pair = order[is_first]
    weights = sp.csr_array(
        (links.weight[of_pair], (links.tail[of_pair], links.head[of_pair])), shape=(links.nodes, links.nodes)
    )
    distance = find_distances(weights, ends)  # (D, N)
    by_tail = np.argsort(links.tail, kind="stable")
    first = np.zeros((links.nodes, len(ends) + 1), np.int64)
    listed: list[Ints] = []
    count = 0
    starts = np.searchsorted(links.tail[by_tail], np.arange(links.nodes + 1))
    for node in range(links.nodes):
        leaving = by_tail[starts[node] : starts[node + 1]]
        through = distance[:, links.head[leaving]] + links.weight[leaving]
        from_here = distance[:, [node]]
        on_path = (through <= from_here * (1 + WEIGHT_TOLERANCE)) & np.isfinite(from_here) & (from_here > 0)
        row, column = np.nonzero(on_path)
        listed.append(leaving[column])
        first[node] = count + np.r_[0, np.cumsum(on_path.sum(axis=1))]
        count += len(row)
    link = np.concatenate(listed) if listed else np.zeros(0, np.int64)
    return first.astype(np.int32), (link * stride).astype(np.int32)
