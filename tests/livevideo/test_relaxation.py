"""The trees of single objects, held to enumeration in plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from planner_models.livevideo.exact import exact
from planner_models.livevideo.localsearch import assign, swapped, tree_cost
from planner_models.livevideo.relaxation import bounded, by_edge
from planner_models.livevideo.star import EXACT, workspace


def star(rng: np.random.Generator, requests: int, edges: int, reflectors: int) -> tuple[Any, dict[str, Any]]:
    """A random local network, in the kernels' arrays and as plain lists."""
    s = workspace(requests=requests, degree=edges, edges=edges, reflectors=reflectors, edge_degree=reflectors)
    into = [
        sorted(rng.choice(edges, int(rng.integers(1, edges + 1)), replace=False).tolist())
        for _ in range(requests)
    ]
    above = [
        sorted(rng.choice(reflectors, int(rng.integers(1, reflectors + 1)), replace=False).tolist())
        for _ in range(edges)
    ]
    c_price = {(i, j): float(rng.integers(0, 5)) for i in range(requests) for j in into[i]}
    b_price = {(j, r): float(rng.integers(0, 6)) for j in range(edges) for r in above[j]}
    r_price = [float(rng.integers(0, 8)) for _ in range(reflectors)]
    value = [float(rng.integers(1, 15)) for _ in range(requests)]
    n = 0
    for i in range(requests):
        s.c_first[i] = n
        for j in into[i]:
            s.c_edge[n], s.c_price[n], s.c_link[n] = j, c_price[i, j], n
            n += 1
        s.value[i] = value[i]
    s.c_first[requests] = n
    n = 0
    for j in range(edges):
        s.b_first[j] = n
        for r in above[j]:
            s.b_reflector[n], s.b_price[n], s.b_link[n] = r, b_price[j, r], n
            n += 1
    s.b_first[edges] = n
    s.r_price[:reflectors], s.r_link[:reflectors] = r_price, range(reflectors)
    return s, {"into": into, "above": above, "c": c_price, "b": b_price, "r": r_price, "value": value}


def best_by_force(one: dict[str, Any]) -> float:
    """The best value of all trees: every set of reflectors, every edge under its cheapest one or closed."""
    edges, reflectors = len(one["above"]), len(one["r"])
    best = 0.0
    for count in range(reflectors + 1):
        for opened in itertools.combinations(range(reflectors), count):
            way = [
                min((one["b"][j, r] for r in one["above"][j] if r in opened), default=np.inf)
                for j in range(edges)
            ]
            usable = [j for j in range(edges) if way[j] < np.inf]
            for size in range(len(usable) + 1):
                for chosen in itertools.combinations(usable, size):
                    worth = -sum(one["r"][r] for r in opened) - sum(way[j] for j in chosen)
                    for i, value in enumerate(one["value"]):
                        prices = [one["c"][i, j] for j in one["into"][i] if j in chosen]
                        worth += max(0.0, value - min(prices)) if prices else 0.0
                    best = max(best, worth)
    return best


def value_of(one: dict[str, Any], s: Any, choice: np.ndarray) -> float:
    """What the chosen links are worth, each counted once."""
    served = [i for i in range(len(choice)) if choice[i, 2] >= 0]
    edge = {i: int(s.c_edge[choice[i, 2]]) for i in served}
    links = {(edge[i], int(s.b_reflector[choice[i, 1]])) for i in served}
    assert len({j for j, _ in links}) == len(links), "an edge under two reflectors"
    total: float = sum(one["value"][i] - one["c"][i, edge[i]] for i in served)
    total -= sum(one["b"][link] for link in links)
    total -= sum(one["r"][r] for r in {r for _, r in links})
    return total


@pytest.mark.parametrize("seed", range(25))
def test_the_dynamic_program_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, edges, reflectors = int(rng.integers(1, EXACT + 1)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    s, one = star(rng, k, edges, reflectors)
    choice = np.full((k, 3), -1, dtype=np.int64)
    found = exact(k, edges, reflectors, s, choice)
    assert found == pytest.approx(best_by_force(one))
    assert value_of(one, s, choice) == pytest.approx(found)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("limit", [1, 2, 9, 65])
def test_the_search_brackets_the_best(seed: int, limit: int) -> None:
    rng = np.random.default_rng(seed)
    k, edges, reflectors = int(rng.integers(4, 12)), int(rng.integers(2, 6)), int(rng.integers(1, 5))
    s, one = star(rng, k, edges, reflectors)
    choice = np.full((k, 3), -1, dtype=np.int64)
    found, bound = bounded(k, edges, reflectors, s, choice, np.full(k, -1.0), 30, limit)
    best = best_by_force(one)
    assert found <= best + 1e-9 <= bound + 2e-9
    assert value_of(one, s, choice) == pytest.approx(found)
    assert found >= 0.8 * best - 1e-9


def test_edges_are_exchanged_where_neither_opening_nor_closing_pays() -> None:
    """One edge for 5 serves both requests for nothing, another for 4 at 1 each: the first is better."""
    s = workspace(requests=2, degree=2, edges=2, reflectors=1, edge_degree=1)
    s.c_first[:] = [0, 2, 4]
    s.c_edge[:4], s.c_price[:4] = [0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0]
    s.value[:2] = 10.0
    s.b_first[:] = [0, 1, 2]
    s.b_reflector[:2], s.b_price[:2] = 0, [5.0, 4.0]
    by_edge(2, 2, s)
    s.stamp[0] = 1
    s.open_edge[:2] = 1
    assert assign(2, 2, 1, s) == 6.0
    arrays = (
        s.value, s.c_first, s.c_edge, s.c_price, s.e_first, s.e_c, s.e_i, s.way, s.way_price, s.open_edge,
        s.pick, s.before,
    )  # fmt: skip
    assert swapped(2, *arrays)
    assert tree_cost(2, 2, 1, s) == 5.0
    assert s.open_edge[:2].tolist() == [1, 0]
    assert not swapped(2, *arrays)
    assert tree_cost(2, 2, 1, s) == 5.0
