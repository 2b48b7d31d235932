"""Branch and bound over ports: the unions of port sets that save the most at given prices.

A union of `size` ports saves, for each port set within it, the set's price less its weight times `size`,
where that is positive. Each node has ports that the union has, and ports that it has not; a port that it has
not excludes all sets with it. What the sets that are left could save at each size, if no two of them excluded
each other, bounds all unions below the node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats, Ints
from planner.bits import count_bits
from planner.compiled import njit, run_small_in_python
from planner_models.multicast.plan.meta_groups import Masks


def search_unions(
    sets: Masks, weights: Floats, price: Floats, min_value: float, most_nodes: int, *, every: bool = False
) -> tuple[Masks, Floats, bool]:
    """Return the unions of more value than `min_value` with their values, and whether these are all.

    A union is listed where it is the union of the sets that save something in it: a larger one is worse.
    In a plan, each union may be replaced by that of the sets that save something there; where two become the
    same, they count once, as no set is in both. So the values bound every plan.

    sets        (n,) port sets, not all distinct
    every       list the unions of any sets, whether these save something there
    most_nodes  of the search; beyond, not all unions are found
    """
    ports = int(np.bitwise_or.reduce(sets)).bit_length() if len(sets) else 0
    size = np.bitwise_count(sets).astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # the largest union in which each set saves something
        largest = np.clip(np.ceil(price / weights) - 1, 0, ports).astype(np.int64)
    rows = np.arange(len(sets)) if every else np.flatnonzero(largest >= size)
    unions, values, count, is_whole = _search(
        sets[rows], weights[rows], price[rows], largest[rows], min_value, ports, most_nodes, every
    )
    return unions[:count].copy(), values[:count].copy(), bool(is_whole)


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def _search(  # noqa: C901 - one compiled loop
    sets: Masks,
    weights: Floats,
    price: Floats,
    largest: Ints,
    min_value: float,
    ports: int,
    most_nodes: int,
    every: bool,
) -> tuple[Masks, Floats, int, bool]:
    """Return unions, values, their number, and whether the search ended; depth first, one port a level."""
    levels = ports + 2
    candidates = np.empty((levels, len(sets)), dtype=np.int64)  # sets that a union below the node may contain
    count = np.zeros(levels, dtype=np.int64)
    inside = np.zeros(levels, dtype=np.uint64)
    branch = np.zeros(levels, dtype=np.uint64)  # the port that each level branches on
    state = np.zeros(levels, dtype=np.int64)  # 0: new; 1: with the port is done; 2: both are
    unions, values, listed = np.zeros(1024, dtype=np.uint64), np.zeros(1024), 0
    ahead, gains = np.zeros((2, levels)), np.zeros(ports + 1)
    for i in range(len(sets)):
        candidates[0, i] = i
    count[0] = len(sets)
    depth, nodes = 0, 0
    while depth >= 0:
        if state[depth] == 0:
            nodes += 1
            if nodes > most_nodes:
                return unions, values, listed, False
            mask = inside[depth]
            size = count_bits(mask)
            top = _prune(
                sets, weights, price, largest, candidates[depth], count, depth, mask, min_value, ahead, every
            )
            if top < 0:
                depth -= 1
                continue
            branch[depth] = _choose_port(sets, weights, price, candidates[depth], count[depth], mask, gains)
            if branch[depth] == 0:
                value, union = 0.0, np.uint64(0)
                for a in range(count[depth]):
                    i = candidates[depth, a]
                    value += max(price[i] - weights[i] * size, 0.0)
                    union |= sets[i]
                if union == mask and value > min_value:
                    if listed == len(unions):
                        unions = np.append(unions, np.zeros_like(unions))
                        values = np.append(values, np.zeros_like(values))
                    unions[listed], values[listed] = mask, value
                    listed += 1
                depth -= 1
                continue
            inside[depth + 1] = mask | branch[depth]
            candidates[depth + 1, : count[depth]] = candidates[depth, : count[depth]]
            count[depth + 1] = count[depth]
        elif state[depth] == 1:
            next_count = 0
            for a in range(count[depth]):
                i = candidates[depth, a]
                if sets[i] & branch[depth] == 0:
                    candidates[depth + 1, next_count] = i
                    next_count += 1
            inside[depth + 1], count[depth + 1] = inside[depth], next_count
        else:
            depth -= 1
            continue
        state[depth] += 1
        depth += 1
        state[depth] = 0
    return unions, values, listed, True


@njit(cache=True, nogil=True)
def _prune(
    sets: Masks,
    weights: Floats,
    price: Floats,
    largest: Ints,
    candidates: Ints,
    count: Ints,
    depth: int,
    mask: np.uint64,
    min_value: float,
    ahead: NDArray[np.float64],
    every: bool,
) -> int:
    """Leave in `candidates` the sets that a union above `min_value` may contain; return its most ports.

    -1 where there is no such union; `ahead` is work space.
    """
    size, last = count_bits(mask), ahead.shape[1] - 2
    ahead[:] = 0.0
    next_count = 0
    for a in range(count[depth]):
        i = candidates[a]
        union_size = count_bits(mask | sets[i])
        if every or union_size <= largest[i]:
            candidates[next_count] = i
            next_count += 1
        if union_size <= largest[i]:
            ahead[0, union_size] += price[i]
            ahead[1, union_size] += weights[i]
            ahead[0, largest[i] + 1] -= price[i]
            ahead[1, largest[i] + 1] -= weights[i]
    top, prices, slopes = -1, 0.0, 0.0
    for ports in range(size, last + 1):
        prices += ahead[0, ports]
        slopes += ahead[1, ports]
        if prices - slopes * ports > min_value:
            top = ports
    count[depth] = 0
    if top >= 0:
        for a in range(next_count):
            if count_bits(mask | sets[candidates[a]]) <= top:
                candidates[count[depth]] = candidates[a]
                count[depth] += 1
    return top


@njit(cache=True, nogil=True)
def _choose_port(
    sets: Masks, weights: Floats, price: Floats, candidates: Ints, count: int, mask: np.uint64, gains: Floats
) -> np.uint64:
    """Return the port, as a bit, outside of `mask` with sets that save the most now; 0 if there is none."""
    gains[:] = 0.0
    size, best = count_bits(mask), -1
    for a in range(count):
        i = candidates[a]
        remaining = sets[i] & ~mask
        while remaining:
            bit = remaining & (~remaining + np.uint64(1))
            port = count_bits(bit - np.uint64(1))
            gains[port] += max(price[i] - weights[i] * size, 0.0)
            if best < 0 or gains[port] > gains[best]:
                best = port
            remaining ^= bit
    return np.uint64(0) if best < 0 else np.uint64(1) << np.uint64(best)
