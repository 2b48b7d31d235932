"""Faults of filters of levels and of the shares of records that pass, each one line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.contract.tables import file_name, row_name, shorten_faults
from planner_models.analytics.problem.filters import FILTER_COLUMNS, NUMERIC, list_filters, read_value
from planner_models.analytics.problem.reuse import find_refinements
from planner_models.analytics.problem.schema import COARSEST, FILTER, NO_DATA

if TYPE_CHECKING:
    from planner_models.analytics.problem.tables import QueryTables


def find_filter_faults(problem: QueryTables, *, is_ordered: bool) -> Iterator[str]:
    """Yield faults of the filters of levels, and of table `passing`, each with its row, value and rule.

    is_ordered  whether the levels have no faults of order and of parameters
    """
    faults = list(_find_incomplete(problem.levels)) or list(_find_faulty_shares(problem))
    yield from faults
    if is_ordered and not faults and any(list_filters(problem.levels)):
        yield from _find_unmerged(problem)


def _find_incomplete(levels: pd.DataFrame) -> Iterator[str]:
    """Yield levels with a filter that lacks a cell, or that compares text by size."""
    cells = [
        levels[name].astype(str).tolist() if name in levels else [""] * len(levels) for name in FILTER_COLUMNS
    ]
    operator = levels["operator"].astype(str).tolist()
    for row, (column, keeps, value) in enumerate(zip(*cells, strict=True)):
        where = row_name(levels, "levels", row)
        texts = dict(zip(FILTER_COLUMNS, (column, keeps, value), strict=True))
        blank = [name for name, text in texts.items() if not text]
        if operator[row] == FILTER and len(blank) == len(texts):
            yield f"{where}: operator filter needs filter_column, keeps and filter_value"
        elif blank and len(blank) < len(texts):
            filled = next(name for name, text in texts.items() if text)
            yield f"{where}: {blank[0]} is blank, must be filled as {filled} is: '{texts[filled]}'"
        elif keeps in NUMERIC and isinstance(read_value(value), str):
            yield f"{where}: filter_value is '{value}', must be a number where keeps is {keeps}"
        elif not blank and operator[row] == NO_DATA:
            yield f"{where}: operator none sends no data, must have no filter"


def _find_faulty_shares(problem: QueryTables) -> Iterator[str]:
    """Yield rows of `passing` about levels without a filter, and levels with a filter without a share."""
    frame, levels = problem.passing, problem.levels
    conditions = list_filters(levels)
    has_row = np.zeros((len(problem.sites), *problem.level_rows.shape), dtype=bool)
    if frame is not None and len(frame):
        site, query, level = problem.find_levels(frame)
        row_of = problem.level_rows[query, level]
        bare = [row for row, number in enumerate(row_of.tolist()) if conditions[number] is None]
        yield from shorten_faults(
            [
                f"{row_name(frame, 'passing', row)}: level '{frame['level'].iloc[row]}' of query "
                f"'{frame['query'].iloc[row]}' has no filter; fill its filter_column, keeps, filter_value"
                for row in bare[:5]
            ],
            file_name(frame, "passing"),
            "of levels without a filter",
            count=len(bare),
        )
        has_row[:, query[site < 0], level[site < 0]] = True
        has_row[site[site >= 0], query[site >= 0], level[site >= 0]] = True
        more_cells = np.flatnonzero(
            (frame["record_share"].to_numpy(float) <= 0) & (frame["cell_share"].to_numpy(float) > 0)
        )
        for row in more_cells[:5].tolist():
            yield (
                f"{row_name(frame, 'passing', row)}: cell_share is {frame['cell_share'].iloc[row]:g}, must "
                "be 0 where record_share is 0: a cell passes by its records"
            )
    for row, condition in enumerate(conditions):
        if condition is None:
            continue
        query_row, level_row = (int(index[row]) for index in problem._level_places)
        missing = np.flatnonzero(problem.has_data[:, query_row] & ~has_row[:, query_row, level_row])
        if len(missing):
            yield (
                f"{row_name(levels, 'levels', row)}: the filter {condition.describe()} of level "
                f"'{levels['level'].iloc[row]}' has no row in table passing for site "
                f"'{problem.site_names[int(missing[0])]}'"
            )


def _find_unmerged(problem: QueryTables) -> Iterator[str]:
    """Yield the first pair of levels of a query with a common level that only merge into no data."""
    refines, conditions = find_refinements(problem), list_filters(problem.levels)
    combine = problem.queries["combine"].astype(str).tolist()
    for query, names in enumerate(problem.level_names):
        if combine[query] != COARSEST:
            continue
        rows = problem.level_rows[query]
        sending = [level for level in range(len(names)) if not problem.is_none[query, level]]
        for first, other in itertools.combinations(sending, 2):
            if conditions[rows[first]] == conditions[rows[other]]:
                continue  # of intervals and buckets: see find_unnested
            if not (refines[query, first, sending] & refines[query, other, sending]).any():
                yield (
                    f"{row_name(problem.levels, 'levels', int(rows[other]))}: levels '{names[first]}' and "
                    f"'{names[other]}' of query '{problem.query_names[query]}' make no common level: add one "
                    "after them with the stricter filter, or choose filters that include each other"
                )
                return
