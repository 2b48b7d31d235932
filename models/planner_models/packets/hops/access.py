"""Hosts behind nodes that forward packets of others, as routers do: a host has one link to the network.

A node with one link is a host itself, as in the tables of a datacenter. Another one gets a host, whose links
are as fast as all links of the node together, and have no delay: they are never a bottleneck.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.arrays import Bools
from planner_models.graphs.indexing import sum_by_index
from planner_models.packets.hops.routes import Links
from planner_models.packets.state import Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class AccessNetwork:
    """A network with hosts.

    links    those of the network, then two for each host that was added
    host_of  (N,) the host of each node at which flows end, else -1
    down     (N,) the link from a node to its host, -1 where it is its own host
    """

    links: Links
    host_of: Ints
    down: Ints


def add_hosts(links: Links, ends: Ints, delay_us: Floats) -> AccessNetwork:
    """Return a network with a host for each of some nodes.

    delay_us  (E,) of the network's links
    """
    count, nodes = len(links.tail), links.nodes
    is_end = np.zeros(nodes, bool)
    is_end[ends] = True
    degree = np.bincount(links.tail, minlength=nodes)
    needs_host: Bools = is_end & (degree != 1)
    router = np.flatnonzero(needs_host)
    host_of = np.where(is_end, np.arange(nodes), -1)
    host_of[router] = nodes + np.arange(len(router))
    down = np.full(nodes, -1, np.int64)
    down[router] = count + len(router) + np.arange(len(router))
    host = host_of[router]
    mbps = np.maximum(*(sum_by_index(end, links.capacity_mbps, nodes) for end in (links.tail, links.head)))
    return AccessNetwork(
        links=replace(
            links,
            tail=np.r_[links.tail, host, router],
            head=np.r_[links.head, router, host],
            capacity_mbps=np.r_[links.capacity_mbps, mbps[router], mbps[router]],
            weight=np.r_[links.weight, np.ones(2 * len(router))],
            delay_us=np.r_[delay_us, np.zeros(2 * len(router))],
            nodes=nodes + len(router),
        ),
        host_of=host_of,
        down=down,
    )
