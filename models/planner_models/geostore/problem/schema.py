"""Tables of the problem: regions with prices, routes between them, groups of data, and who uses them."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Table, choice, label, number

MAX_USD: Final = 1e9
MAX_RATE: Final = 1e12
MAX_MS: Final = 1e7
GROUP_NAMES: Final = ("table", "bucket", "keyspace")
REGION_NAMES: Final = ("datacenter", "location", "dc")
JOIN: Final = " + "
"""Between several names in one cell."""
CODED: Final = "coded"
"""Atomic values that may be pieces of an erasure code (Coded Atomic Storage, as in LEGOStore)."""
CLASSES: Final = ("eventual", "causal", "quorum", "leader", CODED, "any")
STRONG: Final = ("quorum", "leader", CODED)
"""Classes that can keep a global invariant."""
SURVIVALS: Final = ("none", "zone", "region", "provider")
COLOCATED: Final = "colocated"
EVERY_REGION: Final = "every_region"
FRONTENDS: Final = (COLOCATED, EVERY_REGION)
CLOSURE: Final = "closure"
REMOTE: Final = "remote"
CHEAPEST: Final = "cheapest"
CHECKS: Final = (CLOSURE, REMOTE, CHEAPEST)
FILLS: Final = ("error", "relay")
DEFAULT_PROTOCOL: Final[dict[str, float | str]] = {
    "frontends": COLOCATED,
    "fill": "error",
    "checks": CLOSURE,
    "dependency_bytes": 16.0,
    "evt_bytes": 8.0,
    "read_metadata_bytes": 16.0,
    "overhead": 0.066,
    "local_rtt_ms": 0.5,
    "service_ms": 0.0,
    "read_timeout_s": 5.0,
    "refused_usd_per_million": 100.0,
    "replication_load": 1.0,
    "message_weight": 0.1,
    "move_weight": 0.0,
}
"""Protocol of problems without the table, or without one of its columns."""

PUT_NAMES: Final = (
    *("puts", "put requests", "put request", "write", "writes", "write requests", "write operations"),
    *("put, copy, post, list requests", "put, copy, post, or list requests", "class a operations"),
)
GET_NAMES: Final = (
    *("gets", "get requests", "get request", "read", "reads", "read requests", "read operations"),
    *("get, select, and all other requests", "get and all other requests", "class b operations"),
)
"""Names of requests in price lists of clouds."""

REGIONS: Final = Table(
    name="regions",
    other_names=("datacenters", "data centers", "zones", "price list", "prices"),
    about="a region of a cloud that may hold replicas, with its prices",
    columns={
        "region": label("name of the region", other_names=REGION_NAMES),
        "storage_usd_gb_month": number(
            "price of storage, USD for a GB and month", at_least=0, at_most=MAX_USD
        ),
        "put_usd": number(
            "price of a write request, USD",
            at_least=0,
            at_most=MAX_USD,
            optional=True,
            default=0.0,
            other_names=PUT_NAMES,
            of_requests=True,
        ),
        "get_usd": number(
            "price of a read request, USD",
            at_least=0,
            at_most=MAX_USD,
            optional=True,
            default=0.0,
            other_names=GET_NAMES,
            of_requests=True,
        ),
        "server_usd_month": number(
            "price of a server, USD a month",
            at_least=0,
            at_most=MAX_USD,
            optional=True,
            default=0.0,
            when_absent="servers cost nothing: storage is billed by request",
            other_names=("server price per month", "server price", "server cost"),
        ),
        "server_kops": number(
            "operations that a server carries, thousands a second",
            more_than=0,
            at_most=MAX_RATE,
            least=1e-9,
            optional=True,
            default=1e9,
            when_absent="servers carry any load",
        ),
        "least_servers": number(
            "servers of a region that is used; above 0, servers are whole numbers",
            at_least=0,
            at_most=1e9,
            whole=True,
            optional=True,
            default=0.0,
            when_absent="servers are billed by use",
            other_names=("min servers", "minimum servers"),
        ),
        "most_servers": number(
            "largest number of servers of a region",
            at_least=0,
            at_most=1e9,
            optional=True,
            may_be_blank=True,
            when_absent="regions have as many servers as are needed",
            other_names=("max servers", "maximum servers"),
        ),
        "zones": number(
            "availability zones", at_least=1, at_most=100, whole=True, optional=True, default=3.0
        ),
        "provider": label("provider of the cloud", optional=True),
        "latitude": number(
            "degrees north", at_least=-90, at_most=90, optional=True, confused_with="longitude"
        ),
        "longitude": number("degrees east", at_least=-180, at_most=180, optional=True),
    },
    key=("region",),
)
LINKS: Final = Table(
    name="links",
    other_names=("routes", "latencies", "rtt"),
    about="the way from one region to another: round-trip time, and price of traffic; none for one region",
    columns={
        "source": label("region that sends"),
        "target": label("region that receives"),
        "rtt_ms": number(
            "round-trip time, ms",
            more_than=0,
            at_most=MAX_MS,
            least=1e-6,
            usual=(0.1, 1000),
            other_names=("latency", "ping"),
        ),
        "usd_per_gb": number(
            "price of traffic, USD/GB",
            at_least=0,
            at_most=MAX_USD,
            optional=True,
            default=0.0,
            when_absent="traffic costs nothing",
        ),
    },
    key=("source", "target"),
    may_be_empty=True,
)
GROUPS: Final = Table(
    name="groups",
    other_names=("tables", "buckets", "data sets", "keyspaces"),
    about="a group of data that is placed as one, with its consistency and goals",
    columns={
        "group": label("name of the group", other_names=GROUP_NAMES),
        "size_gb": number("size of one replica, GB", at_least=0, at_most=1e12, other_names=("gb", "size")),
        "object_bytes": number("size of a column's value, bytes", more_than=0, at_most=1e12, least=1e-3),
        "class": choice("consistency", CLASSES, optional=True, other_names=("consistency",)),
        "invariant": choice(
            "whether a rule over all its data must hold at any time, such as a balance of at least 0",
            ("yes", "no"),
            optional=True,
        ),
        "counter": number(
            "share of writes that add to a counter",
            at_least=0,
            at_most=1,
            optional=True,
            default=0.0,
            share=True,
        ),
        "survive": choice("what may be lost without loss of the data", SURVIVALS, optional=True),
        "failures": number(
            "regions with a replica that may fail at once",
            at_least=0,
            at_most=1000,
            whole=True,
            optional=True,
            default=0.0,
        ),
        "read_ms": number(
            "limit of a page's reads, ms",
            more_than=0,
            at_most=MAX_MS,
            optional=True,
            may_be_blank=True,
            other_names=("read latency", "read limit", "max read latency"),
        ),
        "write_ms": number(
            "limit of a page's writes, ms",
            more_than=0,
            at_most=MAX_MS,
            optional=True,
            may_be_blank=True,
            other_names=("write latency", "write limit", "max write latency"),
        ),
        "failover_ms": number(
            "limit of a page at the replicas that remain after failures, ms",
            more_than=0,
            at_most=MAX_MS,
            optional=True,
            may_be_blank=True,
        ),
        "stale_ms": number(
            "limit of the time until a write is visible at every replica, ms",
            more_than=0,
            at_most=MAX_MS,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("group",),
)
ACCESS: Final = Table(
    name="access",
    other_names=("access log", "workload", "usage"),
    about="how users of a region use a group",
    columns={
        "group": label("name of the group", other_names=GROUP_NAMES),
        "region": label("region of the users", other_names=REGION_NAMES),
        "reads_per_s": number("read operations a second", at_least=0, at_most=MAX_RATE),
        "writes_per_s": number("write operations a second", at_least=0, at_most=MAX_RATE),
        "keys_per_op": number("keys of an operation", at_least=1, at_most=1e6, optional=True, default=1.0),
        "columns_per_key": number("columns of a key", at_least=1, at_most=1e6, optional=True, default=1.0),
        "write_transactions": number(
            "share of writes that are transactions",
            at_least=0,
            at_most=1,
            optional=True,
            default=0.0,
            share=True,
        ),
        "operations_per_page": number(
            "operations that a page waits for, one after another",
            at_least=1,
            at_most=1e6,
            optional=True,
            default=1.0,
        ),
    },
    key=("group", "region"),
)
DEPENDS: Final = Table(
    name="depends",
    other_names=("dependencies",),
    about="writes of a group that follow operations on another group, and must not be visible before them",
    columns={
        "group": label("group that is written", other_names=GROUP_NAMES),
        "on": label("group that it depends on"),
        "share": number(
            "share of its writes that depend there",
            at_least=0,
            at_most=1,
            optional=True,
            default=1.0,
            share=True,
        ),
        "per_write": number(
            "dependencies of such a write", more_than=0, at_most=1e6, optional=True, default=1.0
        ),
    },
    key=("group", "on"),
    may_be_empty=True,
)
PROTOCOL: Final = Table(
    name="protocol",
    about="one row: where front-end servers are, and what the protocol costs",
    columns={
        "frontends": choice(
            "colocated: users call a front-end server in a datacenter, whose operations are local; "
            "every_region: servers in the users' region call the store for each operation",
            FRONTENDS,
            optional=True,
        ),
        "fill": choice(
            "ways between regions that links do not have: error, or relay: the fastest over other regions",
            FILLS,
            optional=True,
        ),
        "checks": choice(
            "where the order of dependent writes is checked: closure: at the local replica, which must be "
            "there (Eiger); remote: at the nearest one; cheapest: the cheaper of both by group",
            CHECKS,
            optional=True,
        ),
        "dependency_bytes": number(
            "bytes of a dependency", at_least=0, at_most=1e6, optional=True, default=16.0
        ),
        "evt_bytes": number(
            "bytes of time stamps with a write", at_least=0, at_most=1e6, optional=True, default=8.0
        ),
        "read_metadata_bytes": number(
            "bytes of time stamps with each column that is read",
            at_least=0,
            at_most=1e6,
            optional=True,
            default=16.0,
        ),
        "overhead": number(
            "share of a server's operations that causal consistency costs",
            at_least=0,
            at_most=0.99,
            optional=True,
            default=0.066,
            share=True,
        ),
        "local_rtt_ms": number(
            "round-trip time within a datacenter, ms",
            more_than=0,
            at_most=MAX_MS,
            least=1e-6,
            optional=True,
            default=0.5,
        ),
        "service_ms": number(
            "time of a server for an operation, ms", at_least=0, at_most=MAX_MS, optional=True, default=0.0
        ),
        "read_timeout_s": number(
            "time for which old versions are kept for transactions, s",
            at_least=0,
            at_most=1e6,
            optional=True,
            default=5.0,
        ),
        "refused_usd_per_million": number(
            "penalty of a million operations for which a region has too few servers, USD",
            at_least=0,
            at_most=MAX_USD,
            optional=True,
            default=100.0,
        ),
        "replication_load": number(
            "load of a write from elsewhere over that of a local one",
            at_least=0,
            at_most=1e3,
            optional=True,
            default=1.0,
        ),
        "message_weight": number(
            "weight of the mean messages of a transaction over ranges, beside the largest load over capacity",
            at_least=0,
            at_most=1e6,
            optional=True,
            default=0.1,
        ),
        "move_weight": number(
            "weight of the share of the ranges' data that moves, beside the largest load over capacity",
            at_least=0,
            at_most=1e6,
            optional=True,
            default=0.0,
        ),
    },
    may_be_empty=True,
)
PLACED: Final = Table(
    name="placed",
    about="a replica that is in place already; moving it costs traffic",
    columns={
        "group": label("name of the group", other_names=GROUP_NAMES),
        "region": label("region of the replica", other_names=REGION_NAMES),
    },
    key=("group", "region"),
    may_be_empty=True,
)
PINNED: Final = Table(
    name="pinned",
    about="a replica that every plan must have, such as by law",
    columns={
        "group": label("name of the group", other_names=GROUP_NAMES),
        "region": label("region of the replica", other_names=REGION_NAMES),
    },
    key=("group", "region"),
    may_be_empty=True,
)
FORBIDDEN: Final = Table(
    name="forbidden",
    about="a region in which a group must not be stored",
    columns={
        "group": label("name of the group", other_names=GROUP_NAMES),
        "region": label("region without replica", other_names=REGION_NAMES),
    },
    key=("group", "region"),
    may_be_empty=True,
)
RANGES: Final = Table(
    name="ranges",
    other_names=("key ranges", "tablets", "chunks"),
    about="the ranges of an ordered keyspace in one datacenter, in the order of their keys",
    columns={
        "range": label("name of the range"),
        "kops": number("load, thousands of operations a second", at_least=0, at_most=MAX_RATE),
        "size_gb": number(
            "size, GB", at_least=0, at_most=1e12, optional=True, default=1.0, other_names=("gb", "size")
        ),
        "server": label("server that has it today", optional=True, may_be_blank=True),
    },
    key=("range",),
    may_be_empty=True,
)
SCANS: Final = Table(
    name="scans",
    about="operations that read all ranges from one to another",
    columns={
        "first": label("first range that is read"),
        "last": label("last range that is read"),
        "per_s": number("scans a second", at_least=0, at_most=MAX_RATE),
    },
    key=(),
    may_be_empty=True,
)
TRANSACTIONS: Final = Table(
    name="transactions",
    about="transactions that touch several ranges",
    columns={
        "ranges": label("ranges that it touches, joined by +"),
        "per_s": number("transactions a second", at_least=0, at_most=MAX_RATE),
    },
    key=(),
    may_be_empty=True,
)
SERVERS: Final = Table(
    name="servers",
    about="the servers of the datacenter that have the ranges, in the order of their runs of ranges",
    columns={
        "server": label("name of the server"),
        "kops": number(
            "operations that it carries, thousands a second", more_than=0, at_most=MAX_RATE, least=1e-9
        ),
    },
    key=("server",),
    may_be_empty=True,
)
TABLES: Final = (
    REGIONS,
    LINKS,
    GROUPS,
    ACCESS,
    DEPENDS,
    PROTOCOL,
    PLACED,
    PINNED,
    FORBIDDEN,
    RANGES,
    SCANS,
    TRANSACTIONS,
    SERVERS,
)
OPTIONAL_TABLES: Final = (
    "links",
    "depends",
    "protocol",
    "placed",
    "pinned",
    "forbidden",
    "ranges",
    "scans",
    "transactions",
    "servers",
)
