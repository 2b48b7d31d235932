"""A tighter bound: whole clients cannot fill a cluster's room to the last bit at no loss.

Relaxing that every client is served once, at a worth u_g for each client of group g, leaves one
knapsack a cluster: the least of `sum (c - u) x` over whole x that fit its room. With the worths,
`sum u n` plus all knapsacks is a bound for any u; it is at least the flow's where u is the least of
cost and price of room, and better where u lies between that and the second least, so that clients
that clearly belong in a cluster clearly do. From there, subgradient steps raise it further: a group
that the knapsacks take too rarely is worth more, one that they take too often less.

source  Martello and Toth 1990, Knapsack Problems (Lagrangian bound of generalised assignment)
"""

from __future__ import annotations

import time
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from planner_models.brokering.flow import Transport, grain_mbps

MOST_UNITS: Final = 50_000  # of room; knapsacks of larger clusters are left divisible
MOST_STEPS: Final = 200
PATIENCE: Final = 5  # steps without a better bound until they are halved
SHORTEST: Final = 0.01  # of the first; steps as short as this change nothing any more


def tighten(
    problem: Transport, price: NDArray[np.float64], bound: float, value: float, *, gap: float, until: float
) -> float:
    """A bound at least as good as `bound`, which holds already.

    price  (C,) of room, from the flow
    value  cost of a plan, which the bound tends to
    gap    relative gap of the two that is enough
    until  when to stop (time.perf_counter())
    """
    grain = grain_mbps(problem.weight)
    if grain is None or not (price > 0).any():
        return bound
    unit = np.rint(problem.weight / grain).astype(np.int64)
    room = np.rint(problem.room / grain)
    exact = np.flatnonzero((price > 0) & (room <= MOST_UNITS))
    kept = np.flatnonzero((price > 0) & (room > MOST_UNITS))
    free = np.flatnonzero(price == 0)
    worth = _worths(problem, price)
    best, length, stale = bound, 1.0, 0
    for _ in range(MOST_STEPS):
        taken = np.zeros(len(unit))
        reached = float(worth @ problem.count)
        # clusters that are never full take whoever is worth it; large ones at their price of room
        for clusters, prices in ((free, np.zeros(len(free))), (kept, price[kept])):
            reduced = problem.cost[:, clusters] + prices * problem.weight[:, None] - worth[:, None]
            reached += float(np.minimum(reduced, 0.0).sum(axis=1) @ problem.count)
            reached -= float(prices @ problem.room[clusters])
            taken += (reduced < 0).sum(axis=1) * problem.count
        for cluster in exact:
            reduced = problem.cost[:, cluster] - worth
            items = np.flatnonzero(reduced < 0)
            least, many = pack(reduced[items], unit[items], problem.count[items], int(room[cluster]))
            reached += least
            taken[items] += many
        if reached > best:
            best, stale = reached, 0
        else:
            stale += 1
            if stale >= PATIENCE:
                length, stale = length / 2, 0
        if value - best <= gap * abs(value) or length < SHORTEST or time.perf_counter() > until:
            break
        missing = problem.count - taken
        norm = float(missing @ missing)
        if norm == 0:
            break
        worth = worth + length * max(value - reached, 0.0) / norm * missing
    return min(best, value)


def _worths(problem: Transport, price: NDArray[np.float64]) -> NDArray[np.float64]:
    """(G,) what a client is worth at first, by the prices of room.

    Where its best cluster has a price, the second least cost (a price there too: half way); where
    it has none, the least: nothing is gained there.
    """
    groups = np.arange(len(problem.weight))
    priced = problem.cost + price * problem.weight[:, None]
    best = priced.argmin(axis=1)
    least = priced[groups, best].copy()
    priced[groups, best] = np.inf
    other = priced.argmin(axis=1)
    second = priced[groups, other]
    second = np.where(np.isfinite(second), second, 2 * np.abs(least) + 1)  # nowhere else to go
    share = np.where(price[best] > 0, np.where(price[other] > 0, 0.5, 1.0), 0.0)
    worths: NDArray[np.float64] = least + share * (second - least)
    return worths


@numba.njit(cache=True)
def pack(
    reduced: NDArray[np.float64], unit: NDArray[np.int64], many: NDArray[np.int64], room: int
) -> tuple[float, NDArray[np.int64]]:  # pragma: no cover - compiled
    """The least of `reduced @ x` over whole 0 <= x <= many with `unit @ x <= room`, and x.

    Filled by value for size first; what stands out by more than that plan loses on divisible items
    keeps its place, and the rest is solved by dynamic programming.

    reduced  (I,) below 0
    unit     (I,) sizes, above 0
    """
    taken = np.zeros(len(unit), dtype=np.int64)
    order = np.argsort(reduced / unit)
    left, value, divisible, price = room, 0.0, 0.0, 0.0
    for i in order:
        fits = min(many[i], left // unit[i])
        if fits < many[i] and price == 0.0:
            price = -reduced[i] / unit[i]
            divisible = value + reduced[i] / unit[i] * left
        taken[i] = fits
        left -= fits * unit[i]
        value += fits * reduced[i]
    if price == 0.0 or value - divisible <= 1e-9 * abs(value):
        return value, taken
    lost = value - divisible
    filled = taken.copy()  # no worse than any plan in which something stands out and is not kept
    rest, base = room, 0.0
    core = np.empty(len(unit), dtype=np.int64)
    cores = 0
    for i in range(len(unit)):
        stands_out = reduced[i] + price * unit[i]
        if stands_out < -lost:
            taken[i] = many[i]
            rest -= many[i] * unit[i]
            base += many[i] * reduced[i]
        elif stands_out > lost:
            taken[i] = 0
        else:
            core[cores] = i
            cores += 1
    core = core[:cores]
    least, chosen = _by_programming(reduced[core], unit[core], many[core], rest)
    if base + least >= value:
        return value, filled
    taken[core] = chosen
    return base + least, taken


@numba.njit(cache=True)
def _by_programming(
    reduced: NDArray[np.float64], unit: NDArray[np.int64], many: NDArray[np.int64], room: int
) -> tuple[float, NDArray[np.int64]]:  # pragma: no cover - compiled
    """As `pack`, by dynamic programming over the room; items are taken in parts of 1, 2, 4, ..."""
    parts = 0
    for i in range(len(unit)):
        left = min(many[i], room // unit[i])
        part = 1
        while left > 0:
            left -= min(part, left)
            part *= 2
            parts += 1
    owner, size = np.empty(parts, dtype=np.int64), np.empty(parts, dtype=np.int64)
    parts = 0
    for i in range(len(unit)):
        left = min(many[i], room // unit[i])
        part = 1
        while left > 0:
            owner[parts], size[parts] = i, min(part, left)
            left -= size[parts]
            part *= 2
            parts += 1
    best = np.zeros(room + 1)
    uses = np.zeros((parts, room + 1), dtype=np.bool_)
    for p in range(parts):
        units, cost = size[p] * unit[owner[p]], size[p] * reduced[owner[p]]
        for f in range(room, units - 1, -1):
            if best[f - units] + cost < best[f]:
                best[f] = best[f - units] + cost
                uses[p, f] = True
    taken = np.zeros(len(unit), dtype=np.int64)
    f = room
    for p in range(parts - 1, -1, -1):
        if uses[p, f]:
            taken[owner[p]] += size[p]
            f -= size[p] * unit[owner[p]]
    return best[room], taken
