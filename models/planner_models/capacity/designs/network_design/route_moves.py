"""Moves of the local search over routes, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.compiled import njit
from planner.search.tolerances import ROUNDING
from planner_models.capacity.designs.network_design.network import Floats, Ints
from planner_models.graphs.binary_heap import pop_heap, push_heap

LOAD_TOLERANCE = ROUNDING
"""Load above a step of capacity that counts as rounding, in units."""

MAX_RUINED = 3
"""Most links that one move takes traffic off."""

WHOLE_RUINS = 0.4
"""Share of moves that take all traffic off their links; the others take a random part of it."""

NEARBY_LINKS = 0.7
"""Share of further links of a move that meet its first one."""

PRICE_NOISE = 1.5
"""Most relative spread of the prices of links in one move."""

START_BLEND = 0.7
"""Share of the smoothed price of capacity in the lengths of arcs where the first routes are found."""

OVERLOAD_PRICE = 4.0
"""Price of load above the last step of a link, relative to the most expensive unit of capacity."""

SLACK_PRICE = 1e-4
"""Price of capacity that is there already, relative to what is bought."""


class Graph(NamedTuple):
    """Arcs by the node that they leave, and their links.

    first, leaving   (N + 1,), (A,): the arcs out of node v are leaving[first[v] : first[v + 1]]
    tail, head, row  (A,) ends, and the capacity row that an arc uses
    edge, other      (R,) link of each capacity row, and the row that shares its link, itself where none does
    """

    first: Ints
    leaving: Ints
    tail: Ints
    head: Ints
    row: Ints
    edge: Ints
    other: Ints


class Pieces(NamedTuple):
    """Demands, of which large ones are in pieces: ends and rates, (P,)."""

    source: Ints
    target: Ints
    rate: Floats


class Prices(NamedTuple):
    """Prices of a unit of traffic.

    routing   (E,) of each link
    overload  of load above the last step of a link, so that routes exist where links are short of capacity
    """

    routing: Floats
    overload: float


class Routes(NamedTuple):
    """Routes of pieces and the loads of links; moves change them.

    path, hops  (P, N), (P,) arcs of each piece
    load        (R,) of each capacity row
    step        (E,) step of its staircase that each link is on
    """

    path: Ints
    hops: Ints
    load: Floats
    step: Ints


@njit(cache=True)
def _step_of(steps, edge, need, near):  # type: ignore[no-untyped-def]
    """Return the first step of a link with the capacity it needs, searched from one near; else the last."""
    step = near
    while step > steps.first[edge] and steps.capacity[step - 1] >= need - LOAD_TOLERANCE:
        step -= 1
    while step < steps.first[edge + 1] and steps.capacity[step] < need - LOAD_TOLERANCE:
        step += 1
    return min(step, steps.first[edge + 1] - 1)


@njit(cache=True)
def _cost_of(steps, need, step, overload):  # type: ignore[no-untyped-def]
    """Return the cost of a link on a step with the load it needs."""
    excess = need - steps.capacity[step] - LOAD_TOLERANCE
    return steps.cost[step] if excess <= 0.0 else steps.cost[step] + overload * excess


@njit(cache=True)
def _add(graph, steps, routes, piece, rate, prices):  # type: ignore[no-untyped-def]
    """Add a rate to the load of the path of a piece; return the change of cost."""
    change = 0.0
    for i in range(routes.hops[piece]):
        row = graph.row[routes.path[piece, i]]
        edge = graph.edge[row]
        before = routes.step[edge]
        change -= _cost_of(
            steps, max(routes.load[row], routes.load[graph.other[row]]), before, prices.overload
        )
        routes.load[row] += rate
        need = max(routes.load[row], routes.load[graph.other[row]])
        routes.step[edge] = _step_of(steps, edge, need, before)
        change += _cost_of(steps, need, routes.step[edge], prices.overload)
        change += prices.routing[edge] * rate
    return change


@njit(cache=True)
def _length(graph, steps, routes, row, rate, price, blend, overload):  # type: ignore[no-untyped-def]
    """Return the cost that a rate adds on a capacity row; infinite where the link can have no capacity."""
    edge = graph.edge[row]
    step = routes.step[edge]
    need = routes.load[row] + rate
    length = price[row, 0] * rate
    if need > steps.capacity[step] + LOAD_TOLERANCE:
        after = _step_of(steps, edge, need, step)
        if steps.capacity[after] <= 0.0:
            return np.inf
        rise = steps.cost[after] - steps.cost[step]
        length += (1.0 - blend) * rise + blend * rate * price[row, 1]
        length += overload * min(rate, max(0.0, need - steps.capacity[after] - LOAD_TOLERANCE))
    return length


@njit(cache=True)
def _find_path(graph, steps, routes, pieces, piece, price, blend, overload, work):  # type: ignore[no-untyped-def]
    """Write the path of a piece that adds least cost; return whether there is one.

    price  (R, 2) of a unit of traffic where there is capacity, and smoothed where it must be bought
    blend  share of the smoothed price in the length of an arc, the rest being the rise of the staircase
    """
    distance, by, heap, slot_of = work
    source, target, rate = pieces.source[piece], pieces.target[piece], pieces.rate[piece]
    distance[:] = np.inf
    slot_of[:] = -1
    distance[source] = 0.0
    size = push_heap(heap, distance, slot_of, 0, source)
    while size > 0:
        v, size = pop_heap(heap, distance, slot_of, size)
        if v == target:
            break
        slot_of[v] = -2
        for j in range(graph.first[v], graph.first[v + 1]):
            arc = graph.leaving[j]
            u = graph.head[arc]
            if slot_of[u] == -2:
                continue
            candidate = distance[v] + _length(
                graph, steps, routes, graph.row[arc], rate, price, blend, overload
            )
            if candidate < distance[u]:
                distance[u] = candidate
                by[u] = arc
                size = push_heap(heap, distance, slot_of, size, u)
    if distance[target] == np.inf:
        return False
    hops, v = 0, target
    while v != source:
        routes.path[piece, hops] = by[v]
        hops += 1
        v = graph.tail[by[v]]
    routes.hops[piece] = hops
    return True


@njit(cache=True)
def _workspace(nodes):  # type: ignore[no-untyped-def]
    """Return distance, arc, heap and place of nodes, which searches for paths write."""
    return np.empty(nodes), np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)


@njit(cache=True)
def _smoothed_prices(steps):  # type: ignore[no-untyped-def]
    """Return the mean cost of a unit of capacity over the staircase of each link, (E,)."""
    each = np.zeros(len(steps.first) - 1)
    for edge in range(len(each)):
        low, high = steps.first[edge], steps.first[edge + 1] - 1
        size = steps.capacity[high] - steps.capacity[low]
        if size > 0:
            each[edge] = (steps.cost[high] - steps.cost[low]) / size
    return each


@njit(cache=True)
def _write_prices(graph, routing, each, factor, price):  # type: ignore[no-untyped-def]
    """Write prices (R, 2) of a unit of traffic on each row, times a factor (R,).

    each  (E,) smoothed price of capacity
    """
    for row in range(len(price)):
        edge = graph.edge[row]
        price[row, 0] = routing[edge] + SLACK_PRICE * each[edge] * factor[row] + 1e-9
        price[row, 1] = each[edge] * factor[row]


@njit(cache=True)
def route_all(graph, steps, routes, pieces, prices, capacity):  # type: ignore[no-untyped-def]
    """Route all pieces, the largest first; return whether all have paths.

    capacity  (E,) that links begin with
    """
    rows = len(routes.load)
    work = _workspace(len(graph.first) - 1)
    price = np.empty((rows, 2))
    _write_prices(graph, prices.routing, _smoothed_prices(steps), np.ones(rows), price)
    for edge in range(len(routes.step)):
        routes.step[edge] = _step_of(steps, edge, capacity[edge], steps.first[edge])
    held = routes.step.copy()
    for piece in np.argsort(-pieces.rate):
        if not _find_path(graph, steps, routes, pieces, piece, price, START_BLEND, prices.overload, work):
            return False
        for i in range(routes.hops[piece]):
            row = graph.row[routes.path[piece, i]]
            routes.load[row] += pieces.rate[piece]
            edge = graph.edge[row]
            routes.step[edge] = max(held[edge], _step_of(steps, edge, routes.load[row], routes.step[edge]))
    _reset_links(graph, steps, routes, pieces)
    return True


@njit(cache=True)
def _reset_links(graph, steps, routes, pieces):  # type: ignore[no-untyped-def]
    """Write loads and steps of the paths anew, without rounding errors of moves."""
    routes.load[:] = 0.0
    for piece in range(len(pieces.rate)):
        for i in range(routes.hops[piece]):
            routes.load[graph.row[routes.path[piece, i]]] += pieces.rate[piece]
    for row in range(len(routes.load)):
        edge = graph.edge[row]
        need = max(routes.load[row], routes.load[graph.other[row]])
        routes.step[edge] = _step_of(steps, edge, need, routes.step[edge])


@njit(cache=True)
def _total_cost(graph, steps, routes, prices):  # type: ignore[no-untyped-def]
    total = 0.0
    for edge in range(len(routes.step)):
        total += steps.cost[routes.step[edge]]
    for row in range(len(routes.load)):
        edge, other = graph.edge[row], routes.load[graph.other[row]]
        total += prices.routing[edge] * routes.load[row]
        if routes.load[row] > other or (routes.load[row] == other and row <= graph.other[row]):
            step = routes.step[edge]
            total += _cost_of(steps, routes.load[row], step, prices.overload) - steps.cost[step]
    return total


@njit(cache=True)
def _choose_rows(graph, routes, ruined, rng):  # type: ignore[no-untyped-def]
    """Mark capacity rows (R,) to take traffic off: one with traffic, and links that mostly meet it."""
    rows = len(ruined)
    ruined[:] = False
    first = rng.integers(0, rows)
    for _ in range(20):
        if routes.load[first] > 0:
            break
        first = rng.integers(0, rows)
    ruined[first] = True
    for _ in range(int(MAX_RUINED * rng.random() ** 2)):
        v = graph.tail[first] if rng.random() < 0.5 else graph.head[first]  # row r is the row of arc r
        degree = graph.first[v + 1] - graph.first[v]
        if degree > 0 and rng.random() < NEARBY_LINKS:
            ruined[graph.row[graph.leaving[graph.first[v] + rng.integers(0, degree)]]] = True
        else:
            ruined[rng.integers(0, rows)] = True


@njit(cache=True)
def _choose_pieces(graph, routes, ruined, selected, rng):  # type: ignore[no-untyped-def]
    """Write pieces over marked rows to `selected`, all or a random part; return their number."""
    share = 1.0 if rng.random() < WHOLE_RUINS else rng.random()
    count = 0
    for piece in range(len(routes.hops)):
        for i in range(routes.hops[piece]):
            if ruined[graph.row[routes.path[piece, i]]]:
                if rng.random() < share:
                    selected[count] = piece
                    count += 1
                break
    return count


@njit(cache=True)
def _recreate(  # type: ignore[no-untyped-def]
    graph, steps, routes, pieces, prices, removed, price, work, limit, rng
):
    """Route chosen pieces, large ones first, more or less.

    Returns the change of cost, infinite where it is above `limit` or there is no path, and how many pieces
    were tried.
    """
    noise, blend, change = rng.random(), rng.random() ** 2, 0.0
    key = np.empty(len(removed))
    for i in range(len(removed)):
        key[i] = -pieces.rate[removed[i]] * (1.0 + noise * (rng.random() - 0.5))
    tried = 0
    for i in np.argsort(key):
        piece = removed[i]
        tried += 1
        if not _find_path(graph, steps, routes, pieces, piece, price, blend, prices.overload, work):
            return np.inf, tried
        change += _add(graph, steps, routes, piece, pieces.rate[piece], prices)
        if change > limit:
            return np.inf, tried
    return change, tried


@njit(cache=True)
def anneal(  # type: ignore[no-untyped-def]
    graph, steps, routes, pieces, prices, path_searches, hot, cold, smoothed, rng
):
    """Search by annealing from temperature `hot` to `cold`; leave the best routes, and return their cost.

    smoothed  price of load that is added to costs at first and then falls to 0, relative to the smoothed
              price of capacity: staircases alone do not say which of two loads is nearer to a lower step
    """
    rows = len(routes.load)
    work = _workspace(len(graph.first) - 1)
    price, factor = np.empty((rows, 2)), np.empty(rows)
    path, hops = routes.path, routes.hops
    best, best_path, best_hops = _total_cost(graph, steps, routes, prices), path.copy(), hops.copy()
    each, of_load = _smoothed_prices(steps), prices.routing.copy()
    moving = Prices(of_load, prices.overload)
    old_path, old_hops = path.copy(), hops.copy()
    old_load, old_step = routes.load.copy(), routes.step.copy()
    removed, ruined = np.empty(len(hops), np.int64), np.zeros(rows, np.bool_)
    tried_count = 0
    while tried_count < path_searches:
        temperature = hot * (cold / hot) ** (tried_count / path_searches)
        of_load[:] = prices.routing + smoothed * (1.0 - tried_count / path_searches) * each
        _choose_rows(graph, routes, ruined, rng)
        count = _choose_pieces(graph, routes, ruined, removed, rng)
        old_load[:], old_step[:] = routes.load, routes.step
        change = 0.0
        for piece in removed[:count]:
            old_hops[piece] = hops[piece]
            old_path[piece, : hops[piece]] = path[piece, : hops[piece]]
            change += _add(graph, steps, routes, piece, -pieces.rate[piece], moving)
        spread = PRICE_NOISE * rng.random()
        for row in range(rows):
            factor[row] = 1.0 + spread * (rng.random() - 0.5)
        _write_prices(graph, of_load, each, factor, price)
        limit = -temperature * np.log(1.0 - rng.random()) - change
        added, tried = _recreate(
            graph, steps, routes, pieces, moving, removed[:count], price, work, limit, rng
        )
        tried_count += 1 + tried
        if added <= limit:
            cost = _total_cost(graph, steps, routes, prices)
            if cost < best - 1e-9 * abs(best):
                best = cost
                best_path[:], best_hops[:] = path, hops
        else:
            for piece in removed[:count]:
                hops[piece] = old_hops[piece]
                path[piece, : hops[piece]] = old_path[piece, : hops[piece]]
            routes.load[:], routes.step[:] = old_load, old_step
    path[:], hops[:] = best_path, best_hops
    _reset_links(graph, steps, routes, pieces)
    return _total_cost(graph, steps, routes, prices)
