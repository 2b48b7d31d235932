"""Rules of regions on levels of queries that may leave a region, and on times for which its sites keep data.

A rule holds for data of the sites of its region on the way to the datacenter: where the point of presence or
the datacenter is in another region. A point of presence merges cells but makes them no coarser, so that the
level that leaves a site is the level that crosses each border.

Age of data counts from the end of its interval, when its cells are complete. Data that is sent in a later
interval, and stored data that a query reads, is needed until the end of the interval in which it is sent.

source  "Making Every Bit Count in Wide-Area Analytics" (Rabkin et al. 2013), section 3 (local domains)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models.analytics.problem.filters import find_sent_bytes
from planner_models.analytics.problem.reuse import find_sources, find_stored_intervals
from planner_models.analytics.problem.tables import QueryTables

HOUR_S: Final = 3600.0
EXACT_S: Final = 1e-6
"""Seconds up to which times are the same."""


class Scope(NamedTuple):
    """A row of `laws`, with the sites (S,) and queries (Q,) that it is about, and the level allowed.

    finest  name of the finest level that may leave; empty: nothing may
    """

    row: int
    sites: Bools
    queries: Bools
    finest: str


class Expired(NamedTuple):
    """A row of `ad_hoc`, and its query, that needs data of a site that is erased before it is asked."""

    row: int
    query: int
    site: int


def list_regions(frame: pd.DataFrame) -> list[str]:
    """Return the region of each row of `sites`, `pops` or `central`; empty without one."""
    return frame["region"].astype(str).tolist() if "region" in frame else [""] * len(frame)


def list_scopes(problem: QueryTables, *, to_pop: bool = False) -> Iterator[Scope]:
    """Yield the rules on levels that may leave a region, with the sites and queries of each rule.

    Queries that use the data of another one are about no data of their own.

    to_pop  whether data only goes as far as the point of presence, not to the datacenter
    """
    rules = problem.laws
    if rules is None or not len(rules):
        return
    of_sites, pops = list_regions(problem.sites), list_regions(problem.pops)
    center = list_regions(problem.central)[0] if problem.central is not None else ""
    derived = set(problem.shares["query"].astype(str)) if problem.shares is not None else set()
    cube_of = problem.queries["cube"].astype(str).tolist()
    for row, rule in enumerate(rules.itertuples()):
        sites = np.zeros(len(of_sites), dtype=bool)
        for site, (region, pop) in enumerate(zip(of_sites, problem.pop_of.tolist(), strict=True)):
            passed = {pops[pop] or region, region if to_pop else center} - {region}
            sites[site] = region == rule.region and (rule.to in passed if rule.to else bool(passed))
        queries = [
            name not in derived and rule.cube in ("", cube) and rule.query in ("", name)
            for name, cube in zip(problem.query_names, cube_of, strict=True)
        ]
        yield Scope(row, sites, np.array(queries, dtype=bool), str(rule.finest))


def find_leaving(problem: QueryTables, *, to_pop: bool = False) -> Bools:
    """Return whether rules let each level of a query leave a site, (S, Q, L); no data always may.

    to_pop  whether it only goes as far as the point of presence
    """
    may = np.ones((len(problem.sites), *problem.level_rows.shape), dtype=bool)
    for scope in list_scopes(problem, to_pop=to_pop):
        for query in np.flatnonzero(scope.queries).tolist():
            names = problem.level_names[query]
            first = names.index(scope.finest) if scope.finest in names else len(names)
            allowed = (np.arange(may.shape[2]) >= first) | problem.is_none[query]
            may[scope.sites, query] &= allowed
    return may


def find_hours(problem: QueryTables, column: str) -> tuple[Floats, Floats]:
    """Return hours of table `retention` by site and cube, and the row that they are of, (S, C) each.

    NaN, and -1, where the table has none. The strictest row counts: fewest hours at most, most at least.
    """
    cubes = problem.cubes["cube"].astype(str).tolist()
    hours = np.full((len(problem.sites), len(cubes)), np.nan)
    row_of = np.full(hours.shape, -1.0)
    frame = problem.retention
    if frame is None or column not in frame:
        return hours, row_of
    regions = np.array(list_regions(problem.sites), dtype=object)
    is_stricter = np.less if column == "at_most_h" else np.greater
    names = zip(frame["region"].astype(str), frame["cube"].astype(str), strict=True)
    for row, ((region, cube), value) in enumerate(zip(names, frame[column].to_numpy(float), strict=True)):
        if np.isnan(value):
            continue
        is_of = (regions == region)[:, None] & np.array([cube in ("", name) for name in cubes])
        changes = is_of & (np.isnan(hours) | is_stricter(value, hours))
        hours[changes], row_of[changes] = value, row
    return hours, row_of


def find_kept_s(problem: QueryTables) -> Floats:
    """Return the age up to which each site keeps data of each cube, (S, C), s; inf for any."""
    hours, _ = find_hours(problem, "at_most_h")
    return np.where(np.isnan(hours), np.inf, hours * HOUR_S)


def find_required_bytes(problem: QueryTables) -> Floats:
    """Return the bytes that each site must store at the end of each interval by table `retention`, (K, S)."""
    hours, _ = find_hours(problem, "at_least_h")
    required = np.zeros((len(problem.interval_numbers), len(problem.sites)))
    if np.isnan(hours).all():
        return required
    per_record, per_cell = (
        problem.cubes[name].to_numpy(float) if name in problem.cubes else np.zeros(len(problem.cubes))
        for name in ("stored_bytes_per_record", "stored_bytes_per_cell")
    )
    size = problem.records * per_record + problem.cells * per_cell  # K, S, C
    ends = problem.start_s + problem.length_s
    least_s = np.where(np.isnan(hours), 0.0, hours * HOUR_S)
    for k, end in enumerate(ends.tolist()):
        is_kept = ends[k:, None, None] - end < least_s - EXACT_S
        required[k:] += (size[k] * is_kept).sum(axis=2)
    return required


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionTables(QueryTables):
    """Tables of a problem of `analytics`, with the levels and data that the rules of its regions allow."""

    @cached_property
    def sent_per_record(self) -> Floats:
        """(S, Q, L) bytes that a site sends for each record that it has; filters drop some of these."""
        return find_sent_bytes(self, "bytes_per_record", "record_share")

    @cached_property
    def sent_per_cell(self) -> Floats:
        """(S, Q, L) bytes that a site sends for each cell that it has; filters drop some of these."""
        return find_sent_bytes(self, "bytes_per_cell", "cell_share")

    @cached_property
    def may_leave(self) -> Bools:
        """(S, Q, L) whether rules of regions let a level of a query leave a site."""
        return find_leaving(self)

    @cached_property
    def may_send(self) -> Bools:
        """(S, Q, L) whether a site may send a level: by `may_send_by_tables`, and by rules of regions."""
        return np.asarray(self.may_send_by_tables & self.may_leave)

    @cached_property
    def source_of(self) -> Ints:
        """(Q,) query with the data that answers a query; -1 for its own data."""
        return find_sources(self)

    @cached_property
    def is_denied(self) -> Bools:
        """(S, Q) whether rules of regions leave no answer of a query at a site; see `find_denied`."""
        return find_denied(self)

    @cached_property
    def silent_level(self) -> Ints:
        """(S, Q) level of a site that sends no data of a query: that of operator none, or -1 without one."""
        may_be_none = (self.may_send & self.is_none).any(axis=2)
        return np.where(may_be_none, self.is_none.argmax(axis=1), -1).astype(np.int64)

    @cached_property
    def kept_s(self) -> Floats:
        """(S, Q) age up to which a site keeps the data of a query, s; inf where there is no limit."""
        return find_kept_s(self)[:, self.cube_of]

    @cached_property
    def free_storage_bytes(self) -> Floats:
        """(K, S) storage beside the data that table `retention` says to keep; inf where there is no limit."""
        return np.asarray(self.storage_bytes - find_required_bytes(self))

    def may_send_later(self, k: int, t: int) -> Bools:
        """Return whether a site may send data of a query of interval k in interval t, (S, Q).

        By the window of table `backfill`, and as long as the site keeps the data.
        """
        ends = self.start_s + self.length_s
        is_open = self.start_s[t] - self.start_s[k] <= self.backfill_window_s + EXACT_S
        return np.asarray(is_open & (ends[t] - ends[k] <= self.kept_s + EXACT_S))


def find_expired(problem: RegionTables) -> list[Expired]:
    """Return the queries asked once that read data of a site which it has erased by then."""
    frame = problem.ad_hoc
    if frame is None or not len(frame) or problem.retention is None:
        return []
    query, is_read, last = find_stored_intervals(problem)
    ends = problem.start_s + problem.length_s
    kept_s = find_kept_s(problem)
    expired = []
    for row, (number, k) in enumerate(zip(query.tolist(), last.tolist(), strict=True)):
        if k < 0:
            continue
        cube = problem.cube_of[number]
        has = (problem.records[:, :, cube] > 0) | (problem.cells[:, :, cube] > 0)
        is_late = (ends[k] - ends)[:, None] > kept_s[:, cube] + EXACT_S
        sites = np.flatnonzero((is_read[row][:, None] & has & is_late).any(axis=0))
        expired += [Expired(row, number, site) for site in sites.tolist()]
    return expired


def find_denied(problem: RegionTables) -> Bools:
    """Return the answers that rules of regions deny: of each query at each site with its data, (S, Q).

    A site that may send no level of a query, though it could without rules, or that has erased what the query
    reads, makes an answer that all sites share impossible for all of them.
    """
    denied = np.zeros(problem.has_data.shape, dtype=bool)
    if problem.laws is None and problem.retention is None:
        return denied
    sends = problem.may_send_by_tables & ~problem.is_none
    denied = problem.has_data & sends.any(axis=2) & ~(sends & problem.may_leave).any(axis=2)
    for expired in find_expired(problem):
        denied[expired.site, expired.query] |= problem.has_data[expired.site, expired.query]
    shared = np.flatnonzero(~problem.is_sum & denied.any(axis=0))
    denied[:, shared] = problem.has_data[:, shared]
    for query in np.flatnonzero(problem.source_of >= 0).tolist():
        denied[:, query] |= denied[:, problem.source_of[query]] & problem.has_data[:, query]
    return denied
