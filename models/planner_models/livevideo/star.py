"""The part of the network that one object can use, numbered locally, at given link prices and rooms.

Kernels in Numba, without allocation: one `Star` is the workspace of a thread.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

EXACT: Final = 6
"""Requests up to which the dynamic program is used: its work grows as 3 to their number."""

NODES: Final = 256
"""Most nodes of a search over reflectors."""

EPS: Final = 1e-11

ROUNDING: Final = 1e-9
"""Share of a bitrate that a link may lack and still have room for it."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Star(NamedTuple):
    """The part of the network that one object can use, numbered locally; also the workspace of the kernels.

    Requests i, edges j and reflectors r are local. Links into request i are c in
    c_first[i]:c_first[i + 1], links into edge j are b in b_first[j]:b_first[j + 1].

    c_edge, c_price, c_link        the edge, price and link of each c
    b_reflector, b_price, b_link   the reflector, price and link of each b
    r_price, r_link                price and link of the cheapest way from a source to r
    value                          worth of each request
    edge_mark, reflector_mark      local number of each edge and reflector, -1 elsewhere
    edges, reflectors              the clusters that are numbered
    """

    c_first: Ints
    c_edge: Ints
    c_price: Floats
    c_link: Ints
    b_first: Ints
    b_reflector: Ints
    b_price: Floats
    b_link: Ints
    r_price: Floats
    r_link: Ints
    value: Floats
    edge_mark: Ints
    reflector_mark: Ints
    edges: Ints
    reflectors: Ints
    # workspace of the dynamic program
    part_cost: Floats
    part_edge: Ints
    tree_cost: Floats
    tree_part: Ints
    root_cost: Floats
    root_reflector: Ints
    all_cost: Floats
    all_part: Ints
    # workspace of the relaxation
    e_first: Ints
    e_c: Ints
    e_i: Ints
    e_price: Floats
    before: Ints
    u_first: Ints
    u_reflector: Ints
    u_price: Floats
    dual: Floats
    times: Ints
    along: Floats
    r_slack: Floats
    stamp: Ints
    used: Ints
    turned: Ints
    served: Ints
    open_edge: Ints
    way: Ints
    way_price: Floats
    pick: Ints
    best_pick: Ints
    best_way: Ints
    # workspace of the search
    fixed: Ints
    nodes: Ints
    node_bound: Floats
    node_dual: Floats
    own: Floats
    # of whoever places trees
    place_dual: Floats
    old: Ints


def workspace(*, requests: int, degree: int, edges: int, reflectors: int, edge_degree: int) -> Star:
    """Room for objects of at most so many requests, in a network of so many clusters."""
    e = min(edges, max(requests * degree, 1))
    r = min(reflectors, max(e * edge_degree, 1))
    sets = 1 << EXACT
    ints, floats = np.int64, np.float64

    def i(*shape: int) -> Ints:
        return np.zeros(shape, dtype=ints)

    def f(*shape: int) -> Floats:
        return np.zeros(shape, dtype=floats)

    c, b = requests * degree + 1, e * edge_degree + 1
    small_r = min(r, EXACT * degree * edge_degree) + 1
    return Star(
        c_first=i(requests + 1),
        c_edge=i(c),
        c_price=f(c),
        c_link=i(c),
        b_first=i(e + 1),
        b_reflector=i(b),
        b_price=f(b),
        b_link=i(b),
        r_price=f(r + 1),
        r_link=i(r + 1),
        value=f(requests + 1),
        edge_mark=np.full(edges + 1, -1, dtype=ints),
        reflector_mark=np.full(reflectors + 1, -1, dtype=ints),
        edges=i(e + 1),
        reflectors=i(r + 1),
        part_cost=f(small_r, sets),
        part_edge=i(small_r, sets),
        tree_cost=f(small_r, sets),
        tree_part=i(small_r, sets),
        root_cost=f(sets),
        root_reflector=i(sets),
        all_cost=f(sets),
        all_part=i(sets),
        e_first=i(e + 2),
        e_c=i(c),
        e_i=i(c),
        e_price=f(c),
        before=i(c),
        u_first=i(e + 1),
        u_reflector=i(b),
        u_price=f(b),
        dual=f(requests + 1),
        times=i(requests + 1),
        along=f(requests + 1),
        r_slack=f(r + 1),
        stamp=i(r + 1),
        used=i(r + 1),
        turned=i(r + 1),
        served=i(e + 1),
        open_edge=i(e + 1),
        way=i(e + 1),
        way_price=f(e + 1),
        pick=i(requests + 1),
        best_pick=i(requests + 1),
        best_way=i(e + 1),
        fixed=i(r + 1),
        nodes=i(2 * NODES + 4, r + 1),
        node_bound=f(2 * NODES + 4),
        node_dual=f(2 * NODES + 4, requests + 1),
        own=f(requests + 1),
        place_dual=f(requests + 1),
        old=i(requests + 1, 3),
    )


@nb.njit(cache=True, nogil=True)
def gather(  # noqa: C901
    o: int,  # noqa: ARG001
    first: int,
    last: int,
    rate: float,
    group: Ints,
    value: Floats,
    c_first: Ints,
    c_tail: Ints,
    c_price: Floats,
    c_room: Floats,
    b_first: Ints,
    b_tail: Ints,
    b_price: Floats,
    b_room: Floats,
    a_first: Ints,
    a_price: Floats,
    a_room: Floats,
    s: Any,
) -> tuple[int, int]:
    """Number locally what object o can use: links with a finite price and room for its bitrate."""
    edges = 0
    used = 0
    need = rate * (1 - ROUNDING)
    for i in range(last - first):
        s.value[i] = value[first + i]
        s.c_first[i] = used
        g = group[first + i]
        for c in range(c_first[g], c_first[g + 1]):
            if c_price[c] >= s.value[i] or c_room[c] < need:
                continue
            e = c_tail[c]
            if s.edge_mark[e] < 0:
                s.edge_mark[e] = edges
                s.edges[edges] = e
                edges += 1
            s.c_edge[used] = s.edge_mark[e]
            s.c_price[used] = c_price[c]
            s.c_link[used] = c
            used += 1
    s.c_first[last - first] = used
    reflectors = 0
    used = 0
    for j in range(edges):
        s.b_first[j] = used
        e = s.edges[j]
        for b in range(b_first[e], b_first[e + 1]):
            if b_price[b] == np.inf or b_room[b] < need:
                continue
            r = b_tail[b]
            m = s.reflector_mark[r]
            if m == -2:
                continue
            if m == -1:
                best = np.inf
                link = -1
                for a in range(a_first[r], a_first[r + 1]):
                    if a_price[a] < best and a_room[a] >= need:
                        best = a_price[a]
                        link = a
                s.reflectors[reflectors] = r
                s.r_price[reflectors] = best
                s.r_link[reflectors] = link
                s.reflector_mark[r] = reflectors
                reflectors += 1
                m = s.reflector_mark[r]
            if s.r_link[m] < 0:
                continue
            s.b_reflector[used] = m
            s.b_price[used] = b_price[b]
            s.b_link[used] = b
            used += 1
    s.b_first[edges] = used
    for j in range(edges):
        s.edge_mark[s.edges[j]] = -1
    for r in range(reflectors):
        s.reflector_mark[s.reflectors[r]] = -1
    return edges, reflectors
