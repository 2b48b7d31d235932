"""Local search of channelization: single port sets move to other meta-groups while that saves traffic."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner_models.multicast.designs.channelization.pair_merging import (
    INFINITE_COST,
)
from planner_models.multicast.plan.meta_groups import (
    Masks,
    Meta,
    Rates,
    count_bits,
)

MAX_PASSES: Final = 30
STALL_DIVISOR: Final = 200  # stop where fewer than one set in so many moves


def reassign_sets(sets: Masks, weights: Rates, unions: Masks) -> Meta:
    """Return the meta-group of each port set: its smallest covering union, then moves while they pay."""
    meta = assign_smallest_union(sets, unions)
    move_sets(sets, weights, meta, len(unions))
    return meta


def total_mbps(sets: Masks, weights: Rates, meta: Meta) -> float:
    """Return the traffic of all ports, wanted or not."""
    return float(_sum_traffic(sets, weights, meta, int(meta.max()) + 1))


@njit(cache=True, nogil=True)
def _sum_traffic(sets: Masks, weights: Rates, meta: Meta, count: int) -> float:
    """Return the traffic of all meta-groups at their ports."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
    total = 0.0
    for m in range(count):
        total += load[m] * count_bits(union[m])
    return total


@njit(cache=True, nogil=True)
def assign_smallest_union(sets: Masks, unions: Masks) -> Meta:
    """Return the smallest union that covers each port set."""
    meta = np.zeros(len(sets), dtype=np.int64)
    sizes = np.empty(len(unions), dtype=np.int64)
    for m in range(len(unions)):
        sizes[m] = count_bits(unions[m])
    for i in range(len(sets)):
        least = 65
        for m in range(len(unions)):
            if (sets[i] & ~unions[m]) == 0 and sizes[m] < least:
                least = sizes[m]
                meta[i] = m
    return meta


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc", "contract"})
def _cheapest_join_cost(unions: Masks, loads: Rates, mask: np.uint64, weight: float) -> float:
    """Return the least cost of a set in any meta-group."""
    least = INFINITE_COST
    for m in range(len(unions)):
        least = min(least, weight * count_bits(unions[m] | mask) + loads[m] * count_bits(mask & ~unions[m]))
    return least


@njit(cache=True, nogil=True)
def _find_join(unions: Masks, loads: Rates, mask: np.uint64, weight: float, but: int, cost: float) -> int:
    """Return the first meta-group, other than `but`, where the set costs about that."""
    for m in range(len(unions)):
        price = weight * count_bits(unions[m] | mask) + loads[m] * count_bits(mask & ~unions[m])
        if m != but and price <= cost * (1 + 1e-12):
            return m
    return but


@njit(cache=True, nogil=True)
def move_sets(sets: Masks, weights: Rates, meta: Meta, count: int) -> None:
    """Move single sets to other meta-groups, in `meta`, while enough of the moves pay."""
    union, load = np.zeros(count, dtype=np.uint64), np.zeros(count)
    wanting = np.zeros((count, 64), dtype=np.int32)  # sets of a meta-group that want a port
    for i in range(len(sets)):
        union[meta[i]] |= sets[i]
        load[meta[i]] += weights[i]
        _count_ports(wanting, meta[i], sets[i], 1)
    for _ in range(MAX_PASSES):
        moves = 0
        for i in range(len(sets)):
            a, mask, weight = meta[i], sets[i], weights[i]
            rest = union[a]
            left = mask
            while left:
                low = left & (~left + np.uint64(1))
                if wanting[a, count_bits(low - np.uint64(1))] == 1:
                    rest &= ~low
                left &= left - np.uint64(1)
            saved = load[a] * count_bits(union[a]) - (load[a] - weight) * count_bits(rest)
            if saved <= weight * count_bits(mask) * (1 + 1e-12):
                continue  # it costs its own traffic anywhere
            mine, carried = union[a], load[a]
            union[a], load[a] = np.uint64(0), INFINITE_COST  # not where it is
            cost = _cheapest_join_cost(union, load, mask, weight)
            union[a], load[a] = mine, carried
            if cost < saved * (1 - 1e-9):
                b = _find_join(union, load, mask, weight, a, cost)
                _count_ports(wanting, a, mask, -1)
                _count_ports(wanting, b, mask, 1)
                union[a] = rest
                load[a] = load[a] - weight if rest else 0.0
                union[b] |= mask
                load[b] += weight
                meta[i] = b
                moves += 1
        if moves * STALL_DIVISOR <= len(sets):
            break


@njit(cache=True, nogil=True)
def _count_ports(wanting: NDArray[np.int32], meta: int, mask: np.uint64, by: int) -> None:
    """Add `by` to the number of sets of a meta-group at each port of the mask."""
    while mask:
        low = mask & (~mask + np.uint64(1))
        wanting[meta, count_bits(low - np.uint64(1))] += by
        mask &= mask - np.uint64(1)
