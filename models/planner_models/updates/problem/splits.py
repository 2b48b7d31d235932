"""Preset `rebalance`: switches send the same packets to the same next hops, in other shares."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Floats, Ints
from planner.contract.parameters import spread
from planner_models.updates.problem import generators
from planner_models.updates.problem.networks import Forwarding, Network, read_network
from planner_models.updates.problem.problem import Update

MOST_HOPS = 2
LEAST_SHARE = 0.1


@spread(extras=generators.Extras())
def rebalance(
    *,
    name: generators.Name = "sndlib/germany50",
    demands: generators.DemandKind = "auto",
    count: generators.Count = None,
    part: Annotated[float, Field(ge=0, le=1, description="part of the classes whose shares change")] = 1.0,
    extras: generators.Extras,
) -> Update:
    """Change the shares in which switches split packets between two next hops nearer to the egress."""
    network = read_network(name, extras.seed, 1000, demands)
    random = np.random.default_rng(extras.seed)
    arriving = np.bincount(network.target, weights=network.rate_mbps, minlength=len(network.names))
    targets = np.argsort(-arriving, kind="stable")[:count].astype(np.int64)
    owner, link = _find_hops(network, targets)
    switch, hop = network.tail[link], network.head[link]
    is_moved = random.random(len(targets)) < part
    before, after = (_draw_shares(owner, switch, random) for _ in range(2))
    after = np.where(is_moved[owner], after, before)
    table = pd.DataFrame(
        {
            "class": [f"to {network.names[target]}" for target in targets],
            "egress": [network.names[target] for target in targets],
            "traffic_mbps": np.round(arriving[targets], 6),
        }
    )
    now, then = (Forwarding(owner, switch, hop, share) for share in (before, after))
    return generators.make_update(network, table, now, then, extras, random)


def _find_hops(network: Network, targets: Ints) -> tuple[Ints, Ints]:
    """Return the class and the link of each next hop: at most two of a switch, nearer to the egress."""
    nodes = len(network.names)
    graph = sp.csr_array((network.weight, (network.head, network.tail)), shape=(nodes, nodes))
    distance = dijkstra(graph, indices=targets)
    owners, links = [], []
    for owner in range(len(targets)):
        far, near = distance[owner][network.tail], distance[owner][network.head]
        link = np.flatnonzero(near < far * (1 - 1e-9))
        order = link[np.lexsort(((network.weight + near)[link], network.tail[link]))]
        tail = network.tail[order]
        first = np.searchsorted(tail, tail)
        first_hops = order[np.arange(len(order)) - first < MOST_HOPS]
        owners.append(np.full(len(first_hops), owner, dtype=np.int64))
        links.append(first_hops.astype(np.int64))
    return np.concatenate(owners), np.concatenate(links)


def _draw_shares(owner: Ints, switch: Ints, random: np.random.Generator) -> Floats:
    """Return random shares of next hops, in order of class and switch; they add up to 1 at a switch."""
    is_first = np.r_[True, (owner[1:] != owner[:-1]) | (switch[1:] != switch[:-1])]
    is_split = np.zeros(len(owner), dtype=bool)
    is_split[1:] = ~is_first[1:]
    is_split[:-1] |= ~is_first[1:]
    drawn = random.uniform(LEAST_SHARE, 1 - LEAST_SHARE, len(owner))
    share = np.where(is_split, drawn, 1.0)
    second = np.flatnonzero(~is_first)
    share[second] = 1.0 - share[second - 1]
    return share
