"""Steps of a simplex method over paths: columns that enter, the ratio test, and the change of the basis."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import inner, njit, run_small_in_python
from planner.search.tolerances import IMPROVEMENT, SUM_ROUNDING
from planner_models.flows.path_pool import Demands
from planner_models.flows.simplex_state import (
    CALL,
    DEGENERATE,
    LIMIT,
    LINKS,
    NOW,
    PATH,
    PATHS,
    PIVOTS,
    QUEUE_PLACE,
    RISE,
    RISE_PLACE,
    SERVED,
    SLACK,
    UNBOUNDED,
    GivenPaths,
    State,
)
from planner_models.graphs.shortest_path_trees import Graph

FEASIBILITY: Final = (
    SUM_ROUNDING  # of a capacity, or of a demand's traffic: what may be missing in the ratio test
)
LEAST_PIVOT: Final = 1e-8
LEAST_SLOPE: Final = 1e-3  # on the link with the largest one, below which the unit of t is too small
COST_TOLERANCE: Final = IMPROVEMENT  # relative: a path must be shorter by that much to enter

Index = int | np.int64

COLUMN_LEAVES, KEY_LEAVES, AT_LIMIT, NO_LIMIT = range(4)
"""What ends a step: a basic column, the key path of a demand, the limit of t, or nothing."""


@inner
def add_slope(state: State, k: Index, factor: float) -> None:
    """Add factor times the slope of demand k on its key path to the column of t."""
    key = state.key[k]
    for j in range(state.start[key], state.end[key]):
        if state.link[j] < len(state.rise):
            state.rise[state.link[j]] += factor * state.slope[k]


@run_small_in_python(max_elements=60_000)
@njit(cache=True)
def add_slopes(state: State) -> None:
    for k in range(len(state.key)):
        if state.slope[k] > 0.0:
            add_slope(state, k, 1.0)


@run_small_in_python(max_elements=60_000)
@njit(cache=True)
def add_key_loads(state: State, traffic: Floats, load: Floats) -> None:
    """Add the traffic of demands (K,) to the load (A + 1,) of the links of their key paths."""
    for k in range(len(state.key)):
        if traffic[k] > 0.0:
            for j in range(state.start[state.key[k]], state.end[state.key[k]]):
                load[state.link[j]] += traffic[k]


@run_small_in_python(max_elements=60_000)
@njit(cache=True)
def write_basic_columns(  # noqa: C901
    state: State, rows: Ints, columns: Floats, cost: Floats, right: Floats
) -> None:
    """Write the columns (P, A) of the basis that are no slacks, their costs, and the right-hand side."""
    links = len(state.capacity)
    for i in range(len(rows)):
        p = rows[i]
        if state.kind[p] == PATH:
            q = state.item[p]
            key = state.key[state.owner[q]]
            for j in range(state.start[q], state.end[q]):
                e = state.link[j]
                cost[i] += state.cost[e]
                if e < links:
                    columns[i, e] += 1.0
            for j in range(state.start[key], state.end[key]):
                e = state.link[j]
                cost[i] -= state.cost[e]
                if e < links:
                    columns[i, e] -= 1.0
        else:
            cost[i] -= 1.0
            for e in range(links):
                columns[i, e] = state.rise[e]
                cost[i] += state.rise[e] * state.cost[e]
    t = state.amount[NOW] if state.number[RISE_PLACE] < 0 else 0.0
    for k in range(len(state.key)):
        amount = state.fixed[k] + state.slope[k] * t
        if amount > 0.0:
            for j in range(state.start[state.key[k]], state.end[state.key[k]]):
                e = state.link[j]
                if e < links:
                    right[e] -= amount


@inner
def _key_flow(state: State, k: int) -> float:
    flow: float = state.fixed[k] + state.slope[k] * state.amount[NOW]
    i = state.first[k]
    while i >= 0:
        flow -= state.value[i]
        i = state.after[i]
    return flow


@run_small_in_python(max_elements=60_000)
@njit(cache=True)
def list_flows(state: State, flow: Floats) -> None:
    for k in range(len(state.key)):
        flow[state.key[k]] = _key_flow(state, k)
        i = state.first[k]
        while i >= 0:
            flow[state.item[i]] = state.value[i]
            i = state.after[i]


@inner
def _add_row(state: State, e: int, factor: float, change: Floats) -> None:
    """Add factor times the row of link e of the inverse to `change`."""
    i = state.place_of[e]
    if i >= 0:
        change[i] += factor
    else:
        row = state.inverse[e]
        for j in range(len(change)):
            change[j] += factor * row[j]


@inner
def write_path_direction(state: State, q: int, key: int, side: NDArray[np.int8], change: Floats) -> None:
    """Write the amounts that a unit of path q instead of the key takes from the basic columns."""
    links = len(state.capacity)
    for j in range(len(change)):
        change[j] = 0.0
    for j in range(state.start[q], state.end[q]):
        side[state.link[j]] += 1
    for j in range(state.start[key], state.end[key]):
        side[state.link[j]] -= 1
    for p in (q, key):
        for j in range(state.start[p], state.end[p]):
            e = state.link[j]
            if side[e] != 0 and e < links:
                _add_row(state, e, float(side[e]), change)
            side[e] = 0


@inner
def _rise_direction(state: State, change: Floats) -> float:
    """Write the amounts that a unit of t takes from the basic columns; return its reduced cost."""
    cost = -1.0
    for j in range(len(change)):
        change[j] = 0.0
    for e in range(len(state.rise)):
        if state.rise[e] > 0.0:
            _add_row(state, e, state.rise[e], change)
            cost += state.rise[e] * (state.cost[e] + state.price[e])
    return cost


@inner
def limit_step(  # noqa: C901
    state: State, change: Floats, entering: Index, rise: float, rate: Floats, seen: Ints
) -> tuple[int, int, float]:
    """Return (kind, index, step): the end of a step, its position or demand, and the length of the step.

    entering  demand of the entering path, -1 for none
    rise      1 where t enters, else 0; rate (K,) is scratch space, 0 before and after
    """
    rise_row = state.number[RISE_PLACE]
    if rise == 0.0 and rise_row >= 0:
        rise = -change[rise_row]
    count = 0
    if entering >= 0:
        seen[0] = entering
        count = 1
    for i in range(len(change)):
        if state.kind[i] == PATH:
            k = state.owner[state.item[i]]
            if state.first[k] == i and k != entering:
                seen[count] = k
                count += 1
            rate[k] -= change[i]
    for j in range(count):
        k = seen[j]
        rate[k] -= state.slope[k] * rise
        if k == entering:
            rate[k] += 1.0
    max_step = np.inf
    if rise > 1e-14:
        max_step = max(state.amount[LIMIT] - state.amount[NOW], 0.0) / rise
    for i in range(len(change)):
        if change[i] > LEAST_PIVOT and state.kind[i] != RISE:
            if state.kind[i] == PATH:
                k = state.owner[state.item[i]]
                size = state.fixed[k] + state.slope[k] * state.amount[NOW]
            else:
                size = state.capacity[state.item[i]]
            max_step = min(max_step, (max(state.value[i], 0.0) + FEASIBILITY * size) / change[i])
    for j in range(count):
        k = seen[j]
        if rate[k] > LEAST_PIVOT:
            size = state.fixed[k] + state.slope[k] * state.amount[NOW]
            max_step = min(max_step, (max(_key_flow(state, k), 0.0) + FEASIBILITY * size) / rate[k])
    what, index, step, largest = NO_LIMIT, -1, np.inf, 0.0
    for i in range(len(change)):
        if change[i] > largest and change[i] > LEAST_PIVOT and state.kind[i] != RISE:
            limit = max(state.value[i], 0.0) / change[i]
            if limit <= max_step:
                what, index, step, largest = COLUMN_LEAVES, i, limit, change[i]
    for j in range(count):
        k = seen[j]
        if rate[k] > largest and rate[k] > LEAST_PIVOT:
            limit = max(_key_flow(state, k), 0.0) / rate[k]
            if limit <= max_step:
                what, index, step, largest = KEY_LEAVES, k, limit, rate[k]
    if rise > 1e-14:
        limit = max(state.amount[LIMIT] - state.amount[NOW], 0.0) / rise
        if limit <= max_step and (what == NO_LIMIT or limit <= step):
            what, index, step = AT_LIMIT, rise_row, limit
    for j in range(count):
        rate[seen[j]] = 0.0
    for i in range(len(change)):
        if state.kind[i] == PATH:
            rate[state.owner[state.item[i]]] = 0.0
    return what, index, step


@inner
def _remove_path(state: State, i: int) -> None:
    """Take the path in place i off the list of its demand."""
    k = state.owner[state.item[i]]
    if state.first[k] == i:
        state.first[k] = state.after[i]
    else:
        j = state.first[k]
        while state.after[j] != i:
            j = state.after[j]
        state.after[j] = state.after[i]
    state.after[i] = -1


@inner
def _take_from_key(state: State, k: int, row: Floats, coefficient: float) -> float:
    """Return the amount that a row of basic columns takes from the key path of demand k, besides its own."""
    total = coefficient
    i = state.first[k]
    while i >= 0:
        total -= row[i]
        i = state.after[i]
    rise_row, slope = state.number[RISE_PLACE], state.slope[k]
    if rise_row >= 0 and slope > 0.0:
        total += slope * row[rise_row]
    return total


@inner
def _swap_key(state: State, k: int, change: Floats, coefficient: float) -> int:
    """Make the basic path of demand k with most traffic its key; return the place where the old key is.

    coefficient  what a unit of the entering column takes from the key itself
    """
    best: int = state.first[k]
    i = state.first[k]
    while i >= 0:
        if state.value[i] > state.value[best]:
            best = i
        i = state.after[i]
    flow = _key_flow(state, k)
    slope = state.slope[k]
    for e in range(len(state.price)):
        row = state.inverse[e]
        row[best] = _take_from_key(state, k, row, 0.0)
    change[best] = _take_from_key(state, k, change, coefficient)
    old = state.key[k]
    if slope > 0.0:
        add_slope(state, k, -1.0)
    state.key[k] = state.item[best]
    if slope > 0.0:
        add_slope(state, k, 1.0)
    state.item[best] = old
    state.value[best] = flow
    return best


@inner
def _eliminate(state: State, change: Floats, r: int, reduced_cost: float) -> None:
    """Update inverse and prices where the entering column replaces the one in place r."""
    pivot = change[r]
    for e in range(len(state.price)):
        row = state.inverse[e]
        if row[r] != 0.0:
            factor = row[r] / pivot
            for j in range(len(change)):
                row[j] -= factor * change[j]
            row[r] = factor
            state.price[e] -= reduced_cost * factor


@inner
def _leave(state: State, r: int) -> None:
    if state.kind[r] == SLACK:
        state.place_of[state.item[r]] = -1
    elif state.kind[r] == PATH:
        _remove_path(state, r)
    else:
        state.number[RISE_PLACE] = -1


@inner
def _move(state: State, change: Floats, step: float) -> None:
    for i in range(len(change)):
        state.value[i] -= step * change[i]
    if state.number[RISE_PLACE] >= 0:
        state.amount[NOW] = state.value[state.number[RISE_PLACE]]


@inner
def pivot(  # noqa: C901
    state: State,
    change: Floats,
    kind: Index,
    item: Index,
    entering: Index,
    reduced_cost: float,
    test: tuple[int, int, float],
) -> bool:
    """Let a column of this kind enter as the ratio test says; return whether t is at its limit."""
    what, index, step = test
    state.number[PIVOTS] += 1
    if step <= 0.0:
        state.number[DEGENERATE] += 1
    if (
        what == KEY_LEAVES and index == entering and state.first[index] < 0
    ):  # the path replaces its demand's key
        _move(state, change, step)
        rise_row, slope = state.number[RISE_PLACE], state.slope[entering]
        if slope > 0.0:
            add_slope(state, entering, -1.0)
        state.key[entering] = item
        if slope > 0.0:
            add_slope(state, entering, 1.0)
        if rise_row >= 0 and slope > 0.0:
            for i in range(len(change)):
                change[i] *= slope
            change[rise_row] += 1.0
            _eliminate(state, change, rise_row, slope * reduced_cost)
        return False
    r = index
    if what == KEY_LEAVES:
        coefficient = 1.0 if index == entering else 0.0
        if kind == RISE:
            coefficient = -state.slope[index]
        r = _swap_key(state, index, change, coefficient)
    _move(state, change, step)
    if kind == RISE:
        step += state.amount[NOW]
    at_limit = what == AT_LIMIT
    _leave(state, r)
    if at_limit:
        state.amount[NOW] = state.amount[LIMIT]
    _eliminate(state, change, r, reduced_cost)
    state.kind[r], state.item[r], state.value[r] = kind, item, step
    if kind == SLACK:
        state.place_of[item] = r
    elif kind == PATH:
        k = state.owner[item]
        state.after[r] = state.first[k]
        state.first[k] = r
    else:
        state.number[RISE_PLACE] = r
        state.amount[NOW] = step
    return at_limit


@run_small_in_python(max_elements=60_000)
@njit(cache=True)
def enter_slack(state: State, e: int) -> None:
    """Let the slack of link e replace t in the basis, at its value."""
    change = state.inverse[e].copy()
    r = state.number[RISE_PLACE]
    _leave(state, r)
    _eliminate(state, change, r, state.price[e])
    state.kind[r], state.item[r], state.value[r] = SLACK, e, 0.0
    state.place_of[e] = r


@inner
def enter_full_links(state: State, change: Floats, rate: Floats, seen: Ints, limit: int) -> int:
    """Let slacks of negative price enter; return the number of pivots, negative where t came to its limit."""
    count, none = 0, np.int64(-1)
    while count < limit:
        worst, scale = none, 0.0
        for e in range(len(state.price)):
            scale = max(scale, abs(state.price[e]))
        lowest = -COST_TOLERANCE * scale
        for e in range(len(state.price)):
            if state.place_of[e] < 0 and state.price[e] < lowest:
                worst, lowest = np.int64(e), state.price[e]
        if worst < 0:
            return count
        for j in range(len(change)):
            change[j] = state.inverse[worst, j]
        test = limit_step(state, change, none, 0.0, rate, seen)
        if test[0] == NO_LIMIT:
            return count
        count += 1
        if pivot(state, change, np.int64(SLACK), worst, none, state.price[worst], test):
            return -count
    return count


@inner
def length_of(state: State, path: int) -> float:
    total, links = 0.0, len(state.price)
    for j in range(state.start[path], state.end[path]):
        e = state.link[j]
        total += state.cost[e]
        if e < links:
            total += state.price[e]
    return total


class Tree(NamedTuple):
    """A tree of shortest paths: (N,) the first link of each node on the way to the root."""

    root: int
    parent: Ints32


@inner
def add_path(
    state: State,
    graph: Graph,
    given_paths: GivenPaths,
    k: int,
    node: int,
    tree: Tree,
    path_index: int,
) -> int:
    """Write a path behind the known ones, without counting it in; return its number.

    path_index  -2: leave traffic out; -1: the path of the tree; else a given path
    """
    p: int = state.used[PATHS]
    i = state.used[LINKS]
    state.owner[p] = k
    state.start[p] = i
    if path_index == -2:
        state.link[i] = len(state.price)
        i += 1
    elif path_index >= 0:
        for j in range(given_paths.start[path_index], given_paths.start[path_index + 1]):
            state.link[i] = given_paths.link[j]
            i += 1
    else:
        v = node
        while v != tree.root:
            state.link[i] = tree.parent[v]
            i += 1
            v = graph.head[tree.parent[v]]
    state.end[p] = i
    return p


@inner
def fix_served(demands: Demands, state: State) -> bool:
    """Fix the demands that are at their rates, and set the next limit of t; return whether none is left."""
    t, position = state.amount[LIMIT] * (1.0 + 1e-12), state.number[QUEUE_PLACE]
    while position < len(state.queue) and state.queue[position] >= 0:
        k = state.queue[position]
        if demands.rate[k] > t * state.slope[k]:
            break
        add_slope(state, k, -1.0)
        state.fixed[k], state.slope[k] = demands.rate[k], 0.0
        position += 1
    state.number[QUEUE_PLACE] = position
    if position == len(state.queue) or state.queue[position] < 0:
        return True
    k = state.queue[position]
    state.amount[LIMIT] = demands.rate[k] / state.slope[k]
    return False


@inner
def enter_rise(demands: Demands, state: State, change: Floats, rate: Floats, seen: Ints) -> int:
    """Let t enter the basis, past all limits at which demands are served; return a reason to stop, or -1."""
    none = np.int64(-1)
    while True:
        reduced_cost = _rise_direction(state, change)
        test = limit_step(state, change, none, 1.0, rate, seen)
        if test[0] == NO_LIMIT:
            return UNBOUNDED
        if test[0] != AT_LIMIT:
            pivot(state, change, np.int64(RISE), none, none, reduced_cost, test)
            return -1
        _move(state, change, test[2])
        state.amount[NOW] = state.amount[LIMIT]
        if fix_served(demands, state):
            return SERVED
        largest = 0.0
        for e in range(len(state.rise)):
            largest = max(largest, state.rise[e])
        if largest < LEAST_SLOPE:
            return CALL
