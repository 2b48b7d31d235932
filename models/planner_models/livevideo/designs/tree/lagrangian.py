"""Lagrangian relaxation and branch and bound: the best tree of one object with many requests.

The constraint that one edge at most serves a request is relaxed: an edge opens under every reflector
where its requests pay for it, a reflector where its edges do. The bound equals that of the linear
relaxation over paths. Where a gap remains, branch and bound opens and closes reflectors.

source  Camerini, Fratta and Maffioli 1975, for deflected subgradients; Polyak 1969, for their step length
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numba as nb
import numpy as np

from planner.arrays import Floats, Ints
from planner.search.tolerances import STATED_GAP
from planner_models.livevideo.designs.tree import local_network as at
from planner_models.livevideo.designs.tree.local_network import EPS, LocalNetwork, caller_of, inner_kernel
from planner_models.livevideo.designs.tree.local_search import call, open_reflectors_of, record_best

COLD_START_STEPS: Final = 200  # subgradient steps at the root, at least, where no dual values are known
MIN_NODE_STEPS: Final = 12  # subgradient steps at a node below the root, at least
BOUND_TOLERANCE: Final = STATED_GAP  # gap at which a search stops, as a share of an object's value
DEFLECTION_FACTOR: Final = 0.7  # weight of the last direction in the next
STALL_LIMIT: Final = 8  # steps without a better bound after which steps are scaled by STEP_REDUCTION
STEP_REDUCTION: Final = 0.6

MIN_STEP_SCALE: Final = 1e-3  # scale of steps below which the ascent stops

call_for_pair: Final[Callable[..., tuple[float, float]]] = caller_of(
    nb.types.UniTuple(nb.types.float64, 2)  # type: ignore[no-untyped-call]
)


@inner_kernel
def index_links_by_edge(k: int, edges: int, net: LocalNetwork) -> None:
    """List links c by edge: edge j has places e_first[j]:e_first[j + 1] of e_c, e_request and e_price."""
    ints, floats = net.ints, net.floats
    for j in range(edges + 1):
        ints[at.E_FIRST, j] = 0
    for c in range(ints[at.C_FIRST, k]):
        ints[at.E_FIRST, ints[at.C_EDGE, c] + 1] += 1
    for j in range(edges):
        ints[at.E_FIRST, j + 1] += ints[at.E_FIRST, j]
    for i in range(k):
        for c in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
            j = ints[at.C_EDGE, c]
            position = ints[at.E_FIRST, j]
            ints[at.E_C, position] = c
            ints[at.E_REQUEST, position] = i
            floats[at.E_PRICE, position] = floats[at.C_PRICE, c]
            ints[at.E_FIRST, j] = position + 1
    for j in range(edges, 0, -1):
        ints[at.E_FIRST, j] = ints[at.E_FIRST, j - 1]
    ints[at.E_FIRST, 0] = 0


@inner_kernel
def solve_relaxation(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, dual: Floats
) -> float:
    """Return the Lagrangian bound at multipliers `dual`: no tree costs less, values not served included.

    Several edges may then serve request i, which pays dual[i] <= value[i] to each: an edge opens under
    every reflector where its requests pay for it, a reflector where its edges do. FIXED[r] is 1
    where reflector r is open and paid, -1 closed, 0 undecided; only the links of `index_useful_links`
    are used. Writes the solution: OPEN_REFLECTOR[r] is 1 or 0, EDGE_USES[j] counts the
    reflectors that edge j opens under, REQUEST_USES[i] the open edges, so counted, that serve i.
    """
    ints, floats = net.ints, net.floats
    total = 0.0
    for i in range(k):
        total += dual[i]
    for r in range(reflectors):
        floats[at.REFLECTOR_SLACK, r] = -floats[at.R_PRICE, r]
        if ints[at.FIXED, r] == 1:
            floats[at.REFLECTOR_SLACK, r] = 0.0
            total += floats[at.R_PRICE, r]
    for j in range(edges):
        paid = 0.0
        for position in range(ints[at.E_FIRST, j], ints[at.E_FIRST, j + 1]):
            more = dual[ints[at.E_REQUEST, position]] - floats[at.E_PRICE, position]
            if more > 0:
                paid += more
        floats[at.EDGE_PRICE, j] = paid
        if paid > 0:
            for u in range(ints[at.U_FIRST, j], ints[at.U_FIRST, j + 1]):
                if paid > floats[at.U_PRICE, u]:
                    floats[at.REFLECTOR_SLACK, ints[at.U_REFLECTOR, u]] += paid - floats[at.U_PRICE, u]
    for r in range(reflectors):
        ints[at.OPEN_REFLECTOR, r] = 0
        if ints[at.FIXED, r] == 1 or (ints[at.FIXED, r] == 0 and floats[at.REFLECTOR_SLACK, r] > 0):
            ints[at.OPEN_REFLECTOR, r] = 1
            total -= floats[at.REFLECTOR_SLACK, r]
    for i in range(k):
        ints[at.REQUEST_USES, i] = 0
    for j in range(edges):
        count = 0
        if floats[at.EDGE_PRICE, j] > 0:
            for u in range(ints[at.U_FIRST, j], ints[at.U_FIRST, j + 1]):
                if (
                    ints[at.OPEN_REFLECTOR, ints[at.U_REFLECTOR, u]] == 1
                    and floats[at.EDGE_PRICE, j] > floats[at.U_PRICE, u]
                ):
                    count += 1
        ints[at.EDGE_USES, j] = count
        if count > 0:
            for position in range(ints[at.E_FIRST, j], ints[at.E_FIRST, j + 1]):
                if dual[ints[at.E_REQUEST, position]] > floats[at.E_PRICE, position]:
                    ints[at.REQUEST_USES, ints[at.E_REQUEST, position]] += count
    return total


@inner_kernel
def index_useful_links(edges: int, net: LocalNetwork) -> None:
    """List the links into each edge j that a tree may need, in places u_first[j]:u_first[j + 1].

    Links from closed reflectors are left out, and those that cost more than one from an open reflector.
    """
    ints, floats = net.ints, net.floats
    count = 0
    for j in range(edges):
        ints[at.U_FIRST, j] = count
        cheapest = np.inf
        b_used = -1
        for b in range(ints[at.B_FIRST, j], ints[at.B_FIRST, j + 1]):
            if ints[at.FIXED, ints[at.B_REFLECTOR, b]] == 1 and floats[at.B_PRICE, b] < cheapest:
                cheapest = floats[at.B_PRICE, b]
                b_used = b
        for b in range(ints[at.B_FIRST, j], ints[at.B_FIRST, j + 1]):
            if b == b_used or (
                ints[at.FIXED, ints[at.B_REFLECTOR, b]] == 0 and floats[at.B_PRICE, b] < cheapest
            ):
                floats[at.U_PRICE, count] = floats[at.B_PRICE, b]
                ints[at.U_REFLECTOR, count] = ints[at.B_REFLECTOR, b]
                count += 1
    ints[at.U_FIRST, edges] = count


@inner_kernel
def maximize_bound(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, dual: Floats, steps: int, best: float, gap: float
) -> float:
    """Return the best bound of some deflected subgradient steps; they stop within `gap` of the cost `best`.

    dual becomes the multipliers of that bound; `net` holds the relaxation's solution at the last step.
    """
    ints, floats = net.ints, net.floats
    bound = -np.inf
    scale = 1.0
    stalled = 0
    for i in range(k):
        floats[at.BEST_DUAL, i] = dual[i]
        floats[at.DIRECTION, i] = 0.0
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
                floats[at.BEST_DUAL, i] = dual[i]
        if best - bound <= gap or step == steps - 1:
            break
        norm = 0.0
        for i in range(k):
            floats[at.DIRECTION, i] = (
                1.0 - ints[at.REQUEST_USES, i] + DEFLECTION_FACTOR * floats[at.DIRECTION, i]
            )
            if dual[i] >= floats[at.VALUE, i] and floats[at.DIRECTION, i] > 0:
                floats[at.DIRECTION, i] = 0.0
            norm += floats[at.DIRECTION, i] ** 2
        if norm == 0:
            break
        length = scale * (best - low) / norm
        for i in range(k):
            dual[i] = min(floats[at.VALUE, i], dual[i] + length * floats[at.DIRECTION, i])
    for i in range(k):
        dual[i] = floats[at.BEST_DUAL, i]
    return bound


@inner_kernel
def round_relaxation(k: int, edges: int, reflectors: int, net: LocalNetwork, best: float) -> float:
    """Find a tree over the reflectors and edges that the relaxation opened; return the lesser cost."""
    ints = net.ints
    for j in range(edges):
        ints[at.OPEN_EDGE, j] = 1 if ints[at.EDGE_USES, j] > 0 else 0
    return record_best(k, edges, net, call(net.at.assign_requests, (k, edges, reflectors, net)), best)


@inner_kernel
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
    ints, floats = net.ints, net.floats
    index_links_by_edge(k, edges, net)
    total_value = 0.0
    for i in range(k):
        total_value += floats[at.VALUE, i]
        ints[at.BEST_REQUEST_LINK, i] = -1
        if dual[i] < 0:  # start from its cheapest link alone: links above are shared
            cheapest = floats[at.VALUE, i]
            for c in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
                cheapest = min(cheapest, floats[at.C_PRICE, c])
            dual[i] = cheapest
            steps = max(steps, COLD_START_STEPS)
        dual[i] = min(dual[i], floats[at.VALUE, i])
    best = total_value  # serve nobody
    for r in range(reflectors):
        ints[at.FIXED, r] = 0
    index_useful_links(edges, net)
    has_tree = open_reflectors_of(k, edges, reflectors, net, paths)
    cost = call(net.at.assign_requests, (k, edges, reflectors, net))
    best = record_best(k, edges, net, cost, best)
    if not has_tree:
        best = call(net.at.build_tree, (k, edges, reflectors, net, total_value, best))
    elif nodes > 1:
        best = call(net.at.improve_tree, (k, edges, reflectors, net, cost, best))
    gap = BOUND_TOLERANCE * (total_value - best)
    bound = call(net.at.maximize_bound, (k, edges, reflectors, net, dual, steps, best, gap))
    best = round_relaxation(k, edges, reflectors, net, best)
    nodes = min(nodes, len(net.node_bound) // 2 - 1)
    if best - bound > gap and nodes > 1:
        arguments = (k, edges, reflectors, net, dual, steps, nodes, best, bound, gap)
        best, bound = call_for_pair(net.at.branch_on_reflectors, arguments)
    for i in range(k):
        c = ints[at.BEST_REQUEST_LINK, i]
        for column in range(3):
            paths[i, column] = -1
        if c >= 0:
            b = ints[at.BEST_EDGE_LINK, ints[at.C_EDGE, c]]
            paths[i, 0] = ints[at.R_LINK, ints[at.B_REFLECTOR, b]]
            paths[i, 1] = ints[at.B_LINK, b]
            paths[i, 2] = ints[at.C_LINK, c]
    return total_value - best, total_value - min(bound, best)


@inner_kernel
def branch_on_reflectors(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, dual: Floats, steps: int, nodes: int, best: float,
    root_bound: float, gap: float,
) -> tuple[float, float]:  # fmt: skip
    """Branch and bound, best node first, on open or closed reflectors; return the best cost and the bound.

    dual, root_bound  multipliers and bound at the root
    best              cost of the best tree so far; `net` holds it, and the better ones that are found
    """
    ints, floats = net.ints, net.floats
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
            ints[at.FIXED, r] = net.node_fixed[low, r]
        for i in range(k):
            floats[at.PARENT_DUAL, i] = net.node_dual[low, i]
        count -= 1
        if low != count:
            net.node_bound[low] = net.node_bound[count]
            for r in range(reflectors):
                net.node_fixed[low, r] = net.node_fixed[count, r]
            for i in range(k):
                net.node_dual[low, i] = net.node_dual[count, i]
        # branch on the undecided reflector whose slack is small beside its price
        index_useful_links(edges, net)
        solve_relaxation(k, edges, reflectors, net, floats[at.PARENT_DUAL])
        branch = -1
        for r in range(reflectors):
            if ints[at.FIXED, r] == 0 and floats[at.R_PRICE, r] > 0:
                score = abs(floats[at.REFLECTOR_SLACK, r]) - floats[at.R_PRICE, r]
                if branch < 0 or score < abs(floats[at.REFLECTOR_SLACK, branch]) - floats[at.R_PRICE, branch]:
                    branch = r
        if branch < 0:
            leaf_bound = min(leaf_bound, parent_bound)
            continue
        for state in (-1, 1):
            ints[at.FIXED, branch] = state
            index_useful_links(edges, net)
            for i in range(k):
                net.node_dual[count, i] = floats[at.PARENT_DUAL, i]
            solved += 1
            node_steps = max(MIN_NODE_STEPS, steps // 2)
            arguments = (k, edges, reflectors, net, net.node_dual[count], node_steps, best, EPS)
            bound = call(net.at.maximize_bound, arguments)
            bound = max(bound, parent_bound)
            best = round_relaxation(k, edges, reflectors, net, best)
            if bound >= best - EPS:
                continue
            for r in range(reflectors):
                net.node_fixed[count, r] = ints[at.FIXED, r]
            net.node_bound[count] = bound
            count += 1
    bound = min(best, leaf_bound)
    for n in range(count):
        bound = min(bound, net.node_bound[n])
    return best, bound
