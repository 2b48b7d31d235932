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
from planner_models.analytics.problem.regions import RegionTables
from planner_models.analytics.problem.reuse import find_refinements
from planner_models.analytics.problem.schema import OPTIONAL_TABLES, TABLES, WORST
from planner_models.analytics.problem.tables import QueryVolume

TIMELESS: Final = (
    "site_names", "pop_names", "link_names", "query_names", "pop_of", "cube_of", "is_sum", "value_usd",
    "_level_places", "level_names", "level_rows", "value_share", "is_none", "may_answer", "may_send",
    "refines", "join", "merged_share", "_stored", "source_of", "followed", "level_value_usd",
    "site_level_value_usd", "may_send_by_tables", "may_leave", "is_denied", "kept_s", "sent_per_record",
    "sent_per_cell",
)  # fmt: skip
"""Properties that depend neither on intervals nor on volumes nor on bandwidth.

Windows keep what ad hoc queries read (`_stored`), which may lie before them.
"""


def name_rows(names: Sequence[str], codes: Ints) -> pd.Categorical:
    """Return the names at places, (n,), as a column of categories."""
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(names), dtype="str"), validate=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Analytics(RegionTables):
    """Sites with data, queries with levels of detail, and uplinks, over intervals of time.

    The fields are the tables of `schema`; optional ones may be None. Below, K intervals, S sites, G points
    of presence, C cubes, Q queries and L levels of the query with most; arrays refer to rows of tables.

    raises   InputError with every fault
    """

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
        _ = self._stored, self.is_denied  # of all intervals, before some are left out
        other = object.__new__(Analytics)
        changed = {"intervals": intervals, "volume": volume, "bandwidth": bandwidth}
        for entry in fields(self):
            value = changed[entry.name] if entry.name in changed else getattr(self, entry.name)
            object.__setattr__(other, entry.name, value)
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

    # --- capacity and volume --------------------------------------------------------------

    @cached_property
    def is_asked(self) -> Bools:
        """(K, Q) whether a query has an answer in an interval: all but ad hoc ones in all of them."""
        return reuse.find_asked(self)

    @cached_property
    def _stored(self) -> tuple[Ints, Floats]:
        """Return the ad hoc queries, and the data that they read at each site."""
        return reuse.find_stored(self)

    def find_volume(self, k: int) -> tuple[Floats, Floats]:
        """Return the records and cells of each site for each query in interval k, (S, Q) each."""
        query, stored = self._stored
        volumes = [volume[k][:, self.cube_of] for volume in (self.records, self.cells)]
        for volume, read in zip(volumes, stored, strict=True):
            volume[:, query] = read * self.is_asked[k, query]
        return volumes[0], volumes[1]

    @cached_property
    def query_volume(self) -> QueryVolume:
        """Return the arrays from which compiled code reads the volume of queries."""
        query, stored = self._stored
        ad_hoc_of = np.full(len(self.query_names), -1, dtype=np.int64)
        ad_hoc_of[query] = np.arange(len(query))
        arrays = (self.records, self.cells, self.cube_of, ad_hoc_of, stored[0], stored[1], self.is_asked)
        return QueryVolume(*map(read_only, arrays))

    # --- levels ---------------------------------------------------------------------------

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
    def followed(self) -> Ints:
        """(Q, L) level that an answer of a query's source at each level gives; see `find_followed`."""
        return reuse.find_followed(self, self.source_of, self.refines)

    @cached_property
    def level_value_usd(self) -> Floats:
        """(Q, L) value of an answer, with those of queries that use its data; see `find_level_values`."""
        return reuse.find_level_values(self, self.source_of, self.followed)

    @cached_property
    def site_level_value_usd(self) -> Floats:
        """(S, Q, L) value that a site adds at each level, with those of queries that use its data, USD."""
        weight = self.sites["weight"].to_numpy(float)[:, None] * self.has_data
        share = weight / np.maximum(weight.sum(axis=0), 1e-300)
        finite = np.isfinite(self.level_value_usd)
        value = share[:, :, None] * np.where(finite, self.level_value_usd, 0.0)
        return np.asarray(np.where(finite, value, -np.inf))

    @cached_property
    def total_usd(self) -> float:
        """Value of all answers at full quality, USD."""
        taking_part = self.has_data.any(axis=0)
        return float((self.is_asked @ (self.value_usd * taking_part)).sum())
