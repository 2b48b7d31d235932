"""Local search over routes: demands of a few links are routed anew, one by one, where capacity is cheapest.

Each demand, or each piece of a large one, takes one path; a link costs the cheapest modules for its load. A
move takes the traffic off some links, in whole or down to a lower step of their staircases, and routes it
again over the paths that add least cost; simulated annealing accepts or rejects it (ruin and recreate).

Reference: Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, "Record breaking optimization results using the ruin
and recreate principle", Journal of Computational Physics 159, 2000.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Bools, Floats, Ints, Network
from planner_models.capacity.designs.network_design.staircases import Staircases, build_staircases
from planner_models.traffic.plan.binary_heap import pop_heap, push_heap

PIECES = 400
"""Pieces of all demands together that large ones are divided into."""

MAX_PIECES = 32
"""Pieces of one demand."""

INITIAL_TEMPERATURE = 1.0
"""Of the annealing, as a share of the median cost of a step."""

FINAL_TEMPERATURE = 0.05

LOAD_TOLERANCE = 1e-9
"""Load above a step of capacity that counts as rounding, in units."""


class _Graph(NamedTuple):
    """Arcs by the node that they leave, and what they use.

    first, leaving  (N + 1,), (A,): the arcs out of node v are leaving[first[v] : first[v + 1]]
    tail, head, row (A,) ends, and the capacity row that an arc uses
    edge, other     (R,) link of each capacity row, and the row that shares its link, itself where none does
    """

    first: Ints
    leaving: Ints
    tail: Ints
    head: Ints
    row: Ints
    edge: Ints
    other: Ints


class _Routes(NamedTuple):
    """Routes of pieces and what they make of links; all are written.

    path, hops  (P, N), (P,) arcs of each piece
    load        (R,) of each capacity row
    step        (E,) step of the staircase that a link is on
    """

    path: Ints
    hops: Ints
    load: Floats
    step: Ints


class RouteSearch:
    """Routes of all demands of a network without failures and tunnels, and their local search."""

    def __init__(self, instance: Instance, network: Network) -> None:
        self.instance, self.network = instance, network
        self.steps = build_staircases(instance)
        self.graph = _graph_of(network)
        mean = float(instance.rate.sum()) / PIECES
        count = np.clip(np.ceil(instance.rate / mean), 1, MAX_PIECES).astype(int)
        demand = np.repeat(np.arange(len(count)), count)
        self.rate: Floats = instance.rate[demand] / count[demand]
        self.source, self.target = network.source[demand], network.target[demand]
        rises = np.diff(self.steps.cost)
        rises = np.delete(rises, self.steps.first[1:-1] - 1)
        self.scale = float(np.median(rises[rises > 0])) if (rises > 0).any() else 1.0
        self.routes: _Routes | None = None

    def start(self, capacity: Floats, seed: int) -> bool:
        """Route all demands, at first over links that have capacity (E,); return whether links carry them."""
        pieces, nodes = len(self.rate), self.network.nodes
        self.routes = _Routes(
            np.zeros((pieces, nodes), dtype=np.int64),
            np.zeros(pieces, dtype=np.int64),
            np.zeros(self.network.capacities),
            self.steps.first[:-1].copy(),
        )
        return bool(
            _route_all(
                self.graph, self.steps, self.routes, self.source, self.target, self.rate,
                self.instance.routing_cost, capacity, seed,
            )
        )

    def improve(self, path_searches: int, heat: float, seed: int) -> float:
        """Search by annealing within so many searches for paths; return the cost of the best routes."""
        assert self.routes is not None
        return float(
            _anneal(
                self.graph, self.steps, self.routes, self.source, self.target, self.rate,
                self.instance.routing_cost, path_searches,
                heat * INITIAL_TEMPERATURE * self.scale, heat * FINAL_TEMPERATURE * self.scale, seed,
            )
        )

    def capacity(self) -> Floats:
        """Return the capacity that the routes need of each link, shape (E,)."""
        assert self.routes is not None
        needed = np.zeros(self.instance.edges)
        np.maximum.at(needed, self.graph.edge, self.routes.load)
        return needed


def _graph_of(network: Network) -> _Graph:
    order = np.argsort(network.arc_tail, kind="stable")
    first = np.r_[0, np.cumsum(np.bincount(network.arc_tail, minlength=network.nodes))]
    rows = np.arange(network.capacities)
    other = rows
    if network.capacities > network.instance.edges:
        other = (rows + network.instance.edges) % network.capacities
    return _Graph(
        first, order, network.arc_tail, network.arc_head, network.arc_capacity, network.capacity_edge, other
    )


# --- compiled -----------------------------------------------------------------------------


@numba.njit(cache=True)
def _step_of(steps, edge, need, near):  # type: ignore[no-untyped-def]
    """Return the first step of a link with the capacity that it needs, -1 for none; searched from one near."""
    at = near
    while at > steps.first[edge] and steps.capacity[at - 1] >= need - LOAD_TOLERANCE:
        at -= 1
    while at < steps.first[edge + 1] and steps.capacity[at] < need - LOAD_TOLERANCE:
        at += 1
    return at if at < steps.first[edge + 1] else -1


@numba.njit(cache=True)
def _add(graph, steps, routes, piece, rate):  # type: ignore[no-untyped-def]
    """Add a rate to the load of the path of a piece; return the change of the cost of modules."""
    change = 0.0
    for i in range(routes.hops[piece]):
        row = graph.row[routes.path[piece, i]]
        routes.load[row] += rate
        edge = graph.edge[row]
        need = max(routes.load[row], routes.load[graph.other[row]])
        before = routes.step[edge]
        after = _step_of(steps, edge, need, before)
        if after < 0:
            after = steps.first[edge + 1] - 1
        routes.step[edge] = after
        change += steps.cost[after] - steps.cost[before]
    return change


@numba.njit(cache=True)
def _find_path(graph, steps, routes, piece, source, target, rate, price, blend, work):  # type: ignore[no-untyped-def]
    """Write the path of a piece that adds least cost; return whether there is one.

    price  (R, 2) of a unit of traffic: of routing and noise, and the smoothed price of capacity
    blend  share of the smoothed price of capacity in the length of an arc
    """
    distance, by, heap, place, own = work
    for v in range(len(distance)):
        distance[v] = np.inf
        place[v] = -1
    distance[source] = 0.0
    size = push_heap(heap, distance, place, 0, source)
    while size > 0:
        v, size = pop_heap(heap, distance, place, size)
        if v == target:
            break
        place[v] = -2
        for j in range(graph.first[v], graph.first[v + 1]):
            arc = graph.leaving[j]
            u = graph.head[arc]
            if place[u] == -2:
                continue
            row = graph.row[arc]
            edge = graph.edge[row]
            at = routes.step[edge]
            need = routes.load[row] + rate
            length = price[row, 0] * rate
            if need > steps.capacity[at] + LOAD_TOLERANCE:
                after = _step_of(steps, edge, need, at)
                if after < 0:
                    continue
                rise = steps.cost[after] - steps.cost[at]
                length += (1.0 - blend) * rise + blend * rate * price[row, 1]
            candidate = distance[v] + length
            if candidate < distance[u]:
                distance[u] = candidate
                by[u] = arc
                size = push_heap(heap, distance, place, size, u)
    if distance[target] == np.inf:
        return False
    hops, v = 0, target
    while v != source:
        routes.path[piece, hops] = by[v]
        hops += 1
        v = graph.tail[by[v]]
    routes.hops[piece] = hops
    return True


@numba.njit(cache=True)
def _workspace(nodes):  # type: ignore[no-untyped-def]
    return (
        np.empty(nodes),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        0,
    )


@numba.njit(cache=True)
def _prices(graph, steps, routing, noise, price):  # type: ignore[no-untyped-def]
    """Write prices of a unit of traffic on each row: routing with noise, and of the largest step of the link."""
    for row in range(len(price)):
        edge = graph.edge[row]
        low, high = steps.first[edge], steps.first[edge + 1] - 1
        size = steps.capacity[high] - steps.capacity[low]
        each = (steps.cost[high] - steps.cost[low]) / size if size > 0 else 0.0
        factor = 1.0 + noise * (np.random.random() - 0.5)
        price[row, 0] = routing[edge] + 1e-4 * each * factor + 1e-9
        price[row, 1] = each * factor


@numba.njit(cache=True)
def _route_all(graph, steps, routes, source, target, rate, routing, capacity, seed):  # type: ignore[no-untyped-def]
    """Route all pieces, the largest first, at a smoothed price; links start on the steps of a capacity (E,)."""
    np.random.seed(seed)
    work = _workspace(len(graph.first) - 1)
    price = np.empty((len(routes.load), 2))
    _prices(graph, steps, routing, 0.0, price)
    for edge in range(len(routes.step)):
        at = _step_of(steps, edge, capacity[edge], steps.first[edge])
        routes.step[edge] = at if at >= 0 else steps.first[edge + 1] - 1
    held = routes.step.copy()
    order = np.argsort(-rate)
    for piece in order:
        if not _find_path(
            graph, steps, routes, piece, source[piece], target[piece], rate[piece], price, 0.7, work
        ):
            return False
        for i in range(routes.hops[piece]):
            row = graph.row[routes.path[piece, i]]
            routes.load[row] += rate[piece]
            edge = graph.edge[row]
            at = _step_of(steps, edge, routes.load[row], routes.step[edge])
            routes.step[edge] = max(held[edge], at)
    for row in range(len(routes.load)):
        edge = graph.edge[row]
        need = max(routes.load[row], routes.load[graph.other[row]])
        routes.step[edge] = _step_of(steps, edge, need, routes.step[edge])
    return True


@numba.njit(cache=True)
def _total_cost(graph, steps, routes, routing):  # type: ignore[no-untyped-def]
    total = 0.0
    for edge in range(len(routes.step)):
        total += steps.cost[routes.step[edge]]
    for row in range(len(routes.load)):
        total += routing[graph.edge[row]] * routes.load[row]
    return total


@numba.njit(cache=True)
def _anneal(  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    graph, steps, routes, source, target, rate, routing, path_searches, hot, cold, seed
):
    """Search as `RouteSearch.improve`; leaves the best routes in `routes` and returns their cost."""
    np.random.seed(seed)
    nodes, pieces, rows = len(graph.first) - 1, len(rate), len(routes.load)
    edges = len(routes.step)
    work = _workspace(nodes)
    price = np.empty((rows, 2))
    path, hops = routes.path, routes.hops
    cost = _total_cost(graph, steps, routes, routing)
    best = cost
    best_path, best_hops = path.copy(), hops.copy()
    old_path, old_hops = path.copy(), hops.copy()
    old_load, old_step = routes.load.copy(), routes.step.copy()
    chosen = np.empty(pieces, np.int64)
    is_chosen = np.zeros(pieces, np.bool_)
    ruined = np.zeros(rows, np.bool_)
    done, moves = 0, 0
    while done < path_searches:
        temperature = hot * (cold / hot) ** (done / path_searches)
        done += 1
        moves += 1
        # ruin: links of a random kind
        for row in range(rows):
            ruined[row] = False
        links = 1 + int(3 * np.random.random() ** 2)
        first = np.random.randint(rows)
        for _ in range(20):
            if routes.load[first] > 0:
                break
            first = np.random.randint(rows)
        ruined[first] = True
        for _ in range(links - 1):
            if np.random.random() < 0.7:  # a link that meets the first one
                v = graph.tail[first] if np.random.random() < 0.5 else graph.head[first]
                arc = graph.leaving[
                    graph.first[v] + np.random.randint(graph.first[v + 1] - graph.first[v])
                ] if graph.first[v + 1] > graph.first[v] else first
                ruined[graph.row[arc]] = True
            else:
                ruined[np.random.randint(rows)] = True
        share = 1.0 if np.random.random() < 0.4 else np.random.random()
        count = 0
        for row in range(rows):
            old_load[row] = routes.load[row]
        for edge in range(edges):
            old_step[edge] = routes.step[edge]
        for piece in range(pieces):
            hit = False
            for i in range(hops[piece]):
                if ruined[graph.row[path[piece, i]]]:
                    hit = True
                    break
            if hit and np.random.random() < share:
                chosen[count] = piece
                count += 1
        if count == 0:
            continue
        change = 0.0
        for i in range(count):
            piece = chosen[i]
            old_hops[piece] = hops[piece]
            for j in range(hops[piece]):
                old_path[piece, j] = path[piece, j]
                change -= routing[graph.edge[graph.row[path[piece, j]]]] * rate[piece]
            change += _add(graph, steps, routes, piece, -rate[piece])
        # recreate: large pieces first, more or less
        noise = np.random.random()
        keys = np.empty(count)
        for i in range(count):
            keys[i] = -rate[chosen[i]] * (1.0 + noise * (np.random.random() - 0.5))
        order = np.argsort(keys)
        blend = np.random.random() ** 2
        _prices(graph, steps, routing, 1.5 * np.random.random(), price)
        is_whole = True
        for i in range(count):
            piece = chosen[order[i]]
            done += 1
            if not _find_path(
                graph, steps, routes, piece, source[piece], target[piece], rate[piece], price, blend, work
            ):
                is_whole = False
                break
            change += _add(graph, steps, routes, piece, rate[piece])
            for j in range(hops[piece]):
                change += routing[graph.edge[graph.row[path[piece, j]]]] * rate[piece]
        if is_whole and change <= -temperature * np.log(1.0 - np.random.random()):
            cost += change
            if cost < best - 1e-9 * abs(best):
                best = cost
                best_path[:], best_hops[:] = path, hops
        else:
            for i in range(count):
                piece = chosen[i]
                hops[piece] = old_hops[piece]
                for j in range(hops[piece]):
                    path[piece, j] = old_path[piece, j]
            for row in range(rows):
                routes.load[row] = old_load[row]
            for edge in range(edges):
                routes.step[edge] = old_step[edge]
    path[:], hops[:] = best_path, best_hops
    _reset(graph, steps, routes, rate)
    return _total_cost(graph, steps, routes, routing)


@numba.njit(cache=True)
def _reset(graph, steps, routes, rate):  # type: ignore[no-untyped-def]
    """Write loads and steps of the paths anew, without rounding errors of moves."""
    routes.load[:] = 0.0
    for piece in range(len(rate)):
        for i in range(routes.hops[piece]):
            routes.load[graph.row[routes.path[piece, i]]] += rate[piece]
    for row in range(len(routes.load)):
        edge = graph.edge[row]
        need = max(routes.load[row], routes.load[graph.other[row]])
        at = _step_of(steps, edge, need, routes.step[edge])
        routes.step[edge] = at if at >= 0 else steps.first[edge + 1] - 1
