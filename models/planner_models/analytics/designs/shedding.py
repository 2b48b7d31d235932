"""Answers that are left out because uplinks cannot carry even the coarsest levels of queries that need one.

An interval that has no other plan gets, for each query, or site of a query whose values add up, the choice of
no level at all. Of these choices an integer program takes as few as it can, then those that lose the least
value. The designs then plan the interval without them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Floats
from planner.options import Options
from planner_models.analytics.designs.choices import Choices, Interval, Separate, Shared
from planner_models.analytics.designs.program import build_interval
from planner_models.analytics.designs.shortage import explain_shortage

SCOPE: Final = "plans that leave out the same answers"
"""What bounds speak of where answers are left out."""
TIME_LIMIT_S: Final = 2.0


def fit_interval(choices: Choices, k: int) -> tuple[Interval, str | None]:
    """Return the choices of interval k, and why they do not fit; None where they may.

    Where queries may go without answers, those that do not fit are left out, and the reason is kept with the
    choices.
    """
    interval = choices.interval(k)
    reason = explain_shortage(choices.problem, interval, k, must_answer=choices.must_answer)
    if reason is None or choices.must_answer or not leave_out(choices, k, reason):
        return interval, reason
    return choices.interval(k), None


def leave_out(choices: Choices, k: int, reason: str) -> bool:
    """Mark the answers of interval k that do not fit as left out; False where none are found.

    reason  why not all fit
    """
    interval = choices.interval(k)
    values = [interval.shared.value, interval.separate.value]
    total = sum(float(np.where(np.isfinite(value), value, 0.0).max(axis=-1).sum()) for value in values)
    bonus = 2 * total if total > 0 else 1.0  # for each answer: no value makes up for one less
    shared, separate = interval.shared, interval.separate
    extended = Interval(
        interval.pop_of,
        interval.links,
        Shared(
            shared.query,
            _add_choice(shared.value + bonus),
            np.concatenate([shared.use, np.zeros_like(shared.use[:, :1])], axis=1),
            shared.sends,
        ),
        Separate(
            separate.query,
            _add_choice(separate.value + bonus),
            _add_choice(separate.use),
            _add_choice(separate.pop_use),
        ),
    )
    built = build_interval(extended)
    solution = backends.solve(built.program, Options(threads=1, seed=1, time_limit_s=TIME_LIMIT_S))
    if solution.x is None:
        return False
    answers, added = built.read(solution.x)
    of_query = answers == shared.value.shape[1]
    of_site = added == separate.value.shape[2]
    if not (of_query.any() or of_site.any()):
        return False
    choices.leave_out(k, shared.query[of_query], of_site, reason)
    return True


def _add_choice(values: Floats) -> Floats:
    """Return values by level with those of no level, 0, behind them."""
    return np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)
