"""Tables of problems and plans of system `capacity`."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Column, Table, choice, label, number
from planner_models.networks import table_names
from planner_models.networks.classes import CLASSES as NETWORK_CLASSES
from planner_models.networks.classes import MOST_PRIORITY
from planner_models.networks.nodes import NODE_COLUMNS
from planner_models.networks.tunnels import TUNNEL_COLUMNS

MOST_MBPS: Final = 1e12  # an exabit per second
LEAST_MBPS: Final = 1e-9  # but 0; less has no meaning, and its ratios overflow
MOST_COST: Final = 1e15
LEAST_COST: Final = 1e-9
MOST_KM: Final = 1e6
MOST_MS: Final = 1e9
MOST_FACTOR: Final = 1e6
MOST_MODULES: Final = 1e6  # of a kind on a link; more would be wider than what solvers can tell apart
MOST_YEAR: Final = 1e5
MOST_GROWTH: Final = 100.0
LEAST_UTILIZATION: Final = 0.01
DIRECTIONS: Final = ("undirected", "bidirected", "directed")
MODULES_PER_LINK: Final = ("any", "one")
TENURES: Final = ("owned", "leased")


def _rate(about: str, *, optional: bool = False, usual: tuple[float, float] | None = None) -> Column:
    """Return a column of rates or capacities, Mbit/s: 0, or within the largest capacity of networks."""
    return number(about, at_least=0, at_most=MOST_MBPS, least=LEAST_MBPS, optional=optional, usual=usual)


def _cost(about: str) -> Column:
    """Return an optional column of costs; 0 where it is absent."""
    return number(about, at_least=0, at_most=MOST_COST, least=LEAST_COST, optional=True, default=0.0)


def _utilization(when: str) -> Column:
    """Return the optional column of the largest utilization of links at some time."""
    return number(
        f"largest load over capacity that a link may have {when}; blank: 1",
        more_than=0,
        at_most=1,
        least=LEAST_UTILIZATION,
        share=True,
        optional=True,
        may_be_blank=True,
    )


ENDS: Final = {
    "tail": label("node where it starts; of a link for both directions, one end"),
    "head": label("node where it ends"),
}
LINK_NAME: Final = label(
    "its name in other tables; without it tail<->head, or tail->head where links are directed, and #2 for "
    "the second link with these ends",
    optional=True,
)
LINK_COSTS: Final = {
    "setup_cost": _cost("cost of the first module on it, beside the module's own, such as for amplifiers"),
    "setup_cost_per_km": _cost("setup cost per kilometre, such as for a new fibre"),
    "routing_cost": _cost("cost of each Mbit/s that it carries in the state without failures, in a year"),
    "length_km": number(
        "its length, km; blank: the great circle between the places of its ends",
        at_least=0,
        at_most=MOST_KM,
        optional=True,
        may_be_blank=True,
    ),
    "latency_ms": number(
        "one-way delay, ms, for demands with a latency limit; blank: that of light in fibre, 1 ms for 200 km",
        at_least=0,
        at_most=MOST_MS,
        optional=True,
        may_be_blank=True,
        usual=(1e-3, 2e3),
    ),
}
NODES: Final = Table(
    name="nodes",
    other_names=table_names.NODES,
    about="a place where traffic starts, ends or is switched",
    columns={
        **NODE_COLUMNS,
    },
    key=("node",),
)
LINKS: Final = Table(
    name="links",
    other_names=table_names.LINKS,
    about="a link between two nodes, with the capacity that it has today; two rows with the same ends are "
    "parallel links",
    columns={
        **ENDS,
        "capacity_mbps": _rate("capacity that is there already, Mbit/s", usual=(0.1, 1e8)),
        "link": LINK_NAME,
        "installed_cost": _cost("cost of the capacity that is there already, which every plan has"),
        **LINK_COSTS,
    },
    may_be_empty=True,
)
CANDIDATES: Final = Table(
    name="candidates",
    other_names=("candidate links", "possible links", "new links"),
    about="a link that can be built: it has no capacity until modules are bought",
    columns={
        **ENDS,
        **LINK_COSTS,
        "setup_cost": number(
            "cost of building it, which its first module pays",
            at_least=0,
            at_most=MOST_COST,
            least=LEAST_COST,
        ),
        "link": LINK_NAME,
    },
    may_be_empty=True,
)
MODULES: Final = Table(
    name="modules",
    other_names=(
        *("line cards", "upgrades", "capacity modules", "module types", "optics", "cards", "price list"),
        *("prices", "catalogue", "catalog", "equipment", "transponders", "bill of materials"),
    ),
    about="a unit of capacity that can be bought, for one link or for all",
    columns={
        "module": label(
            "its name, such as 10G",
            other_names=(
                "type",
                "name",
                "line card",
                "optic",
                "module type",
                "card",
                "item",
                "product",
                "model",
            ),
        ),
        "capacity_mbps": number(
            "capacity that it adds, Mbit/s",
            other_names=("rate", "bit rate", "size"),
            more_than=0,
            at_most=MOST_MBPS,
            least=LEAST_MBPS,
            usual=(0.1, 1e8),
        ),
        "cost": number(
            "cost of one",
            other_names=(
                "price",
                "capex",
                "unit cost",
                "unit price",
                "list price",
                "cost each",
                "price each",
            ),
            at_least=0,
            at_most=MOST_COST,
            least=LEAST_COST,
        ),
        "cost_per_km": _cost("cost of one for each kilometre of the link, beside `cost`"),
        "max_count": number(
            "most of them on a link; blank: any number, up to a million",
            at_least=0,
            at_most=MOST_MODULES,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
        "link": label(
            "the link that it is for; blank: every link; a row of a link goes before one of every link",
            optional=True,
            may_be_blank=True,
        ),
        "tenure": choice(
            "owned (also where absent): paid once, and stays; leased: paid in each year that it is there, "
            "and may be given back after any year",
            TENURES,
            optional=True,
        ),
    },
    key=("module", "link"),
)
DEMANDS: Final = Table(
    name="demands",
    other_names=table_names.DEMANDS,
    about="traffic from one node to another that must fit",
    columns={
        "source": label("node where it starts"),
        "target": label("node where it ends"),
        "rate_mbps": _rate("rate, Mbit/s; in its first year, before `years.demand_factor`"),
        "growth": number(
            "share by which it grows each year after its first, such as 0.15, beside `years.demand_factor`; "
            "blank: 0",
            more_than=-1,
            at_most=MOST_GROWTH,
            share=True,
            optional=True,
            may_be_blank=True,
        ),
        "max_latency_ms": number(
            "largest one-way delay of its routes, ms, also under failures; blank: any",
            at_least=0,
            at_most=MOST_MS,
            optional=True,
            may_be_blank=True,
        ),
        "class": label("its traffic class; a pair may have a demand in each", optional=True),
        "year": number(
            "year in which it begins, with the rate `rate_mbps`, from which it then grows; blank: the first "
            "year",
            at_least=0,
            at_most=MOST_YEAR,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("source", "target", "class"),
    divisible=("rate_mbps",),
    part_column="class",
)
CLASSES: Final = Table(
    name="classes",
    about="a traffic class, named in the column class of demands; without the table, all are protected",
    columns={
        "class": NETWORK_CLASSES.columns["class"],
        "priority": number(
            "rank; 1 is the highest: what does not fit in a state is taken from the lowest first",
            at_least=1,
            at_most=MOST_PRIORITY,
            whole=True,
        ),
        "protected_share": number(
            "share of each of its demands that must fit under every failure; without failures all must fit; "
            "blank: 1",
            at_least=0,
            at_most=1,
            share=True,
            optional=True,
            default=1.0,
        ),
        "growth": number(
            "share by which its demands grow each year after their first, where they have no `growth` of "
            "their own; blank: 0",
            more_than=-1,
            at_most=MOST_GROWTH,
            share=True,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("class",),
)
TUNNELS: Final = Table(
    name="tunnels",
    about="a path that is configured for the demands from its first node to its last; demands with tunnels "
    "take no other path. Where links are undirected, it serves both directions",
    columns=TUNNEL_COLUMNS,
    may_be_empty=True,
)
FAILURES: Final = Table(
    name="failures",
    about="an element that fails in a failure; a failure of several elements has several rows",
    columns={
        "failure": label("name of the failure"),
        "member": label("a link or a node that fails in it"),
        "probability": number(
            "probability of the failure, the same in its rows",
            at_least=0,
            at_most=1,
            share=True,
            optional=True,
        ),
    },
    key=("failure", "member"),
    may_be_empty=True,
)
YEARS: Final = Table(
    name="years",
    about="a year of the plan, in ascending order",
    columns={
        "year": number("the year, such as 2027", at_least=0, at_most=MOST_YEAR, whole=True),
        "demand_factor": number(
            "every demand is multiplied by this", at_least=0, at_most=MOST_FACTOR, least=1e-6
        ),
        "price_factor": number(
            "all costs of this year are multiplied by this: change of prices and discount",
            more_than=0,
            at_most=MOST_FACTOR,
            least=1e-6,
            optional=True,
            default=1.0,
        ),
    },
    key=("year",),
)
NETWORK: Final = Table(
    name="network",
    about="rules for all links, in one row",
    columns={
        "direction": choice(
            "undirected (also where absent): the traffic of both directions shares a link's capacity; "
            "bidirected: each direction has the capacity; directed: traffic goes from tail to head only",
            DIRECTIONS,
            optional=True,
        ),
        "modules_per_link": choice(
            "any (also where absent): any number of each module on a link; one: at most one module in all",
            MODULES_PER_LINK,
            optional=True,
        ),
        "budget": number(
            "most that purchases may cost, setup included, in all years; blank: unlimited",
            at_least=0,
            at_most=MOST_COST,
            optional=True,
            may_be_blank=True,
        ),
        "max_utilization": _utilization("without failures"),
        "max_utilization_failed": _utilization("after a failure"),
    },
    may_be_empty=True,
)
TABLES: Final = (NODES, LINKS, CANDIDATES, MODULES, DEMANDS, CLASSES, TUNNELS, FAILURES, YEARS, NETWORK)
OPTIONAL_TABLES: Final = ("nodes", "candidates", "classes", "tunnels", "failures", "years", "network")

YEAR_COLUMN: Final = number("the year, where there are several", at_least=0, whole=True, optional=True)
PURCHASES: Final = Table(
    name="purchases",
    about="modules to buy for a link",
    columns={
        "link": label("the link"),
        "module": label("the module"),
        "count": number("how many", at_least=1, at_most=MOST_MODULES, whole=True),
        "added_mbps": number("capacity that they add, Mbit/s", more_than=0, optional=True),
        "cost": number("what they cost, without setup", at_least=0, optional=True),
        "setup_cost": number("setup cost of the link, where it is paid here", at_least=0, optional=True),
        "year": YEAR_COLUMN,
    },
    key=("link", "module", "year"),
    may_be_empty=True,
)
FLOWS: Final = Table(
    name="flows",
    about="traffic to a target on a link, in the state without failures; that in tunnels is in tunnel_flows",
    columns={
        "target": label("node where the traffic ends"),
        "link": label("the link"),
        "tail": label("node where it enters the link"),
        "rate_mbps": number("rate, Mbit/s", more_than=0),
        "year": YEAR_COLUMN,
    },
    key=("target", "link", "tail", "year"),
    may_be_empty=True,
)
UNSERVED: Final = Table(
    name="unserved",
    about="demand that is left out in the state without failures, as capacity is short",
    columns={
        "source": label("node where it starts"),
        "target": label("node where it ends"),
        "class": label("its traffic class, where demands have one", optional=True),
        "rate_mbps": number("rate that is left out, Mbit/s", more_than=0),
        "year": YEAR_COLUMN,
    },
    key=("source", "target", "class", "year"),
    may_be_empty=True,
)
TUNNEL_FLOWS: Final = Table(
    name="tunnel_flows",
    about="traffic of demands with tunnels or a latency limit on each path, in the state without failures",
    columns={
        "tunnel": label("the tunnel or path, by its name; without one, by its nodes: A > B > C"),
        "rate_mbps": number("rate, Mbit/s", more_than=0),
        "year": YEAR_COLUMN,
    },
    key=("tunnel", "year"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (PURCHASES, FLOWS, UNSERVED, TUNNEL_FLOWS)
