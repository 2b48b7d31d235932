"""Tables of the problem: a network with its traffic, and the clusters and clients of a CDN on it."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Table, label, number
from planner_models.networks import table_names
from planner_models.networks.nodes import NODE_COLUMNS

MAX_MBPS: Final = 1e12
MIN_MBPS: Final = 1e-9
MAX_WEIGHT: Final = 1e9
MAX_LATENCY_MS: Final = 1e6
MAX_CLIENTS: Final = 1_000_000_000
DEFAULT_TERMS: Final = {"queueing_ms": 1.0, "performance_weight": 0.5, "cdn_rounds": 1.0, "step": 1.0}
"""Terms of problems without the table, or without one of its columns."""

NODES: Final = Table(
    name="nodes",
    other_names=table_names.NODES,
    about="a router of the network, where traffic starts, ends or is switched",
    columns=dict(NODE_COLUMNS),
    key=("node",),
)
LINKS: Final = Table(
    name="links",
    other_names=table_names.LINKS,
    about="a one-way link; two rows with the same ends are parallel links",
    columns={
        "tail": label("node where it starts"),
        "head": label("node where it ends"),
        "capacity_mbps": number(
            "capacity, Mbit/s; a link with 0 is down",
            at_least=0,
            at_most=MAX_MBPS,
            least=MIN_MBPS,
            usual=(0.1, 1e8),
        ),
        "weight": number(
            "routing metric",
            more_than=0,
            at_most=MAX_WEIGHT,
            least=1e-6,
            optional=True,
            default=1.0,
            when_absent="all links weigh 1",
        ),
        "cost": number(
            "factor of the link's congestion in the cost of the network",
            at_least=0,
            at_most=MAX_WEIGHT,
            least=1e-6,
            optional=True,
            default=1.0,
        ),
        "latency_ms": number(
            "one-way delay of the idle link, ms",
            at_least=0,
            at_most=MAX_LATENCY_MS,
            least=1e-9,
            usual=(1e-3, 2e3),
        ),
    },
)
DEMANDS: Final = Table(
    name="demands",
    other_names=table_names.DEMANDS,
    about="background traffic from one node to another, which the CDN does not control",
    columns={
        "source": label("node where it starts"),
        "target": label("node where it ends"),
        "rate_mbps": number("offered rate, Mbit/s", at_least=0, at_most=MAX_MBPS, least=MIN_MBPS),
    },
    key=("source", "target"),
    may_be_empty=True,
)
CLIENTS: Final = Table(
    name="clients",
    other_names=("viewers", "sessions", "requests"),
    about="clients that request the same content at the same bitrate from the same place; equal rows are "
    "added up",
    columns={
        "location": label("place of the clients", other_names=("city", "place", "metro")),
        "content": label("requested content", other_names=("video", "title", "object")),
        "bitrate_kbps": number(
            "average bitrate of each client, kbit/s",
            more_than=0,
            at_most=1e9,
            least=1e-3,
            usual=(5, 1e6),
        ),
        "clients": number("number of clients", at_least=0, at_most=MAX_CLIENTS, whole=True),
    },
    divisible=("clients",),
)
CLUSTERS: Final = Table(
    name="clusters",
    other_names=("servers", "sites", "pops"),
    about="servers of the CDN in one place",
    columns={
        "cluster": label("name of the cluster", other_names=("server", "site", "pop")),
        "location": label("place of the cluster", other_names=("city", "place", "metro")),
        "capacity_mbps": number(
            "capacity, Mbit/s", at_least=0, at_most=MAX_MBPS, least=MIN_MBPS, usual=(0.1, 1e9)
        ),
    },
    key=("cluster",),
)
PLACES: Final = Table(
    name="places",
    about="the node behind which a place is; a place behind several nodes has a row for each",
    columns={
        "location": label("place of clients or clusters", other_names=("city", "place", "metro")),
        "node": label("node of the network", other_names=table_names.NODE),
        "share": number(
            "share of the place's traffic at this node; the shares of a place add up to 1",
            more_than=0,
            at_most=1,
            least=1e-6,
            optional=True,
            default=1.0,
            share=True,
        ),
    },
    key=("location", "node"),
)
HOLDINGS: Final = Table(
    name="holdings",
    about="content that a cluster has; without the table each cluster has all",
    columns={"cluster": label("name of the cluster"), "content": label("content that it has")},
    key=("cluster", "content"),
)
RANKS: Final = Table(
    name="ranks",
    other_names=("cost map", "costmap"),
    about="rank of clusters for a place, from an ALTO cost map (RFC 7285) or an offer; without the table "
    "designs compute ranks",
    columns={
        "who": label("who ranks: isp or cdn"),
        "location": label("place of the clients"),
        "cluster": label("ranked cluster"),
        "rank": number("1 is preferred", at_least=1, at_most=1e6, whole=True),
        "price": number(
            "price of a Mbit/s, such as a p-distance",
            at_least=0,
            at_most=1e9,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("who", "location", "cluster"),
)
TERMS: Final = Table(
    name="terms",
    about="one row: delays of queues, and the pace at which CDN and ISP react to each other",
    columns={
        "queueing_ms": number(
            "delay of a link's queue at half its capacity, ms",
            at_least=0,
            at_most=MAX_LATENCY_MS,
            least=1e-6,
            optional=True,
            default=DEFAULT_TERMS["queueing_ms"],
        ),
        "performance_weight": number(
            "weight of latency against the network's prices where the CDN follows ranks; 1 ignores prices",
            at_least=0,
            at_most=1,
            optional=True,
            default=DEFAULT_TERMS["performance_weight"],
        ),
        "cdn_rounds": number(
            "moves of the CDN for each move of the ISP",
            at_least=1,
            at_most=1000,
            whole=True,
            optional=True,
            default=DEFAULT_TERMS["cdn_rounds"],
        ),
        "step": number(
            "share of clients that the CDN moves at once, in 0 to 1",
            more_than=0,
            at_most=1,
            least=1e-3,
            optional=True,
            default=DEFAULT_TERMS["step"],
            share=True,
        ),
    },
    may_be_empty=True,
)
TABLES: Final = (NODES, LINKS, DEMANDS, CLIENTS, CLUSTERS, PLACES, HOLDINGS, RANKS, TERMS)
OPTIONAL_TABLES: Final = ("nodes", "holdings", "ranks", "terms")
PLACED: Final = ("clients", "clusters")
"""Tables whose column location names places."""
