"""Lagrangian relaxation and branch and bound: the best tree of one object with many requests.

The constraint that one edge at most serves a request is relaxed: an edge opens under every reflector
where its requests pay for it, a reflector where its edges do. The bound equals that of the linear
relaxation over paths. Where a gap remains, branch and bound opens and closes reflectors.

source  Camerini, Fratta and Maffioli 1975, for deflected subgradients; Polyak 1969, for their step length
"""

from __future__ import annotations

from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner_models.livevideo.designs.tree.local_network import EPS, LocalNetwork
from planner_models.livevideo.designs.tree.local_search import (
    assign_requests,
    build_tree,
    improve_tree,
    open_reflectors_of,
    record_best,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COLD_START_STEPS: Final = 200
"""Subgradient steps at the root, at least, where no dual values are known."""

MIN_NODE_STEPS: Final = 12
"""Subgradient steps at a node below the root, at least."""

BOUND_TOLERANCE: Final = 1e-4
"""Gap at which a search stops, as a share of an object's value."""

DEFLECTION_FACTOR: Final = 0.7
"""Weight of the last direction in the next."""

STALL_LIMIT: Final = 8
"""Steps without a better bound after which steps are scaled by STEP_REDUCTION."""

STEP_REDUCTION: Final = 0.6

MIN_STEP_SCALE: Final = 1e-3
"""Scale of steps below which the ascent stops."""


@nb.njit(cache=True, nogil=True)
def index_links_by_edge(k: int, edges: int, net: LocalNetwork) -> None:
    """List links c by edge: edge j has places e_first[j]:e_first[j + 1] of e_c, e_request and e_price."""
    for j in range(edges + 1):
        net.e_first[j] = 0
    for c in range(net.c_first[k]):
        net.e_first[net.c_edge[c] + 1] += 1
    for j in range(edges):
        net.e_first[j + 1] += net.e_first[j]
    for i in range(k):
        for c in range(net.c_first[i], net.c_first[i + 1]):
            j = net.c_edge[c]
            place = net.e_first[j]
            net.e_c[place] = c
            net.e_request[place] = i
            net.e_price[place] = net.c_price[c]
            net.e_first[j] = place + 1
    for j in range(edges, 0, -1):
        net.e_first[j] = net.e_first[j - 1]
    net.e_first[0] = 0


@nb.njit(cache=True, nogil=True)
def solve_relaxation(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, dual: Floats
) -> float:
    """Return the Lagrangian bound at multipliers `dual`: no tree costs less, values not served included.

    Several edges may then serve request i, which pays dual[i] <= value[i] to each: an edge opens under
    every reflector where its requests pay for it, a reflector where its edges do. net.fixed[r] is 1
    where reflector r is open and paid, -1 closed, 0 undecided; only the links of `index_useful_links`
    are used. Writes the solution: net.open_reflector[r] is 1 or 0, net.edge_uses[j] counts the
    reflectors that edge j opens under, net.request_uses[i] the open edges, so counted, that serve i.
    """
    total = 0.0
    for i in range(k):
        total += dual[i]
    for r in range(reflectors):
        net.reflector_slack[r] = -net.r_price[r]
        if net.fixed[r] == 1:
            net.reflector_slack[r] = 0.0
            total += net.r_price[r]
    for j in range(edges):
        paid = 0.0
        for place in range(net.e_first[j], net.e_first[j + 1]):
            more = dual[net.e_request[place]] - net.e_price[place]
            if more > 0:
                paid += more
        net.edge_price[j] = paid
        if paid > 0:
            for u in range(net.u_first[j], net.u_first[j + 1]):
                if paid > net.u_price[u]:
                    net.reflector_slack[net.u_reflector[u]] += paid - net.u_price[u]
    for r in range(reflectors):
        net.open_reflector[r] = 0
        if net.fixed[r] == 1 or (net.fixed[r] == 0 and net.reflector_slack[r] > 0):
            net.open_reflector[r] = 1
            total -= net.reflector_slack[r]
    for i in range(k):
        net.request_uses[i] = 0
    for j in range(edges):
        count = 0
        if net.edge_price[j] > 0:
            for u in range(net.u_first[j], net.u_first[j + 1]):
                if net.open_reflector[net.u_reflector[u]] == 1 and net.edge_price[j] > net.u_price[u]:
                    count += 1
        net.edge_uses[j] = count
        if count > 0:
            for place in range(net.e_first[j], net.e_first[j + 1]):
                if dual[net.e_request[place]] > net.e_price[place]:
                    net.request_uses[net.e_request[place]] += count
    return total


@nb.njit(cache=True, nogil=True)
def index_useful_links(edges: int, net: LocalNetwork) -> None:
    """List the links into each edge j that a tree may need, in places u_first[j]:u_first[j + 1].

    Links from closed reflectors are left out, and those that cost more than one from an open reflector.
    """
    count = 0
    for j in range(edges):
        net.u_first[j] = count
        cheapest = np.inf
        chosen = -1
        for b in range(net.b_first[j], net.b_first[j + 1]):
            if net.fixed[net.b_reflector[b]] == 1 and net.b_price[b] < cheapest:
                cheapest = net.b_price[b]
                chosen = b
        for b in range(net.b_first[j], net.b_first[j + 1]):
            if b == chosen or (net.fixed[net.b_reflector[b]] == 0 and net.b_price[b] < cheapest):
                net.u_price[count] = net.b_price[b]
                net.u_reflector[count] = net.b_reflector[b]
                count += 1
    net.u_first[edges] = count


@nb.njit(cache=True, nogil=True)
def maximize_bound(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, dual: Floats, steps: int, best: float, gap: float
) -> float:
    """Return the best bound of some deflected subgradient steps; they stop within `gap` of the cost `best`.

    dual becomes the multipliers of that bound; `net` holds the relaxation's solution at the last step.
    """
    bound = -np.inf
    scale = 1.0
    stalled = 0
    for i in range(k):
        net.best_dual[i] = dual[i]
        net.direction[i] = 0.0
    for step in range(steps):
        low = solve_relaxation(k, edges, reflectors, net, dual)
        stalled += 1
        if low > bound + 1e-6 * abs(bound):
            stalled = 0
        elif stalled >= STALL_LIMIT:
            scale *= STEP_REDUCTION
            stalled = 0
            if scale < MIN_STEP_SCALE:
                break
        if low > bound:
            bound = low
            for i in range(k):
                net.best_dual[i] = dual[i]
        if best - bound <= gap or step == steps - 1:
            break
        norm = 0.0
        for i in range(k):
            net.direction[i] = 1.0 - net.request_uses[i] + DEFLECTION_FACTOR * net.direction[i]
            if dual[i] >= net.value[i] and net.direction[i] > 0:
                net.direction[i] = 0.0
            norm += net.direction[i] ** 2
        if norm == 0:
            break
        length = scale * (best - low) / norm
        for i in range(k):
            dual[i] = min(net.value[i], dual[i] + length * net.direction[i])
    for i in range(k):
        dual[i] = net.best_dual[i]
    return bound


@nb.njit(cache=True, nogil=True)
def round_relaxation(k: int, edges: int, reflectors: int, net: LocalNetwork, best: float) -> float:
    """Find a tree over the reflectors and edges that the relaxation opened; return the lesser cost."""
    for j in range(edges):
        net.open_edge[j] = 1 if net.edge_uses[j] > 0 else 0
    return record_best(k, edges, net, assign_requests(k, edges, reflectors, net), best)


@nb.njit(cache=True, nogil=True)
def solve_with_bound(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, paths: Ints, dual: Floats, steps: int, nodes: int
) -> tuple[float, float]:
    """Return the value of a good tree for any number of requests, and a bound on that of every tree.

    paths  (k, 3) links (a, b, c) of a tree to start from, or -1; becomes the tree found
    dual   (k,) multipliers to start from, negative: none; becomes those of the bound, a good start at
           similar prices
    steps  subgradient steps at the root; half as many at other nodes
    nodes  nodes of the branch and bound, at most, the root included
    """
    index_links_by_edge(k, edges, net)
    total_value = 0.0
    for i in range(k):
        total_value += net.value[i]
        net.best_request_link[i] = -1
        if dual[i] < 0:  # start from its cheapest link alone: links above are shared
            cheapest = net.value[i]
            for c in range(net.c_first[i], net.c_first[i + 1]):
                cheapest = min(cheapest, net.c_price[c])
            dual[i] = cheapest
            steps = max(steps, COLD_START_STEPS)
        dual[i] = min(dual[i], net.value[i])
    best = total_value  # serve nobody
    for r in range(reflectors):
        net.fixed[r] = 0
    index_useful_links(edges, net)
    has_tree = open_reflectors_of(k, edges, reflectors, net, paths)
    cost = assign_requests(k, edges, reflectors, net)
    best = record_best(k, edges, net, cost, best)
    if not has_tree:
        best = build_tree(k, edges, reflectors, net, total_value, best)
    elif nodes > 1:
        best = improve_tree(k, edges, reflectors, net, cost, best)
    gap = BOUND_TOLERANCE * (total_value - best)
    bound = maximize_bound(k, edges, reflectors, net, dual, steps, best, gap)
    best = round_relaxation(k, edges, reflectors, net, best)
    nodes = min(nodes, len(net.node_bound) // 2 - 1)
    if best - bound > gap and nodes > 1:
        best, bound = branch_on_reflectors(k, edges, reflectors, net, dual, steps, nodes, best, bound, gap)
    for i in range(k):
        c = net.best_request_link[i]
        for column in range(3):
            paths[i, column] = -1
        if c >= 0:
            b = net.best_edge_link[net.c_edge[c]]
            paths[i, 0] = net.r_link[net.b_reflector[b]]
            paths[i, 1] = net.b_link[b]
            paths[i, 2] = net.c_link[c]
    return total_value - best, total_value - min(bound, best)


@nb.njit(cache=True, nogil=True)
def branch_on_reflectors(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, dual: Floats, steps: int, nodes: int, best: float,
    root_bound: float, gap: float,
) -> tuple[float, float]:  # fmt: skip
    """Branch and bound, best node first, on open or closed reflectors; return the best cost and the bound.

    dual, root_bound  multipliers and bound at the root
    best              cost of the best tree so far; `net` holds it, and the better ones that are found
    """
    for r in range(reflectors):
        net.node_fixed[0, r] = 0
    for i in range(k):
        net.node_dual[0, i] = dual[i]
    net.node_bound[0] = root_bound
    count, solved = 1, 0
    leaf_bound = np.inf  # the least bound of nodes without a reflector to branch on
    while count > 0:
        low = 0
        for n in range(1, count):
            if net.node_bound[n] < net.node_bound[low]:
                low = n
        if best - net.node_bound[low] <= gap or solved + 2 > nodes:
            break
        parent_bound = net.node_bound[low]
        for r in range(reflectors):
            net.fixed[r] = net.node_fixed[low, r]
        for i in range(k):
            net.parent_dual[i] = net.node_dual[low, i]
        count -= 1
        if low != count:
            net.node_bound[low] = net.node_bound[count]
            for r in range(reflectors):
                net.node_fixed[low, r] = net.node_fixed[count, r]
            for i in range(k):
                net.node_dual[low, i] = net.node_dual[count, i]
        # branch on the undecided reflector whose slack is small beside its price
        index_useful_links(edges, net)
        solve_relaxation(k, edges, reflectors, net, net.parent_dual)
        branch = -1
        for r in range(reflectors):
            if net.fixed[r] == 0 and net.r_price[r] > 0:
                score = abs(net.reflector_slack[r]) - net.r_price[r]
                if branch < 0 or score < abs(net.reflector_slack[branch]) - net.r_price[branch]:
                    branch = r
        if branch < 0:
            leaf_bound = min(leaf_bound, parent_bound)
            continue
        for state in (-1, 1):
            net.fixed[branch] = state
            index_useful_links(edges, net)
            for i in range(k):
                net.node_dual[count, i] = net.parent_dual[i]
            solved += 1
            node_steps = max(MIN_NODE_STEPS, steps // 2)
            bound = maximize_bound(k, edges, reflectors, net, net.node_dual[count], node_steps, best, EPS)
            bound = max(bound, parent_bound)
            best = round_relaxation(k, edges, reflectors, net, best)
            if bound >= best - EPS:
                continue
            for r in range(reflectors):
                net.node_fixed[count, r] = net.fixed[r]
            net.node_bound[count] = bound
            count += 1
    bound = min(best, leaf_bound)
    for n in range(count):
        bound = min(bound, net.node_bound[n])
    return best, bound
