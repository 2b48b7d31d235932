"""Overlay Multicast: each channel takes its own best trees, as if it were alone."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.livevideo import pins, steiner
from planner_models.livevideo.outcome import decided
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.streams import SLACK, Streams
from planner_models.livevideo.trees import Trees


def distribute(
    problem: LiveVideo,
    *,
    sees_load: Annotated[
        bool, Field(description="each channel knows what room those before it have left, instead of none")
    ] = True,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,  # noqa: ARG001
) -> Decision[Trees]:
    """The best trees for each channel alone, admitted in the order of their first requests.

    A channel looks for its best tree on what those before it have left, which starves later ones.
    Without `sees_load` it looks as if the network were empty; branches that find a link full are cut.
    Trees of up to 8 groups are the best there are, larger ones are grown path by path.

    source  Mukerjee 2018, section 4.7.1
    """
    streams = pins.laid(problem, options)
    if isinstance(streams, Decision):
        return streams
    carried: dict[int, list[int]] = {}  # by the pinned streams
    for item, cluster in streams.parent:
        carried.setdefault(item, []).append(cluster)
    first_s = np.full(len(problem.objects), np.inf)
    np.minimum.at(first_s, problem.object, problem.arrival_s)
    requests = np.argsort(problem.object, kind="stable")
    ends = np.searchsorted(problem.object[requests], np.arange(len(problem.objects) + 1))
    into = np.argsort(problem.head, kind="stable")
    first = np.searchsorted(problem.head[into], np.arange(len(problem.clusters) + 1))
    mask = problem.forbidden_pairs
    _, channel = np.unique(problem.objects["channel"].to_numpy(), return_inverse=True)
    of_channel = np.full(channel.max(initial=-1) + 1, np.inf)
    np.minimum.at(of_channel, channel, first_s)
    for item in np.lexsort((first_s, of_channel[channel])).tolist():
        have = np.zeros(len(problem.clusters), dtype=bool)
        have[problem.sources[problem.held[item]]] = True
        have[carried.get(item, [])] = True
        mine = requests[ends[item] : ends[item + 1]]
        mine = mine[~have[problem.group[mine]]]
        if not len(mine):
            continue
        room = streams.room_mbps if sees_load else problem.capacity_mbps
        usable = room >= problem.bitrate_mbps[item] * (1 - SLACK)
        if mask is not None:
            usable &= ~mask[item]
        rate = float(problem.bitrate_mbps[item])
        given: tuple[Any, ...] = (problem.group[mine], problem.value[mine], problem.cost_weight * rate)
        given += (first, into, problem.tail, problem.cost, have, usable)
        links = steiner.exact(*given) if len(mine) <= steiner.EXACT else steiner.grown(*given)
        if sees_load:
            for link in links.tolist():
                streams.add(item, link)
        else:
            _admit(streams, item, links.tolist(), problem.group[mine].tolist())
    return decided(streams)


def _admit(streams: Streams, item: int, links: list[int], groups: list[int]) -> None:
    """Send the object down the tree's branches that fit whole, group by group."""
    parent = {streams.head[link]: link for link in links}
    for group in groups:
        path: list[int] = []
        cluster = group
        while not streams.has(item, cluster) and cluster in parent:
            path.append(parent[cluster])
            cluster = streams.tail[path[-1]]
        if streams.has(item, cluster) and all(streams.fits(item, link) for link in path):
            streams.add_path(item, path[::-1])
