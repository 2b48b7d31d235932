"""Faults of the tables of system `analytics` beyond single columns, each one line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from planner.contract.columns import list_some
from planner.contract.notes import add_note
from planner.contract.tables import file_name, report_unknown_names, row_name, shorten_faults
from planner.errors import did_you_mean
from planner_models.analytics.problem.archive_faults import find_archive_faults
from planner_models.analytics.problem.denials import find_region_faults
from planner_models.analytics.problem.filter_faults import find_filter_faults
from planner_models.analytics.problem.filters import list_filters
from planner_models.analytics.problem.reuse import find_reuse_faults, find_unnested
from planner_models.analytics.problem.schema import (
    BUCKETS,
    COARSEST,
    INTERVAL,
    MERGEABLE,
    NO_DATA,
    SAMPLE,
    TABLES,
    TOP_K,
)

if TYPE_CHECKING:
    from planner_models.analytics.problem.regions import RegionTables

MOST_CHOICES: Final = 200_000_000  # sites times queries times intervals
NEEDS_PARAMETER: Final = (INTERVAL, SAMPLE, TOP_K, BUCKETS)


def find_faults(problem: RegionTables) -> Iterator[str]:
    """Yield the errors of tables with valid columns, each with its row, value and rule."""
    choices = len(problem.sites) * len(problem.queries) * len(problem.intervals)
    if choices > MOST_CHOICES:
        yield (
            f"sites, queries and intervals make {choices:,} choices, must be up to {MOST_CHOICES:,}; plan "
            "fewer intervals at a time"
        )
        return
    names = list(_find_unknown_names(problem))
    yield from names
    if names:
        return
    yield from _find_faulty_times(problem)
    of_levels = list(_find_faulty_levels(problem))
    yield from of_levels
    faults = list(_find_faulty_exceptions(problem)) or list(
        find_filter_faults(problem, is_ordered=not of_levels)
    )
    faults = faults or list(find_reuse_faults(problem))
    faults = faults or list(find_region_faults(problem))
    yield from faults
    if not faults and not of_levels:
        yield from find_archive_faults(problem)


def _find_unknown_names(problem: RegionTables) -> Iterator[str]:
    names_of = {
        "site": (set(problem.sites["site"]), "no site"),
        "pop": (set(problem.pops["pop"]), "no point of presence"),
        "cube": (set(problem.cubes["cube"]), "no cube"),
        "query": (set(problem.queries["query"]), "no query"),
    }
    owners = {"site": "sites", "pop": "pops", "cube": "cubes", "query": "queries"}
    for table in TABLES:
        frame = getattr(problem, table.name)
        if frame is None or table.name in ("laws", "retention"):
            continue
        for column, (names, what) in names_of.items():
            if column in frame and owners[column] != table.name:
                valid = names | {""} if (table.name, column) == ("passing", "site") else names
                yield from report_unknown_names(frame, table.name, column, valid, what)
    both = sorted(names_of["site"][0] & names_of["pop"][0])
    if both:
        yield f"sites and pops: '{both[0]}' is the name of a site and of a point of presence, must be of one"
    if problem.bandwidth is not None:
        links = names_of["site"][0] | names_of["pop"][0]
        yield from report_unknown_names(
            problem.bandwidth, "bandwidth", "link", links, "neither a site nor a point of presence"
        )


def _find_faulty_times(problem: RegionTables) -> Iterator[str]:
    intervals = problem.intervals.sort_values("interval", kind="stable")
    start, length = intervals["start_s"].to_numpy(float), intervals["length_s"].to_numpy(float)
    early = np.flatnonzero(np.abs(start[1:] - (start + length)[:-1]) > 1e-6) + 1
    if len(early):
        row_number = int(early[0])
        row = int(problem.intervals.index.get_indexer(intervals.index[[row_number]])[0])
        yield (
            f"{row_name(problem.intervals, 'intervals', row)}: start_s is {start[row_number]:g}, must be "
            f"{start[row_number - 1] + length[row_number - 1]:g}, the end of the interval before"
        )
    for table in ("volume", "bandwidth", "ad_hoc"):
        frame = getattr(problem, table)
        if frame is not None and len(frame):
            yield from report_unknown_intervals(problem, frame, table)
    if problem.bandwidth is not None and len(problem.bandwidth):
        yield from _find_holes(problem)
    longest, queries = float(length.max()), problem.queries
    late = np.flatnonzero(queries["deadline_s"].to_numpy(float) < longest - 1e-9).tolist()
    yield from shorten_faults(
        [
            f"{row_name(queries, 'queries', row)}: deadline_s is {queries['deadline_s'].iloc[row]:g}, must "
            f"be at least {longest:g}, the length of an interval"
            for row in late
        ],
        file_name(queries, "queries"),
        "of deadlines",
    )


def describe_empty_intervals(problem: RegionTables) -> str | None:
    """Return a warning that names intervals of which table `volume` has no row; None where it has all."""
    present = set(problem.volume["interval"])
    empty = [f"{number:g}" for number in problem.interval_numbers.tolist() if number not in present]
    if not present or not empty:
        return None
    shown = list_some(empty)
    where = file_name(problem.volume, "volume")
    return f"warning: {where}: no site has a row of interval {shown}: read as no data; else add its rows"


def report_unknown_intervals(problem: RegionTables, frame: pd.DataFrame, table: str) -> list[str]:
    """Return an error for each row with an interval that is not in table `intervals`."""
    unknown = np.flatnonzero(problem.find_intervals(frame) < 0).tolist()
    faults = [
        f"{row_name(frame, table, row)}: interval {frame['interval'].iloc[row]:g} is not in table intervals"
        for row in unknown[:5]
    ]
    return shorten_faults(faults, file_name(frame, table), "with an unknown interval", count=len(unknown))


def _find_holes(problem: RegionTables) -> Iterator[str]:
    frame = problem.bandwidth
    assert frame is not None
    counts = frame["link"].astype(str).value_counts(sort=False)
    holes = counts.index[counts.to_numpy() < len(problem.intervals)].tolist()
    faults = []
    for name in holes[:5]:
        present = set(frame.loc[frame["link"].astype(str) == name, "interval"])
        missing = [number for number in problem.interval_numbers.tolist() if number not in present]
        faults.append(
            f"{file_name(frame, 'bandwidth')}: link '{name}' has no row for interval {missing[0]:g}"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            + "; a link that is named needs all intervals"
        )
    yield from shorten_faults(
        faults, file_name(frame, "bandwidth"), "links with missing intervals", count=len(holes)
    )


def _find_faulty_levels(problem: RegionTables) -> Iterator[str]:
    levels = problem.levels
    where = file_name(levels, "levels")
    without = sorted(set(problem.query_names) - set(levels["query"].astype(str)))
    yield from shorten_faults([f"{where}: query '{name}' has no level" for name in without], where, "queries")
    operator = levels["operator"].astype(str).to_numpy(object)
    parameter = levels["parameter"].to_numpy(float) if "parameter" in levels else np.full(len(levels), np.nan)
    needed = np.isin(operator, NEEDS_PARAMETER) & ~(parameter > 0)
    yield from shorten_faults(
        [
            f"{row_name(levels, 'levels', row)}: operator {operator[row]} needs a parameter greater than 0"
            for row in np.flatnonzero(needed).tolist()
        ],
        where,
        "without a parameter",
    )
    if needed.any() or without:
        return
    sent = levels[["bytes_per_record", "bytes_per_cell", "value_share"]].to_numpy(float).sum(axis=1)
    yield from shorten_faults(
        [
            f"{row_name(levels, 'levels', row)}: operator none sends no data, its bytes and value_share must "
            "be 0"
            for row in np.flatnonzero((operator == NO_DATA) & (sent > 0)).tolist()
        ],
        where,
        "of operator none",
    )
    combine = dict(zip(problem.query_names, problem.queries["combine"].astype(str), strict=True))
    query = levels["query"].astype(str).to_numpy(object)
    for name in dict.fromkeys(query.tolist()):
        rows = np.flatnonzero(query == name)
        kinds, sizes = operator[rows].tolist(), parameter[rows].tolist()
        if combine[name] == COARSEST:
            yield from _find_faulty_order(levels, name, rows.tolist(), kinds, sizes)
        _warn_of_dominated(problem, name, rows.tolist())


def _find_faulty_order(
    levels: pd.DataFrame, query: str, rows: list[int], operators: list[str], sizes: list[float]
) -> Iterator[str]:
    conditions = list_filters(levels.iloc[rows])
    for condition in dict.fromkeys(conditions):
        matching = [index for index, other in enumerate(conditions) if other == condition]
        picked = [rows[index] for index in matching]
        kinds = [operators[index] for index in matching]
        faults = list(_find_faulty_steps(levels, query, picked, kinds, [sizes[index] for index in matching]))
        yield from faults
        if faults:
            return
    last = [index for index, name in enumerate(operators) if name == NO_DATA]
    if last and last[0] != len(operators) - 1:
        where = row_name(levels, "levels", rows[last[0]])
        yield f"{where}: the level of operator none must be the last of query '{query}'"


def _find_faulty_steps(
    levels: pd.DataFrame, query: str, rows: list[int], operators: list[str], sizes: list[float]
) -> Iterator[str]:
    """Yield the first fault of intervals and buckets in the levels of a query with the same filter."""
    for kind, word in ((INTERVAL, "greater"), (BUCKETS, "less")):
        matching = [index for index, name in enumerate(operators) if name == kind]
        for before, level in itertools.pairwise(matching):
            if (sizes[level] > sizes[before]) != (kind == INTERVAL):
                yield (
                    f"{row_name(levels, 'levels', rows[level])}: parameter is {sizes[level]:g}, must be "
                    f"{word} than {sizes[before]:g} of the row before; levels are listed from the finest"
                )
                return
    for first, other, merged in find_unnested(operators, sizes):
        unit = " s" if operators[first] == INTERVAL else " buckets"
        yield (
            f"{row_name(levels, 'levels', rows[other])}: {operators[other]} {sizes[other]:g}{unit} of query "
            f"'{query}' is no whole multiple or part of {sizes[first]:g}{unit}; they merge at "
            f"{merged:g}{unit}, which is no level: add it, or choose levels that nest"
        )
        return


def _warn_of_dominated(problem: RegionTables, query: str, rows: list[int]) -> None:
    """Add a note for a level with no fewer bytes, no less error and no more value than another."""
    levels = problem.levels
    if any(list_filters(levels.iloc[rows])):
        return  # bytes depend on the records that pass at each site
    figures = levels[["bytes_per_record", "bytes_per_cell", "error"]].to_numpy(float)[rows]
    if "proven_error" in levels:
        proven = levels["proven_error"].to_numpy(float)[rows]
        figures = np.column_stack([figures, np.where(np.isnan(proven), np.inf, proven)])
    value = levels["value_share"].to_numpy(float)[rows]
    for level, row in enumerate(rows):
        better = (figures <= figures[level]).all(axis=1) & (value >= value[level])
        better &= (figures < figures[level]).any(axis=1)
        if better.any():
            other = levels["level"].iloc[rows[int(np.flatnonzero(better)[0])]]
            add_note(
                f"warning: {row_name(levels, 'levels', row)}: level '{levels['level'].iloc[row]}' of query "
                f"'{query}' has no fewer bytes, no less error and no more value than level '{other}'; it is "
                "never of use"
            )


def _find_faulty_exceptions(problem: RegionTables) -> Iterator[str]:
    for table in ("passing", "merging", "policies", "pinned", "forbidden"):
        frame = getattr(problem, table)
        if frame is None or not len(frame):
            continue
        _, query, level = problem.find_levels(frame)
        unknown = np.flatnonzero(level < 0).tolist()
        yield from shorten_faults(
            [
                f"{row_name(frame, table, row)}: query '{frame['query'].iloc[row]}' has no level "
                f"'{frame['level'].iloc[row]}'"
                + did_you_mean(str(frame["level"].iloc[row]), problem.level_names[int(query[row])])
                for row in unknown[:5]
            ],
            file_name(frame, table),
            "with an unknown level",
            count=len(unknown),
        )
        if unknown:
            return
    yield from _find_unmergeable(problem)
    yield from _find_faulty_policies(problem)
    if problem.pinned is not None and problem.pinned.duplicated(["site", "query"]).any():
        row = int(np.flatnonzero(problem.pinned.duplicated(["site", "query"]))[0])
        yield f"{row_name(problem.pinned, 'pinned', row)}: a second level of one site and query, must be one"
    nothing = problem.has_data & ~problem.may_send_by_tables.any(axis=2)
    for site, query in np.argwhere(nothing)[:5].tolist():
        yield (
            f"levels: site '{problem.site_names[site]}' has no level that it may send for query "
            f"'{problem.query_names[query]}'; see error_at_most, pinned and forbidden"
        )


def _find_unmergeable(problem: RegionTables) -> Iterator[str]:
    frame = problem.merging
    if frame is None or not len(frame):
        return
    aggregate = dict(zip(problem.cubes["cube"], problem.cubes["aggregate"], strict=True))
    cube = dict(zip(problem.queries["query"], problem.queries["cube"], strict=True))
    of = frame["query"].astype(str).map(cube).map(aggregate)
    rows = np.flatnonzero(~of.isin(MERGEABLE)).tolist()
    yield from shorten_faults(
        [
            f"{row_name(frame, 'merging', row)}: lists of the largest cells of query "
            f"'{frame['query'].iloc[row]}' do not merge exactly; leave the row out, or count all cells"
            for row in rows[:5]
        ],
        file_name(frame, "merging"),
        "that do not merge",
        count=len(rows),
    )


def _find_faulty_policies(problem: RegionTables) -> Iterator[str]:
    frame = problem.policies
    if frame is None or not len(frame):
        return
    ordered = frame.sort_values(["query", "step"], kind="stable")
    for name, rows_of in ordered.groupby("query", sort=False):
        if "until" not in rows_of:
            continue
        until = rows_of["until"].to_numpy(float)
        valid = np.flatnonzero(~np.isnan(until))
        falls = np.flatnonzero(np.diff(until[valid]) <= 0)
        if len(falls):
            before, row_number = int(valid[falls[0]]), int(valid[falls[0] + 1])
            row = int(frame.index.get_indexer(rows_of.index[[row_number]])[0])
            yield (
                f"{row_name(frame, 'policies', row)}: until is {until[row_number]:g} in query '{name}', "
                "must be "
                f"greater than {until[before]:g} of the step before"
            )
