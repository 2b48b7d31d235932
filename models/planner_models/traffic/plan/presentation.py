"""Presentation of flows: the network with its load, and links, nodes and demands as elements."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.drawing import Distribution, Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.metrics import Metric
from planner.contract.studies import Decided, Section
from planner.formatting import amount, counted
from planner.io.in_memory import to_graph
from planner.options import Options
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan.delivery import delivered_rates, dropped_rates, load_by_demand
from planner_models.traffic.plan.flow_check import lost_rates
from planner_models.traffic.plan.plan import SHED_TOLERANCE, Routing
from planner_models.traffic.plan.reoptimization import GAIN_TOLERANCE, CapacityReoptimization
from planner_models.traffic.plan.verified_flow import TOLERANCE, VerifiedFlow, verify_flow
from planner_models.traffic.problem.drawing import LINK, NODE, draw_network
from planner_models.traffic.problem.network_elements import DuplexLines
from planner_models.traffic.problem.problem import Traffic

if TYPE_CHECKING:
    import networkx as nx


MOST_USERS: Final = 10  # rows of a table of demands
MOST_ENTRIES: Final = 200_000  # of a flow per target, up to which it is followed back to its demands


def add_load(problem: Traffic, plan: Routing) -> nx.MultiDiGraph:
    """Return the network with `load_mbps` and `utilization` of each link under a plan."""
    load = verify_flow(problem, plan).load_mbps
    more = {"load_mbps": load, "utilization": load / problem.capacity_mbps}
    return to_graph(problem.nodes, problem.links, more)


def draw(problem: Traffic, plan: Routing) -> Sequence[Drawing]:
    """Draw the network by utilization and lost traffic, and the distribution of all links' utilization.

    Links lose what they drop; nodes lose what their demands do not send: it is shed for want of capacity,
    slowed down where senders slow down on overloaded links, without a path, or on failed links.
    """
    flow = verify_flow(problem, plan)
    full = problem.capacity_mbps
    # a link that is full but for rounding is not overloaded
    load = np.where(
        flow.load_mbps <= full * (1 + TOLERANCE), np.minimum(flow.load_mbps, full), flow.load_mbps
    )
    sent = delivered_rates(problem, flow) if problem.overload == "max-min" else flow.served_mbps
    unsent = problem.rate_mbps - sent
    failed = np.where(problem.unreachable, unsent, lost_rates(problem, plan))
    picture = draw_network(
        problem,
        "Links by utilization",
        load_mbps=load,
        dropped_mbps=dropped_rates(problem, flow),
        unsent_mbps=np.where(unsent > SHED_TOLERANCE * problem.rate_mbps, unsent, 0.0),
        failed_mbps=failed,
    )
    percent = 100 * load / full
    return (
        picture,
        Distribution(
            title="Utilization of links",
            values={"links": pd.Series(percent)},
            what="utilization",
            unit="%",
            limit=100.0,
        ),
    )


class _CapacityPrices(NamedTuple):
    """Prices of capacity under a plan.

    metric  that they are in
    value   of the metric at the optimum of the design's linear program
    price   (E,) gain by one more Mbit/s of each link; None where the design has no linear program
    """

    metric: Metric
    value: float
    price: Floats | None


_prices: weakref.WeakKeyDictionary[Any, tuple[weakref.ref[Traffic], _CapacityPrices]]
_prices = weakref.WeakKeyDictionary()


def _price_capacity(problem: Traffic, decided: Decided, options: Options) -> _CapacityPrices:
    """Return the prices of capacity; kept as long as the decision is in use."""
    cached = _prices.get(decided.decision)
    if cached is not None and cached[0]() is problem:
        return cached[1]
    again = CapacityReoptimization(problem, decided, options)
    prices = _CapacityPrices(
        metric=again.metric,
        value=again.objective,
        price=None if again.price is None else np.abs(again.price),
    )
    _prices[decided.decision] = weakref.ref(problem), prices
    return prices


# --- links --------------------------------------------------------------------------------


def name_lines(problem: Traffic) -> Sequence[str]:
    """Return the names of all lines: a link and its opposite are one; names that two have are left out."""
    lines = DuplexLines.group(problem, both_ways=True)
    return [lines.names[line] for line in lines.unique]


def describe_line(problem: Traffic, decided: Decided, name: str, options: Options) -> ElementReport:
    """Return load, capacity and price of a line, and the demands with the largest part of its load."""
    name = LINKS.require(problem, name)
    lines = DuplexLines.group(problem, both_ways=True)
    is_here = lines.of_link == lines.names.index(name)
    here = np.flatnonzero(is_here)
    flow = verify_flow(problem, decided.decision.plan)  # type: ignore[arg-type]
    load, capacity = flow.load_mbps[here].tolist(), problem.capacity_mbps[here].tolist()
    ways = [f" {tail} to {head}" for tail, head in problem.links[["tail", "head"]].iloc[here].to_numpy()]
    limits = dict(zip(ways, capacity, strict=True))
    if len(set(capacity)) == 1:
        limits = {" each way" if len(here) > 1 else "": capacity[0]}
    fullest = max(load_mbps / full for load_mbps, full in zip(load, capacity, strict=True))
    facts = [
        Fact(label="Utilization", value=100 * fullest, unit="%"),
        *(_rate(f"Load{way}", load_mbps) for way, load_mbps in zip(ways, load, strict=True)),
        *(_rate(f"Capacity{way}", full) for way, full in limits.items()),
        _rate("Dropped traffic", dropped_rates(problem, flow)[here].sum()),
        _price_fact(_price_capacity(problem, decided, options), is_here),
    ]
    if "upgrade_cost" in problem.links:
        facts.append(Fact(label=f"Cost: {DOUBLE.name.lower()}", value=upgrade_costs(problem, DOUBLE)[name]))
    return ElementReport(facts=tuple(facts), sections=(_list_users(problem, flow, is_here),))


def _rate(label: str, value: float) -> Fact:
    return Fact(label=label, value=float(value), unit="Mbit/s")


def _price_fact(prices: _CapacityPrices, links: Bools) -> Fact:
    metric = prices.metric
    value = None if prices.price is None else 1000 * float(prices.price[links].sum())
    return Fact(label=f"Gain by 1 Gbit/s more ({metric.words})", value=value, unit=metric.unit)


def _list_users(problem: Traffic, flow: VerifiedFlow, links: Bools, starting: Bools | None = None) -> Section:
    """Return the demands with the largest part of the load of some links, and all others in one row.

    starting  (K,) demands that count with all that they send, besides
    """
    passing = np.asarray(flow.flow_mbps[:, links].sum(axis=1))
    users = np.flatnonzero(passing > 0)
    entries = int(np.diff(flow.flow_mbps.indptr)[users].sum())
    more = np.zeros(len(problem.demands)) if starting is None else np.where(starting, flow.served_mbps, 0.0)
    if flow.by_demand or entries <= MOST_ENTRIES:
        load = load_by_demand(problem, flow, links) + more
        return _section_of_users(problem.demand_labels, load, "demand")
    by_node = sum_by_index(problem.target, more, len(problem.nodes))
    np.add.at(by_node, flow.commodity % len(problem.nodes), passing)
    return _section_of_users([f"all to {node}" for node in problem.nodes["node"]], by_node, "demands")


def _section_of_users(names: Sequence[str], load_mbps: Floats, column: str) -> Section:
    users = np.flatnonzero(load_mbps > 0)
    users = users[np.argsort(-load_mbps[users], kind="stable")]
    total, shown = float(load_mbps.sum()), users[:MOST_USERS].tolist()
    rows = [(names[user], float(load_mbps[user])) for user in shown]
    if len(users) > len(shown):
        rows.append((counted(len(users) - len(shown), "others"), float(load_mbps[users[len(shown) :]].sum())))
    frame = pd.DataFrame(rows, columns=[column, "load_mbps"])
    frame["share"] = frame["load_mbps"] / total if total > 0 else 0.0
    units = {"load_mbps": "Mbit/s", "share": ""}
    return Section(title="Demands with the largest load", frame=frame, units=units)


def upgrade_costs(problem: Traffic, action: Action) -> Mapping[str, float]:
    """Return the cost of an upgrade of each line, of both directions together; none without a price."""
    if "upgrade_cost" not in problem.links or action.value is None or action.value <= 1:
        return {}
    added = problem.capacity_mbps * (action.value - 1)
    module = (
        problem.links["upgrade_mbps"].to_numpy(float)
        if "upgrade_mbps" in problem.links
        else problem.capacity_mbps
    )
    modules = np.ceil(added / module - GAIN_TOLERANCE)
    lines = DuplexLines.group(problem, both_ways=True)
    cost = lines.sum_over_links(modules * problem.links["upgrade_cost"].to_numpy(float))
    return {lines.names[line]: float(cost[line]) for line in lines.unique}


def say_upgrade(problem: Traffic, action: Action, name: str) -> str:
    """Return the capacity that an upgrade adds to a line, as text."""
    lines = DuplexLines.group(problem, both_ways=True)
    here = lines.of_link == lines.names.index(LINKS.require(problem, name))
    added = np.unique(problem.capacity_mbps[here] * ((action.value or 1.0) - 1))
    words = " and ".join(amount(mbps, "Mbit/s") for mbps in added.tolist())
    return words + (" each way" if here.sum() > 1 and len(added) == 1 else "")


def rank_upgrades(
    problem: Traffic, decided: Decided, action: Action, options: Options
) -> Mapping[str, float | None]:
    """Return the lines with an upgrade that may improve the plan, and the most that it may be.

    The gain is in delivered traffic or, where all of it arrives, in the factor by which demands can grow.
    The bound follows from linear programming duality where the design has a linear program. Otherwise it is
    all traffic that does not arrive, or unknown; the lines that drop most come first, then the fullest.
    """
    if decided.decision.plan is None or action.value is None or action.value <= 1:
        return {}
    flow = verify_flow(problem, decided.decision.plan)
    lines = DuplexLines.group(problem, both_ways=True)
    prices = _price_capacity(problem, decided, options)
    delivered, offered = (decided.metrics[name] or 0.0 for name in ("delivered_mbps", "offered_mbps"))
    gains_delivered = delivered < offered * (1 - GAIN_TOLERANCE)
    max_gain = offered - delivered if gains_delivered else math.inf
    name = "delivered_mbps" if gains_delivered else "concurrent_flow"
    value = decided.metrics[name] or 0.0
    bound = np.full(len(lines.names), max_gain)
    if prices.price is not None and prices.metric.name == name:
        gain = lines.sum_over_links(prices.price * problem.capacity_mbps * (action.value - 1))
        # what the program's optimum is better than the plan, as an upgraded line's plan may be optimal
        apart = max(prices.value - value, 0.0)
        bound = np.where(gain > GAIN_TOLERANCE * abs(prices.value), np.minimum(gain + apart, max_gain), 0.0)
    dropped = lines.sum_over_links(dropped_rates(problem, flow))
    fullest = lines.max_over_links(flow.load_mbps / problem.capacity_mbps)
    order = np.lexsort((-fullest, -dropped, -bound))
    order = order[np.isin(order, lines.unique) & (bound[order] > 0)]
    return {
        lines.names[line]: float(bound[line]) if math.isfinite(bound[line]) else None
        for line in order.tolist()
    }


# --- nodes --------------------------------------------------------------------------------


def name_nodes(problem: Traffic) -> Sequence[str]:
    """Return the names of all nodes."""
    return problem.nodes["node"].astype(str).tolist()


def describe_node(
    problem: Traffic,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return the traffic that starts, ends and passes at a node, and the demands with most of it."""
    node = name_nodes(problem).index(NODES.require(problem, name))
    flow = verify_flow(problem, decided.decision.plan)  # type: ignore[arg-type]
    leaving, entering = problem.tail == node, problem.head == node
    starts, ends = problem.source == node, problem.target == node
    not_arriving = problem.rate_mbps - delivered_rates(problem, flow)
    ending = float(flow.served_mbps[ends].sum())
    facts = (
        _rate("Traffic that starts here", flow.served_mbps[starts].sum()),
        _rate("Traffic that ends here", ending),
        _rate("Traffic that passes", max(0.0, float(flow.load_mbps[entering].sum()) - ending)),
        _rate("Demand from here that does not arrive", not_arriving[starts].sum()),
        _rate("Capacity of links from here", problem.capacity_mbps[leaving].sum()),
        _rate("Capacity of links to here", problem.capacity_mbps[entering].sum()),
    )
    return ElementReport(facts=facts, sections=(_list_users(problem, flow, entering, starts),))


DOUBLE: Final = Action(
    name="Double the capacity",
    state="at double capacity",
    parameter="capacity_factors",
    value=2.0,
    role="upgrade",
)
LINKS: Final = ElementKind[Traffic](
    name=LINK,
    names=name_lines,
    actions=(
        Action(name="Fail", state="failed", parameter="fail_links", role="failure"),
        DOUBLE,
        Action(name="Halve the capacity", state="at half capacity", parameter="capacity_factors", value=0.5),
    ),
    describe=describe_line,
    costs=upgrade_costs,
    adds=say_upgrade,
    ranking=rank_upgrades,
)
NODES: Final = ElementKind[Traffic](
    name=NODE,
    names=name_nodes,
    actions=(Action(name="Fail", state="failed", parameter="fail_nodes", role="failure"),),
    describe=describe_node,
)
ELEMENTS: Final = (LINKS, NODES)
