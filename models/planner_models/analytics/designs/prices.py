"""Lagrangian relaxation: prices of uplinks, with which each query chooses alone; a bound on all plans.

The dual function is convex and has kinks. It is minimized smoothed, with a soft maximum at falling
temperatures, by L-BFGS-B; the bound is the value of the function itself, at the prices found.

source  Nesterov 2005 (smooth minimization of non-smooth functions); Byrd et al. 1995 (L-BFGS-B)
"""

from __future__ import annotations

import contextlib
import math
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner.threads import limit_blas
from planner_models.analytics.designs.choices import Interval

TEMPERATURES: Final = (3e-3, 3e-4, 5e-5)
"""Of the soft maximum, as parts of the bound over the number of maxima."""
MOST_STEPS: Final = (25, 60, 120)
STEPS_LINKS: Final = 220
"""Uplinks up to which these steps suffice; more prices take more steps, as the root of their number."""
LEAST_PROGRESS: Final = 3e-9  # of the dual function in a step, relative, at which a temperature ends
LEAST_EXPONENT: Final = -36.0  # of a weight that counts beside 1
LEAST_WEIGHT: Final = 1e-16
MEMORY: Final = 12  # steps whose gradients L-BFGS-B keeps


class Priced(NamedTuple):
    """Prices of uplinks with the choices that are best at them.

    price    (M,) price of all of an uplink's capacity, USD
    bound    value that no choices within all capacities exceed, USD
    regret   (n, L) profit that a shared query loses by another answer, USD; inf where it is impossible
    """

    price: Floats
    bound: float
    regret: Floats


def find_prices(
    interval: Interval,
    start: Floats | None = None,
    *,
    steps: tuple[int, ...] | None = None,
    rounds: int | None = None,
) -> Priced:
    """Return prices of uplinks near those of least bound.

    start   (M,) prices to start from, such as those of the interval before
    steps   of L-BFGS-B at each temperature, 0: without it, default: by the number of uplinks; the first one
            is left out where there is a start
    rounds  most evaluations of the dual function, smoothed or not, by a protocol; default: any number
    """
    from scipy.optimize import minimize

    if steps is None:
        factor = max(1.0, interval.links / STEPS_LINKS) ** 0.5
        steps = tuple(round(max_steps * factor) for max_steps in MOST_STEPS)
    shared, separate = interval.shared, interval.separate
    maxima = max(1, len(shared.query) + separate.value.shape[0] * separate.value.shape[1])
    price = np.zeros(interval.links) if start is None else start
    best, _ = evaluate_bound(interval, price)
    scale = max(best, 1e-12)
    turns = list(zip(TEMPERATURES, steps, strict=False))[0 if start is None else 1 :]
    turns = [turn for turn in turns if turn[1]]
    each = None if rounds is None else (rounds - len(turns) - 2) // len(turns)
    for temperature, max_steps in turns:
        smooth = _Smoothed(interval, temperature * scale / maxima, scale, each)
        with limit_blas(), contextlib.suppress(_RoundsUsed):
            minimize(
                smooth,
                price / scale,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * interval.links,
                options={"maxiter": max_steps, "maxcor": MEMORY, "ftol": LEAST_PROGRESS, "gtol": 1e-7},
            )
        candidate = smooth.best * scale
        bound, _ = evaluate_bound(interval, candidate)
        if bound < best or not price.any():
            best, price = bound, candidate
        scale = max(best, 1e-12)
    bound, regret = evaluate_bound(interval, price)
    return Priced(price, bound, regret)


def evaluate_bound(interval: Interval, price: Floats) -> tuple[float, Floats]:
    """Return the dual function at some prices, USD, and the regrets of shared queries, (n, L)."""
    shared_profit, separate_profit = find_profits(interval, price)
    best = shared_profit.max(axis=1) if len(shared_profit) else np.zeros(0)
    bound = float(price.sum() + best.sum() + separate_profit.max(axis=2, initial=-np.inf).sum())
    return bound, best[:, None] - shared_profit


def find_profits(interval: Interval, price: Floats) -> tuple[Floats, Floats]:
    """Return the value of each option less the price of its use, of shared and of separate queries."""
    shared, separate = interval.shared, interval.separate
    sites = len(interval.pop_of)
    with limit_blas():
        cost = shared.use.reshape(-1, interval.links) @ price
    profit = shared.value - cost.reshape(shared.value.shape)
    site_price, of_pop = price[:sites, None, None], price[sites:][interval.pop_of][:, None, None]
    return profit, separate.value - separate.use * site_price - separate.pop_use * of_pop


class _RoundsUsed(Exception):
    """There are no more rounds."""


class _Smoothed:
    """Dual function with a soft maximum, in units of `scale`, and its gradient; keeps the best prices.

    rounds  most evaluations; None: any number
    """

    def __init__(self, interval: Interval, temperature: float, scale: float, rounds: int | None) -> None:
        self.interval, self.temperature, self.scale, self.rounds = interval, temperature, scale, rounds
        self.least, self.best, self.done = np.inf, np.zeros(interval.links), 0

    def __call__(self, scaled: Floats) -> tuple[float, Floats]:
        """Return the value and the gradient at prices; raise _RoundsUsed beyond the most evaluations."""
        if self.done == self.rounds:
            raise _RoundsUsed
        self.done += 1
        value, gradient = self._evaluate(scaled)
        if value < self.least:
            self.least, self.best = value, scaled.copy()
        return value, gradient

    def _evaluate(self, scaled: Floats) -> tuple[float, Floats]:
        shared, separate = self.interval.shared, self.interval.separate
        price = scaled * self.scale
        use = shared.use.reshape(-1, len(price))
        profit = shared.value - (use @ price).reshape(shared.value.shape)
        largest = profit.max(axis=1, keepdims=True, initial=-np.inf)
        weight = np.exp((profit - largest) / self.temperature)
        sums = weight.sum(axis=1, keepdims=True)
        share = (weight / sums).ravel()
        counts = np.flatnonzero(share > LEAST_WEIGHT)  # few at low temperatures
        gradient = 1.0 - share[counts] @ use[counts]
        total = price.sum() + largest.sum() + self.temperature * np.log(sums).sum()
        total += soften_sites(
            price, self.temperature, separate.value, separate.use, separate.pop_use, self.interval.pop_of,
            gradient,
        )  # fmt: skip
        return float(total) / self.scale, gradient


@run_small_in_python(max_elements=500)
@kernel
def soften_sites(
    price: Floats,
    temperature: float,
    value: Floats,
    use: Floats,
    pop_use: Floats,
    pop_of: Ints,
    gradient: Floats,
) -> float:
    """Return the soft maxima of options of sites, (S, n, L), at a temperature, USD; subtract their use.

    gradient  (M,) of the dual function
    """
    sites, count, levels = value.shape
    weight = np.empty(levels)
    total = 0.0
    for site in range(sites):
        pop = sites + pop_of[site]
        site_price, of_pop = price[site], price[pop]
        for query in range(count):
            largest = -np.inf
            for level in range(levels):
                weight[level] = value[site, query, level]
                if weight[level] > -np.inf:
                    weight[level] -= (
                        use[site, query, level] * site_price + pop_use[site, query, level] * of_pop
                    )
                    largest = max(largest, weight[level])
            sums = 0.0
            for level in range(levels):
                less = (weight[level] - largest) / temperature
                weight[level] = math.exp(less) if less > LEAST_EXPONENT else 0.0
                sums += weight[level]
            total += largest + temperature * math.log(sums) if sums > 1.0 else largest
            for level in range(levels):
                if weight[level] > 0.0:
                    share = weight[level] / sums
                    gradient[site] -= share * use[site, query, level]
                    gradient[pop] -= share * pop_use[site, query, level]
    return float(total)


def best_answers(priced: Priced) -> Ints:
    """Return the answer of least regret of each shared query, (n,)."""
    regret = priced.regret
    return np.asarray(regret.argmin(axis=1), dtype=np.int64) if len(regret) else np.zeros(0, dtype=np.int64)
