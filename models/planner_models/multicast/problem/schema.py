"""Schemas of the tables of a multicast problem."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Column, Table, label, number

MOST_MBPS: Final = 1e12  # an exabit per second
LEAST_MBPS: Final = 1e-15  # but 0; less has no meaning, and its ratios overflow
MOST_ENTRIES: Final = 1e9
PROCESSOR_MBPS: Final = 100.0  # some 8,000 packets of 1,500 bytes a second; an assumption of ours


def _count(
    about: str, *, at_least: float = 0, optional: bool = False, default: float | None = None
) -> Column:
    """Return a column of whole numbers."""
    return number(
        about, at_least=at_least, at_most=MOST_ENTRIES, whole=True, optional=optional, default=default
    )


def _rate(about: str, *, more_than: float | None = None) -> Column:
    """Return a column of rates, Mbit/s, within the largest rate of networks."""
    at_least = 0 if more_than is None else None
    return number(about, more_than=more_than, at_least=at_least, at_most=MOST_MBPS, least=LEAST_MBPS)


FABRIC: Final = Table(
    name="fabric",
    about="the one network, in one row",
    columns={
        "kind": label("connection of pods to cores: ab, standard, portland; tree: by the table links"),
        "k": number("ports of each switch of a fat tree, even", at_least=2, at_most=64, optional=True),
        "partitions": number("number n of partitions of the address space", at_least=1),
        "core_copies": number("cores rc that hold each partition", at_least=1),
        "aggregation_copies": number("aggregation switches ra of a pod that hold each partition", at_least=1),
        "core_entries": _count("table entries of a core switch"),
        "aggregation_entries": _count("table entries of an aggregation switch"),
        "edge_entries": _count("table entries of an edge switch"),
        "processor_mbps": number(
            "traffic of groups without an entry that the processor of a switch forwards, Mbit/s; default: "
            "100",
            at_least=0,
            at_most=MOST_MBPS,
            optional=True,
        ),
    },
)
SWITCHES: Final = Table(
    name="switches",
    about="switches of a tree; of a fat tree, only those whose table differs: core-0, aggregation-0-1 (pod, "
    "number), edge-0-1",
    columns={
        "switch": label("its name"),
        "layer": label("core, aggregation or edge; spine and leaf of two tiers; for trees", optional=True),
        "pod": number("its pod, from 0; for trees, any for cores; none in two tiers", optional=True),
        "entries": _count("table entries, instead of its layer's", optional=True),
        "occupied": _count("entries that others occupy", optional=True, default=0.0),
    },
    key=("switch",),
)
LINKS: Final = Table(
    name="links",
    about="a link of a tree; links within a pod all exist and may be left out",
    columns={"lower": label("switch nearer to the hosts"), "upper": label("switch nearer to the cores")},
    key=("lower", "upper"),
)
HOLDS: Final = Table(
    name="holds",
    about="a partition of the addresses that a core or aggregation switch holds, instead of a computed one",
    columns={"switch": label("the switch"), "partition": number("the partition, from 0", at_least=0)},
    key=("switch", "partition"),
)
BACKGROUND: Final = Table(
    name="background",
    about="other traffic on a link towards the hosts",
    columns={
        "upper": label("switch that sends"),
        "lower": label("switch or host that receives"),
        "mbps": _rate("its rate, Mbit/s"),
    },
    key=("upper", "lower"),
)
FAILED: Final = Table(
    name="failed",
    about="a switch that has failed: plans stay, packets are rerouted locally, and hosts of a failed edge "
    "switch neither send nor receive",
    columns={"switch": label("its name")},
    key=("switch",),
    may_be_empty=True,
)
FAILED_LINKS: Final = Table(
    name="failed_links",
    about="a link between switches that has failed, in both directions",
    columns={"lower": label("switch nearer to the hosts"), "upper": label("switch nearer to the cores")},
    key=("lower", "upper"),
    may_be_empty=True,
)
HOSTS: Final = Table(
    name="hosts",
    about="a host at a port of an edge switch; without this table, hosts of a fat tree are h0, h1, ... port "
    "by port",
    columns={
        "host": label("its name"),
        "pod": number("pod, from 0", at_least=0, optional=True),
        "edge": number("edge switch of the pod, from 0", at_least=0, optional=True),
        "switch": label("its edge switch, instead of pod and edge", optional=True),
        "port": number("port of the edge switch, from 0", at_least=0),
    },
    key=("host",),
)
TENANTS: Final = Table(
    name="tenants",
    about="placement: a host with a machine of the tenant",
    columns={"tenant": label("the tenant"), "host": label("the host")},
    key=("tenant", "host"),
    compact=True,
)
GROUPS: Final = Table(
    name="groups",
    about="a multicast group",
    columns={
        "group": label("its name"),
        "rate_mbps": _rate("traffic sent to it, Mbit/s", more_than=0),
        "tenant": label("its tenant; its members are among the tenant's hosts", optional=True),
    },
    key=("group",),
)
MEMBERS: Final = Table(
    name="members",
    about="a host that receives a group",
    columns={"group": label("the group"), "host": label("the host")},
    key=("group", "host"),
    compact=True,
)
TABLES: Final = (
    FABRIC,
    SWITCHES,
    LINKS,
    HOLDS,
    BACKGROUND,
    FAILED,
    FAILED_LINKS,
    HOSTS,
    TENANTS,
    GROUPS,
    MEMBERS,
)
OPTIONAL_TABLES: Final = (
    "switches",
    "links",
    "holds",
    "background",
    "failed",
    "failed_links",
    "hosts",
    "tenants",
)
