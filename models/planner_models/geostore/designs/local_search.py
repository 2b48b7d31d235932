"""Local search of the replicas of one component by adding, dropping and swapping: compiled kernels.

The cost of replicas is that of the best attachments. Copies are summed over the replicas of a group once for
all users.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner_models.geostore.designs.relaxation import Arrays

LEAST_SAVING: Final = 1e-9
"""Relative saving from which a change is one."""


@run_small_in_python(max_elements=600)
@kernel
def _list_regions(opened: Bools) -> Ints:
    """Return the regions with a replica of any group."""
    groups, regions = opened.shape
    listed = np.empty(regions, dtype=np.int64)
    number = 0
    for j in range(regions):
        for g in range(groups):
            if opened[g, j]:
                listed[number] = j
                number += 1
                break
    return listed[:number]


@run_small_in_python(max_elements=600)
@kernel
def _count_violations(data: Arrays, opened: Bools, regions: Ints) -> float:
    """Return the total violation of numbers, covers and closure; `regions` has all with a replica."""
    violated = 0.0
    for g in range(len(opened)):
        number = opened[g].sum()
        violated += max(0, data.least[g] - number) + max(0, number - data.most[g])
    for k in range(len(data.need)):
        held = 0
        for j in regions:
            if data.cover[k, j] and opened[data.cover_group[k], j]:
                held += 1
        violated += max(0, data.need[k] - held)
    for e in range(len(data.child)):
        for j in regions:
            if opened[data.child[e], j] and not opened[data.parent[e], j]:
                violated += 1
    return violated


@run_small_in_python(max_elements=600)
@kernel
def _sum_copies(data: Arrays, opened: Bools, regions: Ints) -> Floats:
    """Return the price of a GB from each replica to all others of its group, (G, regions); 0 for none."""
    total = np.zeros((len(opened), len(regions)))
    for g in range(len(opened)):
        for j in regions:
            if not opened[g, j]:
                continue
            for position, a in enumerate(regions):
                if opened[g, a]:
                    total[g, position] += data.price_to[g, j, a]
    return total


@run_small_in_python(max_elements=600)
@kernel
def _fill_user_costs(
    data: Arrays, opened: Bools, regions: Ints, copies: Floats, i: int, cost: Floats
) -> None:
    """Set the cost of a user at each region with a replica: attachment and copies; inf for none."""
    for position, a in enumerate(regions):
        cost[position] = data.attachment[i, a]
    for g in range(len(opened)):
        if not data.uses[g, i]:
            continue
        volume = data.volume[g, i]
        for position, a in enumerate(regions):
            if not opened[g, a]:
                cost[position] = np.inf
            elif volume > 0:
                cost[position] += volume * copies[g, position]


@run_small_in_python(max_elements=600)
@kernel
def placement_cost(data: Arrays, opened: Bools) -> tuple[float, float]:
    """Return the number of constraints that replicas violate, and their cost with the best attachments."""
    regions = _list_regions(opened)
    violated, total = _count_violations(data, opened, regions), 0.0
    for g in range(len(opened)):
        for j in regions:
            if opened[g, j]:
                total += data.opening[g, j]
    copies = _sum_copies(data, opened, regions)
    cost = np.zeros(len(regions))
    for i in range(len(data.attachment)):
        _fill_user_costs(data, opened, regions, copies, i, cost)
        for _ in range(data.served_by[i]):
            lowest = _take_cheapest(cost)
            if np.isinf(lowest):
                violated += 1
            else:
                total += lowest
    return violated, total


@run_small_in_python(max_elements=600)
@kernel
def _take_cheapest(cost: Floats) -> float:
    """Return the least cost, and make it inf; inf where there is none."""
    best, lowest = -1, np.inf
    for position in range(len(cost)):
        if cost[position] < lowest:
            best, lowest = position, cost[position]
    if best >= 0:
        cost[best] = np.inf
    return lowest


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
def _try_region(
    data: Arrays, state: Ints, current: Bools, g: int, j: int, best: Bools, lowest: Floats
) -> bool:
    """Try to add or drop a replica, and to move it to each other region; return whether one is better.

    best, lowest  replicas of the best trial so far, and its violations and cost; written where one is better
    """
    is_improved = False
    for k in range(-1, current.shape[1]):  # -1: add or drop j alone; else move it to k
        if k >= 0 and (not current[g, j] or current[g, k] or state[g, k] == 0):
            continue
        trial = current.copy()
        if k >= 0 and not _set_replica(data, state, trial, g, k, True):
            continue
        if not _set_replica(data, state, trial, g, j, not current[g, j]):
            continue
        violated, cost = placement_cost(data, trial)
        if _is_better(violated, cost, lowest[0], lowest[1]):
            is_improved, lowest[0], lowest[1] = True, violated, cost
            best[:] = trial
    return is_improved


@run_small_in_python(max_elements=600)
@kernel
def improve(data: Arrays, state: Ints, start: Bools, passes: int) -> tuple[Bools, float, float]:
    """Return replicas after local search by adding, dropping and swapping, violations and cost.

    The best change of each pass is made, fewer violations before lower cost, until none improves.
    """
    groups, regions = start.shape
    current, best = start.copy(), start.copy()
    lowest = np.array(placement_cost(data, current))
    for _ in range(passes):
        is_improved = False
        for g in range(groups):
            for j in range(regions):
                if state[g, j] == 0 or (state[g, j] == 1 and current[g, j]):
                    continue
                if _try_region(data, state, current, g, j, best, lowest):
                    is_improved = True
        if not is_improved:
            break
        current[:] = best
    return current, lowest[0], lowest[1]
