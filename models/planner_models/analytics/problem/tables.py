"""Tables of sites, queries and levels as arrays, with look-ups of their rows; the problem checks them.

Records and cells that queries read: of their cube in an interval, or of stored data where ad hoc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner_models.analytics.problem.schema import MERGEABLE, NO_DATA, SUM

BYTES_PER_MBIT: Final = 1e6 / 8


def find_rows(names: Sequence[str], column: pd.Series) -> Ints:
    """Return the place of each value of a column among names, -1 for none; each value is looked up once."""
    index = pd.Index(list(names)) if len(names) else pd.Index([""])[:0]
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes_of_names = index.get_indexer(column.cat.categories.astype(str))
        return np.asarray(codes_of_names[column.cat.codes.to_numpy()], dtype=np.int64)
    codes, unique = pd.factorize(column)  # -1 for a missing name: the last place
    codes_of_names = np.append(index.get_indexer(pd.Index(unique).astype(str)), -1)
    return np.asarray(codes_of_names[codes], dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryTables:
    """Tables of a problem of `analytics`, see `Analytics`, with their rows as arrays."""

    sites: pd.DataFrame
    pops: pd.DataFrame
    intervals: pd.DataFrame
    cubes: pd.DataFrame
    volume: pd.DataFrame
    queries: pd.DataFrame
    levels: pd.DataFrame
    bandwidth: pd.DataFrame | None = None
    merging: pd.DataFrame | None = None
    policies: pd.DataFrame | None = None
    backfill: pd.DataFrame | None = None
    ad_hoc: pd.DataFrame | None = None
    shares: pd.DataFrame | None = None
    pinned: pd.DataFrame | None = None
    forbidden: pd.DataFrame | None = None
    central: pd.DataFrame | None = None
    laws: pd.DataFrame | None = None
    retention: pd.DataFrame | None = None
    passing: pd.DataFrame | None = None
    stores: pd.DataFrame | None = None
    archives: pd.DataFrame | None = None

    @cached_property
    def site_names(self) -> list[str]:
        """(S,) names of the sites."""
        return self.sites["site"].astype(str).tolist()

    @cached_property
    def pop_names(self) -> list[str]:
        """(G,) names of the points of presence."""
        return self.pops["pop"].astype(str).tolist()

    @cached_property
    def link_names(self) -> list[str]:
        """(S + G,) names of the uplinks: those of sites, then those of points of presence."""
        return [*self.site_names, *self.pop_names]

    @cached_property
    def query_names(self) -> list[str]:
        """(Q,) names of the queries."""
        return self.queries["query"].astype(str).tolist()

    @cached_property
    def interval_numbers(self) -> Floats:
        """(K,) numbers of the intervals, in the order of time."""
        return np.sort(self.intervals["interval"].to_numpy(float))

    @cached_property
    def _in_time(self) -> pd.DataFrame:
        return self.intervals.sort_values("interval", kind="stable")

    @cached_property
    def length_s(self) -> Floats:
        """(K,) length of each interval, s."""
        return self._in_time["length_s"].to_numpy(float)

    @cached_property
    def start_s(self) -> Floats:
        """(K,) start of each interval, s."""
        return self._in_time["start_s"].to_numpy(float)

    @cached_property
    def pop_of(self) -> Ints:
        """(S,) point of presence of each site."""
        return find_rows(self.pop_names, self.sites["pop"])

    @cached_property
    def cube_of(self) -> Ints:
        """(Q,) cube of each query."""
        return find_rows(self.cubes["cube"].astype(str).tolist(), self.queries["cube"])

    @cached_property
    def is_sum(self) -> Bools:
        """(Q,) whether sites add values of their own."""
        return np.asarray(self.queries["combine"].astype(str) == SUM)

    @cached_property
    def value_usd(self) -> Floats:
        """(Q,) value of an answer at full quality, USD."""
        return self.queries["value_usd"].to_numpy(float)

    @cached_property
    def capacity_mbps(self) -> Floats:
        """(K, S + G) capacity of each uplink in each interval, Mbit/s."""
        constant = [frame["uplink_mbps"].to_numpy(float) for frame in (self.sites, self.pops)]
        capacity = np.tile(np.concatenate(constant), (len(self.interval_numbers), 1))
        if self.bandwidth is not None and len(self.bandwidth):
            link = find_rows(self.link_names, self.bandwidth["link"])
            capacity[self.find_intervals(self.bandwidth), link] = self.bandwidth["mbps"].to_numpy(float)
        return capacity

    @cached_property
    def capacity_bytes(self) -> Floats:
        """(K, S + G) bytes that each uplink carries in each interval."""
        return self.capacity_mbps * self.length_s[:, None] * BYTES_PER_MBIT

    def find_queries(self, frame: pd.DataFrame) -> Ints:
        """Return the place of each row's query, -1 for none."""
        return find_rows(self.query_names, frame["query"])

    def find_intervals(self, frame: pd.DataFrame) -> Ints:
        """Return the place of each row's interval in time, -1 for none."""
        numbers = self.interval_numbers
        numbers_read = frame["interval"].to_numpy(float)
        row = np.clip(np.searchsorted(numbers, numbers_read), 0, len(numbers) - 1)
        return np.where(numbers[row] == numbers_read, row, -1).astype(np.int64)

    @cached_property
    def volume_places(self) -> tuple[Ints, Ints, Ints]:
        """Interval, site and cube of each row of `volume`."""
        cubes = self.cubes["cube"].astype(str).tolist()
        site = find_rows(self.site_names, self.volume["site"])
        return self.find_intervals(self.volume), site, find_rows(cubes, self.volume["cube"])

    def _fill(self, column: str) -> Floats:
        filled = np.zeros((len(self.interval_numbers), len(self.sites), len(self.cubes)))
        filled[self.volume_places] = self.volume[column].to_numpy(float)
        return filled

    @cached_property
    def records(self) -> Floats:
        """(K, S, C) records of each interval, site and cube."""
        return self._fill("records")

    @cached_property
    def cells(self) -> Floats:
        """(K, S, C) cells with a record."""
        return self._fill("cells")

    @cached_property
    def has_data(self) -> Bools:
        """(S, Q) whether a site has data of a query's cube in some interval, and so takes part in answers."""
        mask = np.zeros((len(self.sites), len(self.cubes)), dtype=bool)
        _, site, cube = self.volume_places
        mask[site, cube] = True
        return np.asarray(mask[:, self.cube_of])

    @cached_property
    def site_value_usd(self) -> Floats:
        """(S, Q) value that each site adds at full quality, where values of sites add up, USD."""
        weight = self.sites["weight"].to_numpy(float)[:, None] * self.has_data
        return np.asarray(self.value_usd * weight / np.maximum(weight.sum(axis=0), 1e-300))

    @cached_property
    def _level_places(self) -> tuple[Ints, Ints]:
        """Return the query and the place in it of each row of `levels`."""
        query = find_rows(self.query_names, self.levels["query"])
        level = self.levels.groupby(query, sort=False).cumcount().to_numpy(np.int64)
        return query, np.asarray(level, dtype=np.int64)

    @cached_property
    def level_names(self) -> list[list[str]]:
        """(Q,) names of the levels of each query, the finest first."""
        names: list[list[str]] = [[] for _ in self.query_names]
        for query, name in zip(self._level_places[0].tolist(), self.levels["level"].astype(str), strict=True):
            names[query].append(name)
        return names

    @cached_property
    def level_rows(self) -> Ints:
        """(Q, L) row of `levels` of each level of each query; -1 for none."""
        longest = max((len(names) for names in self.level_names), default=0)
        rows = np.full((len(self.query_names), longest), -1, dtype=np.int64)
        rows[self._level_places] = np.arange(len(self.levels))
        return rows

    def level_column(self, name: str) -> Floats:
        """Return a column of numbers of `levels` by query and level, (Q, L); 0 where there is no level.

        A column that the table does not have is NaN.
        """
        values = (
            self.levels[name].to_numpy(float) if name in self.levels else np.full(len(self.levels), np.nan)
        )
        return np.asarray(np.where(self.level_rows >= 0, values[self.level_rows], 0.0))

    @cached_property
    def value_share(self) -> Floats:
        """(Q, L) part of the value of each level."""
        return self.level_column("value_share")

    @cached_property
    def is_none(self) -> Bools:
        """(Q, L) whether no data is sent at a level."""
        operator = (self.levels["operator"].astype(str) == NO_DATA).to_numpy()
        return np.asarray((self.level_rows >= 0) & operator[self.level_rows])

    @cached_property
    def may_answer(self) -> Bools:
        """(Q, L) whether there is a level whose error is allowed."""
        if "error_at_most" not in self.queries:
            return np.asarray(self.level_rows >= 0)
        error_limit = self.queries["error_at_most"].to_numpy(float)[:, None]
        is_accurate = ~(self.level_column("error") > np.where(np.isnan(error_limit), np.inf, error_limit))
        return np.asarray((self.level_rows >= 0) & (is_accurate | self.is_none))

    @cached_property
    def may_send_by_tables(self) -> Bools:
        """(S, Q, L) whether a site may send a level: by its error, and by tables `pinned` and `forbidden`."""
        may = np.repeat(self.may_answer[None], len(self.sites), axis=0)
        for table in (self.forbidden, self.pinned):
            if table is None or not len(table):
                continue
            site, query, level = self.find_levels(table)
            if table is self.pinned:
                only = np.zeros_like(may)
                only[site, query, level] = True
                may[site, query] &= only[site, query]
            else:
                may[site, query, level] = False
        return may

    def find_levels(self, frame: pd.DataFrame) -> tuple[Ints, Ints, Ints]:
        """Return the site, query and level that each row names; -1 for a name that there is none of."""
        site = find_rows(self.site_names, frame["site"]) if "site" in frame else np.zeros(len(frame), int)
        query = find_rows(self.query_names, frame["query"])
        return site, query, self.find_level_names(query, frame["level"])

    def find_level_names(self, query: Ints, level: pd.Series) -> Ints:
        """Return the place of each named level among those of a query, -1 for none."""
        column_of = {
            (row, name): column
            for row, names in enumerate(self.level_names)
            for column, name in enumerate(names)
        }
        code, unique = pd.factorize(level)  # -1 for a missing name: the last column
        table = np.full((len(self.query_names) + 1, len(unique) + 1), -1, dtype=np.int64)
        for column, name in enumerate(unique.astype(str).tolist()):
            for row in range(len(self.query_names)):
                table[row, column] = column_of.get((row, name), -1)
        return np.asarray(table[query, code])

    @cached_property
    def merged_share(self) -> Floats:
        """(G, Q, L) bytes on the uplink of a point of presence over those that its sites send; at most 1.

        A point of presence merges where that saves; otherwise it forwards what sites send.
        """
        share = np.ones((len(self.pops), *self.level_rows.shape))
        if self.merging is not None and len(self.merging):
            pop = find_rows(self.pop_names, self.merging["pop"])
            _, query, level = self.find_levels(self.merging)
            share[pop, query, level] = np.minimum(self.merging["merged_share"].to_numpy(float), 1.0)
        merges = (self.pops["merges"].astype(str) == "yes").to_numpy()
        mergeable = self.cubes["aggregate"].astype(str).isin(MERGEABLE).to_numpy()[self.cube_of]
        return np.where(merges[:, None, None] & mergeable[None, :, None], share, 1.0)

    @cached_property
    def storage_bytes(self) -> Floats:
        """(S,) bytes that each site can keep to send later; inf where there is no limit."""
        if "storage_gb" not in self.sites:
            return np.full(len(self.sites), np.inf)
        storage = self.sites["storage_gb"].to_numpy(float) * 1e9
        return np.where(np.isnan(storage), np.inf, storage)

    @cached_property
    def backfill_window_s(self) -> Floats:
        """(Q,) time after an interval in which its data may be sent to improve its answer, s; 0: none."""
        return self._backfill_column("window_s", 0.0)

    @cached_property
    def half_life_s(self) -> Floats:
        """(Q,) time in which the value of an improvement halves, s."""
        return self._backfill_column("half_life_s", 1.0)

    def _backfill_column(self, name: str, otherwise: float) -> Floats:
        values = np.full(len(self.query_names), otherwise)
        if self.backfill is not None and len(self.backfill):
            values[find_rows(self.query_names, self.backfill["query"])] = self.backfill[name].to_numpy(float)
        return values


class QueryVolume(NamedTuple):
    """Arrays from which compiled code reads the volume of each interval, site and query.

    records, cells                (K, S, C) of each cube
    cube_of                       (Q,) cube of each query
    ad_hoc_of                     (Q,) place among the ad hoc queries; -1 for others
    stored_records, stored_cells  (S, A) that each ad hoc query reads
    is_asked                      (K, Q) whether a query has an answer
    """

    records: Floats
    cells: Floats
    cube_of: Ints
    ad_hoc_of: Ints
    stored_records: Floats
    stored_cells: Floats
    is_asked: Bools


@run_small_in_python(max_elements=1_000)
@kernel
def read_volume(volume: QueryVolume, k: int, site: int, query: int) -> tuple[float, float]:
    """Return the records and the cells that a query reads at a site in interval k."""
    column = volume.ad_hoc_of[query]
    if column < 0:
        cube = volume.cube_of[query]
        return volume.records[k, site, cube], volume.cells[k, site, cube]
    if not volume.is_asked[k, query]:
        return 0.0, 0.0
    return volume.stored_records[site, column], volume.stored_cells[site, column]
