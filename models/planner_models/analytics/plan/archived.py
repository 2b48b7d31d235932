"""Data that a plan stores for later queries: its places as arrays, and a check from the tables alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import differs, exceeds
from planner.errors import PlanRejected
from planner_models.analytics.plan.plan import Levels, refuse
from planner_models.analytics.plan.region_check import list_region
from planner_models.analytics.problem.archives import PLACES, Archived, read_archives
from planner_models.analytics.problem.problem import Analytics, name_rows
from planner_models.analytics.problem.tables import find_rows

DAY_S = 86_400.0
MONTH_S = 30 * DAY_S


def tabulate_archived(problem: Analytics, archived: Archived, kind: Ints) -> pd.DataFrame:
    """Return the table of stored data at places (n,); -1 is not stored."""
    rows = np.flatnonzero(kind >= 0)
    return pd.DataFrame(
        {
            "query": name_rows(problem.query_names, archived.query[rows]).astype(str),
            "site": name_rows(problem.site_names, archived.site[rows]).astype(str),
            "at": np.array(PLACES, dtype=object)[kind[rows]],
            "gb": archived.gb[rows],
            "usd_per_month": archived.usd[rows, kind[rows]],
        }
    )


def read_places(problem: Analytics, plan: Levels, archived: Archived) -> Ints:
    """Return the place of each row of data that is to be stored, (n,); -1 is not stored.

    raises  PlanRejected for queries and sites without data that is to be stored
    """
    frame = plan.archived
    kind = np.full(len(archived.site), -1, dtype=np.int64)
    if not len(frame):
        return kind
    number = np.full((len(problem.site_names), len(problem.query_names)), -1, dtype=np.int64)
    number[archived.site, archived.query] = np.arange(len(kind))
    site, query = find_rows(problem.site_names, frame["site"]), problem.find_queries(frame)
    row = np.where((site >= 0) & (query >= 0), number[site, query], -1)
    refuse(
        frame,
        "archived",
        row < 0,
        lambda entry: f"table archives has no data of query '{entry['query']}' at site '{entry['site']}'",
    )
    kind[row] = [PLACES.index(str(name)) for name in frame["at"]]
    return kind


class StorageCosts(NamedTuple):
    """Price of stored data, value of data that is not stored, and the data, for a month.

    usd            of storing, copying and reading
    discarded_usd  value of data that is not stored
    gb             stored
    """

    usd: float
    discarded_usd: float
    gb: float


def measure_archived(problem: Analytics, plan: Levels) -> StorageCosts:
    """Return the price of the data that a plan stores, and the value of data that it does not store."""
    if problem.archives is None or not len(problem.archives):
        return StorageCosts(0.0, 0.0, 0.0)
    archived = read_archives(problem)
    kind = read_places(problem, plan, archived)
    rows = np.flatnonzero(kind >= 0)
    return StorageCosts(
        usd=float(archived.usd[rows, kind[rows]].sum()),
        discarded_usd=float(archived.value_usd[kind < 0].sum()),
        gb=float(archived.gb[rows].sum()),
    )


def check_archived(problem: Analytics, plan: Levels) -> Violations:
    """Return the violations by stored data, computed row by row from the tables.

    stores         a place stores more than it can
    storage_links  an uplink carries more than is set aside for storing and reading
    storage_rules  rules of a region do not allow a place

    PlanRejected where bytes or prices are not those of the data.
    """
    frame = plan.archived
    read_places(problem, plan, read_archives(problem))
    if not len(frame):
        return Violations()
    capacity, limits, prices = _read_stores(problem)
    stored: dict[str, float] = {}
    carried: dict[str, float] = {}
    forbidden: list[str] = []
    pop_of = dict(zip(problem.sites["site"].astype(str), problem.sites["pop"].astype(str), strict=True))
    per_gb = {
        str(entry[key]): float(entry["usd_per_gb"])
        for table, key in ((problem.sites, "site"), (problem.pops, "pop"))
        for entry in table.to_dict("records")
    }
    for row, entry in enumerate(frame.to_dict("records")):
        query, site, where = str(entry["query"]), str(entry["site"]), str(entry["at"])
        gb, copied, read = _measure(problem, query, site)
        name = {"site": site, "pop": pop_of[site], "datacenter": ""}[where]
        stored[name] = stored.get(name, 0.0) + gb
        usd = gb * prices.get(name, 0.0)
        for link, is_copied in ((site, where != "site"), (pop_of[site], where == "datacenter")):
            rate = copied if is_copied else read
            carried[link] = carried.get(link, 0.0) + rate
            usd += rate * 1e6 / 8 * MONTH_S / 1e9 * per_gb[link]
        _require_same(row, "gb", float(entry["gb"]), gb)
        _require_same(row, "usd_per_month", float(entry["usd_per_month"]), usd)
        if not _is_allowed(problem, query, site, where):
            forbidden.append(f"{query}, {site}, {where}")
    violations = _compare("stores", stored, capacity, "GB") + _compare(
        "storage_links", carried, limits, "Mbit/s"
    )
    return violations + Violations.of(
        "storage_rules",
        where=forbidden,
        amount=np.ones(len(forbidden)),
        allowed=np.zeros(len(forbidden)),
        unit="places",
    )


def _read_stores(problem: Analytics) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return capacity, GB, rate set aside, Mbit/s, and price of each place of table `stores`, by its name."""
    capacity: dict[str, float] = {}
    limits: dict[str, float] = {}
    prices: dict[str, float] = {}
    for entry in [] if problem.stores is None else problem.stores.to_dict("records"):
        name = str(entry["place"])
        for column, values in (("capacity_gb", capacity), ("link_mbps", limits)):
            value = entry.get(column)
            values[name] = np.inf if value is None or pd.isna(value) else float(value)
        prices[name] = float(entry["usd_per_gb_month"])
    return capacity, limits, prices


def _measure(problem: Analytics, query: str, site: str) -> tuple[float, float, float]:
    """Return stored data, GB, and the rates at which it is copied and read, Mbit/s."""
    assert problem.archives is not None
    entry = next(row for row in problem.archives.to_dict("records") if str(row["query"]) == query)
    number = problem.query_names.index(query)
    cube = str(problem.queries["cube"].iloc[number])
    of_site = problem.volume[
        (problem.volume["site"].astype(str) == site) & (problem.volume["cube"].astype(str) == cube)
    ]
    records, cells = float(of_site["records"].sum()), float(of_site["cells"].sum())
    seconds = float(problem.intervals["length_s"].sum())
    kept_s = float(entry["keep_days"]) * DAY_S
    written = records * float(entry["bytes_per_record"]) + cells * float(entry["bytes_per_cell"])
    level = problem.levels[
        (problem.levels["query"].astype(str) == query)
        & (problem.levels["level"].astype(str) == str(entry["read_level"]))
    ].iloc[0]
    shares = [1.0, 1.0]
    for row in [] if problem.passing is None else problem.passing.to_dict("records"):
        is_of = (str(row["query"]), str(row["level"])) == (query, str(entry["read_level"]))
        if is_of and str(row["site"]) in (site, ""):
            pair = [float(row["record_share"]), float(row["cell_share"])]
            shares = pair if row["site"] or shares == [1.0, 1.0] else shares
    read = (
        records * float(level["bytes_per_record"]) * shares[0]
        + cells * float(level["bytes_per_cell"]) * shares[1]
    )
    times = float(entry["reads_per_month"]) / MONTH_S
    mbit = 8 / 1e6 / seconds
    return written / seconds * kept_s / 1e9, written * mbit, read * mbit * kept_s * times


def _is_allowed(problem: Analytics, query: str, site: str, where: str) -> bool:
    """Return whether rules of regions allow a place, by a plain reading of their rows."""
    assert problem.archives is not None
    entry = next(row for row in problem.archives.to_dict("records") if str(row["query"]) == query)
    number, row = problem.query_names.index(query), problem.site_names.index(site)
    cube = str(problem.queries["cube"].iloc[number])
    region = list_region(problem.sites, row)
    for rule in [] if problem.retention is None else problem.retention.to_dict("records"):
        hours = rule.get("at_most_h")
        is_of = bool(region) and rule["region"] == region and rule["cube"] in ("", cube)
        if is_of and hours is not None and float(entry["keep_days"]) * 24 > float(hours) * (1 + 1e-9):
            return False  # never of a blank cell, NaN
    of_pop = list_region(problem.pops, int(problem.pop_of[row])) or region
    center = "" if problem.central is None else list_region(problem.central, 0)
    names = problem.level_names[number]
    moves = {"site": [], "pop": [(0, {of_pop})], "datacenter": [(0, {of_pop, center})]}[where]
    if float(entry["reads_per_month"]) > 0:
        moves = [*moves, (names.index(str(entry["read_level"])), {of_pop, center})]
    for rule in [] if problem.laws is None else problem.laws.to_dict("records"):
        if rule["query"] not in ("", query) or rule["cube"] not in ("", cube) or rule["region"] != region:
            continue
        first = names.index(str(rule["finest"])) if rule["finest"] else len(names)
        for level, way in moves:
            reached = way - {region}
            crosses = rule["to"] in reached if rule["to"] else bool(reached)
            if crosses and level < first:
                return False
    return True


def _require_same(row: int, column: str, value: float, expected: float) -> None:
    """Raise PlanRejected for a figure of the plan that does not follow from the data."""
    if differs(np.array([value]), np.array([expected])).any():
        raise PlanRejected(f"archived row {row + 1}: {column} is {value:g}, must be {expected:g} by the data")


def _compare(limit: str, amounts: dict[str, float], allowed: dict[str, float], unit: str) -> Violations:
    """Return the violations of amounts by name; a name without a limit has 0."""
    names: Sequence[str] = list(amounts)
    amount = np.array([amounts[name] for name in names])
    limits_of: Floats = np.array([allowed.get(name, 0.0) for name in names])
    over: Any = exceeds(amount, limits_of)
    return Violations.of(
        limit,
        where=[name or "datacenter" for name, is_over in zip(names, over, strict=True) if is_over],
        amount=amount[over],
        allowed=limits_of[over],
        unit=unit,
    )
