"""A tighter bound: whole clients cannot fill a cluster's room to the last bit at no loss.

Relaxing that every client is served once, at a worth u_g for each client of group g, leaves one
knapsack a cluster: the least of `sum (c - u) x` over whole x that fit its room. With the worths,
`sum u n` plus all knapsacks is a bound for any u; clusters that are never full count as one, where
each client finds the cheapest. At first u lies between the least and the second least of cost and
price of room, so that clients that clearly belong in a cluster clearly do. From there, worths rise
where the knapsacks take a group too rarely and fall where too often, on the average of what they
took before, and by how many of the group's clients: without both, steps go nowhere.

source  Martello and Toth 1990, Knapsack Problems (Lagrangian bound of generalised assignment);
        Barahona and Anbil 2000 (volume algorithm)
"""

from __future__ import annotations

import time
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from planner_models.brokering.flow import Transport, grain_mbps

MOST_UNITS: Final = 50_000  # of room; knapsacks of larger clusters are left divisible
SMALL_UNITS: Final = 1500  # the same while worths change: larger clusters lose little
MOST_STEPS: Final = 400
PATIENCE: Final = 20  # steps without a better bound until they are shorter
SHORTER: Final = 0.66
FIRST: Final = 0.05  # of the way to the plan's cost, the first step
LEAST: Final = 1e-3  # of the gap, that 100 steps must close together
MEMORY: Final = 0.1  # weight of the latest knapsacks in the average; less and less
LEAST_MEMORY: Final = 0.01


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
    full = np.flatnonzero(price > 0)
    if grain is None or not len(full):
        return bound
    unit = np.rint(problem.weight / grain).astype(np.int64)
    room = np.rint(problem.room[full] / grain).astype(np.int64)
    there = np.ascontiguousarray(problem.cost[:, full].T)
    elsewhere = problem.cost[:, price == 0].min(axis=1, initial=np.inf)  # no client is worth more
    count = problem.count.astype(float)
    taken = np.zeros(len(count))

    def reach(worth: NDArray[np.float64], most: int = SMALL_UNITS) -> float:
        return float(worth @ count) + packed(worth, there, unit, problem.count, room, most, taken)

    center = np.minimum(_worths(problem, price), elsewhere)
    best = at_mark = reach(center)
    average, memory, length, stale = taken.copy(), MEMORY, FIRST, 0
    for step in range(1, MOST_STEPS + 1):
        if value - max(best, bound) <= gap * abs(value) or time.perf_counter() > until:
            break
        missing = count - average
        missing[(center >= elsewhere) & (missing > 0)] = 0.0
        norm = float(missing @ (missing / count))
        if norm <= 1e-12:
            break
        worth = np.minimum(center + length * max(value - best, 0.0) / norm * missing / count, elsewhere)
        reached = reach(worth)
        if reached > best:
            best, center, stale = reached, worth, 0
            length *= 1.1
        else:
            stale += 1
            if stale >= PATIENCE:
                length, stale = length * SHORTER, 0
        average = memory * taken + (1 - memory) * average
        if step % 100 == 0:
            if step > 100 and best - at_mark < LEAST * (value - best):
                break
            at_mark, memory = best, max(memory * 0.6, LEAST_MEMORY)
    return min(max(reach(center, MOST_UNITS), bound), value)


@numba.njit(cache=True)
def packed(
    worth: NDArray[np.float64],
    there: NDArray[np.float64],
    unit: NDArray[np.int64],
    count: NDArray[np.int64],
    room: NDArray[np.int64],
    most: int,
    taken: NDArray[np.float64],
) -> float:  # pragma: no cover - compiled
    """All full clusters' knapsacks at those worths; `taken` (G,) becomes what they take together.

    there  (F, G) cost in each full cluster
    room   (F,) in units; clusters with more than `most` are left divisible
    """
    taken[:] = 0.0
    reached = 0.0
    reduced, item = np.empty(len(worth)), np.empty(len(worth), dtype=np.int64)
    for cluster in range(len(there)):
        own, items = there[cluster], 0
        for g in range(len(worth)):
            if own[g] < worth[g]:
                reduced[items], item[items] = own[g] - worth[g], g
                items += 1
        group = item[:items]
        if room[cluster] <= most:
            least, many = pack(reduced[:items], unit[group], count[group], room[cluster])
            reached += least
            taken[group] += many
            continue
        left = float(room[cluster])
        for i in np.argsort(reduced[:items] / unit[group]):
            some = min(float(count[group[i]]), left / unit[group[i]])
            reached += some * reduced[i]
            taken[group[i]] += some
            left -= some * unit[group[i]]
    return reached


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
