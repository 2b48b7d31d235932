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
from planner_models.analytics.plan.backfill import find_kept, find_late_loads, find_sizes, tabulate_kept
from planner_models.analytics.plan.merging import require_merged
from planner_models.analytics.plan.plan import Levels, read_backfill, read_levels, tabulate_answers
from planner_models.analytics.problem.problem import Analytics


def check(problem: Analytics, plan: Levels) -> Violations:
    """Return the constraint violations of the plan, by name.

    capacity  an uplink has more bytes than it carries in the interval
    error     an answer has a larger error than its query allows
    answered  a query without a level of operator none, or a site that may not use it, has no answer
    storage   a site keeps more data, to send it later, than it can store
    rules     a site sends a level that tables `pinned` or `forbidden` rule out

    PlanRejected where it is no plan, or where answers, places of merging or data that is kept are not those
    that the levels and later data make.
    """
    chosen = read_levels(problem, plan)
    _require_answers(plan, tabulate_answers(problem, chosen))
    require_merged(problem, chosen, plan.merged)
    answers = find_answers(problem, chosen)
    loads = find_loads(problem, chosen)
    late = read_backfill(problem, plan)
    _require_kept(plan, tabulate_kept(problem, late))
    both = np.concatenate([loads.site, loads.pop], axis=1) + find_late_loads(problem, late)
    capacity = problem.capacity_bytes
    found = _places(
        problem,
        "capacity",
        problem.link_names,
        both / 1e9,
        capacity / 1e9,
        exceeds(both, capacity),
        "GB",
    )
    kept = find_kept(problem, late)
    stored = np.broadcast_to(problem.storage_bytes, kept.shape)
    over = exceeds(kept, stored, find_sizes(problem, late).sum())
    found += _places(problem, "storage", problem.site_names, kept / 1e9, stored / 1e9, over, "GB")
    if "error_at_most" in problem.queries:
        most = problem.queries["error_at_most"].to_numpy(float)
        allowed = np.broadcast_to(most, answers.error.shape)
        over = exceeds(answers.error, allowed)
        found += _places(problem, "error", problem.query_names, answers.error, allowed, over, "")
    must_send = problem.has_data & ~(problem.is_none & problem.may_send).any(axis=2)  # (S, Q)
    required = ~problem.is_none.any(axis=1) & problem.has_data.any(axis=0)
    left = required & ~answers.is_answered & problem.is_asked
    for query in np.flatnonzero(must_send.any(axis=0)).tolist():
        sites = must_send[:, query]
        left[:, query] |= (chosen[:, sites, query] < 0).any(axis=1) & problem.is_asked[:, query]
    found += _places(
        problem, "answered", problem.query_names, np.zeros(left.shape), np.ones(left.shape), left, "answers"
    )
    ruled_out = _find_ruled_out(
        read_only(chosen), read_only(problem.has_data), read_only(problem.is_asked), _may_send(problem)
    ).tolist()
    ruled_out += [(k, site, query) for query, k, site in _find_finer(problem, chosen)]
    for row, (query, level) in enumerate(zip(late.query.tolist(), late.level.tolist(), strict=True)):
        if not problem.may_send[late.site[row], query, level]:
            ruled_out.append((int(late.interval[row]), int(late.site[row]), query))
    return found + Violations.of(
        "rules",
        where=[
            f"{problem.site_names[s]}, {problem.query_names[q]}, interval {problem.interval_numbers[k]:g}"
            for k, s, q in ruled_out
        ],
        amount=np.ones(len(ruled_out)),
        allowed=np.zeros(len(ruled_out)),
        unit="levels",
    )


def _find_finer(problem: Analytics, chosen: Ints) -> Iterator[tuple[int, int, int]]:
    """Yield query, interval and site of levels that the data of the query that they use cannot make."""
    followed = follow_sources(problem, chosen)
    for query in np.flatnonzero(problem.source_of >= 0).tolist():
        own, most = chosen[:, :, query], followed[:, :, query]
        known = (own >= 0) & ~problem.is_none[query, own]
        made = (most >= 0) & problem.refines[query, most, own]
        for k, site in np.argwhere(known & ~made & problem.has_data[:, query]).tolist():
            yield query, k, site


def _may_send(problem: Analytics) -> Bools:
    """Return whether tables `pinned` and `forbidden` allow each level of queries at sites, (S, Q, L)."""
    may = np.ones((len(problem.site_names), *problem.level_rows.shape), dtype=bool)
    if problem.forbidden is not None:
        may[problem.find_levels(problem.forbidden)] = False
    if problem.pinned is not None:
        site, query, level = problem.find_levels(problem.pinned)
        may[site, query] = False
        may[site, query, level] = True
    return read_only(may)


@run_small_in_python(max_elements=1_000)
@kernel
def _find_ruled_out(chosen: Ints, has_data: Bools, is_asked: Bools, may_send: Bools) -> Ints:
    """Return interval, site and query of levels (K, S, Q) that may not be sent, (n, 3), query by query."""
    intervals, sites, queries = chosen.shape
    found = [(0, 0, 0)][:0]  # of this type
    for k in range(intervals):
        for site in range(sites):
            for query in range(queries):
                level = chosen[k, site, query]
                is_sent = level >= 0 and has_data[site, query] and is_asked[k, query]
                if is_sent and not may_send[site, query, level]:
                    found.append((query, k, site))
    places = np.empty((len(found), 3), dtype=np.int64)
    found.sort()
    for row in range(len(found)):
        query, k, site = found[row]
        places[row, 0], places[row, 1], places[row, 2] = k, site, query
    return places


def _require_answers(plan: Levels, expected: pd.DataFrame) -> None:
    """Raise PlanRejected where the table of answers is not what the levels make."""
    given = plan.answers
    if len(given) != len(expected):
        raise PlanRejected(f"answers: has {len(given):,} rows, must have {len(expected):,}: one for each "
                           "interval and query with data")  # fmt: skip
    keys = [
        given.assign(query=given["query"].astype(str)).sort_values(["interval", "query"], kind="stable"),
        expected.sort_values(["interval", "query"], kind="stable"),
    ]
    for column in ("interval", "query", "level"):
        differ = keys[0][column].to_numpy(object) != keys[1][column].to_numpy(object)
        if differ.any():
            place = int(np.argmax(differ))
            row = keys[1].iloc[place]
            raise PlanRejected(
                f"answers: {column} is {keys[0][column].iloc[place]!r} where the levels make "
                f"{row[column]!r} of query '{row['query']}' in interval {row['interval']:g}"
            )
    for column in ("error", "value_usd"):
        one, other = (frame[column].to_numpy(float) for frame in keys)
        differ = differs(one, other) & ~(np.isnan(one) & np.isnan(other))
        if differ.any():
            place = int(np.argmax(differ))
            row = keys[1].iloc[place]
            raise PlanRejected(
                f"answers: {column} is {one[place]:g}, must be {other[place]:g} for query '{row['query']}' "
                f"in interval {row['interval']:g}"
            )


def _require_kept(plan: Levels, expected: pd.DataFrame) -> None:
    """Raise PlanRejected where the table of data that is kept is not what backfill makes."""
    keys = ["interval", "query", "site"]
    given = plan.kept.astype({"query": str, "site": str})
    both = expected.astype({"query": str, "site": str}).merge(
        given, on=keys, how="outer", suffixes=("", "_given")
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
    interval, place = np.nonzero(broken)
    numbers = problem.interval_numbers
    return Violations.of(
        limit,
        where=[
            f"{names[one]}, interval {numbers[k]:g}"
            for k, one in zip(interval.tolist(), place.tolist(), strict=True)
        ],
        amount=amount[interval, place],
        allowed=allowed[interval, place],
        unit=unit,
    )
