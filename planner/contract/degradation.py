"""Observations that are worse than the truth: by age of information, measurement noise and granularity.

A control plane may decide on figures that are old, measured with noise, or aggregated. These functions
derive such figures from true ones, in the same way in every system. Each system applies them to its own
quantities: rates, capacities, scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

Noise = Annotated[
    float, Field(ge=0, description="standard deviation of the logarithm of each measured value")
]
Seed = Annotated[int, Field(ge=0, description="seed of measurement noise, and of changes since then")]
AgeS = Annotated[float, Field(ge=0, description="age of the information that the design decides on, s")]
GranularityKm = Annotated[
    float,
    Field(ge=0, description="places within squares of this side are observed as one, km; 0: each place"),
]


@dataclass(frozen=True, kw_only=True)
class Degradation:
    """One way in which an observation can be worse than the truth, and the values to try.

    kind       age of information, measurement noise, or granularity
    parameter  of `information`, the same in every design that has it, such as `age_s`
    values     ascending, from exact information to hardly useful
    unit       of the values, "" where they are plain numbers
    about      meaning of the values, in one line
    seeds      number of random draws; where above 1, `information` has a parameter `seed`
    """

    kind: Literal["age", "noise", "granularity"]
    parameter: str
    values: tuple[float, ...]
    unit: str = ""
    about: str = ""
    seeds: int = 1


def add_noise(
    values: NDArray[np.float64], noise: float, rng: np.random.Generator | None
) -> NDArray[np.float64]:
    """Return the values as measured: each times a lognormal factor of median 1; the same array without noise.

    noise  standard deviation of the factor's logarithm
    """
    if noise == 0:
        return values
    assert rng is not None
    return np.asarray(values * rng.lognormal(0.0, noise, size=values.shape))


def drift(
    values: NDArray[np.float64], *, age: float, memory: float, spread: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the values as they were `age` ago; the same array for age 0.

    The logarithm of each value is an Ornstein-Uhlenbeck process in equilibrium: then and now differ by a
    normal variable of variance 2 spread^2 (1 - exp(-age / memory)).

    memory  time in which the autocorrelation falls to 1/e, in the unit of `age`
    spread  standard deviation of a value's logarithm over time
    """
    if age == 0 or spread == 0:
        return values
    deviation = spread * math.sqrt(-2 * math.expm1(-age / memory))
    return np.asarray(values * rng.lognormal(0.0, deviation, size=values.shape))


def round_up(values: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return the values rounded up to multiples of `step`; the same array for step 0."""
    if step == 0:
        return values
    return np.asarray(np.ceil(values / step - 1e-9) * step)


def average_within(
    values: NDArray[np.float64], block: NDArray[np.int64], weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the mean of each value's block in place of the value.

    values   (n,) or (n, m): rows are averaged
    block    (n,) number of the block of each row, from 0
    weights  (n,) weight of each row; default: equal. In a block of total weight 0 the rows have equal weights
    """
    count = int(block.max(initial=-1)) + 1
    weight = np.ones(len(block)) if weights is None else weights
    total = np.bincount(block, weights=weight, minlength=count)
    weight = np.where(total[block] > 0, weight, 1.0)
    total = np.bincount(block, weights=weight, minlength=count)
    table = values.reshape(len(values), -1)
    sums = np.zeros((count, table.shape[1]))
    np.add.at(sums, block, table * weight[:, None])
    return np.asarray((sums / np.maximum(total, 1e-300)[:, None])[block].reshape(values.shape))
