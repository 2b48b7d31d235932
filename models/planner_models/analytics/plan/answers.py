"""Answers, loads and delays that follow from the levels that sites send."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.analytics.problem.problem import Analytics


class Answers(NamedTuple):
    """Answers of each interval and query.

    level        (K, Q) level; -1 where sites add up and send several
    error        (K, Q) largest error; NaN without data
    value_usd    (K, Q) value, USD
    is_answered  (K, Q) whether all sites (where they add up: any site) send data
    """

    level: Ints
    error: Floats
    value_usd: Floats
    is_answered: Bools


class Loads(NamedTuple):
    """Bytes of each interval on uplinks.

    site    (K, S) bytes that each site sends
    pop     (K, G) bytes that each point of presence sends
    shrunk  (K, S) bytes on the uplink of its point of presence for each byte that a site sends
    wasted  (K, S) bytes of a site that its answers cannot use, as another site is coarser
    """

    site: Floats
    pop: Floats
    shrunk: Floats
    wasted: Floats


def find_answers(problem: Analytics, chosen: Ints) -> Answers:
    """Return the answers from chosen levels (K, S, Q); levels of sites without data are ignored."""
    intervals, _, queries = chosen.shape
    level = np.full((intervals, queries), -1, dtype=np.int64)
    value, error = np.zeros((intervals, queries)), np.full((intervals, queries), np.nan)
    answered = np.zeros((intervals, queries), dtype=bool)
    errors = problem.level_column("error")
    for query in range(queries):
        sites = np.flatnonzero(problem.has_data[:, query])
        if not len(sites):
            continue
        own = chosen[:, sites, query]
        asked = problem.is_asked[:, query]
        own = np.where(asked[:, None], own, -1)
        sends = (own >= 0) & ~problem.is_none[query, own]
        if problem.is_sum[query]:
            share = np.where(own >= 0, problem.value_share[query, own], 0.0)
            value[:, query] = share @ problem.site_value_usd[sites, query]
            error[:, query] = _find_largest(errors[query, own], sends)
            level[:, query] = np.where((own == own[:, :1]).all(axis=1), own[:, 0], -1)
            answered[:, query] = sends.any(axis=1)
            continue
        joined = own[:, 0].copy()
        for column in range(1, own.shape[1]):
            found = problem.join[query, joined, own[:, column]]
            joined = np.where((joined >= 0) & (own[:, column] >= 0), found, -1)
        known = (joined >= 0) & ~problem.is_none[query, joined]
        level[:, query] = joined
        value[:, query] = np.where(known, problem.value_usd[query] * problem.value_share[query, joined], 0.0)
        error[:, query] = np.where(known, errors[query, joined], np.nan)
        answered[:, query] = known
    return Answers(level, error, value, answered)


def _find_largest(errors: Floats, sends: Bools) -> Floats:
    """Return the largest error of the sites that send data, of (K, n), (K,).

    NaN without data, or where one of them is NaN.
    """
    largest = np.where(sends, errors, -1.0).max(axis=1)
    return np.asarray(np.where(largest >= 0, largest, np.nan))


def find_proven_errors(problem: Analytics, chosen: Ints, answers: Answers) -> Floats:
    """Return the proven bounds on the errors of answers from levels (K, S, Q), (K, Q).

    NaN without data, and where no bound is known.
    """
    proven = problem.level_column("proven_error")
    found = np.full_like(answers.error, np.nan)
    for query in range(len(problem.query_names)):
        if problem.is_sum[query]:
            own = chosen[:, :, query]
            sends = (own >= 0) & ~problem.is_none[query, own] & problem.has_data[:, query]
            found[:, query] = _find_largest(proven[query, own], sends & problem.is_asked[:, [query]])
        else:
            found[:, query] = proven[query, answers.level[:, query]]
    return np.asarray(np.where(answers.is_answered, found, np.nan))


def follow_sources(problem: Analytics, chosen: Ints) -> Ints:
    """Return chosen levels (K, S, Q) in which queries that use the data of another one have its levels.

    Where sites share an answer, that is made of the source's answer; otherwise of each site's own data.
    """
    if (problem.source_of < 0).all():
        return chosen
    found, answers = chosen.copy(), find_answers(problem, chosen)
    for query in np.flatnonzero(problem.source_of >= 0).tolist():
        source = problem.source_of[query]
        level = chosen[:, :, source] if problem.is_sum[query] else answers.level[:, [source]]
        found[:, :, query] = np.where(level >= 0, problem.followed[query, level], -1)
    return found


class QueryLoads(NamedTuple):
    """Bytes of one query, (K, S) each.

    sent       that each site sends
    before_pop of these, after merging at its point of presence
    wasted     of these, that the answer cannot use; 0 where the answers are not given
    """

    sent: Floats
    before_pop: Floats
    wasted: Floats


def find_query_loads(
    problem: Analytics, chosen: Ints, query: int, answers: Answers | None = None
) -> QueryLoads:
    """Return the bytes of one query from chosen levels (K, S, Q); none where it uses the data of another."""
    own = chosen[:, :, query]
    if problem.source_of[query] >= 0:
        nothing = np.zeros(own.shape)
        return QueryLoads(nothing, nothing, nothing)
    per_record, per_cell = problem.level_column("bytes_per_record"), problem.level_column("bytes_per_cell")
    sends = (own >= 0) & problem.has_data[:, query]
    own_records, own_cells = problem.find_query_volume(query)
    records = np.where(sends, own_records, 0.0)
    cells = np.where(sends, own_cells, 0.0)
    sent = records * per_record[query, own] + cells * per_cell[query, own]
    before_pop = sent * problem.merged_share[problem.pop_of, query][np.arange(own.shape[1]), own]
    wasted = np.zeros_like(sent)
    if answers is not None and not problem.is_sum[query]:
        wasted = sent - _needed(problem, query, answers, records, cells, sent)
    return QueryLoads(sent, before_pop, wasted)


def find_loads(problem: Analytics, chosen: Ints, answers: Answers | None = None) -> Loads:
    """Return the bytes on uplinks from chosen levels (K, S, Q); with answers, also those that are wasted."""
    site, before_pop, wasted = (np.zeros(chosen.shape[:2]) for _ in range(3))
    for query in range(chosen.shape[2]):
        own = find_query_loads(problem, chosen, query, answers)
        site += own.sent
        before_pop += own.before_pop
        wasted += own.wasted
    pop = np.zeros((len(chosen), len(problem.pop_names)))
    np.add.at(pop.T, problem.pop_of, before_pop.T)
    shrunk = np.divide(before_pop, site, out=np.ones_like(site), where=site > 0)
    return Loads(site, pop, shrunk, wasted)


def _needed(
    problem: Analytics, query: int, answers: Answers, records: Floats, cells: Floats, sent: Floats
) -> Floats:
    """Return the least bytes with which each site makes the answer of a query, (K, S), at most its own."""
    needed = np.full_like(sent, np.inf)
    level = answers.level[:, query]
    per_record, per_cell = problem.level_column("bytes_per_record"), problem.level_column("bytes_per_cell")
    for one in np.flatnonzero(problem.level_rows[query] >= 0).tolist():
        may = problem.refines[query, one, level][:, None] & problem.may_send[None, :, query, one]
        size = records * per_record[query, one] + cells * per_cell[query, one]
        needed = np.where(may, np.minimum(needed, size), needed)
    needed = np.where(answers.is_answered[:, query][:, None], needed, 0.0)
    return np.asarray(np.minimum(needed, sent))


class Delays(NamedTuple):
    """Delays of data in queues of uplinks.

    site_s        (K, S) time from the end of an interval until all data of a site has come to the datacenter
    backlog       (K,) bytes in all queues at the end of each interval
    """

    site_s: Floats
    backlog: Floats


def replay_queues(problem: Analytics, loads: Loads) -> Delays:
    """Return the delays where each uplink sends its data in order, without losses.

    Data of an interval comes at a constant rate and leaves by the link's capacity; what is left is sent in
    the next intervals. At a point of presence, data waits for all that has come there in the same interval.
    After the last interval, links keep their last capacity.
    """
    length, capacity = problem.length_s, problem.capacity_bytes
    ends = problem.start_s + length
    sites = len(problem.site_names)
    backlog, sent = _queue(loads.site, capacity[:, :sites])
    pop_in = np.zeros_like(loads.pop)
    np.add.at(pop_in.T, problem.pop_of, (sent * loads.shrunk).T)
    pop_backlog, _ = _queue(pop_in, capacity[:, sites:])
    finish = np.empty_like(loads.site)
    for site in range(sites):
        finish[:, site] = _drain(ends, length, capacity[:, site], backlog[:, site])
    after = np.minimum(np.searchsorted(ends, finish - 1e-9 * np.abs(ends[-1])), len(ends) - 1)
    pop_finish = np.stack(
        [
            _drain(ends, length, capacity[:, sites + pop], pop_backlog[:, pop])
            for pop in range(loads.pop.shape[1])
        ],
        axis=1,
    )
    waits = pop_backlog[after, problem.pop_of] > 0
    finish = np.where(waits, np.maximum(finish, pop_finish[after, problem.pop_of]), finish)
    delay = np.maximum(finish - ends[:, None], 0.0)
    return Delays(np.where(loads.site > 0, delay, 0.0), backlog.sum(axis=1) + pop_backlog.sum(axis=1))


def _queue(arrivals: Floats, capacity: Floats) -> tuple[Floats, Floats]:
    """Return the bytes left at the end of each interval, and those sent in it, (K, n) each."""
    left, sent = np.empty_like(arrivals), np.empty_like(arrivals)
    before = np.zeros(arrivals.shape[1])
    for interval, (size, most) in enumerate(zip(arrivals, capacity, strict=True)):
        now = np.maximum(before + size - most, 0.0)
        now = np.where(now <= 1e-9 * (before + size), 0.0, now)  # rounding
        left[interval], sent[interval] = now, before + size - now
        before = now
    return left, sent


def _drain(ends: Floats, length: Floats, capacity: Floats, backlog: Floats) -> Floats:
    """Return the time at which what is left at each interval's end has been sent, (K,); inf for never."""
    total = np.concatenate([[0.0], np.cumsum(capacity)])
    times = np.concatenate([ends[:1] - length[:1], ends])
    wanted = total[1:] + backlog
    found = np.interp(wanted, total, times)
    beyond = wanted > total[-1]
    rate = capacity[-1] / length[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        later = ends[-1] + (wanted - total[-1]) / rate
    return np.asarray(np.where(backlog > 0, np.where(beyond, later, found), ends))
