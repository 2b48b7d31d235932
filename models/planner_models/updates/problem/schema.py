"""Tables of a problem of system `updates`."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Table, choice, label, number
from planner_models.networks import table_names

MOST_RULES: Final = 1e8
MOST_FLOWS: Final = 1e12
MOST_MBPS: Final = 1e12  # an exabit per second, as in system traffic, whose plans are read
MOST_MS: Final = 1e6
MOST_S: Final = 1e7
CONTROLLER_MS: Final = 2.5  # round trip to the controller that Foster et al. 2013, III.B, cite

NO_GUARANTEE: Final = "none"
NO_LOOP: Final = "no_loop"
NO_BLACK_HOLE: Final = "no_black_hole"
WAYPOINT: Final = "waypoint"
PER_PACKET: Final = "per_packet"
PER_FLOW: Final = "per_flow"
GUARANTEES: Final = (NO_GUARANTEE, NO_LOOP, NO_BLACK_HOLE, WAYPOINT, PER_PACKET, PER_FLOW)

SWITCHES: Final = Table(
    name="switches",
    other_names=("nodes", "routers", "devices"),
    about="a switch, and how many rules it holds",
    columns={
        "switch": label("its name", other_names=("node", "router", "device", "name")),
        "rule_capacity": number(
            "most rules that its table holds; absent or blank: no limit",
            at_least=0,
            at_most=MOST_RULES,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
        "rule_ms": number(
            "time that a change of one rule takes, ms; the switch makes them one after another",
            at_least=0,
            at_most=MOST_MS,
            optional=True,
            default=CONTROLLER_MS,
        ),
        "matches_version": number(
            "1 where rules can test the version of a packet, else 0; absent: 1",
            at_least=0,
            at_most=1,
            whole=True,
            optional=True,
            default=1.0,
        ),
    },
    key=("switch",),
)
LINKS: Final = Table(
    name="links",
    other_names=table_names.LINKS,
    about="a link from one switch to another",
    columns={
        "from": label("switch where it starts"),
        "to": label("switch where it ends"),
        "capacity_mbps": number(
            "capacity, Mbit/s; absent or blank: no limit",
            more_than=0,
            at_most=MOST_MBPS,
            optional=True,
            may_be_blank=True,
        ),
        "delay_ms": number(
            "time that a packet takes, ms", at_least=0, at_most=MOST_MS, optional=True, default=0.0
        ),
    },
    key=("from", "to"),
)
CLASSES: Final = Table(
    name="classes",
    other_names=("flows", "traffic classes"),
    about="packets that the same rules forward, such as all packets to one destination",
    columns={
        "class": label("its name"),
        "ingress": label(
            "switch where its packets enter; blank: every switch with a rule of the class, now or next",
            optional=True,
            may_be_blank=True,
        ),
        "egress": label("switch where its packets leave"),
        "traffic_mbps": number(
            "its traffic, Mbit/s; from each of its ingresses the same part",
            at_least=0,
            at_most=MOST_MBPS,
            optional=True,
            default=0.0,
        ),
        "flow_life_s": number(
            "mean life of its flows, s; needed where flows must keep their path",
            more_than=0,
            at_most=MOST_S,
            optional=True,
            may_be_blank=True,
        ),
        "flows": number(
            "flows at a time; absent or blank: 1",
            at_least=1,
            at_most=MOST_FLOWS,
            optional=True,
            may_be_blank=True,
        ),
        "waypoints": label(
            "switches that its packets must pass, A > B; blank: none", optional=True, may_be_blank=True
        ),
        "guarantee": choice(
            "what holds for every packet during the update; blank: no_black_hole, and per_packet "
            "for a class that is new or that ends",
            GUARANTEES,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("class",),
)


def _rules(name: str, about: str, other_names: tuple[str, ...]) -> Table:
    return Table(
        name=name,
        other_names=other_names,
        about=about,
        columns={
            "class": label("the class"),
            "switch": label("switch that holds the rule"),
            "next_hop": label("switch to which the rule sends packets"),
            "share": number(
                "part of the packets; 1 where they are not split",
                more_than=0,
                at_most=1,
                optional=True,
                default=1.0,
                share=True,
            ),
        },
        key=("class", "switch", "next_hop"),
        may_be_empty=True,
        compact=True,
    )


NOW: Final = _rules(
    "now",
    "where a switch sends packets of a class before the update",
    ("before", "current", "today", "old", "present", "existing", "vorher", "avant"),
)
NEXT: Final = _rules(
    "next",
    "where a switch sends packets of a class after the update",
    ("after", "new", "target", "future", "planned", "nachher", "après"),
)
RULES: Final = Table(
    name="rules",
    about="entries that a class takes in a switch's table, where not 1",
    columns={
        "class": label("the class"),
        "switch": label("the switch"),
        "rules": number("number of entries", at_least=0, at_most=MOST_RULES, whole=True),
    },
    key=("class", "switch"),
    may_be_empty=True,
    compact=True,
)
TABLES: Final = (SWITCHES, LINKS, CLASSES, NOW, NEXT, RULES)
OPTIONAL_TABLES: Final = ("rules",)
