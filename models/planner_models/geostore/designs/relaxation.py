"""Lagrangian relaxation of the placement of one component, and local search: compiled kernels.

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
LEAST_SAVING: Final = 1e-9
LEAST_FACTOR: Final = 1e-3
LEAST_SQUARE: Final = 1e-12
MEMORY: Final = 0.1
"""Weight of the newest solution in the mean that branching follows."""


class Arrays(NamedTuple):
    """A component as plain arrays: those of `Component`, prices with the receiving region first."""

    opening: Floats
    attachment: Floats
    volume: Floats
    uses: Bools
    price_to: Floats
    served_by: Ints
    least: Ints
    most: Ints
    cover: Bools
    cover_group: Ints
    need: Ints
    child: Ints
    parent: Ints


class Multipliers(NamedTuple):
    """Prices: of attachments and copies, (G, I, N); covers, (K,); closure, (E, N)."""

    attach: Floats
    copies: Floats
    cover: Floats
    close: Floats


@run_small_in_python(max_elements=600)
@kernel
def reduced_costs(  # noqa: C901 - one compiled loop
    data: Arrays, prices: Multipliers
) -> Floats:
    """Return the cost of each replica under prices, (G, N)."""
    groups, users, regions = prices.attach.shape
    reduced = data.opening.copy()
    for g in range(groups):
        for i in range(users):
            if data.uses[g, i]:
                for j in range(regions):
                    reduced[g, j] -= prices.attach[g, i, j]
                if data.volume[g, i] > 0:
                    for j in range(regions):
                        reduced[g, j] += prices.copies[g, i, j]
    for k in range(len(data.need)):
        for j in range(regions):
            if data.cover[k, j]:
                reduced[data.cover_group[k], j] -= prices.cover[k]
    for e in range(len(data.child)):
        for j in range(regions):
            reduced[data.child[e], j] += prices.close[e, j]
            reduced[data.parent[e], j] -= prices.close[e, j]
    return reduced


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
        order = np.argsort(reduced[g], kind="mergesort")
        for position in range(regions):
            j = order[position]
            if state[g, j] != -1 or number >= data.most[g]:
                continue
            if reduced[g, j] < 0 or number < data.least[g]:
                opened[g, j] = True
                number += 1
                total += reduced[g, j]
        if number < data.least[g]:
            total = np.inf
    return opened, total


@run_small_in_python(max_elements=600)
@kernel
def attach_cheapest(  # noqa: C901 - one compiled loop
    data: Arrays, state: Ints, prices: Multipliers, attached: Bools
) -> float:
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
            volume = data.volume[g, i]
            if volume > 0:
                for j in range(regions):
                    if state[g, j] == 0:
                        continue
                    offset = prices.copies[g, i, j]
                    row = data.price_to[g, j]
                    for a in range(regions):
                        value[a] += min(0.0, volume * row[a] - offset)
        attached[i] = False
        for _ in range(data.served_by[i]):
            best, lowest = -1, np.inf
            for a in range(regions):
                if not attached[i, a] and value[a] < lowest:
                    best, lowest = a, value[a]
            if best < 0:
                return np.inf
            attached[i, best] = True
            total += lowest
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
def _point_users(
    data: Arrays, state: Ints, prices: Multipliers, opened: Bools, attached: Bools, way: Multipliers
) -> float:
    """Set the direction of the prices of attachments and copies; return the sum of its squares."""
    groups, users, regions = prices.attach.shape
    square = 0.0
    for i in range(users):
        entry = 0
        while entry < regions - 1 and not attached[i, entry]:
            entry += 1
        for g in range(groups):
            if not data.uses[g, i]:
                continue
            volume = data.volume[g, i]
            for j in range(regions):
                if state[g, j] == 0:
                    continue
                is_open = 1.0 if opened[g, j] else 0.0
                slope = (1.0 if attached[i, j] else 0.0) - is_open
                slope = _smooth(slope, way.attach[g, i, j], prices.attach[g, i, j], False)
                if np.isinf(data.attachment[i, j]):
                    slope = 0.0
                way.attach[g, i, j] = slope
                square += slope * slope
                if volume > 0:
                    price = prices.copies[g, i, j]
                    copied = 1.0 if volume * data.price_to[g, j, entry] < price else 0.0
                    slope = _smooth(is_open - copied, way.copies[g, i, j], price, True)
                    way.copies[g, i, j] = slope
                    square += slope * slope
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
        square = _point_users(data, state, prices, opened, attached, way)
        square += _point_rules(data, prices, opened, way)
        if square < LEAST_SQUARE:
            break
        step = factor * (upper - value) / square
        prices.attach[:] = np.maximum(prices.attach + step * way.attach, 0.0)
        prices.copies[:] += step * way.copies
        prices.cover[:] = np.maximum(prices.cover + step * way.cover, 0.0)
        prices.close[:] = np.maximum(prices.close + step * way.close, 0.0)
    return bound, best, mean


@run_small_in_python(max_elements=600)
@kernel
def _count_violations(data: Arrays, opened: Bools) -> float:
    """Return the total violation of numbers, covers and closure."""
    groups, regions = opened.shape
    violated = 0.0
    for g in range(groups):
        number = opened[g].sum()
        violated += max(0, data.least[g] - number) + max(0, number - data.most[g])
    for k in range(len(data.need)):
        held = 0
        for j in range(regions):
            if data.cover[k, j] and opened[data.cover_group[k], j]:
                held += 1
        violated += max(0, data.need[k] - held)
    for e in range(len(data.child)):
        for j in range(regions):
            if opened[data.child[e], j] and not opened[data.parent[e], j]:
                violated += 1
    return violated


@run_small_in_python(max_elements=600)
@kernel
def _fill_user_costs(data: Arrays, opened: Bools, i: int, cost: Floats) -> None:
    """Set the cost of a user at each region, (N,): attachment and copies to the replicas; inf for none."""
    groups, regions = opened.shape
    cost[:] = data.attachment[i]
    for g in range(groups):
        if not data.uses[g, i]:
            continue
        volume = data.volume[g, i]
        for a in range(regions):
            if not opened[g, a]:
                cost[a] = np.inf
        if volume > 0:
            for j in range(regions):
                if opened[g, j]:
                    for a in range(regions):
                        cost[a] += volume * data.price_to[g, j, a]


@run_small_in_python(max_elements=600)
@kernel
def placement_cost(data: Arrays, opened: Bools) -> tuple[float, float]:
    """Return the number of constraints that replicas violate, and their cost with the best attachments."""
    groups, regions = opened.shape
    violated, total = _count_violations(data, opened), 0.0
    for g in range(groups):
        for j in range(regions):
            if opened[g, j]:
                total += data.opening[g, j]
    cost = np.zeros(regions)
    for i in range(len(data.attachment)):
        _fill_user_costs(data, opened, i, cost)
        for _ in range(data.served_by[i]):
            a = int(np.argmin(cost))
            if np.isinf(cost[a]):
                violated += 1
            else:
                total += cost[a]
                cost[a] = np.inf
    return violated, total


@run_small_in_python(max_elements=600)
@kernel
def _set_replica(data: Arrays, state: Ints, opened: Bools, g: int, j: int, is_open: bool) -> bool:
    """Open or close a replica with those that closure needs; return whether fixed replicas let it."""
    groups = len(opened)
    if state[g, j] != -1 and (state[g, j] == 1) != is_open:
        return False
    opened[g, j] = is_open
    for _ in range(groups):
        is_changed = False
        for e in range(len(data.child)):
            child, parent = data.child[e], data.parent[e]
            if opened[child, j] and not opened[parent, j]:
                other = parent if is_open else child
                if state[other, j] != -1 and (state[other, j] == 1) != is_open:
                    return False
                opened[other, j] = is_open
                is_changed = True
        if not is_changed:
            break
    return True


@run_small_in_python(max_elements=600)
@kernel
def _is_better(violated: float, cost: float, than_violated: float, than_cost: float) -> bool:
    """Return whether fewer constraints are violated, or as many at less cost."""
    if violated != than_violated:
        return violated < than_violated
    return cost < than_cost - LEAST_SAVING * abs(than_cost)


@run_small_in_python(max_elements=600)
@kernel
def improve(  # noqa: C901 - one compiled loop
    data: Arrays, state: Ints, start: Bools, passes: int
) -> tuple[Bools, float, float]:
    """Return replicas after local search by adding, dropping and swapping, violations and cost.

    The best change of each pass is made, fewer violations before lower cost, until none improves.
    """
    groups, regions = start.shape
    current = start.copy()
    violated, cost = placement_cost(data, current)
    best, trial = current.copy(), current.copy()
    for _ in range(passes):
        is_improved, best_violated, best_cost = False, violated, cost
        for g in range(groups):
            for j in range(regions):
                if state[g, j] == 0 or (state[g, j] == 1 and current[g, j]):
                    continue
                for k in range(-1, regions):  # -1: add or drop j alone; else move it to k
                    if k >= 0 and (not current[g, j] or current[g, k] or state[g, k] == 0):
                        continue
                    trial[:] = current
                    if k >= 0 and not _set_replica(data, state, trial, g, k, True):
                        continue
                    if not _set_replica(data, state, trial, g, j, not current[g, j]):
                        continue
                    new_violated, new_cost = placement_cost(data, trial)
                    if _is_better(new_violated, new_cost, best_violated, best_cost):
                        is_improved, best_violated, best_cost = True, new_violated, new_cost
                        best[:] = trial
        if not is_improved:
            break
        current[:] = best
        violated, cost = best_violated, best_cost
    return current, violated, cost
