"""Tables of the plan: flows, routes, link loads, and additions of designs."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Column, Table, label, number
from planner_models.traffic.plan.segments import SEGMENTS

CLASS: Final = "the demand's class, where demands have classes"


def _demand_ends() -> dict[str, Column]:
    return {
        "source": label("node where the demand starts"),
        "target": label("node where the demand ends"),
    }


def _link_ends() -> dict[str, Column]:
    return {"tail": label("node where the link starts"), "head": label("node where the link ends")}


def _parallel_column() -> Column:
    about = "which of the links from tail to head, from 1"
    return number(about, at_least=1, whole=True, optional=True, default=1.0)


FLOWS: Final = Table(
    name="flows",
    about="Mbit/s of a demand on a link; without `source`, of all demands to the target together",
    columns={
        "target": label("node where the demand ends"),
        **_link_ends(),
        "rate_mbps": number("Mbit/s of the demand on this link", at_least=0),
        "source": label("node where the demand starts", optional=True),
        "parallel": _parallel_column(),
        "class": label(CLASS, optional=True),
    },
    may_be_empty=True,
)
ROUTES: Final = Table(
    name="routes",
    about="Mbit/s of a demand on a path",
    columns={
        **_demand_ends(),
        "path": label("its nodes from source to target, A > B > C, or as a JSON list"),
        "rate_mbps": number("Mbit/s on this path", at_least=0),
        "parallel": label(
            "which of parallel links each hop takes, as a JSON list; all first if absent",
            optional=True,
            may_be_blank=True,
        ),
        "tunnel": label("name of the tunnel that it is", optional=True, may_be_blank=True),
        "kind": label(
            "explicit: each step is a link; segments: shortest paths between the nodes listed, with ECMP",
            optional=True,
            may_be_blank=True,
        ),
        "reserved_mbps": number(
            "most traffic that it takes when others of the demand fail, Mbit/s; blank: no limit",
            at_least=0,
            optional=True,
            may_be_blank=True,
        ),
        "bandwidth_mbps": number(
            "bandwidth that is signalled for it, Mbit/s, where its traffic may be more or less",
            at_least=0,
            optional=True,
            may_be_blank=True,
        ),
        "preference": number(
            "it takes traffic only where all routes of the demand with a smaller number have failed, as a "
            "backup path does; blank: 0",
            at_least=0,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
        "class": label(CLASS, optional=True),
    },
    may_be_empty=True,
)
LINKS: Final = Table(
    name="links",
    about="load of each link",
    columns={
        "tail": label("node where it starts"),
        "head": label("node where it ends"),
        "load_mbps": number("traffic on the link, Mbit/s", at_least=0),
        "utilization": number("load over capacity; above 1 is overloaded", at_least=0),
        "parallel": _parallel_column(),
    },
)
SHED: Final = Table(
    name="shed",
    about="demand that the plan leaves out, on purpose or for want of a path",
    columns={
        **_demand_ends(),
        "rate_mbps": number("Mbit/s that are not sent", at_least=0),
        "class": label(CLASS, optional=True),
    },
    may_be_empty=True,
)
WEIGHTS: Final = Table(
    name="weights",
    about="the routing metric to configure on each link",
    columns={
        **_link_ends(),
        "parallel": _parallel_column(),
        "weight": number("routing metric", more_than=0),
    },
)
LIES: Final = Table(
    name="lies",
    about="fake nodes that routers of OSPF are told of, and that they split traffic to a target over",
    columns={
        "target": label("node where the traffic ends"),
        "tail": label("router that is told of the fake nodes"),
        "head": label("next hop that the fake nodes lie behind"),
        "parallel": _parallel_column(),
        "fake_nodes": number("number of fake nodes", at_least=1, whole=True),
    },
    key=("target", "tail", "head", "parallel"),
    may_be_empty=True,
)
GROUPS: Final = Table(
    name="groups",
    about="a next hop of a switch with several to a target, as entries of its table",
    columns={
        "node": label("the switch, where the link starts"),
        "target": label("node where demands end"),
        "head": label("node where the link ends"),
        "parallel": _parallel_column(),
        "entries": number("entries of the group with this next hop; 0: not used", at_least=0, whole=True),
        "ideal_share": number("share that its weight asks for", more_than=0, at_most=1, share=True),
    },
    key=("node", "target", "head", "parallel"),
    may_be_empty=True,
)
LEVELS: Final = Table(
    name="levels",
    about="a level of max-min fairness: its demands can have no more while those of lower levels keep theirs",
    columns={
        "level": number("from 1, the lowest", at_least=1, whole=True),
        "value": number("share of the demand, Mbit/s, or Mbit/s over its weight", at_least=0),
        "bound": number("proven: the level is no higher", at_least=0),
        "demands": number("demands at this level", at_least=0, whole=True),
    },
    may_be_empty=True,
)
MOVED: Final = Table(
    name="moved",
    about="traffic that the plan takes off its present routes",
    columns={
        **_demand_ends(),
        "rate_mbps": number("Mbit/s on other routes than now", at_least=0),
        "class": label(CLASS, optional=True),
    },
    may_be_empty=True,
)
WINDOWS: Final = Table(
    name="windows",
    about="maintenance window of each link or node that is drained",
    columns={
        "window": number(
            "from 1; 0 where not all demand fits while the element is drained", at_least=0, whole=True
        ),
        "element": label("the link or node"),
    },
    key=("element",),
    may_be_empty=True,
)
GUARANTEES: Final = Table(
    name="guarantees",
    about="traffic of a demand that arrives in each failure of a set that leaves the demand a path",
    columns={
        **_demand_ends(),
        "class": label(CLASS, optional=True),
        "rate_mbps": number("Mbit/s that arrive", at_least=0),
        "failures": label("the set of failures: table, links, nodes or double_links"),
        "at_once": number("how many of them may occur together", at_least=0, whole=True),
        "restoration": label(
            "split: sources use those of their routes that survive, in their shares; reroute: a controller "
            "routes all traffic again"
        ),
        "availability": number(
            "with at least this probability; blank: in every failure",
            at_least=0,
            at_most=1,
            optional=True,
            may_be_blank=True,
        ),
        "probability": number(
            "of each failure, where the set has none; blank: unknown",
            more_than=0,
            at_most=1,
            optional=True,
            may_be_blank=True,
        ),
    },
    may_be_empty=True,
)
REROUTING: Final = Table(
    name="rerouting",
    about="what a limit of rerouted traffic costs, in each metric",
    columns={
        "metric": label("the metric"),
        "most_moved": number("largest share of the traffic that may be rerouted", at_least=0, at_most=1),
        "moved_share": number("share that the plan reroutes", at_least=0),
        "value": number("value of the metric"),
        "gain_per_point": number(
            "what a limit that is larger by one percentage point of the traffic brings at first; blank if "
            "unknown",
            optional=True,
            may_be_blank=True,
        ),
        "free_moved_share": number(
            "share that the best plan without the limit reroutes", optional=True, may_be_blank=True
        ),
        "free_value": number("value of that plan", optional=True, may_be_blank=True),
        "loss": number("what the limit costs", optional=True, may_be_blank=True),
    },
    key=("metric",),
    may_be_empty=True,
)
SHARES: Final = Table(
    name="shares",
    about="share of a demand on a link, whatever its rate is",
    columns={
        **_demand_ends(),
        **_link_ends(),
        "parallel": _parallel_column(),
        "share": number("of the demand's traffic", more_than=0, at_most=1, share=True),
    },
    key=("source", "target", "tail", "head", "parallel"),
    may_be_empty=True,
)
WORST_MATRICES: Final = Table(
    name="worst_matrices",
    about="the demand matrices, of those that the shares are made for, that load a link the most",
    columns={
        "matrix": label("name of the matrix"),
        **_demand_ends(),
        "rate_mbps": number("rate of the demand, Mbit/s", at_least=0),
    },
    key=("matrix", "source", "target"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (
    FLOWS,
    ROUTES,
    LINKS,
    SHED,
    WEIGHTS,
    LIES,
    GROUPS,
    SEGMENTS,
    LEVELS,
    MOVED,
    WINDOWS,
    GUARANTEES,
    REROUTING,
    SHARES,
    WORST_MATRICES,
)
