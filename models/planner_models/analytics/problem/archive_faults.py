"""Faults of tables `stores` and `archives`, each one line, and the rules that do not allow a place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.contract.tables import report_unknown_names, row_name
from planner.errors import did_you_mean
from planner_models.analytics.problem.archives import PLACES, POP, Archived, list_stores
from planner_models.analytics.problem.regions import RegionTables, find_hours, list_scopes


def find_archive_faults(problem: RegionTables) -> Iterator[str]:
    """Yield faults of tables `stores` and `archives`, each with its row, value and rule."""
    stores, archives = problem.stores, problem.archives
    if stores is not None and len(stores):
        names = set(list_stores(problem))
        yield from report_unknown_names(
            stores, "stores", "place", names, "neither a site nor a point of presence"
        )
        center = stores["place"].astype(str) == ""
        if "link_mbps" in stores and (center & stores["link_mbps"].notna()).any():
            row = int(np.argmax(center))
            yield (
                f"{row_name(stores, 'stores', row)}: link_mbps is {stores['link_mbps'].iloc[row]:g}, must be "
                "blank for the datacenter, which has no uplink"
            )
    if archives is None or not len(archives):
        return
    if stores is None or not len(stores):
        yield f"{row_name(archives, 'archives', 0)}: needs table stores, with at least a place of storage"
    derived = set() if problem.shares is None else set(problem.shares["query"].astype(str))
    for row, (query, level) in enumerate(
        zip(archives["query"].astype(str), archives["read_level"].astype(str), strict=True)
    ):
        where = row_name(archives, "archives", row)
        number = problem.query_names.index(query)
        levels = problem.level_names[number]
        if query in derived:
            yield f"{where}: query '{query}' is in table shares, must not be: store data of the query it uses"
        if level not in levels:
            yield f"{where}: read_level: query '{query}' has no level '{level}'" + did_you_mean(level, levels)
        elif problem.is_none[number, levels.index(level)]:
            yield f"{where}: read_level is '{level}', which sends no data; set reads_per_month to 0 for that"


def name_rule(problem: RegionTables, archived: Archived, row: int, kind: int) -> str:
    """Return the rule of a region that does not allow a row of data at a place, as text."""
    site, query = int(archived.site[row]), int(archived.query[row])
    archives, laws, retention = problem.archives, problem.laws, problem.retention
    assert archives is not None
    entry = archives[archives["query"].astype(str) == problem.query_names[query]].iloc[0]
    hours, row_of = find_hours(problem, "at_most_h")
    cube = int(problem.cube_of[query])
    if retention is not None and entry["keep_days"] * 24 > hours[site, cube] * (1 + 1e-9):
        rule = row_name(retention, "retention", int(row_of[site, cube]))
        return f"{rule} lets data be kept for {hours[site, cube]:g} hours"
    level = problem.level_names[query].index(str(entry["read_level"]))
    is_read = entry["reads_per_month"] > 0 and not problem.may_leave[site, query, level]
    needed, to_pop = (level, False) if is_read else (0, PLACES[kind] == POP)
    assert laws is not None
    for scope in list_scopes(problem, to_pop=to_pop):
        names = problem.level_names[query]
        first = names.index(scope.finest) if scope.finest in names else len(names)
        if scope.sites[site] and scope.queries[query] and needed < first:
            rule = row_name(laws, "laws", scope.row)
            thing = f"level '{names[needed]}', which is read," if is_read else "a copy"
            return f"{rule} does not let {thing} leave region '{laws['region'].iloc[scope.row]}'"
    raise AssertionError("no rule denies the place")
