"""Arrays of the tree subproblem: the layered network, its objects, and the part that one object can use.

The kernels of this folder and of the decomposition share these named tuples. They do not allocate:
one `LocalNetwork` is the workspace of a thread.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

MAX_EXACT_REQUESTS: Final = 6
"""Requests up to which the dynamic program is used: its work grows as 3 to the power of their number."""

MAX_NODES: Final = 256
"""Nodes of a branch and bound over reflectors, at most."""

EPS: Final = 1e-11

CAPACITY_TOLERANCE: Final = 1e-9
"""Share of a bitrate by which the residual capacity of a link may fall short."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PerLayer(NamedTuple):
    """One array for each layer of links: a (source to reflector), b (reflector to edge), c (edge to group).

    Costs and residual capacities are (n,), prices (K, n) for K classes of objects.
    """

    a: NDArray[Any]
    b: NDArray[Any]
    c: NDArray[Any]


class NetworkArrays(NamedTuple):
    """The layered network: links b_first[e]:b_first[e + 1] of layer b lead to edge e, from b_tail.

    cost  per Mbit/s, in units of the objective
    """

    a_first: Ints
    a_head: Ints
    b_first: Ints
    b_tail: Ints
    c_first: Ints
    c_tail: Ints
    cost: PerLayer


class ObjectArrays(NamedTuple):
    """The objects o, with requests first[o]:first[o + 1].

    group, value                           (Q,) client group of each request, and value of serving it
    object_class, bitrate, value_per_mbps  (O,) class, Mbit/s, and value of all requests per Mbit/s
    """

    first: Ints
    group: Ints
    value: Floats
    object_class: Ints
    bitrate: Floats
    value_per_mbps: Floats


class LocalNetwork(NamedTuple):
    """The part of the network that one object can use, numbered locally; also the kernels' workspace.

    Requests i, edges j and reflectors r are local. Links c_first[i]:c_first[i + 1] of layer c lead to
    request i, links b_first[j]:b_first[j + 1] of layer b to edge j.

    c_edge, c_price, c_link        edge, price and link of each c
    b_reflector, b_price, b_link   reflector, price and link of each b
    r_price, r_link                price and link of the cheapest link from a source to r
    value                          value of each request
    edge_mark, reflector_mark      local number of each edge and reflector, -1 elsewhere
    edges, reflectors              clusters with a local number
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
    # dynamic program
    part_cost: Floats
    part_edge: Ints
    tree_cost: Floats
    tree_part: Ints
    root_cost: Floats
    root_reflector: Ints
    all_cost: Floats
    all_part: Ints
    # links c by edge: c, request and price of places e_first[j]:e_first[j + 1]
    e_first: Ints
    e_c: Ints
    e_request: Ints
    e_price: Floats
    previous_link: Ints  # of the request at each place, before an exchange
    # links b that a tree may need, by edge
    u_first: Ints
    u_reflector: Ints
    u_price: Floats
    # Lagrangian relaxation
    best_dual: Floats
    direction: Floats
    request_uses: Ints
    edge_uses: Ints
    reflector_slack: Floats
    # a tree: reflectors and edges that are open, link b into each edge and its price, link c of each request
    open_reflector: Ints
    open_edge: Ints
    edge_link: Ints
    edge_price: Floats
    request_link: Ints
    used_reflector: Ints
    base_reflector: Ints  # open in the tree that local search starts from
    best_edge_link: Ints
    best_request_link: Ints
    # branch and bound
    fixed: Ints
    node_fixed: Ints
    node_bound: Floats
    node_dual: Floats
    parent_dual: Floats
    # insertion
    insertion_dual: Floats


def create_workspace(
    *, requests: int, degree: int, edges: int, reflectors: int, edge_degree: int
) -> LocalNetwork:
    """Return a workspace for objects of at most so many requests, in a network of so many clusters.

    degree, edge_degree  most links into a group and into an edge
    """
    e = min(edges, max(requests * degree, 1))
    r = min(reflectors, max(e * edge_degree, 1))
    sets = 1 << MAX_EXACT_REQUESTS
    c, b = requests * degree + 1, e * edge_degree + 1
    small_r = min(r, MAX_EXACT_REQUESTS * degree * edge_degree) + 1
    nodes = 2 * MAX_NODES + 4

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    def floats(*shape: int) -> Floats:
        return np.zeros(shape, dtype=np.float64)

    return LocalNetwork(
        c_first=ints(requests + 1),
        c_edge=ints(c),
        c_price=floats(c),
        c_link=ints(c),
        b_first=ints(e + 1),
        b_reflector=ints(b),
        b_price=floats(b),
        b_link=ints(b),
        r_price=floats(r + 1),
        r_link=ints(r + 1),
        value=floats(requests + 1),
        edge_mark=np.full(edges + 1, -1, dtype=np.int64),
        reflector_mark=np.full(reflectors + 1, -1, dtype=np.int64),
        edges=ints(e + 1),
        reflectors=ints(r + 1),
        part_cost=floats(small_r, sets),
        part_edge=ints(small_r, sets),
        tree_cost=floats(small_r, sets),
        tree_part=ints(small_r, sets),
        root_cost=floats(sets),
        root_reflector=ints(sets),
        all_cost=floats(sets),
        all_part=ints(sets),
        e_first=ints(e + 2),
        e_c=ints(c),
        e_request=ints(c),
        e_price=floats(c),
        previous_link=ints(c),
        u_first=ints(e + 1),
        u_reflector=ints(b),
        u_price=floats(b),
        best_dual=floats(requests + 1),
        direction=floats(requests + 1),
        request_uses=ints(requests + 1),
        edge_uses=ints(e + 1),
        reflector_slack=floats(r + 1),
        open_reflector=ints(r + 1),
        open_edge=ints(e + 1),
        edge_link=ints(e + 1),
        edge_price=floats(e + 1),
        request_link=ints(requests + 1),
        used_reflector=ints(r + 1),
        base_reflector=ints(r + 1),
        best_edge_link=ints(e + 1),
        best_request_link=ints(requests + 1),
        fixed=ints(r + 1),
        node_fixed=ints(nodes, r + 1),
        node_bound=floats(nodes),
        node_dual=floats(nodes, requests + 1),
        parent_dual=floats(requests + 1),
        insertion_dual=floats(requests + 1),
    )


@nb.njit(cache=True, nogil=True)
def gather_network(  # noqa: C901
    o: int,
    price: PerLayer,
    residual: PerLayer,
    objects: ObjectArrays,
    network: NetworkArrays,
    net: LocalNetwork,
) -> tuple[int, int]:
    """Number locally the links of finite price and enough residual capacity for object o, in `net`.

    Returns the numbers of edges and reflectors.
    """
    first, last = objects.first[o], objects.first[o + 1]
    object_class = objects.object_class[o]
    a_price, b_price, c_price = price.a[object_class], price.b[object_class], price.c[object_class]
    required = objects.bitrate[o] * (1 - CAPACITY_TOLERANCE)
    edges = 0
    count = 0
    for i in range(last - first):
        net.value[i] = objects.value[first + i]
        net.c_first[i] = count
        g = objects.group[first + i]
        for c in range(network.c_first[g], network.c_first[g + 1]):
            if c_price[c] >= net.value[i] or residual.c[c] < required:
                continue
            e = network.c_tail[c]
            if net.edge_mark[e] < 0:
                net.edge_mark[e] = edges
                net.edges[edges] = e
                edges += 1
            net.c_edge[count] = net.edge_mark[e]
            net.c_price[count] = c_price[c]
            net.c_link[count] = c
            count += 1
    net.c_first[last - first] = count
    reflectors = 0
    count = 0
    for j in range(edges):
        net.b_first[j] = count
        e = net.edges[j]
        for b in range(network.b_first[e], network.b_first[e + 1]):
            if b_price[b] == np.inf or residual.b[b] < required:
                continue
            r = network.b_tail[b]
            m = net.reflector_mark[r]
            if m == -1:
                cheapest = np.inf
                link = -1
                for a in range(network.a_first[r], network.a_first[r + 1]):
                    if a_price[a] < cheapest and residual.a[a] >= required:
                        cheapest = a_price[a]
                        link = a
                net.reflectors[reflectors] = r
                net.r_price[reflectors] = cheapest
                net.r_link[reflectors] = link
                net.reflector_mark[r] = reflectors
                m = reflectors
                reflectors += 1
            if net.r_link[m] < 0:
                continue
            net.b_reflector[count] = m
            net.b_price[count] = b_price[b]
            net.b_link[count] = b
            count += 1
    net.b_first[edges] = count
    for j in range(edges):
        net.edge_mark[net.edges[j]] = -1
    for r in range(reflectors):
        net.reflector_mark[net.reflectors[r]] = -1
    return edges, reflectors
