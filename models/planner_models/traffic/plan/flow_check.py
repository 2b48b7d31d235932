"""Check of a routing's tables against its flow and the raw problem, guarantees in failures aside."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tables import abbreviate
from planner.contract.tolerances import differs, exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.flows import split_ratios
from planner_models.graphs.distances import extend_reached
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan.fixed_shares import flow_of_shares, measure_worst_utilization
from planner_models.traffic.plan.lies import flow_of_lies
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.references import (
    flow_on_routes,
    is_by_segments,
    list_routes,
    require_classes,
)
from planner_models.traffic.plan.route_check import check_routes
from planner_models.traffic.plan.segments import flow_on_segments
from planner_models.traffic.plan.switch_groups import flow_of_groups
from planner_models.traffic.plan.verified_flow import (
    TOLERANCE,
    VerifiedFlow,
    largest_in_row,
    require_each_link,
)
from planner_models.traffic.problem.problem import Traffic

MAX_PLACES: Final = 20_000_000  # of commodities and nodes, followed at a time


def check_flow(problem: Traffic, plan: Routing, flow: VerifiedFlow) -> Violations:
    """Return the violations of `check` without those of guarantees; PlanRejected as there."""
    _refuse_idle_cycles(problem, flow)
    if plan.routes is not None:
        _require_routes(problem, plan.routes, flow)
    if plan.weights is not None:
        _require_weights(problem, plan.weights, flow)
    if plan.lies is not None:
        _require_same_flow(problem, flow_of_lies(problem, plan.lies, flow.served_mbps), flow, "lies")
    if plan.groups is not None:
        _require_same_flow(problem, flow_of_groups(problem, plan.groups, flow.served_mbps), flow, "groups")
    if plan.segments is not None:
        _require_segments(problem, plan.segments, flow)
    if plan.moved is not None:
        _require_moved(problem, plan.moved, flow)
    if plan.shares is not None:
        _require_shares(problem, plan.shares, flow)
        measure_worst_utilization(problem, plan)  # raises where a matrix has a demand that is none
    allowed = problem.capacity_mbps
    over = exceeds(flow.load_mbps, allowed)
    capacity = Violations.of(
        "capacity",
        where=[problem.link_labels[link] for link in np.flatnonzero(over)],
        amount=flow.load_mbps[over],
        allowed=allowed[over],
        unit="Mbit/s",
    )
    shed = _listed_as_shed(problem, plan)
    lost = lost_rates(problem, plan)
    names = flow.served_mbps + shed + lost
    excess = np.flatnonzero((shed > 0) & exceeds(names, problem.rate_mbps, flow.terms_mbps))
    if len(excess):
        k = int(excess[0])
        raise PlanRejected(
            f"shed: {problem.demand_labels[k]} is said to shed {shed[k]:.6g} Mbit/s, but "
            f"{flow.served_mbps[k]:.6g} of its {problem.rate_mbps[k]:.6g} Mbit/s are sent"
        )
    short = falls_short(names, problem.rate_mbps, flow.terms_mbps)
    demand = Violations.of(
        "demand",
        where=[problem.demand_labels[k] for k in np.flatnonzero(short)],
        amount=names[short],
        allowed=problem.rate_mbps[short],
        unit="Mbit/s",
    )
    false = _find_false_utilization(problem, plan, flow.link_row, flow.load_mbps)
    result = capacity + demand + false + check_routes(problem, plan, flow)
    if plan.failed is not None:
        rode = plan.failed["rate_mbps"].to_numpy(float)
        result += Violations.of(
            "failed_links",
            where=plan.failed["link"].tolist(),
            amount=rode,
            allowed=np.zeros(len(rode)),
            unit="Mbit/s",
        )
    return result


def lost_rates(problem: Traffic, plan: Routing) -> Floats:
    """Return the traffic of each demand that is lost on links that have failed, (K,), Mbit/s."""
    if plan.lost is None:
        return np.zeros(len(problem.demands))
    demand = problem.find_demands(plan.lost)
    return sum_by_index(demand, plan.lost["rate_mbps"].to_numpy(float), len(problem.demands))


def _listed_as_shed(problem: Traffic, plan: Routing) -> Floats:
    """Return the demand that the plan lists as shed, (K,), Mbit/s; PlanRejected for an unknown demand."""
    if plan.shed is None:
        return np.zeros(len(problem.demands))
    require_classes(problem, plan.shed, "shed")
    demand = problem.find_demands(plan.shed)
    unknown = np.flatnonzero(demand < 0)
    if len(unknown):
        ends = plan.shed.iloc[unknown[0]]
        raise PlanRejected(
            f"shed row {unknown[0] + 1}: {ends['source']}->{ends['target']} is no demand of the problem"
        )
    rate = plan.shed["rate_mbps"].to_numpy(float)
    wrong = np.flatnonzero(~(rate >= 0) | np.isinf(rate))
    if len(wrong):
        raise PlanRejected(f"shed row {wrong[0] + 1}: rate_mbps is {rate[wrong[0]]}, must be at least 0")
    return sum_by_index(demand, rate, len(problem.demands))


def _refuse_idle_cycles(problem: Traffic, flow: VerifiedFlow) -> None:
    """Raise PlanRejected for traffic that circles where none of its commodity's demands pass."""
    count, commodities = len(problem.nodes), flow.flow_mbps.shape[0]
    demands = np.flatnonzero(problem.rate_mbps > 0)
    name = problem.commodity[demands]
    row = demands if flow.by_demand else np.searchsorted(flow.commodity, name)
    if not flow.by_demand and commodities:
        row = np.where(flow.commodity[np.minimum(row, commodities - 1)] == name, row, commodities)
    largest = largest_in_row(flow.flow_mbps)
    size = max(1, MAX_PLACES // count)  # commodities at a time; a place is one of them at a node
    for first in range(0, commodities, size):
        block = flow.flow_mbps[first : first + size] if size < commodities else flow.flow_mbps
        here = (row >= first) & (row < min(first + size, commodities))
        reached = np.zeros((block.shape[0], count), dtype=bool)
        reached[row[here] - first, problem.source[demands[here]]] = True
        extend_reached(block, problem.tail, problem.head, reached)
        entries = block.tocoo()
        idle = np.flatnonzero(~reached[entries.row, problem.tail[entries.col]] & (entries.data > 0))
        idle = idle[entries.data[idle] > TOLERANCE * largest[first + entries.row[idle]]]
        if len(idle):
            worst = idle[np.argmax(entries.data[idle])]
            raise PlanRejected(
                f"flows: {entries.data[worst]:.6g} Mbit/s on {problem.link_labels[entries.col[worst]]} "
                "circle "
                "where no demand passes"
            )


def _require_routes(problem: Traffic, routes: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected where the traffic of a demand on a link is not that of its routes."""
    _require_same_flow(problem, sp.csr_array(flow_on_routes(problem, routes)), flow, "routes")
    if "tunnel" in routes:
        _require_tunnels(problem, routes)


def _require_tunnels(problem: Traffic, routes: pd.DataFrame) -> None:
    """Raise PlanRejected where a route is not the tunnel that it names."""
    tunnels = problem.parsed_tunnels
    row_of = {} if tunnels is None else {name: row for row, name in enumerate(tunnels.name)}
    by_segments = is_by_segments(routes).tolist()
    paths = list_routes(problem, routes)
    for row, (name, path) in enumerate(zip(routes["tunnel"].tolist(), paths, strict=True)):
        if not name:
            continue
        if tunnels is None or name not in row_of:
            raise PlanRejected(f"routes row {row + 1}: tunnel '{abbreviate(name)}' is none of the problem")
        tunnel = row_of[name]
        if tunnels.nodes[tunnel] != path or bool(tunnels.is_segments[tunnel]) != by_segments[row]:
            raise PlanRejected(f"routes row {row + 1}: its path is not that of tunnel '{abbreviate(name)}'")


def _require_weights(problem: Traffic, weights: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected where ECMP with these link weights does not make the flows."""
    link_rows = require_each_link(problem, weights, "weights")
    weight = np.zeros(len(link_rows))
    weight[link_rows] = weights["weight"].to_numpy(float)
    wrong = np.flatnonzero(~(weight > 0) | np.isinf(weight))
    if len(wrong):
        label = problem.link_labels[wrong[0]]
        raise PlanRejected(f"weights: {label} has weight {weight[wrong[0]]:g}, must be greater than 0")
    tuned = dataclasses.replace(problem, links=problem.links.assign(weight=weight))
    ratios = split_ratios.split_evenly(tuned, split_ratios.shortest_path_links(tuned))
    expected = split_ratios.apply_ratios(tuned, ratios, np.where(problem.unreachable, 0.0, flow.served_mbps))
    _require_same_flow(problem, sp.csr_array(expected), flow, "weights")


def _require_segments(problem: Traffic, segments: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected where these segment lists over shortest paths do not make the flows."""
    require_classes(problem, segments, "segments")
    expected = flow_on_segments(problem, segments, np.where(problem.unreachable, 0.0, flow.served_mbps))
    _require_same_flow(problem, expected, flow, "segments")


def _require_shares(problem: Traffic, shares: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected where these shares are no flows of demands, or do not make the flows."""
    _require_same_flow(problem, flow_of_shares(problem, shares, flow.served_mbps), flow, "shares")


def _require_moved(problem: Traffic, moved: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected for moved traffic of no demand, listed twice, or more than the demand sends."""
    require_classes(problem, moved, "moved")
    demand = problem.find_demands(moved)
    rate = moved["rate_mbps"].to_numpy(float)
    is_again = pd.Series(demand).duplicated().to_numpy()
    too_much = exceeds(rate, flow.served_mbps[demand], flow.terms_mbps[demand])
    for row in np.flatnonzero((demand < 0) | is_again | too_much | ~(rate >= 0)).tolist():
        name = f"{moved['source'].iloc[row]}->{moved['target'].iloc[row]}"
        if demand[row] < 0:
            fault = "is no demand of the problem"
        elif is_again[row]:
            fault = "is listed twice"
        else:
            fault = f"moves {rate[row]:.6g} Mbit/s, but {flow.served_mbps[demand[row]]:.6g} Mbit/s are sent"
        raise PlanRejected(f"moved row {row + 1}: {name} {fault}")


def _require_same_flow(problem: Traffic, expected: sp.csr_array, flow: VerifiedFlow, table: str) -> None:
    """Raise PlanRejected where a demand's flow on a link, (K, E), is not the one that a table says.

    So it does where the plan's flows are those to each target.
    """
    if not flow.by_demand:
        raise PlanRejected(f"{table}: need flows with the column 'source'")
    difference = abs(flow.flow_mbps - expected).tocoo()
    largest = np.maximum(*map(largest_in_row, (flow.flow_mbps, expected)))
    wrong = np.flatnonzero(difference.data > TOLERANCE * largest[difference.row])
    if len(wrong):
        first = wrong[np.argmax(difference.data[wrong])]
        k, link = int(difference.row[first]), int(difference.col[first])
        raise PlanRejected(
            f"{table}: {problem.demand_labels[k]} has {expected[k, link]:.6g} Mbit/s on "
            f"{problem.link_labels[link]}, its flows say {flow.flow_mbps[k, link]:.6g} Mbit/s"
        )


def _find_false_utilization(problem: Traffic, plan: Routing, link_rows: Ints, load: Floats) -> Violations:
    """Return the links with a utilization in the table `links` other than their load over capacity.

    link_rows  (rows,) the link of each row
    """
    claimed = np.zeros(len(load))
    claimed[link_rows] = plan.links["utilization"].to_numpy(float)
    true = load / problem.capacity_mbps
    wrong = differs(claimed, true, true.max(initial=0.0))
    return Violations.of(
        "utilization",
        where=[problem.link_labels[link] for link in np.flatnonzero(wrong)],
        amount=claimed[wrong],
        allowed=true[wrong],
        unit="",
    )
