"""The master problem of column generation, by an interior point that starts inside and stops early.

    max v'w   subject to   A w <= limit for every row,   sum of w over each object = 1,   w >= 0

Columns are trees, each object's first being the empty one. Every iterate is feasible on both sides,
so it can be stopped at any gap; prices from the middle of the optimal face, not from a corner, are
what column generation wants. The objects' equations are eliminated, which leaves normal equations
as large as there are rows.

source  Gondzio, González-Brevis and Munari, "New developments in the primal-dual column generation
        technique" (EJOR 2013), for stopping early; Mehrotra's predictor and corrector
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from threadpoolctl import threadpool_limits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS: Final = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Trees as columns, sorted by object; row entries of column p are start[p]:start[p + 1].

    first  (G + 1,) columns of the g-th object, the first of each empty
    """

    value: Floats
    first: Ints
    start: Ints
    row: Ints
    amount: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """weight (P,) of the columns, price (M,) of the rows; value and bound of the master."""

    weight: Floats
    price: Floats
    value: float
    bound: float


def solve(
    columns: Columns, limit: Floats, *, weight: Floats, price: Floats, gap: float, until: float
) -> Solved:
    """The best mix of the columns, to a relative `gap`.

    limit   (M,) of the rows, positive
    weight  (P,), price (M,) where to start; they are moved inside the limits
    until   a moment of time.perf_counter() to stop at
    """
    # a BLAS that spreads over all cores stalls where others need them
    with threadpool_limits(limits=1, user_api="blas"):
        return _solve(columns, limit, weight, price, gap, until)


def _solve(
    columns: Columns, limit: Floats, weight: Floats, price: Floats, gap: float, until: float
) -> Solved:
    first, start, row, amount, v = columns.first, columns.start, columns.row, columns.amount, columns.value
    size = np.diff(first)
    group = np.repeat(np.arange(len(size)), size)
    counts = np.diff(start)
    owner = np.repeat(np.arange(len(v)), counts)
    amount = amount / limit[row]  # rows in units of their limits
    scale = max(float(v.max(initial=0.0)), 1e-9)
    v = v / scale
    rows = len(limit)

    def times(w: Floats) -> Floats:
        return np.asarray(np.bincount(row, weights=w[owner] * amount, minlength=rows), dtype=np.float64)

    def transposed(y: Floats) -> Floats:
        return np.asarray(np.bincount(owner, weights=y[row] * amount, minlength=len(v)), dtype=np.float64)

    # inside: some of everything, the rest on the empty tree
    w = np.maximum(weight, 0.0) * 0.9 + 0.1 / size[group]
    w[first[:-1]] = 0.0
    carried = times(w)
    w *= min(0.95, 0.95 / max(float(carried.max(initial=0.0)), 1e-9))
    total = np.add.reduceat(w, first[:-1])
    w /= np.maximum(total / 0.98, 1.0)[group]
    w[first[:-1]] = 1.0 - np.add.reduceat(w, first[:-1])
    s = 1.0 - times(w)
    y = np.maximum(
        price * limit / scale, 1e-4 * max(float(price.max(initial=0.0) * limit.max()) / scale, 1e-3)
    )
    reduced = v - transposed(y)
    u = np.maximum.reduceat(reduced, first[:-1])
    u = u + 0.02 * max(float(np.abs(u).mean()), 1e-3)
    z = u[group] - reduced

    def toward(
        factor: Any, ratio: Floats, mass: Floats, z: Floats, s: Floats, y: Floats, wz: Floats, sy: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Changes of w, s, y and z that change the products w z and s y by wz and sy."""
        push = wz / z
        pushed = np.add.reduceat(push, first[:-1]) / mass
        dy = cho_solve(factor, times(push - ratio * pushed[group]) + sy / y, check_finite=False)
        along = transposed(dy)
        du = pushed - np.add.reduceat(ratio * along, first[:-1]) / mass
        dz = du[group] + along
        return push - ratio * dz, (sy - s * dy) / y, dy, dz

    value, bound, best_y, best_w = -np.inf, np.inf, y, w
    for _ in range(STEPS):
        primal, dual = float(v @ w), float(y.sum() + np.maximum.reduceat(v - transposed(y), first[:-1]).sum())
        if primal > value:
            value, best_w = primal, w
        if dual < bound:
            bound, best_y = dual, y
        if bound - value <= gap * abs(bound) or time.perf_counter() >= until:
            break
        ratio = w / z
        mass = np.add.reduceat(ratio, first[:-1])
        normal = _normal(first, start, row, amount, ratio, mass, rows)
        normal[np.diag_indices(rows)] += s / y
        try:
            factor = cho_factor(normal, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:  # as exact as these numbers allow
            break

        middle = float(w @ z + s @ y) / (len(w) + rows)
        dw, ds, dy, dz = toward(factor, ratio, mass, z, s, y, -w * z, -s * y)
        a, b = _furthest(w, dw, s, ds), _furthest(y, dy, z, dz)
        after = float((w + a * dw) @ (z + b * dz) + (s + a * ds) @ (y + b * dy)) / (len(w) + rows)
        aim = middle * min(1.0, max(after / middle, 0.0)) ** 3
        wz, sy = aim - w * z - dw * dz, aim - s * y - ds * dy
        dw, ds, dy, dz = toward(factor, ratio, mass, z, s, y, wz, sy)
        a, b = 0.97 * _furthest(w, dw, s, ds), 0.97 * _furthest(y, dy, z, dz)
        w, s = w + a * dw, np.maximum(s + a * ds, 1e-14)
        y, z = y + b * dy, np.maximum(z + b * dz, 1e-14)
    return Solved(weight=best_w, price=best_y * scale / limit, value=value * scale, bound=bound * scale)


@nb.njit(cache=True, nogil=True)
def _normal(  # noqa: C901
    first: Ints, start: Ints, row: Ints, amount: Floats, ratio: Floats, mass: Floats, rows: int
) -> Floats:
    """A D A' less the rank-one part of each object, lower triangle and diagonal."""
    normal = np.zeros((rows, rows))
    mean = np.zeros(rows)
    touched = np.zeros(rows, dtype=np.int64)
    for g in range(len(first) - 1):
        count = 0
        for p in range(first[g], first[g + 1]):
            for n in range(start[p], start[p + 1]):
                i = row[n]
                share = ratio[p] * amount[n]
                for m in range(start[p], n + 1):
                    j = row[m]
                    if j <= i:
                        normal[i, j] += share * amount[m]
                    else:
                        normal[j, i] += share * amount[m]
                if mean[i] == 0.0 and share != 0.0:
                    touched[count] = i
                    count += 1
                mean[i] += share
        for n in range(count):
            i = touched[n]
            share = mean[i] / mass[g]
            for m in range(count):
                j = touched[m]
                if j <= i:
                    normal[i, j] -= share * mean[j]
        for n in range(count):
            mean[touched[n]] = 0.0
    return normal


def _furthest(one: Floats, done: Floats, other: Floats, dother: Floats) -> float:
    """The largest step, at most 1, that leaves both at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = [
            float(np.where(d < 0, -x / d, np.inf).min(initial=np.inf))
            for x, d in ((one, done), (other, dother))
        ]
    return min(1.0, *limits)
