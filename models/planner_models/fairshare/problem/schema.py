"""Tables of a problem of system `fairshare`."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Table, choice, label, number

ELASTIC, FIXED = "elastic", "fixed"
MIXES: Final = (ELASTIC, FIXED)
ANY: Final = "*"
REQUESTS: Final = "requests"
READS: Final = "reads"
WRITES: Final = "writes"
COST: Final = "cost of requests"
MOST_WRITE_COST: Final = 1e6
MOST_NODES: Final = 10_000
MOST_TENANTS: Final = 1_000_000
MOST_PARTITIONS: Final = 2_000_000
MOST_EVENTS: Final = 100_000
MOST_GROUPS: Final = 10_000
MOST_REPLICAS: Final = 20_000_000
"""Of all partitions, if each had as many as the one with most."""
MOST_PAIRS: Final = 20_000_000
"""Of tenants and nodes."""
MOST_PLACES: Final = 500_000_000
"""Of partitions and nodes, where rules say which are possible."""
MOST_OUTSTANDING: Final = 1_000_000
MOST_S: Final = 1e9
NODE_NAMES: Final = ("server", "host", "machine", "instance", "hostname")
TENANT_NAMES: Final = ("customer", "user", "client", "account", "application")
GROUP_NAMES: Final = ("queue", "department", "team", "folder", "project")
PARTITION_NAMES: Final = ("shard", "key range", "slice", "bucket", "tablet")
MOST_KOPS: Final = 1e9
LEAST_KOPS: Final = 1e-6
MOST_GB: Final = 1e9
LEAST_GB: Final = 1e-9
MOST_WEIGHT: Final = 1e6
LEAST_WEIGHT: Final = 1e-6
MOST_CAPACITY: Final = 1e12
LEAST_CAPACITY: Final = 1e-9

NODES: Final = Table(
    name="nodes",
    other_names=("servers", "hosts", "machines"),
    about="servers of the store",
    columns={
        "node": label("server", other_names=NODE_NAMES),
        "rate_kops": number(
            "requests that it serves in a millisecond, thousands per second", more_than=0,
            at_most=MOST_KOPS, least=LEAST_KOPS,
        ),
        "memory_gb": number("memory for partitions, GB", more_than=0, at_most=MOST_GB, least=LEAST_GB),
        "domain": label(
            "rack or zone that fails as one; replicas of a partition are in distinct ones",
            optional=True, may_be_blank=True,
        ),
        "read_kops": number(
            "reads that it serves at most, thousands per second; 0: none; blank: as many as requests",
            at_least=0, at_most=MOST_KOPS, least=LEAST_KOPS, optional=True, may_be_blank=True,
            other_names=("read iops", "reads", "read rate"),
        ),
        "write_kops": number(
            "writes that it serves at most, thousands per second; 0: none; blank: as many as requests",
            at_least=0, at_most=MOST_KOPS, least=LEAST_KOPS, optional=True, may_be_blank=True,
            other_names=("write iops", "writes", "write rate"),
        ),
        "failed": number(
            "1: does not work, 0: works", at_least=0, at_most=1, whole=True, optional=True, default=0.0
        ),
    },
    key=("node",),
)  # fmt: skip
TENANTS: Final = Table(
    name="tenants",
    other_names=("customers", "users"),
    about="customers that share the store",
    columns={
        "tenant": label("customer", other_names=TENANT_NAMES),
        "weight": number(
            "part of the store that it is due, relative to the weights of others", more_than=0,
            at_most=MOST_WEIGHT, least=LEAST_WEIGHT,
        ),
        "mix": choice(
            "elastic: each partition is served up to its own demand; fixed: requests keep their "
            "proportions, so that the slowest partition holds back all others", MIXES,
        ),
        "replicas": number(
            "copies of each partition, on distinct nodes", at_least=1, at_most=MOST_NODES, whole=True,
            optional=True, default=1.0,
        ),
        "most_nodes": number(
            "nodes that its partitions may be on; empty: any number", at_least=1, at_most=MOST_NODES,
            whole=True, optional=True, may_be_blank=True,
        ),
        "group": label(
            "group of tenants that it shares with, of table groups; empty: none", optional=True,
            may_be_blank=True, other_names=GROUP_NAMES,
        ),
        "reserved_kops": number(
            "requests that it is served, as far as it demands them, before weights count; empty: none",
            at_least=0, at_most=MOST_KOPS, optional=True, may_be_blank=True,
            other_names=("reservation", "reservation kops", "floor", "guaranteed kops"),
        ),
        "limit_kops": number(
            "requests that it is served at most; empty: any number", more_than=0, at_most=MOST_KOPS,
            least=LEAST_KOPS, optional=True, may_be_blank=True, other_names=("limit", "cap", "ceiling"),
        ),
        "write_share": number(
            "part of its requests that are writes, the others are reads; empty: none", at_least=0, at_most=1,
            optional=True, may_be_blank=True, share=True, other_names=("writes", "write ratio"),
        ),
        "write_cost": number(
            "requests that a write counts as, of a server's rate_kops; empty: one", at_least=1,
            at_most=MOST_WRITE_COST, optional=True, may_be_blank=True,
        ),
        "outstanding": number(
            "requests that it keeps waiting, of all its clients; empty: by the simulation", at_least=1,
            at_most=MOST_OUTSTANDING, whole=True, optional=True, may_be_blank=True,
        ),
    },
    key=("tenant",),
)  # fmt: skip
GROUPS: Final = Table(
    name="groups",
    other_names=("queues", "cohorts", "departments", "folders"),
    about="groups of tenants, and of other groups, that share what their group is due",
    columns={
        "group": label("group", other_names=GROUP_NAMES),
        "parent": label(
            "group that it is part of; empty: none", optional=True, may_be_blank=True,
            other_names=("parent queue", "parent group", "cohort"),
        ),
        "weight": number(
            "part that it is due, relative to the weights of the groups and tenants beside it", more_than=0,
            at_most=MOST_WEIGHT, least=LEAST_WEIGHT,
        ),
    },
    key=("group",),
    may_be_empty=True,
)  # fmt: skip
PARTITIONS: Final = Table(
    name="partitions",
    other_names=("shards", "keyspaces"),
    about="parts of the tenants' data, with the requests for them",
    columns={
        "tenant": label("tenant that owns it", other_names=TENANT_NAMES),
        "partition": label(
            "name of the partition, of its own within the tenant", other_names=PARTITION_NAMES
        ),
        "demand_kops": number(
            "requests for it, thousands per second", at_least=0, at_most=MOST_KOPS, least=LEAST_KOPS
        ),
        "size_gb": number("memory that a replica takes, GB", at_least=0, at_most=MOST_GB, least=LEAST_GB),
    },
    key=("tenant", "partition"),
)
RESOURCES: Final = Table(
    name="resources",
    about="further resources of nodes, beside requests",
    columns={
        "node": label("server", other_names=NODE_NAMES),
        "resource": label("resource, such as CPU"),
        "capacity": number(
            "how much of it is used up in a second", more_than=0, at_most=MOST_CAPACITY, least=LEAST_CAPACITY
        ),
    },
    key=("node", "resource"),
    may_be_empty=True,
)
USES: Final = Table(
    name="uses",
    about="use of these resources by requests",
    columns={
        "tenant": label("tenant", other_names=TENANT_NAMES),
        "resource": label("resource"),
        "per_op": number(
            "use by a thousand requests of the tenant", at_least=0, at_most=MOST_CAPACITY,
            least=LEAST_CAPACITY,
        ),
    },
    key=("tenant", "resource"),
    may_be_empty=True,
)  # fmt: skip
PLACED: Final = Table(
    name="placed",
    other_names=("replicas", "placement"),
    about="replicas where they are now, from which moves are counted",
    columns={
        "tenant": label("tenant", other_names=TENANT_NAMES),
        "partition": label("partition", other_names=PARTITION_NAMES),
        "node": label("node that has a replica", other_names=NODE_NAMES),
    },
    key=("tenant", "partition", "node"),
    may_be_empty=True,
)
PINNED: Final = Table(
    name="pinned",
    about="replicas that must be on a node",
    columns={
        "tenant": label("tenant; * for any", other_names=TENANT_NAMES),
        "partition": label("partition; * for any of the tenant", other_names=PARTITION_NAMES),
        "node": label("node that must have a replica", other_names=NODE_NAMES),
    },
    key=("tenant", "partition", "node"),
    may_be_empty=True,
)
FORBIDDEN: Final = Table(
    name="forbidden",
    about="nodes that may have no replica",
    columns={
        "tenant": label("tenant; * for any", other_names=TENANT_NAMES),
        "partition": label("partition; * for any of the tenant", other_names=PARTITION_NAMES),
        "node": label("node; * for any", other_names=NODE_NAMES),
    },
    key=("tenant", "partition", "node"),
    may_be_empty=True,
)
EVENTS: Final = Table(
    name="events",
    about="changes of demand in a simulation",
    columns={
        "at_s": number("time of the change", at_least=0, at_most=MOST_S),
        "tenant": label("tenant", other_names=TENANT_NAMES),
        "partition": label(
            "partition; * for the tenant's whole demand, in unchanged proportions",
            other_names=PARTITION_NAMES,
        ),
        "demand_kops": number(
            "requests from then on, thousands per second", at_least=0, at_most=MOST_KOPS, least=LEAST_KOPS
        ),
    },
    key=("at_s", "tenant", "partition"),
    may_be_empty=True,
)
TABLES: Final = (NODES, TENANTS, PARTITIONS, GROUPS, RESOURCES, USES, PLACED, PINNED, FORBIDDEN, EVENTS)
OPTIONAL_TABLES: Final = ("groups", "resources", "uses", "placed", "pinned", "forbidden", "events")
