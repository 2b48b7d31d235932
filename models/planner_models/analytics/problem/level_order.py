"""Order of a query's levels: which data can be made coarser into which answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.arrays import Bools
from planner_models.analytics.problem.schema import BUCKETS, COARSEST, INTERVAL, SUM

if TYPE_CHECKING:
    from planner_models.analytics.problem.tables import QueryTables

NESTED: Final = (INTERVAL, BUCKETS)
"""Operators whose data only becomes coarser in whole multiples: seconds of an interval, buckets joined."""


def divides(fine: float, coarse: float) -> bool:
    """Return whether `coarse` is a whole multiple of `fine`."""
    return fine > 0 and abs(coarse / fine - round(coarse / fine)) < 1e-9


def is_finer(operator: str, fine: float, coarse: float) -> bool:
    """Return whether data of one parameter of `interval` or `buckets` can be made into that of another."""
    return divides(fine, coarse) if operator == INTERVAL else divides(coarse, fine)


def find_refinements(problem: QueryTables) -> Bools:
    """Return whether data of level l can make an answer of level z, (Q, L, L) by query, l and z.

    Where the answer is at the coarsest level of any site, levels are steps of one list: each can be made
    into all later ones, but intervals and buckets only into whole multiples. Where the worst error counts,
    a level can make every answer of no more value. Where sites add up, a level only makes its own answer.

    source  "Making Every Bit Count in Wide-Area QueryTables" (Rabkin et al. 2013), section 4
    """
    rows = problem.level_rows
    refines = np.zeros((*rows.shape, rows.shape[1]), dtype=bool)
    combine = problem.queries["combine"].astype(str).tolist()
    operators = problem.levels["operator"].astype(str).tolist()
    parameters = (
        problem.levels["parameter"].to_numpy(float).tolist()
        if "parameter" in problem.levels
        else [np.nan] * len(operators)
    )
    for query, rows_of in enumerate(rows.tolist()):
        levels = [column for column, row in enumerate(rows_of) if row >= 0]
        for first in levels:
            for other in levels:
                if combine[query] == SUM:
                    refines[query, first, other] = first == other
                elif combine[query] == COARSEST:
                    operator = operators[rows_of[first]]
                    nested = operator in NESTED and operator == operators[rows_of[other]]
                    refines[query, first, other] = (
                        is_finer(operator, parameters[rows_of[first]], parameters[rows_of[other]])
                        if nested
                        else first <= other
                    )
                else:
                    share = problem.value_share[query]
                    refines[query, first, other] = share[first] >= share[other]
        none = problem.is_none[query]
        if combine[query] != SUM and none.any():
            refines[query, none, :] = none  # without data of a site there is no answer
            refines[query, np.ix_(levels)[0][:, None], np.flatnonzero(none)[None, :]] = True
    return refines


def find_unnested(operators: list[str], parameters: list[float]) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of levels of one query that only merge at a level that is not there, and its parameter.

    The merge of intervals is their least common multiple, that of numbers of buckets their greatest common
    divisor.
    """
    for operator in NESTED:
        rows_of = [row for row, name in enumerate(operators) if name == operator]
        for index, level in enumerate(rows_of):
            for other in rows_of[index + 1 :]:
                first, second = parameters[level], parameters[other]
                if divides(first, second) or divides(second, first):
                    continue
                merged = _merge(operator, first, second)
                if not any(abs(parameters[row] - merged) < 1e-9 * max(merged, 1.0) for row in rows_of):
                    yield level, other, merged


def _merge(operator: str, first: float, second: float) -> float:
    from fractions import Fraction
    from math import gcd, lcm

    first_fraction, other = (Fraction(value).limit_denominator(10_000) for value in (first, second))
    scale = lcm(first_fraction.denominator, other.denominator)
    pair = int(first_fraction * scale), int(other * scale)
    return (lcm(*pair) if operator == INTERVAL else gcd(*pair)) / scale
