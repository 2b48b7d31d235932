"""Check of distribution trees against the problem, independent of the method that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.plan import Violations
from planner.errors import PlanRejected
from planner_models.livevideo.plan.plan import Trees, plan_rows
from planner_models.livevideo.problem.problem import LiveVideo

TOLERANCE: Final = 1e-9  # relative to a link's capacity: only sums of bitrates need rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Delivery:
    """Loads and served requests of a plan.

    object, link  (n,) object and link of each row of the plan
    load_mbps     (L,) load of each link
    served        (Q,) whether the tree of each request's object reaches its group
    """

    object: Ints
    link: Ints
    load_mbps: Floats
    served: Bools


def check(problem: LiveVideo, plan: Trees) -> Violations:
    """Return violations of capacities and of the rules on pinned and forbidden objects and links.

    raises  PlanRejected where the plan is no set of trees: unknown objects or links, a row twice, an
            object that a cluster receives twice, or sends without receiving or holding it
    """
    found = compute_delivery(problem, plan)
    load, capacity = found.load_mbps, problem.capacity_mbps
    over = np.flatnonzero(load > capacity * (1 + TOLERANCE))
    violations = Violations.of(
        "capacity",
        where=[problem.link_labels[link] for link in over],
        amount=load[over],
        allowed=capacity[over],
        unit="Mbit/s",
    )
    mask = problem.forbidden_pairs
    if mask is not None:
        rows = np.flatnonzero(mask[found.object, found.link])
        violations += Violations.of(
            "forbidden",
            where=[
                f"{problem.object_labels[found.object[row]]} on {problem.link_labels[found.link[row]]}"
                for row in rows
            ],
            amount=np.ones(len(rows)),
            allowed=np.zeros(len(rows)),
            unit="",
        )
    missing = problem.pinned_requests[~found.served[problem.pinned_requests]]
    carried = set(zip(found.object.tolist(), found.link.tolist(), strict=True))
    absent = [(o, link) for o, link in problem.pinned_links.tolist() if (o, link) not in carried]
    where = [
        f"{problem.object_labels[problem.object[q]]} to {problem.requests['group'].iloc[q]}" for q in missing
    ] + [f"{problem.object_labels[o]} on {problem.link_labels[link]}" for o, link in absent]
    return violations + Violations.of(
        "pinned", where=where, amount=np.zeros(len(where)), allowed=np.ones(len(where)), unit=""
    )


def compute_delivery(problem: LiveVideo, plan: Trees) -> Delivery:
    """Return loads and served requests of a plan.

    raises  PlanRejected where the plan is no set of trees
    """
    item, link = plan_rows(problem, plan)
    for rows, kind in ((item, "object"), (link, "link")):
        if (rows < 0).any():
            row = int(np.flatnonzero(rows < 0)[0])
            line = plan.trees.iloc[row]
            name = (
                f"channel '{line['channel']}' at {line['bitrate_kbps']:g} kbit/s"
                if kind == "object"
                else f"{line['tail']}->{line['head']}"
            )
            raise PlanRejected(f"trees row {row + 1}: {name} is no {kind} of the problem")
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
    holds[at_source] = problem.is_at_source[item[at_source], source[at_source]]
    has = np.where(at_source, holds, np.isin(item * count + tail, receives))
    if not has.all():
        row = int(np.flatnonzero(~has)[0])
        name = problem.clusters["cluster"].iloc[tail[row]]
        why = "does not hold" if at_source[row] else "does not receive"
        raise PlanRejected(f"trees row {row + 1}: {name} {why} {problem.object_labels[item[row]]}")
    load = np.bincount(link, weights=problem.bitrate_mbps[item], minlength=len(problem.links))
    served = np.isin(problem.object * count + problem.group, receives)
    return Delivery(object=item, link=link, load_mbps=load.astype(float), served=served)


def served_without_overload(problem: LiveVideo, found: Delivery) -> Bools:
    """Return the requests served over links without overload, (Q,)."""
    over = found.load_mbps > problem.capacity_mbps * (1 + TOLERANCE)
    if not over.any():
        return found.served
    count = len(problem.clusters)
    level = problem.level[problem.tail[found.link]]
    intact = np.zeros(0, dtype=np.int64)  # keys of (object, cluster) served without overload
    for step in range(problem.group_level):
        item, link = found.object[level == step], found.link[level == step]
        is_intact = ~over[link]
        if step:
            is_intact &= np.isin(item * count + problem.tail[link], intact)
        intact = item[is_intact] * count + problem.head[link[is_intact]]
    return np.asarray(np.isin(problem.object * count + problem.group, intact))
