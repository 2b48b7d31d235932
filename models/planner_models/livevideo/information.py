"""Observed problems: requests with an age, capacities with measurement noise, clients merged by region.

A central controller decides for all on what it observes (`ControllerView`). Clusters know their own links
and requests, and hear of other clusters by announcements (`ClusterView`); what they report to a
controller is `ClusterView.controller_view`. `realize` says how plans on observed problems play out.

Realization of plans that were made on observed problems: clusters admit the load of true links.

Clusters refuse streams for which a link has no residual capacity, and forward nothing without a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import ndtri

from planner.arrays import Bools, Floats, Ints
from planner.contract.degradation import AgeS, GranularityKm, Noise, Seed
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner.errors import InputError
from planner_models import globe
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.plan import (
    PortsetTrees,
    Streams,
    Trees,
    build_waits,
    plan_rows,
    requests_by_arrival,
    restate,
)
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.tables import VideoTables
from planner_models.livevideo.problem.topology import EARTH_KM

WINDOW_S: Final = 60.0
DECISION_PERIOD_S: Final = 10.0  # default age of information of a central controller
OBJECT_BYTES: Final = NAME + FIGURE  # channel and bitrate
LINK_BYTES: Final = NAME + FIGURE  # other end of a link and its capacity
PlannedViewers = dict[tuple[int, str], dict[int, float]]
"""Viewers by object and group or region, and by edge."""
ANNOUNCEMENT_PERIOD_S: Final = 1.0  # between two announcements of a cluster (Mukerjee 2018, 4.4.2)


@dataclass(frozen=True, kw_only=True, eq=False)
class ControllerView(LiveVideo):
    """Problem as a central controller observes it.

    age_s    least time that the observed requests have waited for the controller
    regions  region of each group, by name; empty where groups are observed one by one
    """

    age_s: float = 0.0
    regions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterView(LiveVideo):
    """True problem, of which each cluster knows its own part and hears the rest by announcements.

    age_s, noise, granularity_km, seed  degradation of what a controller observes (`observe_centrally`)
    announcement_period_s               time between announcements of clusters to each other, or to DNS
    """

    age_s: float = 0.0
    noise: float = 0.0
    granularity_km: float = 0.0
    announcement_period_s: float = 0.0
    seed: int = 0

    @cached_property
    def controller_view(self) -> LiveVideo:
        """Problem as a controller observes it."""
        return observe_centrally(
            self, age_s=self.age_s, noise=self.noise, granularity_km=self.granularity_km, seed=self.seed
        )

    @cached_property
    def measurement_error_mbps(self) -> Floats:
        """(L,) measured minus true capacity of each link."""
        return measured_capacity_mbps(self, self.noise, self.seed) - self.capacity_mbps


def observe_centrally(
    problem: LiveVideo,
    *,
    age_s: AgeS = 0.0,
    noise: Noise = 0.0,
    granularity_km: GranularityKm = 0.0,
    seed: Seed = 0,
) -> LiveVideo:
    """Return the problem as a controller observes it from the reports of clusters.

    Age: requests of the window's last `age_s` seconds are unknown. Noise: the capacity of every link is
    multiplied by a lognormal factor of median 1; requests are counted, not measured (4.4.1). Granularity:
    clusters report the number of clients of a region that request an object (Table 4.1). A region is the
    groups in a square of the map; the links from an edge to these groups count as one. DNS sends clients
    of a region to an edge that has the object. Rules that name a group are then left to its edges.

    raises  InputError for a granularity where groups have no coordinates
    source  Mukerjee 2018, section 4.4.1 and Table 4.1
    """
    if age_s == 0 and noise == 0 and granularity_km == 0:
        return problem
    tables = _problem_fields(problem) | {"requests": problem.requests[~is_unreported(problem, age_s)]}
    if noise > 0:
        tables["links"] = problem.links.assign(capacity_mbps=measured_capacity_mbps(problem, noise, seed))
    regions: dict[str, str] = {}
    if granularity_km > 0:
        regions = _assign_regions(problem, granularity_km)
        tables |= _merge_regions(problem, tables, regions)
    return ControllerView(**tables, age_s=age_s, regions=regions)


def observe_with_age(
    problem: LiveVideo,
    *,
    age_s: AgeS = DECISION_PERIOD_S,
    noise: Noise = 0.0,
    granularity_km: GranularityKm = 0.0,
    seed: Seed = 0,
) -> LiveVideo:
    """Return `observe_centrally` for a controller that decides every few seconds."""
    return observe_centrally(problem, age_s=age_s, noise=noise, granularity_km=granularity_km, seed=seed)


def observe_hybrid(
    problem: LiveVideo,
    *,
    age_s: AgeS = DECISION_PERIOD_S,
    noise: Noise = 0.0,
    granularity_km: GranularityKm = 0.0,
    seed: Seed = 0,
) -> LiveVideo:
    """Return the problem of clusters that also report to a controller, which observes it degraded."""
    if age_s == 0 and noise == 0 and granularity_km == 0:
        return problem
    return ClusterView(
        **_problem_fields(problem), age_s=age_s, noise=noise, granularity_km=granularity_km, seed=seed
    )


def observe_announcements(
    problem: LiveVideo,
    *,
    age_s: Annotated[
        float, Field(ge=0, description="time between announcements of clusters, their largest age, s")
    ] = 0.0,
    noise: Noise = 0.0,
    seed: Seed = 0,
) -> LiveVideo:
    """Return the problem of clusters that announce residual capacities to each other, or to DNS.

    Announced capacities are as old as the last announcement and have measurement noise. A cluster knows
    the residual capacity of its own links.
    """
    if age_s == 0 and noise == 0:
        return problem
    return ClusterView(**_problem_fields(problem), announcement_period_s=age_s, noise=noise, seed=seed)


def window_end_s(problem: LiveVideo) -> float:
    """Return the end of the window: one minute, or the last arrival if later."""
    return max(WINDOW_S, float(problem.arrival_s.max(initial=0.0)))


def is_unreported(problem: LiveVideo, age_s: float) -> Bools:
    """Return whether each request arrives in the last `age_s` seconds of the window, (Q,)."""
    return np.asarray(problem.arrival_s > window_end_s(problem) - age_s)


def measured_capacity_mbps(problem: LiveVideo, noise: float, seed: int) -> Floats:
    """Return the measured capacity of each link, (L,)."""
    if noise == 0:
        return problem.capacity_mbps
    # the random number depends on the link's name: other links do not change its measurement
    names = np.array([f"{seed} {label}" for label in problem.link_labels], dtype=object)
    uniform = ((pd.util.hash_array(names, categorize=False) >> np.uint64(11)) + 0.5) / 2.0**53
    return np.asarray(problem.capacity_mbps * np.exp(noise * ndtri(uniform)))


def _problem_fields(problem: LiveVideo) -> dict[str, Any]:
    """Return the arguments from which `LiveVideo` builds the same problem."""
    return {field_.name: getattr(problem, field_.name) for field_ in fields(VideoTables)}


def _assign_regions(problem: LiveVideo, side_km: float) -> dict[str, str]:
    """Return the region of each group: the square of the map with its place."""
    groups = problem.clusters[problem.level == problem.group_level]
    if not {"latitude", "longitude"} <= set(groups.columns):
        raise InputError(
            "granularity_km: clusters have no latitude and longitude, so that there are no regions"
        )
    latitude, longitude = groups["latitude"].to_numpy(float), groups["longitude"].to_numpy(float)
    squares = globe.squares(latitude, longitude, side_km=side_km, radius_km=EARTH_KM)
    names = [f"region {row:.0f} {column:.0f}" for row, column in squares.tolist()]
    return dict(zip(groups["cluster"], names, strict=True))


def _merge_regions(problem: LiveVideo, tables: dict[str, Any], regions: dict[str, str]) -> dict[str, Any]:
    """Return the tables with regions in place of groups."""

    def merge(frame: pd.DataFrame, column: str, key: list[str], rules: Mapping[str, Any]) -> pd.DataFrame:
        region = frame[column].map(regions)
        merged = frame[region.notna()].assign(**{column: region.dropna()})
        merged = merged.groupby(key, sort=False, as_index=False).agg(rules)
        return pd.concat([frame[region.isna()], merged], ignore_index=True)

    clusters, requests = problem.clusters, tables["requests"]
    if "lowest_kbps" in requests:  # the regions' bitrate must please all of their clients
        requests = requests.assign(lowest_kbps=requests["lowest_kbps"].fillna(requests["bitrate_kbps"]))
    sums = {"clients": "sum", "lowest_kbps": "max", "arrival_s": "min"}
    return {
        "clusters": merge(
            clusters,
            "cluster",
            ["cluster"],
            {str(name): "first" if name == "tier" else "mean" for name in clusters if name != "cluster"},
        ),
        "links": merge(
            tables["links"],
            "head",
            ["tail", "head"],
            {
                "capacity_mbps": "sum",
                "cost": "mean",
                "latency_ms": "mean",
                **({"bill": "first"} if "bill" in tables["links"] else {}),
            },
        ),
        "requests": requests.assign(group=requests["group"].map(regions))
        .groupby(["group", "channel", "bitrate_kbps"], sort=False, as_index=False)
        .agg({name: rule for name, rule in sums.items() if name in requests}),
        **{
            name: tables[name][~tables[name]["head"].isin(list(regions))].reset_index(drop=True)
            for name in ("pinned", "forbidden")
        },
    }


def realize(truth: LiveVideo, observed: LiveVideo, plan: Trees) -> Trees:
    """Return the plan as it plays out: links refuse excess streams, in the order of the requests.

    Clients that were observed by region go to their nearest edge that has the object. Requests that are
    served have waited for the age of the controller's information. Decisions of clusters always fit.
    """
    if not isinstance(observed, ControllerView):
        return replace(plan, unserved=restate(truth, plan).unserved)
    if is_exact(truth, observed):
        admitted = restate(truth, plan)  # lists all requests that it does not serve
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
        self.names: list[str] = names.astype(str).tolist()
        self.planned = {} if plan.viewers is None else self._count_planned(truth, plan.viewers)

    def _count_planned(self, truth: LiveVideo, viewers: pd.DataFrame) -> PlannedViewers:
        """Return the planned viewers by edge, of each object and group or region, on a unicast last hop."""
        planned: PlannedViewers = {}
        item = truth.object_rows(viewers["channel"], viewers["bitrate_kbps"]).tolist()
        edge = truth.cluster_rows(viewers["edge"]).tolist()
        groups, clients = viewers["group"].astype(str).tolist(), viewers["clients"].tolist()
        for o, name, source, count in zip(item, groups, edge, clients, strict=True):
            planned.setdefault((o, name), {})[source] = count
        return planned

    def planned_viewers(self, item: int, group: int) -> dict[int, float]:
        """Return the planned viewers of a group, or of its region, who are not served yet, by edge."""
        return self.planned.get((item, self.region.get(group, self.names[group])), {})

    def is_planned(self, item: int, group: int) -> bool:
        """Return whether the plan brings an object to a group, or to its region."""
        if self.streams.problem.is_unicast:
            return any(self.planned_viewers(item, group).values())
        if group in self.region:
            return (item, self.region[group]) in self.served_regions
        return (item, group) in self.parent

    def links_into(self, item: int, group: int) -> list[int]:
        """Return the links over which a group may receive an object.

        The planned link; for a group in a region, the links from edges that receive it, nearest first. Where
        the last hop is unicast, the links from edges with planned viewers.
        """
        if self.streams.problem.is_unicast:
            edges = self.planned_viewers(item, group)
            nearest = self.streams.nearest[group]
            return [link for link in nearest if edges.get(self.streams.tail[link], 0.0) > 0]
        if group not in self.region:
            return [self.parent[item, group]]
        streams = self.streams
        tails = [(link, streams.tail[link]) for link in streams.nearest[group]]
        return [link for link, edge in tails if streams.has(item, edge) or (item, edge) in self.parent]

    def send(self, item: int, links: Iterable[int]) -> bool:
        """Send the object over the first link to which its planned path fits; return whether one does.

        Where the last hop is unicast: over all of the links, to the planned viewers who fit; return whether
        all of them do.
        """
        streams = self.streams
        is_complete = streams.problem.is_unicast
        for link in links:
            path: list[int] = [link]
            cluster = streams.tail[link]
            while not streams.has(item, cluster) and (item, cluster) in self.parent:
                path.append(self.parent[item, cluster])
                cluster = streams.tail[path[-1]]
            fits = streams.has(item, cluster) and all(streams.can_carry(item, used) for used in path)
            if not streams.is_unicast_link[link]:
                if fits:
                    streams.add_path(item, path[::-1])
                    return True
                continue
            planned = self.planned_viewers(item, streams.head[link])
            edge = streams.tail[link]
            clients = min(planned[edge], streams.count_fitting(item, link)) if fits else 0.0
            if clients:
                streams.add_path(item, path[::-1], clients)
            waiting = streams.waiting[item, streams.head[link]]
            is_complete &= clients == planned[edge] or waiting == 0
            planned[edge] -= clients
        return is_complete


def count_central(problem: LiveVideo, plan: Trees) -> Signalling:
    """Count reports of clusters to one controller, and its decisions to clusters and DNS.

    Clusters report their links and requests; the controller sends next hops, and the edge of each client.

    source  Mukerjee 2018, sections 4.3.1 and 4.4.1, Table 4.1
    """
    return _count_reports(problem) + _count_decisions(problem, plan)


def count_per_channel(problem: LiveVideo, plan: Trees) -> Signalling:
    """Count as `count_central`, with one controller for each requested channel.

    source  Mukerjee 2018, section 4.7.1 (Overlay Multicast)
    """
    channel = problem.channel_number
    controllers = len(np.unique(channel[problem.object]))
    return _count_reports(problem, controllers) + _count_decisions(problem, plan, channel)


def count_distributed(problem: LiveVideo, plan: Trees) -> Signalling:
    """Count the announcements of each cluster to those one tier down, every second.

    An announcement has a row for each object that the cluster receives, from the first request on, and
    one row for all others: distance and path capacity (Table 4.2).

    source  Mukerjee 2018, section 4.4.2
    """
    rounds = int(window_end_s(problem) // ANNOUNCEMENT_PERIOD_S)
    inner = problem.level[problem.head] < problem.group_level  # groups hear no announcements
    below = np.bincount(problem.tail[inner], minlength=len(problem.clusters))
    _, cluster, since_s = _first_requests(problem, plan)
    rows = np.clip(rounds - np.floor(since_s / ANNOUNCEMENT_PERIOD_S), 0, None) * below[cluster]
    messages = int(inner.sum()) * rounds
    return Signalling(
        messages=messages,
        bytes=int(messages * 2 * FIGURE + rows.sum() * (OBJECT_BYTES + 2 * FIGURE)),
    )


def count_hybrid(problem: LiveVideo, plan: Trees) -> Signalling:
    """Count as `count_central` and `count_distributed` together."""
    return count_central(problem, plan) + count_distributed(problem, plan)


def count_dns(ttl_s: float) -> Callable[[LiveVideo, Trees], Signalling]:
    """Return a function that counts reports to monitors, once a window, and DNS queries.

    ttl_s   lifetime of an answer
    source  Mukerjee 2018, sections 4.2.1 and 4.7.1
    """
    return partial(_count_dns, ttl_s=ttl_s)


def _count_dns(problem: LiveVideo, plan: Trees, *, ttl_s: float) -> Signalling:
    """Count for `count_dns`. A query names a channel, an answer a cluster and its lifetime.

    Each cluster on a request's path queries without a valid answer; denied requests query once. Where DNS
    answers for portsets (`PortsetTrees`), channels of a portset share answers.
    """
    item, _, _ = _first_requests(problem, plan)
    reports = Signalling(
        messages=int(_is_cluster(problem).sum()),
        bytes=int(len(problem.links) * LINK_BYTES + len(item) * OBJECT_BYTES),
    )
    names = problem.channel_number
    channel = (plan.portset[names] if isinstance(plan, PortsetTrees) else names).tolist()
    planned, current = Streams(problem), Streams(problem)
    planned.add_plan(plan)
    answered_s: dict[tuple[int, int], float] = {}
    queries = 0
    for o, group, time in requests_by_arrival(problem):
        if current.has(o, group):
            continue
        path = planned.path(o, group, up_to=current) if planned.links_into(o, group) else []
        for cluster in [current.head[link] for link in path] or [group]:
            key = (channel[o], cluster)
            if time - answered_s.get(key, -np.inf) >= ttl_s:
                answered_s[key] = time
                queries += 1
        current.add_path(o, path)
    return reports + Signalling(messages=2 * queries, bytes=queries * (2 * NAME + FIGURE))


def _is_cluster(problem: LiveVideo) -> Bools:
    """Return whether each cluster is above the groups, (C,)."""
    return np.asarray(problem.level < problem.group_level)


def _count_reports(problem: LiveVideo, controllers: int = 1) -> Signalling:
    """Count reports of every link, with other end and capacity, to each controller, and of every request."""
    requests = len(problem.requests) * (NAME + OBJECT_BYTES + FIGURE)
    return Signalling(
        messages=int(_is_cluster(problem).sum()) * controllers,
        bytes=len(problem.links) * LINK_BYTES * controllers + requests,
    )


def _count_decisions(problem: LiveVideo, plan: Trees, controller: Ints | None = None) -> Signalling:
    """Count decisions: next hops with a version to each cluster that receives any object, edges to DNS.

    controller  (O,) controller of each object; default: one for all
    """
    delivery = compute_delivery(problem, plan)
    head = problem.head[delivery.link]
    inner = problem.level[head] < problem.group_level
    sender = np.zeros(len(head), dtype=np.int64) if controller is None else controller[delivery.object]
    to_clusters = len(np.unique(sender[inner] * len(problem.clusters) + head[inner]))
    to_dns = len(np.unique(sender[~inner]))
    hops, clients = int(inner.sum()), int((~inner).sum())
    to_client = (
        OBJECT_BYTES + 2 * NAME + (FIGURE if problem.is_unicast else 0)
    )  # unicast: and how many viewers
    return Signalling(
        messages=to_clusters + to_dns,
        bytes=to_clusters * FIGURE + hops * (OBJECT_BYTES + NAME) + clients * to_client,
    )


def _first_requests(problem: LiveVideo, plan: Trees) -> tuple[Ints, Ints, Floats]:
    """Return each object that a cluster receives: object, cluster, and time of its first request there."""
    planned = Streams(problem)
    planned.add_plan(plan)
    first_s: dict[tuple[int, int], float] = {}
    for o, group, time in requests_by_arrival(problem):
        for link in planned.links_into(o, group):
            cluster = planned.tail[link]
            while planned.level[cluster] > 0 and (o, cluster) not in first_s:  # else those above have it too
                first_s[o, cluster] = time
                cluster = planned.tail[planned.parent[o, cluster]]
    item, cluster_of = (np.array([key[i] for key in first_s], dtype=np.int64) for i in range(2))
    return item, cluster_of, np.array(list(first_s.values()), dtype=float)
