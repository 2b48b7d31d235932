"""Errors of answers from records that pass a filter, against the answers from all records.

sources  Rabkin et al. 2013, section 4 (cells of cubes, error bounds on query results)
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner_models.analytics.problem import operators
from planner_models.analytics.problem.filters import Filter, read_value
from planner_models.analytics.problem.schema import AT_LEAST, AT_MOST, NOT_EQUAL

STATISTICS: Final = {"count": "size", "max": "max", "mean": "mean", "distinct": "nunique"}
"""Statistic of pandas for each aggregate; quantiles and lists of the largest cells are below."""


def find_passing(records: pd.DataFrame, condition: Filter | None) -> Bools:
    """Return whether each record passes, (n,); a blank cell only passes `not_equal`."""
    if condition is None:
        return np.ones(len(records), dtype=bool)
    column = records[condition.column]
    if condition.keeps not in (AT_LEAST, AT_MOST):
        code, unique = pd.factorize(column)  # -1 for a blank number
        is_equal = np.array([read_value(str(value)) == condition.value for value in unique] + [False])
        return np.asarray(is_equal[code] != (condition.keeps == NOT_EQUAL), dtype=bool)
    value = column.to_numpy(float)
    threshold = float(condition.value)
    return np.asarray(value >= threshold if condition.keeps == AT_LEAST else value <= threshold)


def measure_error(
    records: pd.DataFrame, passed: Bools, aggregate: str, *, quantile: float, wanted: int
) -> float:
    """Return the error of answers from records that pass, mean of all intervals, from 0 to 1.

    In each interval, that is the mean over the cells with records of the relative error of the cell's
    statistic, at most 1, which it is where no record of a cell passes. For lists of the largest cells, it is
    that of the counts of the true ones.

    records   interval, cell and value of each, of all sites
    quantile  that cubes of aggregate quantile are asked for
    wanted    largest cells that cubes of aggregate top_k are asked for
    """
    if not len(records):
        return 0.0
    if aggregate == "top_k":
        return _measure_lists(records, passed, wanted)
    true = _aggregate(records, aggregate, quantile)
    answer = _aggregate(records[passed], aggregate, quantile).reindex(true.index).to_numpy(float)
    error = pd.Series(_compare(true.to_numpy(float), answer), index=true.index)
    return float(error.groupby(level="interval").mean().mean())


def _aggregate(records: pd.DataFrame, aggregate: str, quantile: float) -> pd.Series:
    """Return the statistic of each interval and cell with a record."""
    values = records.groupby(["interval", "cell"], observed=True)["value"]
    if aggregate == "quantile":
        return values.quantile(quantile)
    statistic: pd.Series = values.agg(STATISTICS[aggregate])
    return statistic


def _compare(true: Floats, answer: Floats) -> Floats:
    """Return the relative errors of statistics, at most 1; 1 for one that is missing (NaN)."""
    distance = np.abs(true - answer)
    relative = np.divide(distance, np.abs(true), out=np.where(distance > 0, 1.0, 0.0), where=true != 0)
    return np.where(np.isnan(answer), 1.0, np.minimum(relative, 1.0))


def _measure_lists(records: pd.DataFrame, passed: Bools, wanted: int) -> float:
    """Return the mean error of the counts of the largest cells over the intervals."""
    errors = []
    for row in records.groupby("interval").indices.values():
        cell = pd.factorize(records["cell"].iloc[row], sort=True)[0]
        true: Floats = np.bincount(cell).astype(float)
        answer: Floats = np.bincount(cell, weights=passed[row], minlength=len(true)).astype(float)
        errors.append(operators.judge_counts(true, answer, operators.largest(answer, wanted), wanted))
    return float(np.mean(errors))
