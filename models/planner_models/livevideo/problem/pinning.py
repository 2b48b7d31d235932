"""Validation of the rules in the tables `pinned` and `forbidden`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from planner.contract.tables import file_name, row_name, shorten_faults
from planner.errors import did_you_mean
from planner_models.livevideo.problem.tables import VideoTables


def find_faults(problem: VideoTables) -> Iterator[str]:
    """Yield an error line for each rule that names something unknown, or that contradicts another."""
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
