"""Synthetic problems, calibrated to sections 4.7.1 and 4.7.2 of Mukerjee 2018; each function is a preset.

A tiny problem on which each design reaches all of its compiled kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner_models.livevideo.problem import topology, workloads
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import MOST_CLIENTS, MOST_KBPS, MOST_MBPS
from planner_models.livevideo.problem.workloads import AVERAGE_DAY, HEAVY_TAIL, Priority, Workload

MOST_VIDEOS = 1_000_000

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
Scheme = Annotated[
    Priority, Field(description="quality: bitrate, balanced: 1, quantity: 1 over bitrate, of each object")
]
LowerBitrates = Annotated[
    bool,
    Field(description="channels exist at the bitrates below their highest requested one, too"),
]
Seed = Annotated[int, Field(ge=0, description="seed of network and requests")]

WINDOW_S = 60.0
TESTBED_KBPS = (600.0, 200.0)  # bitrates below the highest, 1,400 kbit/s (4.7.2)
GROUPS = 10  # groups that request the first object: more than any dynamic program over sets of groups takes


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Objects of a generated problem: their priorities and bitrates, and the seed of all draws."""

    priority: Scheme = "balanced"
    lower_bitrates: LowerBitrates = False
    seed: Seed = 0


@dataclass(frozen=True, kw_only=True)
class Event:
    """Channels that all groups watch."""

    games: Annotated[int, Field(gt=0, le=10_000, description="channels that all groups watch")] = 4
    viewers: Annotated[
        float, Field(gt=0, le=MOST_CLIENTS, description="viewers of each game in the window")
    ] = 200_000.0


@spread(network=topology.Layout(), streams=Streams())
def heavy_tail(
    *,
    videos: Videos = 10_000,
    requests_per_video: Load = 0.4,
    network: topology.Layout,
    streams: Streams,
) -> LiveVideo:
    """Generate Heavy-Tail: 10,000 channels, the last 99% with 60% of the requests, mean 6,850 kbit/s."""
    return _generate(HEAVY_TAIL, videos, requests_per_video, network, streams)


def heavy_tail_active(
    *,
    videos: Videos = 10_000,
    requests_per_video: Load = 8.0,
    edges: topology.Edges = 100,
    source_gbps: topology.SourceGbps = 4.0,
    priority: Scheme = "balanced",
    lower_bitrates: LowerBitrates = False,
    seed: Seed = 0,
) -> LiveVideo:
    """Generate Heavy-Tail with all viewers at a time, 8 a channel, instead of the arrivals of one minute."""
    return heavy_tail(**locals())


@spread(network=topology.Layout(), streams=Streams())
def average_day(
    *,
    videos: Videos = 4_144,
    requests_per_video: Annotated[
        float,
        Field(
            gt=0, description="clients per channel in the window: 0.221 is 55,000 requests an hour over 60"
        ),
    ] = 55_000 / 60 / 4_144,
    network: topology.Layout,
    streams: Streams,
) -> LiveVideo:
    """Generate Average Day: 4,144 channels, 7% of them with half of the requests, mean 2,725 kbit/s."""
    return _generate(AVERAGE_DAY, videos, requests_per_video, network, streams)


@spread(event=Event(), streams=Streams())
def large_event(
    *,
    videos: Videos = 4_144,
    requests_per_video: Load = 55_000 / 60 / 4_144,
    event: Event,
    edges: topology.Edges = 100,
    groups: topology.Groups = 2_587,
    source_gbps: topology.SourceGbps = 4.0,
    streams: Streams,
) -> LiveVideo:
    """Generate Large Event: Average Day and four games with 200,000 viewers each (48 million an hour)."""
    network = topology.Layout(edges=edges, groups=groups, source_gbps=source_gbps)
    return _generate(AVERAGE_DAY, videos, requests_per_video, network, streams, event)


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
    videos: int,
    requests_per_video: float,
    network: topology.Layout,
    streams: Streams,
    event: Event | None = None,
) -> LiveVideo:
    """Draw network, then requests, with one generator of random numbers."""
    random = np.random.default_rng(streams.seed)
    drawn = topology.draw_network(network, random)
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
    if event is not None:
        crowd = workloads.draw_crowd(
            channels=np.arange(videos, videos + event.games),
            viewers=event.viewers,
            shares=shares,
            group_share=drawn.share,
            window_s=WINDOW_S,
            random=random,
        )
        demand = workloads.merge_demand(demand, crowd)
    objects, requests = workloads.build_tables(
        demand,
        groups=drawn.groups,
        bitrates_kbps=workload.bitrates_kbps,
        priority=streams.priority,
        lower_bitrates=streams.lower_bitrates,
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
