"""Presentation of assignments: traffic on a map, and clusters, CDNs and locations as elements."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.drawing import Distribution, Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.formatting import amount, counted
from planner.options import Options
from planner_models.brokering.plan import billing
from planner_models.brokering.plan.check import AssignmentArrays, is_overloaded, read_assignment
from planner_models.brokering.plan.min_cost_flow import solve_relaxation
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.plan.transportation import transportation_problem
from planner_models.brokering.problem.drawing import CLUSTER, draw_market
from planner_models.brokering.problem.problem import Brokering

MAX_PAIRS: Final = 600  # of clusters and places of clients, by traffic; more would not be readable on a map
MOST_USERS: Final = 10  # rows of a table
MOST_PRICED: Final = 10_000_000  # groups times clusters of a market, up to which capacity is priced
_prices: weakref.WeakKeyDictionary[Any, tuple[weakref.ref[Brokering], Floats | None]]
_prices = weakref.WeakKeyDictionary()


def draw(problem: Brokering, plan: Assignment) -> Sequence[Drawing]:
    """Draw clusters by load with the largest flows to clients, and the load with background traffic.

    Congested clusters lose the clients that they serve; places lose those that no cluster serves.
    """
    assignment = read_assignment(problem, plan)
    load = problem.background_mbps + assignment.load_mbps
    # a cluster that is full but for rounding is not congested
    is_full = (assignment.load_mbps > 0) & ~is_overloaded(problem, assignment.load_mbps)
    load = np.where(is_full, np.minimum(load, problem.capacity_mbps), load)
    count = assignment.count.astype(float)
    served = np.bincount(assignment.cluster, weights=count, minlength=len(load))
    assigned = np.bincount(assignment.location, weights=count, minlength=len(problem.locations))
    clients = np.bincount(problem.location, weights=problem.count, minlength=len(problem.locations))
    flows = pd.DataFrame(
        {
            "cluster": assignment.cluster,
            "location": assignment.location,
            "mbps": assignment.count * assignment.bitrate_mbps,
        }
    )
    is_remote = problem.cluster_location[flows["cluster"]] != flows["location"]
    by_pair = flows[is_remote].groupby(["cluster", "location"], as_index=False).agg({"mbps": "sum"})
    by_pair = by_pair[by_pair["mbps"] > 0]
    largest = by_pair.sort_values("mbps", ascending=False, kind="stable").head(MAX_PAIRS)
    title = "Clusters by load, and flows to clients elsewhere"
    if len(largest) < len(by_pair):
        title += f", the {len(largest):,} largest of {len(by_pair):,}"
    percent = np.divide(100 * load, problem.capacity_mbps, out=np.zeros(len(load)), where=load > 0)
    picture = draw_market(
        problem,
        title,
        load_mbps=load,
        congested=np.where(is_overloaded(problem, assignment.load_mbps), served, 0.0),
        shed=np.maximum(clients - assigned, 0.0),
        flows=largest,
    )
    return (
        picture,
        Distribution(
            title="Load of the clusters that serve clients, background included",
            values={"clusters": pd.Series(percent[assignment.load_mbps > 0])},
            what="load",
            unit="%",
            limit=100.0,
        ),
    )


def money_per_objective(problem: Brokering) -> tuple[float, str]:
    """Return the factor from objective to money, and its unit; where cost has no weight, 1 and none."""
    weight = problem.terms.cost_weight
    return (1 / weight, f"{problem.terms.currency}/h") if weight > 0 else (1.0, "")


def _price_capacity(problem: Brokering, decided: Decided) -> Floats | None:
    """Return the dual price of each cluster's capacity, (C,) of the objective per Mbit/s; None for unknown.

    It is that of the relaxation to divisible clients, which large markets are not solved for. It is kept as
    long as the decision is in use.
    """
    cached = _prices.get(decided.decision)
    if cached is not None and cached[0]() is problem:
        return cached[1]
    price: Floats | None = None
    if len(problem.groups.count) * len(problem.clusters) <= MOST_PRICED:
        relaxation = solve_relaxation(transportation_problem(problem))
        price = None if relaxation.bound is None else relaxation.dual_price
    _prices[decided.decision] = weakref.ref(problem), price
    return price


def _fact(label: str, value: float | None, unit: str = "") -> Fact:
    return Fact(
        label=label, value=None if value is None or not math.isfinite(value) else float(value), unit=unit
    )


def _read(problem: Brokering, decided: Decided) -> AssignmentArrays:
    return read_assignment(problem, decided.decision.plan)  # type: ignore[arg-type]


def _list_rows(
    assignment: AssignmentArrays, rows: Bools, names: Sequence[str], of_row: Any, *, column: str, title: str
) -> Section:
    """Return clients and traffic of some rows of an assignment, summed by name, the largest first.

    rows    (P,) of the assignment
    names   of what the rows are summed by
    of_row  (P,) place in `names`
    """
    count = assignment.count.astype(float)
    clients, mbps = (
        np.bincount(of_row[rows], weights=weights[rows], minlength=len(names))
        for weights in (count, count * assignment.bitrate_mbps)
    )
    used = np.flatnonzero(clients > 0)
    used = used[np.argsort(-mbps[used], kind="stable")]
    shown, others = used[:MOST_USERS], used[MOST_USERS:]
    table = [(names[row], clients[row], mbps[row]) for row in shown.tolist()]
    if len(others):
        table.append((counted(len(others), "others"), clients[others].sum(), mbps[others].sum()))
    frame = pd.DataFrame(table, columns=[column, "clients", "load_mbps"])
    total = float(frame["load_mbps"].sum())
    frame["share"] = frame["load_mbps"] / total if total > 0 else 0.0
    return Section(title=title, frame=frame, units={"clients": "clients", "load_mbps": "Mbit/s", "share": ""})


def _cost_per_hour(problem: Brokering, assignment: AssignmentArrays, rows: Bools) -> float:
    price = billing.prices_paid(problem, assignment.location[rows], assignment.cluster[rows])
    mbps = assignment.count[rows] * assignment.bitrate_mbps[rows]
    return float(np.nan_to_num(price) @ mbps) * problem.terms.units_per_mbps_hour


def _places_of(problem: Brokering, assignment: AssignmentArrays, rows: Bools) -> Section:
    names = problem.locations["location"].astype(str).tolist()
    return _list_rows(
        assignment, rows, names, assignment.location, column="place", title="Places with the most traffic"
    )


def _clusters_of(problem: Brokering, assignment: AssignmentArrays, rows: Bools) -> Section:
    names = list_clusters(problem)
    return _list_rows(
        assignment, rows, names, assignment.cluster, column="cluster", title="Clusters with the most traffic"
    )


# --- clusters -----------------------------------------------------------------------------


def list_clusters(problem: Brokering) -> Sequence[str]:
    """Return the names of all clusters."""
    return problem.clusters["cluster"].astype(str).tolist()


def describe_cluster(
    problem: Brokering,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return load, capacity, price and cost of a cluster, and the places with most of its traffic."""
    cluster = list_clusters(problem).index(CLUSTERS.require(problem, name))
    assignment = _read(problem, decided)
    rows = assignment.cluster == cluster
    load, background = float(assignment.load_mbps[cluster]), float(problem.background_mbps[cluster])
    capacity, clients = float(problem.capacity_mbps[cluster]), float(assignment.count[rows].sum())
    is_congested = bool(is_overloaded(problem, assignment.load_mbps)[cluster])
    price = _price_capacity(problem, decided)
    factor, unit = money_per_objective(problem)
    facts = (
        _fact("Load", 100 * (load + background) / capacity if capacity > 0 else None, "%"),
        _fact("Traffic of this broker", load, "Mbit/s"),
        _fact("Background traffic", background, "Mbit/s"),
        _fact("Capacity", capacity, "Mbit/s"),
        _fact("Clients", clients, "clients"),
        _fact("Congested clients", clients if is_congested else 0.0, "clients"),
        _fact(
            "Gain by 1 Gbit/s more (weighted cost)",
            None if price is None else 1000 * factor * float(price[cluster]),
            unit,
        ),
        _fact(
            "Cost of its traffic", _cost_per_hour(problem, assignment, rows), f"{problem.terms.currency}/h"
        ),
        Fact(label="CDN", value=str(problem.clusters["cdn"].iloc[cluster])),
    )
    return ElementReport(facts=facts, sections=(_places_of(problem, assignment, rows),))


def say_upgrade(problem: Brokering, action: Action, name: str) -> str:
    """Return the capacity that an upgrade adds to a cluster, as text."""
    cluster = list_clusters(problem).index(CLUSTERS.require(problem, name))
    return amount(float(problem.capacity_mbps[cluster]) * ((action.value or 1.0) - 1), "Mbit/s")


def rank_clusters(
    problem: Brokering,
    decided: Decided,
    action: Action,
    options: Options,  # noqa: ARG001 - the signature of `ranking`
) -> Mapping[str, float | None]:
    """Return the clusters with an upgrade that may serve more clients, by dual prices and then by load.

    No upgrade serves more clients than those that are not served.
    """
    missing = (decided.metrics["clients"] or 0.0) - (decided.metrics["served"] or 0.0)
    if missing <= 0:
        return {}
    assignment = _read(problem, decided)
    price = _price_capacity(problem, decided)
    added = problem.capacity_mbps * ((action.value or 1.0) - 1)
    gain = np.zeros(len(added)) if price is None else price * added
    load = assignment.load_mbps + problem.background_mbps
    full = np.divide(load, problem.capacity_mbps, out=np.zeros(len(load)), where=problem.capacity_mbps > 0)
    names = list_clusters(problem)
    order = np.lexsort((-full, -gain))
    return {names[cluster]: missing for cluster in order.tolist() if gain[cluster] > 0 or full[cluster] > 0}


# --- CDNs ---------------------------------------------------------------------------------


def list_cdns(problem: Brokering) -> Sequence[str]:
    """Return the names of all CDNs."""
    return problem.cdn_names


def describe_cdn(
    problem: Brokering,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return traffic, capacity and cost of a CDN, and its clusters and places with the most traffic."""
    is_own = problem.cdn == problem.cdn_names.index(CDNS.require(problem, name))
    assignment = _read(problem, decided)
    rows = is_own[assignment.cluster]
    own_load, everything = float(assignment.load_mbps[is_own].sum()), float(assignment.load_mbps.sum())
    capacity = float(problem.capacity_mbps[is_own].sum())
    load = own_load + float(problem.background_mbps[is_own].sum())
    congested = is_overloaded(problem, assignment.load_mbps)[assignment.cluster] & rows
    cost = _cost_per_hour(problem, assignment, rows)
    per_hour = own_load * problem.terms.units_per_mbps_hour
    terms = problem.terms
    facts = (
        _fact("Traffic of this broker", own_load, "Mbit/s"),
        _fact("Share of the broker's traffic", 100 * own_load / everything if everything > 0 else 0.0, "%"),
        _fact("Load, background included", 100 * load / capacity if capacity > 0 else None, "%"),
        _fact("Capacity", capacity, "Mbit/s"),
        _fact("Clients", float(assignment.count[rows].sum()), "clients"),
        _fact("Congested clients", float(assignment.count[congested].sum()), "clients"),
        _fact("Cost of its traffic", cost, f"{terms.currency}/h"),
        _fact("Mean price", cost / per_hour if per_hour > 0 else None, f"{terms.currency}/{terms.cost_per}"),
        _fact("Clusters", float(is_own.sum())),
    )
    return ElementReport(
        facts=facts, sections=(_places_of(problem, assignment, rows), _clusters_of(problem, assignment, rows))
    )


# --- places -------------------------------------------------------------------------------


def list_places(problem: Brokering) -> Sequence[str]:
    """Return the names of the places with clients."""
    return problem.locations["location"].astype(str)[np.unique(problem.location[problem.count > 0])].tolist()


def describe_place(
    problem: Brokering,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return clients, demand and performance of a place, and the clusters that serve it."""
    location = problem.location_index.get_loc(PLACES.require(problem, name))
    assignment = _read(problem, decided)
    rows = assignment.location == location
    count = assignment.count[rows].astype(float)
    clients = float(problem.count[problem.location == location].sum())
    congested = is_overloaded(problem, assignment.load_mbps)[assignment.cluster] & rows
    served = float(count.sum())

    def mean(values: Floats) -> float | None:
        return float(values[location, assignment.cluster[rows]] @ count) / served if served else None

    facts = (
        _fact("Clients", clients, "clients"),
        _fact("Clients without a cluster", clients - served, "clients"),
        _fact("Congested clients", float(assignment.count[congested].sum()), "clients"),
        _fact("Demand", float(problem.demand_mbps[location]), "Mbit/s"),
        _fact("Mean distance to the cluster", mean(problem.distance_km), "km"),
        _fact("Mean score", mean(problem.score)),
        _fact(
            "Cost of its traffic", _cost_per_hour(problem, assignment, rows), f"{problem.terms.currency}/h"
        ),
    )
    return ElementReport(facts=facts, sections=(_clusters_of(problem, assignment, rows),))


CLUSTERS: Final = ElementKind[Brokering](
    name=CLUSTER,
    names=list_clusters,
    actions=(
        Action(name="Fail", state="failed", parameter="fail_clusters", role="failure"),
        Action(
            name="Double the capacity",
            state="at double capacity",
            parameter="capacity_factors",
            value=2.0,
            role="upgrade",
        ),
    ),
    describe=describe_cluster,
    adds=say_upgrade,
    ranking=rank_clusters,
)
CDNS: Final = ElementKind[Brokering](
    name="CDN",
    names=list_cdns,
    actions=(
        Action(name="Leave the market", state="out of the market", parameter="fail_cdns", role="failure"),
        Action(
            name="Raise its price by 20%", state="at a 20% higher price", parameter="price_factors", value=1.2
        ),
        Action(
            name="Lower its price by 20%", state="at a 20% lower price", parameter="price_factors", value=0.8
        ),
    ),
    describe=describe_cdn,
)
PLACES: Final = ElementKind[Brokering](
    name="place",
    names=list_places,
    actions=(
        Action(name="Double the clients", state="at double demand", parameter="demand_factors", value=2.0),
        Action(name="Halve the clients", state="at half demand", parameter="demand_factors", value=0.5),
    ),
    describe=describe_place,
)
ELEMENTS: Final = (CLUSTERS, CDNS, PLACES)
