"""Tables of the problem: sites with their failures, delays between them, and services with members there."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Table, choice, label, number

KINDS: Final = ("host", "rack", "zone", "region", "provider")
"""Kinds of sites, from the smallest to the largest."""
LEADER, MEMBER, MANAGER, WITNESS = "leader", "member", "manager", "witness"
ROLES: Final = (LEADER, MEMBER, MANAGER, WITNESS)
"""A witness votes, stores no data, and never leads."""
WITNESS_SITE: Final = "yes"
MAJORITY, DEFINITIVE, BYZANTINE = "majority", "definitive", "byzantine"
PROTOCOLS: Final = (MAJORITY, DEFINITIVE, BYZANTINE)
HEARTBEAT, LEASE, PHI, SWIM, NETWORK = "heartbeat", "lease", "phi", "swim", "network"
NODE: Final = "node"
"""Leases of Kubernetes nodes."""
WATCHER_KINDS: Final = (HEARTBEAT, LEASE, PHI, SWIM, NETWORK, NODE)
ROUND: Final = "round"
"""In plans only: members agree in rounds of a fixed length, and nobody watches a leader."""
STARTS: Final = ("random", "grid", "ring")
"""Whom members know before they discover each other: three random ones, or neighbours on a grid or ring."""
HOST_PORT, SWITCH_PORT = "host", "switch"
GRANULARITIES: Final = ("process", "application", "epoch")
"""What a rule of a fence stops, from the finest."""
EXCLUDED: Final = "excluded"
"""In place of a granularity: the whole switch is excluded, and fenced by its neighbours."""
NAME_BITS: Final = 16
"""Bits of a process's name in a source MAC address beside the 32 bits of its host (Leners 2015, 6.1)."""
STATES: Final = ("up", "lost")
MAX_RATE: Final = 1e6
MAX_S: Final = 1e9
MAX_MS: Final = 1e8
MAX_MEMBERS: Final = 31
DEFAULT_MANAGERS: Final = 3
LOCAL_RTT_MS: Final = 1.0
"""Round-trip time between sites of one region that the table of delays does not name."""

SITE_NAMES: Final = ("host", "zone", "region", "datacenter", "location")

SITES: Final = Table(
    name="sites",
    other_names=("hosts", "zones", "regions", "datacenters", "locations"),
    about="a host, rack, zone, region or provider; it serves while it and all sites above it are up",
    columns={
        "site": label("name of the site", other_names=SITE_NAMES),
        "kind": choice(
            "kind of the site",
            KINDS,
            other_words={
                "host": ("node", "server", "machine"),
                "zone": ("availability zone", "az"),
                "region": ("datacenter", "data center", "dc"),
                "provider": ("cloud",),
            },
        ),
        "parent": label(
            "the site that it is in; blank for one of the largest",
            may_be_blank=True,
            other_names=("in", "part of"),
        ),
        "fails_per_month": number(
            "failures in a month of operation; those of hosts stop processes, all others cut them off",
            at_least=0,
            at_most=MAX_RATE,
            least=1e-12,
            usual=(0.0, 100.0),
        ),
        "repair_s": number("time until it is up again, s", at_least=0, at_most=MAX_S, least=1e-6),
        "price_per_month": number(
            "price of a member here for a month; 0 for sites with others in them",
            at_least=0,
            at_most=1e9,
            least=1e-6,
        ),
        "hosts": number(
            "members that it can have; those in a row of kind host are on so many hosts alike, which fail "
            "separately; blank: 1 on a host, no limit elsewhere",
            at_least=0,
            at_most=1e6,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
        "state": choice(
            "up, or lost: down for good, with all sites in it",
            STATES,
            optional=True,
            may_be_blank=True,
            other_words={"lost": ("failed", "down")},
        ),
        "witness": choice(
            "whether members here only vote: such witnesses store no data and never lead",
            ("no", WITNESS_SITE),
            optional=True,
            may_be_blank=True,
            other_words={"no": ("false",), WITNESS_SITE: ("true",)},
        ),
        "latitude": number(
            "degrees north",
            at_least=-90,
            at_most=90,
            optional=True,
            may_be_blank=True,
            confused_with="longitude",
            other_names=("lat",),
        ),
        "longitude": number(
            "degrees east",
            at_least=-180,
            at_most=180,
            optional=True,
            may_be_blank=True,
            other_names=("lon", "lng", "long"),
        ),
    },
    key=("site",),
)
SHARED_RISKS: Final = Table(
    name="shared_risks",
    other_names=("risks", "power feeds"),
    about="an event that fails several sites, such as a power feed or an upgrade: a row for each site",
    columns={
        "risk": label("name of the event"),
        "site": label("site that it fails"),
        "fails_per_month": number("events in a month", at_least=0, at_most=MAX_RATE, least=1e-12),
        "repair_s": number("time until the sites are up again, s", at_least=0, at_most=MAX_S, least=1e-6),
    },
    key=("risk", "site"),
    may_be_empty=True,
)
DELAYS: Final = Table(
    name="delays",
    other_names=("rtt", "latency", "latencies"),
    about="round-trip time between two sites, of members in or below them; the same both ways",
    columns={
        "from": label("one site", other_names=("source", "a")),
        "to": label("the other site", other_names=("target", "destination", "b")),
        "rtt_ms": number(
            "round-trip time, ms",
            at_least=0,
            at_most=MAX_MS,
            least=1e-6,
            usual=(0.01, 1e3),
            other_names=("latency",),
        ),
        "p99_ms": number(
            "99th percentile of the round-trip time, ms; blank: as the round-trip time",
            at_least=0,
            at_most=MAX_MS,
            optional=True,
            may_be_blank=True,
        ),
        "loss": number(
            "share of messages that are lost",
            at_least=0,
            at_most=0.999999,
            optional=True,
            default=0.0,
            share=True,
        ),
    },
    key=("from", "to"),
    may_be_empty=True,
)
PAUSES: Final = Table(
    name="pauses",
    about="pauses of a process at a site or in it, such as garbage collection or a slow disk",
    columns={
        "site": label("site of the process"),
        "per_month": number("pauses of a process in a month", at_least=0, at_most=1e9, least=1e-12),
        "mean_s": number("mean length, s; lengths are exponential", at_least=0, at_most=MAX_S, least=1e-9),
    },
    key=("site",),
    may_be_empty=True,
)
SERVICES: Final = Table(
    name="services",
    about="a replicated service: the faults that it tolerates, and its limits",
    columns={
        "service": label("name of the service", other_names=("cluster",)),
        "protocol": choice(
            "agreement by a majority, by definitive reports of managers, or with Byzantine members",
            PROTOCOLS,
            other_words={
                "majority": ("raft", "zab", "paxos", "etcd", "consul", "zookeeper", "kraft"),
                "definitive": ("aab", "primary-backup", "primary backup", "albatross"),
                "byzantine": ("bft", "pbft"),
            },
        ),
        "faults": number("members that may fail", at_least=0, at_most=15, whole=True),
        "members": number(
            "number of members; blank: the fewest that tolerate the faults",
            at_least=1,
            at_most=MAX_MEMBERS,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
        "managers": number(
            "managers that report failures, for designs with definitive reports; blank: 3",
            at_least=0,
            at_most=MAX_MEMBERS,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
        "failover_s": number(
            "time from a suspicion until the next leader serves, s", at_least=0, at_most=MAX_S, least=1e-9
        ),
        "down_cost_per_s": number("cost of a second without service", at_least=0, at_most=1e9, least=1e-9),
        "most_commit_ms": number(
            "longest time until a quorum has a decision, ms; blank: no limit",
            at_least=0,
            at_most=MAX_MS,
            optional=True,
            may_be_blank=True,
        ),
        "most_price_per_month": number(
            "largest price of all members for a month; blank: no limit",
            at_least=0,
            at_most=1e12,
            optional=True,
            may_be_blank=True,
        ),
        "decisions_per_s": number("decisions, 1/s", at_least=0, at_most=1e9, optional=True, default=0.0),
        "value_bytes": number("bytes of a decision", at_least=0, at_most=1e9, optional=True, default=0.0),
        "targets": number(
            "processes that its managers watch, such as clients with sessions; blank: the members",
            at_least=0,
            at_most=1e7,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("service",),
)
WATCHERS: Final = Table(
    name="watchers",
    about="settings of one kind of failure detector; kinds without a row have their usual defaults",
    columns={
        "kind": choice("kind of the detector", WATCHER_KINDS, other_words={HEARTBEAT: ("raft",)}),
        "interval_ms": number("time between two messages, ms", more_than=0, at_most=MAX_MS, least=1e-3),
        "timeout_ms": number(
            "silence after which a process is suspected, ms; blank: the usual default",
            more_than=0,
            at_most=MAX_MS,
            optional=True,
            may_be_blank=True,
        ),
        "capacity_per_s": number(
            "messages that the managers can receive, 1/s; blank: no limit",
            more_than=0,
            at_most=1e12,
            optional=True,
            may_be_blank=True,
        ),
        "bytes": number("bytes of a message", at_least=0, at_most=1e9),
    },
    key=("kind",),
    may_be_empty=True,
)
CURRENT: Final = Table(
    name="current",
    about="members of today: where each is, with its role",
    columns={
        "service": label("name of the service"),
        "site": label("site of the members"),
        "role": choice(
            "leader, member, manager or witness", ROLES, optional=True, other_words={MEMBER: ("follower",)}
        ),
        "count": number(
            "members there", at_least=1, at_most=MAX_MEMBERS, whole=True, optional=True, default=1.0
        ),
    },
    key=("service", "site", "role"),
    may_be_empty=True,
)
PORTS: Final = Table(
    name="ports",
    about="a port of a switch that is fenced when what is behind it is reported as down",
    columns={
        "switch": label("name of the switch"),
        "port": label("name of the port"),
        "to": choice("what is behind the port", (HOST_PORT, SWITCH_PORT)),
        "applications": number("applications behind it", at_least=0, at_most=1e6, whole=True),
        "epochs": number("epochs of the processes behind it", at_least=0, at_most=65_536, whole=True),
        "processes": number("processes behind it", at_least=0, at_most=1e7, whole=True),
        "rule_capacity": number(
            "rules that the switch can hold; the same at all its ports",
            more_than=0,
            at_most=1e6,
            whole=True,
        ),
        "rule_ms": number(
            "time that the switch takes to install a rule, ms; the same at all its ports",
            at_least=0,
            at_most=MAX_MS,
        ),
    },
    key=("switch", "port"),
    may_be_empty=True,
)
NAMING: Final = Table(
    name="naming",
    about="names of processes and how long these live: one row",
    columns={
        "bits_of_epoch": number("bits of the epoch", at_least=0, at_most=NAME_BITS, whole=True),
        "bits_of_app": number("bits of the application", at_least=0, at_most=NAME_BITS, whole=True),
        "bits_of_local": number(
            "bits that tell processes of an application on a host apart",
            at_least=0,
            at_most=NAME_BITS,
            whole=True,
        ),
        "processes": number("processes that live at a time", at_least=1, at_most=1e7, whole=True),
        "life_days": number("mean life of a process, days", more_than=0, at_most=1e5, least=1e-6),
        "partitions_per_month": number(
            "partitions in a month that cut more than one host", at_least=0, at_most=1e5, least=1e-9
        ),
        "ports_per_cut": number(
            "ports to switches that a partition cuts",
            at_least=1,
            at_most=1_000,
            whole=True,
            optional=True,
            default=1.0,
        ),
        "retries": number(
            "switches that refuse rules in a partition, so that it is enforced again",
            at_least=0,
            at_most=1_000,
            whole=True,
            optional=True,
            default=0.0,
        ),
    },
    may_be_empty=True,
)
EVENTS: Final = Table(
    name="events",
    about="recorded failures in order of time, which a simulation replays in place of drawn ones",
    columns={
        "at_s": number("time from the beginning, s", at_least=0, at_most=MAX_S * 1e3, other_names=("time",)),
        "site": label("site that fails or returns"),
        "what": choice(
            "down or pause, until the next up of the site; flap: suspected though it is up",
            ("down", "up", "pause", "flap"),
        ),
    },
    may_be_empty=True,
)
GOSSIP: Final = Table(
    name="gossip",
    other_names=("memberlist", "serf"),
    about="a group of processes that find each other and spread news, such as agents of Consul: one row",
    columns={
        "members": number("processes of the group", at_least=2, at_most=1e7, whole=True),
        "seeds": number("seeds that a process joins at", at_least=1, at_most=1e5, whole=True),
        "fan_out": number(
            "random others that a process sends news to in a round", at_least=1, at_most=1e4, whole=True
        ),
        "interval_ms": number("length of a round, ms", more_than=0, at_most=MAX_MS, least=1e-3),
        "retransmit": number(
            "messages of a process for each news are this x ceil(log10(members + 1))",
            at_least=1,
            at_most=1e4,
            whole=True,
        ),
        "joins_per_s": number("processes that join in a second", at_least=0, at_most=1e7, least=1e-9),
        "syncs_per_s": number("joins that a seed can serve in a second", more_than=0, at_most=1e7),
        "loss": number(
            "share of messages that are lost",
            at_least=0,
            at_most=0.999999,
            optional=True,
            default=0.0,
            share=True,
        ),
        "start": choice(
            "whom processes know before they discover each other; blank: random",
            STARTS,
            optional=True,
            may_be_blank=True,
        ),
    },
    may_be_empty=True,
)
CONTACTS: Final = Table(
    name="contacts",
    about="an address that a process of the group knows before they discover each other",
    columns={
        "member": label("name of the process", other_names=("from",)),
        "knows": label("name of the process that it knows", other_names=("to",)),
    },
    key=("member", "knows"),
    may_be_empty=True,
)
TABLES: Final = (
    SITES, DELAYS, SERVICES, SHARED_RISKS, PAUSES, WATCHERS, CURRENT, PORTS, NAMING, EVENTS, GOSSIP, CONTACTS,
)  # fmt: skip
OPTIONAL_TABLES: Final = (
    "shared_risks",
    "delays",
    "pauses",
    "watchers",
    "current",
    "ports",
    "naming",
    "events",
    "gossip",
    "contacts",
)
