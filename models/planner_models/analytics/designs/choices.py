"""Choices of one interval as arrays: options of queries with one answer, and of sites that add values."""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.analytics.problem.problem import Analytics

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
        self._per_record = problem.level_column("bytes_per_record")
        self._per_cell = problem.level_column("bytes_per_cell")
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

    def without_left_out(self, chosen: Ints) -> Ints:
        """Return levels (K, S, Q) in which answers that are left out have none, -1."""
        chosen = chosen.copy()
        for k, (query, of_site) in self._left_out.items():
            chosen[k, :, query] = -1
            site, place = np.nonzero(of_site)
            chosen[k, site, self.separate[place]] = -1
        return chosen

    @cached_property
    def _makes(self) -> Bools:
        """(n, L, L, S) whether level l of a site makes answer z, by z and l; true of sites without data."""
        problem, own = self.problem, self.shared
        may = problem.may_send[:, own].transpose(1, 2, 0)  # n, l, S
        return problem.refines[own].transpose(0, 2, 1)[..., None] & may[:, None]

    @cached_property
    def _share_on_pop(self) -> Floats:
        """(n, L, S) bytes on the uplink of a site's point of presence over those that the site sends."""
        problem = self.problem
        return problem.merged_share[problem.pop_of][:, self.shared].transpose(1, 2, 0)

    @cached_property
    def _not_asked(self) -> Floats:
        """(L,) value of the levels of a query that is not asked, or of a site without its data."""
        nothing = np.full(self.problem.level_rows.shape[1], IMPOSSIBLE)
        nothing[:1] = 0.0
        return nothing

    @cached_property
    def _has(self) -> Bools:
        return np.asarray(self.problem.has_data[:, self.shared].T)  # n, S

    def interval(self, k: int, capacity: Floats | None = None) -> Interval:
        """Return the choices of interval k.

        capacity  (M,) bytes that uplinks carry; None: those of the interval
        """
        problem = self.problem
        sites = len(problem.site_names)
        capacity = problem.capacity_bytes[k] if capacity is None else capacity
        shared = self._shared_of(k, capacity)
        separate = self._separate_of(k, capacity[:sites], capacity[sites:])
        return Interval(problem.pop_of, len(capacity), shared, separate)

    def sizes(self, k: int) -> Floats:
        """Return the bytes of each site, query and level in interval k, (S, Q, L)."""
        return self._bytes(k, np.arange(len(self.problem.query_names)))

    def _bytes(self, k: int, queries: Ints) -> Floats:
        """Return the bytes of each site, query and level, (S, n, L)."""
        records, cells = (volume[:, queries] for volume in self.problem.find_volume(k))
        return np.asarray(
            records[:, :, None] * self._per_record[queries] + cells[:, :, None] * self._per_cell[queries]
        )

    def _shared_of(self, k: int, capacity: Floats) -> Shared:
        problem, own = self.problem, self.shared
        sites, pops = len(problem.site_names), len(problem.pop_names)
        size = self._bytes(k, own).transpose(1, 2, 0)  # n, l, S
        cost = np.where(self._makes, size[:, None], np.inf)  # n, z, l, S
        sends = cost.argmin(axis=2)
        least = np.take_along_axis(cost, sends[:, :, None], axis=2)[:, :, 0]  # n, z, S
        least = np.where(self._has[:, None], least, 0.0)
        possible = np.isfinite(least).all(axis=2) & self._may_answer[own]
        least = np.where(np.isfinite(least), least, 0.0)
        on_pop = least * np.take_along_axis(self._share_on_pop, sends, axis=1)
        load = np.zeros((*least.shape[:2], sites + pops))
        load[..., :sites] = least
        np.add.at(np.moveaxis(load, 2, 0), problem.pop_of + sites, np.moveaxis(on_pop, 2, 0))
        possible &= ~((load > 0) & (capacity == 0)).any(axis=2)
        value = np.where(possible, problem.level_value_usd[own], IMPOSSIBLE)
        value = np.where(problem.is_asked[k, own][:, None], value, self._not_asked)
        use = load / np.where(capacity > 0, capacity, 1.0)
        if k in self._left_out:
            is_out = np.isin(own, self._left_out[k][0])
            value = np.where(is_out[:, None], self._not_asked, value)
            use = np.where(is_out[:, None, None], 0.0, use)
        return Shared(own, value, np.ascontiguousarray(use), sends)

    def _separate_of(self, k: int, capacity: Floats, pop_capacity: Floats) -> Separate:
        problem, own = self.problem, self.separate
        size = self._bytes(k, own)
        on_pop = size * problem.merged_share[problem.pop_of][:, own]
        of_pop = pop_capacity[problem.pop_of]
        has = problem.has_data[:, own][:, :, None]
        may = problem.may_send[:, own] & self._may_answer[own]
        may &= ~((size > 0) & ((capacity == 0) | (of_pop == 0))[:, None, None])
        value = np.where(may, problem.site_level_value_usd[:, own], IMPOSSIBLE)
        may_not = ~problem.is_asked[k, own][:, None]
        value = np.where(may_not, self._not_asked, value)
        use = np.where(has, size, 0.0) / np.where(capacity > 0, capacity, 1.0)[:, None, None]
        of_pop_use = np.where(has, on_pop, 0.0) / np.where(of_pop > 0, of_pop, 1.0)[:, None, None]
        value = np.where(has, value, self._not_asked)
        if k in self._left_out:
            is_out = self._left_out[k][1][:, :, None]
            value = np.where(is_out, self._not_asked, value)
            use, of_pop_use = np.where(is_out, 0.0, use), np.where(is_out, 0.0, of_pop_use)
        return Separate(own, *(np.ascontiguousarray(array) for array in (value, use, of_pop_use)))

    def to_levels(self, interval: Interval, answers: Ints, added: Ints) -> Ints:
        """Return the level that each site sends for each query, (S, Q).

        answers  (n,) answer of each shared query
        added    (S, n) level of each site for each query with values that add up
        """
        problem = self.problem
        chosen = np.zeros((len(problem.site_names), len(problem.query_names)), dtype=np.int64)
        shared = interval.shared
        if len(shared.query):
            chosen[:, shared.query] = shared.sends[np.arange(len(answers)), answers].T
        chosen[:, interval.separate.query] = added
        return chosen
