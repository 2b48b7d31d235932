"""Lagrangian relaxation of the placement of one component: compiled kernels.

The program, for replicas y, attachments x and copies u (Wu et al. 2013 and Bang et al. 2024 have its parts):

    min  sum s_gj y_gj + sum c_ia x_ia + sum w_gi e_gaj u_giaj
    s.t. sum_a x_ia = R_i,  x_ia <= y_ga where i uses g,  sum_a u_giaj = y_gj,  u_giaj <= x_ia,
         y_child,j <= y_parent,j,  sum of y in each cover >= need,  least_g <= sum_j y_gj <= most_g

Prices of attachments (lambda), of copies (mu), of covers (nu) and of closure (kappa) leave one term for each
replica and one for each user. The bound that they reach is that of the linear program, as each term has the
integrality property.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import kernel, run_small_in_python

SMOOTHING: Final = 0.3
"""Weight of the newest subgradient in the direction of a step."""
STALL_LIMIT: Final = 8
"""Iterations without a better bound after which steps are halved."""
LEAST_RISE: Final = 1e-4
"""Share of the gap that a better bound must close to count as progress."""
LEAST_FACTOR: Final = 1e-3
LEAST_SQUARE: Final = 1e-12
MEMORY: Final = 0.1
"""Weight of the newest solution in the mean that branching follows."""


class Arrays(NamedTuple):
    """A component as plain arrays: those of `Component`, prices with the receiving region first.

    cheapest  (G, I, N) least cost of a user's copies to each region; at prices up to it, no copies are made
    """

    opening: Floats
    attachment: Floats
    volume: Floats
    uses: Bools
    price_to: Floats
    cheapest: Floats
    served_by: Ints
    least: Ints
    most: Ints
    cover: Bools
    cover_group: Ints
    need: Ints
    child: Ints
    parent: Ints


class Solution(NamedTuple):
    """Cheapest replicas, (G, N), and attachments, (I, N), under prices."""

    opened: Bools
    attached: Bools


class Multipliers(NamedTuple):
    """Prices: of attachments and copies, (G, I, N); covers, (K,); closure, (E, N)."""

    attach: Floats
    copies: Floats
    cover: Floats
    close: Floats


@run_small_in_python(max_elements=600)
@kernel
def reduced_costs(data: Arrays, prices: Multipliers) -> Floats:
    """Return the cost of each replica under prices, (G, N)."""
    groups, users, regions = prices.attach.shape
    reduced = data.opening.copy()
    for g in range(groups):
        for i in range(users):
            if not data.uses[g, i]:
                continue
            for j in range(regions):
                reduced[g, j] -= prices.attach[g, i, j]
            if data.volume[g, i] > 0:
                for j in range(regions):
                    reduced[g, j] += prices.copies[g, i, j]
    _add_rules(data, prices, reduced)
    return reduced


@run_small_in_python(max_elements=600)
@kernel
def _add_rules(data: Arrays, prices: Multipliers, reduced: Floats) -> None:
    """Add the prices of covers and closure to the cost of each replica, (G, N)."""
    regions = reduced.shape[1]
    for k in range(len(data.need)):
        for j in range(regions):
            if data.cover[k, j]:
                reduced[data.cover_group[k], j] -= prices.cover[k]
    for e in range(len(data.child)):
        for j in range(regions):
            reduced[data.child[e], j] += prices.close[e, j]
            reduced[data.parent[e], j] -= prices.close[e, j]


@run_small_in_python(max_elements=600)
@kernel
def open_cheapest(data: Arrays, state: Ints, reduced: Floats) -> tuple[Bools, float]:
    """Return the replicas of least cost that keep the numbers of each group, (G, N), and their cost."""
    groups, regions = reduced.shape
    opened = np.zeros((groups, regions), dtype=np.bool_)
    total = 0.0
    for g in range(groups):
        number = 0
        for j in range(regions):
            if state[g, j] == 1:
                opened[g, j] = True
                number += 1
                total += reduced[g, j]
        while number < data.most[g]:
            best, lowest = -1, 0.0 if number >= data.least[g] else np.inf
            for j in range(regions):
                if state[g, j] == -1 and not opened[g, j] and reduced[g, j] < lowest:
                    best, lowest = j, reduced[g, j]
            if best < 0:
                break
            opened[g, best] = True
            number += 1
            total += lowest
        if number < data.least[g]:
            total = np.inf
    return opened, total


@run_small_in_python(max_elements=600)
@kernel
def add_copies(data: Arrays, state: Ints, prices: Multipliers, g: int, i: int, value: Floats) -> None:
    """Add the copies of a user's writes that pay under prices to the value of each attachment, (N,)."""
    volume, regions = data.volume[g, i], len(value)
    for j in range(regions):
        if state[g, j] == 0:
            continue
        offset = prices.copies[g, i, j]
        if offset <= data.cheapest[g, i, j]:
            continue
        row = data.price_to[g, j]
        for a in range(regions):
            value[a] += min(0.0, volume * row[a] - offset)


@run_small_in_python(max_elements=600)
@kernel
def _attach_user(value: Floats, number: int, attached: Bools) -> float:
    """Set the attachments of least value of a user, (N,); return their total, inf where there are too few."""
    attached[:] = False
    total = 0.0
    for _ in range(number):
        best, lowest = -1, np.inf
        for a in range(len(value)):
            if not attached[a] and value[a] < lowest:
                best, lowest = a, value[a]
        if best < 0:
            return np.inf
        attached[best] = True
        total += lowest
    return total


@run_small_in_python(max_elements=600)
@kernel
def attach_cheapest(data: Arrays, state: Ints, prices: Multipliers, attached: Bools) -> float:
    """Return the least cost of all users under prices, and set where each is attached, (I, N)."""
    groups, users, regions = prices.attach.shape
    total = 0.0
    value = np.empty(regions)
    for i in range(users):
        value[:] = data.attachment[i]
        for g in range(groups):
            if not data.uses[g, i]:
                continue
            for a in range(regions):
                value[a] += prices.attach[g, i, a]
                if state[g, a] == 0:
                    value[a] = np.inf
            if data.volume[g, i] > 0:
                add_copies(data, state, prices, g, i, value)
        total += _attach_user(value, data.served_by[i], attached[i])
    return total


@run_small_in_python(max_elements=600)
@kernel
def copy_prices(target: Multipliers, source: Multipliers) -> None:
    """Set prices to others."""
    target.attach[:] = source.attach
    target.copies[:] = source.copies
    target.cover[:] = source.cover
    target.close[:] = source.close


@run_small_in_python(max_elements=600)
@kernel
def new_prices(like: Multipliers) -> Multipliers:
    """Return prices of 0 of the same shapes."""
    return Multipliers(
        np.zeros_like(like.attach),
        np.zeros_like(like.copies),
        np.zeros_like(like.cover),
        np.zeros_like(like.close),
    )


@run_small_in_python(max_elements=600)
@kernel
def _smooth(slope: float, before: float, price: float, is_sign_free: bool) -> float:
    """Return the direction of a price: the mean of its slopes, 0 where it would fall below 0."""
    direction = SMOOTHING * slope + (1 - SMOOTHING) * before
    if not is_sign_free and price <= 0 and direction < 0:
        return 0.0
    return direction


@run_small_in_python(max_elements=600)
@kernel
def _point_attachments(
    data: Arrays, state: Ints, prices: Multipliers, solution: Solution, way: Multipliers, g: int, i: int
) -> float:
    """Set the direction of the prices of a user's attachments to a group; return the sum of its squares."""
    square = 0.0
    for j in range(state.shape[1]):
        if state[g, j] == 0:
            continue
        slope = (1.0 if solution.attached[i, j] else 0.0) - (1.0 if solution.opened[g, j] else 0.0)
        slope = _smooth(slope, way.attach[g, i, j], prices.attach[g, i, j], False)
        if np.isinf(data.attachment[i, j]):
            slope = 0.0
        way.attach[g, i, j] = slope
        square += slope * slope
    return square


@run_small_in_python(max_elements=600)
@kernel
def _point_copies(
    data: Arrays, state: Ints, prices: Multipliers, solution: Solution, way: Multipliers, g: int, i: int
) -> float:
    """Set the direction of the prices of a user's copies of a group; return the sum of its squares."""
    regions, volume = state.shape[1], data.volume[g, i]
    entry = 0
    while entry < regions - 1 and not solution.attached[i, entry]:
        entry += 1
    square = 0.0
    for j in range(regions):
        if state[g, j] == 0:
            continue
        price = prices.copies[g, i, j]
        copied = 1.0 if volume * data.price_to[g, j, entry] < price else 0.0
        is_open = 1.0 if solution.opened[g, j] else 0.0
        slope = _smooth(is_open - copied, way.copies[g, i, j], price, True)
        way.copies[g, i, j] = slope
        square += slope * slope
    return square


@run_small_in_python(max_elements=600)
@kernel
def _point_users(
    data: Arrays, state: Ints, prices: Multipliers, solution: Solution, way: Multipliers
) -> float:
    """Set the direction of the prices of attachments and copies; return the sum of its squares."""
    groups, users = data.uses.shape
    square = 0.0
    for i in range(users):
        for g in range(groups):
            if not data.uses[g, i]:
                continue
            square += _point_attachments(data, state, prices, solution, way, g, i)
            if data.volume[g, i] > 0:
                square += _point_copies(data, state, prices, solution, way, g, i)
    return square


@run_small_in_python(max_elements=600)
@kernel
def _point_rules(data: Arrays, prices: Multipliers, opened: Bools, way: Multipliers) -> float:
    """Set the direction of the prices of covers and closure; return the sum of its squares."""
    regions = opened.shape[1]
    square = 0.0
    for k in range(len(data.need)):
        held = 0.0
        for j in range(regions):
            if data.cover[k, j] and opened[data.cover_group[k], j]:
                held += 1.0
        way.cover[k] = _smooth(data.need[k] - held, way.cover[k], prices.cover[k], False)
        square += way.cover[k] ** 2
    for e in range(len(data.child)):
        for j in range(regions):
            slope = 1.0 if opened[data.child[e], j] else 0.0
            slope -= 1.0 if opened[data.parent[e], j] else 0.0
            way.close[e, j] = _smooth(slope, way.close[e, j], prices.close[e, j], False)
            square += way.close[e, j] ** 2
    return square


@run_small_in_python(max_elements=600)
@kernel
def _step(data: Arrays, prices: Multipliers, way: Multipliers, step: float) -> None:
    """Change prices along their directions; only those of copies may be below 0."""
    groups, users, regions = prices.attach.shape
    for g in range(groups):
        for i in range(users):
            if not data.uses[g, i]:
                continue
            for j in range(regions):
                prices.attach[g, i, j] = max(prices.attach[g, i, j] + step * way.attach[g, i, j], 0.0)
            if data.volume[g, i] > 0:
                for j in range(regions):
                    prices.copies[g, i, j] += step * way.copies[g, i, j]
    prices.cover[:] = np.maximum(prices.cover + step * way.cover, 0.0)
    prices.close[:] = np.maximum(prices.close + step * way.close, 0.0)


@run_small_in_python(max_elements=600)
@kernel
def ascend(
    data: Arrays, state: Ints, start: Multipliers, upper: float, iterations: int, tolerance: float
) -> tuple[float, Multipliers, Floats]:
    """Return the best bound of a subgradient ascent, its prices, and the mean of the replicas, (G, N).

    upper      cost of the incumbent; the ascent ends where its bound is within `tolerance` of it
    """
    groups, users, regions = start.attach.shape
    prices, best, way = new_prices(start), new_prices(start), new_prices(start)
    copy_prices(prices, start)
    copy_prices(best, start)
    attached = np.zeros((users, regions), dtype=np.bool_)
    mean = np.zeros((groups, regions))
    bound, factor, stalled = -np.inf, 1.0, 0
    for iteration in range(iterations):
        opened, value = open_cheapest(data, state, reduced_costs(data, prices))
        value += attach_cheapest(data, state, prices, attached)
        value += (prices.cover * data.need).sum()
        weight = 1.0 / (iteration + 1) if iteration < 1 / MEMORY else MEMORY
        mean += weight * (opened.astype(np.float64) - mean)
        stalled += 1
        if value > bound:
            if value > bound + LEAST_RISE * max(upper - bound, 0.0):
                stalled = 0
            bound = value
            copy_prices(best, prices)
        if bound >= upper - tolerance or np.isinf(value):
            break
        if stalled >= STALL_LIMIT:
            factor, stalled = factor / 2, 0
            copy_prices(prices, best)
            if factor < LEAST_FACTOR:
                break
        square = _point_users(data, state, prices, Solution(opened, attached), way)
        square += _point_rules(data, prices, opened, way)
        if square < LEAST_SQUARE:
            break
        _step(data, prices, way, factor * (upper - value) / square)
    return bound, best, mean
