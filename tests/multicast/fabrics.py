"""Small problems that several tests share."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pandas as pd

from planner_models.multicast import SYSTEM, Multicast, designs, generate

# the designs that make plans, and one whose aggregation switches share entries too
PLANNING = (
    *(design for design in SYSTEM.designs if design.name != "bound"),
    dataclasses.replace(
        SYSTEM.design("partitioned_aggregated"),
        name="both_share",
        decide=functools.partial(designs.partitioned_aggregated, share="both"),
    ),
)


def tree(
    *, pods: int = 3, switches: int = 3, edges: int = 2, cores: int = 6, seed: int = 0, **more: Any
) -> dict[str, pd.DataFrame]:
    """Tables of a tree that is no fat tree: each core is wired to two switches of every pod."""
    rng = np.random.default_rng(seed)
    names = [("core", f"c{c}", 0) for c in range(cores)]
    names += [("aggregation", f"a{p}{a}", p) for p in range(pods) for a in range(switches)]
    names += [("edge", f"e{p}{e}", p) for p in range(pods) for e in range(edges)]
    rng.shuffle(names)
    wired = [
        (f"a{p}{(c + shift) % switches}", f"c{c}")
        for c in range(cores)
        for p in range(pods)
        for shift in range(2)
    ]
    hosts = [(f"h{p}{e}{i}", f"e{p}{e}", i) for p in range(pods) for e in range(edges) for i in range(4)]
    groups = [f"g{g}" for g in range(30)]
    members = [
        (group, hosts[i][0])
        for group in groups
        for i in rng.choice(len(hosts), size=rng.integers(1, 9), replace=False)
    ]
    numbers = {"partitions": 3, "core_copies": 2, "aggregation_copies": 2} | more
    entries = {"core_entries": 20, "aggregation_entries": 20, "edge_entries": 9}
    return {
        "fabric": pd.DataFrame([{"kind": "tree"} | numbers | entries]),
        "switches": pd.DataFrame(names, columns=["layer", "switch", "pod"]).astype({"pod": float}),
        "links": pd.DataFrame(wired, columns=["lower", "upper"]),
        "hosts": pd.DataFrame(hosts, columns=["host", "switch", "port"]),
        "groups": pd.DataFrame({"group": groups, "rate_mbps": rng.uniform(1, 10, len(groups))}),
        "members": pd.DataFrame(members, columns=["group", "host"]),
    }


def fat(**parameters: Any) -> Multicast:
    known: dict[str, Any] = {"k": 4, "aggregation_copies": 1, "tenants": 3, "groups": 40, "table_size": 12}
    return generate.datacenter(**(known | parameters))
