"""Storage of data for later queries: at its site, at the point of presence, or in the datacenter.

Data of a query and site is generated at the mean rate of the intervals, and stored for some days, in one of
the three places. New data is copied over each uplink up to its place; what later queries read goes over each
uplink from there to the datacenter, at the level at which they read it. Both use rates that are set aside for
them, beside those of standing queries.

source  "Making Every Bit Count in Wide-Area Analytics" (Rabkin et al. 2013), sections 1 (store data near the
        edge) and 5 (the site, the nearest point of presence, or a centralized datacenter)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.analytics.problem.regions import HOUR_S, RegionTables, find_hours, find_leaving
from planner_models.analytics.problem.tables import BYTES_PER_MBIT, find_rows

MONTH_S: Final = 30 * 24 * 3600.0
SITE, POP, CENTRAL = "site", "pop", "datacenter"
PLACES: Final = (SITE, POP, CENTRAL)
GB_PER_MONTH: Final = BYTES_PER_MBIT * MONTH_S / 1e9
"""Gigabytes that one Mbit/s carries in a month."""


class Archived(NamedTuple):
    """Data of sites that is to be stored: n pairs of a site and a query, in three places.

    site, query  (n,) of each
    gb           (n,) stored after all days
    value_usd    (n,) of a month
    copy_mbps    (n,) rate at which new data is copied
    read_mbps    (n,) mean rate at which stored data is read
    store        (n, 3) row of the place among sites, points of presence and the datacenter
    link_mbps    (n, 3, 2) rate on the uplink of the site, and on that of its point of presence
    usd          (n, 3) price of storing, copying and reading for a month
    is_allowed   (n, 3) whether rules of regions allow the place
    """

    site: Ints
    query: Ints
    gb: Floats
    value_usd: Floats
    copy_mbps: Floats
    read_mbps: Floats
    store: Ints
    link_mbps: Floats
    usd: Floats
    is_allowed: Bools


class Stores(NamedTuple):
    """Places of storage: sites, points of presence and the datacenter, (S + G + 1,), and uplinks, (S + G,).

    usd          of a gigabyte for a month
    capacity_gb  inf where there is no limit, 0 without a row
    link_mbps    rate that is set aside; inf where there is no limit, 0 without a row
    """

    usd: Floats
    capacity_gb: Floats
    link_mbps: Floats


def list_stores(problem: RegionTables) -> list[str]:
    """Return the names of the places of storage; the datacenter is empty."""
    return [*problem.link_names, ""]


def read_stores(problem: RegionTables) -> Stores:
    """Return prices and capacities of the places of storage."""
    names = list_stores(problem)
    usd, capacity_gb, link_mbps = np.zeros((3, len(names)))
    frame = problem.stores
    if frame is not None and len(frame):
        row = find_rows(names, frame["place"])
        usd[row] = frame["usd_per_gb_month"].to_numpy(float)
        for name, values in (("capacity_gb", capacity_gb), ("link_mbps", link_mbps)):
            column = frame[name].to_numpy(float) if name in frame else np.full(len(frame), np.nan)
            values[row] = np.where(np.isnan(column), np.inf, column)
    return Stores(usd, capacity_gb, link_mbps[:-1])


def read_archives(problem: RegionTables) -> Archived:
    """Return the data that is to be stored, with what each place would need."""
    frame = problem.archives
    no_query = np.zeros(0, dtype=np.int64)
    query_of = no_query if frame is None or not len(frame) else problem.find_queries(frame)
    row, site = np.nonzero(problem.has_data[:, query_of].T)
    query, cube = query_of[row], problem.cube_of[query_of[row]]
    column = {
        name: np.zeros(len(row)) if frame is None else frame[name].to_numpy(float)[row]
        for name in ("keep_days", "bytes_per_record", "bytes_per_cell", "reads_per_month", "value_usd")
    }
    level = (
        np.zeros(0, np.int64)
        if frame is None
        else problem.find_level_names(query_of, frame["read_level"])[row]
    )
    seconds = float(problem.length_s.sum())
    records, cells = problem.records.sum(axis=0)[site, cube], problem.cells.sum(axis=0)[site, cube]
    generated = (records * column["bytes_per_record"] + cells * column["bytes_per_cell"]) / seconds
    selected = site, query, level
    read = (records * problem.sent_per_record[selected] + cells * problem.sent_per_cell[selected]) / seconds
    keep_s = column["keep_days"] * 24 * HOUR_S
    gb = generated * keep_s / 1e9
    copy_mbps = generated / BYTES_PER_MBIT
    read_mbps = read * keep_s * column["reads_per_month"] / MONTH_S / BYTES_PER_MBIT
    together = np.zeros(len(problem.query_names))
    np.add.at(together, query, records)
    share = np.divide(records, together[query], out=np.zeros_like(records), where=together[query] > 0)
    pop = len(problem.site_names) + problem.pop_of[site]
    store = np.column_stack([site, pop, np.full(len(site), len(problem.link_names))]).astype(np.int64)
    link_mbps = np.empty((len(site), 3, 2))
    link_mbps[:, :, 0] = np.column_stack([read_mbps, copy_mbps, copy_mbps])
    link_mbps[:, :, 1] = np.column_stack([read_mbps, read_mbps, copy_mbps])
    stores = read_stores(problem)
    usd_per_gb = np.concatenate(
        [table["usd_per_gb"].to_numpy(float) for table in (problem.sites, problem.pops)]
    )
    carried = GB_PER_MONTH * (link_mbps * usd_per_gb[np.column_stack([site, pop])][:, None, :]).sum(axis=2)
    return Archived(
        site=site.astype(np.int64),
        query=query,
        gb=gb,
        value_usd=column["value_usd"] * share,
        copy_mbps=copy_mbps,
        read_mbps=read_mbps,
        store=store,
        link_mbps=link_mbps,
        usd=gb[:, None] * stores.usd[store] + carried,
        is_allowed=_find_allowed(problem, site, query, level, column["reads_per_month"] > 0, keep_s),
    )


def _find_allowed(
    problem: RegionTables, site: Ints, query: Ints, level: Ints, is_read: Bools, keep_s: Floats
) -> Bools:
    """Return whether rules of regions allow data to be stored at each place and read from it, (n, 3).

    A copy has the detail of the first level. A rule on how long data of a region is kept holds at all places.
    """
    leaves, reaches_pop = problem.may_leave, find_leaving(problem, to_pop=True)
    may_be_read = leaves[site, query, level] | ~is_read
    hours, _ = find_hours(problem, "at_most_h")
    limit_s = hours[site, problem.cube_of[query]] * HOUR_S
    may_be_kept = ~(keep_s > limit_s * (1 + 1e-9)) & may_be_read  # no limit is NaN
    return np.column_stack(
        [may_be_kept, may_be_kept & reaches_pop[site, query, 0], may_be_kept & leaves[site, query, 0]]
    )
