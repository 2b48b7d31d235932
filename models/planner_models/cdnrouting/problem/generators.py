"""Presets: made-up problems of system `cdnrouting`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.parameters import spread
from planner_models.cdnrouting.problem.adjustments import scale_traffic
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.cdnrouting.problem.utilization import smallest_utilization

KM_PER_MS: Final = 200.0
SIDE_KM: Final = 2_000.0
BITRATE_KBPS: Final = 1_000.0
CONTENT: Final = "video"
Seed = Annotated[int, Field(ge=0, description="seed of the random numbers")]
CdnShare = Annotated[
    float, Field(gt=0, le=1, description="share of all traffic that clients of the CDN request")
]
Headroom = Annotated[
    float, Field(gt=0, le=1e6, description="capacity of all clusters over what clients request")
]


@dataclass(frozen=True, kw_only=True)
class Cdn:
    """Clusters of a CDN, and its share of the traffic."""

    clusters: Annotated[int, Field(ge=1, le=10_000, description="number of clusters, in random places")] = 4
    cdn_share: CdnShare = 0.5
    headroom: Headroom = 1.5
    locations: Annotated[
        int | None,
        Field(
            ge=1,
            le=10_000,
            description="places with clients, those that most traffic goes to; default: all that any goes to",
        ),
    ] = None


@spread(cdn=Cdn())
def backbone(
    *,
    nodes: Annotated[int, Field(ge=3, le=2_000, description="number of nodes")] = 10,
    degree: Annotated[int, Field(ge=2, le=20, description="nearest nodes that each node has links to")] = 3,
    cdn: Cdn,
    load: Annotated[
        float,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="load of the busiest link over its capacity where clients get content from the "
            "nearest cluster on shortest paths",
        ),
    ] = 1.2,
    seed: Seed = 0,
) -> Delivery:
    """Build nodes in a square, links to the nearest ones and around a ring, and gravity demands.

    The sizes of nodes are lognormal. Every node has clients; clusters are at random nodes, all alike.
    """
    random = np.random.default_rng(seed)
    position = random.uniform(0.0, SIDE_KM, (nodes, 2))
    tail, head = _connect(position, degree)
    latency = np.maximum(np.hypot(*(position[tail] - position[head]).T) / KM_PER_MS, 0.01)
    size = random.lognormal(0.0, 0.5, nodes)
    demand = np.outer(size, size)
    np.fill_diagonal(demand, 0.0)
    names = np.array([f"n{row + 1}" for row in range(nodes)], dtype=object)
    network = {
        "nodes": pd.DataFrame({"node": names, "x": position[:, 0], "y": position[:, 1]}),
        "links": pd.DataFrame(
            {
                "tail": names[tail],
                "head": names[head],
                "capacity_mbps": 10_000.0,
                "weight": 1.0,
                "latency_ms": latency,
            }
        ),
    }
    source, target = np.nonzero(demand)
    demands = pd.DataFrame(
        {"source": names[source], "target": names[target], "rate_mbps": demand[source, target]}
    )
    return scale_to_load(add_cdn(network, demands, random=random, **vars(cdn)), load)


def _connect(position: Floats, degree: int) -> tuple[Ints, Ints]:
    """Return the ends of links both ways: around a ring by angle, and to the nearest nodes."""
    count = len(position)
    angle = np.argsort(np.arctan2(*(position - position.mean(axis=0)).T), kind="stable")
    pairs = {frozenset((int(a), int(b))) for a, b in zip(angle, np.roll(angle, -1), strict=True)}
    distance = np.hypot(*(position[:, None] - position[None]).transpose(2, 0, 1))
    nearest = np.argsort(distance, axis=1, kind="stable")[:, 1 : min(degree, count - 1)]
    pairs |= {frozenset((node, int(other))) for node in range(count) for other in nearest[node]}
    ends = np.array(sorted(sorted(pair) for pair in pairs), dtype=np.int64)
    return np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])


def add_cdn(
    network: dict[str, pd.DataFrame],
    demands: pd.DataFrame,
    *,
    clusters: int,
    cdn_share: float,
    headroom: float,
    locations: int | None,
    random: np.random.Generator,
) -> Delivery:
    """Return the problem in which a share of demands is requested from the clusters of a CDN.

    Clients at each node request the share of what the demands bring there; with `locations` only those at so
    many nodes that most traffic goes to. Clusters are at random nodes with clients, with the same capacity
    each.
    """
    pairs = demands.groupby(["source", "target"], as_index=False, sort=False, observed=True)[
        "rate_mbps"
    ].sum()
    requested = (pairs["rate_mbps"] * cdn_share).groupby(pairs["target"].astype(str), sort=True).sum()
    requested = requested[requested > 0]
    if locations is not None:
        requested = requested.nlargest(locations).sort_index()
    names = requested.index.to_numpy(object)
    hosts = random.choice(names, min(clusters, len(names)), replace=False)
    capacity = headroom * float(requested.sum()) / len(hosts)
    is_requested = pairs["target"].astype(str).isin(names)
    background = pairs.assign(rate_mbps=pairs["rate_mbps"] * np.where(is_requested, 1 - cdn_share, 1.0))
    background = background[background["rate_mbps"] > 0].reset_index(drop=True)
    number = np.ceil(requested.to_numpy(float) * 1000.0 / BITRATE_KBPS)
    return Delivery(
        nodes=network["nodes"],
        links=network["links"],
        demands=background,
        clients=pd.DataFrame(
            {
                "location": names,
                "content": CONTENT,
                "bitrate_kbps": requested.to_numpy(float) * 1000.0 / number,
                "clients": number,
            }
        ),
        clusters=pd.DataFrame(
            {
                "cluster": hosts,
                "location": hosts,
                "capacity_mbps": capacity,
            }
        ),
        places=pd.DataFrame({"location": names, "node": names, "share": 1.0}),
    )


def scale_to_load(problem: Delivery, load: float) -> Delivery:
    """Return the problem with all traffic and clusters scaled so that a load is on the busiest link.

    That is where clients get content from the cluster of least latency on shortest paths.
    """
    network = problem.network
    shares = network.first_paths
    nearest = _nearest(problem)
    traffic = problem.background + np.asarray(
        (problem.target_share.T @ nearest) @ problem.source_share.toarray()
    )
    return _scale_all(problem, load / float((network.carry(shares, traffic) / network.capacity).max()))


def scale_to_utilization(problem: Delivery, utilization: float) -> Delivery:
    """Return the problem with all traffic and clusters scaled so that no plan loads the busiest link less."""
    return _scale_all(problem, utilization / smallest_utilization(problem))


def _scale_all(problem: Delivery, factor: float) -> Delivery:
    """Return the problem with all traffic, and the capacity of clusters, multiplied by a factor."""
    capacity = problem.clusters["capacity_mbps"] * factor
    return scale_traffic(replace(problem, clusters=problem.clusters.assign(capacity_mbps=capacity)), factor)


def _nearest(problem: Delivery) -> Floats:
    """Return the (G, S) traffic of groups from the nearest cluster by hops, without regard to capacity."""
    distance = np.where(np.isfinite(problem.network.distance), problem.network.distance, 0.0)
    cost = np.asarray(problem.target_share @ (problem.source_share @ distance.T).T)
    first = np.where(problem.allowed, cost, np.inf).argmin(axis=1)
    assigned = np.zeros(cost.shape)
    assigned[np.arange(len(first)), first] = problem.group_mbps
    return assigned


def small() -> Delivery:
    """Return a tiny problem with every table: six nodes, three clusters, two contents."""
    ends = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "a"), ("b", "e")]
    latency = [2.0, 3.0, 2.0, 4.0, 2.0, 3.0, 5.0]
    links = pd.DataFrame(
        [(t, h, 100.0, 1.0, 1.0, ms) for (t, h), ms in zip(ends, latency, strict=True)]
        + [(h, t, 100.0, 1.0, 1.0, ms) for (t, h), ms in zip(ends, latency, strict=True)],
        columns=["tail", "head", "capacity_mbps", "weight", "cost", "latency_ms"],
    )
    places = ["north", "north", "south", "east", "west"]
    locations, hosts = ["north", "south", "east", "west"], ["north", "east", "west"]
    ranks = [
        ("isp", place, f"{host} cluster", float(1 + (row + column) % 3), float(1 + (row + 2 * column) % 4))
        for row, place in enumerate(locations)
        for column, host in enumerate(hosts)
    ]
    return Delivery(
        nodes=pd.DataFrame({"node": list("abcdef"), "x": [0.0, 1, 2, 2, 1, 0], "y": [1.0, 1, 1, 0, 0, 0]}),
        links=links,
        demands=pd.DataFrame(
            [("a", "d", 30.0), ("d", "a", 20.0), ("c", "f", 25.0), ("f", "b", 15.0)],
            columns=["source", "target", "rate_mbps"],
        ),
        clients=pd.DataFrame(
            [
                ("north", "film", 4_000.0, 10.0),
                ("north", "news", 2_000.0, 10.0),
                ("south", "film", 4_000.0, 8.0),
                ("east", "news", 2_000.0, 12.0),
                ("west", "film", 4_000.0, 5.0),
            ],
            columns=["location", "content", "bitrate_kbps", "clients"],
        ),
        clusters=pd.DataFrame(
            {
                "cluster": [f"{host} cluster" for host in hosts],
                "location": hosts,
                "capacity_mbps": [80.0, 70.0, 60.0],
            }
        ),
        places=pd.DataFrame(
            {"location": places, "node": ["a", "b", "d", "c", "f"], "share": [0.6, 0.4, 1.0, 1.0, 1.0]}
        ),
        holdings=pd.DataFrame(
            [
                ("north cluster", "film"),
                ("north cluster", "news"),
                ("east cluster", "film"),
                ("east cluster", "news"),
                ("west cluster", "film"),
            ],
            columns=["cluster", "content"],
        ),
        ranks=pd.DataFrame(ranks, columns=["who", "location", "cluster", "rank", "price"]),
        terms=pd.DataFrame(
            {"queueing_ms": [1.0], "performance_weight": [0.5], "cdn_rounds": [1.0], "step": [0.5]}
        ),
    )


PRESETS: Final[dict[str, Callable[..., Delivery]]] = {"backbone": backbone, "small": small}
