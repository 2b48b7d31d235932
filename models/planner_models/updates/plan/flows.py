"""Times after which rules expire: when all flows that match them have ended, new ones too.

A rule that only one flow can match ends with it. A rule that matches a part of all flows, with m of them in
the mean, also matches the new ones of its part: the number of its flows is the queue M/M/inf with load m, and
the rule expires when that is empty for the first time.

Reference: Foster et al. 2013, IV.B.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import scipy.linalg

from planner.arrays import Floats, Ints

MOST_FLOWS: Final = 20
"""Flows that a rule may match; one that matches more lasts for more than 20 million mean lives of a flow."""
EXACT_TERMS: Final = 10_000
GRID: Final = 4_000
MOST_RULES: Final = 1e12


def expiry_lives(flows: float, rules: Ints) -> float | None:
    """Return the mean time until all rules of a class have expired, in mean lives of a flow; None for never.

    flows  present flows of the class, the same part of them at each switch where packets enter
    rules  (I,) rules into which its rule at each of these switches is divided, in equal parts
    """
    each = max(flows / len(rules), 1.0)
    matched = int(np.ceil(each / max(int(rules.min()), 1) - 1e-9))
    if matched <= 1:
        return harmonic(max(round(flows), 1))
    if matched > MOST_FLOWS:
        return None
    return mean_last_expiry(matched, float(rules.sum()))


def harmonic(count: int) -> float:
    """Return 1 + 1/2 + ... + 1/count: the mean largest of so many exponential lives, in mean lives."""
    exact = min(count, EXACT_TERMS)
    total = float((1 / np.arange(1, exact + 1)).sum())
    return total + (float(np.log(count / exact)) if count > exact else 0.0)


@lru_cache(maxsize=100_000)
def mean_last_expiry(matched: int, rules: float) -> float:
    """Return the mean time until the last of some rules has expired, in mean lives of a flow.

    matched  flows of each rule, at first and in the mean
    """
    time, alive = survival(matched)
    with np.errstate(divide="ignore"):
        any_alive = -np.expm1(rules * np.log1p(-alive))
    return float(np.trapezoid(any_alive, time))


@lru_cache(maxsize=MOST_FLOWS)
def survival(matched: int) -> tuple[Floats, Floats]:
    """Return times, in mean lives, and the probability that a rule has not expired by each of them.

    The rule has `matched` flows at first, and as many new ones in each mean life. The generator of the
    numbers of flows above 0 is made symmetric by the square roots of their stationary weights.
    """
    count = int(matched + 12 * np.sqrt(matched) + 30)
    flows = np.arange(1, count + 1)
    weight = np.cumsum(np.log(matched / flows))  # logarithm of matched^k / k!
    weight -= weight[matched - 1]
    births = np.append(np.full(count - 1, float(matched)), 0.0)
    rates, vectors = scipy.linalg.eigh_tridiagonal(births + flows, -np.sqrt(births[:-1] * flows[1:]))
    coefficients = vectors[matched - 1] * (np.exp(weight / 2) @ vectors)
    last = (np.log(MOST_RULES) + 40) / rates[0]
    time = np.append(0.0, np.geomspace(1e-4, last, GRID))
    alive: Floats = np.clip(np.exp(-np.outer(time, rates)) @ coefficients, 0.0, 1.0)
    alive[0] = 1.0
    return time, alive
