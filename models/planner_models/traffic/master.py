"""The master problem of column generation, by an interior point that starts warm and stops early.

    min U   subject to   sum_p L[e, p] w[p] <= U  for every row e,   sum of w over each group = 1,   w >= 0

L[e, p] is what column p puts on row e, in units of its capacity; groups are roots. Its dual prices
y >= 0 add up to 1, and group r is worth v_r = min over its columns of L' y.

A start inside all limits is always at hand (mix the weights, raise U; mix the prices, lower v), so
every iterate is feasible on both sides and can be stopped at any gap. Prices from the middle of
the optimal face, not from a corner, are what column generation wants. The normal equations are
dense and only as large as there are rows: the groups' equations are eliminated by subtracting
each group's mean, weighted, from its columns.

source  Gondzio, González-Brevis and Munari, "New developments in the primal-dual column generation
        technique" (EJOR 2013), for stopping early; Mehrotra's predictor and corrector
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

Floats = NDArray[np.float64]

STEPS: Final = 60  # a few more than any master has taken


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """A point inside the limits of both sides.

    weight  (P,) of the columns, adding up to 1 in each group
    price   (M,) of the rows, adding up to 1
    value   largest load of a row under `weight`
    bound   no weights of these columns make it smaller
    """

    weight: Floats
    price: Floats
    value: float
    bound: float


def solve(
    load: Floats,
    group: NDArray[np.int64],
    *,
    weight: Floats,
    price: Floats,
    gap: float,
    until: float | None = None,
) -> Solved:
    """The best mix of the columns, to a relative `gap`.

    load    (M, P) what each column puts on each row
    group   (P,) the group of each column, ascending, 0 to R - 1, none empty
    weight  (P,) and price (M,) where to start: at least 0; they are moved inside the limits
    until   a moment of time.perf_counter() to stop at
    """
    first = np.flatnonzero(np.r_[True, np.diff(group) > 0])
    size = np.diff(np.r_[first, len(group)])
    rows = len(load)
    scale = float((load @ (1.0 / size)[group]).max()) or 1.0
    load = load / scale

    # inside the limits, and not too far from the middle
    w = 0.9 * _normal(weight, group, first) + 0.1 / size[group]
    y = _normal_sum(0.9 * _normal_sum(price) + 0.1 / rows)
    carried, length = load @ w, y @ load
    v = np.minimum.reduceat(length, first)
    room = 0.1 * max(carried.max() - v.sum(), 1e-3 * carried.max())
    u = float(carried.max()) + room
    v = v - room / len(first)
    s, z = u - carried, length - v[group]

    best_w, value = w, float(carried.max())
    best_y, bound = y, float(np.minimum.reduceat(length, first).sum())
    for _ in range(STEPS):
        if value - bound <= gap * value or (until is not None and time.perf_counter() >= until):
            break
        toward = _newton(load, group, first, w, s, y, z)
        if toward is None:  # as exact as these numbers allow
            break
        middle = float(w @ z + s @ y) / (len(w) + rows)
        dw, ds, _, dy, _, dz = toward(-w * z, -s * y)
        a, b = _furthest(w, dw, s, ds), _furthest(y, dy, z, dz)
        after = float((w + a * dw) @ (z + b * dz) + (s + a * ds) @ (y + b * dy)) / (len(w) + rows)
        aim = middle * min(1.0, max(after / middle, 0.0)) ** 3
        dw, ds, du, dy, dv, dz = toward(aim - w * z - dw * dz, aim - s * y - ds * dy)
        a, b = 0.97 * _furthest(w, dw, s, ds), 0.97 * _furthest(y, dy, z, dz)
        w, u = _normal(w + a * dw, group, first), u + a * du
        y, v = _normal_sum(y + b * dy), v + b * dv
        # s and z follow from them; the floors keep rounding from making them negative
        carried, length = load @ w, y @ load
        s = np.maximum(u - carried, 1e-15)
        z = np.maximum(length - v[group], 1e-15)
        if carried.max() < value:
            best_w, value = w, float(carried.max())
        if (worth := float(np.minimum.reduceat(length, first).sum())) > bound:
            best_y, bound = y, worth
    return Solved(weight=best_w, price=best_y, value=value * scale, bound=bound * scale)


Step = tuple[Floats, Floats, float, Floats, Floats, Floats]
"""Changes of w, s, U, y, v and z."""


def _newton(
    load: Floats,
    group: NDArray[np.int64],
    first: NDArray[np.int64],
    w: Floats,
    s: Floats,
    y: Floats,
    z: Floats,
) -> Callable[[Floats, Floats], Step] | None:
    """The step that changes the products w z and s y by what it is given; None where numbers fail."""
    ratio = w / z
    mass = np.add.reduceat(ratio, first)
    mean = np.add.reduceat(load * ratio, first, axis=1) / mass
    centred = load - mean[:, group]
    half = centred * np.sqrt(ratio)
    normal = dsyrk(1.0, half.T, trans=1)
    normal[np.diag_indices_from(normal)] += s / y
    try:
        factor = cho_factor(normal, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    ones = cho_solve(factor, np.ones(len(s)), check_finite=False)

    def toward(wz: Floats, sy: Floats) -> Step:
        push = wz / z
        dy = cho_solve(factor, centred @ push + sy / y, check_finite=False)
        du = float(dy.sum() / ones.sum())
        dy -= du * ones
        rest = np.add.reduceat(push, first) / mass
        dv = dy @ mean - rest
        dz = dy @ centred + rest[group]
        dw = push - ratio * dz
        return dw, (sy - s * dy) / y, du, dy, dv, dz

    return toward


def _furthest(one: Floats, done: Floats, other: Floats, dother: Floats) -> float:
    """The largest step, at most 1, that leaves both at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = [np.where(d < 0, -x / d, np.inf).min() for x, d in ((one, done), (other, dother))]
    return float(min(1.0, *limits))


def _normal(weight: Floats, group: NDArray[np.int64], first: NDArray[np.int64]) -> Floats:
    """The weights, adding up to 1 in each group; even where a group has none."""
    total = np.add.reduceat(weight, first)
    size = np.diff(np.r_[first, len(group)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total[group] > 0, weight / total[group], 1.0 / size[group])


def _normal_sum(price: Floats) -> Floats:
    total = price.sum()
    return price / total if total > 0 else np.full(len(price), 1.0 / len(price))
