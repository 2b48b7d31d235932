"""Overlay Multicast: each channel takes the best trees for itself alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.livevideo.designs.admission import admit_pinned, conclude
from planner_models.livevideo.designs.channel_order import order_by_first_request
from planner_models.livevideo.designs.tree import steiner
from planner_models.livevideo.plan.plan import Trees
from planner_models.livevideo.plan.streams import SLACK, Streams
from planner_models.livevideo.problem.problem import LiveVideo


def distribute(
    problem: LiveVideo,
    *,
    sees_load: Annotated[
        bool, Field(description="each channel observes the load of those before it, instead of none")
    ] = True,
    order: Annotated[
        Literal["arrival", "table", "random", "requests"],
        Field(
            description="order of channels: by first request, as in the table, or random; in the last two, "
            "the highest bitrate of a channel comes first. By requests, trees grow by one request after the "
            "other, in the order of arrival"
        ),
    ] = "arrival",
    seed: Annotated[int, Field(ge=0, description="seed of the random order")] = 0,
    options: Options = Options(),
) -> Decision[Trees]:
    """Admit the best trees for each channel alone, one channel after the other.

    A channel finds its best tree on residual capacities, which starves later channels. In the order of
    requests, each request extends the tree of its object by the best path, and nothing is rearranged; early
    requests of all channels then starve later ones. Without `sees_load` a channel plans for an empty network;
    branches over a full link are cut. Trees of up to 8 groups are optimal, larger ones go path by path.

    source  Mukerjee 2018, section 4.7.1
    """
    streams = admit_pinned(problem, options)
    if isinstance(streams, Decision):
        return streams
    holders: dict[int, list[int]] = {}  # clusters that receive an object
    for item, cluster in streams.parent:
        holders.setdefault(item, []).append(cluster)
    into = np.argsort(problem.head, kind="stable")
    first = np.searchsorted(problem.head[into], np.arange(len(problem.clusters) + 1))
    mask = problem.forbidden_pairs
    for item, rows in _order_requests(problem, order, seed):
        has_object = np.zeros(len(problem.clusters), dtype=bool)
        has_object[problem.sources[problem.is_at_source[item]]] = True
        has_object[holders.get(item, [])] = True
        rows = rows[~has_object[problem.group[rows]]]
        if not len(rows):
            continue
        rate = float(problem.bitrate_mbps[item])
        capacity = streams.residual_mbps if sees_load else problem.capacity_mbps
        usable = capacity >= rate * (1 - SLACK)
        if mask is not None:
            usable &= ~mask[item]
        instance: tuple[Any, ...] = (problem.group[rows], problem.value[rows], problem.cost_weight * rate)
        instance += (first, into, problem.tail, problem.cost, has_object, usable)
        solve = steiner.solve_tree if len(rows) <= steiner.MAX_EXACT_GROUPS else steiner.build_tree
        links = solve(*instance).tolist()
        if sees_load:
            for link in links:
                streams.add(item, link)
        else:
            _admit_branches(streams, item, links, problem.group[rows].tolist())
        heads = (streams.head[link] for link in links)
        holders.setdefault(item, []).extend(head for head in heads if streams.has(item, head))
    return conclude(streams)


def _order_requests(problem: LiveVideo, order: str, seed: int) -> Iterator[tuple[int, Ints]]:
    """Yield object and requests, by row, of each tree in the order in which trees are found."""
    if order == "requests":
        for row in np.argsort(problem.arrival_s, kind="stable"):
            yield int(problem.object[row]), np.array([row])
        return
    requests = np.argsort(problem.object, kind="stable")
    ends = np.searchsorted(problem.object[requests], np.arange(len(problem.objects) + 1))
    for item in _order_objects(problem, order, seed).tolist():
        yield item, requests[ends[item] : ends[item + 1]]


def _order_objects(problem: LiveVideo, order: str, seed: int) -> Ints:
    """Return the objects, (O,), in the order in which their trees are found."""
    if order == "arrival":
        return order_by_first_request(problem)
    channel, count = problem.channel_number, problem.channel_number.max(initial=-1) + 1
    rank = np.full(count, len(channel))
    np.minimum.at(rank, channel, np.arange(len(channel)))
    if order == "random":
        rank = np.random.default_rng(seed).permutation(count)
    return np.lexsort((-problem.bitrate_mbps, rank[channel]))


def _admit_branches(streams: Streams, item: int, links: list[int], groups: list[int]) -> None:
    """Send the object down the branches of a tree that fit as a whole, group by group."""
    parent = {streams.head[link]: link for link in links}
    for group in groups:
        path: list[int] = []
        cluster = group
        while not streams.has(item, cluster) and cluster in parent:
            path.append(parent[cluster])
            cluster = streams.tail[path[-1]]
        if streams.has(item, cluster) and all(streams.fits(item, link) for link in path):
            streams.add_path(item, path[::-1])
