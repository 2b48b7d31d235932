"""Tables of a problem of system `queries`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.contract.table import Table, choice, label, number
from planner_models.flowtables.problem.schema import FIELDS as FLOW_FIELDS
from planner_models.flowtables.problem.schema import MODULES, POLICIES, RULES

PACKETS: Final = "packets"
BYTES: Final = "bytes"
COUNTS: Final = "counts"
SELECTED: Final = (PACKETS, BYTES, COUNTS)
ANY: Final = "any"
PREFIX: Final = "prefix"
EXACT: Final = "exact"
NO_ACTION: Final = "none"
"""Action, in plans, of rules that leave it to the next table."""
MATCHING: Final = (ANY, PREFIX, EXACT)
MOST_RULES: Final = 1_000_000
MOST_RATE: Final = 1e9
MOST_TIME_S: Final = 1e7

QUERIES: Final = Table(
    name="queries",
    about="a query on the packets that meet switches",
    columns={
        "query": label("name of the query"),
        "select": choice(
            "what it returns: packets themselves, or bytes or counts of packets in each period", SELECTED
        ),
        "where": label(
            "predicate on headers, such as in_port=2 & tp_src=80 & ip_src!=1.2.3.4; blank: all packets",
            optional=True, may_be_blank=True,
        ),
        "group_by": label(
            "fields whose values have an answer each, such as ip_src, or ip_src/24 for prefixes; blank: none",
            optional=True, may_be_blank=True,
        ),
        "split_when": label(
            "fields: a group starts again where a packet has other values of them than the one before it; "
            "for packets only",
            optional=True, may_be_blank=True,
        ),
        "limit": number(
            "first packets of each group that it returns; blank: all. For packets only",
            at_least=1, at_most=1e9, whole=True, optional=True, may_be_blank=True,
        ),
        "every_s": number(
            "period of the answers, s; for bytes and counts only", more_than=0, at_most=MOST_TIME_S,
            optional=True, may_be_blank=True,
        ),
        "longest_s": number(
            "longest period at which answers still serve, s; blank: every_s", more_than=0,
            at_most=MOST_TIME_S, optional=True, may_be_blank=True,
        ),
        "weight": number(
            "worth of its answers beside those of other queries", at_least=0, at_most=1e15, optional=True,
            default=1.0,
        ),
        "switch": label("the switch that it is about; blank: all", optional=True, may_be_blank=True),
    },
    key=("query",),
)  # fmt: skip
SWITCHES: Final = Table(
    name="switches",
    about="a switch: its table space, and what it can send to the controller",
    columns={
        "switch": label("name of the switch"),
        "rules": number("rules with wildcards that fit into it", at_least=0, at_most=MOST_RULES, whole=True),
        "exact_rules": number(
            "rules without wildcards, of whole headers, that fit beside them", at_least=0,
            at_most=MOST_RULES, whole=True, optional=True, default=0.0,
        ),
        "packets_per_s": number(
            "packets to the controller, a second in the mean", at_least=0, at_most=MOST_RATE, optional=True,
            default=1_000.0,
        ),
        "polls_per_s": number(
            "counters read, a second in the mean; one of each group and query", at_least=0,
            at_most=MOST_RATE, optional=True, default=100.0,
        ),
        "matching": choice(
            "what rules match of a field: any bits; prefixes of fields that have them, others in full; or "
            "all fields in full. Absent: prefix",
            MATCHING, optional=True,
        ),
        "pipeline": number(
            "1 where each query has a table of its own, as from OpenFlow 1.1 on; 0 for one table of all",
            at_least=0, at_most=1, whole=True, optional=True, default=0.0,
        ),
    },
    key=("switch",),
)  # fmt: skip
FLOWS: Final = Table(
    name="flows",
    about="packets of one header that meet a switch, at equal intervals",
    columns={
        "switch": label("the switch"),
        "header": label("fields and values of its packets; fields that are not there are 0"),
        "packets": number(
            "number of packets", at_least=1, at_most=1_000_000, whole=True, optional=True, default=1.0
        ),
        "packet_bytes": number(
            "size of each packet, bytes", at_least=1, at_most=1e6, whole=True, optional=True, default=1_000.0
        ),
        "start_s": number(
            "time of the first packet, s from the start of the measurement",
            at_least=0,
            at_most=MOST_TIME_S,
            optional=True,
            default=0.0,
        ),
        "length_s": number(
            "time from the first packet to the last one, s",
            at_least=0,
            at_most=MOST_TIME_S,
            optional=True,
            default=0.0,
        ),
    },
)
CONTROLLER: Final = Table(
    name="controller",
    about="the controller of all switches, in one row",
    columns={
        "round_trip_ms": number(
            "time from a packet that leaves for the controller until its rule is in the switch, ms",
            at_least=0, at_most=1e6, optional=True, default=2.5,
        ),
        "duration_s": number(
            "length of the measurement, s, that rates of packets are the mean of; blank: until the last "
            "packet, at least 1 s",
            more_than=0, at_most=MOST_TIME_S, optional=True, may_be_blank=True,
        ),
    },
)  # fmt: skip
FIELDS: Final = replace(
    FLOW_FIELDS, about="a header field that rules match; absent: in_port, eth_src and the five-tuple"
)
OWN_TABLES: Final = (QUERIES, SWITCHES, FLOWS, CONTROLLER, FIELDS, RULES)
TABLES: Final = (*OWN_TABLES, MODULES, POLICIES)
OPTIONAL_TABLES: Final = ("controller", "fields", "rules", "modules", "policies")
