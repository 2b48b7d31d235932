"""Forwarding: the link by which a packet leaves a node.

A flow without split tables of a plan takes shortest paths, and at each node one of the next hops: the next in
turn of that node and target (`SCATTER`), a random one (`SCATTER_RANDOM`), or by a hash of the flow (others,
so that a flow which is not yet scheduled is not split). With a plan each node where a demand divides has a
table of 64 slots, filled by its shares; a flow takes the slot of its hash (`HASH`), the next one (`SPLIT`,
the second technique of Sen et al. 2013, 5.1), or a random one (`SPLIT_RANDOM`). Slots are in bit-reversed
order, so that consecutive packets spread as evenly as the shares allow. A random choice is one for each
packet, or for each flowlet: so many packets of consecutive numbers. Replies to split packets are scattered. A
flow with a source route (`SOURCE`) takes its links one after the other; a packet that is off it, as its flow
has another one since, takes shortest paths by a hash, and so do replies.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.compiled import inner_without_allocation
from planner_models.packets.hops.layout import (
    FLOWLET_PACKETS,
    HOP_SHIFT,
    MAX_HOPS,
    NUMBER_MASK,
    NUMBER_SHIFT,
    REPLIES_HASHED,
    REPLY,
    SEED,
    Layout,
)
from planner_models.packets.hops.links import draw_random
from planner_models.packets.state import Floats, Ints

Ints32 = NDArray[np.int32]

MODES: Final = ("hash", "scatter", "scatter_random", "split", "split_random", "source")
HASH, SCATTER, SCATTER_RANDOM, SPLIT, SPLIT_RANDOM, SOURCE = range(len(MODES))
SLOTS: Final = 64
SLOT_BITS: Final = 6
REVERSED_SLOTS: Final = [int(f"{slot:0{SLOT_BITS}b}"[::-1], 2) for slot in range(SLOTS)]
FIRST_FACTOR: Final = 0x9E3779B1
SECOND_FACTOR: Final = 0x85EBCA77
HASH_MASK: Final = 0x7FFFFFFF  # 31 bits, so that products with these factors fit 63
NO_TABLE: Final = -1
NO_LINK: Final = -1


class NextHops(NamedTuple):
    """Next hops on shortest paths, split tables, and source routes.

    first  (N, D + 1) links from node v to target d: link[first[v, d] : first[v, d + 1]]
    link   offsets of rows of links
    turn   (N, D) packets so far of nodes that scatter
    key    node and route of each table, in a hash table of a power of two; -1 where there is none
    table  the row of `slots` of each key
    slots  (T, 64) offsets of rows of links
    taken  (T,) packets so far of each table
    walk   links of source routes, offsets of rows, with -1 after each; `layout.MAX_HOPS` more at the end
    walk_node  nodes at which packets take them, or -1
    """

    first: Ints32
    link: Ints32
    turn: Ints32
    key: Ints
    table: Ints32
    slots: Ints32
    taken: Ints
    walk: Ints32
    walk_node: Ints32


def hash_number(number: Any) -> Any:
    """Return a hash of an integer, or of each of an array, 31 bits (multiply and shift, twice)."""
    mixed = (number & HASH_MASK) * FIRST_FACTOR & HASH_MASK
    mixed = (mixed ^ (mixed >> 15)) * SECOND_FACTOR & HASH_MASK
    return mixed ^ (mixed >> 13)


mix = inner_without_allocation(hash_number)
"""The same for compiled code."""


@inner_without_allocation
def find_table(key: Ints, table: Ints32, node_of_route: int) -> int:
    """Return the row of the table of a key, or -1."""
    mask = len(key) - 1
    slot = mix(node_of_route) & mask
    while key[slot] != node_of_route:
        if key[slot] == NO_TABLE:
            return NO_TABLE
        slot = (slot + 1) & mask
    return int(table[slot])


@inner_without_allocation
def link_on_route(ints: Ints, layout: Layout, hops: NextHops, node: int, sender: int, packet: int) -> int:
    """Return the next link of a packet on its source route, or -1 where the node is not on it."""
    if ints[layout.mode + sender] != SOURCE or ints[layout.route + sender] < 0:
        return NO_LINK
    hop = packet >> HOP_SHIFT
    if hop == MAX_HOPS - 1:
        return NO_LINK
    position = ints[layout.route + sender] + hop
    return int(hops.walk[position]) if hops.walk_node[position] == node else NO_LINK


@inner_without_allocation
def next_link(ints: Ints, layout: Layout, hops: NextHops, node: int, sender: int, packet: int) -> int:
    """Return the link by which a packet of a sender, or a reply to it, leaves a node; -1 for no path."""
    number = packet >> NUMBER_SHIFT & NUMBER_MASK
    mode, route, seed = ints[layout.mode + sender], ints[layout.route + sender], ints[layout.seed + sender]
    row = ints[layout.target_row + sender]
    if packet & REPLY:
        if ints[REPLIES_HASHED]:
            mode = HASH
        elif route >= 0 and mode == SPLIT:
            mode = SCATTER
        elif route >= 0 and mode == SPLIT_RANDOM:
            mode = SCATTER_RANDOM
        row, route, seed = ints[layout.source_row + sender], NO_TABLE, seed + 1
    if mode == SOURCE:
        mode, route = HASH, NO_TABLE
    if route >= 0:
        table = find_table(hops.key, hops.table, route * len(hops.first) + node)
        if table >= 0:
            return take_slot(ints, hops, table, mode, seed + node, number)
    return take_shortest_path(ints, hops, node, row, mode, seed + node, number)


@inner_without_allocation
def draw_for_flowlet(ints: Ints, seed: int, number: int) -> int:
    """Return a random integer for the flowlet of a packet, the same for all its packets at a node.

    seed  of the hash of the flow and the node
    """
    if ints[FLOWLET_PACKETS] == 1:
        return draw_random(ints)
    return int(mix(mix(seed + ints[SEED]) + number // ints[FLOWLET_PACKETS]))


@inner_without_allocation
def take_slot(ints: Ints, hops: NextHops, table: int, mode: int, seed: int, number: int) -> int:
    """Return the link of the next packet by a split table.

    seed    of the hash of the flow and the node
    number  of the packet
    """
    if mode == HASH:
        slot = mix(seed) % SLOTS
    elif mode in (SPLIT_RANDOM, SCATTER_RANDOM):
        slot = draw_for_flowlet(ints, seed, number) % SLOTS
    else:
        slot = hops.taken[table] // ints[FLOWLET_PACKETS] % SLOTS
        hops.taken[table] += 1
    return int(hops.slots[table, slot])


@inner_without_allocation
def take_shortest_path(
    ints: Ints, hops: NextHops, node: int, row: int, mode: int, seed: int, number: int
) -> int:
    """Return a link on a shortest path from a node to the end of a row; -1 where there is none.

    seed    of the hash of the flow and the node
    number  of the packet
    """
    first = hops.first[node, row]
    count = hops.first[node, row + 1] - first
    if count == 0:
        return NO_LINK
    if count > 1:
        if mode == SCATTER:
            first += hops.turn[node, row] // ints[FLOWLET_PACKETS] % count
            hops.turn[node, row] += 1
        elif mode == SCATTER_RANDOM:
            first += draw_for_flowlet(ints, seed, number) % count
        else:
            first += mix(seed) % count
    return int(hops.link[first])


def fill_slots(share: Floats) -> Ints:
    """Return (64,) the choice in each slot of a table with these shares, which sum to 1 but for rounding."""
    slots: Ints = fill_tables(share, np.arange(len(share)), np.zeros(1, np.int64))[0]
    return slots


def fill_tables(share: Floats, choice: Ints, first: Ints) -> Ints:
    """Return (T, 64) the choice in each slot of tables.

    Slots are divided by largest remainder, and given out in bit-reversed order.

    share, choice  (S,) of all tables, one after the other
    first          (T,) where the shares of each table begin
    """
    length = np.diff(np.r_[first, len(share)])
    exact = share / np.repeat(np.add.reduceat(share, first), length) * SLOTS
    count = np.floor(exact).astype(np.int64)
    missing = SLOTS - np.add.reduceat(count, first)
    table = np.repeat(np.arange(len(first)), length)
    order = np.lexsort((count - exact, table))
    rank = np.arange(len(share)) - np.repeat(first, length)  # in the order of remainders
    count[order[rank < np.repeat(missing, length)]] += 1
    slots = np.empty((len(first), SLOTS), dtype=np.int64)
    slots[:, REVERSED_SLOTS] = np.repeat(choice, count).reshape(-1, SLOTS)
    return slots
