"""Synthetic and well-known problems of system `traffic`, by preset."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner_models.traffic.problem import Traffic
from planner_models.traffic.readers import topohub

Seed = Annotated[int, Field(ge=0, description="where the demands are drawn")]
Peak = Annotated[
    float, Field(gt=0, description="utilization of the busiest link when demands take their shortest paths")
]


def abilene(*, peak_utilization: Peak = 1.0) -> Traffic:
    """The Abilene research network of SNDlib: 12 nodes, its demands, classed capacities."""
    return Traffic.from_tables(topohub.read("sndlib/abilene", peak_utilization=peak_utilization))


def germany50(*, peak_utilization: Peak = 1.0) -> Traffic:
    """The German backbone of SNDlib: 50 nodes, its demands, classed capacities."""
    return Traffic.from_tables(topohub.read("sndlib/germany50", peak_utilization=peak_utilization))


def fat_tree(
    *,
    k: Annotated[int, Field(ge=2, le=64, description="ports of each switch, even; k^3/4 hosts")] = 4,
    capacity_mbps: Annotated[float, Field(gt=0, description="capacity of every link, Mbit/s")] = 1_000.0,
    rate_mbps: Annotated[float, Field(gt=0, description="rate that each host sends at, Mbit/s")] = 1_000.0,
    seed: Seed = 0,
) -> Traffic:
    """A fat tree of k-port switches; each host sends to one other, drawn as a random permutation.

    Full bisection: the optimum serves all. Nodes are named host-P-E-H, edge-P-E, aggregation-P-A
    and core-G-C, for pod P and group G of the core switches that aggregation switch G of each pod
    reaches.

    source  Sen et al. 2013, sections 3.3 and 7.1
    """
    if k % 2:
        raise InputError(f"problem.k is {k}, must be even")
    half = k // 2
    hosts = [f"host-{p}-{e}-{h}" for p in range(k) for e in range(half) for h in range(half)]
    up = [
        *((f"host-{p}-{e}-{h}", f"edge-{p}-{e}") for p in range(k) for e in range(half) for h in range(half)),
        *(
            (f"edge-{p}-{e}", f"aggregation-{p}-{a}")
            for p in range(k)
            for e in range(half)
            for a in range(half)
        ),
        *(
            (f"aggregation-{p}-{a}", f"core-{a}-{c}")
            for p in range(k)
            for a in range(half)
            for c in range(half)
        ),
    ]
    ends = pd.DataFrame([*up, *((head, tail) for tail, head in up)], columns=["tail", "head"])
    nodes = [*hosts, *dict.fromkeys(head for _, head in up)]
    return Traffic(
        nodes=pd.DataFrame({"node": nodes}),
        links=ends.assign(capacity_mbps=capacity_mbps, weight=1.0),
        demands=pd.DataFrame(
            {
                "source": hosts,
                "target": [hosts[other] for other in _derangement(len(hosts), np.random.default_rng(seed))],
                "rate_mbps": rate_mbps,
            }
        ),
    )


def _derangement(count: int, random: np.random.Generator) -> np.ndarray:
    """A random permutation of 0..count-1 in which nothing stays in place."""
    while True:
        drawn = random.permutation(count)
        if (drawn != np.arange(count)).all():
            return drawn
