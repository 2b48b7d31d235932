"""Metrics of a routing."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.metrics import Headline, less, more
from planner.contract.plan import Breakdown
from planner.contract.tolerances import exceeds
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan.availability import FailureFigures, measure_failures
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.fixed_shares import measure_worst_utilization
from planner_models.traffic.plan.flow_check import lost_rates
from planner_models.traffic.plan.moved_traffic import measure_moved_share
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.route_check import check_routes
from planner_models.traffic.plan.segments import count_segments
from planner_models.traffic.plan.switch_groups import measure_groups
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.routable_demands import has_route, say_without_route

SHARES = "of the demands with a path that keeps their limits"


METRICS: Final = (
    more("delivered_mbps", "Mbit/s", "traffic that arrives, once overloaded links have dropped their excess"),
    more("offered_mbps", "Mbit/s", "sum of all demands"),
    more("delivered_share", "", "delivered over offered traffic"),
    less("lost_mbps", "Mbit/s", "traffic that is sent and does not arrive, for overloaded or failed links"),
    less("shed_mbps", "Mbit/s", "demand that the plan leaves out, on purpose or for want of a path"),
    less("overloaded_links", "links", "links with more load than capacity"),
    less(
        "max_utilization",
        "",
        "load over capacity of the busiest link, if no link dropped any traffic",
        "Sen et al. 2013 (LocalFlow), section 4",
    ),
    less(
        "worst_utilization",
        "",
        "load over capacity of the busiest link under the worst of the demand matrices that fixed shares are "
        "made for",
        "Applegate and Cohen 2003",
    ),
    more(
        "concurrent_flow",
        "x demand",
        f"factor by which all demands can grow before a link is full, with the plan's split ratios; {SHARES}",
        "maximum concurrent flow (Shahrokhi and Matula 1990)",
    ),
    less(
        "mean_path_stretch",
        "x shortest",
        "mean weight of the paths over that of the shortest paths, averaged by traffic",
    ),
    less("mean_latency_ms", "ms", "mean delay of the paths, averaged by traffic"),
    less(
        "latency_violations",
        "demands",
        "demands with traffic on routes that are longer than their latency limit",
    ),
    less("rule_violations", "demands", "demands with traffic on routes that break a rule"),
    less("cost", "cost x Mbit/s", "cost of the traffic on all links"),
    less("moved_mbps", "Mbit/s", "traffic that the plan takes off its present routes"),
    less(
        "moved_share",
        "",
        "traffic that leaves its routes in the plan before, although it could stay, over all that could",
    ),
    less(
        "group_entries",
        "entries",
        "entries for groups of next hops in the switch that needs most; equal groups are stored once",
        title="fullest table of groups",
    ),
    less(
        "oversubscription",
        "x ideal",
        "largest factor by which a next hop of a group gets more than the share that its weight asks for",
        title="oversubscription of next hops",
    ),
    less("detoured_demands", "demands", "demands with an intermediate node in a segment list"),
    less("fake_nodes", "fake nodes", "fake nodes that routers of OSPF are told of"),
    less("mean_segments", "segments", "segments of a demand's path, mean over the demands that are sent"),
    more(
        "mean_rate_share",
        "",
        f"delivered share of a demand, mean {SHARES}",
        "Sen et al. 2013 (LocalFlow), section 7.2",
        title="mean delivered share of demands",
    ),
    more(
        "min_rate_share",
        "",
        f"delivered share of the demand with the smallest one, {SHARES}",
        "Sen et al. 2013 (LocalFlow), section 7.2",
        title="least delivered share of a demand",
    ),
    more(
        "geometric_rate_share",
        "",
        f"geometric mean of the delivered shares {SHARES}, largest under proportional fairness",
        "Kelly, Maulloo and Tan 1998",
        title="geometric mean of delivered shares",
    ),
    more(
        "rate_fairness",
        "",
        f"Jain's fairness index of the delivered shares {SHARES}, 1 where all are the same",
        "Jain, Chiu and Hawe 1984",
        title="fairness of delivered shares",
    ),
    more(
        "guaranteed_mbps",
        "Mbit/s",
        "traffic that arrives in every planned failure that leaves it a path in the network, whether or not "
        "a design may use that path: the plan's table guarantees says so, "
        "and the check simulates it",
    ),
    more(
        "worst_delivered_mbps",
        "Mbit/s",
        "traffic that arrives in the worst failure of the table failures, else of the plan's guarantees, "
        "while nobody plans again",
    ),
    more(
        "availability",
        "",
        "probability that a demand is served fully, mean over demands by traffic; from the table failures",
        "Bogle et al. 2019 (TEAVAR)",
    ),
    more("min_availability", "", "availability of the demand with the smallest one"),
    less(
        "demand_risk",
        "",
        "share lost by the demand that loses most, of those with a path, mean over the worst 1% of the time, "
        "or over the part in which the plan guarantees nothing",
        "Bogle et al. 2019 (TEAVAR); Rockafellar and Uryasev 2000",
    ),
    less(
        "traffic_risk",
        "",
        "share of all traffic lost, of demands with a path, mean over the same part of the time",
        "Rockafellar and Uryasev 2000",
    ),
)
HEADLINE: Final = Headline(
    metric="delivered_mbps",
    verb="delivers",
    total="offered_mbps",
    losses={"lost_mbps": "loses", "shed_mbps": "sheds"},
    growth="concurrent_flow",
    in_failures={
        "worst_delivered_mbps": "Delivered in the worst failure, while nobody plans again",
        "guaranteed_mbps": "Guaranteed in every failure that leaves a demand a path in the network",
        "availability": "Availability (how much of the time a demand is served fully)",
    },
    guarantees={
        "guaranteed_mbps": "guarantees {} in every planned failure that leaves a demand a path in the network"
    },
    table=(
        *("delivered_mbps", "delivered_share", "lost_mbps", "shed_mbps", "overloaded_links"),
        *("latency_violations", "rule_violations", "guaranteed_mbps", "worst_delivered_mbps", "availability"),
        *("max_utilization", "mean_path_stretch", "mean_latency_ms"),
        *("group_entries", "oversubscription", "fake_nodes"),
    ),
    required={"latency": "latency_violations", "rules": "rule_violations"},
    unservable=say_without_route,
)
LIMITS: Final = {
    "capacity": "overloaded links",
    "demand": "demands neither sent nor listed as shed",
    "utilization": "links listed with a false utilization",
    "latency": "broken latency limits",
    "rules": "broken rules",
    "failed_links": "failed links with traffic",
    "guarantees": "demands that a failure hits harder than guaranteed",
}


def measure(problem: Traffic, plan: Routing, previous: Routing | None) -> dict[str, float | None]:
    """Return every metric of the plan, from the true problem and the plan alone.

    previous  the plan before, for the share of traffic that has moved
    """
    flow = verify_flow(problem, plan)
    load, served, rate = flow.load_mbps, flow.served_mbps, problem.rate_mbps
    delivered = delivered_rates(problem, flow)
    lost = lost_rates(problem, plan)
    unsent = rate - served - lost
    utilization = load / problem.capacity_mbps
    busiest = float(utilization.max(initial=0.0))
    counted = has_route(problem)
    smallest_share = float((served[counted] / rate[counted]).min()) if counted.any() else None
    sent, offered, arrived = float(served.sum()), float(rate.sum()), float(delivered.sum())
    shortest = _shortest_weight(problem, served)
    detoured, segments = (
        (None, None) if plan.segments is None else count_segments(problem, plan.segments, served)
    )
    return {
        "delivered_mbps": arrived,
        "offered_mbps": offered,
        "delivered_share": arrived / offered if offered > 0 else None,
        "lost_mbps": float((served - delivered).sum() + lost.sum()),
        "shed_mbps": float(np.where(unsent > 1e-12 * rate, unsent, 0.0).sum()),
        "overloaded_links": float(exceeds(load, problem.capacity_mbps).sum()),
        "max_utilization": busiest,
        "worst_utilization": measure_worst_utilization(problem, plan),
        "concurrent_flow": smallest_share / busiest if smallest_share is not None and busiest > 0 else None,
        "mean_path_stretch": float(problem.weight @ load) / shortest if shortest > 0 else None,
        "mean_latency_ms": _per_link(problem, "latency_ms", load, sent),
        **_broken_limits(problem, plan),
        "cost": _per_link(problem, "cost", load, 1.0),
        "moved_mbps": None if plan.moved is None else float(plan.moved["rate_mbps"].sum()),
        "moved_share": measure_moved_share(problem, plan, previous),
        **measure_groups(problem, plan),
        "detoured_demands": detoured,
        "fake_nodes": None if plan.lies is None else float(plan.lies["fake_nodes"].sum()),
        "mean_segments": segments,
        **_shares(delivered[counted] / rate[counted]),
        **_in_failures(problem, plan),
    }


def _in_failures(problem: Traffic, plan: Routing) -> dict[str, float | None]:
    """Return the metrics of a plan in failures; None where no failures are known."""
    figures = measure_failures(problem, plan)
    return {
        "guaranteed_mbps": _guaranteed(plan),
        "worst_delivered_mbps": None if figures is None else figures.worst_mbps(),
        "availability": None if figures is None else figures.mean_availability(),
        "min_availability": None if figures is None else figures.least_availability(),
        "demand_risk": None if figures is None else figures.demand_risk(),
        "traffic_risk": None if figures is None else figures.traffic_risk(),
    }


def break_down(problem: Traffic, plan: Routing) -> Breakdown | None:
    """Return offered, delivered, lost and shed traffic of each class; None where demands have no classes."""
    if not problem.has_classes:
        return None
    flow = verify_flow(problem, plan)
    rate, served, delivered = problem.rate_mbps, flow.served_mbps, delivered_rates(problem, flow)
    lost = lost_rates(problem, plan)
    shed = np.where(rate - served - lost > 1e-12 * rate, rate - served - lost, 0.0)

    def by_class(amount: Floats) -> Floats:
        return sum_by_index(problem.class_of, amount, len(problem.class_table))

    offered, arrived = by_class(rate), by_class(delivered)
    frame = pd.DataFrame(
        {
            "class": problem.class_table["class"].astype(str),
            "offered_mbps": offered,
            "delivered_mbps": arrived,
            "delivered_share": np.divide(
                arrived, offered, out=np.full(len(offered), np.nan), where=offered > 0
            ),
            "lost_mbps": by_class(served - delivered + lost),
            "shed_mbps": by_class(shed),
        }
    )
    failures = None if problem.failures is None else measure_failures(problem, plan)
    if failures is not None:
        frame = frame.assign(**_in_failures_by_class(problem, failures))
    return Breakdown(title="Traffic by class, the highest priority first", group="class", frame=frame)


def _guaranteed(plan: Routing) -> float | None:
    """Return the traffic that the plan guarantees in every failure, Mbit/s; None where it says nothing."""
    claims = plan.guarantees
    if claims is None:
        return None
    always = claims if "availability" not in claims else claims[claims["availability"].isna()]
    return float(always["rate_mbps"].sum()) if len(always) or not len(claims) else None


def _in_failures_by_class(problem: Traffic, figures: FailureFigures) -> dict[str, list[float]]:
    """Return the arrivals of each class in its worst failure, and its availability if that is known."""
    members = [problem.class_of == of_class for of_class in range(len(problem.class_table))]
    columns = {"worst_delivered_mbps": [figures.worst_mbps(member_mask) for member_mask in members]}
    available = [figures.mean_availability(member_mask) for member_mask in members]
    if any(value is not None for value in available):
        columns["availability"] = [np.nan if value is None else value for value in available]
    return columns


def _broken_limits(problem: Traffic, plan: Routing) -> dict[str, float | None]:
    """Return the numbers of demands beyond their latency limits and against rules; None without any."""
    violations = check_routes(problem, plan, verify_flow(problem, plan)).frame
    late = violations["limit"] == "latency"
    demands = {where.partition(": ")[0] for where in violations["where"][violations["limit"] == "rules"]}
    return {
        "latency_violations": float(late.sum()) if np.isfinite(problem.max_latency_ms).any() else None,
        "rule_violations": float(len(demands)) if problem.parsed_rules else None,
    }


def _shares(share: np.ndarray) -> dict[str, float | None]:
    """Return the metrics of the served shares of demands."""
    if not len(share):
        return dict.fromkeys(("mean_rate_share", "min_rate_share", "geometric_rate_share", "rate_fairness"))
    squares = float((share**2).sum())
    with np.errstate(divide="ignore"):
        geometric = float(np.exp(np.log(share).mean()))
    return {
        "mean_rate_share": float(share.mean()),
        "min_rate_share": float(share.min()),
        "geometric_rate_share": geometric,
        "rate_fairness": float(share.sum()) ** 2 / (len(share) * squares) if squares > 0 else None,
    }


def _shortest_weight(problem: Traffic, served: np.ndarray) -> float:
    """Return the sum of served rates times the weights of shortest paths."""
    demands = np.flatnonzero((served > 0) & (problem.rate_mbps > 0))
    row = problem.target_row[demands]
    return float(served[demands] @ problem.distance[row, problem.source[demands]])


def _per_link(problem: Traffic, column: str, load: np.ndarray, total: float) -> float | None:
    if column not in problem.links or total <= 0:
        return None
    return float(problem.links[column].to_numpy(float) @ load) / total
