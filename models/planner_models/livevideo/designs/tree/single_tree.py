"""The best tree of one object: by enumeration, dynamic program or branch and bound; and its workspace.

Dynamic programming over sets of requests: the best tree of one object with few requests.

source  Dreyfus and Wagner, "The Steiner problem in graphs" (Networks 1971), on a layered graph
"""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.livevideo.designs.tree import lagrangian, local_search
from planner_models.livevideo.designs.tree import local_network as at
from planner_models.livevideo.designs.tree.lagrangian import call_for_pair
from planner_models.livevideo.designs.tree.local_network import (
    EPS,
    MAX_EXACT_REQUESTS,
    Addresses,
    LocalNetwork,
    address_of,
    create_arrays,
    inner_kernel,
)
from planner_models.livevideo.designs.tree.local_search import call


@inner_kernel
def solve_tree(
    k: int, edges: int, reflectors: int, net: LocalNetwork, paths: Ints, dual: Floats, steps: int, nodes: int
) -> tuple[float, float]:
    """Write the tree of the object in `net` to paths (k, 3); return its value, and a bound on all trees."""
    if k == 1:
        value = solve_single_request(net, paths)
        return value, value
    if k <= MAX_EXACT_REQUESTS:
        value = call(net.at.solve_dynamic_program, (k, edges, reflectors, net, paths))
        return value, value
    return call_for_pair(net.at.solve_with_bound, (k, edges, reflectors, net, paths, dual, steps, nodes))


def create_workspace(
    *, requests: int, degree: int, edges: int, reflectors: int, edge_degree: int
) -> LocalNetwork:
    """Return a workspace for `solve_tree`; arguments as of `local_network.create_arrays`."""
    net = create_arrays(requests, degree, edges, reflectors, edge_degree)
    dual, paths = np.zeros(1), np.zeros((1, 3), dtype=np.int64)
    single = (1, 1, 1, net)  # requests, edges and reflectors
    addresses = Addresses(
        solve_dynamic_program=address_of(solve_dynamic_program, *single, paths),
        solve_with_bound=address_of(lagrangian.solve_with_bound, *single, paths, dual, 1, 1),
        assign_requests=address_of(local_search.assign_requests, *single),
        build_tree=address_of(local_search.build_tree, *single, 1.0, 1.0),
        improve_tree=address_of(local_search.improve_tree, *single, 1.0, 1.0),
        maximize_bound=address_of(lagrangian.maximize_bound, *single, dual, 1, 1.0, 1.0),
        branch_on_reflectors=address_of(lagrangian.branch_on_reflectors, *single, dual, 1, 1, 1.0, 1.0, 1.0),
    )
    return net._replace(at=addresses)


@inner_kernel
def solve_single_request(net: LocalNetwork, paths: Ints) -> float:
    """Write the best path of an object's only request to paths[0]; return its value."""
    ints, floats = net.ints, net.floats
    best = 0.0
    for column in range(3):
        paths[0, column] = -1
    for c in range(ints[at.C_FIRST, 0], ints[at.C_FIRST, 1]):
        value = floats[at.VALUE, 0] - floats[at.C_PRICE, c]
        j = ints[at.C_EDGE, c]
        for b in range(ints[at.B_FIRST, j], ints[at.B_FIRST, j + 1]):
            r = ints[at.B_REFLECTOR, b]
            gain = value - floats[at.B_PRICE, b] - floats[at.R_PRICE, r]
            if gain > best:
                best = gain
                paths[0, 0] = ints[at.R_LINK, r]
                paths[0, 1] = ints[at.B_LINK, b]
                paths[0, 2] = ints[at.C_LINK, c]
    return best


@inner_kernel
def solve_dynamic_program(  # noqa: C901
    k: int, edges: int, reflectors: int, net: LocalNetwork, paths: Ints
) -> float:
    """Write the best tree for k <= MAX_EXACT_REQUESTS requests to paths (k, 3); return its value.

    part_cost[r, S]  cheapest single edge under r for all of S
    tree_cost[r, S]  cheapest edges under r for S
    all_cost[S]      cheapest tree for S
    """
    ints, floats = net.ints, net.floats
    sets = 1 << k
    inf = np.inf
    for r in range(reflectors):
        for subset in range(sets):
            net.part_cost[r, subset] = inf
    for j in range(edges):
        reach = 0
        for i in range(k):
            for c in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
                if ints[at.C_EDGE, c] == j:
                    reach |= 1 << i
        subset = reach
        while subset > 0:
            total = 0.0
            for i in range(k):
                if subset >> i & 1:
                    for c in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
                        if ints[at.C_EDGE, c] == j:
                            total += floats[at.C_PRICE, c]
            for b in range(ints[at.B_FIRST, j], ints[at.B_FIRST, j + 1]):
                r = ints[at.B_REFLECTOR, b]
                if total + floats[at.B_PRICE, b] < net.part_cost[r, subset]:
                    net.part_cost[r, subset] = total + floats[at.B_PRICE, b]
                    net.part_edge[r, subset] = b
            subset = (subset - 1) & reach
    for subset in range(1, sets):
        floats[at.ROOT_COST, subset] = inf
    for r in range(reflectors):
        net.tree_cost[r, 0] = 0.0
        for subset in range(1, sets):
            low = subset & -subset
            remainder = subset ^ low
            best, best_part = inf, 0
            other = remainder
            while True:
                subset_part = other | low
                cost = net.part_cost[r, subset_part] + net.tree_cost[r, subset ^ subset_part]
                if cost < best:
                    best, best_part = cost, subset_part
                if other == 0:
                    break
                other = (other - 1) & remainder
            net.tree_cost[r, subset] = best
            net.tree_part[r, subset] = best_part
            if best + floats[at.R_PRICE, r] < floats[at.ROOT_COST, subset]:
                floats[at.ROOT_COST, subset] = best + floats[at.R_PRICE, r]
                ints[at.ROOT_REFLECTOR, subset] = r
    floats[at.ALL_COST, 0] = 0.0
    best_value, best_set = 0.0, 0
    for subset in range(1, sets):
        low = subset & -subset
        remainder = subset ^ low
        best, best_part = inf, 0
        other = remainder
        while True:
            subset_part = other | low
            cost = floats[at.ROOT_COST, subset_part] + floats[at.ALL_COST, subset ^ subset_part]
            if cost < best:
                best, best_part = cost, subset_part
            if other == 0:
                break
            other = (other - 1) & remainder
        floats[at.ALL_COST, subset] = best
        ints[at.ALL_PART, subset] = best_part
        value = -best
        for i in range(k):
            if subset >> i & 1:
                value += floats[at.VALUE, i]
        if value > best_value + EPS:
            best_value, best_set = value, subset
    for i in range(k):
        for column in range(3):
            paths[i, column] = -1
    while best_set:
        below = ints[at.ALL_PART, best_set]
        best_set ^= below
        r = ints[at.ROOT_REFLECTOR, below]
        while below:
            subset_part = net.tree_part[r, below]
            below ^= subset_part
            b = net.part_edge[r, subset_part]
            j = find_edge(net, b, edges)
            for i in range(k):
                if subset_part >> i & 1:
                    for c in range(ints[at.C_FIRST, i], ints[at.C_FIRST, i + 1]):
                        if ints[at.C_EDGE, c] == j:
                            paths[i, 0] = ints[at.R_LINK, r]
                            paths[i, 1] = ints[at.B_LINK, b]
                            paths[i, 2] = ints[at.C_LINK, c]
    return best_value


@inner_kernel
def find_edge(net: LocalNetwork, b: int, edges: int) -> int:
    """Return the local edge that local link b leads to."""
    ints = net.ints
    for j in range(edges):
        if b < ints[at.B_FIRST, j + 1]:
            return j
    return edges
