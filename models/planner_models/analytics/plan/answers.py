"""Answers, loads and delays that follow from the levels that sites send."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints, read_only
from planner.compiled import inner, kernel, run_small_in_python
from planner_models.analytics.plan.erasure import Chunks, Erasure, erases, replay_erasure
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.tables import QueryVolume, read_volume


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
    chunks  bytes by cube, where some site keeps data only for a time
    """

    site: Floats
    pop: Floats
    shrunk: Floats
    wasted: Floats
    chunks: Chunks | None = None


def find_answers(problem: Analytics, levels: Ints) -> Answers:
    """Return the answers from chosen levels (K, S, Q); levels of sites without data are ignored."""
    errors = problem.level_column("error")
    kinds = _Kinds(*map(read_only, (problem.has_data, problem.is_none, problem.is_sum, problem.is_asked)))
    level, error, share, answered = _join_answers(
        read_only(levels), kinds, read_only(problem.join), read_only(problem.value_share),
        read_only(problem.site_value_usd), read_only(errors),
    )  # fmt: skip
    taking_part = problem.has_data.any(axis=0)
    value = np.where(problem.is_sum, share, 0.0)
    is_summed = answered & ~problem.is_sum
    interval, query = np.nonzero(is_summed)
    value[interval, query] = problem.value_usd[query] * problem.value_share[query, level[interval, query]]
    error[interval, query] = errors[query, level[interval, query]]
    level[:, ~taking_part] = -1
    return Answers(level, error, value, answered)


class _Kinds(NamedTuple):
    """Properties of queries and levels that answers follow from, as in `Analytics`."""

    has_data: Bools
    is_none: Bools
    is_sum: Bools
    is_asked: Bools


@inner
def _join_two(join: Ints, first: int, other: int) -> int:
    """Return the level of the answer that the levels of some sites make; -1 where one sends none."""
    return int(join[first, other]) if first >= 0 and other >= 0 else -1


@run_small_in_python(max_elements=5_000)
@kernel
def _join_answers(  # noqa: C901 - one compiled loop
    levels: Ints, kinds: _Kinds, join: Ints, value_share: Floats, site_value: Floats, errors: Floats
) -> tuple[Ints, Floats, Floats, Bools]:
    """Return level, error and value of sums, and whether there is an answer, (K, Q) each.

    Where sites add up: the common level, or -1; the largest error of the sites that send data, NaN without
    data or where one of them is NaN. Where they do not, error and value are not set.
    """
    intervals, sites, queries = levels.shape
    level = np.full((intervals, queries), -1, dtype=np.int64)
    error, value = np.full((intervals, queries), np.nan), np.zeros((intervals, queries))
    answered = np.zeros((intervals, queries), dtype=np.bool_)
    is_first = np.empty(queries, dtype=np.bool_)
    for k in range(intervals):
        is_first[:] = True
        for site in range(sites):
            for query in range(queries):
                if not kinds.has_data[site, query]:
                    continue
                level_own = levels[k, site, query] if kinds.is_asked[k, query] else -1
                if is_first[query]:
                    level[k, query], is_first[query] = level_own, False
                elif not kinds.is_sum[query]:
                    level[k, query] = _join_two(join[query], level[k, query], level_own)
                elif level_own != level[k, query]:
                    level[k, query] = -1
                if not kinds.is_sum[query]:
                    continue
                if level_own < 0:
                    continue
                value[k, query] += value_share[query, level_own] * site_value[site, query]
                if kinds.is_none[query, level_own]:
                    continue
                now = errors[query, level_own]
                if not answered[k, query] or not now <= error[k, query]:
                    error[k, query] = np.nan if answered[k, query] and np.isnan(error[k, query]) else now
                answered[k, query] = True
        for query in range(queries):
            if not kinds.is_sum[query] and not is_first[query]:
                current = level[k, query]
                answered[k, query] = current >= 0 and not kinds.is_none[query, current]
    return level, error, value, answered


def _find_largest(errors: Floats, sends: Bools) -> Floats:
    """Return the largest error of the sites that send data, of (K, n), (K,).

    NaN without data, or where one of them is NaN.
    """
    largest = np.where(sends, errors, -1.0).max(axis=1)
    return np.asarray(np.where(largest >= 0, largest, np.nan))


def find_proven_errors(problem: Analytics, levels: Ints, answers: Answers) -> Floats:
    """Return the proven bounds on the errors of answers from levels (K, S, Q), (K, Q).

    NaN without data, and where no bound is known.
    """
    proven = problem.level_column("proven_error")
    result = np.full_like(answers.error, np.nan)
    for query in range(len(problem.query_names)):
        if problem.is_sum[query]:
            site_level = levels[:, :, query]
            sends = (site_level >= 0) & ~problem.is_none[query, site_level] & problem.has_data[:, query]
            result[:, query] = _find_largest(proven[query, site_level], sends & problem.is_asked[:, [query]])
        else:
            result[:, query] = proven[query, answers.level[:, query]]
    return np.asarray(np.where(answers.is_answered, result, np.nan))


def follow_sources(problem: Analytics, levels: Ints) -> Ints:
    """Return chosen levels (K, S, Q) in which queries that use the data of another one have its levels.

    Where sites share an answer, that is made of the source's answer; otherwise of each site's own data.
    """
    if (problem.source_of < 0).all():
        return levels
    result, answers = levels.copy(), find_answers(problem, levels)
    for query in np.flatnonzero(problem.source_of >= 0).tolist():
        source = problem.source_of[query]
        level = levels[:, :, source] if problem.is_sum[query] else answers.level[:, [source]]
        result[:, :, query] = np.where(level >= 0, problem.followed[query, level], -1)
    return result


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
    problem: Analytics, levels: Ints, query: int, answers: Answers | None = None
) -> QueryLoads:
    """Return the bytes of one query from chosen levels (K, S, Q); none where it uses the data of another."""
    return QueryLoads(*_sum_queries(problem, levels, answers, query, query + 1))


def find_loads(problem: Analytics, levels: Ints, answers: Answers | None = None) -> Loads:
    """Return the bytes on uplinks from chosen levels (K, S, Q); with answers, also those that are wasted."""
    site, before_pop, wasted = _sum_queries(problem, levels, answers, 0, levels.shape[2])
    pop = np.zeros((len(levels), len(problem.pop_names)))
    np.add.at(pop.T, problem.pop_of, before_pop.T)
    shrunk = np.divide(before_pop, site, out=np.ones_like(site), where=site > 0)
    chunks = find_chunks(problem, levels) if erases(problem) else None
    return Loads(site, pop, shrunk, wasted, chunks)


def find_chunks(problem: Analytics, levels: Ints) -> Chunks:
    """Return the bytes that sites send by cube, and these after merging, from chosen levels (K, S, Q)."""
    shape = (*levels.shape[:2], len(problem.cubes))
    sent, before_pop = np.zeros(shape), np.zeros(shape)
    for query, cube in enumerate(problem.cube_of.tolist()):
        loads = find_query_loads(problem, levels, query)
        sent[:, :, cube] += loads.sent
        before_pop[:, :, cube] += loads.before_pop
    return Chunks(sent, before_pop)


class _Sizes(NamedTuple):
    """Sources of the bytes of levels.

    volume           records, and cells, of the problem
    per_record       (S, Q, L) bytes that a site sends for each record that it has
    per_cell         (S, Q, L) bytes that a site sends for each cell that it has
    merged_share     (S, Q, L) bytes on the uplink of the site's point of presence over those of the site
    sends            (S, Q) whether a site has data of the query, and sends it
    """

    volume: QueryVolume
    per_record: Floats
    per_cell: Floats
    merged_share: Floats
    sends: Bools


class _Needs(NamedTuple):
    """Levels that make an answer: those of the answers (K, Q), -1 for none, and the possible ones for them.

    refines   (Q, L, L) as in `Analytics`
    may_send  (S, Q, L), without levels that there are none of
    """

    level: Ints
    refines: Bools
    may_send: Bools


def _sum_queries(
    problem: Analytics, levels: Ints, answers: Answers | None, first: int, end: int
) -> tuple[Floats, Floats, Floats]:
    """Return bytes sent, those before the point of presence, and those wasted, of some queries, (K, S)."""
    sizes = _Sizes(
        problem.query_volume, read_only(problem.sent_per_record), read_only(problem.sent_per_cell),
        read_only(problem.merged_share[problem.pop_of]),
        read_only(problem.has_data & (problem.source_of < 0)),
    )  # fmt: skip
    sent, before_pop = _add_loads(read_only(levels), sizes, first, end)
    wasted = np.zeros_like(sent)
    if answers is not None:
        level = np.where(answers.is_answered, answers.level, -1)
        needs = _Needs(
            read_only(level),
            read_only(problem.refines),
            read_only(problem.may_send & (problem.level_rows >= 0)),
        )
        shared = np.flatnonzero(~problem.is_sum[first:end] & (problem.source_of[first:end] < 0)) + first
        _add_wasted(read_only(levels), sizes, needs, read_only(shared), wasted)
    return sent, before_pop, wasted


@run_small_in_python(max_elements=20_000)
@kernel
def _add_loads(levels: Ints, sizes: _Sizes, first: int, end: int) -> tuple[Floats, Floats]:
    """Return the bytes of queries from first up to end that sites send, and those behind it, (K, S)."""
    intervals, sites, _ = levels.shape
    sent, before_pop = np.zeros((intervals, sites)), np.zeros((intervals, sites))
    for k in range(intervals):
        for site in range(sites):
            for query in range(first, end):
                level = levels[k, site, query]
                if level >= 0 and sizes.sends[site, query]:
                    records, cells = read_volume(sizes.volume, k, site, query)
                    size = (
                        records * sizes.per_record[site, query, level]
                        + cells * sizes.per_cell[site, query, level]
                    )
                    sent[k, site] += size
                    before_pop[k, site] += size * sizes.merged_share[site, query, level]
    return sent, before_pop


@run_small_in_python(max_elements=20_000)
@kernel
def _add_wasted(selected_levels: Ints, sizes: _Sizes, needs: _Needs, queries: Ints, wasted: Floats) -> None:
    """Add the bytes (K, S) beyond the fewest with which a site makes the answer of each of some queries."""
    intervals, sites, _ = selected_levels.shape
    for k in range(intervals):
        for site in range(sites):
            for query in queries:
                level, answer = selected_levels[k, site, query], needs.level[k, query]
                if level < 0 or not sizes.sends[site, query]:
                    continue
                records, cells = read_volume(sizes.volume, k, site, query)
                sent = (
                    records * sizes.per_record[site, query, level]
                    + cells * sizes.per_cell[site, query, level]
                )
                needed = 0.0
                if answer >= 0:
                    needed = min(sent, _find_needed(sizes, needs, site, query, answer, records, cells))
                wasted[k, site] += sent - needed


@inner
def _find_needed(
    sizes: _Sizes, needs: _Needs, site: int, query: int, answer: int, records: float, cells: float
) -> float:
    """Return the fewest bytes of records and cells with which a site makes an answer; inf for none."""
    needed = np.inf
    for level in range(sizes.per_record.shape[2]):
        if needs.may_send[site, query, level] and needs.refines[query, level, answer]:
            size = records * sizes.per_record[site, query, level] + cells * sizes.per_cell[site, query, level]
            needed = min(needed, size)
    return needed


class Delays(NamedTuple):
    """Delays of data in queues of uplinks.

    site_s        (K, S) time from the end of an interval until all data of a site has come to the datacenter
    backlog       (K,) bytes in all queues at the end of each interval
    pop_waiting   (G,) bytes in the queues of points of presence at the end of the last interval
    erasure       what sites erase before it is sent; None where they keep data for any time
    """

    site_s: Floats
    backlog: Floats
    pop_waiting: Floats
    erasure: Erasure | None


def replay_queues(problem: Analytics, loads: Loads) -> Delays:
    """Return the delays where each uplink sends its data in order, without losses.

    Data of an interval comes at a constant rate and leaves by the link's capacity; what is left is sent in
    the next intervals, unless a site has to erase it before (`erasure`). At a point of presence, data waits
    for all that has come there in the same interval.
    After the last interval, links keep their last capacity.
    """
    length, capacity = problem.length_s, problem.capacity_bytes
    ends = problem.start_s + length
    sites = len(problem.site_names)
    erasure = None if loads.chunks is None else replay_erasure(problem, loads.chunks)
    if erasure is None:
        backlog, sent = _queue(loads.site, capacity[:, :sites])
        arrived, finish = sent * loads.shrunk, np.empty_like(loads.site)
        for site in range(sites):
            finish[:, site] = _drain(ends, length, capacity[:, site], backlog[:, site])
    else:
        backlog, arrived, finish = erasure.waiting, erasure.arrived, erasure.finish_s
    pop_in = np.zeros_like(loads.pop)
    np.add.at(pop_in.T, problem.pop_of, arrived.T)
    pop_backlog, _ = _queue(pop_in, capacity[:, sites:])
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
    waiting = backlog.sum(axis=1) + pop_backlog.sum(axis=1)
    return Delays(np.where(loads.site > 0, delay, 0.0), waiting, pop_backlog[-1], erasure)


def _queue(arrivals: Floats, capacity: Floats) -> tuple[Floats, Floats]:
    """Return the bytes left at the end of each interval, and those sent in it, (K, n) each."""
    backlog, sent = np.empty_like(arrivals), np.empty_like(arrivals)
    before = np.zeros(arrivals.shape[1])
    for interval, (size, limit) in enumerate(zip(arrivals, capacity, strict=True)):
        now = np.maximum(before + size - limit, 0.0)
        now = np.where(now <= 1e-9 * (before + size), 0.0, now)  # rounding
        backlog[interval], sent[interval] = now, before + size - now
        before = now
    return backlog, sent


def _drain(ends: Floats, length: Floats, capacity: Floats, backlog: Floats) -> Floats:
    """Return the time at which the backlog of each interval's end has been sent, (K,); inf for never."""
    total = np.concatenate([[0.0], np.cumsum(capacity)])
    times = np.concatenate([ends[:1] - length[:1], ends])
    target = total[1:] + backlog
    finish = np.interp(target, total, times)
    beyond = target > total[-1]
    rate = capacity[-1] / length[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        later = ends[-1] + (target - total[-1]) / rate
    return np.asarray(np.where(backlog > 0, np.where(beyond, later, finish), ends))
