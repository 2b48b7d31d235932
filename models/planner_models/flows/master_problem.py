"""The master problem of column generation, by an interior-point method with warm start and early stop.

    min U   subject to   sum_p L[e, p] w[p] <= U  for every row e,   sum of w over each group = 1,   w >= 0

L[e, p] is the load of column p on row e, relative to the row's capacity; groups are roots. The dual
prices y >= 0 add up to 1, and the dual value of group r is v_r = min over its columns of L' y.

A strictly feasible start always exists (mix the weights and raise U; mix the prices and lower v), so
every iterate is feasible on both sides and can be stopped at any gap. Column generation converges
faster with prices from the middle of the optimal face than with those of a corner. The normal
equations are dense, and only as large as the number of rows: the groups' equations are eliminated by
subtracting each group's weighted mean from its columns.

source  Gondzio, González-Brevis and Munari, "New developments in the primal-dual column generation
        technique" (EJOR 2013), for stopping early; Mehrotra's predictor and corrector
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from planner.arrays import Floats, Ints
from planner.search.deadline import NEVER, Deadline

MAX_ITERATIONS: Final = 60  # a few more than any master problem has needed


@dataclass(frozen=True, kw_only=True, eq=False)
class MasterSolution:
    """A point that is strictly feasible in the primal and in the dual.

    weight  (P,) of the columns, adding up to 1 in each group
    price   (M,) of the rows, adding up to 1
    value   largest load of a row under `weight`
    bound   lower bound on the value of all weights of these columns
    """

    weight: Floats
    price: Floats
    value: float
    bound: float


def solve(
    load: Floats, group: Ints, *, weight: Floats, price: Floats, gap: float, deadline: Deadline = NEVER
) -> MasterSolution:
    """Solve for the best weights of the columns, to a relative `gap`.

    load    (M, P) load of each column on each row
    group   (P,) the group of each column, ascending, 0 to R - 1, none empty
    weight  (P,) and price (M,) to start from: at least 0; they are moved to the interior
    deadline  when to stop
    """
    first = np.flatnonzero(np.r_[True, np.diff(group) > 0])
    size = np.diff(np.r_[first, len(group)])
    rows = len(load)
    scale = float((load @ (1.0 / size)[group]).max()) or 1.0
    load = load / scale

    # strictly feasible, and not too far from the central path
    w = 0.9 * _normalize_groups(weight, group, first) + 0.1 / size[group]
    y = _normalize(0.9 * _normalize(price) + 0.1 / rows)
    row_load, length = load @ w, y @ load
    v = np.minimum.reduceat(length, first)
    slack = 0.1 * max(row_load.max() - v.sum(), 1e-3 * row_load.max())
    u = float(row_load.max()) + slack
    v = v - slack / len(first)
    s, z = u - row_load, length - v[group]

    best_w, value = w, float(row_load.max())
    best_y, bound = y, float(np.minimum.reduceat(length, first).sum())
    for _ in range(MAX_ITERATIONS):
        if value - bound <= gap * value or deadline.is_over:
            break
        direction = _newton(load, group, first, w, s, y, z)
        if direction is None:  # at the limit of numerical precision
            break
        complementarity = float(w @ z + s @ y) / (len(w) + rows)
        dw, ds, _, dy, _, dz = direction(-w * z, -s * y)
        a, b = _max_step(w, dw, s, ds), _max_step(y, dy, z, dz)
        predicted = float((w + a * dw) @ (z + b * dz) + (s + a * ds) @ (y + b * dy)) / (len(w) + rows)
        target = complementarity * min(1.0, max(predicted / complementarity, 0.0)) ** 3
        dw, ds, du, dy, dv, dz = direction(target - w * z - dw * dz, target - s * y - ds * dy)
        a, b = 0.97 * _max_step(w, dw, s, ds), 0.97 * _max_step(y, dy, z, dz)
        w, u = _normalize_groups(w + a * dw, group, first), u + a * du
        y, v = _normalize(y + b * dy), v + b * dv
        # s and z follow from them; the floors keep rounding from making them negative
        row_load, length = load @ w, y @ load
        s = np.maximum(u - row_load, 1e-15)
        z = np.maximum(length - v[group], 1e-15)
        if row_load.max() < value:
            best_w, value = w, float(row_load.max())
        if (dual_value := float(np.minimum.reduceat(length, first).sum())) > bound:
            best_y, bound = y, dual_value
    return MasterSolution(weight=best_w, price=best_y, value=value * scale, bound=bound * scale)


Direction = tuple[Floats, Floats, float, Floats, Floats, Floats]
"""Changes of w, s, U, y, v and z."""


def _newton(
    load: Floats, group: Ints, first: Ints, w: Floats, s: Floats, y: Floats, z: Floats
) -> Callable[[Floats, Floats], Direction] | None:
    """Return a function from changes of the products w z and s y to the Newton direction.

    None where the normal equations are numerically singular.
    """
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

    def direction(wz: Floats, sy: Floats) -> Direction:
        push = wz / z
        dy = cho_solve(factor, centred @ push + sy / y, check_finite=False)
        du = float(dy.sum() / ones.sum())
        dy -= du * ones
        pushed = np.add.reduceat(push, first) / mass
        dv = dy @ mean - pushed
        dz = dy @ centred + pushed[group]
        dw = push - ratio * dz
        return dw, (sy - s * dy) / y, du, dy, dv, dz

    return direction


def _max_step(x: Floats, dx: Floats, y: Floats, dy: Floats) -> float:
    """Return the largest step, at most 1, that leaves x and y at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = [np.where(d < 0, -value / d, np.inf).min() for value, d in ((x, dx), (y, dy))]
    return float(min(1.0, *limits))


def _normalize_groups(weight: Floats, group: Ints, first: Ints) -> Floats:
    """Return the weights scaled to add up to 1 in each group; equal weights where a group has none."""
    total = np.add.reduceat(weight, first)
    size = np.diff(np.r_[first, len(group)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total[group] > 0, weight / total[group], 1.0 / size[group])


def _normalize(price: Floats) -> Floats:
    total = price.sum()
    return price / total if total > 0 else np.full(len(price), 1.0 / len(price))
