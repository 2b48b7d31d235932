"""Problems from records of users: volumes of sites, records that pass filters, and errors of answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools
from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.contract.table import Column, Table, label, number
from planner.contract.tables import file_name, report_unknown_names, row_name
from planner.errors import InputError
from planner.formatting import counted
from planner.io.in_memory import take_tables
from planner.io.table_files import find_tables, read_tables
from planner_models.analytics.problem.filter_errors import find_passing, measure_error
from planner_models.analytics.problem.filters import NUMERIC, Filter, list_filters
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.schema import FILTER, LEVELS, OPTIONAL_TABLES, TABLES

COMPUTED: Final = ("passing", "volume")
"""Tables that records make."""
NEEDS_VALUE: Final = ("max", "mean", "quantile", "distinct")
"""Aggregates of a value of records; others count records."""
BASE_COLUMNS: Final[Mapping[str, Column]] = {
    "cube": label("cube of the record; blank: all cubes", optional=True, may_be_blank=True),
    "site": label("site that has the record"),
    "time_s": number("time of the record, on the clock of table intervals, s", at_least=0, at_most=1e13),
    "cell": label("cell of the cube, such as a country or a domain"),
    "value": number(
        "value that the cube aggregates; blank where it counts", optional=True, may_be_blank=True
    ),
}
LEVELS_OF_RECORDS: Final = replace(
    LEVELS,
    columns={
        **LEVELS.columns,
        "error": number(
            "error of an answer; blank for operator filter: from the records",
            at_least=0,
            at_most=1e9,
            may_be_blank=True,
        ),
        "value_share": number(
            "part of the query's value; blank: 1 less the error", at_least=0, at_most=1, may_be_blank=True
        ),
    },
)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """Statistics that answers are about, for the errors of filters."""

    quantile: Annotated[
        float, Field(gt=0, lt=1, description="quantile that cubes of quantiles are asked for")
    ] = 0.95
    wanted: Annotated[
        int, Field(ge=1, le=1_000_000, description="largest cells that cubes of such lists are asked for")
    ] = 100


@spread(answered=Answered())
def read_records(
    *,
    path: Annotated[Path, Field(description="folder with records and the tables of the problem")],
    answered: Answered,
) -> Analytics:
    """Read records of sites: their volumes, the records that pass filters of levels, and errors of answers.

    Errors of levels of operator filter are those of the answers from the records that pass, against the
    answers from what the query's first level lets pass. A site passes the same share in all intervals.

    raises  InputError for tables and records with faults
    """
    tables = [LEVELS_OF_RECORDS if table.name == LEVELS.name else table for table in TABLES]
    tables = [table for table in tables if table.name not in COMPUTED]
    files = find_tables(tables, path, [name for name in OPTIONAL_TABLES if name not in COMPUTED])
    frames = read_tables(tables, files)
    conditions = list_filters(frames["levels"])
    faults = list(_find_mixed_columns(frames["levels"], conditions))
    if faults:
        raise InputError(*faults)
    table = make_record_table(conditions)
    records = read_tables([table], find_tables([table], path))[table.name]
    return make_problem(frames, records, quantile=answered.quantile, wanted=answered.wanted)


def make_record_table(conditions: list[Filter | None]) -> Table:
    """Return the table of records, with a column for each that filters compare."""
    columns = dict(BASE_COLUMNS)
    for condition in conditions:
        if condition is None or (condition.column in columns and condition.column != "value"):
            continue
        of_column = [other for other in conditions if other is not None and other.column == condition.column]
        about = "value that a filter compares; blank: none"
        is_text = any(isinstance(other.value, str) for other in of_column)
        columns[condition.column] = (
            label(about, may_be_blank=True) if is_text else number(about, may_be_blank=True)
        )
    return Table(name="records", about="a record of a site", columns=columns)


def _find_mixed_columns(levels: pd.DataFrame, conditions: list[Filter | None]) -> Iterator[str]:
    """Yield filters that compare by size a column which holds text, by its name or by another filter."""
    text = {name for name, column in BASE_COLUMNS.items() if column.is_label}
    text |= {entry.column for entry in conditions if entry is not None and isinstance(entry.value, str)}
    for row, condition in enumerate(conditions):
        if condition is not None and condition.keeps in NUMERIC and condition.column in text:
            yield (
                f"{row_name(levels, 'levels', row)}: keeps is {condition.keeps}, must be equal or not_equal: "
                f"column '{condition.column}' holds text"
            )


def make_problem(
    frames: Mapping[str, pd.DataFrame], records: pd.DataFrame, *, quantile: float = 0.95, wanted: int = 100
) -> Analytics:
    """Return the problem of tables without volume, and of records.

    raises  InputError for tables and records with faults
    """
    faults = list(_find_record_faults(frames, records))
    if faults:
        raise InputError(*faults)
    located = _locate(frames["intervals"], records)
    volume = _tabulate_volume(located, frames["cubes"]["cube"].astype(str).tolist())
    levels, passing = _measure_levels(frames, located, quantile, wanted)
    made = {**frames, "volume": volume, "levels": levels, "passing": passing if len(passing) else None}
    return Analytics.from_tables(take_tables(TABLES, made, optional=OPTIONAL_TABLES))


def _find_record_faults(frames: Mapping[str, pd.DataFrame], records: pd.DataFrame) -> Iterator[str]:
    """Yield records of unknown sites and cubes, cubes without values, and levels without an error."""
    cubes = dict(zip(frames["cubes"]["cube"].astype(str), frames["cubes"]["aggregate"], strict=True))
    yield from report_unknown_names(
        records, "records", "site", set(frames["sites"]["site"].astype(str)), "no site"
    )
    if "cube" in records:
        yield from report_unknown_names(records, "records", "cube", {*cubes, ""}, "no cube")
    value = records["value"].to_numpy(float) if "value" in records else np.full(len(records), np.nan)
    for cube, aggregate in cubes.items():
        blank = is_of_cube(records, cube) & np.isnan(value)
        if aggregate in NEEDS_VALUE and blank.any():
            yield (
                f"{row_name(records, 'records', int(np.argmax(blank)))}: value is blank, must be a number: "
                f"cube '{cube}' has the aggregate {aggregate}"
            )
    levels = frames["levels"]
    of_filter = (levels["operator"].astype(str) == FILTER).to_numpy()
    blank = np.isnan(levels["error"].to_numpy(float)) & ~of_filter
    for row in np.flatnonzero(blank)[:5].tolist():
        yield (
            f"{row_name(levels, 'levels', row)}: error is blank, must be a number: only errors of operator "
            f"filter follow from records, not those of {levels['operator'].iloc[row]}"
        )
    queries = dict(
        zip(frames["queries"]["query"].astype(str), frames["queries"]["cube"].astype(str), strict=True)
    )
    present = {cube for cube in cubes if is_of_cube(records, cube).any()}
    yield from report_unknown_names(levels, "levels", "query", set(queries), "no query")
    for row, name in enumerate(levels["query"].astype(str)):
        if of_filter[row] and name in queries and queries[name] not in present:
            yield (
                f"{file_name(records, 'records')}: has no record of cube '{queries[name]}', which query "
                f"'{name}' filters"
            )
            return


def is_of_cube(records: pd.DataFrame, cube: str) -> Bools:
    """Return whether each record belongs to a cube, (n,)."""
    if "cube" not in records:
        return np.ones(len(records), dtype=bool)
    return np.asarray(records["cube"].astype(str).isin([cube, ""]), dtype=bool)


def _locate(intervals: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """Return the records in some interval, with its number; others are left out, with a note."""
    ordered = intervals.sort_values("start_s", kind="stable")
    start, length = ordered["start_s"].to_numpy(float), ordered["length_s"].to_numpy(float)
    time = records["time_s"].to_numpy(float)
    row = np.searchsorted(start, time, side="right") - 1
    inside = (row >= 0) & (time < (start + length)[np.maximum(row, 0)])
    if not inside.all():
        count = int((~inside).sum())
        verb = "is" if count == 1 else "are"
        outside = counted(count, "records")
        add_note(f"warning: {file_name(records, 'records')}: {outside} in no interval {verb} left out")
    located: pd.DataFrame = records[inside].assign(interval=ordered["interval"].to_numpy(float)[row[inside]])
    return located if "value" in located else located.assign(value=np.nan)


def _tabulate_volume(records: pd.DataFrame, cubes: Sequence[str]) -> pd.DataFrame:
    """Return the records, and the cells with a record, of each site, cube and interval."""
    volumes = []
    for cube in cubes:
        of_cube = records[is_of_cube(records, cube)]
        grouped = of_cube.groupby(["site", "interval"], observed=True, sort=True)["cell"]
        volume = pd.DataFrame({"records": grouped.size(), "cells": grouped.nunique()}).reset_index()
        volumes.append(volume.assign(cube=cube))
    together = pd.concat(volumes, ignore_index=True)
    return together.astype({"records": float, "cells": float, "site": str})[
        ["site", "cube", "interval", "records", "cells"]
    ]


def _measure_levels(
    frames: Mapping[str, pd.DataFrame], records: pd.DataFrame, quantile: float, wanted: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the levels with the errors of filters, and the shares that pass at each site."""
    levels = frames["levels"]
    conditions = list_filters(levels)
    cubes = dict(
        zip(frames["queries"]["query"].astype(str), frames["queries"]["cube"].astype(str), strict=True)
    )
    aggregates = dict(zip(frames["cubes"]["cube"].astype(str), frames["cubes"]["aggregate"], strict=True))
    error = levels["error"].to_numpy(float).copy()
    rows: list[pd.DataFrame] = []
    query_names = levels["query"].astype(str)
    for query, cube in cubes.items():
        of_query = np.flatnonzero(query_names == query)
        of_cube = records[is_of_cube(records, cube)]
        for row in of_query.tolist():
            condition = conditions[row]
            if condition is None:
                continue
            passed = find_passing(of_cube, condition)
            level = str(levels["level"].iloc[row])
            rows.append(_tabulate_passing(of_cube, passed).assign(query=query, level=level))
            if np.isnan(error[row]):
                reference = find_passing(of_cube, conditions[of_query[0]])
                error[row] = measure_error(
                    of_cube[reference],
                    passed[reference],
                    str(aggregates[cube]),
                    quantile=quantile,
                    wanted=wanted,
                )
    share = levels["value_share"].to_numpy(float)
    share = np.where(np.isnan(share), np.maximum(1 - error, 0.0), share)
    passing = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
    return levels.assign(error=np.round(error, 6), value_share=np.round(share, 6)), passing


def _tabulate_passing(records: pd.DataFrame, passed: Bools) -> pd.DataFrame:
    """Return the shares of records and of cells that pass at each site, over all intervals."""
    keys = records[["site", "interval", "cell"]].assign(passed=passed)
    by_cell = keys.groupby(["site", "interval", "cell"], observed=True)["passed"].any()
    share = pd.DataFrame(
        {
            "record_share": keys.groupby("site", observed=True)["passed"].mean(),
            "cell_share": by_cell.groupby(level="site", observed=True).mean(),
        }
    )
    return share.rename_axis("site").reset_index().astype({"site": str})
