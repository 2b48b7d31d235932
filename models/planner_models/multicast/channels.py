"""Channelization: the groups of one switch share few entries, at the least traffic to wrong ports.

Port sets are bit masks (uint64), rates in Mbit/s. Cost is linear: what a port carries that no member
behind it wants (equation (6) with F the identity).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from planner.backends import Solution, solve
from planner.backends.linear import Columns, LinearProgram, Rows
from planner.errors import InputError
from planner.options import Options

Masks = NDArray[np.uint64]
Rates = NDArray[np.float64]
Meta = NDArray[np.int64]


def extra_mbps(masks: Masks, rates: Rates, meta: Meta) -> float:
    """Traffic to ports without members, where the groups of a meta-group go to all ports of any."""
    if not len(meta):
        return 0.0
    union = np.zeros(int(meta.max()) + 1, dtype=np.uint64)
    np.bitwise_or.at(union, meta, masks)
    return float(rates @ np.bitwise_count(union[meta] & ~masks))


def dedupe(masks: Masks) -> Meta:
    """A meta-group for each distinct port set: no extra traffic."""
    return np.unique(masks, return_inverse=True)[1].astype(np.int64)


def least_extra_mbps(masks: Masks, rates: Rates, table_size: int) -> float:
    """No plan has less extra traffic: of D distinct port sets all but `table_size` must be enlarged.

    Each by one port at least, at its groups' rates; so the cheapest of them are counted.
    """
    distinct, place = np.unique(masks, return_inverse=True)
    weights = np.sort(np.bincount(place, weights=rates, minlength=len(distinct)))
    return float(weights[: max(0, len(distinct) - table_size)].sum())


def algorithm2(
    masks: Masks, rates: Rates, *, table_size: int, ports: int, delta: float = 0.2, spare: int = 0
) -> Meta:
    """The paper's heuristic: one pass over the groups, each to its cheapest meta-group or a new one.

    A new one is opened where the extra cost is above `delta` times the group's own traffic; `spare`
    is the paper's capital delta. Entries for each single port and for all ports are set aside.

    raises  InputError where the table has no room for these and one more
    source  Algorithm 2; the functions delta and COST are not printed there
    """
    if table_size < ports + 2:
        raise InputError(f"table size is {table_size}, Algorithm 2 on {ports} ports needs {ports + 2}")
    raw = _pass(masks, rates, table_size - ports - 1, ports, delta, spare)
    return np.unique(raw, return_inverse=True)[1].astype(np.int64)


@njit(cache=True)
def _bits(mask: np.uint64) -> int:
    count = 0
    while mask:
        mask &= mask - np.uint64(1)
        count += 1
    return count


@njit(cache=True)
def _pass(masks: Masks, rates: Rates, free: int, ports: int, delta: float, spare: int) -> Meta:
    union = np.zeros(free, dtype=np.uint64)
    load = np.zeros(free)
    meta = np.empty(len(masks), dtype=np.int64)
    used = 0
    for g in range(len(masks)):
        size = _bits(masks[g])
        if size >= ports - spare:
            meta[g] = free
            continue
        if size == 1:
            meta[g] = free + 1 + _bits(masks[g] - np.uint64(1))
            continue
        best, cheapest = -1, np.inf
        for m in range(used):
            cost = rates[g] * _bits(union[m] & ~masks[g]) + load[m] * _bits(masks[g] & ~union[m])
            if cost < cheapest:
                best, cheapest = m, cost
        if best < 0 or (used < free and cheapest > delta * rates[g] * size):
            best = used
            used += 1
        union[best] |= masks[g]
        load[best] += rates[g]
        meta[g] = best
    return meta


def agglomerative(masks: Masks, rates: Rates, *, table_size: int) -> Meta:
    """Merges the cheapest pair of port sets until the table holds them; then each goes where it is cheapest.

    raises  InputError for a table without entries
    """
    if table_size < 1:
        raise InputError(f"table size is {table_size}, must be at least 1")
    distinct, place = np.unique(masks, return_inverse=True)
    if len(distinct) <= table_size:
        return place.astype(np.int64)
    weights = np.bincount(place, weights=rates, minlength=len(distinct)).astype(float)
    unions = _merged(distinct, weights, table_size)
    sizes = np.bitwise_count(unions).astype(np.int64)
    # a set that another meta-group covers with fewer ports moves there: rows in blocks bound the memory
    chosen = np.empty(len(distinct), dtype=np.int64)
    for start in range(0, len(distinct), 512):
        part = distinct[start : start + 512, None]
        cost = np.where((part & ~unions[None, :]) == 0, sizes[None, :], 65)
        chosen[start : start + 512] = cost.argmin(axis=1)
    return np.unique(chosen[place], return_inverse=True)[1].astype(np.int64)


@njit(cache=True)
def _nearest(sets: Masks, loads: Rates, alive: NDArray[np.bool_], a: int) -> tuple[int, float]:
    best, cheapest = -1, np.inf
    for b in range(len(sets)):
        if b != a and alive[b]:
            cost = loads[a] * _bits(sets[b] & ~sets[a]) + loads[b] * _bits(sets[a] & ~sets[b])
            if cost < cheapest:
                best, cheapest = b, cost
    return best, cheapest


@njit(cache=True)
def _merged(masks: Masks, weights: Rates, target: int) -> Masks:
    sets, loads = masks.copy(), weights.copy()
    count = len(sets)
    alive = np.ones(count, dtype=np.bool_)
    near = np.empty(count, dtype=np.int64)
    price = np.empty(count)
    for a in range(count):
        near[a], price[a] = _nearest(sets, loads, alive, a)
    left = count
    while left > target:
        a, cheapest = -1, np.inf
        for c in range(count):
            if alive[c] and price[c] < cheapest:
                a, cheapest = c, price[c]
        b = near[a]
        sets[a] |= sets[b]
        loads[a] += loads[b]
        alive[b] = False
        left -= 1
        for c in range(count):
            if alive[c] and (c == a or near[c] == a or near[c] == b):
                near[c], price[c] = _nearest(sets, loads, alive, c)
    return sets[alive]


def unions_of(masks: Sequence[int], most: int) -> list[int]:
    """Every union of the port sets, each once; InputError where there are more than `most`."""
    found: set[int] = set()
    for mask in set(masks):
        found |= {mask} | {mask | other for other in found}
        if len(found) > most:
            raise InputError(f"the port sets have more than {most} unions: too large for the exact method")
    return sorted(found)


def model(masks: Masks, rates: Rates, *, table_size: int, most_unions: int = 4096) -> LinearProgram:
    """The exact model: open `table_size` unions, assign each distinct port set to one that covers it.

    raises  InputError for more unions than `most_unions`
    """
    distinct, place = np.unique(masks, return_inverse=True)
    weights = np.bincount(place, weights=rates, minlength=len(distinct))
    unions = np.array(unions_of([int(mask) for mask in distinct], most_unions), dtype=np.uint64)
    item, union = np.nonzero((distinct[:, None] & ~unions[None, :]) == 0)
    extra = weights[item] * np.bitwise_count(unions[union] & ~distinct[item])
    count, pairs = len(unions), len(item)
    assign = sp.coo_array(
        (np.ones(pairs), (item, count + np.arange(pairs))), shape=(len(distinct), count + pairs)
    )
    rows = np.tile(np.arange(pairs), 2)
    columns = np.concatenate([count + np.arange(pairs), union])
    linked = sp.coo_array((np.repeat([1.0, -1.0], pairs), (rows, columns)), shape=(pairs, count + pairs))
    opened = sp.coo_array(
        (np.ones(count), (np.zeros(count, int), np.arange(count))), shape=(1, count + pairs)
    )
    return LinearProgram.build(
        cost=np.concatenate([np.zeros(count), extra]),
        rows=[
            Rows("assigned", assign, lower=1.0, upper=1.0),
            Rows("open", linked, upper=0.0),
            Rows("table", opened, upper=float(table_size)),
        ],
        columns=[Columns("union", count), Columns("assign", pairs)],
        upper=1.0,
        integer=np.arange(count + pairs) < count,
        name="channelization",
    )


def optimum(
    masks: Masks, rates: Rates, *, table_size: int, options: Options = Options()
) -> tuple[Meta | None, Solution]:
    """The least extra traffic, with the solver's bound; None without a plan. For switches with few unions."""
    solution = solve(model(masks, rates, table_size=table_size), options)
    if solution.x is None:
        return None, solution
    distinct, place = np.unique(masks, return_inverse=True)
    unions = np.array(unions_of([int(mask) for mask in distinct], 4096), dtype=np.uint64)
    open_ = unions[solution.x[: len(unions)] > 0.5]
    sizes = np.bitwise_count(open_).astype(np.int64)
    cost = np.where((distinct[:, None] & ~open_[None, :]) == 0, sizes[None, :], 65)
    return np.unique(cost.argmin(axis=1)[place], return_inverse=True)[1].astype(np.int64), solution


def brute_force(masks: Sequence[int], rates: Sequence[float], table_size: int) -> float:
    """The least extra traffic of a tiny switch, by trying every choice of unions."""
    unions = unions_of(masks, 20)
    best = float("inf")
    for chosen in combinations(unions, min(table_size, len(unions))):
        cost = 0.0
        for mask, rate in zip(masks, rates, strict=True):
            extras = [(union & ~mask).bit_count() for union in chosen if mask & ~union == 0]
            cost += rate * min(extras) if extras else float("inf")
        best = min(best, cost)
    return best
