"""Tables of the problem: nodes, links, demands and conditions of routes."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Column, Table, label, number
from planner_models.networks import table_names
from planner_models.networks.classes import CLASSES
from planner_models.networks.nodes import NODE_COLUMNS
from planner_models.traffic.problem.failure_sets import FAILURES
from planner_models.traffic.problem.reservations import RESERVATION_COLUMNS
from planner_models.traffic.problem.rules import RULES, TUNNELS

MOST_MBPS: Final = 1e12  # an exabit per second
LEAST_MBPS: Final = 1e-15  # but 0; less has no meaning, and its ratios overflow
MOST_WEIGHT: Final = 1e12
MOST_PARALLEL: Final = 1e6
ROUTING_METRICS: Final = (
    *("metric", "routing metric", "link metric", "link weight", "routing weight"),
    *(
        f"{protocol} {noun}"
        for protocol in ("igp", "ospf", "isis", "te")
        for noun in ("metric", "cost", "weight")
    ),
)
"""Names of the routing metric in other tools; `cost` alone is a price too."""


def rate_column(about: str, *, usual: tuple[float, float] | None = None) -> Column:
    """Return a column of rates or capacities, Mbit/s: 0, or within the largest capacity of networks."""
    return number(about, at_least=0, at_most=MOST_MBPS, least=LEAST_MBPS, usual=usual)


NODES: Final = Table(
    name="nodes",
    other_names=table_names.NODES,
    about="a place where traffic starts, ends or is switched",
    columns={
        **NODE_COLUMNS,
        "group": label("part of the network that it belongs to, such as a pod", optional=True),
    },
    key=("node",),
)
LINKS: Final = Table(
    name="links",
    other_names=table_names.LINKS,
    about="a one-way link; two rows with the same ends are parallel links",
    columns={
        "tail": label("node where it starts"),
        "head": label("node where it ends"),
        "capacity_mbps": rate_column("most traffic, Mbit/s; a link with 0 is down", usual=(0.1, 1e8)),
        "weight": number(
            "routing metric",
            more_than=0,
            at_most=MOST_WEIGHT,
            optional=True,
            default=1.0,
            other_names=ROUTING_METRICS,
            when_absent="all links weigh 1",
        ),
        "cost": number(
            "price of carrying traffic, per Mbit/s",
            at_least=0,
            at_most=MOST_WEIGHT,
            optional=True,
            mistaken_for="weight",
        ),
        "latency_ms": number(
            "one-way delay, ms", at_least=0, at_most=MOST_WEIGHT, optional=True, usual=(1e-3, 2e3)
        ),
        "affinity": label(
            "administrative groups (affinities) for rules, divided by spaces or semicolons; blank: none",
            optional=True,
            may_be_blank=True,
            other_names=("affinities", "admin group", "admin groups", "administrative group", "link colour"),
        ),
        "split_weight": number(
            "its part of traffic that splits over equal-cost next hops, against other links of the node, in "
            "design weighted_ecmp; blank: 1",
            more_than=0,
            at_most=MOST_WEIGHT,
            optional=True,
            may_be_blank=True,
            other_names=("ecmp weight", "wcmp weight", "ucmp weight"),
        ),
        "parallel": number(
            "which of the parallel links with these ends it is, from 1; 0: the next in the table's order",
            at_least=0,
            at_most=MOST_PARALLEL,
            whole=True,
            optional=True,
        ),
        "upgrade_cost": number(
            "price of `upgrade_mbps` more capacity", at_least=0, at_most=MOST_WEIGHT, optional=True
        ),
        "upgrade_mbps": number(
            "capacity that can be added at a time, Mbit/s; without it the link's own capacity",
            more_than=0,
            at_most=MOST_MBPS,
            optional=True,
        ),
    },
    may_be_empty=True,  # where every link has failed; tables of users need a row
)
DEMANDS: Final = Table(
    name="demands",
    other_names=table_names.DEMANDS,
    about="traffic from one node to another",
    columns={
        "source": label("node where it starts"),
        "target": label("node where it ends"),
        "rate_mbps": rate_column("offered rate, Mbit/s"),
        "max_latency_ms": number(
            "largest delay of its routes, ms; blank: any",
            at_least=0,
            at_most=MOST_WEIGHT,
            optional=True,
            may_be_blank=True,
        ),
        "weight": number(
            "its part of scarce capacity, against other demands, under max-min fairness; blank: 1",
            more_than=0,
            at_most=MOST_WEIGHT,
            optional=True,
            may_be_blank=True,
        ),
        "class": label("its traffic class; a pair may have a demand in each", optional=True),
        **RESERVATION_COLUMNS,
    },
    key=("source", "target", "class"),
    divisible=("rate_mbps",),
    part_column="class",
    key_hint="for several flows of a pair add a column class that names each",
    not_modelled=dict.fromkeys(
        (*("priority", "preemption", "preempt", "reservation_style", "admission"),),
        "setup_priority and hold_priority, 0 to 7, are those of reservations, which design cspf admits "
        "whole; a table of classes orders demands by priority",
    ),
)
TABLES: Final = (NODES, LINKS, DEMANDS, CLASSES, TUNNELS, RULES, FAILURES)
OPTIONAL_TABLES: Final = ("nodes", "classes", "tunnels", "rules", "failures")
