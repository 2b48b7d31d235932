"""Local search for the tree of one object: open, close and exchange reflectors and edges while that pays.

The saving from closing an edge is computed in two places: a function that receives the whole workspace
takes five to ten times as long to call as the sum itself, and Numba's inlining does not help.
"""

from __future__ import annotations

from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.designs.tree.local_network import EPS, LocalNetwork

Ints = NDArray[np.int64]

MAX_ASSIGNMENT_PASSES: Final = 4
"""Passes over the edges in which some are opened or closed, at most."""

MAX_EXCHANGE_PASSES: Final = 5
"""Passes over the edges of the best tree in which some are exchanged, at most."""


@nb.njit(cache=True, nogil=True)
def assign_request(i: int, net: LocalNetwork) -> None:
    """Give request i the cheapest link from an open edge, or none."""
    net.request_link[i] = -1
    best = net.value[i]
    for c in range(net.c_first[i], net.c_first[i + 1]):
        if net.open_edge[net.c_edge[c]] == 1 and net.c_price[c] < best:
            best = net.c_price[c]
            net.request_link[i] = c


@nb.njit(cache=True, nogil=True)
def tree_cost(k: int, edges: int, reflectors: int, net: LocalNetwork) -> float:
    """Return the cost of the tree in net.request_link and net.edge_link, values not served included.

    Open clusters that serve no request cost nothing.
    """
    for j in range(edges):
        net.edge_uses[j] = 0
    for r in range(reflectors):
        net.used_reflector[r] = 0
    cost = 0.0
    for i in range(k):
        c = net.request_link[i]
        if c < 0:
            cost += net.value[i]
            continue
        cost += net.c_price[c]
        j = net.c_edge[c]
        if net.edge_uses[j] == 0:
            net.edge_uses[j] = 1
            cost += net.edge_price[j]
            r = net.b_reflector[net.edge_link[j]]
            if net.used_reflector[r] == 0:
                net.used_reflector[r] = 1
                cost += net.r_price[r]
    return cost


@nb.njit(cache=True, nogil=True)
def assign_requests(k: int, edges: int, reflectors: int, net: LocalNetwork) -> float:  # noqa: C901
    """Find a tree over the open reflectors, and return its cost, values not served included.

    Starts from the edges with net.open_edge[j] = 1; opens and closes edges while that pays. Writes the
    link c of each request, or -1, to net.request_link, the link b into each edge to net.edge_link.
    """
    for j in range(edges):
        net.edge_price[j] = np.inf
        net.edge_link[j] = -1
        for b in range(net.b_first[j], net.b_first[j + 1]):
            if net.open_reflector[net.b_reflector[b]] == 1 and net.b_price[b] < net.edge_price[j]:
                net.edge_price[j] = net.b_price[b]
                net.edge_link[j] = b
        if net.edge_link[j] < 0:
            net.open_edge[j] = 0
    for i in range(k):
        assign_request(i, net)
    for _ in range(MAX_ASSIGNMENT_PASSES):
        has_changed = False
        for j in range(edges):
            if net.edge_link[j] < 0:
                continue
            if net.open_edge[j] == 1:
                gain = net.edge_price[j]
                for place in range(net.e_first[j], net.e_first[j + 1]):
                    c, i = net.e_c[place], net.e_request[place]
                    if net.request_link[i] != c:
                        continue
                    instead = net.value[i]
                    for d in range(net.c_first[i], net.c_first[i + 1]):
                        if d != c and net.open_edge[net.c_edge[d]] == 1 and net.c_price[d] < instead:
                            instead = net.c_price[d]
                    gain -= instead - net.c_price[c]
                    if gain <= EPS:
                        break
            else:
                gain = -net.edge_price[j]
                for place in range(net.e_first[j], net.e_first[j + 1]):
                    c, i = net.e_c[place], net.e_request[place]
                    current = net.value[i]
                    if net.request_link[i] >= 0:
                        current = net.c_price[net.request_link[i]]
                    if net.c_price[c] < current:
                        gain += current - net.c_price[c]
            if gain > EPS:
                has_changed = True
                net.open_edge[j] = 1 - net.open_edge[j]
                for place in range(net.e_first[j], net.e_first[j + 1]):
                    assign_request(net.e_request[place], net)
        if not has_changed:
            break
    return tree_cost(k, edges, reflectors, net)


@nb.njit(cache=True, nogil=True)
def exchange_edges(edges: int, net: LocalNetwork) -> bool:  # noqa: C901
    """Open an edge and close one that it takes requests from, where that pays; return whether any did."""
    has_changed = False
    for j in range(edges):
        if net.open_edge[j] == 1 or net.edge_link[j] < 0:
            continue
        gain = -net.edge_price[j]
        for place in range(net.e_first[j], net.e_first[j + 1]):
            c, i = net.e_c[place], net.e_request[place]
            net.previous_link[place] = net.request_link[i]
            current = net.value[i]
            if net.request_link[i] >= 0:
                current = net.c_price[net.request_link[i]]
            if net.c_price[c] < current:
                gain += current - net.c_price[c]
                net.request_link[i] = c
        net.open_edge[j] = 1
        closed, best_saving = -1, EPS - gain
        for place in range(net.e_first[j], net.e_first[j + 1]):
            if net.previous_link[place] < 0:
                continue
            other = net.c_edge[net.previous_link[place]]
            if other == closed or net.edge_price[other] <= best_saving:
                continue
            saving = net.edge_price[other]
            for near in range(net.e_first[other], net.e_first[other + 1]):
                c, i = net.e_c[near], net.e_request[near]
                if net.request_link[i] != c:
                    continue
                instead = net.value[i]
                for d in range(net.c_first[i], net.c_first[i + 1]):
                    if d != c and net.open_edge[net.c_edge[d]] == 1 and net.c_price[d] < instead:
                        instead = net.c_price[d]
                saving -= instead - net.c_price[c]
                if saving <= best_saving:
                    break
            if saving > best_saving:
                closed, best_saving = other, saving
        if closed < 0 and gain <= EPS:
            net.open_edge[j] = 0
            for place in range(net.e_first[j], net.e_first[j + 1]):
                net.request_link[net.e_request[place]] = net.previous_link[place]
            continue
        has_changed = True
        if closed < 0:
            continue
        net.open_edge[closed] = 0
        for place in range(net.e_first[closed], net.e_first[closed + 1]):
            assign_request(net.e_request[place], net)
    return has_changed


@nb.njit(cache=True, nogil=True)
def open_reflectors_of(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, paths: Ints
) -> bool:
    """Open all edges, and the reflectors of the tree in `paths`; False, and all, where there is no tree."""
    has_tree = False
    for r in range(reflectors):
        net.open_reflector[r] = 0
    for i in range(k):
        if paths[i, 2] < 0:
            continue
        for c in range(net.c_first[i], net.c_first[i + 1]):
            if net.c_link[c] != paths[i, 2]:
                continue
            for b in range(net.b_first[net.c_edge[c]], net.b_first[net.c_edge[c] + 1]):
                if net.b_link[b] == paths[i, 1]:
                    net.open_reflector[net.b_reflector[b]] = 1
                    has_tree = True
    if not has_tree:
        for r in range(reflectors):
            net.open_reflector[r] = 1
    for j in range(edges):
        net.open_edge[j] = 1
    return has_tree


@nb.njit(cache=True, nogil=True)
def cost_after_flip(k: int, edges: int, reflectors: int, net: LocalNetwork, r: int, q: int) -> float:
    """Return the cost of the tree that `assign_requests` finds if reflectors r and q change state.

    net.base_reflector is the state without the change.
    """
    for other in range(reflectors):
        net.open_reflector[other] = net.base_reflector[other]
    net.open_reflector[r] = 1 - net.base_reflector[r]
    net.open_reflector[q] = 1 - net.base_reflector[q]
    for j in range(edges):
        net.open_edge[j] = 1
    return assign_requests(k, edges, reflectors, net)


@nb.njit(cache=True, nogil=True)
def record_best(k: int, edges: int, net: LocalNetwork, cost: float, best: float) -> float:
    """Record the tree in `net` as the best if its cost is below `best`; return the lesser cost."""
    if cost < best - EPS:
        for i in range(k):
            net.best_request_link[i] = net.request_link[i]
        for j in range(edges):
            net.best_edge_link[j] = net.edge_link[j]
        return cost
    return best


@nb.njit(cache=True, nogil=True)
def improve_tree(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, cost: float, best: float
) -> float:
    """Open, close or exchange reflectors of the tree of that cost in `net` while that pays, then edges.

    Returns the lesser of the cost found and `best`.
    """
    for r in range(reflectors):
        net.base_reflector[r] = net.used_reflector[r]
    improved = True
    while improved:
        improved = False
        for r in range(reflectors):
            for q in range(r, reflectors):
                if q > r and net.base_reflector[q] == net.base_reflector[r]:
                    continue
                other = cost_after_flip(k, edges, reflectors, net, r, q)
                if other < cost - EPS:
                    improved = True
                    best = record_best(k, edges, net, other, best)
                    cost = other
                    for o in range(reflectors):
                        net.base_reflector[o] = net.used_reflector[o]
    for r in range(reflectors):
        net.open_reflector[r] = net.base_reflector[r]
    for j in range(edges):
        net.open_edge[j] = 1
    assign_requests(k, edges, reflectors, net)
    for _ in range(MAX_EXCHANGE_PASSES):
        if not exchange_edges(edges, net):
            break
    return record_best(k, edges, net, tree_cost(k, edges, reflectors, net), best)


@nb.njit(cache=True, nogil=True)
def build_tree(k: int, edges: int, reflectors: int, net: LocalNetwork, cost: float, best: float) -> float:
    """Build a tree from nothing, of that cost: open the reflector that saves most while one does.

    Returns the lesser of the cost found and `best`.
    """
    for r in range(reflectors):
        net.base_reflector[r] = 0
    while True:
        chosen = -1
        for r in range(reflectors):
            if net.base_reflector[r] == 1:
                continue
            other = cost_after_flip(k, edges, reflectors, net, r, r)
            if other < cost - EPS:
                best = record_best(k, edges, net, other, best)
                cost = other
                chosen = r
        if chosen < 0:
            return best
        net.base_reflector[chosen] = 1
