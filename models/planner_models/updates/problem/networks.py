"""Networks and shortest-path rules from which updates are made."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Bools, Floats, Ints
from planner.errors import InputError
from planner_models.traffic.problem.readers import topohub

KM_PER_MS = 200.0

Demands = Literal["auto", "given", "gravity"]


class Network(NamedTuple):
    """Switches by name, and directed links with their weights and delays, ms; and traffic between pairs.

    source, target, rate_mbps  (K,) demands, the largest first
    """

    names: list[str]
    tail: Ints
    head: Ints
    weight: Floats
    delay_ms: Floats
    source: Ints
    target: Ints
    rate_mbps: Floats


class Forwarding(NamedTuple):
    """Rules by number: class, switch, next hop, and share."""

    owner: Ints
    switch: Ints
    hop: Ints
    share: Floats


def read_network(
    name: str, seed: int, pairs: int | None, demands: Demands = "auto", metric: str = "distance"
) -> Network:
    """Return a network of topohub, with its demands or synthetic ones between all pairs, or the largest."""
    tables = topohub.read(name, demands=demands, weight="hops", pairs=pairs, seed=seed)
    nodes, links, demand_table = tables["nodes"], tables["links"], tables["demands"]
    index = pd.Index(nodes["node"])
    tail, head = (index.get_indexer(links[column]).astype(np.int64) for column in ("tail", "head"))
    delay = links["latency_ms"].to_numpy(float) if "latency_ms" in links else np.ones(len(links))
    rate = demand_table["rate_mbps"].to_numpy(float)
    order = np.argsort(-rate, kind="stable")
    source, target = (
        index.get_indexer(demand_table[column]).astype(np.int64)[order] for column in ("source", "target")
    )
    # lengths differ, so that shortest paths are single
    weight = np.maximum(delay * KM_PER_MS, 1.0) if metric == "distance" else np.ones(len(links))
    return Network(
        [str(item) for item in index], tail, head, weight, np.round(delay, 4), source, target, rate[order]
    )


def find_next_hops(network: Network, weight: Floats, targets: Ints) -> Ints:
    """Return the (T, S) next hop of each switch on a shortest path to each target; -1 for none."""
    count = len(network.names)
    graph = sp.csr_array((weight, (network.head, network.tail)), shape=(count, count))
    _, before = dijkstra(graph, indices=targets, return_predecessors=True)
    hops: Ints = np.where(before < 0, -1, before).astype(np.int64)
    return hops


def rules_to(targets: Ints, hops: Ints) -> Forwarding:
    """Return one class for each target, with a rule at every switch that reaches it."""
    owner, switch = np.nonzero(hops >= 0)
    keep = switch != targets[owner]
    owner, switch = owner[keep].astype(np.int64), switch[keep].astype(np.int64)
    return Forwarding(owner, switch, hops[owner, switch], np.ones(len(owner)))


def rules_of_pairs(source: Ints, target: Ints, targets: Ints, hops: Ints) -> Forwarding:
    """Return one class for each pair, with a rule at every switch of its path but the last.

    targets  those of the rows of `hops`
    """
    row = np.searchsorted(targets, target)
    owner, node = np.arange(len(source)), source.copy()
    parts: list[tuple[Ints, Ints, Ints]] = []
    while len(owner):
        hop = hops[row[owner], node]
        if (hop < 0).any():
            lost = owner[np.argmax(hop < 0)]
            raise InputError(f"the network has no path for pair {lost + 1}; choose another network or change")
        parts.append((owner, node, hop))
        more = hop != target[owner]
        owner, node = owner[more], hop[more]
    joined = (
        [np.concatenate(column) for column in zip(*parts, strict=True)]
        if parts
        else [np.zeros(0, np.int64)] * 3
    )
    order = np.lexsort((joined[1], joined[0]))
    owner, switch, hop = (column[order].astype(np.int64) for column in joined)
    return Forwarding(owner, switch, hop, np.ones(len(owner)))


def tabulate(rules: Forwarding, classes: list[str], names: list[str]) -> pd.DataFrame:
    """Return rules as a table with names."""
    return pd.DataFrame(
        {
            "class": pd.Categorical.from_codes(rules.owner, pd.Index(classes)),
            "switch": pd.Categorical.from_codes(rules.switch, pd.Index(names)),
            "next_hop": pd.Categorical.from_codes(rules.hop, pd.Index(names)),
            "share": rules.share,
        }
    )


def is_between(network: Network, first: int, other: int) -> Bools:
    """Return the (E,) links between two switches, in either direction."""
    ends = {(first, other), (other, first)}
    return np.array([pair in ends for pair in zip(network.tail.tolist(), network.head.tolist(), strict=True)])
