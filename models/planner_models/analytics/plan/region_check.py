"""Check of rules of regions, row by row from their tables: data that leaves a region, or is kept too long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner_models.analytics.plan.plan import Late
from planner_models.analytics.problem.problem import Analytics

HOUR_S = 3600.0


class Retained(NamedTuple):
    """Data that is needed at a site when it must have been erased.

    interval  place of the interval of the data
    age_h     age at which it is needed, and the one that is allowed, hours
    """

    interval: int
    site: int
    query: int
    age_h: float
    allowed_h: float


def list_region(frame: pd.DataFrame, row: int) -> str:
    """Return the region of a row of a table, empty for none."""
    return str(frame["region"].iloc[row]) if "region" in frame else ""


def find_ruled_out(problem: Analytics) -> Bools:
    """Return the levels that no rule of a region lets leave a site, (S, Q, L)."""
    shape = (len(problem.sites), *problem.level_rows.shape)
    ruled_out = np.zeros(shape, dtype=bool)
    if problem.laws is None:
        return ruled_out
    derived = set() if problem.shares is None else set(problem.shares["query"].astype(str))
    center = "" if problem.central is None else list_region(problem.central, 0)
    for rule in problem.laws.to_dict("records"):
        for site, pop in enumerate(problem.pop_of.tolist()):
            region = list_region(problem.sites, site)
            way = [list_region(problem.pops, pop) or region, center]
            reached = [visited for visited in way if visited != region]
            if region != rule["region"] or not reached or (rule["to"] and rule["to"] not in reached):
                continue
            for query, entry in enumerate(problem.queries.to_dict("records")):
                is_of = rule["query"] in ("", entry["query"]) and rule["cube"] in ("", entry["cube"])
                if is_of and str(entry["query"]) not in derived:
                    rule_out(problem, ruled_out[site, query], str(entry["query"]), str(rule["finest"]))
    return ruled_out


def rule_out(problem: Analytics, ruled_out: Bools, query: str, finest: str) -> None:
    """Mark the levels of a query, (L,), listed before the finest one that a rule allows; all without one."""
    rows = problem.levels[problem.levels["query"].astype(str) == query]
    for level, (name, operator) in enumerate(zip(rows["level"].astype(str), rows["operator"], strict=True)):
        if finest and name == finest:
            return
        ruled_out[level] |= str(operator) != "none"


def find_retained(problem: Analytics, levels: Ints, late: Late) -> list[Retained]:
    """Return the data that is sent later, or read by queries asked once, after it must have been erased."""
    if problem.retention is None or "at_most_h" not in problem.retention:
        return []
    ends = problem.start_s + problem.length_s
    retained = []
    needed = [*list_late(late), *list_read(problem, levels)]
    for interval, when, site, query in needed:
        age_h = float(ends[when] - ends[interval]) / HOUR_S
        allowed_h = find_allowed_hours(problem, site, query)
        if age_h > allowed_h * (1 + 1e-9) + 1e-9:
            retained.append(Retained(interval, site, query, age_h, allowed_h))
    return retained


def list_late(late: Late) -> Iterator[tuple[int, int, int, int]]:
    """Yield interval, interval in which it is sent, site and query of data that is sent later."""
    columns = (late.interval, late.sent, late.site, late.query)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def list_read(problem: Analytics, levels: Ints) -> Iterator[tuple[int, int, int, int]]:
    """Yield interval, interval in which it is asked, site and query of stored data that a site sends."""
    if problem.ad_hoc is None:
        return
    numbers = problem.interval_numbers.tolist()
    volume = problem.volume[(problem.volume["records"] > 0) | (problem.volume["cells"] > 0)]
    cube_of = dict(zip(problem.query_names, problem.queries["cube"].astype(str), strict=True))
    for row in problem.ad_hoc.to_dict("records"):
        if row["interval"] not in numbers:
            continue
        when, name = numbers.index(row["interval"]), str(row["query"])
        query, since = problem.query_names.index(name), row.get("since", np.nan)
        since = row["interval"] if np.isnan(since) else since
        read = volume[
            (volume["cube"].astype(str) == cube_of[name]) & volume["interval"].between(since, row["interval"])
        ]
        oldest = read.groupby(read["site"].astype(str))["interval"].min()
        for site, first in oldest.items():
            site_row = problem.site_names.index(str(site))
            level = int(levels[when, site_row, query])
            if level >= 0 and not problem.is_none[query, level]:
                yield numbers.index(first), when, site_row, query


def find_allowed_hours(problem: Analytics, site: int, query: int) -> float:
    """Return the hours for which a site may keep the data of a query; inf where no rule says."""
    frame = problem.retention
    assert frame is not None
    cube, region = str(problem.queries["cube"].iloc[query]), list_region(problem.sites, site)
    is_of = (frame["region"].astype(str) == region) & frame["cube"].astype(str).isin(["", cube])
    hours = frame.loc[is_of, "at_most_h"].to_numpy(float)
    hours = hours[~np.isnan(hours)]
    return float(hours.min()) if len(hours) else np.inf


def find_required_gb(problem: Analytics) -> Floats:
    """Return the data that each site must store at the end of each interval by its rules, (K, S), GB."""
    ends = problem.start_s + problem.length_s
    stored = np.zeros((len(ends), len(problem.sites)))
    frame = problem.retention
    if frame is None or "at_least_h" not in frame:
        return stored
    columns = [columns.tolist() for columns in problem.volume_places]
    amounts = zip(*columns, problem.volume["records"], problem.volume["cells"], strict=True)
    for k, site, cube, records, cells in amounts:
        entry = problem.cubes.iloc[cube].to_dict()
        is_of = (frame["region"].astype(str) == list_region(problem.sites, site)) & (
            frame["cube"].astype(str).isin(["", str(entry["cube"])])
        )
        hours = np.nan_to_num(frame.loc[is_of, "at_least_h"].to_numpy(float)).max(initial=0.0)
        size = records * entry.get("stored_bytes_per_record", 0.0) + cells * entry.get(
            "stored_bytes_per_cell", 0.0
        )
        age_h = (ends - ends[k]) / HOUR_S
        stored[(age_h >= 0) & (age_h < hours - 1e-9), site] += size / 1e9
    return stored
