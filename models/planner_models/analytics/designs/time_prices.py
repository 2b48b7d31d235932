"""Prices of uplinks in all intervals at once, where finer data may be sent later; a bound by them.

Each answer of an interval, or each site's part of it where values add up, has as its options a first level,
alone or with a finer one that is sent in a later interval of its window. At prices of all uplinks in all
intervals, each chooses alone, which bounds the value of all. Storage at sites is left out of the bound. As
for single intervals (`prices`), the dual function is minimized smoothed, by L-BFGS-B, from their prices.

source  Geoffrion 1974 (Lagrangian relaxation); Nesterov 2005 (smooth minimization of non-smooth functions)
"""

from __future__ import annotations

import contextlib
import math
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner.threads import limit_blas
from planner_models.analytics.designs import prices
from planner_models.analytics.designs.choices import Choices, Interval
from planner_models.analytics.designs.prices import LEAST_EXPONENT
from planner_models.analytics.problem.problem import Analytics

TEMPERATURES: Final = (1e-3, 1e-4, 2e-5)
"""Of the soft maximum, as parts of the bound over the number of maxima."""
MOST_STEPS: Final = (10, 30, 80)
LEAST_PROGRESS: Final = 1e-6  # of the dual function in a step, relative, at which a temperature ends
NO_CAPACITY_PRICE: Final = 1e3  # of a byte where an uplink is lost, over the value of all answers


class Rows(NamedTuple):
    """Answers, or parts of them, of one interval: R rows, L levels.

    value  (R, L) USD; -inf where a level is impossible
    size   (R, L, M) bytes on uplinks, or (R, L, 2) where `links` names the two uplinks of each row
    decay  (R, W) part of an improvement's value that is left if it is sent 1, 2, ... intervals later
    links  (R, 2) uplinks of the site and of its point of presence; (0, 2) where size has all uplinks
    """

    value: Floats
    size: Floats
    decay: Floats
    links: Ints


class TimePrices(NamedTuple):
    """Prices (K, M) of all of an uplink's capacity in an interval, USD, and the bound that they give, USD."""

    price: Floats
    bound: float


class Waiting:
    """Gains of later data of each interval at given prices.

    made  choices of each interval, with bytes in place of parts of capacity
    """

    def __init__(self, problem: Analytics, choices: Choices) -> None:
        self.problem = problem
        starts = problem.start_s
        longest = float(problem.backfill_window_s.max(initial=0.0))
        ends = np.searchsorted(starts, starts + longest + 1e-6, side="right")
        self.window = int(np.maximum(ends - np.arange(len(starts)) - 1, 0).max(initial=0))
        full_capacity = np.ones(problem.capacity_bytes.shape[1])
        self.made = [choices.interval(k, full_capacity) for k in range(len(starts))]
        self.parts = [self._rows(made, k) for k, made in enumerate(self.made)]
        self.byte_price = np.zeros_like(problem.capacity_bytes)

    def _rows(self, made: Interval, k: int) -> tuple[Rows, Rows]:
        """Return the rows of shared and of separate queries of interval k."""
        problem = self.problem
        shared, separate = made.shared, made.separate
        levels = separate.value.shape[2]
        count = separate.value.shape[0] * len(separate.query)
        site = np.repeat(np.arange(separate.value.shape[0]), len(separate.query))
        size = np.stack([separate.use, separate.pop_use], axis=-1).reshape(count, levels, 2)
        links = np.stack([site, separate.value.shape[0] + problem.pop_of[site]], axis=1)
        of_query, of_site = self._decay(k)
        apart = np.tile(separate.query, separate.value.shape[0])
        return (
            Rows(shared.value, shared.use, of_query[shared.query], np.zeros((0, 2), dtype=np.int64)),
            Rows(separate.value.reshape(count, levels), size, of_site[site, apart], links),
        )

    def _decay(self, k: int) -> tuple[Floats, Floats]:
        """Return the part of the value that is left of each improvement, (Q, W) and by site (S, Q, W).

        0: not allowed; where sites share an answer, all of them must still have the data.
        """
        problem = self.problem
        ends = problem.start_s + problem.length_s
        later = np.arange(k + 1, k + 1 + self.window)
        in_range = later < len(ends)
        later = np.minimum(later, len(ends) - 1)
        shape = (*problem.has_data.shape, 0)
        may = [problem.may_send_later(k, t) for t in later.tolist()]
        allowed = (np.stack(may, axis=2) if may else np.zeros(shape, dtype=bool)) & in_range
        weight = 0.5 ** ((ends[later] - ends[k]) / problem.half_life_s[:, None])
        together = (allowed | ~problem.has_data[:, :, None]).all(axis=0)
        return np.where(together, weight, 0.0), np.where(allowed, weight, 0.0)

    def set_prices(self, price: Floats) -> None:
        """Take prices (K, M) of all of the uplinks' capacities, USD."""
        capacity = self.problem.capacity_bytes
        none = NO_CAPACITY_PRICE * max(self.problem.total_usd, 1e-12)
        self.byte_price = np.where(capacity > 0, price / np.where(capacity > 0, capacity, 1.0), none)

    def costs(self, rows: Rows, t: int) -> Floats:
        """Return the price of the bytes of each level in interval t, (R, L), USD."""
        byte_price = self.byte_price[min(t, len(self.byte_price) - 1)]
        if len(rows.links):
            return np.asarray((rows.size * byte_price[rows.links][:, None, :]).sum(axis=2))
        return np.asarray((rows.size.reshape(-1, len(byte_price)) @ byte_price).reshape(rows.value.shape))

    def find(self, rows: Rows, k: int, first: int = 1) -> tuple[Floats, Ints, Ints]:
        """Return the gain of later data by first level, (R, L), its level, and its delay in intervals.

        first  intervals that pass at least
        """
        return _find_gains(rows.value, rows.decay, self._later_costs(rows, k), first)

    def find_when(self, rows: Rows, k: int, gain: Floats, fraction: float) -> Bools:
        """Return whether some level pays its bytes 1, 2, ... intervals later, (W,).

        gain  (R, L) value that it adds before it decays, USD; negative: none
        fraction  of the price of its bytes that the value has at least
        """
        value = gain * rows.decay.T[:, :, None]
        return np.asarray(((value > 0) & (value > fraction * self._later_costs(rows, k))).any(axis=(1, 2)))

    def _later_costs(self, rows: Rows, k: int) -> Floats:
        """Return the price of the bytes of each level 1, 2, ... intervals later, (W, R, L), USD."""
        after = np.minimum(k + 1 + np.arange(self.window), len(self.byte_price) - 1)
        byte_price = self.byte_price[after]  # W, M
        if len(rows.links):
            cost = np.einsum("rlu,wru->wrl", rows.size, byte_price[:, rows.links])
        else:
            cost = byte_price @ rows.size.reshape(-1, byte_price.shape[1]).T
        return np.ascontiguousarray(cost.reshape(self.window, *rows.value.shape))

    def soften(self, price: Floats, temperature: float) -> tuple[float, Floats]:
        """Return the dual function with a soft maximum at prices (K, M), USD, and its gradient."""
        self.set_prices(price)
        count = len(price)
        used = np.zeros((count + self.window, price.shape[1]))  # bytes; none after the last interval
        total = float(price.sum())
        for k, parts in enumerate(self.parts):
            times = np.minimum(k + np.arange(self.window + 1), count - 1)
            byte_price = self.byte_price[times]
            for rows in parts:
                if not len(rows.value):
                    continue
                bytes_used = used[k : k + self.window + 1]
                if len(rows.links):
                    total += _soften_sites(
                        rows.value, rows.decay, rows.size, rows.links, byte_price, temperature, bytes_used
                    )
                    continue
                size = rows.size.reshape(-1, price.shape[1])
                cost = (byte_price @ size.T).reshape(len(byte_price), *rows.value.shape)
                weight = np.zeros_like(cost)
                total += _soften_shared(rows.value, rows.decay, cost, temperature, weight)
                bytes_used += weight.reshape(len(byte_price), -1) @ size
        capacity = self.problem.capacity_bytes
        utilization = np.divide(used[:count], capacity, out=np.zeros_like(price), where=capacity > 0)
        return total, np.where(capacity > 0, 1.0 - utilization, 0.0)

    def bound(self, price: Floats) -> tuple[float, Floats]:
        """Return the bound at prices (K, M), USD, and a subgradient of it."""
        self.set_prices(price)
        used = np.zeros_like(price)
        total = float(price.sum())
        for k, parts in enumerate(self.parts):
            for rows in parts:
                if not len(rows.value):
                    continue
                gain, level, later = self.find(rows, k)
                profit = rows.value - self.costs(rows, k) + gain
                best = profit.argmax(axis=1)
                every = np.arange(len(best))
                total += float(profit[every, best].sum())
                _add_bytes(used, k, rows, every, best)
                waits = np.flatnonzero(gain[every, best] > 0)
                late = later[waits, best[waits]]
                for after in np.unique(late).tolist():
                    rows_of = waits[late == after]
                    _add_bytes(used, k + after, rows, rows_of, level[rows_of, best[rows_of]])
        capacity = self.problem.capacity_bytes
        utilization = np.divide(used, capacity, out=np.zeros_like(used), where=capacity > 0)
        return total, np.where(capacity > 0, 1.0 - utilization, 0.0)


def _add_bytes(used: Floats, k: int, rows: Rows, rows_of: Ints, level: Ints) -> None:
    size = rows.size[rows_of, level]
    if len(rows.links):
        np.add.at(used[k], rows.links[rows_of].ravel(), size.ravel())
    else:
        used[k] += size.sum(axis=0)


@run_small_in_python(max_elements=1_000)
@kernel
def _find_gains(value: Floats, decay: Floats, cost: Floats, first: int) -> tuple[Floats, Ints, Ints]:
    """Return for each row and first level the best gain of a finer level later, its level and its delay."""
    count, levels = value.shape
    gain = np.zeros((count, levels))
    finer, later = np.zeros((count, levels), dtype=np.int64), np.zeros((count, levels), dtype=np.int64)
    for row in range(count):
        for level in range(levels):
            if value[row, level] == -np.inf:
                continue
            gain[row, level], finer[row, level], later[row, level] = _find_gain(
                value[row], decay[row], cost[:, row], level, first
            )
    return gain, finer, later


@inner
def _find_gain(value: Floats, decay: Floats, cost: Floats, level: int, first: int) -> tuple[float, int, int]:
    """Return the best gain of a finer level later than a level (L,), that level, and its delay."""
    gain, finer, later = 0.0, 0, 0
    for other in range(len(value)):
        more = value[other] - value[level]
        if more <= 0:
            continue
        for after in range(first - 1, len(decay)):
            net = more * decay[after] - cost[after, other]
            if net > gain:
                gain, finer, later = net, other, after + 1
    return gain, finer, later


@kernel
def _soften_row(  # noqa: C901 - one compiled loop
    value: Floats,
    decay: Floats,
    cost: Floats,
    temperature: float,
    weight: Floats,
    is_used: Bools,
    best: Floats,
    weights_of: Floats,
) -> float:
    """Return the soft maximum of the options of a row, USD; write the weight of each level in time.

    A later level that is no finer than the first one counts too: that is no better than none.

    value         (L,) USD
    decay         (W,)
    cost, weight  (W + 1, L) price of a level's bytes in the interval and later; weight of sending it then
    is_used       (W + 1,) written: whether there are weights; the others are not written
    best, own     (2, W) and (L,) memory
    """
    levels, window = len(value), len(decay)
    coarsest, largest = np.inf, -np.inf
    for level in range(levels):
        if value[level] > -np.inf:
            coarsest = min(coarsest, value[level])
            largest = max(largest, value[level] - cost[0, level])
    for after in range(window):
        factor, first, second = decay[after], -np.inf, -np.inf  # best first and later levels
        if factor > 0:
            for level in range(levels):
                if value[level] > -np.inf:
                    first = max(first, value[level] * (1.0 - factor) - cost[0, level])
                if value[level] > coarsest:
                    second = max(second, value[level] * factor - cost[after + 1, level])
        best[0, after], best[1, after] = first, second
        largest = max(largest, first + second)
    is_used[:] = False
    is_used[0] = True
    weight[0] = 0.0
    range_of, sums = -LEAST_EXPONENT * temperature, 0.0
    for level in range(levels):
        less = largest - value[level] + cost[0, level]
        if less < range_of:
            weight[0, level] = math.exp(-less / temperature)
            sums += weight[0, level]
    for after in range(window):
        factor, first, second = decay[after], best[0, after], best[1, after]
        if largest - first - second >= range_of:
            continue
        is_used[after + 1] = True
        of_first = of_second = 0.0
        for level in range(levels):
            weights_of[level] = weight[after + 1, level] = 0.0
            less = (
                first - value[level] * (1.0 - factor) + cost[0, level] if value[level] > -np.inf else np.inf
            )
            if less < range_of:
                weights_of[level] = math.exp(-less / temperature)
                of_first += weights_of[level]
            less = second - value[level] * factor + cost[after + 1, level]
            if value[level] > coarsest and less < range_of:
                weight[after + 1, level] = math.exp(-less / temperature)
                of_second += weight[after + 1, level]
        both = math.exp((first + second - largest) / temperature)
        for level in range(levels):
            weight[after + 1, level] *= both * of_first
            weight[0, level] += both * of_second * weights_of[level]
        sums += both * of_first * of_second
    inverse = 1.0 / sums
    for after in range(window + 1):
        if is_used[after]:
            for level in range(levels):
                weight[after, level] *= inverse
    return float(largest + temperature * math.log(sums))


@run_small_in_python(max_elements=1_000)
@kernel
def _soften_shared(value: Floats, decay: Floats, cost: Floats, temperature: float, weight: Floats) -> float:
    """Return the soft maxima of rows, USD; write the weights of levels in time, (W + 1, R, L)."""
    own_cost = np.empty((cost.shape[0], cost.shape[2]))
    weight_of = np.empty_like(own_cost)
    best, buffer = np.empty((2, decay.shape[1])), np.empty(value.shape[1])
    is_used = np.empty(len(cost), dtype=np.bool_)
    total = 0.0
    for row in range(len(value)):
        own_cost[:] = cost[:, row]
        total += _soften_row(value[row], decay[row], own_cost, temperature, weight_of, is_used, best, buffer)
        for after in range(len(cost)):
            if is_used[after]:
                weight[after, row] = weight_of[after]
    return total


@run_small_in_python(max_elements=1_000)
@kernel
def _soften_sites(
    value: Floats, decay: Floats, size: Floats, links: Ints, price: Floats, temperature: float, used: Floats
) -> float:
    """Return the soft maxima of rows of sites, USD; add the bytes that they send, (W + 1, M).

    price  (W + 1, M) of a byte
    """
    times, levels = len(price), value.shape[1]
    cost, weight = np.empty((times, levels)), np.empty((times, levels))
    best, buffer = np.empty((2, decay.shape[1])), np.empty(levels)
    is_used = np.empty(times, dtype=np.bool_)
    total = 0.0
    for row in range(len(value)):
        for after in range(times):
            of_site, of_pop = price[after, links[row, 0]], price[after, links[row, 1]]
            for level in range(levels):
                cost[after, level] = size[row, level, 0] * of_site + size[row, level, 1] * of_pop
        total += _soften_row(value[row], decay[row], cost, temperature, weight, is_used, best, buffer)
        for after in range(times):
            if not is_used[after]:
                continue
            for level in range(levels):
                if weight[after, level] > 0:
                    used[after, links[row, 0]] += weight[after, level] * size[row, level, 0]
                    used[after, links[row, 1]] += weight[after, level] * size[row, level, 1]
    return total


class _TimeUsed(Exception):
    """The time limit is over."""


def find_time_prices(
    problem: Analytics, waiting: Waiting, start: Floats, deadline: Deadline = NEVER
) -> TimePrices:
    """Return prices of all intervals with a low bound.

    start  (K, M) prices of all of an uplink's capacity, USD, such as those of intervals by themselves
    deadline  at which the search ends
    """
    from scipy.optimize import minimize

    best = start
    lowest, _ = waiting.bound(best)

    def smooth(scaled: Floats, scale: float, temperature: float) -> tuple[float, Floats]:
        if deadline.is_over:
            raise _TimeUsed
        value, slope = waiting.soften(scaled.reshape(problem.capacity_bytes.shape) * scale, temperature)
        return value / scale, slope.ravel()

    maxima = max(1, sum(len(rows.value) for parts in waiting.parts for rows in parts))
    for factor, max_steps in zip(TEMPERATURES, MOST_STEPS, strict=True):
        scale = max(lowest, 1e-12)

        solved = None
        with limit_blas(), contextlib.suppress(_TimeUsed):
            solved = minimize(
                smooth,
                best.ravel() / scale,
                (scale, factor * scale / maxima),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * best.size,
                options={"maxiter": max_steps, "maxcor": prices.MEMORY, "ftol": LEAST_PROGRESS, "gtol": 1e-7},
            )
        if solved is None:
            break
        price = solved.x.reshape(best.shape) * scale
        bound, _ = waiting.bound(price)
        if bound < lowest:
            lowest, best = bound, price
    waiting.set_prices(best)
    return TimePrices(best, lowest)
