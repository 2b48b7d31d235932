"""Synthetic problems, calibrated to sections 4.7.1 and 4.7.2 of Mukerjee 2018; each function is a preset.

A preset hands all its arguments on: `locals()`, before any other name is bound.

A tiny problem on which each design reaches all of its compiled kernels.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from planner_models.livevideo.problem import topology, workloads
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import MOST_CLIENTS, MOST_KBPS, MOST_MBPS
from planner_models.livevideo.problem.workloads import AVERAGE_DAY, HEAVY_TAIL, Priority, Workload

MOST_VIDEOS = 1_000_000
MOST_GBPS = 1e6

Videos = Annotated[int, Field(gt=0, le=MOST_VIDEOS, description="channels")]
Load = Annotated[
    float,
    Field(
        gt=0,
        le=1_000,
        description="clients per channel in the window: 0.4 for the arrivals of one minute, 8 for all "
        "viewers at a time (240,000 requests an hour and 82,000 clients for 10,000 channels)",
    ),
]
Edges = Annotated[int, Field(gt=0, le=3_000, description="edge clusters")]
Sources = Annotated[int, Field(gt=0, le=100, description="source clusters")]
Reflectors = Annotated[int, Field(gt=0, le=100, description="reflector clusters")]
Groups = Annotated[int, Field(gt=0, le=100_000, description="client groups, one a city")]
SourceGbps = Annotated[
    float, Field(gt=0, le=MOST_GBPS, description="capacity from all sources to all reflectors, Gbit/s")
]
ReflectorGbps = Annotated[
    Annotated[float, Field(gt=0, le=MOST_GBPS)] | None,
    Field(description="capacity from all reflectors to all edges, Gbit/s; none: 100 Mbit/s a link"),
]
GroupMbps = Annotated[
    float, Field(gt=0, le=MOST_MBPS, description="capacity of a link from an edge to a group, Mbit/s")
]
EdgeGbps = Annotated[
    Annotated[float, Field(gt=0, le=MOST_GBPS)] | None,
    Field(description="capacity that an edge divides evenly among its links to groups; none: no such limit"),
]
SourceDegree = Annotated[
    Annotated[int, Field(gt=0)] | None, Field(description="sources that a reflector is linked to; none: all")
]
ReflectorDegree = Annotated[
    float, Field(ge=1, description="reflectors that an edge is linked to, on average")
]
EdgeDegree = Annotated[int, Field(ge=1, description="edges that a group is linked to, the nearest")]
Scheme = Annotated[
    Priority, Field(description="quality: bitrate, balanced: 1, quantity: 1 over bitrate, of each object")
]
LowerBitrates = Annotated[
    bool,
    Field(description="channels exist at the bitrates below their highest requested one, too"),
]
Country = Annotated[
    str, Field(description="country of the cities with edges and groups, two letters; *: the world")
]
Seed = Annotated[int, Field(ge=0, description="seed of network and requests")]

WINDOW_S = 60.0
TESTBED_KBPS = (600.0, 200.0)  # bitrates below the highest, 1,400 kbit/s (4.7.2)
GROUPS = 10  # groups that request the first object: more than any dynamic program over sets of groups takes


def heavy_tail(
    *,
    videos: Videos = 10_000,
    requests_per_video: Load = 0.4,
    edges: Edges = 100,
    sources: Sources = 4,
    reflectors: Reflectors = 10,
    groups: Groups = 2_587,
    source_gbps: SourceGbps = 4.0,
    reflector_gbps: ReflectorGbps = None,
    group_link_mbps: GroupMbps = 150.0,
    edge_gbps: EdgeGbps = None,
    sources_per_reflector: SourceDegree = None,
    reflectors_per_edge: ReflectorDegree = 3.0,
    edges_per_group: EdgeDegree = 3,
    priority: Scheme = "balanced",
    country: Country = "US",
    lower_bitrates: LowerBitrates = False,
    seed: Seed = 0,
) -> LiveVideo:
    """Generate Heavy-Tail: 10,000 channels, the last 99% with 60% of the requests, mean 6,850 kbit/s."""
    return _generate(HEAVY_TAIL, **locals())


def heavy_tail_active(
    *,
    videos: Videos = 10_000,
    requests_per_video: Load = 8.0,
    edges: Edges = 100,
    source_gbps: SourceGbps = 4.0,
    priority: Scheme = "balanced",
    lower_bitrates: LowerBitrates = False,
    seed: Seed = 0,
) -> LiveVideo:
    """Generate Heavy-Tail with all viewers at a time, 8 a channel, instead of the arrivals of one minute."""
    return heavy_tail(**locals())


def average_day(
    *,
    videos: Videos = 4_144,
    requests_per_video: Annotated[
        float,
        Field(
            gt=0, description="clients per channel in the window: 0.221 is 55,000 requests an hour over 60"
        ),
    ] = 55_000 / 60 / 4_144,
    edges: Edges = 100,
    sources: Sources = 4,
    reflectors: Reflectors = 10,
    groups: Groups = 2_587,
    source_gbps: SourceGbps = 4.0,
    reflector_gbps: ReflectorGbps = None,
    group_link_mbps: GroupMbps = 150.0,
    edge_gbps: EdgeGbps = None,
    sources_per_reflector: SourceDegree = None,
    reflectors_per_edge: ReflectorDegree = 3.0,
    edges_per_group: EdgeDegree = 3,
    priority: Scheme = "balanced",
    country: Country = "US",
    lower_bitrates: LowerBitrates = False,
    seed: Seed = 0,
) -> LiveVideo:
    """Generate Average Day: 4,144 channels, 7% of them with half of the requests, mean 2,725 kbit/s."""
    return _generate(AVERAGE_DAY, **locals())


def large_event(
    *,
    videos: Videos = 4_144,
    requests_per_video: Load = 55_000 / 60 / 4_144,
    games: Annotated[int, Field(gt=0, le=10_000, description="channels that all groups watch")] = 4,
    viewers: Annotated[
        float, Field(gt=0, le=MOST_CLIENTS, description="viewers of each game in the window")
    ] = 200_000.0,
    edges: Edges = 100,
    groups: Groups = 2_587,
    source_gbps: SourceGbps = 4.0,
    priority: Scheme = "balanced",
    lower_bitrates: LowerBitrates = False,
    seed: Seed = 0,
) -> LiveVideo:
    """Generate Large Event: Average Day and four games with 200,000 viewers each (48 million an hour)."""
    return _generate(AVERAGE_DAY, **locals())


def ec2_testbed(
    *,
    videos: Annotated[int, Field(gt=0, le=MOST_VIDEOS, description="channels, one client each")] = 200,
    link_mbps: Annotated[
        float, Field(gt=0, le=MOST_MBPS, description="capacity of every link, Mbit/s")
    ] = 75.0,
    bitrate_kbps: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_KBPS,
            description="bitrate that every client requests; channels have lower bitrates too",
        ),
    ] = 1_400.0,
    seed: Seed = 0,
) -> LiveVideo:
    """Generate the test bed of 4.7.2: 2 sources, 2 reflectors, 6 edges, linked to all of the next tier."""
    random = np.random.default_rng(seed)
    counts = {"S": ("source", 2), "R": ("reflector", 2), "E": ("edge", 6), "G": ("group", 6)}
    names = {letter: [f"{letter}{i + 1}" for i in range(n)] for letter, (_, n) in counts.items()}
    clusters = pd.DataFrame(
        [(name, tier) for letter, (tier, _) in counts.items() for name in names[letter]],
        columns=["cluster", "tier"],
    )
    pairs = [(s, r) for s in names["S"] for r in names["R"]]
    pairs += [(r, e) for r in names["R"] for e in names["E"]]
    core = len(pairs)
    pairs += list(zip(names["E"], names["G"], strict=True))
    links = pd.DataFrame(pairs, columns=["tail", "head"])
    links["capacity_mbps"] = [link_mbps] * core + [10_000.0] * len(names["E"])
    links["cost"] = [1.0] * core + [0.0] * len(names["E"])
    links["latency_ms"] = [10.0] * core + [5.0] * len(names["E"])
    channels = [f"v{i + 1}" for i in range(videos)]
    rungs = [bitrate_kbps, *(rate for rate in TESTBED_KBPS if rate < bitrate_kbps)]
    objects = pd.DataFrame(
        {"channel": channels * len(rungs), "bitrate_kbps": np.repeat(np.array(rungs), videos)}
    )
    requests = objects.iloc[:videos].assign(
        group=random.choice(names["G"], videos), arrival_s=np.arange(videos, dtype=float)
    )
    return LiveVideo(clusters=clusters, links=links, objects=objects, requests=requests)


def _generate(
    workload: Workload,
    *,
    videos: int,
    requests_per_video: float,
    priority: Priority,
    seed: int,
    lower_bitrates: bool = False,
    games: int = 0,
    viewers: float = 0.0,
    **network: Any,
) -> LiveVideo:
    """Draw network, then requests, with one generator of random numbers.

    games, viewers  number of additional channels that all groups watch, and viewers of each
    network         arguments of `topology.draw_network`
    """
    random = np.random.default_rng(seed)
    drawn = topology.draw_network(**network, random=random)
    shares = workloads.ladder_shares(workload.bitrates_kbps, workload.mean_kbps)
    demand = workloads.draw_demand(
        channels=videos,
        clients=max(1, round(videos * requests_per_video)),
        exponent=workloads.zipf_exponent(videos, workload.head, workload.head_share),
        shares=shares,
        group_share=drawn.share,
        window_s=WINDOW_S,
        random=random,
    )
    if games:
        event = workloads.draw_crowd(
            channels=np.arange(videos, videos + games),
            viewers=viewers,
            shares=shares,
            group_share=drawn.share,
            window_s=WINDOW_S,
            random=random,
        )
        demand = workloads.merge_demand(demand, event)
    objects, requests = workloads.build_tables(
        demand,
        groups=drawn.groups,
        bitrates_kbps=workload.bitrates_kbps,
        priority=priority,
        lower_bitrates=lower_bitrates,
    )
    return LiveVideo(clusters=drawn.clusters, links=drawn.links, objects=objects, requests=requests)


def create_sample() -> LiveVideo:
    """Return a problem of two objects, one with many requests, over links that can carry one."""
    groups = [f"group{n}" for n in range(GROUPS)]
    above = [("source", "reflector"), ("reflector", "edge")]
    return LiveVideo(
        clusters=pd.DataFrame(
            [("source", "source"), ("reflector", "reflector"), ("edge", "edge")]
            + [(group, "group") for group in groups],
            columns=["cluster", "tier"],
        ),
        links=pd.DataFrame(above + [("edge", group) for group in groups], columns=["tail", "head"]).assign(
            capacity_mbps=1.0
        ),
        objects=pd.DataFrame({"channel": ["many", "one"], "bitrate_kbps": [1000.0, 500.0]}),
        requests=pd.DataFrame(
            [(group, "many", 1000.0) for group in groups] + [(groups[0], "one", 500.0)],
            columns=["group", "channel", "bitrate_kbps"],
        ),
    )
