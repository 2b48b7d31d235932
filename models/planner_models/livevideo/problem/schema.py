"""Input tables of system `livevideo`."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from planner.contract.table import Table, choice, label, number
from planner_models.networks import table_names

MOST_MBPS: Final = 1e9  # 1 Pbit/s, above every link; limits for all quantities keep sums exact
MOST_KBPS: Final = 1e7  # 10 Gbit/s, above uncompressed video of every format
MOST_COST: Final = 1e9
MOST_PRIORITY: Final = 1e9
CHANNEL_NAMES: Final = ("stream", "video", "title", "event")
MOST_CLIENTS: Final = 1e10  # above the world's population; means may be fractions
MOST_MS: Final = 1e6
MOST_S: Final = 1e10  # three centuries
MOST_PRICE: Final = 1e9
MOST_SAMPLES: Final = 1_000_000

MULTICAST: Final = "multicast"
UNICAST: Final = "unicast"
LAST_HOPS: Final = (MULTICAST, UNICAST)

CLUSTERS: Final = Table(
    name="clusters",
    other_names=("nodes", "servers", "sites", "pops"),
    about="a cluster of servers, or a client group (the clients of one city and AS), and its tier",
    columns={
        "cluster": label("its name", other_names=("server", "node", "site", "name", "location", "pop")),
        "tier": label(
            "its tier, e.g. source, reflector, edge, group; links give the order of the tiers",
            other_names=("layer", "level", "role"),
        ),
        "latitude": number(
            "degrees north", at_least=-90, at_most=90, optional=True, confused_with="longitude"
        ),
        "longitude": number("degrees east", at_least=-180, at_most=180, optional=True),
    },
    key=("cluster",),
)
LINKS: Final = Table(
    name="links",
    other_names=table_names.LINKS,
    about="a one-way overlay link from a cluster to one of the next tier",
    columns={
        "tail": label("cluster that sends"),
        "head": label("cluster that receives"),
        "capacity_mbps": number("capacity, Mbit/s", at_least=0, at_most=MOST_MBPS, usual=(0.1, 1e8)),
        "cost": number(
            "price of carrying video, per Mbit/s", at_least=0, at_most=MOST_COST, optional=True, default=0.0
        ),
        "latency_ms": number(
            "one-way delay, ms", at_least=0, at_most=MOST_MS, optional=True, default=0.0, usual=(1e-3, 2e3)
        ),
        "bill": label(
            "bill, of table bills, that its traffic is on, such as a provider; blank: none",
            optional=True,
            may_be_blank=True,
            other_names=("provider", "carrier", "transit", "isp"),
        ),
    },
    key=("tail", "head"),
)
OBJECTS: Final = Table(
    name="objects",
    other_names=("channels", "videos", "streams"),
    about="a video object: a channel at one of its bitrates",
    columns={
        "channel": label("its channel", other_names=CHANNEL_NAMES),
        "bitrate_kbps": number("its bitrate, kbit/s", more_than=0, at_most=MOST_KBPS, usual=(5, 1e6)),
        "priority": number(
            "value of serving it to one client",
            more_than=0,
            at_most=MOST_PRIORITY,
            optional=True,
            default=1.0,
        ),
    },
    key=("channel", "bitrate_kbps"),
)
REQUESTS: Final = Table(
    name="requests",
    other_names=("viewers", "demands", "demand", "clients"),
    about="clients of one group that request a channel at a bitrate",
    columns={
        "group": label(
            "client group that requests",
            other_names=(
                *("client group", "audience", "viewer group", "city", "edge group", "region", "area", "edge"),
                "pop",
            ),
        ),
        "channel": label("requested channel", other_names=CHANNEL_NAMES),
        "bitrate_kbps": number("requested bitrate, kbit/s", more_than=0),
        "clients": number(
            "number of clients",
            other_names=("viewers", "number of clients", "number of viewers", "users", "audience size"),
            more_than=0,
            at_most=MOST_CLIENTS,
            optional=True,
            default=1.0,
        ),
        "lowest_kbps": number(
            "lowest bitrate of the channel that they accept in place of the requested one, kbit/s; default: "
            "the requested one",
            at_least=0,
            optional=True,
            may_be_blank=True,
        ),
        "arrival_s": number(
            "arrival of the first of them, s from the start of the window",
            at_least=0,
            at_most=MOST_S,
            optional=True,
        ),
    },
    key=("group", "channel", "bitrate_kbps"),
    may_be_empty=True,
)
HOLDERS: Final = Table(
    name="holders",
    about="a source that has a channel; channels without a row are at every source",
    columns={
        "channel": label("the channel", other_names=CHANNEL_NAMES),
        "source": label("cluster of the first tier"),
    },
    key=("channel", "source"),
    may_be_empty=True,
)
_RULE: Final[dict[str, Any]] = {
    "channel": label("a channel, or * for all"),
    "bitrate_kbps": label("a bitrate in kbit/s, or * for all"),
    "tail": label("where a link starts, or * for all"),
    "head": label("where a link ends, or * for all"),
}
PINNED: Final = Table(
    name="pinned",
    about="objects that must be served to all who request them (tail and head *), or must cross a link",
    columns=_RULE,
    may_be_empty=True,
)
FORBIDDEN: Final = Table(
    name="forbidden",
    about="objects that must not cross a link",
    columns=_RULE,
    may_be_empty=True,
)
SETTINGS: Final = Table(
    name="settings",
    about="one row: weights of service and cost in the objective, the length of a chunk, and the last hop",
    columns={
        "service_weight": number("value of one unit of priority served", at_least=0, at_most=MOST_PRIORITY),
        "cost_weight": number("value of one unit of cost x Mbit/s saved", at_least=0, at_most=MOST_COST),
        "chunk_s": number("length of a chunk, s", more_than=0, at_most=MOST_S, optional=True, default=2.0),
        "last_hop": choice(
            "how links into groups carry a stream: once for all of its viewers (multicast, the default), or "
            "once for each of them (unicast)",
            LAST_HOPS,
            optional=True,
        ),
    },
)
BILLS: Final = Table(
    name="bills",
    other_names=("providers", "tariffs", "transit contracts"),
    about="bills and caps of links together: a percentile of the month's samples at a price, with the window",
    columns={
        "bill": label(
            "its name, such as a provider", other_names=("provider", "carrier", "transit", "isp", "name")
        ),
        "price_per_mbps": number(
            "price of a billed Mbit/s, in the unit of the links' cost",
            at_least=0,
            at_most=MOST_PRICE,
            optional=True,
            default=0.0,
        ),
        "percentile": number(
            "percentile of the month's samples that is billed; 100 for the peak",
            more_than=0,
            at_most=100,
            optional=True,
            default=95.0,
        ),
        "windows": number(
            "windows of the month with the traffic of this plan, beside those of samples",
            at_least=1,
            at_most=MOST_SAMPLES,
            whole=True,
            optional=True,
            default=1.0,
        ),
        "commitment_mbps": number(
            "traffic that is paid for in any case, Mbit/s",
            at_least=0,
            at_most=MOST_MBPS,
            optional=True,
            default=0.0,
        ),
        "cap_mbps": number(
            "largest traffic of its links together, Mbit/s; blank: none",
            at_least=0,
            at_most=MOST_MBPS,
            optional=True,
            may_be_blank=True,
            other_names=("cap", "limit", "limit mbps", "most mbps"),
        ),
    },
    key=("bill",),
    may_be_empty=True,
)
SAMPLES: Final = Table(
    name="samples",
    other_names=("month", "billing samples", "usage"),
    about="traffic of a bill's links in the other windows of the month, measured or forecast",
    columns={
        "bill": label("its bill", other_names=("provider", "carrier", "transit", "isp")),
        "window": label(
            "name or time of the window", other_names=("time", "timestamp", "interval", "sample")
        ),
        "load_mbps": number(
            "traffic, Mbit/s", at_least=0, at_most=MOST_MBPS, other_names=("traffic", "rate", "load")
        ),
    },
    key=("bill", "window"),
    may_be_empty=True,
)
TABLES: Final = (CLUSTERS, LINKS, OBJECTS, REQUESTS, HOLDERS, PINNED, FORBIDDEN, BILLS, SAMPLES, SETTINGS)
OPTIONAL_TABLES: Final = ("holders", "pinned", "forbidden", "bills", "samples", "settings")

SERVICE_WEIGHT: Final = 1.0
COST_WEIGHT: Final = 1e-4


def empty_table(table: Table) -> pd.DataFrame:
    """Return a table without rows."""
    return pd.DataFrame({name: pd.Series(dtype=str) for name in table.columns})


def default_settings() -> pd.DataFrame:
    """Return service weight 1 and cost weight 1e-4: a path of cost 60 at 30 Mbit/s then costs 0.18."""
    return pd.DataFrame({"service_weight": [SERVICE_WEIGHT], "cost_weight": [COST_WEIGHT], "chunk_s": [2.0]})
