"""Rules on what must and what must not be carried: the tables `pinned` and `forbidden`, read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import did_you_mean
from planner.tables import few, file_name, row_name

if TYPE_CHECKING:
    from planner_models.livevideo.problem import LiveVideo


def read(problem: LiveVideo, frame: pd.DataFrame) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The objects and the links that each rule is of."""
    channels = problem.objects["channel"].to_numpy()
    bitrates = problem.objects["bitrate_kbps"].to_numpy(float)
    tails, heads = problem.links["tail"].to_numpy(), problem.links["head"].to_numpy()
    for rule in frame.itertuples():
        wanted = np.ones(len(channels), dtype=bool)
        if rule.channel != "*":
            wanted &= channels == rule.channel
        if rule.bitrate_kbps != "*":
            wanted &= np.isclose(bitrates, float(str(rule.bitrate_kbps)))
        over = np.ones(len(tails), dtype=bool)
        if rule.tail != "*":
            over &= tails == rule.tail
        if rule.head != "*":
            over &= heads == rule.head
        yield np.flatnonzero(wanted), np.flatnonzero(over)


def forbidden_pairs(problem: LiveVideo) -> NDArray[np.bool_] | None:
    """(O, L) True where an object must not cross a link; None where nothing is forbidden."""
    if not len(problem.forbidden):
        return None
    mask = np.zeros((len(problem.objects), len(problem.links)), dtype=bool)
    for objects, links in read(problem, problem.forbidden):
        mask[np.ix_(objects, links)] = True
    return mask


def pinned_requests(problem: LiveVideo) -> NDArray[np.int64]:
    """Requests that must be served."""
    served = np.zeros(len(problem.requests), dtype=bool)
    for rule, (objects, _) in zip(problem.pinned.itertuples(), read(problem, problem.pinned), strict=True):
        if _everywhere(rule):
            served |= np.isin(problem.object, objects)
    return np.flatnonzero(served)


def pinned_links(problem: LiveVideo) -> NDArray[np.int64]:
    """(P, 2) objects and the links that each must cross."""
    pairs = {
        (o, link)
        for rule, (objects, links) in zip(
            problem.pinned.itertuples(), read(problem, problem.pinned), strict=True
        )
        if not _everywhere(rule)
        for o in objects.tolist()
        for link in links.tolist()
    }
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def _everywhere(rule: Any) -> bool:
    return bool(rule.tail == "*" and rule.head == "*")


def faults(problem: LiveVideo) -> Iterator[str]:
    """Rules that name what there is not, that contradict each other, or that nothing can fulfil."""
    for table in ("pinned", "forbidden"):
        frame: pd.DataFrame = getattr(problem, table)
        found = list(_strangers(problem, frame, table))
        if not found:
            found = _empty(problem, frame, table)
        yield from few(found, file_name(frame, table), "that name nothing")
        if found:
            return
    yield from _contradictions(problem)


def _strangers(problem: LiveVideo, frame: pd.DataFrame, table: str) -> Iterator[str]:
    clusters = set(problem.clusters["cluster"])
    columns = {"channel": set(problem.objects["channel"]), "tail": clusters, "head": clusters}
    for row, rule in enumerate(frame.to_dict(orient="records")):
        where = row_name(frame, table, row)
        for column, known in columns.items():
            if rule[column] != "*" and rule[column] not in known:
                yield f"{where}: {column} '{rule[column]}' is unknown" + did_you_mean(rule[column], known)
        if not _is_rate(rule["bitrate_kbps"]):
            yield f"{where}: bitrate_kbps is '{rule['bitrate_kbps']}', must be a number or *"


def _is_rate(text: Any) -> bool:
    try:
        return text == "*" or float(text) > 0
    except ValueError:
        return False


def _empty(problem: LiveVideo, frame: pd.DataFrame, table: str) -> list[str]:
    if problem.lost == "unserved":  # what has failed may have been all that a rule is of
        return []
    found = []
    for row, (objects, links) in enumerate(read(problem, frame)):
        what = "object" if not len(objects) else "link" if not len(links) else ""
        if what:
            found.append(f"{row_name(frame, table, row)}: there is no such {what}")
    return found


def _contradictions(problem: LiveVideo) -> Iterator[str]:
    pins = problem.pinned_links
    mask = problem.forbidden_pairs
    source = {int(cluster): s for s, cluster in enumerate(problem.sources)}
    into: dict[tuple[int, int], int] = {}
    for o, link in pins.tolist():
        name, over = problem.object_labels[o], problem.link_labels[link]
        tail, head = int(problem.tail[link]), int(problem.head[link])
        if mask is not None and mask[o, link]:
            yield f"{name} on {over} is both pinned and forbidden"
            return
        if (o, head) in into:
            other = problem.link_labels[into[o, head]]
            yield f"{name} is pinned to both {other} and {over}, but a cluster receives it once"
            return
        into[o, head] = link
        if tail in source and not problem.held[o, source[tail]]:
            at = problem.clusters["cluster"].iloc[tail]
            yield f"{name} is pinned to {over}, but source '{at}' does not hold it"
            return
