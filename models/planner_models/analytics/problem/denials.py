"""Reasons for which rules of regions deny answers, and errors of these rules, each one line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.tables import file_name, report_unknown_names, row_name
from planner.errors import did_you_mean
from planner_models.analytics.problem.regions import (
    RegionTables,
    Scope,
    find_expired,
    find_hours,
    find_required_bytes,
    list_regions,
    list_scopes,
)


def explain_denied(problem: RegionTables) -> list[tuple[int, str]]:
    """Return each query with denied answers and why, in words: the first rule that denies each."""
    if not problem.is_denied.any():
        return []
    reasons: dict[int, str] = {}
    sends = problem.may_send_by_tables & ~problem.is_none & problem.has_data[:, :, None]
    for query in np.flatnonzero(problem.is_denied.any(axis=0)).tolist():
        source = int(problem.source_of[query]) if problem.source_of[query] >= 0 else query
        text = _explain_rules(problem, source, sends[:, source]) or _explain_expired(problem, source)
        used = "" if source == query else f"; it uses the data of query '{problem.query_names[source]}'"
        if text is not None:
            reasons[query] = text + used
    return list(reasons.items())


def _explain_rules(problem: RegionTables, query: int, sends: Bools) -> str | None:
    """Return the rules by which some site may send no level of a query, of `sends` (S, L); None for none."""
    rules = problem.laws
    denied = sends.any(axis=1) & ~(sends & problem.may_leave[:, query]).any(axis=1)
    if rules is None or not denied.any():
        return None
    site = int(np.argmax(denied))
    for scope in list_scopes(problem):
        if not (scope.sites[site] and scope.queries[query]):
            continue
        names = problem.level_names[query]
        first = names.index(scope.finest) if scope.finest in names else len(names)
        if sends[site, first:].any():
            continue
        what = "nothing" if not scope.finest else f"nothing finer than level '{scope.finest}'"
        region, to = rules["region"].iloc[scope.row], str(rules["to"].iloc[scope.row])
        where = f" for region '{to}'" if to else ""
        coarser = "" if not scope.finest else ", and no coarser level is allowed"
        rule = row_name(rules, "laws", scope.row)
        return f"{rule} lets {what} leave region '{region}'{where}{coarser}"
    return None


def _explain_expired(problem: RegionTables, query: int) -> str | None:
    """Return the rule by which data is erased that a query reads; None for none."""
    frame = problem.retention
    hours, rows = find_hours(problem, "at_most_h")
    for expired in find_expired(problem):
        if expired.query != query or frame is None:
            continue
        cube = problem.cube_of[query]
        where = row_name(frame, "retention", int(rows[expired.site, cube]))
        return (
            f"{where} lets site '{problem.site_names[expired.site]}' keep cube "
            f"'{problem.cubes['cube'].iloc[cube]}' for {hours[expired.site, cube]:g} hours, and the query "
            "reads older data"
        )
    return None


def find_region_faults(problem: RegionTables) -> Iterator[str]:
    """Yield the errors of tables `central`, `laws` and `retention`, each with its row and rule."""
    faults = list(find_unknown_regions(problem))
    yield from faults
    if faults:
        return
    faults = list(find_faulty_rules(problem))
    yield from faults
    if faults:
        return
    yield from find_contradicting_rules(problem)
    yield from find_rules_against_tables(problem)
    yield from find_faulty_retention(problem)


def find_unknown_regions(problem: RegionTables) -> Iterator[str]:
    """Yield errors of names of regions that no place has, and of more than one datacenter."""
    if problem.central is not None and len(problem.central) != 1:
        yield f"{file_name(problem.central, 'central')}: has {len(problem.central)} rows, must have one"
        return
    of_sites = {name for name in list_regions(problem.sites) if name}
    regions = of_sites | set(list_regions(problem.pops))
    if problem.central is not None:
        regions |= set(list_regions(problem.central))
    for table in ("laws", "retention"):
        frame = getattr(problem, table)
        if frame is None or not len(frame):
            continue
        yield from report_unknown_names(frame, table, "region", of_sites, "the region of no site")
        cubes = {*problem.cubes["cube"].astype(str), ""}
        yield from report_unknown_names(frame, table, "cube", cubes, "no cube")
    rules = problem.laws
    if rules is not None and len(rules):
        queries = {*problem.query_names, ""}
        yield from report_unknown_names(rules, "laws", "query", queries, "no query")
        yield from report_unknown_names(
            rules,
            "laws",
            "to",
            regions | {""},
            "the region of no site, point of presence or datacenter",
        )


def find_faulty_rules(problem: RegionTables) -> Iterator[str]:
    """Yield errors of rules about no query, to their own region, or with a level that there is none of."""
    rules = problem.laws
    if rules is None:
        return
    derived = set(problem.shares["query"].astype(str)) if problem.shares is not None else set()
    cube_of = dict(zip(problem.query_names, problem.queries["cube"].astype(str), strict=True))
    for scope in list_scopes(problem):
        where = row_name(rules, "laws", scope.row)
        rule = rules.iloc[scope.row]
        if rule["query"] in derived:
            continue  # an error of table shares
        if rule["query"] and rule["cube"] not in ("", cube_of[rule["query"]]):
            cube = cube_of[rule["query"]]
            yield f"{where}: query '{rule['query']}' is of cube '{cube}', not '{rule['cube']}'"
        if rule["to"] == rule["region"]:
            yield f"{where}: to is '{rule['to']}', must be another region than that of the data"
        for query in np.flatnonzero(scope.queries).tolist():
            names = problem.level_names[query]
            if scope.finest and scope.finest not in names:
                name = problem.query_names[query]
                hint = did_you_mean(scope.finest, names)
                yield f"{where}: finest: query '{name}' has no level '{scope.finest}'" + hint
                break
            if scope.finest and problem.is_none[query, names.index(scope.finest)]:
                yield f"{where}: finest is '{scope.finest}', which sends no data; leave it blank for that"
                break


def find_contradicting_rules(problem: RegionTables) -> Iterator[str]:
    """Yield pairs of rules of which one lets nothing leave and the other a level of the same data."""
    rules = problem.laws
    if rules is None:
        return
    scopes = list(list_scopes(problem))
    nothing = [scope for scope in scopes if not scope.finest]
    for scope in scopes:
        if not scope.finest:
            continue
        other = next((other for other in nothing if overlaps(scope, other)), None)
        if other is None:
            continue
        query = problem.query_names[int(np.argmax(scope.queries & other.queries))]
        first, second = (row_name(rules, "laws", entry.row) for entry in (scope, other))
        yield (
            f"{first}: lets level '{scope.finest}' of query '{query}' leave region "
            f"'{rules['region'].iloc[scope.row]}', but {second} lets nothing of it leave; keep one of them"
        )


def overlaps(scope: Scope, other: Scope) -> bool:
    """Return whether two rules are about the same data on the same way."""
    return bool((scope.sites & other.sites).any() and (scope.queries & other.queries).any())


def find_rules_against_tables(problem: RegionTables) -> Iterator[str]:
    """Yield rows of `pinned` and `forbidden` that require levels which a rule of a region rules out."""
    rules = problem.laws
    if rules is None or not len(rules):
        return
    pinned, forbidden = problem.pinned, problem.forbidden
    if pinned is not None and len(pinned):
        site, query, level = problem.find_levels(pinned)
        for row in np.flatnonzero(~problem.may_leave[site, query, level])[:5].tolist():
            named = name_rule(problem, int(site[row]), int(query[row]), int(level[row]))
            yield (
                f"{row_name(pinned, 'pinned', row)}: site '{pinned['site'].iloc[row]}' must send level "
                f"'{pinned['level'].iloc[row]}' of query '{pinned['query'].iloc[row]}', but {named}"
            )
    if forbidden is None or not len(forbidden):
        return
    site, query, level = problem.find_levels(forbidden)
    must_send = problem.is_none[query, level] & problem.has_data[site, query]
    nothing = ~(problem.may_send & ~problem.is_none).any(axis=2)
    by_rule = np.asarray(nothing & (problem.may_send_by_tables & ~problem.is_none).any(axis=2))
    for row in np.flatnonzero(must_send & by_rule[site, query])[:5].tolist():
        allowed = problem.may_send_by_tables[site[row], query[row]] & ~problem.is_none[query[row]]
        named = name_rule(problem, int(site[row]), int(query[row]), int(np.flatnonzero(allowed)[-1]))
        yield (
            f"{row_name(forbidden, 'forbidden', row)}: site '{forbidden['site'].iloc[row]}' must send data "
            f"of query '{forbidden['query'].iloc[row]}', but {named}"
        )


def name_rule(problem: RegionTables, site: int, query: int, level: int) -> str:
    """Return the first rule that does not let a level of a query leave a site, in words."""
    rules = problem.laws
    assert rules is not None
    for scope in list_scopes(problem):
        if not (scope.sites[site] and scope.queries[query]):
            continue
        names = problem.level_names[query]
        if not scope.finest or level < names.index(scope.finest):
            what = f"nothing finer than level '{scope.finest}'" if scope.finest else "nothing of it"
            return f"{row_name(rules, 'laws', scope.row)} lets {what} leave; change one of them"
    return "a rule of its region does not let it leave"


def find_faulty_retention(problem: RegionTables) -> Iterator[str]:
    """Yield rows of `retention` that contradict each other, and data that has no storage."""
    frame = problem.retention
    if frame is None or not len(frame):
        return
    (longest, longest_row), (shortest, shortest_row) = (
        find_hours(problem, name) for name in ("at_most_h", "at_least_h")
    )
    clash = np.argwhere(shortest > longest)
    if len(clash):
        site, cube = clash[0].tolist()
        rows = [int(rows[site, cube]) for rows in (shortest_row, longest_row)]
        first, second = (row_name(frame, "retention", row) for row in rows)
        name, region = problem.cubes["cube"].iloc[cube], frame["region"].iloc[rows[0]]
        other = f"{second} at most" if first != second else "at most"
        yield (
            f"{first}: cube '{name}' must be kept for at least {shortest[site, cube]:g} hours in region "
            f"'{region}', but {other} for {longest[site, cube]:g} hours; change one of them"
        )
        return
    for cube in np.flatnonzero((~np.isnan(shortest)).any(axis=0)).tolist():
        columns = ("stored_bytes_per_record", "stored_bytes_per_cell")
        if all(name not in problem.cubes or problem.cubes[name].iloc[cube] == 0 for name in columns):
            row = int(shortest_row[~np.isnan(shortest[:, cube]), cube][0])
            yield (
                f"{row_name(frame, 'retention', row)}: at_least_h needs stored_bytes_per_record or "
                f"stored_bytes_per_cell of cube '{problem.cubes['cube'].iloc[cube]}' in table cubes"
            )
            return
    yield from find_missing_storage(problem, frame, shortest_row)


def find_missing_storage(problem: RegionTables, frame: pd.DataFrame, least_row: Floats) -> Iterator[str]:
    """Yield the first site that cannot store all data it must keep, by rows of retention, (S, C)."""
    required = find_required_bytes(problem)
    over = required > problem.storage_bytes * (1 + 1e-9) + 1e-6
    if not over.any():
        return
    k, site = np.argwhere(over)[0].tolist()
    row = int(least_row[site].max())
    yield (
        f"{row_name(frame, 'retention', row)}: site '{problem.site_names[site]}' must store "
        f"{required[k, site] / 1e9:.4g} GB at the end of interval {problem.interval_numbers[k]:g}, but "
        f"{row_name(problem.sites, 'sites', site)} has storage_gb {problem.storage_bytes[site] / 1e9:.4g}"
    )
