"""Local search for the tree of one object: open, close and exchange reflectors and edges while that pays.

The saving from closing an edge is computed in two places: a function that receives the whole workspace
takes five to ten times as long to call as the sum itself, and Numba's inlining does not help.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numba as nb
import numpy as np

from planner.arrays import Ints
from planner_models.livevideo.designs.tree import local_network as at
from planner_models.livevideo.designs.tree.local_network import EPS, LocalNetwork, caller_of, inner_kernel

MAX_ASSIGNMENT_PASSES: Final = 4  # passes over the edges in which some are opened or closed, at most
MAX_EXCHANGE_PASSES: Final = 5  # passes over the edges of the best tree in which some are exchanged, at most

call: Final[Callable[..., float]] = caller_of(nb.types.float64)


@inner_kernel
def assign_request(i: int, net: LocalNetwork) -> None:
    """Give request i the cheapest link from an open edge, or none."""
    ints, floats = net.ints, net.floats
    ints[at.REQUEST_LINK, i] = -1
    best = floats[at.VALUE, i]
    for c in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
        if ints[at.OPEN_EDGE, ints[at.C_EDGE, c]] == 1 and floats[at.C_PRICE, c] < best:
            best = floats[at.C_PRICE, c]
            ints[at.REQUEST_LINK, i] = c


@inner_kernel
def tree_cost(k: int, edges: int, reflectors: int, net: LocalNetwork) -> float:
    """Return the cost of the tree in REQUEST_LINK and EDGE_LINK, values not served included.

    Open clusters that serve no request cost nothing.
    """
    ints, floats = net.ints, net.floats
    for j in range(edges):
        ints[at.EDGE_USES, j] = 0
    for r in range(reflectors):
        ints[at.USED_REFLECTOR, r] = 0
    cost = 0.0
    for i in range(k):
        c = ints[at.REQUEST_LINK, i]
        if c < 0:
            cost += floats[at.VALUE, i]
            continue
        cost += floats[at.C_PRICE, c]
        j = ints[at.C_EDGE, c]
        if ints[at.EDGE_USES, j] == 0:
            ints[at.EDGE_USES, j] = 1
            cost += floats[at.EDGE_PRICE, j]
            r = ints[at.B_REFLECTOR, ints[at.EDGE_LINK, j]]
            if ints[at.USED_REFLECTOR, r] == 0:
                ints[at.USED_REFLECTOR, r] = 1
                cost += floats[at.R_PRICE, r]
    return cost


@inner_kernel
def assign_requests(k: int, edges: int, reflectors: int, net: LocalNetwork) -> float:  # noqa: C901
    """Find a tree over the open reflectors, and return its cost, values not served included.

    Starts from the edges with OPEN_EDGE[j] = 1; opens and closes edges while that pays. Writes the
    link c of each request, or -1, to REQUEST_LINK, the link b into each edge to EDGE_LINK.
    """
    ints, floats = net.ints, net.floats
    for j in range(edges):
        floats[at.EDGE_PRICE, j] = np.inf
        ints[at.EDGE_LINK, j] = -1
        for b in range(ints[at.B_FIRST, j], ints[at.B_FIRST, j + 1]):
            if (
                ints[at.OPEN_REFLECTOR, ints[at.B_REFLECTOR, b]] == 1
                and floats[at.B_PRICE, b] < floats[at.EDGE_PRICE, j]
            ):
                floats[at.EDGE_PRICE, j] = floats[at.B_PRICE, b]
                ints[at.EDGE_LINK, j] = b
        if ints[at.EDGE_LINK, j] < 0:
            ints[at.OPEN_EDGE, j] = 0
    for i in range(k):
        assign_request(i, net)
    for _ in range(MAX_ASSIGNMENT_PASSES):
        has_changed = False
        for j in range(edges):
            if ints[at.EDGE_LINK, j] < 0:
                continue
            if ints[at.OPEN_EDGE, j] == 1:
                gain = floats[at.EDGE_PRICE, j]
                for position in range(ints[at.E_FIRST, j], ints[at.E_FIRST, j + 1]):
                    c, i = ints[at.E_C, position], ints[at.E_REQUEST, position]
                    if ints[at.REQUEST_LINK, i] != c:
                        continue
                    instead = floats[at.VALUE, i]
                    for d in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
                        if (
                            d != c
                            and ints[at.OPEN_EDGE, ints[at.C_EDGE, d]] == 1
                            and floats[at.C_PRICE, d] < instead
                        ):
                            instead = floats[at.C_PRICE, d]
                    gain -= instead - floats[at.C_PRICE, c]
                    if gain <= EPS:
                        break
            else:
                gain = -floats[at.EDGE_PRICE, j]
                for position in range(ints[at.E_FIRST, j], ints[at.E_FIRST, j + 1]):
                    c, i = ints[at.E_C, position], ints[at.E_REQUEST, position]
                    current = floats[at.VALUE, i]
                    if ints[at.REQUEST_LINK, i] >= 0:
                        current = floats[at.C_PRICE, ints[at.REQUEST_LINK, i]]
                    if floats[at.C_PRICE, c] < current:
                        gain += current - floats[at.C_PRICE, c]
            if gain > EPS:
                has_changed = True
                ints[at.OPEN_EDGE, j] = 1 - ints[at.OPEN_EDGE, j]
                for position in range(ints[at.E_FIRST, j], ints[at.E_FIRST, j + 1]):
                    assign_request(ints[at.E_REQUEST, position], net)
        if not has_changed:
            break
    return tree_cost(k, edges, reflectors, net)


@inner_kernel
def exchange_edges(edges: int, net: LocalNetwork) -> bool:  # noqa: C901
    """Open an edge and close one that it takes requests from, where that pays; return whether any did."""
    ints, floats = net.ints, net.floats
    has_changed = False
    for j in range(edges):
        if ints[at.OPEN_EDGE, j] == 1 or ints[at.EDGE_LINK, j] < 0:
            continue
        gain = -floats[at.EDGE_PRICE, j]
        for position in range(ints[at.E_FIRST, j], ints[at.E_FIRST, j + 1]):
            c, i = ints[at.E_C, position], ints[at.E_REQUEST, position]
            ints[at.PREVIOUS_LINK, position] = ints[at.REQUEST_LINK, i]
            current = floats[at.VALUE, i]
            if ints[at.REQUEST_LINK, i] >= 0:
                current = floats[at.C_PRICE, ints[at.REQUEST_LINK, i]]
            if floats[at.C_PRICE, c] < current:
                gain += current - floats[at.C_PRICE, c]
                ints[at.REQUEST_LINK, i] = c
        ints[at.OPEN_EDGE, j] = 1
        closed, best_saving = -1, EPS - gain
        for position in range(ints[at.E_FIRST, j], ints[at.E_FIRST, j + 1]):
            if ints[at.PREVIOUS_LINK, position] < 0:
                continue
            other = ints[at.C_EDGE, ints[at.PREVIOUS_LINK, position]]
            if other == closed or floats[at.EDGE_PRICE, other] <= best_saving:
                continue
            saving = floats[at.EDGE_PRICE, other]
            for near in range(ints[at.E_FIRST, other], ints[at.E_FIRST, other + 1]):
                c, i = ints[at.E_C, near], ints[at.E_REQUEST, near]
                if ints[at.REQUEST_LINK, i] != c:
                    continue
                instead = floats[at.VALUE, i]
                for d in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
                    if (
                        d != c
                        and ints[at.OPEN_EDGE, ints[at.C_EDGE, d]] == 1
                        and floats[at.C_PRICE, d] < instead
                    ):
                        instead = floats[at.C_PRICE, d]
                saving -= instead - floats[at.C_PRICE, c]
                if saving <= best_saving:
                    break
            if saving > best_saving:
                closed, best_saving = other, saving
        if closed < 0 and gain <= EPS:
            ints[at.OPEN_EDGE, j] = 0
            for position in range(ints[at.E_FIRST, j], ints[at.E_FIRST, j + 1]):
                ints[at.REQUEST_LINK, ints[at.E_REQUEST, position]] = ints[at.PREVIOUS_LINK, position]
            continue
        has_changed = True
        if closed < 0:
            continue
        ints[at.OPEN_EDGE, closed] = 0
        for position in range(ints[at.E_FIRST, closed], ints[at.E_FIRST, closed + 1]):
            assign_request(ints[at.E_REQUEST, position], net)
    return has_changed


@inner_kernel
def open_reflectors_of(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, paths: Ints
) -> bool:
    """Open all edges, and the reflectors of the tree in `paths`; False, and all, where there is no tree."""
    ints = net.ints
    has_tree = False
    for r in range(reflectors):
        ints[at.OPEN_REFLECTOR, r] = 0
    for i in range(k):
        if paths[i, 2] < 0:
            continue
        for c in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
            if ints[at.C_LINK, c] != paths[i, 2]:
                continue
            for b in range(ints[at.B_FIRST, ints[at.C_EDGE, c]], ints[at.B_FIRST, ints[at.C_EDGE, c] + 1]):
                if ints[at.B_LINK, b] == paths[i, 1]:
                    ints[at.OPEN_REFLECTOR, ints[at.B_REFLECTOR, b]] = 1
                    has_tree = True
    if not has_tree:
        for r in range(reflectors):
            ints[at.OPEN_REFLECTOR, r] = 1
    for j in range(edges):
        ints[at.OPEN_EDGE, j] = 1
    return has_tree


@inner_kernel
def cost_after_flip(k: int, edges: int, reflectors: int, net: LocalNetwork, r: int, q: int) -> float:
    """Return the cost of the tree that `assign_requests` finds if reflectors r and q change state.

    BASE_REFLECTOR is the state without the change.
    """
    ints = net.ints
    for other in range(reflectors):
        ints[at.OPEN_REFLECTOR, other] = ints[at.BASE_REFLECTOR, other]
    ints[at.OPEN_REFLECTOR, r] = 1 - ints[at.BASE_REFLECTOR, r]
    ints[at.OPEN_REFLECTOR, q] = 1 - ints[at.BASE_REFLECTOR, q]
    for j in range(edges):
        ints[at.OPEN_EDGE, j] = 1
    return call(net.at.assign_requests, (k, edges, reflectors, net))


@inner_kernel
def record_best(k: int, edges: int, net: LocalNetwork, cost: float, best: float) -> float:
    """Record the tree in `net` as the best if its cost is below `best`; return the lesser cost."""
    ints = net.ints
    if cost < best - EPS:
        for i in range(k):
            ints[at.BEST_REQUEST_LINK, i] = ints[at.REQUEST_LINK, i]
        for j in range(edges):
            ints[at.BEST_EDGE_LINK, j] = ints[at.EDGE_LINK, j]
        return cost
    return best


@inner_kernel
def improve_tree(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, cost: float, best: float
) -> float:
    """Open, close or exchange reflectors of the tree of that cost in `net` while that pays, then edges.

    Returns the lesser of the cost found and `best`.
    """
    ints = net.ints
    for r in range(reflectors):
        ints[at.BASE_REFLECTOR, r] = ints[at.USED_REFLECTOR, r]
    improved = True
    while improved:
        improved = False
        for r in range(reflectors):
            for q in range(r, reflectors):
                if q > r and ints[at.BASE_REFLECTOR, q] == ints[at.BASE_REFLECTOR, r]:
                    continue
                other = cost_after_flip(k, edges, reflectors, net, r, q)
                if other < cost - EPS:
                    improved = True
                    best = record_best(k, edges, net, other, best)
                    cost = other
                    for o in range(reflectors):
                        ints[at.BASE_REFLECTOR, o] = ints[at.USED_REFLECTOR, o]
    for r in range(reflectors):
        ints[at.OPEN_REFLECTOR, r] = ints[at.BASE_REFLECTOR, r]
    for j in range(edges):
        ints[at.OPEN_EDGE, j] = 1
    call(net.at.assign_requests, (k, edges, reflectors, net))
    for _ in range(MAX_EXCHANGE_PASSES):
        if not exchange_edges(edges, net):
            break
    return record_best(k, edges, net, tree_cost(k, edges, reflectors, net), best)


@inner_kernel
def build_tree(k: int, edges: int, reflectors: int, net: LocalNetwork, cost: float, best: float) -> float:
    """Build a tree from nothing, of that cost: open the reflector that saves most while one does.

    Returns the lesser of the cost found and `best`.
    """
    ints = net.ints
    for r in range(reflectors):
        ints[at.BASE_REFLECTOR, r] = 0
    while True:
        r_used = -1
        for r in range(reflectors):
            if ints[at.BASE_REFLECTOR, r] == 1:
                continue
            other = cost_after_flip(k, edges, reflectors, net, r, r)
            if other < cost - EPS:
                best = record_best(k, edges, net, other, best)
                cost = other
                r_used = r
        if r_used < 0:
            return best
        ints[at.BASE_REFLECTOR, r_used] = 1
