"""Filters by value: levels at which a site sends only records that a comparison holds for.

A level of any operator but `none` may have a filter; operator `filter` does nothing else. Table `passing` has
the shares of the records, and of the cells, of a site that pass.

source  "Making Every Bit Count in Wide-Area Analytics" (Rabkin et al. 2013), sections 3 (filtering data,
        discarding records judged likely irrelevant) and 4 (sampled or filtered by criteria)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner_models.analytics.problem.schema import AT_LEAST, AT_MOST, EQUAL, NOT_EQUAL

if TYPE_CHECKING:
    from planner_models.analytics.problem.tables import QueryTables

FILTER_COLUMNS: Final = ("filter_column", "keeps", "filter_value")
NUMERIC: Final = (AT_LEAST, AT_MOST)
"""Comparisons that need a number."""
SIGNS: Final = {AT_LEAST: ">=", AT_MOST: "<=", EQUAL: "=", NOT_EQUAL: "is not"}


class Filter(NamedTuple):
    """Comparison of a column of records with a value, which holds for records that pass.

    value  a number where it is written as one, otherwise text
    """

    column: str
    keeps: str
    value: float | str

    def describe(self) -> str:
        """Return the comparison, as text."""
        value = f"{self.value:g}" if isinstance(self.value, float) else f"'{self.value}'"
        return f"{self.column} {SIGNS[self.keeps]} {value}"


def read_value(text: str) -> float | str:
    """Return the number that a text is, otherwise the text."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if np.isfinite(number) else text


def list_filters(levels: pd.DataFrame) -> list[Filter | None]:
    """Return the filter of each row of `levels`; None for no filter."""
    columns = [
        levels[name].astype(str).tolist() if name in levels else [""] * len(levels) for name in FILTER_COLUMNS
    ]
    return [
        Filter(column, keeps, read_value(value)) if column else None
        for column, keeps, value in zip(*columns, strict=True)
    ]


def passes(condition: Filter, value: float | str) -> bool:
    """Return whether a record with a value of the column passes."""
    if condition.keeps == EQUAL:
        return value == condition.value
    if condition.keeps == NOT_EQUAL:
        return value != condition.value
    if isinstance(value, str) or isinstance(condition.value, str):
        return False
    return value >= condition.value if condition.keeps == AT_LEAST else value <= condition.value


def implies(condition: Filter | None, other: Filter | None) -> bool:
    """Return whether all records that pass `condition` pass `other` too; None lets all pass.

    Then data that passed `other` can be filtered again into what `condition` lets pass.
    """
    if other is None or condition == other:
        return True
    if condition is None or condition.column != other.column:
        return False
    if condition.keeps == EQUAL:
        return passes(other, condition.value)
    if other.keeps == NOT_EQUAL:
        return condition.keeps in NUMERIC and not passes(condition, other.value)
    if condition.keeps != other.keeps or condition.keeps not in NUMERIC:
        return False
    return passes(other, condition.value)


def find_sent_bytes(problem: QueryTables, size: str, share: str) -> Floats:
    """Return the bytes that a site sends for each record, or cell, that it has, (S, Q, L).

    size   column of `levels`: bytes of a record, or of a cell, that passes
    share  column of `passing`
    """
    sent = np.repeat(problem.level_column(size)[None], len(problem.sites), axis=0)
    if problem.passing is None or not len(problem.passing):
        return sent
    return np.asarray(sent * find_shares(problem, share))


def find_shares(problem: QueryTables, column: str) -> Floats:
    """Return a share of table `passing` by site, query and level, (S, Q, L); 1 without a filter."""
    shares = np.ones((len(problem.sites), *problem.level_rows.shape))
    frame = problem.passing
    if frame is None or not len(frame):
        return shares
    site, query, level = problem.find_levels(frame)
    value = frame[column].to_numpy(float)
    is_general = site < 0
    shares[:, query[is_general], level[is_general]] = value[is_general]
    is_single = ~is_general
    shares[site[is_single], query[is_single], level[is_single]] = value[is_single]
    return shares
