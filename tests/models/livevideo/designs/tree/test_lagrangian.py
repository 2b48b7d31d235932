"""Trees of single objects, compared with enumeration in plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import numba as nb
import numpy as np
import pytest

from planner_models.livevideo.designs.tree import lagrangian, local_search, single_tree
from planner_models.livevideo.designs.tree import local_network as at
from planner_models.livevideo.designs.tree.local_network import MAX_EXACT_REQUESTS, LocalNetwork
from planner_models.livevideo.designs.tree.single_tree import create_workspace

# kernels that only kernels call, for calls from Python
solve_dynamic_program = nb.njit(
    lambda k, e, r, net, paths: single_tree.solve_dynamic_program(k, e, r, net, paths)
)
solve_with_bound = nb.njit(
    lambda k, e, r, net, paths, dual, steps, nodes: lagrangian.solve_with_bound(
        k, e, r, net, paths, dual, steps, nodes
    )
)
index_links_by_edge = nb.njit(lambda k, e, net: lagrangian.index_links_by_edge(k, e, net))
assign_requests = nb.njit(lambda k, e, r, net: local_search.assign_requests(k, e, r, net))
exchange_edges = nb.njit(lambda e, net: local_search.exchange_edges(e, net))
tree_cost = nb.njit(lambda k, e, r, net: local_search.tree_cost(k, e, r, net))


def random_network(
    rng: np.random.Generator, requests: int, edges: int, reflectors: int
) -> tuple[LocalNetwork, dict[str, Any]]:
    """Return a random local network, in the kernels' arrays and as plain lists."""
    net = create_workspace(
        requests=requests, degree=edges, edges=edges, reflectors=reflectors, edge_degree=reflectors
    )
    edges_of = [
        sorted(rng.choice(edges, int(rng.integers(1, edges + 1)), replace=False).tolist())
        for _ in range(requests)
    ]
    reflectors_of = [
        sorted(rng.choice(reflectors, int(rng.integers(1, reflectors + 1)), replace=False).tolist())
        for _ in range(edges)
    ]
    c_price = {(i, j): float(rng.integers(0, 5)) for i in range(requests) for j in edges_of[i]}
    b_price = {(j, r): float(rng.integers(0, 6)) for j in range(edges) for r in reflectors_of[j]}
    r_price = [float(rng.integers(0, 8)) for _ in range(reflectors)]
    value = [float(rng.integers(1, 15)) for _ in range(requests)]
    n = 0
    for i in range(requests):
        net.ints[at.C_FIRST, i] = n
        for j in edges_of[i]:
            net.ints[at.C_EDGE, n], net.floats[at.C_PRICE, n], net.ints[at.C_LINK, n] = j, c_price[i, j], n
            n += 1
        net.floats[at.VALUE, i] = value[i]
    net.ints[at.C_FIRST, requests] = n
    n = 0
    for j in range(edges):
        net.ints[at.B_FIRST, j] = n
        for r in reflectors_of[j]:
            net.ints[at.B_REFLECTOR, n], net.floats[at.B_PRICE, n], net.ints[at.B_LINK, n] = (
                r,
                b_price[j, r],
                n,
            )
            n += 1
    net.ints[at.B_FIRST, edges] = n
    net.floats[at.R_PRICE, :reflectors], net.ints[at.R_LINK, :reflectors] = r_price, range(reflectors)
    return net, {
        "into": edges_of,
        "above": reflectors_of,
        "c": c_price,
        "b": b_price,
        "r": r_price,
        "value": value,
    }


def best_by_force(item: dict[str, Any]) -> float:
    """Return the best value of all trees, over sets of reflectors and of edges under the cheapest one."""
    edges, reflectors = len(item["above"]), len(item["r"])
    best = 0.0
    for count in range(reflectors + 1):
        for opened in itertools.combinations(range(reflectors), count):
            way = [
                min((item["b"][j, r] for r in item["above"][j] if r in opened), default=np.inf)
                for j in range(edges)
            ]
            usable = [j for j in range(edges) if way[j] < np.inf]
            for size in range(len(usable) + 1):
                for selected in itertools.combinations(usable, size):
                    worth = -sum(item["r"][r] for r in opened) - sum(way[j] for j in selected)
                    for i, value in enumerate(item["value"]):
                        prices = [item["c"][i, j] for j in item["into"][i] if j in selected]
                        worth += max(0.0, value - min(prices)) if prices else 0.0
                    best = max(best, worth)
    return best


def value_of(item: dict[str, Any], net: LocalNetwork, paths: np.ndarray) -> float:
    """Return the value of a tree, each link counted once."""
    served = [i for i in range(len(paths)) if paths[i, 2] >= 0]
    edge = {i: int(net.ints[at.C_EDGE, paths[i, 2]]) for i in served}
    links = {(edge[i], int(net.ints[at.B_REFLECTOR, paths[i, 1]])) for i in served}
    assert len({j for j, _ in links}) == len(links), "an edge under two reflectors"
    total: float = sum(item["value"][i] - item["c"][i, edge[i]] for i in served)
    total -= sum(item["b"][link] for link in links)
    total -= sum(item["r"][r] for r in {r for _, r in links})
    return total


@pytest.mark.parametrize("seed", range(25))
def test_the_dynamic_program_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, edges, reflectors = (
        int(rng.integers(1, MAX_EXACT_REQUESTS + 1)),
        int(rng.integers(1, 5)),
        int(rng.integers(1, 4)),
    )
    net, item = random_network(rng, k, edges, reflectors)
    paths = np.full((k, 3), -1, dtype=np.int64)
    result = solve_dynamic_program(k, edges, reflectors, net, paths)
    assert result == pytest.approx(best_by_force(item))
    assert value_of(item, net, paths) == pytest.approx(result)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("nodes", [1, 2, 9, 65])
def test_value_and_bound_bracket_the_best_tree(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    k, edges, reflectors = int(rng.integers(4, 12)), int(rng.integers(2, 6)), int(rng.integers(1, 5))
    net, item = random_network(rng, k, edges, reflectors)
    paths = np.full((k, 3), -1, dtype=np.int64)
    result, bound = solve_with_bound(k, edges, reflectors, net, paths, np.full(k, -1.0), 30, nodes)
    best = best_by_force(item)
    assert result <= best + 1e-9 <= bound + 2e-9
    assert value_of(item, net, paths) == pytest.approx(result)
    assert result >= 0.8 * best - 1e-9


def test_edges_are_exchanged_where_neither_opening_nor_closing_pays() -> None:
    """An edge of cost 5 serves two requests at 0, one of cost 4 at 1 each: the first is better."""
    net = create_workspace(requests=2, degree=2, edges=2, reflectors=1, edge_degree=1)
    net.ints[at.C_FIRST, :3] = [0, 2, 4]
    net.ints[at.C_EDGE, :4], net.floats[at.C_PRICE, :4] = [0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0]
    net.floats[at.VALUE, :2] = 10.0
    net.ints[at.B_FIRST, :3] = [0, 1, 2]
    net.ints[at.B_REFLECTOR, :2], net.floats[at.B_PRICE, :2] = 0, [5.0, 4.0]
    index_links_by_edge(2, 2, net)
    net.ints[at.OPEN_REFLECTOR, 0] = 1
    net.ints[at.OPEN_EDGE, :2] = 1
    assert assign_requests(2, 2, 1, net) == 6.0
    assert exchange_edges(2, net)
    assert tree_cost(2, 2, 1, net) == 5.0
    assert net.ints[at.OPEN_EDGE, :2].tolist() == [1, 0]
    assert not exchange_edges(2, net)
    assert tree_cost(2, 2, 1, net) == 5.0
