"""Queries that are asked once over stored data, and queries that use the data of another one.

Order of a query's levels: which data can be made coarser into which answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import row_name
from planner.errors import did_you_mean
from planner_models.analytics.problem.filters import implies, list_filters
from planner_models.analytics.problem.schema import BUCKETS, COARSEST, INTERVAL, SUM

if TYPE_CHECKING:
    from planner_models.analytics.problem.tables import QueryTables

NESTED: Final = (INTERVAL, BUCKETS)
"""Operators whose data only becomes coarser in whole multiples: seconds of an interval, buckets joined."""


def find_asked(problem: QueryTables) -> Bools:
    """Return whether each query has an answer in each interval, (K, Q): ad hoc ones only where asked."""
    asked = np.ones((len(problem.interval_numbers), len(problem.query_names)), dtype=bool)
    if problem.ad_hoc is not None and len(problem.ad_hoc):
        query = problem.find_queries(problem.ad_hoc)
        asked[:, query] = False
        interval = problem.find_intervals(problem.ad_hoc)
        is_inside = interval >= 0  # in a window, others are asked in another one
        asked[interval[is_inside], query[is_inside]] = True
    return asked


def find_stored(problem: QueryTables) -> tuple[Ints, Floats]:
    """Return the ad hoc queries (A,), and the records and cells that each reads at each site, (2, S, A).

    These are of all intervals from `since` to the one in which it is asked.
    """
    frame = problem.ad_hoc
    if frame is None or not len(frame):
        return np.zeros(0, dtype=np.int64), np.zeros((2, len(problem.site_names), 0))
    query, is_read, _ = find_stored_intervals(problem)
    cube = problem.cube_of[query]
    stored = [
        np.einsum("ak,ksa->sa", is_read.astype(float), volume[:, :, cube])
        for volume in (problem.records, problem.cells)
    ]
    return query, np.array(stored)


def find_stored_intervals(problem: QueryTables) -> tuple[Ints, Bools, Ints]:
    """Return the query of each row of `ad_hoc`, (A,), the intervals that it reads, (A, K), and the last one.

    The last one, in which it is asked, is -1 where the problem does not have it.
    """
    frame = problem.ad_hoc
    assert frame is not None
    numbers = problem.interval_numbers
    since = frame["since"].to_numpy(float) if "since" in frame else np.full(len(frame), np.nan)
    last = frame["interval"].to_numpy(float)
    since = np.where(np.isnan(since), last, since)
    is_read = (numbers >= since[:, None]) & (numbers <= last[:, None])
    return problem.find_queries(frame), is_read, problem.find_intervals(frame)


def find_sources(problem: QueryTables) -> Ints:
    """Return the query with the data that answers each query, (Q,); -1 for its own data."""
    source = np.full(len(problem.query_names), -1, dtype=np.int64)
    if problem.shares is not None and len(problem.shares):
        frame = problem.shares
        source[problem.find_queries(frame)] = problem.find_queries(frame.assign(query=frame["uses"]))
    return source


def find_followed(problem: QueryTables, source_of: Ints, refines: Bools) -> Ints:
    """Return the level of a query that an answer of its source at each level gives, (Q, L); -1 for none.

    That is the level of most value whose name is a level of the source that the answer can be made into.
    """
    followed = np.full(problem.level_rows.shape, -1, dtype=np.int64)
    for query in np.flatnonzero(source_of >= 0).tolist():
        source = int(source_of[query])
        names = problem.level_names[source]
        for level in range(len(names)):
            best = -1.0
            for own_level, name in enumerate(problem.level_names[query]):
                makes = problem.is_none[query, own_level] or (
                    name in names and refines[source, level, names.index(name)]
                )
                value = problem.value_share[query, own_level]
                if makes and problem.may_answer[query, own_level] and value > best:
                    followed[query, level], best = own_level, value
    return followed


def find_level_values(problem: QueryTables, source_of: Ints, followed: Ints) -> Floats:
    """Return the value of an answer at each level, with the queries that it answers too, (Q, L), USD.

    -inf where one of these has no level that it allows.
    """
    value = problem.value_usd[:, None] * problem.value_share
    for query in np.flatnonzero(source_of >= 0).tolist():
        level = followed[query]
        more = problem.value_usd[query] * problem.value_share[query, level]
        value[source_of[query]] += np.where(level >= 0, more, -np.inf)
    return np.asarray(np.where(problem.level_rows >= 0, value, 0.0))


def find_reuse_faults(problem: QueryTables) -> Iterator[str]:
    """Yield faults of tables `ad_hoc` and `shares`, each with its row, value and rule."""
    yield from _find_ad_hoc_faults(problem)
    shares = problem.shares
    if shares is None or not len(shares):
        return
    names = set(problem.query_names)
    unknown = [row for row, name in enumerate(shares["uses"].astype(str)) if name not in names]
    for row in unknown[:5]:
        name = str(shares["uses"].iloc[row])
        where = row_name(shares, "shares", row)
        yield f"{where}: uses: there is no query '{name}'" + did_you_mean(name, problem.query_names)
    if not unknown:
        yield from _find_share_faults(problem, shares)


def _find_ad_hoc_faults(problem: QueryTables) -> Iterator[str]:
    frame = problem.ad_hoc
    if frame is None or not len(frame):
        return
    since = frame["since"].to_numpy(float) if "since" in frame else np.full(len(frame), np.nan)
    for row in np.flatnonzero(since > frame["interval"].to_numpy(float))[:5].tolist():
        yield (
            f"{row_name(frame, 'ad_hoc', row)}: since is {since[row]:g}, must be up to "
            f"{frame['interval'].iloc[row]:g}, the interval in which it is asked"
        )
    late = set(problem.backfill["query"].astype(str)) if problem.backfill is not None else set()
    for row, name in enumerate(frame["query"].astype(str)):
        if name in late:
            where = row_name(frame, "ad_hoc", row)
            yield f"{where}: '{name}' is in table backfill, must not be: its answer is not improved later"


def _list_queries_of_tables(problem: QueryTables) -> dict[str, set[str]]:
    """Return the queries in each table of queries that must not share data."""
    tables = ("ad_hoc", "backfill", "policies", "pinned", "forbidden", "laws")
    frames = {table: getattr(problem, table) for table in tables}
    return {table: set(frame["query"].astype(str)) for table, frame in frames.items() if frame is not None}


def _find_share_faults(problem: QueryTables, shares: pd.DataFrame) -> Iterator[str]:
    derived = set(shares["query"].astype(str))
    columns = {
        column: dict(zip(problem.query_names, problem.queries[column].astype(str), strict=True))
        for column in ("cube", "combine")
    }
    special = _list_queries_of_tables(problem)
    pairs = zip(shares["query"].astype(str), shares["uses"].astype(str), strict=True)
    for row, (query, uses) in enumerate(pairs):
        where = row_name(shares, "shares", row)
        if uses in derived:
            yield f"{where}: uses is '{uses}', must be a query with data of its own, not one of table shares"
        for column, of in columns.items():
            if of[query] != of[uses]:
                yield f"{where}: {column} of '{query}' is {of[query]}, must be {of[uses]}, that of '{uses}'"
        for table, queries in special.items():
            excluded = (query, uses) if table == "ad_hoc" else (query,)
            named = [name for name in excluded if name in queries]
            if named:
                yield (
                    f"{where}: '{named[0]}' is in table {table}, must not be: queries that share data have "
                    "the same intervals and levels"
                )
        yield from _find_unknown_levels(problem, where, query, uses)


def _find_unknown_levels(problem: QueryTables, where: str, query: str, uses: str) -> Iterator[str]:
    query_row, other = (problem.query_names.index(name) for name in (query, uses))
    for level, name in enumerate(problem.level_names[query_row]):
        if not problem.is_none[query_row, level] and name not in problem.level_names[other]:
            hint = did_you_mean(name, problem.level_names[other])
            yield f"{where}: level '{name}' of '{query}' is no level of '{uses}'" + hint
            return


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
    An answer at the coarsest level with a filter is made of data that lets all its records pass.

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

    conditions = list_filters(problem.levels)

    def is_nested(first: int, other: int) -> bool:
        return operators[first] in NESTED and operators[first] == operators[other]

    for query, rows_of in enumerate(rows.tolist()):
        levels = [column for column, row in enumerate(rows_of) if row >= 0]
        share = problem.value_share[query]
        for first, other in itertools.product(levels, levels):
            if combine[query] == SUM:
                refines[query, first, other] = first == other
            elif combine[query] == COARSEST:
                pair = rows_of[first], rows_of[other]
                refines[query, first, other] = (
                    is_finer(operators[pair[0]], *(parameters[row] for row in pair))
                    if is_nested(*pair)
                    else first <= other
                )
                refines[query, first, other] &= implies(conditions[pair[1]], conditions[pair[0]])
            else:
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
