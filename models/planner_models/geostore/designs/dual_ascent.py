"""Dual ascent of a group alone, for the first prices of attachments: compiled kernels.

At given prices of copies the program is that of uncapacitated facility location: the price of each user rises
until a replica that would gain has no cost left to pay (Erlenkotter 1978). A group has a least number n of
replicas: the ascent shares out all costs of replicas, or what they exceed the n-th smallest by, which the
bound has n times; the better one is kept.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner_models.geostore.designs.relaxation import (
    Arrays,
    Multipliers,
    add_copies,
    attach_cheapest,
    open_cheapest,
    reduced_costs,
)

MAX_SWEEPS: Final = 200


@run_small_in_python(max_elements=600)
@kernel
def _raise_user(value: Floats, slack: Floats, price: float) -> float:
    """Return the price of a user after one rise: to the next value of a region, or until slack is used up.

    value  (N,) cost of the user at each region
    slack  (N,) cost of each replica that no user pays yet; what this user pays more is taken off
    """
    limit = np.inf
    for j in range(len(value)):
        limit = min(limit, value[j] - price if value[j] > price else slack[j])
    if np.isinf(limit):
        return price
    for j in range(len(value)):
        if value[j] <= price:
            slack[j] = max(slack[j] - limit, 0.0)
    return price + limit


@run_small_in_python(max_elements=600)
@kernel
def _value_users(data: Arrays, state: Ints, prices: Multipliers) -> Floats:
    """Return the cost of each user at each region under the prices of copies, (I, N)."""
    users, regions = data.attachment.shape
    value = data.attachment.copy()
    for i in range(users):
        for j in range(regions):
            if state[0, j] == 0:
                value[i, j] = np.inf
        if data.volume[0, i] > 0:
            add_copies(data, state, prices, 0, i, value[i])
    return value


@run_small_in_python(max_elements=600)
@kernel
def _raise_all(value: Floats, slack: Floats) -> Floats:
    """Return the price of each user, (I,), after all rises."""
    users = len(value)
    level = np.empty(users)
    for i in range(users):
        level[i] = value[i].min()
    for _ in range(MAX_SWEEPS):
        is_raised = False
        for i in range(users):
            raised = level[i] if np.isinf(level[i]) else _raise_user(value[i], slack, level[i])
            if raised > level[i]:
                level[i], is_raised = raised, True
        if not is_raised:
            break
    return level


@run_small_in_python(max_elements=600)
@kernel
def _bound(data: Arrays, state: Ints, prices: Multipliers, attached: Bools) -> float:
    """Return the bound of prices without those of covers."""
    _, value = open_cheapest(data, state, reduced_costs(data, prices))
    return value + attach_cheapest(data, state, prices, attached)


@run_small_in_python(max_elements=600)
@kernel
def ascend_dual(data: Arrays, state: Ints, prices: Multipliers) -> None:
    """Set the prices of attachments of one group, (1, I, N), by dual ascent at its prices of copies."""
    value = _value_users(data, state, prices)
    attached = np.zeros(value.shape, dtype=np.bool_)
    before = reduced_costs(data, prices)[0]
    best_bound, best = _bound(data, state, prices, attached), prices.attach.copy()
    threshold = np.sort(before)[min(data.least[0], len(before)) - 1]
    for base in (0.0, max(threshold, 0.0)):
        level = _raise_all(value, np.maximum(before - base, 0.0))
        for i in range(len(value)):
            for j in range(len(before)):
                is_paid = np.isfinite(value[i, j]) and value[i, j] < level[i]
                prices.attach[0, i, j] = level[i] - value[i, j] if is_paid else 0.0
        bound = _bound(data, state, prices, attached)
        if bound > best_bound:
            best_bound, best = bound, prices.attach.copy()
    prices.attach[:] = best
