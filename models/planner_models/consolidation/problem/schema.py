"""Tables of the problem: types of hosts, machines to place, rules, and the machines' present hosts."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Table, choice, label, number

MAX_AMOUNT: Final = 1e9
MAX_COUNT: Final = 10_000_000
WHOLE_HOST: Final = "*"
"""Name of a node in `capacities` for a resource of the whole host."""
DOMAINS: Final = ("host", "rack", "zone")
MEMORY_NAMES: Final = ("ram", "mem")
HOST_TYPE_NAMES: Final = ("instance type", "server type", "machine type", "flavor", "flavour")
MACHINE_NAMES: Final = ("vm", "vm name", "pod", "pod name", "instance", "virtual machine")
CPU_NAMES: Final = ("vcpus", "vcpu", "cpus", "cpu", "num cpus")

HOSTS: Final = Table(
    name="hosts",
    other_names=("host types", "instance types", "flavours of hosts"),
    about="a type of host that can be had",
    columns={
        "host_type": label("name of the type", other_names=HOST_TYPE_NAMES),
        "price_per_h": number(
            "price of a host in an hour, monetary units",
            at_least=0,
            at_most=MAX_AMOUNT,
            least=1e-9,
        ),
        "most": number(
            "hosts of the type that can be had",
            at_least=0,
            at_most=MAX_COUNT,
            whole=True,
            optional=True,
            may_be_blank=True,
            when_absent="as many as needed, or those in the table present",
        ),
        "helper_share": number(
            "share of the threads that the hypervisor keeps, rounded down to threads",
            at_least=0,
            at_most=0.999,
            least=1e-9,
            optional=True,
            default=0.0,
            share=True,
        ),
        "threads_per_core": number(
            "hardware threads of a core",
            at_least=1,
            at_most=16,
            whole=True,
            optional=True,
            default=1.0,
        ),
        "threads": number(
            "hardware threads of a host, where the table nodes is absent",
            at_least=0,
            at_most=1e6,
            least=1e-6,
            optional=True,
            may_be_blank=True,
            other_names=CPU_NAMES,
        ),
        "memory_gb": number(
            "memory of a host, GB, where the table nodes is absent",
            at_least=0,
            at_most=1e9,
            least=1e-9,
            optional=True,
            may_be_blank=True,
            other_names=MEMORY_NAMES,
        ),
    },
    key=("host_type",),
)
NODES: Final = Table(
    name="nodes",
    other_names=("numa nodes",),
    about="a NUMA node of each host of a type",
    columns={
        "host_type": label("type of the host", other_names=HOST_TYPE_NAMES),
        "node": label("name of the node within the host", other_names=("numa node", "cell")),
        "threads": number(
            "hardware threads for machines and helpers",
            at_least=0,
            at_most=1e6,
            least=1e-6,
            other_names=CPU_NAMES,
        ),
        "memory_gb": number(
            "memory for machines, GB", at_least=0, at_most=1e9, least=1e-9, other_names=MEMORY_NAMES
        ),
    },
    key=("host_type", "node"),
)
CAPACITIES: Final = Table(
    name="capacities",
    about="an amount of another resource, such as GPUs, Gbit/s, huge pages, pods or volumes",
    columns={
        "host_type": label("type of the host", other_names=HOST_TYPE_NAMES),
        "node": label("node that has it; * for the whole host"),
        "resource": label("name of the resource"),
        "amount": number("amount for machines", at_least=0, at_most=1e12, least=1e-9),
    },
    key=("host_type", "node", "resource"),
    may_be_empty=True,
)
MACHINES: Final = Table(
    name="machines",
    other_names=("virtual machines", "vms", "pods", "servers", "workloads"),
    about="machines of the same shape: virtual machines or pods",
    columns={
        "machine": label("name of the shape, or of its only machine", other_names=MACHINE_NAMES),
        "count": number(
            "machines of this shape",
            at_least=0,
            at_most=MAX_COUNT,
            whole=True,
            optional=True,
            default=1.0,
            other_names=("quantity", "replicas"),
        ),
        "vcpus_min": number(
            "vCPUs that are reserved", at_least=0, at_most=1e6, least=1e-6, other_names=CPU_NAMES
        ),
        "vcpus_max": number(
            "vCPUs that it can use where threads are free",
            at_least=0,
            at_most=1e6,
            least=1e-6,
            optional=True,
            may_be_blank=True,
            when_absent="as many as are reserved",
        ),
        "memory_gb": number("memory, GB", at_least=0, at_most=1e9, least=1e-9, other_names=MEMORY_NAMES),
        "split": choice(
            "whether it can be in several nodes: never, even (equal shares of some nodes), any",
            ("never", "even", "any"),
            optional=True,
        ),
        "client": number(
            "vCPUs that are in one node together",
            more_than=0,
            at_most=1e6,
            least=1e-6,
            optional=True,
            default=1.0,
        ),
        "weight": number(
            "its throughput counts as divided by this, and its loss as multiplied by it",
            more_than=0,
            at_most=1e6,
            least=1e-6,
            optional=True,
            default=1.0,
        ),
        "group": label("groups that rules name, with ; between them", optional=True, may_be_blank=True),
        "at_once": number(
            "machines of the shape that may move at once, as a disruption budget allows; 0: none moves",
            at_least=0,
            at_most=MAX_COUNT,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
        "dirty_gbps": number(
            "memory that it writes while it moves, Gbit/s",
            at_least=0,
            at_most=1e6,
            least=1e-9,
            optional=True,
            default=0.0,
        ),
        "whole_cores": number(
            "1 where it shares no core with another machine, else 0",
            at_least=0,
            at_most=1,
            whole=True,
            optional=True,
            default=0.0,
        ),
    },
    key=("machine",),
)
USES: Final = Table(
    name="uses",
    about="another resource that each machine of a shape takes",
    columns={
        "machine": label("name of the shape", other_names=MACHINE_NAMES),
        "resource": label("name of the resource"),
        "amount": number("amount of each machine", at_least=0, at_most=1e12, least=1e-9),
    },
    key=("machine", "resource"),
    may_be_empty=True,
)
RULES: Final = Table(
    name="rules",
    other_names=("affinities",),
    about="where the members of a group may be: together (all in one domain, or none has a host), apart (one "
    "in a domain), spread (at most some in a domain), pin (only there) or not_on (not there); at_once is how "
    "many of them may move at once",
    columns={
        "kind": choice(
            "rule",
            ("together", "apart", "spread", "pin", "not_on", "at_once"),
            other_words={"apart": ("anti-affinity",)},
        ),
        "group": label("group of machines"),
        "domain": choice("what the rule is about", ("node", "host", "rack", "zone", "host_type")),
        "most": number(
            "members that a domain may hold, for spread and apart; that may move, for at_once",
            at_least=1,
            at_most=MAX_COUNT,
            whole=True,
            optional=True,
            default=1.0,
        ),
        "target": label(
            "name of the host type, host, rack or zone, for pin and not_on; of another group, from whose "
            "members those of the group are apart, for apart",
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("kind", "group", "domain", "target"),
    may_be_empty=True,
)
ZONES: Final = Table(
    name="zones",
    about="a zone where hosts can be had; without the table, and without present hosts, there is one",
    columns={
        "zone": label("name of the zone", other_names=("availability zone", "region")),
        "racks": number("racks of the zone", at_least=1, at_most=1e5, whole=True, optional=True, default=1.0),
        "most": number(
            "hosts that the zone can hold",
            at_least=0,
            at_most=MAX_COUNT,
            whole=True,
            optional=True,
            may_be_blank=True,
            when_absent="as many as needed",
        ),
    },
    key=("zone",),
    may_be_empty=True,
)
PRESENT: Final = Table(
    name="present",
    other_names=("inventory",),
    about="a host that is there; where the table has rows, no others are, unless a type has `most`",
    columns={
        "host": label("name of the host", other_names=("node name", "hostname")),
        "host_type": label("its type", other_names=HOST_TYPE_NAMES),
        "rack": label("its rack", optional=True, may_be_blank=True),
        "zone": label("its zone", optional=True, may_be_blank=True),
        "drain": number(
            "1 where it must be emptied, else 0",
            at_least=0,
            at_most=1,
            whole=True,
            optional=True,
            default=0.0,
        ),
    },
    key=("host",),
    may_be_empty=True,
)
NOW: Final = Table(
    name="now",
    other_names=("today", "current placement"),
    about="vCPUs of machines on a host today",
    columns={
        "machine": label("name of the shape", other_names=MACHINE_NAMES),
        "host": label("present host"),
        "node": label("node of the host; blank where it is not known", optional=True, may_be_blank=True),
        "vcpus": number(
            "vCPUs of all machines of this row together; blank: those that are reserved for them",
            at_least=0,
            at_most=1e6,
            least=1e-6,
            optional=True,
            may_be_blank=True,
        ),
        "machines": number(
            "machines of this row, where vcpus is blank or absent",
            at_least=0,
            at_most=MAX_COUNT,
            whole=True,
            optional=True,
            default=1.0,
        ),
    },
    key=("machine", "host", "node"),
    may_be_empty=True,
)
SURVIVE: Final = Table(
    name="survive",
    about="losses after which every machine restarts elsewhere",
    columns={
        "domain": choice("what is lost", DOMAINS),
        "losses": number(
            "how many of them are lost together",
            at_least=1,
            at_most=10,
            whole=True,
            optional=True,
            default=1.0,
        ),
        "group": label("machines that must restart; blank: all", optional=True, may_be_blank=True),
    },
    key=("domain", "group"),
    may_be_empty=True,
)
LINKS: Final = Table(
    name="links",
    about="the link over which machines move to or from a host",
    columns={
        "host": label("present host; * for all without a row"),
        "gbps": number("rate, Gbit/s", more_than=0, at_most=1e6, least=1e-6),
        "moves_at_once": number(
            "moves to or from the host together",
            at_least=1,
            at_most=1000,
            whole=True,
            optional=True,
            default=1.0,
        ),
    },
    key=("host",),
    may_be_empty=True,
)
EFFECTS: Final = Table(
    name="effects",
    about="throughput of a machine on hosts of a type, by its vCPUs and nodes",
    columns={
        "host_type": label("type of the host; * for all without a row"),
        "span_loss": number(
            "share of the throughput that each node beyond the first costs",
            at_least=0,
            at_most=1,
            least=1e-9,
            optional=True,
            default=0.0,
            share=True,
        ),
        "scaling": number(
            "exponent of the throughput over vCPUs",
            more_than=0,
            at_most=1,
            least=1e-3,
            optional=True,
            default=1.0,
        ),
        "fitted_from": label("source of the numbers", optional=True, may_be_blank=True),
    },
    key=("host_type",),
    may_be_empty=True,
)
EVENTS: Final = Table(
    name="events",
    about="a machine of a shape that arrives, leaves, or becomes one of another shape",
    columns={
        "at_s": number("time, s", at_least=0, at_most=1e9),
        "machine": label("name of the shape", other_names=MACHINE_NAMES),
        "what": choice("arrives, leaves or resizes", ("arrives", "leaves", "resizes")),
        "machines": number(
            "how many of them", at_least=0, at_most=MAX_COUNT, whole=True, optional=True, default=1.0
        ),
        "into": label("shape that a machine becomes, for resizes", optional=True, may_be_blank=True),
    },
    may_be_empty=True,
)
TABLES: Final = (
    *(HOSTS, NODES, CAPACITIES, MACHINES, USES, RULES, ZONES, PRESENT),
    *(NOW, SURVIVE, LINKS, EFFECTS, EVENTS),
)
OPTIONAL_TABLES: Final = tuple(table.name for table in TABLES if table not in (HOSTS, MACHINES))
