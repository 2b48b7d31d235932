"""Lagrangian bound by knapsacks: tighter than min-cost flow, as whole clients leave capacity unused.

Relaxing that every client is served once, with a multiplier u_g for each client of group g, leaves one
knapsack per cluster: minimise `sum (c - u) x` over integer x within its capacity. `sum u n` plus the
optima of all knapsacks is a lower bound for any u. Clusters that are never full count as one, where each
client takes the cheapest. The first u lies between the least and the second least of cost plus dual price
of capacity. A subgradient method then raises u where the knapsacks take too few clients of a group and
lowers it where they take too many. Its direction is the average of earlier subgradients (volume
algorithm), scaled by the size of each group: without both it makes no progress.

source  Martello and Toth 1990, Knapsack Problems (Lagrangian bound of generalised assignment);
        Barahona and Anbil 2000 (volume algorithm)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import in_python_by, inner, njit, run_small_in_python
from planner.search.ascent import Ascent
from planner.search.deadline import Deadline
from planner_models.brokering.plan.transportation import TransportationProblem, common_unit_mbps

MAX_UNITS: Final = 50_000  # of capacity; the knapsacks of larger clusters are relaxed to divisible clients
MAX_UNITS_PER_STEP: Final = 1500  # the same during the subgradient method, for speed
CLUSTERS_PER_CALL: Final = 8  # of compiled code, between looks at the clock
MAX_STEPS: Final = 400
STALL_LIMIT: Final = 20  # steps without a better bound until the step length is reduced
STEP_REDUCTION: Final = 0.66
STEP_INCREASE: Final = 1.1
INITIAL_STEP: Final = 0.05  # of the distance to the cost of the plan
MIN_PROGRESS: Final = 1e-3  # part of the gap that 100 steps must close
INITIAL_AVERAGING: Final = 0.1  # weight of the latest subgradient in the average
MIN_AVERAGING: Final = 0.01


class Knapsacks(NamedTuple):
    """One knapsack for each full cluster.

    cost      (F, G) of a client in each full cluster
    units     (G,) of capacity that a client takes
    clients   (G,) number
    capacity  (F,) in units
    """

    cost: Floats
    units: Ints
    clients: Ints
    capacity: Ints


def tighten_bound(
    problem: TransportationProblem,
    dual_price: Floats,
    bound: float,
    value: float,
    *,
    gap: float,
    deadline: Deadline,
) -> float:
    """Return a lower bound on the cost of any plan that is at least as good as `bound`.

    dual_price  (C,) of capacity, from the flow
    bound       a lower bound already proven
    value       cost of a plan, from above
    gap         relative gap of the two that is enough
    deadline    when to stop
    """
    unit_mbps = common_unit_mbps(problem.bitrate_mbps)
    full = np.flatnonzero(dual_price > 0)
    if unit_mbps is None or not len(full) or value - bound <= gap * abs(value):
        return bound
    knapsacks = Knapsacks(
        cost=np.ascontiguousarray(problem.cost[:, full].T),
        units=np.rint(problem.bitrate_mbps / unit_mbps).astype(np.int64),
        clients=problem.count,
        capacity=np.rint(problem.capacity_mbps[full] / unit_mbps).astype(np.int64),
    )
    elsewhere = problem.cost[:, dual_price == 0].min(axis=1, initial=np.inf)  # largest useful multiplier
    count = problem.count.astype(float)
    taken = np.zeros(len(count))

    def dual_value(multiplier: Floats, max_units: int = MAX_UNITS_PER_STEP) -> float:
        return float(multiplier @ count) + _pack_clusters(knapsacks, multiplier, max_units, taken, deadline)

    center = np.minimum(_initial_multipliers(problem, dual_price), elsewhere)
    last_checked = dual_value(center)
    ascent = Ascent(
        center,
        factor=INITIAL_STEP,
        stall_limit=STALL_LIMIT,
        shrink=STEP_REDUCTION,
        growth=STEP_INCREASE,
        best=last_checked,
    )
    average, averaging = taken.copy(), INITIAL_AVERAGING
    for step in range(1, MAX_STEPS + 1):
        if value - max(ascent.best, bound) <= gap * abs(value) or deadline.is_over:
            break
        missing = count - average
        missing[(center >= elsewhere) & (missing > 0)] = 0.0
        norm = float(missing @ (missing / count))
        if norm <= 1e-12:
            break
        step_size = ascent.length(max(value - ascent.best, 0.0), norm)
        multiplier = np.minimum(center + step_size * missing / count, elsewhere)
        if ascent.tell(dual_value(multiplier), multiplier):
            ascent.go_back()
        center = ascent.best_point
        average = averaging * taken + (1 - averaging) * average
        if step % 100 == 0:
            if step > 100 and ascent.best - last_checked < MIN_PROGRESS * (value - ascent.best):
                break
            last_checked, averaging = ascent.best, max(averaging * 0.6, MIN_AVERAGING)
    return min(max(ascent.best, dual_value(center, MAX_UNITS), bound), value)


def _pack_clusters(
    knapsacks: Knapsacks, multiplier: Floats, max_units: int, taken: Floats, deadline: Deadline
) -> float:
    """Return the sum of all knapsacks' optima as `pack_clusters` does; -inf where time is up.

    taken  (G,) becomes the clients of each group that all knapsacks take
    """
    total, taken[:] = 0.0, 0.0
    for first in range(0, len(knapsacks.cost), CLUSTERS_PER_CALL):
        if deadline.is_over:
            return -np.inf
        few = slice(first, first + CLUSTERS_PER_CALL)
        share = knapsacks._replace(cost=knapsacks.cost[few], capacity=knapsacks.capacity[few])
        total += pack_clusters(share, multiplier, max_units, taken)
    return total


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def pack_clusters(
    knapsacks: Knapsacks, multiplier: Floats, max_units: int, taken: Floats
) -> float:  # pragma: no cover - compiled
    """Return the sum of all knapsacks' optima at multipliers (G,).

    max_units  of capacity; larger knapsacks are relaxed to divisible clients
    taken      (G,) the clients of each group that the knapsacks take are added
    """
    total = 0.0
    reduced, item = np.empty(len(multiplier)), np.empty(len(multiplier), dtype=np.int64)
    for cluster in range(len(knapsacks.cost)):
        cost, items = knapsacks.cost[cluster], 0
        for g in range(len(multiplier)):
            if cost[g] < multiplier[g]:
                reduced[items], item[items] = cost[g] - multiplier[g], g
                items += 1
        group = item[:items]
        units, count, capacity = knapsacks.units[group], knapsacks.clients[group], knapsacks.capacity[cluster]
        if capacity <= max_units:
            value, selected = solve_knapsack(reduced[:items], units, count, capacity)
            total += value
            for i in range(items):
                taken[group[i]] += selected[i]
            continue
        residual = float(capacity)
        for i in _order_by_ratio(reduced[:items], units):
            fraction = min(float(count[i]), residual / units[i])
            total += fraction * reduced[i]
            taken[group[i]] += fraction
            residual -= fraction * units[i]
    return total


def _initial_multipliers(problem: TransportationProblem, dual_price: Floats) -> Floats:
    """Return the first Lagrangian multiplier of each group, (G,), from the dual prices of capacity.

    Where the best cluster has a price, the second least cost plus price (half way to it where that
    cluster has a price too); else the least, as nothing is gained there.
    """
    groups = np.arange(len(problem.bitrate_mbps))
    priced = problem.cost + dual_price * problem.bitrate_mbps[:, None]
    best = priced.argmin(axis=1)
    lowest = priced[groups, best].copy()
    priced[groups, best] = np.inf
    other = priced.argmin(axis=1)
    second = priced[groups, other]
    second = np.where(np.isfinite(second), second, 2 * np.abs(lowest) + 1)  # only one cluster is possible
    share = np.where(dual_price[best] > 0, np.where(dual_price[other] > 0, 0.5, 1.0), 0.0)
    multipliers: Floats = lowest + share * (second - lowest)
    return multipliers


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _order_by_ratio(reduced: Floats, units: Ints) -> Ints:  # pragma: no cover - compiled
    """Return the order of items by value per unit, the most valuable first."""
    ratio = np.empty(len(units))
    for i in range(len(units)):  # loops compile in a fraction of the time of array expressions
        ratio[i] = reduced[i] / units[i]
    return np.argsort(ratio)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def solve_knapsack(
    reduced: Floats, units: Ints, count: Ints, capacity: int
) -> tuple[float, Ints]:  # pragma: no cover - compiled
    """Return the least `reduced @ x` over integer 0 <= x <= count with `units @ x <= capacity`, and x.

    A greedy fill by value per unit comes first. Items whose reduced cost exceeds its gap to the divisible
    optimum are fixed; the others (the core) are solved by dynamic programming.

    reduced  (I,) below 0
    units    (I,) above 0
    """
    taken = np.zeros(len(units), dtype=np.int64)
    order = _order_by_ratio(reduced, units)
    residual, value, divisible, price = capacity, 0.0, 0.0, 0.0
    for i in order:
        fits = min(count[i], residual // units[i])
        if fits < count[i] and price == 0.0:
            price = -reduced[i] / units[i]
            divisible = value + reduced[i] / units[i] * residual
        taken[i] = fits
        residual -= fits * units[i]
        value += fits * reduced[i]
    if price == 0.0 or value - divisible <= 1e-9 * abs(value):
        return value, taken
    gap = value - divisible
    greedy = taken.copy()  # no worse than any plan that leaves a fixed item
    residual, base = capacity, 0.0
    core = np.empty(len(units), dtype=np.int64)
    size = 0
    for i in range(len(units)):
        priced = reduced[i] + price * units[i]
        if priced < -gap:
            taken[i] = count[i]
            residual -= count[i] * units[i]
            base += count[i] * reduced[i]
        elif priced > gap:
            taken[i] = 0
        else:
            core[size] = i
            size += 1
    core = core[:size]
    lowest, selected = _solve_by_dynamic_programming(reduced[core], units[core], count[core], residual)
    if base + lowest >= value:
        return value, greedy
    taken[core] = selected
    return base + lowest, taken


def _choose_items_by_arrays(weight: Ints, cost: Floats, capacity: int) -> tuple[Floats, Bools]:
    """Do as `_choose_items`, by operations on arrays."""
    best = np.zeros(capacity + 1)
    uses = np.zeros((len(weight), capacity + 1), dtype=np.bool_)
    for item in range(len(weight)):
        w = min(weight[item], len(best))
        other = best[: len(best) - w] + cost[item]
        uses[item, w:] = other < best[w:]
        best[w:] = np.minimum(other, best[w:])
    return best, uses


@in_python_by(_choose_items_by_arrays)
@inner
def _choose_items(weight: Ints, cost: Floats, capacity: int) -> tuple[Floats, Bools]:
    """Return the least cost of at most each capacity, and whether each item is taken there.

    weight, cost  (items,)
    returns       (capacity + 1,) cost; (items, capacity + 1) whether the best choice among an item and those
                  before it takes the item
    """
    best = np.zeros(capacity + 1)
    uses = np.zeros((len(weight), capacity + 1), dtype=np.bool_)
    for item in range(len(weight)):
        w, c = weight[item], cost[item]
        for f in range(capacity, w - 1, -1):
            if best[f - w] + c < best[f]:
                best[f] = best[f - w] + c
                uses[item, f] = True
    return best, uses


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _solve_by_dynamic_programming(
    reduced: Floats, units: Ints, count: Ints, capacity: int
) -> tuple[float, Ints]:  # pragma: no cover - compiled
    """Solve as `solve_knapsack`, by dynamic programming over capacity; items are split into 1, 2, 4, ..."""
    limit = 0
    for i in range(len(units)):
        limit += int(np.log2(max(count[i], 1))) + 2
    owner, size = np.empty(limit, dtype=np.int64), np.empty(limit, dtype=np.int64)
    parts = 0
    for i in range(len(units)):
        remaining = min(count[i], capacity // units[i])
        multiple = 1
        while remaining > 0:
            owner[parts], size[parts] = i, min(multiple, remaining)
            remaining -= size[parts]
            multiple *= 2
            parts += 1
    weight, cost = np.empty(parts, dtype=np.int64), np.empty(parts)
    for p in range(parts):
        weight[p], cost[p] = size[p] * units[owner[p]], size[p] * reduced[owner[p]]
    best, uses = _choose_items(weight, cost, capacity)
    taken = np.zeros(len(units), dtype=np.int64)
    f = capacity
    for p in range(parts - 1, -1, -1):
        if uses[p, f]:
            taken[owner[p]] += size[p]
            f -= size[p] * units[owner[p]]
    return best[capacity], taken
