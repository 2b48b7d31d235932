"""Choices of one interval as arrays: options of queries with one answer, and of sites that add values."""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints, read_only
from planner.compiled import inner, kernel, run_small_in_python
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.tables import QueryVolume, read_volume

IMPOSSIBLE: Final = -np.inf


class Shared(NamedTuple):
    """Queries with one answer for all sites: n queries, L levels of an answer, M uplinks.

    query  (n,) query of the problem
    value  (n, L) value of an answer, USD; -inf where the answer is impossible
    use    (n, L, M) bytes on each uplink over its capacity
    sends  (n, L, S) level that each site sends: the one of fewest bytes that makes the answer
    """

    query: Ints
    value: Floats
    use: Floats
    sends: Ints


class Separate(NamedTuple):
    """Queries to which each site adds a value of its own: n queries.

    query     (n,) query of the problem
    value     (S, n, L) value that a site adds, USD; -inf where it may not send the level
    use       (S, n, L) bytes on the uplink of the site over its capacity
    pop_use   (S, n, L) bytes on the uplink of its point of presence over its capacity
    """

    query: Ints
    value: Floats
    use: Floats
    pop_use: Floats


class Interval(NamedTuple):
    """Choices of one interval; M = S + G uplinks, of sites and then of points of presence, of capacity 1."""

    pop_of: Ints
    links: int
    shared: Shared
    separate: Separate


class Choices:
    """Choices of all intervals of a problem, made one interval at a time.

    must_answer  whether queries may not be left without data
    """

    def __init__(self, problem: Analytics, *, must_answer: bool = False) -> None:
        self.problem, self.must_answer = problem, must_answer
        taking_part = problem.has_data.any(axis=0) & (problem.source_of < 0)
        self.shared = np.flatnonzero(~problem.is_sum & taking_part)
        self.separate = np.flatnonzero(problem.is_sum & taking_part)
        self._may_answer = problem.may_answer & ~(problem.is_none & must_answer)
        self._left_out: dict[int, tuple[Ints, Bools]] = {}
        self.shortages: list[str] = []

    def leave_out(self, k: int, query: Ints, of_site: Bools, reason: str) -> None:
        """Leave out answers of interval k.

        query    of those with one answer for all sites
        of_site  (S, n) of each site to queries with values that add up
        reason   why not all fit
        """
        self._left_out[k] = query, of_site
        self.shortages.append(reason)

    def without_left_out(self, levels: Ints) -> Ints:
        """Return levels (K, S, Q) in which answers that are left out have none, -1.

        Sites send no data for answers that rules of regions deny.
        """
        levels = np.where(self.problem.is_denied, self.problem.silent_level, levels)
        for k, (query, of_site) in self._left_out.items():
            levels[k, :, query] = -1
            site, column = np.nonzero(of_site)
            levels[k, site, self.separate[column]] = -1
        return levels

    @cached_property
    def _rules(self) -> _Rules:
        problem = self.problem
        return _Rules(
            read_only(problem.has_data), read_only(problem.may_send), read_only(self._may_answer),
            read_only(problem.refines), read_only(problem.merged_share[problem.pop_of]),
            read_only(problem.level_value_usd), read_only(problem.site_level_value_usd),
            read_only(problem.sent_per_record), read_only(problem.sent_per_cell), read_only(problem.pop_of),
        )  # fmt: skip

    def interval(self, k: int, capacity: Floats | None = None) -> Interval:
        """Return the choices of interval k.

        capacity  (M,) bytes that uplinks carry; None: those of the interval
        """
        problem = self.problem
        capacity = problem.capacity_bytes[k] if capacity is None else capacity
        shared, separate = self._shared_of(k, capacity), self._separate_of(k, capacity)
        return Interval(problem.pop_of, len(capacity), shared, separate)

    def _shared_of(self, k: int, capacity: Floats) -> Shared:
        is_out: Bools = np.asarray(self.problem.is_denied[:, self.shared].any(axis=0))
        if k in self._left_out:
            is_out = is_out | np.isin(self.shared, self._left_out[k][0])
        made = _make_shared(
            k, read_only(self.shared), read_only(is_out), read_only(capacity), self.problem.query_volume,
            self._rules,
        )  # fmt: skip
        return Shared(self.shared, *made)

    def _separate_of(self, k: int, capacity: Floats) -> Separate:
        is_out = self.problem.is_denied[:, self.separate]
        if k in self._left_out:
            is_out = is_out | self._left_out[k][1]
        made = _make_separate(
            k, read_only(self.separate), read_only(is_out), read_only(capacity), self.problem.query_volume,
            self._rules,
        )  # fmt: skip
        return Separate(self.separate, *made)

    def to_levels(self, interval: Interval, answers: Ints, added: Ints) -> Ints:
        """Return the level that each site sends for each query, (S, Q).

        answers  (n,) answer of each shared query
        added    (S, n) level of each site for each query with values that add up
        """
        problem = self.problem
        levels = np.zeros((len(problem.site_names), len(problem.query_names)), dtype=np.int64)
        shared = interval.shared
        if len(shared.query):
            levels[:, shared.query] = shared.sends[np.arange(len(answers)), answers].T
        levels[:, interval.separate.query] = added
        return levels


class _Rules(NamedTuple):
    """Sources of the choices beside volumes and capacities; S sites, Q queries, L levels.

    has_data      (S, Q)
    may_send      (S, Q, L)
    may_answer    (Q, L)
    refines       (Q, L, L)
    merged_share  (S, Q, L) of the site's point of presence
    value         (Q, L) of an answer, USD
    site_value    (S, Q, L) that a site adds, USD
    per_record, per_cell  (S, Q, L) bytes that a site sends for each record, and cell, that it has
    pop_of        (S,)
    """

    has_data: Bools
    may_send: Bools
    may_answer: Bools
    refines: Bools
    merged_share: Floats
    value: Floats
    site_value: Floats
    per_record: Floats
    per_cell: Floats
    pop_of: Ints


@inner
def _find_fewest(rules: _Rules, site: int, query: int, answer: int, size: Floats) -> tuple[int, float]:
    """Return the level of fewest bytes with which a site makes an answer, -1 for none, and its bytes."""
    best, fewest = -1, np.inf
    for level in range(len(size)):
        may = rules.refines[query, level, answer] and rules.may_send[site, query, level]
        if may and size[level] < fewest:
            best, fewest = level, size[level]
    return best, fewest


@run_small_in_python(max_elements=20_000)
@kernel
def _make_shared(  # noqa: C901 - one compiled loop
    k: int, queries: Ints, is_out: Bools, capacity: Floats, volume: QueryVolume, rules: _Rules
) -> tuple[Floats, Floats, Ints]:
    """Return value, use and levels sent of queries with one answer for all sites, as in `Shared`.

    is_out  (n,) whether an answer is left out: it has no value and no use, at its first level
    """
    sites, _, levels = rules.may_send.shape
    links, count = len(capacity), len(queries)
    value = np.full((count, levels), IMPOSSIBLE)
    use = np.zeros((count, levels, links))
    sends = np.zeros((count, levels, sites), dtype=np.int64)
    is_possible, size = np.empty(levels, dtype=np.bool_), np.empty(levels)
    for row in range(count):
        query = queries[row]
        is_possible[:] = rules.may_answer[query]
        for site in range(sites):
            records, cells = read_volume(volume, k, site, query)
            for level in range(levels):
                size[level] = (
                    records * rules.per_record[site, query, level]
                    + cells * rules.per_cell[site, query, level]
                )
            pop = sites + rules.pop_of[site]
            for answer in range(levels):
                best, fewest = _find_fewest(rules, site, query, answer, size)
                sends[row, answer, site] = max(best, 0)
                if not rules.has_data[site, query]:
                    continue
                if best < 0:
                    is_possible[answer] = False
                    continue
                use[row, answer, site] += fewest
                use[row, answer, pop] += fewest * rules.merged_share[site, query, best]
        for answer in range(levels):
            for link in range(links):
                if capacity[link] > 0:
                    use[row, answer, link] /= capacity[link]
                elif use[row, answer, link] > 0:
                    is_possible[answer] = False
            if is_out[row]:
                use[row, answer] = 0.0
            elif volume.is_asked[k, query] and is_possible[answer]:
                value[row, answer] = rules.value[query, answer]
        if is_out[row] or not volume.is_asked[k, query]:
            value[row, 0] = 0.0
    return value, use, sends


@run_small_in_python(max_elements=20_000)
@kernel
def _make_separate(
    k: int, queries: Ints, is_out: Bools, capacity: Floats, volume: QueryVolume, rules: _Rules
) -> tuple[Floats, Floats, Floats]:
    """Return value, use and use of the point of presence of queries with additive values, as in `Separate`.

    is_out  (S, n) whether a site's answer is left out: it has no value and no use, at its first level
    """
    sites, _, levels = rules.may_send.shape
    count = len(queries)
    value = np.full((sites, count, levels), IMPOSSIBLE)
    use, pop_use = np.zeros_like(value), np.zeros_like(value)
    for site in range(sites):
        site_capacity, of_pop = capacity[site], capacity[sites + rules.pop_of[site]]
        for row in range(count):
            query = queries[row]
            if is_out[site, row] or not rules.has_data[site, query]:
                value[site, row, 0] = 0.0
                continue
            records, cells = read_volume(volume, k, site, query)
            for level in range(levels):
                size = (
                    records * rules.per_record[site, query, level]
                    + cells * rules.per_cell[site, query, level]
                )
                on_pop = size * rules.merged_share[site, query, level]
                use[site, row, level] = size / site_capacity if site_capacity > 0 else size
                pop_use[site, row, level] = on_pop / of_pop if of_pop > 0 else on_pop
                fits = size <= 0 or (site_capacity > 0 and of_pop > 0)
                may = rules.may_send[site, query, level] and rules.may_answer[query, level]
                if fits and may and volume.is_asked[k, query]:
                    value[site, row, level] = rules.site_value[site, query, level]
            if not volume.is_asked[k, query]:
                value[site, row, 0] = 0.0
    return value, use, pop_use
