"""Verification of primal and dual values of a linear program, independent of the solver.

Any y (one multiplier per row) proves a bound by weak duality: with reduced costs
z = cost - matrix' y, a minimum is at least

    sum_i (y_i > 0 ? y_i row_lower_i : y_i row_upper_i) + sum_j (z_j > 0 ? z_j lower_j : z_j upper_j) + offset

as long as no term needs an infinite limit. A y_i that needs one is set to zero, which is still a
proof, only of another y. A z_j that needs one first tries a limit that a row implies for x_j
(in a network, a capacity limits every flow), where a slightly wrong z_j costs slightly; only what
is left is forgiven when it is rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.backends.linear_program import INFINITE, ROUNDING_TOLERANCE, LinearProgram
from planner.backends.solution import Solution
from planner.contract.proof import Status, relative_gap
from planner.contract.tolerances import RELATIVE

PRIMAL_TOLERANCE = RELATIVE
"""Largest violation of a row or limit, relative to the largest of its limit, its terms, and 1 or the largest
amount of the program, where that is less."""

DUAL_TOLERANCE = RELATIVE
"""Largest error of a reduced cost where no limit exists, relative to 1 and the terms it sums. The bound gives
way by what such an error earns."""

CANCELLATION_TOLERANCE = 1e-8
"""Largest difference of objective and bound that counts as rounding, relative to the objective's terms, and
to 1 or the largest cost of an amount, where that is less; near 0 no relative gap can be small."""

OPTIMALITY_GAP = RELATIVE
"""Relative gap at which a verified linear program counts as optimal where none is asked for."""


@dataclass(frozen=True, kw_only=True)
class Verified:
    """Violations and bound that the values prove.

    primal   worst relative violation of rows and limits; at most PRIMAL_TOLERANCE counts as a plan
    dual     worst relative error of a reduced cost that no limit absorbs; None without duals
    bound    proven limit of the objective in the model's own sense; None where nothing is proven
    """

    primal: float
    dual: float | None = None
    bound: float | None = None

    @property
    def feasible(self) -> bool:
        return self.primal <= PRIMAL_TOLERANCE

    def proves(self, objective: float, gap: float | None) -> bool:
        """Return whether x is feasible and its objective lies within `gap` of the bound."""
        distance = relative_gap(objective, self.bound)
        return self.feasible and distance is not None and distance <= max(gap or 0.0, OPTIMALITY_GAP)


def verify(model: LinearProgram, x: NDArray[np.float64], row_duals: NDArray[np.float64] | None) -> Verified:
    """Check x (n,) and row_duals (m,) against the model, integrality aside; see the module's text.

    `row_duals` follow the convention of `planner.backends`, in either sense. Values that are not
    finite prove nothing.
    """
    if not np.isfinite(x).all():
        return Verified(primal=np.inf)
    primal = _primal_violation(model, x)
    if row_duals is None or not np.isfinite(row_duals).all():
        return Verified(primal=primal)
    dual, bound = _dual_bound(model, x, row_duals)
    return Verified(primal=primal, dual=dual, bound=bound)


def _primal_violation(model: LinearProgram, x: NDArray[np.float64]) -> float:
    activity = model.matrix @ x
    terms = abs(model.matrix) @ np.abs(x)
    floor = min(1.0, _largest_amount(model, x))
    worst = 0.0
    for value, low, high, size in (
        (activity, model.row_lower, model.row_upper, terms),
        (x, model.lower, model.upper, np.zeros_like(x)),
    ):
        for limit, excess in ((low, low - value), (high, value - high)):
            scale = np.maximum(floor, np.maximum(size, np.where(np.isfinite(limit), np.abs(limit), 0.0)))
            wrong = excess > 0
            worst = max(worst, float((excess[wrong] / scale[wrong]).max(initial=0.0)))
    return worst


def _largest_amount(model: LinearProgram, x: NDArray[np.float64]) -> float:
    """Return the largest absolute limit of rows and variables, or value x (n,)."""
    amounts = np.concatenate([model.row_lower, model.row_upper, model.lower, model.upper, x])
    return float(np.abs(amounts[np.isfinite(amounts)]).max(initial=0.0))


def _dual_bound(
    model: LinearProgram, x: NDArray[np.float64], row_duals: NDArray[np.float64]
) -> tuple[float, float | None]:
    sign = 1.0 if model.sense == "min" else -1.0
    y = sign * row_duals
    y = np.where((y > 0) & np.isinf(model.row_lower) | (y < 0) & np.isinf(model.row_upper), 0.0, y)
    z = sign * model.cost - model.matrix.T @ y
    rows = np.where(y > 0, model.row_lower, model.row_upper)
    columns = np.where(z > 0, model.lower, model.upper)

    open_ended = np.isinf(columns) & (z != 0)
    if open_ended.any():
        implied_lower, implied_upper = implied_limits(model)
        columns = np.where(open_ended, np.where(z > 0, implied_lower, implied_upper), columns)
        open_ended = np.isinf(columns) & (z != 0)

    error = 0.0
    if open_ended.any():
        terms = 1.0 + np.abs(model.cost) + abs(model.matrix).T @ np.abs(y)
        error = float((np.abs(z) / terms)[open_ended].max())
        if error > DUAL_TOLERANCE:
            return error, None
        # Forgiven, but charged: the bound gives way by what such an error earns at this x.
        columns = np.where(open_ended, x - np.sign(z) * np.maximum(1.0, np.abs(x)), columns)

    total = _dot(y, rows) + _dot(z, columns)
    return error, sign * total + model.offset if np.isfinite(total) else None


def _dot(multipliers: NDArray[np.float64], limits: NDArray[np.float64]) -> float:
    used = multipliers != 0  # 0 * inf would be NaN
    return float(multipliers[used] @ limits[used])


def implied_limits(model: LinearProgram) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper limits, (n,) each, that single rows imply with the other variables' limits.

    One pass: in `a x_j + rest <= u`, the least that `others` can be leaves the most for `a x_j`.
    """
    matrix = model.matrix
    low, high = model.lower.copy(), model.upper.copy()
    values, columns = matrix.data, matrix.indices
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    nonzero = values != 0
    values, columns, rows = values[nonzero], columns[nonzero], rows[nonzero]
    for a, limit in ((values, model.row_upper), (-values, -model.row_lower)):
        lower = np.where(a > 0, a * model.lower[columns], a * model.upper[columns])
        infinite = np.isinf(lower)
        finite_sum = np.bincount(rows, np.where(infinite, 0.0, lower), minlength=matrix.shape[0])
        infinite_count = np.bincount(rows, infinite, minlength=matrix.shape[0])
        # The rest is finite where nothing in the row is unlimited, or only this very term is.
        is_bounded = np.isfinite(limit[rows]) & (infinite_count[rows] == infinite)
        others = finite_sum[rows] - np.where(infinite, 0.0, lower)
        reach = np.where(is_bounded, limit[rows] - others, np.inf) / np.abs(a)
        up, down = is_bounded & (a > 0), is_bounded & (a < 0)
        np.minimum.at(high, columns[up], reach[up])
        np.maximum.at(low, columns[down], -reach[down])
    return low, high


class InfeasibleOrUnbounded(Exception):
    """A solver stopped without telling which of the two; `planner.backends.solve` finds out."""


def judge(
    model: LinearProgram,
    *,
    claimed: Status,
    backend: str,
    x: NDArray[np.float64] | None,
    row_duals: NDArray[np.float64] | None = None,
    bound: float | None = None,
    gap: float | None = None,
    has_basis: bool = False,
) -> Solution:
    """Return the Solution of a solver's raw answer, with the status and bound that its values prove.

    claimed    the solver's own status
    x          its values, if it has any; they count only where they satisfy rows and limits
    row_duals  of a linear program: the bound is what they prove, not what the solver says
    bound      the solver's bound; used for integer programs only
    gap        relative gap requested
    has_basis  the answer comes with a basis, as from a simplex or a crossover: then `optimal` is
               accepted where the dual values cannot be checked; other answers must prove it
    """
    if claimed in (Status.INFEASIBLE, Status.UNBOUNDED):
        return Solution(status=claimed, backend=backend)
    if x is None or not _is_point(model, x):
        return Solution(status=Status.UNDECIDED, backend=backend, bound=_finite_bound(model, bound))

    x = _round_integers(model, x)
    objective = model.objective_of(x)
    verified = _verify_with_bound(model, x, row_duals, bound)
    proven = verified.bound
    if not verified.feasible:
        broken = (f"{backend}'s answer violates a limit by {verified.primal:.1e} (relative)",)
        return Solution(
            status=Status.UNDECIDED,
            backend=backend,
            bound=proven,
            reasons=broken if claimed is Status.OPTIMAL else (),
        )

    if model.is_integer:
        duals, is_optimal = None, claimed is Status.OPTIMAL
    else:
        duals, is_optimal = row_duals, verified.proves(objective, gap)
        if has_basis and claimed is Status.OPTIMAL and proven is None:
            is_optimal, proven = True, objective
    return Solution(
        status=Status.OPTIMAL if is_optimal else Status.FEASIBLE,
        backend=backend,
        x=x,
        row_duals=duals,
        reduced_costs=None if duals is None else model.cost - model.matrix.T @ duals,
        objective=objective,
        bound=_within_objective(model, objective, proven),
    )


def _is_point(model: LinearProgram, x: NDArray[np.float64]) -> bool:
    """Return whether x has a finite value for each variable."""
    return x.shape == model.cost.shape and bool(np.isfinite(x).all())


def _verify_with_bound(
    model: LinearProgram, x: NDArray[np.float64], row_duals: NDArray[np.float64] | None, bound: float | None
) -> Verified:
    """Verify x with the bound that dual values prove, or with the solver's for integer programs.

    The bound is the objective value where they differ by no more than the rounding of their sums.
    """
    if model.is_integer:
        verified = replace(verify(model, x, None), bound=_finite_bound(model, bound))
    else:
        verified = verify(model, x, row_duals)
    if verified.bound is None:
        return verified
    objective = model.objective_of(x)
    is_equal = abs(verified.bound - objective) <= CANCELLATION_TOLERANCE * _magnitude(model, x)
    return replace(verified, bound=objective) if is_equal else verified


def _within_objective(model: LinearProgram, objective: float, bound: float | None) -> float | None:
    """Return the bound, which rounding may carry past the objective that it supports, at most there."""
    if bound is None:
        return None
    return min(bound, objective) if model.sense == "min" else max(bound, objective)


def _magnitude(model: LinearProgram, x: NDArray[np.float64]) -> float:
    """Return the sum of the objective's absolute terms, which may cancel to nearly 0.

    It is at least 1, or the largest cost of the largest amount, where that is less.
    """
    dearest = float(np.abs(model.cost).max(initial=0.0)) * _largest_amount(model, x)
    return max(min(1.0, dearest), abs(model.offset) + float(np.abs(model.cost) @ np.abs(x)))


def _finite_bound(model: LinearProgram, bound: float | None) -> float | None:
    return bound if model.is_integer and bound is not None and abs(bound) < INFINITE else None


def _round_integers(model: LinearProgram, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x with integer variables rounded, where that causes no new violation."""
    if model.integer is None:
        return x
    rounded = np.where(model.integer, np.round(x), x)
    return rounded if model.violation(rounded) <= max(model.violation(x), ROUNDING_TOLERANCE) else x
