"""Everything Everywhere: every object to every edge, so that clients can take the nearest edge."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.livevideo.designs.admission import admit_pinned, conclude, order_by_first_request
from planner_models.livevideo.plan.plan import Streams, Trees
from planner_models.livevideo.problem.problem import LiveVideo


def distribute(
    problem: LiveVideo,
    *,
    order: Annotated[
        Literal["random", "arrival", "channels", "table"],
        Field(
            description="order in which objects are sent: random, by first request, by the first request of "
            "their channel, or as in the table"
        ),
    ] = "random",
    seed: Annotated[int, Field(ge=0, description="seed of the random order")] = 0,
    options: Options = Options(),
) -> Decision[Trees]:
    """Send every requested object to every edge that has residual capacity; groups use their nearest edge.

    Objects come one after the other, each to every cluster of each tier, over the cheapest link with
    residual capacity from a cluster that has it. Objects after a time limit are sent nowhere.

    source  Mukerjee 2018, section 4.7.1
    """
    deadline = Deadline.of(options)
    streams = admit_pinned(problem, options)
    if isinstance(streams, Decision):
        return streams
    by_level = [np.flatnonzero(problem.level == step).tolist() for step in range(len(problem.tiers))]
    cost = problem.cost.tolist()
    items = _order_objects(problem, order, seed)
    is_cut = False
    for item in items.tolist():
        if deadline.is_over:
            is_cut = True
            break
        _send_everywhere(streams, item, by_level, cost)
    for item, group in zip(problem.object.tolist(), problem.group.tolist(), strict=True):
        if not streams.into[group] or streams.has(item, group):
            continue
        nearest = streams.nearest[group][0]
        if streams.has(item, streams.tail[nearest]) and streams.can_carry(item, nearest):
            streams.add(item, nearest)
    return conclude(streams, is_cut=is_cut)


def _send_everywhere(streams: Streams, item: int, by_level: list[list[int]], cost: list[float]) -> None:
    """Send an object to every cluster that it can reach, tier by tier, over the cheapest links.

    by_level  clusters of each tier
    cost      of each link
    """
    for clusters in by_level[1:-1]:
        for cluster in clusters:
            if streams.has(item, cluster):
                continue
            usable = [
                link
                for link in streams.into[cluster]
                if streams.has(item, streams.tail[link]) and streams.can_carry(item, link)
            ]
            if usable:
                streams.add(item, min(usable, key=lambda link: (cost[link], link)))


def _order_objects(problem: LiveVideo, order: str, seed: int) -> Ints:
    """Return the requested objects in the order in which they are sent."""
    if order == "arrival":
        arrived = problem.object[np.argsort(problem.arrival_s, kind="stable")]
        items, first = np.unique(arrived, return_index=True)
        return items[np.argsort(first)]
    if order == "channels":
        items = order_by_first_request(problem)
        return items[np.isin(items, problem.object)]
    items = np.unique(problem.object)
    return items if order == "table" else np.random.default_rng(seed).permutation(items)
