"""Checks distribution trees against the raw problem; knows the rules, not the method that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.errors import PlanRejected
from planner.system import Violations
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import Trees, rows_of

TOLERANCE: Final = 1e-9  # of a link's capacity: bitrates only need adding up


@dataclass(frozen=True, kw_only=True, eq=False)
class Delivered:
    """What trees carry, read back from their table.

    object, link  (n,) of each row
    load_mbps     (L,)
    served        (Q,) whether the tree of each request's object reaches its group
    """

    object: NDArray[np.int64]
    link: NDArray[np.int64]
    load_mbps: NDArray[np.float64]
    served: NDArray[np.bool_]


def check(problem: LiveVideo, plan: Trees) -> Violations:
    """Links above their capacity, and rules on pinned and forbidden links and objects that are broken.

    PlanRejected where the plan is no set of trees: unknown objects or links, a row twice, an object
    that a cluster receives twice, or sends without receiving or holding it.
    """
    found = delivered(problem, plan)
    load, allowed = found.load_mbps, problem.capacity_mbps
    over = np.flatnonzero(load > allowed * (1 + TOLERANCE))
    broken = Violations.of(
        "capacity",
        where=[problem.link_labels[link] for link in over],
        amount=load[over],
        allowed=allowed[over],
        unit="Mbit/s",
    )
    mask = problem.forbidden_pairs
    if mask is not None:
        wrong = np.flatnonzero(mask[found.object, found.link])
        broken += Violations.of(
            "forbidden",
            where=[
                f"{problem.object_labels[found.object[row]]} on {problem.link_labels[found.link[row]]}"
                for row in wrong
            ],
            amount=np.ones(len(wrong)),
            allowed=np.zeros(len(wrong)),
            unit="",
        )
    missing = problem.pinned_requests[~found.served[problem.pinned_requests]]
    carried = set(zip(found.object.tolist(), found.link.tolist(), strict=True))
    absent = [(o, link) for o, link in problem.pinned_links.tolist() if (o, link) not in carried]
    where = [
        f"{problem.object_labels[problem.object[q]]} to {problem.requests['group'].iloc[q]}" for q in missing
    ] + [f"{problem.object_labels[o]} on {problem.link_labels[link]}" for o, link in absent]
    return broken + Violations.of(
        "pinned", where=where, amount=np.zeros(len(where)), allowed=np.ones(len(where)), unit=""
    )


def delivered(problem: LiveVideo, plan: Trees) -> Delivered:
    """Loads and served requests, once the plan is proven to be trees; PlanRejected otherwise."""
    item, link = rows_of(problem, plan)
    for places, what in ((item, "object"), (link, "link")):
        if (places < 0).any():
            row = int(np.flatnonzero(places < 0)[0])
            line = plan.trees.iloc[row]
            name = (
                f"channel '{line['channel']}' at {line['bitrate_kbps']:g} kbit/s"
                if what == "object"
                else f"{line['tail']}->{line['head']}"
            )
            raise PlanRejected(f"trees row {row + 1}: {name} is no {what} of the problem")
    count = len(problem.clusters)
    receives = item * count + problem.head[link]
    _, first, times = np.unique(receives, return_index=True, return_counts=True)
    if (times > 1).any():
        row = int(first[np.argmax(times > 1)])
        raise PlanRejected(
            f"trees: {problem.clusters['cluster'].iloc[problem.head[link[row]]]} receives "
            f"{problem.object_labels[item[row]]} {times.max()} times"
        )
    tail = problem.tail[link]
    at_source = problem.level[tail] == 0
    source = np.searchsorted(problem.sources, tail)
    holds = np.zeros(len(tail), dtype=bool)
    holds[at_source] = problem.held[item[at_source], source[at_source]]
    has = np.where(at_source, holds, np.isin(item * count + tail, receives))
    if not has.all():
        row = int(np.flatnonzero(~has)[0])
        name = problem.clusters["cluster"].iloc[tail[row]]
        why = "does not hold" if at_source[row] else "does not receive"
        raise PlanRejected(f"trees row {row + 1}: {name} {why} {problem.object_labels[item[row]]}")
    load = np.bincount(link, weights=problem.bitrate_mbps[item], minlength=len(problem.links))
    served = np.isin(problem.object * count + problem.group, receives)
    return Delivered(object=item, link=link, load_mbps=load.astype(float), served=served)


def intact(problem: LiveVideo, found: Delivered) -> NDArray[np.bool_]:
    """(Q,) served over links none of which carries more than it can."""
    over = found.load_mbps > problem.capacity_mbps * (1 + TOLERANCE)
    if not over.any():
        return found.served
    count = len(problem.clusters)
    level = problem.level[problem.tail[found.link]]
    good = np.zeros(0, dtype=np.int64)  # (object, cluster) that receives over links that are not full
    for step in range(len(problem.tiers) - 1):
        at = level == step
        item, link = found.object[at], found.link[at]
        sound = ~over[link]
        if step:
            sound &= np.isin(item * count + problem.tail[link], good)
        good = item[sound] * count + problem.head[link[sound]]
    return np.asarray(np.isin(problem.object * count + problem.group, good))
