"""Validation of a problem, check by check; each fault is one line with its table and row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import file_name, report_unknown_names, row_name, shorten_faults
from planner.errors import did_you_mean
from planner_models.livevideo.problem.tables import Pair, VideoTables, find_cycle, order_tiers


def find_faults(problem: VideoTables) -> list[str]:
    """Return the faults of the first check that finds any: later checks rely on the earlier ones."""
    for check in CHECKS:
        faults = list(check(problem))
        if faults:
            return faults
    return []


def reachable_requests(problem: VideoTables) -> Bools:
    """Return whether a path of allowed links as wide as the object leads to each request's group, (Q,)."""
    mask = problem.forbidden_pairs
    is_reachable = np.zeros(len(problem.requests), dtype=bool)
    # objects with the same bitrate, sources and forbidden links reach the same groups
    classes: dict[tuple[float, bytes, bytes], list[int]] = {}
    for o in np.unique(problem.object).tolist():
        forbidden = b"" if mask is None else mask[o].tobytes()
        key = (float(problem.bitrate_mbps[o]), problem.is_at_source[o].tobytes(), forbidden)
        classes.setdefault(key, []).append(o)
    level = problem.level[problem.tail]
    for (bitrate, _, _), objects in classes.items():
        usable = problem.capacity_mbps >= bitrate * (1 - 1e-9)
        if mask is not None:
            usable &= ~mask[objects[0]]
        reached = np.zeros(len(problem.clusters), dtype=bool)
        reached[problem.sources[problem.is_at_source[objects[0]]]] = True
        for step in range(problem.group_level):
            reached[problem.head[usable & reached[problem.tail] & (level == step)]] = True
        requests = np.isin(problem.object, objects)
        is_reachable[requests] = reached[problem.group[requests]]
    return is_reachable


def _check_bills(problem: VideoTables) -> Iterator[str]:
    """Yield faults of bills: unknown names, and bills without a link."""
    names = set(problem.bills["bill"].astype(str)) if len(problem.bills) else set()
    if "bill" in problem.links:
        named = problem.links[problem.links["bill"].fillna("").astype(str) != ""]
        yield from report_unknown_names(named, "links", "bill", names, "no bill of table bills")
    yield from report_unknown_names(problem.samples, "samples", "bill", names, "no bill of table bills")


def _check_settings(problem: VideoTables) -> Iterator[str]:
    if len(problem.settings) != 1:
        where = file_name(problem.settings, "settings")
        yield f"{where}: has {len(problem.settings)} rows, must have one"


def _check_last_hop(problem: VideoTables) -> Iterator[str]:
    """Yield faults of tables that do not go with a unicast last hop."""
    if not problem.is_unicast:
        return
    for table, faults, what in (
        ("requests", _find_parts_of_clients(problem), "with a part of a client"),
        ("requests", _find_lower_bitrates(problem), "with lower bitrates"),
        ("pinned", _find_pinned_last_hops(problem), "on links into groups"),
    ):
        yield from shorten_faults(faults, file_name(getattr(problem, table), table), what)


def _find_parts_of_clients(problem: VideoTables) -> list[str]:
    """Return an error line for each request whose clients are no whole number."""
    return [
        f"{row_name(problem.requests, 'requests', row)}: clients is {problem.clients[row]:g}, must be a "
        "whole number: with last_hop = unicast each client takes a stream of its own"
        for row in np.flatnonzero(problem.clients != np.rint(problem.clients)).tolist()
    ]


def _find_lower_bitrates(problem: VideoTables) -> list[str]:
    """Return an error line for the first request whose clients accept a lower bitrate, and how many do."""
    steps, requests = problem.steps, problem.requests
    rows = np.unique(steps.request[steps.object != problem.object[steps.request]])
    if not len(rows):
        return []
    row, others = int(rows[0]), len(rows) - 1
    return [
        f"{row_name(requests, 'requests', row)}: lowest_kbps is {requests['lowest_kbps'].iloc[row]:g}, must "
        f"be bitrate_kbps ({requests['bitrate_kbps'].iloc[row]:g}) or blank: with last_hop = unicast clients "
        "take only the bitrate that they request" + (f"; so in {others:,} more rows" if others else "")
    ]


def _find_pinned_last_hops(problem: VideoTables) -> list[str]:
    """Return an error line for each rule that pins objects to a link into a group."""
    faults = []
    for row, (is_everywhere, _, links) in enumerate(problem.match_rules(problem.pinned)):
        last = links[problem.is_last_hop[links]]
        if len(last) and not is_everywhere:
            faults.append(
                f"{row_name(problem.pinned, 'pinned', row)}: {problem.link_labels[last[0]]} leads to a "
                "group, must be a link between clusters, or * for both ends: with last_hop = unicast a link "
                "into a group carries what viewers take"
            )
    return faults


def _check_names(problem: VideoTables) -> Iterator[str]:
    for frame, table, column in (
        (problem.links, "links", "tail"),
        (problem.links, "links", "head"),
        (problem.requests, "requests", "group"),
        (problem.holders, "holders", "source"),
    ):
        yield from report_unknown_names(frame, table, column, problem.cluster_index, "no cluster")
    yield from _check_requested_objects(problem)
    channels = set(problem.objects["channel"])
    yield from report_unknown_names(
        problem.holders, "holders", "channel", channels, "no channel of the objects"
    )


def _check_requested_objects(problem: VideoTables) -> Iterator[str]:
    requests = problem.requests
    unknown = np.flatnonzero(problem.object < 0).tolist()
    faults = []
    for row in unknown[:6]:
        channel, bitrate = requests["channel"].iloc[row], requests["bitrate_kbps"].iloc[row]
        bitrates = problem.objects.loc[problem.objects["channel"] == channel, "bitrate_kbps"]
        if len(bitrates):
            hint = f"; '{channel}' has " + ", ".join(f"{rate:g}" for rate in bitrates.head(8)) + " kbit/s"
        else:
            hint = did_you_mean(channel, set(problem.objects["channel"]))
        faults.append(
            f"{row_name(requests, 'requests', row)}: asks for an unknown object, "
            f"channel '{channel}' at {bitrate:g} kbit/s{hint}"
        )
    yield from shorten_faults(
        faults, file_name(requests, "requests"), "for an unknown object", count=len(unknown)
    )
    if "lowest_kbps" in requests and not len(unknown):
        lowest, requested = requests["lowest_kbps"], requests["bitrate_kbps"]
        faults = [
            f"{row_name(requests, 'requests', row)}: lowest_kbps is {lowest.iloc[row]:g}, must be at most "
            f"bitrate_kbps ({requested.iloc[row]:g})"
            for row in np.flatnonzero((lowest > requested * (1 + 1e-9)).to_numpy()).tolist()
        ]
        yield from shorten_faults(faults, file_name(requests, "requests"), "with a lowest_kbps too high")


def _check_tiers(problem: VideoTables) -> Iterator[str]:
    """Yield faults of the chain of tiers, of groups that request and of sources that hold channels."""
    pairs = problem.linked_tiers
    where = file_name(problem.links, "links")
    for (tail, head), row in pairs.items():
        if tail == head:
            where = row_name(problem.links, "links", row)
            yield (
                f"{where}: joins two clusters of tier '{tail}', must lead to the next; or use source "
                "any_topology"
            )
            return
    if cycle := find_cycle(pairs):
        yield f"{where}: the tiers form a cycle: " + " -> ".join(cycle)
        return
    order = order_tiers(pairs)
    if order is None:
        yield _describe_branch(problem, pairs, where)
        return
    isolated = sorted(set(problem.clusters["tier"]) - set(order))
    if isolated:
        yield f"{file_name(problem.clusters, 'clusters')}: no link joins tier '{isolated[0]}' to another"
        return
    yield from _find_wrong_tiers(problem, "requests", "group", problem.group_level)
    yield from _find_wrong_tiers(problem, "holders", "source", 0)


def _describe_branch(problem: VideoTables, pairs: dict[Pair, int], where: str) -> str:
    """Return the error line for tiers that form no chain."""
    for (tail, head), row in pairs.items():
        others = [other for start, other in pairs if start == tail and other != head]
        if others:
            return (
                f"{row_name(problem.links, 'links', row)}: "
                f"leads from tier '{tail}' to '{head}', other links "
                f"from '{tail}' to '{others[0]}': a tier must lead to one next tier only; or use source "
                "any_topology"
            )
    return f"{where}: the tiers must form one chain, found " + ", ".join(f"{a}->{b}" for a, b in pairs)


def _find_wrong_tiers(problem: VideoTables, table: str, column: str, level: int) -> list[str]:
    """Return an error line for each cluster in a table's column that is not of the tier at `level`."""
    frame: pd.DataFrame = getattr(problem, table)
    levels = problem.level[problem.cluster_rows(frame[column])]
    faults = [
        f"{row_name(frame, table, row)}: {column} '{frame[column].iloc[row]}' is of tier "
        f"'{problem.tiers[levels[row]]}', must be of tier '{problem.tiers[level]}'"
        for row in np.flatnonzero(levels != level).tolist()
    ]
    return shorten_faults(faults, file_name(frame, table), f"with a {column} of another tier")


def report_unreachable(problem: VideoTables) -> list[str]:
    """Return a line for each reason why no plan can serve all requests, whatever else it carries.

    Groups without a link, bitrates above every link, channels without a path of links that are wide enough.
    """
    if not len(problem.requests):
        return []
    has_link = np.zeros(len(problem.clusters), dtype=bool)
    has_link[problem.head] = True
    clusters, objects = file_name(problem.clusters, "clusters"), file_name(problem.objects, "objects")
    lonely = [
        f"{row_name(problem.clusters, 'clusters', row)}: group '{problem.clusters['cluster'].iloc[row]}' "
        f"has no link from any cluster of tier '{problem.tiers[-2]}'"
        for row in np.unique(problem.group[~has_link[problem.group]]).tolist()
    ]
    largest = float(problem.capacity_mbps.max(initial=0.0))
    requested = np.unique(problem.object)
    too_wide = requested[problem.bitrate_mbps[requested] > largest]
    wide = [
        f"{row_name(problem.objects, 'objects', o)}: bitrate_kbps {1000 * problem.bitrate_mbps[o]:g} is "
        f"above the capacity of every link (at most {1000 * largest:g} kbit/s)"
        for o in too_wide.tolist()
    ]
    without_path = ~reachable_requests(problem)
    cut_off = [
        f"{row_name(problem.objects, 'objects', o)}: channel '{problem.objects['channel'].iloc[o]}' is "
        f"unreachable: no path of links with {1000 * problem.bitrate_mbps[o]:g} kbit/s from a source that "
        f"has it to group '{problem.requests['group'].iloc[q]}'"
        for o, q in _first_requests(problem.object, without_path & has_link[problem.group])
        if o not in too_wide
    ]
    return [
        *_report_short_groups(problem),
        *shorten_faults(lonely, clusters, "of groups without a link"),
        *shorten_faults(wide, objects, "with a bitrate above every link"),
        *shorten_faults(cut_off, objects, "of unreachable channels"),
    ]


def _report_short_groups(problem: VideoTables) -> list[str]:
    """Return a line for each group whose links are too small for a stream of each viewer (unicast only)."""
    if not problem.is_unicast:
        return []
    requested, capacity = last_hop_mbps(problem)
    lines = [
        f"{row_name(problem.clusters, 'clusters', row)}: the viewers of group "
        f"'{problem.clusters['cluster'].iloc[row]}' need {requested[row]:,.6g} Mbit/s with a stream each "
        f"(last_hop = unicast), and its links have {capacity[row]:,.6g} Mbit/s"
        for row in np.flatnonzero((requested > capacity * (1 + 1e-9)) & (capacity > 0)).tolist()
    ]
    return shorten_faults(lines, file_name(problem.clusters, "clusters"), "of groups with too small links")


def last_hop_mbps(problem: VideoTables) -> tuple[Floats, Floats]:
    """Return the rate of a stream for each viewer of a group, and the capacity of its links, both (C,)."""
    count = len(problem.clusters)
    rate = problem.clients * problem.bitrate_mbps[problem.object]
    requested = np.bincount(problem.group, weights=rate, minlength=count)
    capacity = np.bincount(problem.head, weights=problem.capacity_mbps, minlength=count)
    return requested.astype(float), capacity.astype(float)


def _first_requests(item: Ints, selected: Bools) -> list[tuple[int, int]]:
    """Return each object of the selected requests, with its first one."""
    rows = np.flatnonzero(selected)
    objects, first = np.unique(item[rows], return_index=True)
    return list(zip(objects.tolist(), rows[first].tolist(), strict=True))


def _check_rules(problem: VideoTables) -> Iterator[str]:
    """Yield faults of pinned and forbidden: rules that name nothing known, or that contradict others."""
    for table in ("pinned", "forbidden"):
        frame: pd.DataFrame = getattr(problem, table)
        faults = list(_find_unknown_names(problem, frame, table)) or _find_empty_rules(problem, frame, table)
        yield from shorten_faults(faults, file_name(frame, table), "that name nothing")
        if faults:
            return
    yield from _find_contradiction(problem)


def _find_unknown_names(problem: VideoTables, frame: pd.DataFrame, table: str) -> Iterator[str]:
    clusters = set(problem.clusters["cluster"])
    columns = {"channel": set(problem.objects["channel"]), "tail": clusters, "head": clusters}
    for row, rule in enumerate(frame.to_dict(orient="records")):
        where = row_name(frame, table, row)
        for column, names in columns.items():
            if rule[column] != "*" and rule[column] not in names:
                yield f"{where}: {column} '{rule[column]}' is unknown" + did_you_mean(rule[column], names)
        if not _is_bitrate(rule["bitrate_kbps"]):
            yield f"{where}: bitrate_kbps is '{rule['bitrate_kbps']}', must be a number or *"


def _is_bitrate(text: Any) -> bool:
    try:
        return text == "*" or float(text) > 0
    except ValueError:
        return False


def _find_empty_rules(problem: VideoTables, frame: pd.DataFrame, table: str) -> list[str]:
    """Return an error line for each rule without an object or without a link."""
    faults = []
    for row, (_, objects, links) in enumerate(problem.match_rules(frame)):
        missing = "object" if not len(objects) else "link" if not len(links) else ""
        if missing:
            faults.append(f"{row_name(frame, table, row)}: there is no such {missing}")
    return faults


def _find_contradiction(problem: VideoTables) -> Iterator[str]:
    """Yield an error line for the first pinned link that another rule, or the holders, exclude."""
    mask = problem.forbidden_pairs
    source = {int(cluster): s for s, cluster in enumerate(problem.sources)}
    link_into: dict[tuple[int, int], int] = {}
    for o, link in problem.pinned_links.tolist():
        name, link_name = problem.object_labels[o], problem.link_labels[link]
        tail, head = int(problem.tail[link]), int(problem.head[link])
        if mask is not None and mask[o, link]:
            yield f"{name} on {link_name} is both pinned and forbidden"
            return
        if (o, head) in link_into:
            other = problem.link_labels[link_into[o, head]]
            yield f"{name} is pinned to both {other} and {link_name}, but a cluster receives it once"
            return
        link_into[o, head] = link
        if tail in source and not problem.is_at_source[o, source[tail]]:
            cluster = problem.clusters["cluster"].iloc[tail]
            yield f"{name} is pinned to {link_name}, but source '{cluster}' does not hold it"
            return


CHECKS: Final = (
    _check_settings,
    _check_names,
    _check_bills,
    _check_tiers,
    _check_rules,
    _check_last_hop,
)
"""Checks in order; each relies on the ones before it."""
