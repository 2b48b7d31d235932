"""Tables of a problem of system `flowtables`."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Table, choice, label, number
from planner_models.flowtables.problem.fields import ROLES, STAGES

MOST_BITS: Final = 128
PARALLEL: Final = "parallel"
SEQUENTIAL: Final = "sequential"
RESTRICT: Final = "restrict"
OPERATORS: Final = (PARALLEL, SEQUENTIAL, RESTRICT)
MOST_FIELDS: Final = 64
MOST_CHANGES: Final = 1_000
MOST_TABLES: Final = 255
MOST_ENTRIES: Final = 1_000_000
MOST_PRIORITY: Final = 2**31

FIELDS: Final = Table(
    name="fields",
    about="a header field that rules match; absent: source and destination address, protocol and ports",
    columns={
        "field": label("name of the field"),
        "bits": number("size of the field, bits", at_least=1, at_most=MOST_BITS, whole=True),
        "stage": choice("layer of the field, in the order of staged lookup: metadata, l2, l3, l4", STAGES),
        "prefix": number(
            "1 where rules match the field by prefixes, so that a trie can track them; 0 elsewhere",
            at_least=0,
            at_most=1,
            whole=True,
            optional=True,
            default=0.0,
        ),
        "role": choice(
            "packet; always: every entry matches the field, as Open vSwitch does with in_port, eth_type and "
            "nw_frag; register: no part of a packet, 0 until an action sets it; absent: packet",
            ROLES,
            optional=True,
        ),
    },
    key=("field",),
)
RULES: Final = Table(
    name="rules",
    about="a rule of a flow table of the switch; a packet without a match is dropped. Absent: from modules",
    columns={
        "priority": number(
            "priority within its table; the highest wins", at_least=0, at_most=MOST_PRIORITY, whole=True
        ),
        "match": label(
            "fields and values, such as ip_src=10.0.0.0/8 tcp_dst=80:443; empty: all packets",
            may_be_blank=True,
        ),
        "action": label(
            "what happens to the packet, such as drop, out:3, count:7, set:dec_ttl out:3, or goto:1 for a "
            "lookup in table 1; steps are between blanks"
        ),
        "table": number(
            "number of the flow table; packets start at table 0",
            at_least=0,
            at_most=MOST_TABLES - 1,
            whole=True,
            optional=True,
            default=0.0,
        ),
    },
    may_be_empty=True,
)
FLOWS: Final = Table(
    name="flows",
    about="a new connection, in the order of arrival",
    columns={
        "header": label("fields and values of its packets; fields that are not there are 0"),
        "packets": number(
            "packets of the connection", at_least=1, at_most=1e9, whole=True, optional=True, default=1.0
        ),
        "start_s": number(
            "time of its first packet, s, for simulations; absent: at a steady rate",
            at_least=0,
            at_most=1e9,
            optional=True,
        ),
    },
    divisible=("packets",),
)
COSTS: Final = Table(
    name="costs",
    about="CPU times and limits of the switch, in one row; absent: as published for Open vSwitch",
    columns={
        "probe_ns": number(
            "CPU time of one lookup in the hash table of a mask, ns",
            at_least=0, at_most=1e9, optional=True, default=147.0,
        ),
        "upcall_us": number(
            "CPU time of a miss: a packet goes to userspace, which installs an entry, us",
            at_least=0, at_most=1e9, optional=True, default=11.5,
        ),
        "revalidate_us": number(
            "CPU time to check one entry against the rules again, us",
            at_least=0, at_most=1e9, optional=True, default=5.0,
        ),
        "revalidate_s": number(
            "time within which all entries must be checked again, s",
            more_than=0, at_most=1e6, optional=True, default=1.0,
        ),
        "flow_limit": number(
            "most entries that the cache may hold", at_least=1, at_most=MOST_ENTRIES, whole=True,
            optional=True, default=200_000.0,
        ),
        "table_limit": number(
            "most entries of all flow tables together where neighbours are merged; 0: as many as without "
            "merging", at_least=0, at_most=MOST_ENTRIES, whole=True, optional=True, default=0.0,
        ),
        "microflow_entries": number(
            "headers whose entry is remembered before masks are searched; 0: none. For simulations",
            at_least=0, at_most=MOST_ENTRIES, whole=True, optional=True, default=8_192.0,
        ),
        "nic_entries": number(
            "entries that a network card holds in its TCAM; 0: no card", at_least=0, at_most=MOST_ENTRIES,
            whole=True, optional=True, default=0.0,
        ),
        "nic_masks": number(
            "different masks of entries in the card; 0: any number", at_least=0, at_most=MOST_ENTRIES,
            whole=True, optional=True, default=0.0,
        ),
        "nic_inserts_per_s": number(
            "entries that the card takes in a second; 0: any number. Needs start_s of connections",
            at_least=0, at_most=1e9, optional=True, default=0.0,
        ),
        "idle_s": number(
            "time without a packet after which an entry is removed, s; for simulations",
            more_than=0, at_most=1e9, optional=True, default=10.0,
        ),
    },
)  # fmt: skip
ADD: Final = "add"
REMOVE: Final = "remove"
CHANGES: Final = Table(
    name="changes",
    about="a rule added or removed in time, for simulations; plans are for the rules before all changes",
    columns={
        "time_s": number("time of the change, s", at_least=0, at_most=1e9),
        "change": choice("add, or remove: the rule of the same table, priority and match", (ADD, REMOVE)),
        **RULES.columns,
    },
    may_be_empty=True,
)
EVALUATED: Final = "evaluated"
DATAPATH: Final = "datapath"
INSTALLED: Final = Table(
    name="installed",
    about="an entry that the cache of the switch has now: made by its tables, or in a dump of the datapath",
    columns={
        "match": label("fields and values with masks; empty: all packets", may_be_blank=True),
        "origin": choice(
            "evaluated: made by the tables of the switch for the packets of flows; datapath: in a dump of it",
            (EVALUATED, DATAPATH),
        ),
        "consulted": label(
            "tables of the switch and the bits that each was the first to consult, as 2: ip_src/24 tp_dst; "
            "absent: unknown",
            may_be_blank=True,
            optional=True,
        ),
        "packets": number(
            "packets that matched it", at_least=0, at_most=1e15, whole=True, optional=True, default=0.0
        ),
    },
    key=("match",),
    may_be_empty=True,
)
STATISTICS: Final = Table(
    name="statistics",
    about="what a datapath has counted so far, in one row, as dpctl/show prints it",
    columns={
        "hits": number("packets that found an entry", at_least=0, at_most=1e18, whole=True),
        "missed": number("packets that went to userspace: upcalls", at_least=0, at_most=1e18, whole=True),
        "lost": number(
            "packets that were dropped on their way to userspace", at_least=0, at_most=1e18, whole=True,
            optional=True, default=0.0,
        ),
        "mask_hits": number(
            "masks that packets were looked up in; absent: not counted", at_least=0, at_most=1e18, whole=True,
            optional=True,
        ),
        "masks": number(
            "masks of the cache; absent: not counted", at_least=0, at_most=MOST_ENTRIES, whole=True,
            optional=True,
        ),
    },
)  # fmt: skip
MODULES: Final = Table(
    name="modules",
    about="a rule of a module, in place of the table rules; the highest priority of a module wins",
    columns={
        "module": label("name of the module"),
        "priority": number("priority within the module", at_least=0, at_most=MOST_PRIORITY, whole=True),
        "match": label("fields and values; empty: all packets", may_be_blank=True),
        "action": label("actions between blanks, such as count:7 out:3; drop; or pass, for a filter"),
    },
)
POLICIES: Final = Table(
    name="policies",
    about="a composition of modules and of policies before it; the switch has the rules of the last one",
    columns={
        "policy": label("name of the policy"),
        "operator": choice(
            "parallel: the actions of both; sequential: the first's, then the second's, "
            "where neither drops the packet; restrict: the first's on packets of a match",
            OPERATORS,
        ),
        "first": label("module or policy"),
        "second": label("module or policy; for restrict, a match"),
    },
)
RULE_TABLES: Final = (FIELDS, RULES, FLOWS, COSTS, CHANGES, INSTALLED, STATISTICS)
TABLES: Final = (*RULE_TABLES, MODULES, POLICIES)
OPTIONAL_TABLES: Final = (
    "fields",
    "rules",
    "costs",
    "changes",
    "installed",
    "statistics",
    "modules",
    "policies",
)
