"""Check of the limits of a plan, from its tables alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints, read_only
from planner.compiled import kernel, run_small_in_python
from planner.contract.plan import Violations
from planner.contract.tolerances import differs, exceeds
from planner.errors import PlanRejected
from planner_models.analytics.plan.answers import find_answers, find_loads, follow_sources
from planner_models.analytics.plan.archived import check_archived
from planner_models.analytics.plan.backfill import find_kept, find_late_loads, find_sizes, tabulate_kept
from planner_models.analytics.plan.merging import require_merged
from planner_models.analytics.plan.plan import Late, Levels, read_backfill, read_levels, tabulate_answers
from planner_models.analytics.plan.region_check import find_required_gb, find_retained, find_ruled_out
from planner_models.analytics.problem.problem import Analytics


def check(problem: Analytics, plan: Levels) -> Violations:
    """Return the constraint violations of the plan, by name.

    capacity  an uplink has more bytes than it carries in the interval
    error     an answer has a larger error than its query allows
    answered  a query without a level of operator none, or a site that may not use it, has no answer
    storage   a site keeps more data, to send it later, than it can store beside what it must keep
    rules     a site sends a level that tables `pinned`, `forbidden` or `laws` rule out
    retention a site sends data that it must have erased before
    stores, storage_links, storage_rules  see `check_archived`

    PlanRejected where it is no plan, or where answers, places of merging or data that is kept are not those
    that the levels and later data make.
    """
    levels = read_levels(problem, plan)
    _require_answers(plan, tabulate_answers(problem, levels))
    require_merged(problem, levels, plan.merged)
    answers = find_answers(problem, levels)
    loads = find_loads(problem, levels)
    late = read_backfill(problem, plan)
    _require_kept(plan, tabulate_kept(problem, late))
    both = np.concatenate([loads.site, loads.pop], axis=1) + find_late_loads(problem, late)
    capacity = problem.capacity_bytes
    violations = _places(
        problem,
        "capacity",
        problem.link_names,
        both / 1e9,
        capacity / 1e9,
        exceeds(both, capacity),
        "GB",
    )
    retained = find_kept(problem, late)
    stored = problem.storage_bytes - 1e9 * find_required_gb(problem)
    over = exceeds(retained, stored, find_sizes(problem, late).sum())
    violations += _places(problem, "storage", problem.site_names, retained / 1e9, stored / 1e9, over, "GB")
    if "error_at_most" in problem.queries:
        allowed_error = problem.queries["error_at_most"].to_numpy(float)
        allowed = np.broadcast_to(allowed_error, answers.error.shape)
        over = exceeds(answers.error, allowed)
        violations += _places(problem, "error", problem.query_names, answers.error, allowed, over, "")
    missing = _find_missing(problem, levels, answers.is_answered)
    violations += _places(
        problem,
        "answered",
        problem.query_names,
        np.zeros(missing.shape),
        np.ones(missing.shape),
        missing,
        "answers",
    )
    ruled_out = _list_ruled_out(problem, levels, late)
    violations += list_retained(problem, levels, late)
    violations += check_archived(problem, plan)
    return violations + Violations.of(
        "rules",
        where=[
            f"{problem.site_names[s]}, {problem.query_names[q]}, interval {problem.interval_numbers[k]:g}"
            for k, s, q in ruled_out
        ],
        amount=np.ones(len(ruled_out)),
        allowed=np.zeros(len(ruled_out)),
        unit="levels",
    )


def list_retained(problem: Analytics, levels: Ints, late: Late) -> Violations:
    """Return the violations by data that must have been erased before it is sent."""
    retained = find_retained(problem, levels, late)
    return Violations.of(
        "retention",
        where=[
            f"{problem.site_names[row.site]}, {problem.query_names[row.query]}, interval "
            f"{problem.interval_numbers[row.interval]:g}"
            for row in retained
        ],
        amount=np.array([row.age_h for row in retained]),
        allowed=np.array([row.allowed_h for row in retained]),
        unit="h",
    )


def _find_missing(problem: Analytics, levels: Ints, is_answered: Bools) -> Bools:
    """Return the answers that are required and missing, (K, Q): of all sites, or of one that must send."""
    must_send = problem.has_data & ~(problem.is_none & problem.may_send).any(axis=2)  # (S, Q)
    must_send &= ~problem.is_denied
    required = ~problem.is_none.any(axis=1) & (problem.has_data & ~problem.is_denied).any(axis=0)
    missing = required & ~is_answered & problem.is_asked
    for query in np.flatnonzero(must_send.any(axis=0)).tolist():
        sites = must_send[:, query]
        missing[:, query] |= (levels[:, sites, query] < 0).any(axis=1) & problem.is_asked[:, query]
    return missing


def _list_ruled_out(problem: Analytics, levels: Ints, late: Late) -> list[tuple[int, int, int]]:
    """Return interval, site and query of levels that are ruled out, also of data that is sent later."""
    may_send = _may_send(problem)
    ruled_out: list[tuple[int, int, int]] = _find_ruled_out(
        read_only(levels), read_only(problem.has_data), read_only(problem.is_asked), may_send
    ).tolist()
    ruled_out += [(k, site, query) for query, k, site in _find_finer(problem, levels)]
    allowed_late = problem.may_send_by_tables & may_send
    for row, (query, level) in enumerate(zip(late.query.tolist(), late.level.tolist(), strict=True)):
        if not allowed_late[late.site[row], query, level]:
            ruled_out.append((int(late.interval[row]), int(late.site[row]), query))
    return ruled_out


def _find_finer(problem: Analytics, levels: Ints) -> Iterator[tuple[int, int, int]]:
    """Yield query, interval and site of levels that the data of the query that they use cannot make."""
    followed = follow_sources(problem, levels)
    for query in np.flatnonzero(problem.source_of >= 0).tolist():
        sent_level, finest = levels[:, :, query], followed[:, :, query]
        sends = (sent_level >= 0) & ~problem.is_none[query, sent_level]
        made = (finest >= 0) & problem.refines[query, finest, sent_level]
        for k, site in np.argwhere(sends & ~made & problem.has_data[:, query]).tolist():
            yield query, k, site


def _may_send(problem: Analytics) -> Bools:
    """Return whether `pinned`, `forbidden` and `laws` allow each level of queries, (S, Q, L)."""
    may = ~find_ruled_out(problem)
    if problem.forbidden is not None:
        may[problem.find_levels(problem.forbidden)] = False
    if problem.pinned is not None:
        site, query, level = problem.find_levels(problem.pinned)
        other = np.ones_like(may)
        other[site, query, level] = False
        may[site, query] &= ~other[site, query]
    return read_only(may)


@run_small_in_python(max_elements=1_000)
@kernel
def _find_ruled_out(levels: Ints, has_data: Bools, is_asked: Bools, may_send: Bools) -> Ints:
    """Return interval, site and query of levels (K, S, Q) that may not be sent, (n, 3), query by query."""
    intervals, sites, queries = levels.shape
    violations_found = [(0, 0, 0)][:0]  # of this type
    for k in range(intervals):
        for site in range(sites):
            for query in range(queries):
                level = levels[k, site, query]
                is_sent = level >= 0 and has_data[site, query] and is_asked[k, query]
                if is_sent and not may_send[site, query, level]:
                    violations_found.append((query, k, site))
    result = np.empty((len(violations_found), 3), dtype=np.int64)
    violations_found.sort()
    for row in range(len(violations_found)):
        query, k, site = violations_found[row]
        result[row, 0], result[row, 1], result[row, 2] = k, site, query
    return result


def _require_answers(plan: Levels, expected: pd.DataFrame) -> None:
    """Raise PlanRejected if the table of answers does not follow from the levels."""
    table = plan.answers
    if len(table) != len(expected):
        raise PlanRejected(f"answers: has {len(table):,} rows, must have {len(expected):,}: one for each "
                           "interval and query with data")  # fmt: skip
    keys = [
        table.assign(query=table["query"].astype(str)).sort_values(["interval", "query"], kind="stable"),
        expected.sort_values(["interval", "query"], kind="stable"),
    ]
    for column in ("interval", "query", "level"):
        differ = keys[0][column].to_numpy(object) != keys[1][column].to_numpy(object)
        if differ.any():
            row_number = int(np.argmax(differ))
            row = keys[1].iloc[row_number]
            raise PlanRejected(
                f"answers: {column} is {keys[0][column].iloc[row_number]!r} where the levels make "
                f"{row[column]!r} of query '{row['query']}' in interval {row['interval']:g}"
            )
    for column in ("error", "value_usd"):
        actual, other = (frame[column].to_numpy(float) for frame in keys)
        differ = differs(actual, other) & ~(np.isnan(actual) & np.isnan(other))
        if differ.any():
            row_number = int(np.argmax(differ))
            row = keys[1].iloc[row_number]
            raise PlanRejected(
                f"answers: {column} is {actual[row_number]:g}, must be {other[row_number]:g} for query "
                f"'{row['query']}' "
                f"in interval {row['interval']:g}"
            )


def _require_kept(plan: Levels, expected: pd.DataFrame) -> None:
    """Raise PlanRejected if the table of stored data does not follow from backfill."""
    keys = ["interval", "query", "site"]
    stored = plan.kept.astype({"query": str, "site": str})
    both = expected.astype({"query": str, "site": str}).merge(
        stored, on=keys, how="outer", suffixes=("", "_given")
    )
    differ = differs(both["gb"].to_numpy(float), both["gb_given"].to_numpy(float))
    if differ.any():
        row = both.iloc[int(np.argmax(differ))]
        raise PlanRejected(
            f"kept: gb is {_figure(row['gb_given'])} where site '{row['site']}' keeps "
            f"{_figure(row['gb'])} of query '{row['query']}' at the end of interval {row['interval']:g}"
        )


def _figure(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:g}"


def _places(
    problem: Analytics,
    limit: str,
    names: list[str],
    amount: Floats,
    allowed: Floats,
    broken: Bools,
    unit: str,
) -> Violations:
    interval, location = np.nonzero(broken)
    numbers = problem.interval_numbers
    return Violations.of(
        limit,
        where=[
            f"{names[index]}, interval {numbers[k]:g}"
            for k, index in zip(interval.tolist(), location.tolist(), strict=True)
        ],
        amount=amount[interval, location],
        allowed=allowed[interval, location],
        unit=unit,
    )
