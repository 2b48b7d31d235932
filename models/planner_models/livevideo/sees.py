"""What control planes believe: requests told late, capacities badly measured, clients told by region.

Two kinds of control plane are told something. A controller decides for everybody on what it is told
(`Told`). Clusters know their own links and the requests that come to them, and are told how far others
are (`Reporting`); what they in turn tell a controller is `Reporting.told`. How plans made on beliefs play
out in truth is in `admission`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import ndtri

from planner.errors import InputError
from planner_models import globe
from planner_models.livevideo.cities import EARTH_KM
from planner_models.livevideo.problem import LiveVideo

Age = Annotated[
    float, Field(ge=0, description="seconds by which the controller's knowledge of requests is old")
]
Noise = Annotated[
    float, Field(ge=0, description="standard deviation of the logarithm of each link's measured capacity")
]
Grain = Annotated[
    float,
    Field(
        ge=0,
        description="groups within squares of this side, km, are told to the controller as one, and their "
        "clients sent to an edge that has the object by DNS; 0: group by group",
    ),
]
Seed = Annotated[int, Field(ge=0, description="seed of the noise")]

WINDOW_S: Final = 60.0
DECIDES_S: Final = 10.0
"""Age of what a central controller knows unless said otherwise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Told(LiveVideo):
    """The problem as a controller is told of it.

    age_s    how long the requests that it knows have waited for it, at least
    regions  the region that each group is told in, by name; empty where groups are told one by one
    """

    age_s: float = 0.0
    regions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reporting(LiveVideo):
    """The problem as it is, each cluster seeing its own part, and how well clusters tell others of it.

    age_s, noise, grain_km, seed  as `told` says, of what a controller is told
    announced_s                   seconds between what clusters announce to each other, or to DNS
    """

    age_s: float = 0.0
    noise: float = 0.0
    grain_km: float = 0.0
    announced_s: float = 0.0
    seed: int = 0

    @cached_property
    def told(self) -> LiveVideo:
        """What a controller is told."""
        return told(self, age_s=self.age_s, noise=self.noise, grain_km=self.grain_km, seed=self.seed)

    @cached_property
    def error_mbps(self) -> NDArray[np.float64]:
        """(L,) by how much more than its capacity each link is measured to have."""
        return measured_mbps(self, self.noise, self.seed) - self.capacity_mbps


def told(
    problem: LiveVideo, *, age_s: Age = 0.0, noise: Noise = 0.0, grain_km: Grain = 0.0, seed: Seed = 0
) -> LiveVideo:
    """The problem as a controller is told of it, by clusters that count their own requests.

    Age: requests of the window's last `age_s` seconds are not known yet. Noise: every link's capacity
    times a lognormal factor of median 1; requests are counted, not measured (4.4.1). Grain: clusters
    tell how many clients of a region ask for an object (Table 4.1), a region being the groups in a square
    of the map; the links from an edge to these groups count as one. Rules that name a group are left to
    its edges then.

    raises  InputError for a grain where groups have no places
    source  Mukerjee 2018, section 4.4.1 and Table 4.1
    """
    if age_s == 0 and noise == 0 and grain_km == 0:
        return problem
    tables: dict[str, Any] = {
        "clusters": problem.clusters,
        "links": problem.links,
        "objects": problem.objects,
        "requests": problem.requests[~late(problem, age_s)],
        "holders": problem.holders,
        "pinned": problem.pinned,
        "forbidden": problem.forbidden,
        "settings": problem.settings,
    }
    if noise > 0:
        tables["links"] = problem.links.assign(capacity_mbps=measured_mbps(problem, noise, seed))
    regions: dict[str, str] = {}
    if grain_km > 0:
        regions = _regions(problem, grain_km)
        tables |= _by_region(problem, tables, regions)
    # what a bad measurement makes too narrow for everything goes unserved
    return Told(**tables, lost="unserved", age_s=age_s, regions=regions)


def told_late(
    problem: LiveVideo, *, age_s: Age = DECIDES_S, noise: Noise = 0.0, grain_km: Grain = 0.0, seed: Seed = 0
) -> LiveVideo:
    """As `told`, to a controller that decides every few seconds."""
    return told(problem, age_s=age_s, noise=noise, grain_km=grain_km, seed=seed)


def reported(
    problem: LiveVideo, *, age_s: Age = DECIDES_S, noise: Noise = 0.0, grain_km: Grain = 0.0, seed: Seed = 0
) -> LiveVideo:
    """The problem as it is to clusters that report to a controller; it believes what `told` says."""
    if age_s == 0 and noise == 0 and grain_km == 0:
        return problem
    return Reporting(**_tables(problem), age_s=age_s, noise=noise, grain_km=grain_km, seed=seed)


def announced(
    problem: LiveVideo,
    *,
    age_s: Annotated[
        float, Field(ge=0, description="seconds between what clusters announce, so that it is at most so old")
    ] = 0.0,
    noise: Noise = 0.0,
    seed: Seed = 0,
) -> LiveVideo:
    """The problem as it is to clusters that announce the room on their links to others, or to DNS.

    What is announced is as old as the last announcement, of capacities as measured. On its own links a
    cluster sees what fits.
    """
    if age_s == 0 and noise == 0:
        return problem
    return Reporting(**_tables(problem), announced_s=age_s, noise=noise, seed=seed)


def end_s(problem: LiveVideo) -> float:
    """The end of the window: a minute, or more where requests come later."""
    return max(WINDOW_S, float(problem.arrival_s.max(initial=0.0)))


def late(problem: LiveVideo, age_s: float) -> NDArray[np.bool_]:
    """(Q,) the requests of the window's last `age_s` seconds, of which nobody has told yet."""
    return np.asarray(problem.arrival_s > end_s(problem) - age_s)


def measured_mbps(problem: LiveVideo, noise: float, seed: int) -> NDArray[np.float64]:
    """(L,) the capacity of each link as measured."""
    if noise == 0:
        return problem.capacity_mbps
    # chance goes by name: a link is measured alike whatever other links there are
    names = np.array([f"{seed} {label}" for label in problem.link_labels], dtype=object)
    uniform = ((pd.util.hash_array(names, categorize=False) >> np.uint64(11)) + 0.5) / 2.0**53
    return np.asarray(problem.capacity_mbps * np.exp(noise * ndtri(uniform)))


def _tables(problem: LiveVideo) -> dict[str, Any]:
    """What makes the same problem again."""
    names = ("clusters", "links", "objects", "requests", "holders", "pinned", "forbidden", "settings", "lost")
    return {name: getattr(problem, name) for name in names}


def _regions(problem: LiveVideo, side_km: float) -> dict[str, str]:
    """The square of the map that each group lies in."""
    groups = problem.clusters[problem.level == len(problem.tiers) - 1]
    if not {"latitude", "longitude"} <= set(groups.columns):
        raise InputError("grain_km: clusters have no latitude and longitude, so that there are no regions")
    latitude, longitude = groups["latitude"].to_numpy(float), groups["longitude"].to_numpy(float)
    place = globe.squares(latitude, longitude, side_km=side_km, radius_km=EARTH_KM)
    names = [f"region {a:.0f} {b:.0f}" for a, b in place.tolist()]
    return dict(zip(groups["cluster"], names, strict=True))


def _by_region(problem: LiveVideo, tables: dict[str, Any], regions: dict[str, str]) -> dict[str, Any]:
    """The tables with regions in place of groups."""
    clusters, links = problem.clusters, tables["links"]
    of_cluster, of_head = clusters["cluster"].map(regions), links["head"].map(regions)
    places = clusters[of_cluster.notna()].assign(cluster=of_cluster.dropna())
    how = {name: "first" if name == "tier" else "mean" for name in clusters if name != "cluster"}
    merged = links[of_head.notna()].assign(head=of_head.dropna())
    ways = {"capacity_mbps": "sum", "cost": "mean", "latency_ms": "mean"}
    asked = tables["requests"]
    sums = {"clients": "sum", "arrival_s": "min"}
    key = ["group", "channel", "bitrate_kbps"]
    return {
        "clusters": pd.concat(
            [
                clusters[of_cluster.isna()],
                places.groupby("cluster", sort=False, as_index=False).agg(how),
            ],
            ignore_index=True,
        ),
        "links": pd.concat(
            [
                links[of_head.isna()],
                merged.groupby(["tail", "head"], sort=False, as_index=False).agg(ways),
            ],
            ignore_index=True,
        ),
        "requests": asked.assign(group=asked["group"].map(regions))
        .groupby(key, sort=False, as_index=False)
        .agg({name: how for name, how in sums.items() if name in asked}),
        **{
            name: tables[name][~tables[name]["head"].isin(list(regions))].reset_index(drop=True)
            for name in ("pinned", "forbidden")
        },
    }
