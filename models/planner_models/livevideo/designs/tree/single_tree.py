"""The best tree of one object: by enumeration, dynamic program or branch and bound; and its workspace."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.livevideo.designs.tree import lagrangian, local_search
from planner_models.livevideo.designs.tree.dynamic_program import solve_dynamic_program, solve_single_request
from planner_models.livevideo.designs.tree.indirect_call import address_of, inner_kernel
from planner_models.livevideo.designs.tree.lagrangian import call_for_pair
from planner_models.livevideo.designs.tree.local_network import (
    MAX_EXACT_REQUESTS,
    Addresses,
    LocalNetwork,
    create_arrays,
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
