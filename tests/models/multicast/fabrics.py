"""Small problems that several tests share."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from planner_models.multicast import SYSTEM, Multicast
from planner_models.multicast.designs import partitioned_aggregated
from planner_models.multicast.problem import generators, topology

# the designs that make plans, and one whose aggregation switches share entries too
PLANNING = (
    *(design for design in SYSTEM.designs if design.name != "bound"),
    dataclasses.replace(
        SYSTEM.design("partitioned_aggregated"),
        name="both_share",
        decide=functools.partial(partitioned_aggregated.partition_and_share, share="both"),
    ),
)

WITH_ENTRIES = tuple(design for design in PLANNING if design.name not in ("flooding", "slow_path"))
"""Designs whose groups all have entries: the others flood, or lose what processors cannot forward."""


def tree(
    *,
    pods: int = 3,
    switches: int = 3,
    edges: int = 2,
    cores: int = 6,
    ports: int = 4,
    seed: int = 0,
    **more: Any,
) -> dict[str, pd.DataFrame]:
    """Return tables of a tree that is no fat tree: each core is linked to two switches of every pod."""
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
    hosts = [(f"h{p}{e}{i}", f"e{p}{e}", i) for p in range(pods) for e in range(edges) for i in range(ports)]
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
    names: dict[str, Any] = {"k": 4, "aggregation_copies": 1, "tenants": 3, "groups": 40, "table_size": 12}
    return generators.datacenter(**(names | parameters))


def of_one_tenant(problem: Multicast) -> Multicast:
    """Return the problem with all its groups of one tenant, which has every host."""
    hosts = problem.hosts["host"].tolist()
    return dataclasses.replace(
        problem,
        tenants=pd.DataFrame({"tenant": "t0", "host": hosts}),
        groups=problem.groups.assign(tenant="t0"),
    )


def require_distribution(
    wires: topology.Wiring, held: topology.Distribution, core_copies: int, aggregation_copies: int
) -> None:
    """Require exact replication, equal shares, and a path from every core of a partition into every pod."""
    assert (held.core.sum(axis=0) == core_copies).all()
    assert np.ptp(held.core.sum(axis=1)) <= 1
    for pod in range(wires.pods):
        current = held.aggregation[wires.aggregation_pod == pod]
        assert (current.sum(axis=0) == aggregation_copies).all()
        assert np.ptp(current.sum(axis=1)) <= 1
    for share in range(held.partitions):
        graph = nx.Graph()
        for core in np.flatnonzero(held.core[:, share]).tolist():
            for switch in np.flatnonzero(wires.up[:, core] & held.aggregation[:, share]).tolist():
                graph.add_edge(("core", core), ("pod", int(wires.aggregation_pod[switch])))
                graph.add_edge(("switch", switch), ("core", core))
            met = {pod for kind, pod in graph[("core", core)] if kind == "pod"}
            assert met == set(range(wires.pods))
        for switch in np.flatnonzero(held.aggregation[:, share]).tolist():
            assert ("switch", switch) in graph


def with_tables(problem: Multicast, fabric: dict[str, float]) -> Multicast:
    return Multicast.from_tables(problem.to_tables() | {"fabric": problem.fabric.assign(**fabric)})


def datacenter(**more: object) -> Multicast:
    names: dict[str, object] = {"k": 8, "aggregation_copies": 2, "groups": 200, "table_size": 25}
    return generators.datacenter(**(names | more))  # type: ignore[arg-type]


def fat_of_kind(kind: str, k: int, copies: int, seed: int, **more: Any) -> Multicast:
    problem = fat(k=k, aggregation_copies=copies, groups=15, table_size=6, seed=seed, **more)
    tables = problem.to_tables()
    return Multicast.from_tables(tables | {"fabric": tables["fabric"].assign(kind=kind)})
