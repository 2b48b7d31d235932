"""Prices of uplinks in all intervals at once, where finer data may be sent later; a bound by them.

Each answer of an interval, or each site's part of it where values add up, has as its options a first level,
alone or with a finer one that is sent in a later interval of its window. At prices of all uplinks in all
intervals, each chooses alone, which bounds the value of all. Storage at sites is left out of the bound. The
prices are found by subgradient steps, from those of single intervals.

source  Geoffrion 1974 (Lagrangian relaxation); Polyak 1969 (length of a step)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel
from planner_models.analytics.designs import prices
from planner_models.analytics.designs.choices import Choices
from planner_models.analytics.problem.problem import Analytics

MOST_STEPS: Final = 80
STALL: Final = 8  # steps without a better bound, after which steps become shorter
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
    """Gains of later data of each interval at given prices."""

    def __init__(self, problem: Analytics, choices: Choices) -> None:
        self.problem = problem
        starts = problem.start_s
        longest = float(problem.backfill_window_s.max(initial=0.0))
        ends = np.searchsorted(starts, starts + longest + 1e-6, side="right")
        self.window = int(np.maximum(ends - np.arange(len(starts)) - 1, 0).max(initial=0))
        self.parts = [self._rows(choices, k) for k in range(len(starts))]
        self.byte_price = np.zeros_like(problem.capacity_bytes)

    def _rows(self, choices: Choices, k: int) -> tuple[Rows, Rows]:
        """Return the rows of shared and of separate queries of interval k."""
        problem = self.problem
        made = choices.interval(k, np.ones(problem.capacity_bytes.shape[1]))  # bytes
        shared, separate = made.shared, made.separate
        levels = separate.value.shape[2]
        count = separate.value.shape[0] * len(separate.query)
        site = np.repeat(np.arange(separate.value.shape[0]), len(separate.query))
        size = np.stack([separate.use, separate.pop_use], axis=-1).reshape(count, levels, 2)
        links = np.stack([site, separate.value.shape[0] + problem.pop_of[site]], axis=1)
        decay = self._decay(k)
        apart = np.tile(separate.query, separate.value.shape[0])
        return (
            Rows(shared.value, shared.use, decay[shared.query], np.zeros((0, 2), dtype=np.int64)),
            Rows(separate.value.reshape(count, levels), size, decay[apart], links),
        )

    def _decay(self, k: int) -> Floats:
        """Return the part of the value that is left of each query's improvement, (Q, W); 0: not allowed."""
        problem = self.problem
        ends = problem.start_s + problem.length_s
        later = np.arange(k + 1, k + 1 + self.window)
        known = later < len(ends)
        later = np.minimum(later, len(ends) - 1)
        allowed = problem.start_s[later] - problem.start_s[k] <= problem.backfill_window_s[:, None] + 1e-6
        part = 0.5 ** ((ends[later] - ends[k]) / problem.half_life_s[:, None])
        return np.asarray(np.where(allowed & known, part, 0.0))

    def set_prices(self, price: Floats) -> None:
        """Take prices (K, M) of all of the uplinks' capacities, USD."""
        capacity = self.problem.capacity_bytes
        none = NO_CAPACITY_PRICE * max(self.problem.total_usd, 1e-12)
        self.byte_price = np.where(capacity > 0, price / np.where(capacity > 0, capacity, 1.0), none)

    def costs(self, rows: Rows, t: int) -> Floats:
        """Return the price of the bytes of each level in interval t, (R, L), USD."""
        own = self.byte_price[min(t, len(self.byte_price) - 1)]
        if len(rows.links):
            return np.asarray((rows.size * own[rows.links][:, None, :]).sum(axis=2))
        return np.asarray((rows.size.reshape(-1, len(own)) @ own).reshape(rows.value.shape))

    def find(self, rows: Rows, k: int, first: int = 1) -> tuple[Floats, Ints, Ints]:
        """Return the gain of later data by first level, (R, L), its level, and after how many intervals.

        first  intervals that pass at least
        """
        after = np.minimum(k + 1 + np.arange(self.window), len(self.byte_price) - 1)
        own = self.byte_price[after]  # W, M
        if len(rows.links):
            cost = np.einsum("rlu,wru->wrl", rows.size, own[:, rows.links])
        else:
            cost = own @ rows.size.reshape(-1, own.shape[1]).T
        cost = np.ascontiguousarray(cost.reshape(self.window, *rows.value.shape))
        return _find_gains(rows.value, rows.decay, cost, first)

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
                    own = waits[late == after]
                    _add_bytes(used, k + after, rows, own, level[own, best[own]])
        capacity = self.problem.capacity_bytes
        part = np.divide(used, capacity, out=np.zeros_like(used), where=capacity > 0)
        return total, np.where(capacity > 0, 1.0 - part, 0.0)


def _add_bytes(used: Floats, k: int, rows: Rows, own: Ints, level: Ints) -> None:
    size = rows.size[own, level]
    if len(rows.links):
        np.add.at(used[k], rows.links[own].ravel(), size.ravel())
    else:
        used[k] += size.sum(axis=0)


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
            for other in range(levels):
                more = value[row, other] - value[row, level]
                if more <= 0:
                    continue
                for after in range(first - 1, decay.shape[1]):
                    net = more * decay[row, after] - cost[after, row, other]
                    if net > gain[row, level]:
                        gain[row, level], finer[row, level], later[row, level] = net, other, after + 1
    return gain, finer, later


def find_time_prices(problem: Analytics, choices: Choices, waiting: Waiting, target: float) -> TimePrices:
    """Return prices of all intervals with a low bound, by subgradient steps.

    target  value of a plan, USD, towards which steps go
    """
    start: Floats | None = None
    found = []
    for k in range(len(problem.interval_numbers)):
        start = prices.find_prices(choices.interval(k), start).price
        found.append(start)
    best = price = np.array(found)
    bound, slope = waiting.bound(price)
    least, part, stalled = bound, 1.0, 0
    for _ in range(MOST_STEPS):
        norm = float((slope**2).sum())
        if norm == 0 or bound <= target or part < 1e-3:
            break
        price = np.maximum(price - part * (bound - target) / norm * slope, 0.0)
        bound, slope = waiting.bound(price)
        stalled += 1
        if bound < least:
            least, best, stalled = bound, price, 0
        if stalled >= STALL:
            part, stalled, price = part / 2, 0, best
            bound, slope = waiting.bound(price)
    waiting.set_prices(best)
    return TimePrices(best, least)
