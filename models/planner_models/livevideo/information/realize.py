"""Realization of plans that were made on observed problems: clusters admit the load of true links.

Clusters refuse streams for which a link has no residual capacity, and forward nothing without a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from planner.arrays import Ints
from planner_models.livevideo.information.observe import ControllerView
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.plan import Trees, build_plan, build_waits, plan_rows
from planner_models.livevideo.plan.streams import Streams
from planner_models.livevideo.problem.problem import LiveVideo


def realize(truth: LiveVideo, observed: LiveVideo, plan: Trees) -> Trees:
    """Return the plan as it plays out: links refuse excess streams, in the order of the requests.

    Clients that were observed by region go to their nearest edge that has the object. Requests that are
    served have waited for the age of the controller's information. Decisions of clusters always fit.
    """
    if not isinstance(observed, ControllerView):
        return replace(plan, unserved=build_plan(truth, *plan_rows(truth, plan)).unserved)
    if is_exact(truth, observed):
        admitted = build_plan(truth, *plan_rows(truth, plan))  # lists all requests that it does not serve
    else:
        admitted = admit_plan(truth, observed, plan)[0].plan()
    if observed.age_s == 0:
        return admitted
    served = compute_delivery(truth, admitted).served
    return replace(admitted, waits=build_waits(truth, np.flatnonzero(served), observed.age_s))


def is_exact(truth: LiveVideo, observed: LiveVideo) -> bool:
    """Return whether the observed network equals the true one."""
    if isinstance(observed, ControllerView) and observed.regions:
        return False
    return np.array_equal(truth.capacity_mbps, observed.capacity_mbps) and (
        truth.link_labels == observed.link_labels
    )


def admit_plan(truth: LiveVideo, observed: LiveVideo, plan: Trees) -> tuple[Streams, Ints]:
    """Return the streams of a plan that fit in truth, and the requests that were planned but refused.

    Pinned streams go first, then requests by arrival; branches without a request stay empty.
    """
    streams = Streams(truth)
    paths = _PlannedPaths(truth, observed, plan, streams)
    for item, link in truth.pinned_links.tolist():
        if paths.parent.get((item, streams.head[link])) == link:
            paths.send(item, [link])
    order = np.argsort(truth.arrival_s, kind="stable")
    is_pinned = np.isin(order, truth.pinned_requests)
    refused, denied = [], []
    for q in np.concatenate([order[is_pinned], order[~is_pinned]]).tolist():
        item, group = int(truth.object[q]), int(truth.group[q])
        if streams.has(item, group):
            continue
        if not paths.is_planned(item, group):
            denied.append(q)
        elif not paths.send(item, paths.links_into(item, group)):
            refused.append(q)
    for q in denied:  # clients that were denied, and for whom a lower bitrate is planned
        item, group = int(truth.lower_object[truth.object[q]]), int(truth.group[q])
        while item >= 0 and not streams.has(item, group):
            if paths.is_planned(item, group) and paths.send(item, paths.links_into(item, group)):
                break
            item = int(truth.lower_object[item])
    return streams, np.array(refused, dtype=np.int64)


class _PlannedPaths:
    """Paths of a plan to clusters and groups, on the true links."""

    def __init__(self, truth: LiveVideo, observed: LiveVideo, plan: Trees, streams: Streams) -> None:
        self.streams = streams
        item, used = plan_rows(truth, plan)
        rows = zip(item.tolist(), used.tolist(), strict=True)
        self.parent = {(o, streams.head[link]): link for o, link in rows if link >= 0}
        regions = observed.regions if isinstance(observed, ControllerView) else {}
        names = truth.clusters["cluster"]
        self.region = {c: regions[name] for c, name in enumerate(names) if name in regions}
        self.served_regions = set(zip(item.tolist(), plan.trees["head"].astype(str), strict=True))

    def is_planned(self, item: int, group: int) -> bool:
        """Return whether the plan brings an object to a group, or to its region."""
        if group in self.region:
            return (item, self.region[group]) in self.served_regions
        return (item, group) in self.parent

    def links_into(self, item: int, group: int) -> list[int]:
        """Return the links over which a group may receive an object.

        The planned link; for a group in a region, the links from edges that receive it, nearest first.
        """
        if group not in self.region:
            return [self.parent[item, group]]
        streams = self.streams
        edges = [(link, streams.tail[link]) for link in streams.nearest[group]]
        return [link for link, edge in edges if streams.has(item, edge) or (item, edge) in self.parent]

    def send(self, item: int, links: Iterable[int]) -> bool:
        """Send the object over the first link to which its planned path fits; return whether one does."""
        streams = self.streams
        for link in links:
            path: list[int] = [link]
            cluster = streams.tail[link]
            while not streams.has(item, cluster) and (item, cluster) in self.parent:
                path.append(self.parent[item, cluster])
                cluster = streams.tail[path[-1]]
            if streams.has(item, cluster) and all(streams.can_carry(item, used) for used in path):
                streams.add_path(item, path[::-1])
                return True
        return False
