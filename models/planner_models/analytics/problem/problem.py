"""Problem of system `analytics`: data at sites, queries over them, and the bandwidth of uplinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints, read_only
from planner.contract.notes import add_note
from planner.contract.tables import collect_tables, validate_fields
from planner.errors import InputError
from planner.io.in_memory import take_tables
from planner_models.analytics.problem import reuse, validation
from planner_models.analytics.problem.level_order import find_refinements
from planner_models.analytics.problem.query_volume import QueryVolume
from planner_models.analytics.problem.schema import MERGEABLE, NO_DATA, OPTIONAL_TABLES, SUM, TABLES, WORST

BYTES_PER_MBIT: Final = 1e6 / 8
TIMELESS: Final = (
    "site_names", "pop_names", "link_names", "query_names", "pop_of", "cube_of", "is_sum", "value_usd",
    "_level_places", "level_names", "level_rows", "value_share", "is_none", "may_answer", "may_send",
    "refines", "join", "merged_share", "_stored", "source_of", "followed", "level_value_usd",
    "site_level_value_usd",
)  # fmt: skip
"""Properties that depend neither on intervals nor on volumes nor on bandwidth.

Windows keep what ad hoc queries read (`_stored`), which may lie before them.
"""


def find_rows(names: Sequence[str], column: pd.Series) -> Ints:
    """Return the place of each value of a column among names, -1 for none; each value is looked up once."""
    index = pd.Index(list(names)) if len(names) else pd.Index([""])[:0]
    if isinstance(column.dtype, pd.CategoricalDtype):
        places = index.get_indexer(column.cat.categories.astype(str))
        return np.asarray(places[column.cat.codes.to_numpy()], dtype=np.int64)
    codes, unique = pd.factorize(column)  # -1 for a missing name: the last place
    places = np.append(index.get_indexer(pd.Index(unique).astype(str)), -1)
    return np.asarray(places[codes], dtype=np.int64)


def name_rows(names: Sequence[str], places: Ints) -> pd.Categorical:
    """Return the names at places, (n,), as a column of categories."""
    return pd.Categorical.from_codes(places, categories=pd.Index(list(names), dtype="str"), validate=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Analytics:
    """Sites with data, queries with levels of detail, and uplinks, over intervals of time.

    The fields are the tables of `schema`; optional ones may be None. Below, K intervals, S sites, G points
    of presence, C cubes, Q queries and L levels of the query with most; arrays refer to rows of tables.

    raises   InputError with every fault
    """

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

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults = list(validation.find_faults(self))
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Analytics:
        """Return the problem in its tables, with a note on intervals in which no site has data."""
        problem = cls(**take_tables(TABLES, tables, optional=OPTIONAL_TABLES))
        if (doubt := validation.describe_empty_intervals(problem)) is not None:
            add_note(doubt)
        return problem

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of sites, points of presence, queries and intervals."""
        return {
            "sites": len(self.sites),
            "points of presence": len(self.pops),
            "queries": len(self.queries),
            "intervals": len(self.intervals),
        }

    def in_other_times(
        self, *, intervals: pd.DataFrame, volume: pd.DataFrame, bandwidth: pd.DataFrame | None
    ) -> Analytics:
        """Return the problem with other intervals, volumes and bandwidth, which are not validated again."""
        _ = self._stored  # of all intervals, before some are left out
        other = object.__new__(Analytics)
        changed = {"intervals": intervals, "volume": volume, "bandwidth": bandwidth}
        for one in fields(self):
            value = changed[one.name] if one.name in changed else getattr(self, one.name)
            object.__setattr__(other, one.name, value)
        other.__dict__.update({name: self.__dict__[name] for name in TIMELESS if name in self.__dict__})
        return other

    def with_capacity(self, capacity_mbps: Floats, *, is_valid: bool = False) -> Analytics:
        """Return the problem with other capacities of links, (K, S + G), Mbit/s, as a table of bandwidth.

        is_valid  whether they are known to be valid, so that the tables are not validated again
        """
        numbers = self.interval_numbers
        frame = pd.DataFrame(
            {
                "link": pd.Categorical.from_codes(
                    np.repeat(np.arange(len(self.link_names)), len(numbers)),
                    categories=pd.Index(self.link_names),
                ),
                "interval": np.tile(numbers, len(self.link_names)),
                "mbps": capacity_mbps.T.ravel(),
            }
        )
        if is_valid:
            return self.in_other_times(intervals=self.intervals, volume=self.volume, bandwidth=frame)
        return replace(self, bandwidth=frame)

    def with_volume(self, **columns: Any) -> Analytics:
        """Return the problem with other columns of `volume`."""
        return replace(self, volume=self.volume.assign(**columns))

    # --- names and places -----------------------------------------------------------------

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

    # --- capacity and volume --------------------------------------------------------------

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

    @cached_property
    def is_asked(self) -> Bools:
        """(K, Q) whether a query has an answer in an interval: all but ad hoc ones in all of them."""
        return reuse.find_asked(self)

    @cached_property
    def _stored(self) -> tuple[Ints, Floats]:
        """Return the ad hoc queries, and what they read at each site."""
        return reuse.find_stored(self)

    def find_volume(self, k: int) -> tuple[Floats, Floats]:
        """Return the records and cells of each site for each query in interval k, (S, Q) each."""
        query, stored = self._stored
        found = [volume[k][:, self.cube_of] for volume in (self.records, self.cells)]
        for volume, read in zip(found, stored, strict=True):
            volume[:, query] = read * self.is_asked[k, query]
        return found[0], found[1]

    @cached_property
    def query_volume(self) -> QueryVolume:
        """Return what compiled code reads the volume of queries from."""
        query, stored = self._stored
        ad_hoc_of = np.full(len(self.query_names), -1, dtype=np.int64)
        ad_hoc_of[query] = np.arange(len(query))
        arrays = (self.records, self.cells, self.cube_of, ad_hoc_of, stored[0], stored[1], self.is_asked)
        return QueryVolume(*map(read_only, arrays))

    def find_queries(self, frame: pd.DataFrame) -> Ints:
        """Return the place of each row's query, -1 for none."""
        return find_rows(self.query_names, frame["query"])

    def find_intervals(self, frame: pd.DataFrame) -> Ints:
        """Return the place of each row's interval in time, -1 for none."""
        numbers = self.interval_numbers
        wanted = frame["interval"].to_numpy(float)
        place = np.clip(np.searchsorted(numbers, wanted), 0, len(numbers) - 1)
        return np.where(numbers[place] == wanted, place, -1).astype(np.int64)

    @cached_property
    def volume_places(self) -> tuple[Ints, Ints, Ints]:
        """Interval, site and cube of each row of `volume`."""
        cubes = self.cubes["cube"].astype(str).tolist()
        site = find_rows(self.site_names, self.volume["site"])
        return self.find_intervals(self.volume), site, find_rows(cubes, self.volume["cube"])

    def _fill(self, column: str) -> Floats:
        found = np.zeros((len(self.interval_numbers), len(self.sites), len(self.cubes)))
        found[self.volume_places] = self.volume[column].to_numpy(float)
        return found

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
        found = np.zeros((len(self.sites), len(self.cubes)), dtype=bool)
        _, site, cube = self.volume_places
        found[site, cube] = True
        return np.asarray(found[:, self.cube_of])

    @cached_property
    def site_value_usd(self) -> Floats:
        """(S, Q) value that each site adds at full quality, where values of sites add up, USD."""
        weight = self.sites["weight"].to_numpy(float)[:, None] * self.has_data
        return np.asarray(self.value_usd * weight / np.maximum(weight.sum(axis=0), 1e-300))

    # --- levels ---------------------------------------------------------------------------

    @cached_property
    def _level_places(self) -> tuple[Ints, Ints]:
        """Return the query and the place in it of each row of `levels`."""
        query = find_rows(self.query_names, self.levels["query"])
        place = self.levels.groupby(query, sort=False).cumcount().to_numpy(np.int64)
        return query, np.asarray(place, dtype=np.int64)

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
        most = max((len(names) for names in self.level_names), default=0)
        rows = np.full((len(self.query_names), most), -1, dtype=np.int64)
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
        most = self.queries["error_at_most"].to_numpy(float)[:, None]
        known = ~(self.level_column("error") > np.where(np.isnan(most), np.inf, most))
        return np.asarray((self.level_rows >= 0) & (known | self.is_none))

    @cached_property
    def may_send(self) -> Bools:
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
        places = {
            (row, name): place
            for row, names in enumerate(self.level_names)
            for place, name in enumerate(names)
        }
        code, unique = pd.factorize(level)  # -1 for a missing name: the last column
        table = np.full((len(self.query_names) + 1, len(unique) + 1), -1, dtype=np.int64)
        for column, name in enumerate(unique.astype(str).tolist()):
            for row in range(len(self.query_names)):
                table[row, column] = places.get((row, name), -1)
        return np.asarray(table[query, code])

    @cached_property
    def refines(self) -> Bools:
        """(Q, L, L) whether data of level l can make an answer of level z; see `find_refinements`."""
        return find_refinements(self)

    @cached_property
    def join(self) -> Ints:
        """(Q, L, L) level of an answer from data of two levels: the best that both can make; -1 for none.

        Where the worst error counts, that is the one of most value; otherwise the finest, the first listed.
        """
        both = self.refines[:, :, None, :] & self.refines[:, None, :, :]  # query, one, other, answer
        by_value = (self.queries["combine"].astype(str) == WORST).to_numpy()
        rank = np.where(by_value[:, None], 1.0 + self.value_share, 1.0)
        best = np.where(both, rank[:, None, None, :], 0.0).argmax(axis=3)
        return np.asarray(np.where(both.any(axis=3), best, -1), dtype=np.int64)

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
    def source_of(self) -> Ints:
        """(Q,) query whose data answers a query; -1 where it has data of its own."""
        return reuse.find_sources(self)

    @cached_property
    def followed(self) -> Ints:
        """(Q, L) level that an answer of a query's source at each level gives; see `find_followed`."""
        return reuse.find_followed(self)

    @cached_property
    def level_value_usd(self) -> Floats:
        """(Q, L) value of an answer, with those of queries that use its data; see `find_level_values`."""
        return reuse.find_level_values(self)

    @cached_property
    def site_level_value_usd(self) -> Floats:
        """(S, Q, L) value that a site adds at each level, with those of queries that use its data, USD."""
        weight = self.sites["weight"].to_numpy(float)[:, None] * self.has_data
        part = weight / np.maximum(weight.sum(axis=0), 1e-300)
        finite = np.isfinite(self.level_value_usd)
        value = part[:, :, None] * np.where(finite, self.level_value_usd, 0.0)
        return np.asarray(np.where(finite, value, -np.inf))

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
        found = np.full(len(self.query_names), otherwise)
        if self.backfill is not None and len(self.backfill):
            found[find_rows(self.query_names, self.backfill["query"])] = self.backfill[name].to_numpy(float)
        return found

    @cached_property
    def total_usd(self) -> float:
        """Value of all answers at full quality, USD."""
        taking_part = self.has_data.any(axis=0)
        return float((self.is_asked @ (self.value_usd * taking_part)).sum())
