"""Metrics of system `brokering`, computed from the true problem and the plan.

Relief of overloaded clusters: the plan that results when clients without capacity have moved.

A broker moves clients whose cluster fails them during playback (Mukerjee 2018, 3.2.2 and 3.6.3). So the
objective of a plan that overloads clusters, or leaves clients out, is counted after these moves, and
clients that fit nowhere then are without service.

Traffic, cost, price and profit of each CDN and each country.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.metrics import MONEY, Metric, less
from planner_models.brokering.plan import billing
from planner_models.brokering.plan.check import (
    AssignmentArrays,
    ClientKinds,
    is_overloaded,
    limited_mbps,
    read_assignment,
)
from planner_models.brokering.plan.plan import Assignment, read_bids
from planner_models.brokering.plan.transportation import (
    CAPACITY_TOLERANCE,
    TransportationProblem,
    client_cost,
    transportation_problem,
)
from planner_models.brokering.problem.problem import Brokering

TABLE_3_3: Final = "Mukerjee 2018, Table 3.3"
PRICE: Final = "per unit of traffic"
"""Unit of prices, in the currency and per unit of traffic that a problem's terms name."""


METRICS: Final = (
    Metric(
        name="served",
        unit="clients",
        better="more",
        about="clients in clusters with as much capacity as load",
    ),
    Metric(name="clients", unit="clients", better="more", about="clients that ask for service"),
    less(
        "weighted_cost",
        "points",
        "wp times scores plus wc times costs per hour, over the clients with service; those of overloaded "
        "clusters count where they are moved to",
        "Mukerjee 2018, Fig. 3.10 (negated); moving: 3.2.2",
    ),
    less(
        "objective",
        "points",
        "what the broker minimises: the weighted cost, and each client without service at more than all "
        "clients could cost",
        "Mukerjee 2018, Fig. 3.10 (negated)",
    ),
    less(
        "median_cost",
        PRICE,
        "median over clients of their cluster's cost, or of its price where that is bid",
        TABLE_3_3,
    ),
    less("median_score", "points", "median over clients of the score of their cluster", TABLE_3_3),
    less("median_distance_km", "km", "median over clients of the distance to their cluster", TABLE_3_3),
    less(
        "median_load_percent",
        "%",
        "median load of the clusters that serve clients, background traffic included",
        TABLE_3_3,
    ),
    less(
        "median_own_load_percent",
        "%",
        "median load of the clusters that serve clients, by this broker's traffic, over the capacity that "
        "background traffic leaves",
        TABLE_3_3,
    ),
    less("congested_percent", "%", "clients in clusters with more load than capacity", TABLE_3_3),
    less("mean_cost", PRICE, "mean cost over traffic"),
    less("mean_score", "points", "mean score over clients"),
    less(
        "cost_per_hour",
        f"{MONEY}/h",
        "cost of all traffic for an hour: by the contracts that the problem lists, committed traffic that is "
        "not sent included; without contracts, by clusters' costs or bids",
    ),
    less(
        "contract_bill_per_hour",
        f"{MONEY}/h",
        "cost of all traffic for an hour at contract prices, without markup",
    ),
    less(
        "billed_by_bits_per_hour",
        f"{MONEY}/h",
        "contract bill of an hour, over this window and earlier ones, with commitments",
    ),
    less(
        "billed_by_95th_per_hour",
        f"{MONEY}/h",
        "contract bill of an hour where the 95th percentile of each contract's windows is billed",
        "Mukerjee 2018, 3.2.1 (95/5 model)",
    ),
    less(
        "bids_per_hour",
        f"{MONEY}/h",
        "cost of all traffic for an hour at each cluster's cost times the markup that it bids",
    ),
    less(
        "unserved",
        "clients",
        "clients without service, after those of overloaded clusters and those without a cluster have moved",
    ),
    less("shed", "clients", "clients that the plan leaves without a cluster"),
    less(
        "floor_shortfall_mbps",
        "Mbit/s",
        "traffic that CDNs with a floor lack, over all limits; unknown without the table of limits",
    ),
    less("congested", "clients", "clients in clusters with more load than capacity"),
    less(
        "cdns_losing_at_flat_rates",
        "CDNs",
        "CDNs paid less than their cost at their contract price plus 20%",
        "Mukerjee 2018, 3.7.1",
    ),
    Metric(name="cdns_used", unit="CDNs", better="more", about="CDNs that serve clients of this broker"),
    less(
        "moved_between_clusters_percent",
        "%",
        "traffic of the previous round that another cluster now serves",
        "traffic predictability, Mukerjee 2018, 3.3.2",
    ),
    less(
        "moved_between_cdns_percent",
        "%",
        "traffic of the previous round that another CDN now serves",
        "Mukerjee 2018, Fig. 3.5",
    ),
    less("rounds", "rounds", "rounds of the protocol"),
    less(
        "withdrawn",
        "mappings",
        "mappings that were withdrawn because a CDN refused",
        "Mukerjee 2018, 3.4.2 (Transactions)",
    ),
)
NOT_ON_OFFER_COST = 1e300  # a client that should not be there at all loses nothing by moving
_relieved: WeakKeyDictionary[Brokering, tuple[tuple[Ints, ...], Relief]] = WeakKeyDictionary()
"""The plan of each problem that was relieved last, and its relief."""
MARKUP: Final = 1.2  # of a CDN on a price that only covers its cost
COLUMNS: Final = (
    "traffic_mbps",
    "cost_per_hour",
    "flat_price_per_hour",
    "price_to_cost",
    "profit_at_flat_price",
    "profit_at_cluster_price",
)


def say_terms(problem: Brokering) -> str:
    """Return the terms of the weighted cost: `1 x score of each client + 1,000 x EUR per hour`."""
    terms = problem.terms
    per = "each Mbit/s" if terms.performance_per == "bit" else "each client"
    return (
        f"{terms.performance_weight:,.6g} x score of {per} + "
        f"{terms.cost_weight:,.6g} x {terms.currency} per hour"
    )


def measure(problem: Brokering, plan: Assignment, previous: Assignment | None) -> dict[str, float | None]:
    """Return every metric of the plan, from the true problem and the plans alone."""
    assignment = read_assignment(problem, plan)
    cells = assignment.location, assignment.cluster
    count = assignment.count.astype(float)
    traffic = count * assignment.bitrate_mbps
    cost, score = problem.price[cells], problem.score[cells]
    terms = problem.terms
    overloaded = is_overloaded(problem, assignment.load_mbps)
    served = float(count.sum())
    by_cdn = profit_by_cdn(problem, plan)
    bills = billing.hourly_bills(problem, plan)
    bid_price = problem.unit_cost * read_bids(problem, plan)[0]
    clusters, cdns = moved_traffic_percent(problem, plan, previous)
    relief = relieved_cost(problem, assignment)
    congested = float(count @ overloaded[assignment.cluster])
    return {
        "served": served - congested,
        "clients": float(problem.count.sum()),
        "weighted_cost": relief.weighted_cost,
        "objective": relief.weighted_cost + relief.penalty,
        "median_cost": weighted_median(cost, count),
        "median_score": weighted_median(score, count),
        "median_distance_km": weighted_median(problem.distance_km[cells], count),
        "median_load_percent": _median_load(
            assignment.load_mbps, assignment.load_mbps + problem.background_mbps, problem.capacity_mbps
        ),
        "median_own_load_percent": _median_load(
            assignment.load_mbps, assignment.load_mbps, problem.residual_mbps
        ),
        "congested_percent": 100 * congested / served if served else None,
        "mean_cost": float(cost @ traffic) / float(traffic.sum()) if served else None,
        "mean_score": float(score @ count) / served if served else None,
        "cost_per_hour": billing.hourly_cost(problem, plan),
        "contract_bill_per_hour": _contract_bill(by_cdn),
        "billed_by_bits_per_hour": bills["bits"],
        "billed_by_95th_per_hour": bills["95th percentile"],
        "bids_per_hour": float(bid_price[assignment.cluster] @ traffic) * terms.units_per_mbps_hour,
        "unserved": float(relief.unserved),
        "shed": max(float(problem.count.sum()) - served, 0.0),
        "floor_shortfall_mbps": None
        if problem.limits is None
        else float(np.maximum(problem.volume_limits.floor_mbps - limited_mbps(problem, plan), 0.0).sum()),
        "congested": congested,
        "cdns_losing_at_flat_rates": float((by_cdn["profit_at_flat_price"] < 0).sum()),
        "cdns_used": float((by_cdn["traffic_mbps"] > 0).sum()),
        "moved_between_clusters_percent": clusters,
        "moved_between_cdns_percent": cdns,
        "rounds": 1.0 if plan.rounds is None or plan.rounds.empty else float(plan.rounds["round"].max()),
        "withdrawn": 0.0 if plan.rounds is None else float(plan.rounds["withdrawn"].sum()),
    }


def objective_of(problem: Brokering, plan: Assignment) -> float:
    """Return the metric `objective` of the plan, alone."""
    relief = relieved_cost(problem, read_assignment(problem, plan))
    return relief.weighted_cost + relief.penalty


def relieved_cost(problem: Brokering, assignment: AssignmentArrays) -> Relief:
    """Return the weighted cost of an assignment, and the clients that overloaded clusters do not serve."""
    count, terms = assignment.count.astype(float), problem.terms
    cells = assignment.location, assignment.cluster
    per_client = assignment.bitrate_mbps if terms.performance_per == "bit" else 1.0
    performance = float(problem.score[cells] @ (count * per_client))
    priced = problem.priced_bitrate_mbps(assignment.location, assignment.bitrate_mbps)
    weighted_money = float((problem.price[cells] * count) @ priced) * terms.units_per_mbps_hour
    weighted = terms.performance_weight * performance + terms.cost_weight * weighted_money
    if is_needed(problem, assignment):
        return relieve_plan(problem, assignment)
    return Relief(weighted, 0, 0.0)


def weighted_median(values: Floats, weights: Floats) -> float | None:
    """Return the smallest value that at least half of the weight does not exceed; None without weight."""
    if weights.sum() <= 0:
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _contract_bill(by_cdn: pd.DataFrame) -> float | None:
    bill = float(by_cdn["flat_price_per_hour"].sum(skipna=False)) / MARKUP
    return None if np.isnan(bill) else bill


def _median_load(own_mbps: Floats, load_mbps: Floats, capacity_mbps: Floats) -> float | None:
    """Return the median load, in percent, of the clusters that serve clients; None where there are none."""
    used = (own_mbps > 0) & (capacity_mbps > 0)
    if not used.any():
        return None
    return 100 * float(np.median(load_mbps[used] / capacity_mbps[used]))


def moved_traffic_percent(
    problem: Brokering, plan: Assignment, previous: Assignment | None
) -> tuple[float | None, float | None]:
    """Return the percentage of the previous round's traffic that changed its cluster, and its CDN."""
    if previous is None:
        return None, None
    kind = ["location", "isp", "content", "bitrate_kbps"]
    cdn_of = problem.clusters.set_index("cluster")["cdn"]
    shares = []
    for level in ("cluster", "cdn"):
        now, before = (
            each_plan.assignments.assign(cdn=each_plan.assignments["cluster"].map(cdn_of))
            .groupby([*kind, level], dropna=False)["clients"]
            .sum()
            for each_plan in (plan, previous)
        )
        both = pd.concat({"now": now, "before": before}, axis=1).fillna(0.0)
        bitrate = both.index.get_level_values("bitrate_kbps").to_numpy(float)
        stays = float(both.min(axis=1).to_numpy(float) @ bitrate)
        totals = both.groupby(level=kind).sum().min(axis=1)
        common = float(totals.to_numpy(float) @ totals.index.get_level_values("bitrate_kbps").to_numpy(float))
        shares.append(100 * (1 - stays / common) if common > 0 else None)
    return shares[0], shares[1]


def is_needed(problem: Brokering, result: AssignmentArrays) -> bool:
    """Return whether a cluster is overloaded, or a client has no cluster."""
    return bool(is_overloaded(problem, result.load_mbps).any() or result.count.sum() < problem.count.sum())


class Relief(NamedTuple):
    """The outcome of relief.

    weighted_cost  weights times scores and hourly costs, over the clients that are served then
    unserved       clients without service
    penalty        what they count in the objective: each costs more than all clients could
    """

    weighted_cost: float
    unserved: int
    penalty: float


def relieve_plan(problem: Brokering, assignment: AssignmentArrays) -> Relief:
    """Return the result of a plan after all clients without capacity have moved."""
    arrays = (assignment.kind, assignment.cluster, assignment.count)
    last = _relieved.get(problem)  # a design, the engine and explanations ask for the same plan
    if last and all(np.array_equal(*pair) for pair in zip(last[0], arrays, strict=True)):
        return last[1]
    cost = client_cost(problem)
    transport = transportation_problem(problem, cost.copy())
    assigned, waiting = relieve(transport, count_by_group(problem, assignment), cap_groups(problem))
    unserved = int(waiting.sum())
    penalty = unserved * transport.unserved_cost if unserved else 0.0
    np.nan_to_num(cost, copy=False)  # no client is where there is no price
    relief = Relief(float(np.multiply(cost, assigned, out=cost).sum()), unserved, penalty)
    _relieved[problem] = (tuple(array.copy() for array in arrays), relief)
    return relief


def count_by_group(problem: Brokering, assignment: AssignmentArrays) -> Ints:
    """Return the clients of each group that a plan sends to each cluster, (G, C)."""
    groups, kinds = problem.groups, ClientKinds(problem)
    group = np.full(len(kinds.demand), -1, dtype=np.int64)
    group[kinds.look_up(problem.clients)] = groups.of_row
    assigned = np.zeros((len(groups.count), len(problem.clusters)), dtype=np.int64)
    used = assignment.count > 0
    np.add.at(assigned, (group[assignment.kind[used]], assignment.cluster[used]), assignment.count[used])
    return assigned


class CappedGroups(NamedTuple):
    """Caps of CDNs in regions, for groups of clients.

    applies   (K, G) whether the clients of a group count for a cap
    cdn       (K,) CDN of each cap; cdn_of (C,) that of each cluster
    cap_mbps  (K,) most traffic
    """

    applies: Bools
    cdn: Ints
    cdn_of: Ints
    cap_mbps: Floats

    def of(self, group: int, cluster: int) -> Bools:
        """Return the caps that clients of a group in a cluster count for, (K,)."""
        return np.asarray(self.applies[:, group] & (self.cdn == self.cdn_of[cluster]))

    def residual(self, bitrate: Floats, assigned: Ints) -> Floats:
        """Return the traffic that caps allow beside assigned clients (G, C), (K,), Mbit/s."""
        by_cdn = (self.cdn_of == self.cdn[:, None]).astype(float)
        load = (self.applies * bitrate * (by_cdn @ assigned.T)).sum(axis=1)
        return np.asarray(self.cap_mbps - load)


def cap_groups(problem: Brokering) -> CappedGroups | None:
    """Return the caps of a problem for its groups of clients; None without limits."""
    if problem.limits is None:
        return None
    limits = problem.volume_limits
    applies = limits.in_region[:, problem.groups.location]
    return CappedGroups(applies, limits.cdn, problem.cdn, limits.cap_mbps * (1 + CAPACITY_TOLERANCE))


def relieve(
    transport: TransportationProblem, assigned: Ints, caps: CappedGroups | None = None
) -> tuple[Ints, Ints]:
    """Return the assignment (G, C) after relief, and the clients (G,) that fit nowhere.

    An overloaded cluster first loses the clients whose cost rises least by Mbit/s. They, and clients
    that had no cluster, then go to their cheapest cluster that they fit in, the largest bitrates first.

    assigned  (G, C) clients of each group in each cluster; not changed
    caps      of CDNs, which clients that move keep; None for none
    """
    assigned = assigned.copy()
    bitrate, cost = transport.bitrate_mbps, transport.cost
    capacity = transport.capacity_mbps * (1 + CAPACITY_TOLERANCE) + CAPACITY_TOLERANCE
    residual = capacity - bitrate @ assigned
    fits = residual >= bitrate.min(initial=np.inf)
    elsewhere = np.where(fits, cost, np.inf).min(axis=1, initial=np.inf)
    for cluster in np.flatnonzero(residual < 0):
        groups = np.flatnonzero(assigned[:, cluster])
        here = cost[groups, cluster]
        rise = elsewhere[groups] - np.where(np.isfinite(here), here, NOT_ON_OFFER_COST)
        for group in groups[np.argsort(rise / bitrate[groups], kind="stable")]:
            leave = min(int(np.ceil(-residual[cluster] / bitrate[group])), int(assigned[group, cluster]))
            assigned[group, cluster] -= leave
            residual[cluster] += leave * bitrate[group]
            if residual[cluster] >= 0:
                break
    unserved = transport.count - assigned.sum(axis=1)
    waiting = np.flatnonzero(unserved)
    below_caps = None if caps is None else caps.residual(bitrate, assigned)
    for group in waiting[np.argsort(-bitrate[waiting], kind="stable")]:
        fitting = np.flatnonzero((residual >= bitrate[group]) & np.isfinite(cost[group]))
        for cluster in fitting[np.argsort(cost[group, fitting], kind="stable")]:
            if not unserved[group]:
                break
            room = float(residual[cluster])
            if caps is not None and below_caps is not None:
                own_caps = caps.of(int(group), int(cluster))
                room = min(room, float(below_caps[own_caps].min(initial=np.inf)))
            join = min(int(unserved[group]), int(max(room, 0.0) / bitrate[group]))
            if caps is not None and below_caps is not None:
                below_caps[own_caps] -= join * bitrate[group]
            assigned[group, cluster] += join
            residual[cluster] -= join * bitrate[group]
            unserved[group] -= join
    return assigned, unserved


def profit_by_cdn(problem: Brokering, plan: Assignment, *, markup: float = MARKUP) -> pd.DataFrame:
    """Return one row per CDN: its traffic, and cost, price and profit of an hour of it.

    flat_price_per_hour      markup times its contract price; NaN where it has none for a client
    price_to_cost            flat price over cost; below 1 it loses money; NaN without traffic
    profit_at_flat_price     flat price less cost
    profit_at_cluster_price  the same at markup times its clusters' costs
    source                   Mukerjee 2018, 3.7.1, Fig. 3.11 to 3.13
    """
    return _profit_by_owner(problem, plan, problem.cdn, problem.cdn_names, "cdn", markup)


def profit_by_country(problem: Brokering, plan: Assignment, *, markup: float = MARKUP) -> pd.DataFrame:
    """Return the same with one row per country with clusters, by the country that serves the traffic.

    source  Mukerjee 2018, 3.7.1, Fig. 3.14 to 3.16
    """
    names, country = np.unique(problem.country[problem.cluster_location].astype(str), return_inverse=True)
    return _profit_by_owner(problem, plan, country, names.tolist(), "country", markup)


def _profit_by_owner(
    problem: Brokering, plan: Assignment, owner: Ints, names: list[str], column: str, markup: float
) -> pd.DataFrame:
    assignment = read_assignment(problem, plan)
    traffic = assignment.count * assignment.bitrate_mbps
    per_hour = problem.terms.units_per_mbps_hour
    owner_of_row = owner[assignment.cluster]

    def total(amount: Floats) -> Floats:
        return np.bincount(owner_of_row, weights=amount, minlength=len(names)).astype(float)

    cost = total(traffic * problem.unit_cost[assignment.cluster]) * per_hour
    flat_price = problem.contract_price[assignment.location, problem.cdn[assignment.cluster]]
    paid = total(np.where(traffic > 0, traffic * flat_price, 0.0)) * per_hour * markup
    ratio = np.divide(paid, cost, out=np.full(len(names), np.nan), where=cost > 0)
    columns = (total(traffic), cost, paid, ratio, paid - cost, (markup - 1) * cost)
    return pd.DataFrame({column: names, **dict(zip(COLUMNS, columns, strict=True))})
