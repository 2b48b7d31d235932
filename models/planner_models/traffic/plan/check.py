"""Check of a routing against the raw problem, independent of the design that made it."""

from __future__ import annotations

import dataclasses
import weakref
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tables import abbreviate
from planner.contract.tolerances import MARGIN, RELATIVE, ROUNDING, allowance, differs, exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.traffic.plan import split_ratios
from planner_models.traffic.plan.fixed_shares import flow_of_shares, measure_worst_utilization
from planner_models.traffic.plan.listed_routes import flow_on_routes, is_by_segments, list_routes
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.reachability import extend_reached
from planner_models.traffic.plan.references import require_classes, require_links
from planner_models.traffic.plan.route_check import check_routes
from planner_models.traffic.plan.segments import flow_on_segments
from planner_models.traffic.problem.indexing import (
    index_distinct,
    look_up,
    sum_at_nodes,
    sum_by_index,
)
from planner_models.traffic.problem.problem import Traffic

TOLERANCE: Final = MARGIN * RELATIVE  # of a link's capacity or a demand, as in `exceeds`
MAX_PLACES: Final = 20_000_000  # of commodities and nodes, followed at a time


_verified: weakref.WeakKeyDictionary[Routing, tuple[weakref.ref[Traffic], VerifiedFlow]]
_verified = weakref.WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True, eq=False)
class VerifiedFlow:
    """Loads and served rates of a routing whose tables are proven to be a flow.

    load_mbps    (E,) traffic on each link
    link_row     (rows,) link of each row of the plan's table `links`
    served_mbps  (K,) traffic of each demand that is sent, and arrives where no link drops any
    terms_mbps   (K,) sum of the absolute terms that it was computed from; 0 for flows of each demand alone
    flow_mbps    (C, E) flow of each commodity
    commodity    (C,) its demand; where flows are per target, class and target as in `Traffic.commodity`
    by_demand    whether commodities are demands
    """

    load_mbps: Floats
    link_row: Ints
    served_mbps: Floats
    terms_mbps: Floats
    flow_mbps: sp.csr_array
    commodity: Ints
    by_demand: bool

    def of_class(self, problem: Traffic, of_class: int) -> sp.coo_array:
        """Return the flow to each target of one class, (D, E) Mbit/s, where flows are per target."""
        nodes, targets = len(problem.nodes), len(problem.targets)
        here = np.flatnonzero(self.commodity // nodes == of_class)
        row = np.searchsorted(problem.targets, self.commodity[here] % nodes)
        pick = sp.csr_array((np.ones(len(here)), (row, here)), (targets, len(self.commodity)))
        return sp.csr_array(pick @ self.flow_mbps).tocoo()


def check(problem: Traffic, plan: Routing) -> Violations:
    """Return violations: links above their capacity, demands neither sent nor shed, false utilizations,
    traffic beyond latency limits or against rules, and demands that failures hit harder than guaranteed.

    raises  PlanRejected where the plan is no flow: an unknown link or demand, traffic that is lost or
            appears from nowhere or circles where no demand passes, more traffic than a demand's rate; or
            where its tables contradict each other: link totals, routes, weights, segments, shed, moved,
            guarantees, shares
    """
    flow = verify_flow(problem, plan)
    _refuse_idle_cycles(problem, flow)
    if plan.routes is not None:
        _require_routes(problem, plan.routes, flow)
    if plan.weights is not None:
        _require_weights(problem, plan.weights, flow)
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
    known = flow.served_mbps + shed + lost
    excess = np.flatnonzero((shed > 0) & exceeds(known, problem.rate_mbps, flow.terms_mbps))
    if len(excess):
        k = int(excess[0])
        raise PlanRejected(
            f"shed: {problem.demand_labels[k]} is said to shed {shed[k]:.6g} Mbit/s, but "
            f"{flow.served_mbps[k]:.6g} of its {problem.rate_mbps[k]:.6g} Mbit/s are sent"
        )
    short = falls_short(known, problem.rate_mbps, flow.terms_mbps)
    demand = Violations.of(
        "demand",
        where=[problem.demand_labels[k] for k in np.flatnonzero(short)],
        amount=known[short],
        allowed=problem.rate_mbps[short],
        unit="Mbit/s",
    )
    false = _find_false_utilization(problem, plan, flow.link_row, flow.load_mbps)
    found = capacity + demand + false + check_routes(problem, plan, flow)
    if plan.failed is not None:
        rode = plan.failed["rate_mbps"].to_numpy(float)
        found += Violations.of(
            "failed_links",
            where=plan.failed["link"].tolist(),
            amount=rode,
            allowed=np.zeros(len(rode)),
            unit="Mbit/s",
        )
    if plan.guarantees is None:
        return found
    from planner_models.traffic.plan.guarantees import check_guarantees  # simulates failures of this flow

    return found + check_guarantees(problem, plan, flow)


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


def _largest_in_row(flow: sp.csr_array) -> Floats:
    """Return the largest entry of each row, shape (C,); 0 where there are no links."""
    if not flow.shape[1]:
        return np.zeros(flow.shape[0])
    return np.asarray(flow.max(axis=1).toarray().ravel())


def _refuse_idle_cycles(problem: Traffic, flow: VerifiedFlow) -> None:
    """Raise PlanRejected for traffic that circles where none of its commodity's demands pass."""
    count, commodities = len(problem.nodes), flow.flow_mbps.shape[0]
    wanted = np.flatnonzero(problem.rate_mbps > 0)
    name = problem.commodity[wanted]
    row = wanted if flow.by_demand else np.searchsorted(flow.commodity, name)
    if not flow.by_demand and commodities:
        row = np.where(flow.commodity[np.minimum(row, commodities - 1)] == name, row, commodities)
    largest = _largest_in_row(flow.flow_mbps)
    size = max(1, MAX_PLACES // count)  # commodities at a time; a place is one of them at a node
    for first in range(0, commodities, size):
        block = flow.flow_mbps[first : first + size] if size < commodities else flow.flow_mbps
        here = (row >= first) & (row < first + size)
        reached = np.zeros((block.shape[0], count), dtype=bool)
        reached[row[here] - first, problem.source[wanted[here]]] = True
        extend_reached(block, problem.tail, problem.head, reached)
        part = block.tocoo()
        idle = np.flatnonzero(~reached[part.row, problem.tail[part.col]] & (part.data > 0))
        idle = idle[part.data[idle] > TOLERANCE * largest[first + part.row[idle]]]
        if len(idle):
            worst = idle[np.argmax(part.data[idle])]
            raise PlanRejected(
                f"flows: {part.data[worst]:.6g} Mbit/s on {problem.link_labels[part.col[worst]]} circle "
                "where no demand passes"
            )


def _require_routes(problem: Traffic, routes: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected where the traffic of a demand on a link is not that of its routes."""
    if not flow.by_demand:
        raise PlanRejected("routes: need flows with the column 'source'")
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
        known = row_of[name]
        if tunnels.nodes[known] != path or bool(tunnels.is_segments[known]) != by_segments[row]:
            raise PlanRejected(f"routes row {row + 1}: its path is not that of tunnel '{abbreviate(name)}'")


def _require_weights(problem: Traffic, weights: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected where ECMP with these link weights does not make the flows."""
    place = _require_each_link(problem, weights, "weights")
    weight = np.zeros(len(place))
    weight[place] = weights["weight"].to_numpy(float)
    wrong = np.flatnonzero(~(weight > 0) | np.isinf(weight))
    if len(wrong):
        label = problem.link_labels[wrong[0]]
        raise PlanRejected(f"weights: {label} has weight {weight[wrong[0]]:g}, must be greater than 0")
    if not flow.by_demand:
        raise PlanRejected("weights: need flows with the column 'source'")
    tuned = dataclasses.replace(problem, links=problem.links.assign(weight=weight))
    ratios = split_ratios.split_evenly(tuned, split_ratios.shortest_path_links(tuned))
    expected = split_ratios.apply_ratios(tuned, ratios, np.where(problem.unreachable, 0.0, flow.served_mbps))
    _require_same_flow(problem, sp.csr_array(expected), flow, "weights")


def _require_segments(problem: Traffic, segments: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected where these segment lists over shortest paths do not make the flows."""
    if not flow.by_demand:
        raise PlanRejected("segments: need flows with the column 'source'")
    require_classes(problem, segments, "segments")
    expected = flow_on_segments(problem, segments, np.where(problem.unreachable, 0.0, flow.served_mbps))
    _require_same_flow(problem, expected, flow, "segments")


def _require_shares(problem: Traffic, shares: pd.DataFrame, flow: VerifiedFlow) -> None:
    """Raise PlanRejected where these shares are no flows of demands, or do not make the flows."""
    if not flow.by_demand:
        raise PlanRejected("shares: need flows with the column 'source'")
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
    """Raise PlanRejected where a demand's flow on a link, (K, E), is not the one that a table says."""
    difference = abs(flow.flow_mbps - expected).tocoo()
    largest = np.maximum(*map(_largest_in_row, (flow.flow_mbps, expected)))
    wrong = np.flatnonzero(difference.data > TOLERANCE * largest[difference.row])
    if len(wrong):
        first = wrong[np.argmax(difference.data[wrong])]
        k, link = int(difference.row[first]), int(difference.col[first])
        raise PlanRejected(
            f"{table}: {problem.demand_labels[k]} has {expected[k, link]:.6g} Mbit/s on "
            f"{problem.link_labels[link]}, its flows say {flow.flow_mbps[k, link]:.6g} Mbit/s"
        )


def _require_each_link(problem: Traffic, table: pd.DataFrame, name: str) -> Ints:
    """Return the link of each row, (E,); PlanRejected where a link is missing or there twice."""
    place = require_links(problem, table["tail"], table["head"], table["parallel"], name)
    count = np.bincount(place, minlength=len(problem.links))
    for wrong, fault in ((count == 0, "is missing"), (count > 1, "is there twice")):
        if wrong.any():
            raise PlanRejected(f"{name}: {problem.link_labels[int(np.argmax(wrong))]} {fault}")
    return place


def verify_flow(problem: Traffic, plan: Routing) -> VerifiedFlow:
    """Return loads and served rates of a plan that is a flow; PlanRejected where it is none.

    The last answer is kept as long as its plan is in use: check and metrics need the same.
    """
    verified = _verified.get(plan)
    if verified is not None and verified[0]() is problem:
        return verified[1]
    flow = _verify_flow(problem, plan)
    _verified.clear()
    _verified[plan] = weakref.ref(problem), flow
    return flow


def _verify_flow(problem: Traffic, plan: Routing) -> VerifiedFlow:
    flows = plan.flows
    rate = flows["rate_mbps"].to_numpy(float)
    if not np.isfinite(rate).all() or (rate < 0).any():
        row = int(np.flatnonzero(~np.isfinite(rate) | (rate < 0))[0])
        raise PlanRejected(f"flows row {row + 1}: rate_mbps is {rate[row]}, must be at least 0")
    link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    load = sum_by_index(link, rate, len(problem.links))
    link_row = _require_link_totals(problem, plan, load)

    commodity, names = _identify_commodities(problem, flows)
    flow = sp.coo_array((rate, (commodity, link)), shape=(len(names), len(problem.links))).tocsr()
    by_demand = "source" in flows
    if by_demand:
        served, terms = _served_by_demand(problem, flow), np.zeros(len(problem.demands))
    else:
        served, terms = _correct_rounding(problem, *_served_to_targets(problem, flow, names))
    return VerifiedFlow(
        load_mbps=load,
        link_row=link_row,
        served_mbps=served,
        terms_mbps=terms,
        flow_mbps=flow,
        commodity=names,
        by_demand=by_demand,
    )


def _require_link_totals(problem: Traffic, plan: Routing, load: Floats) -> Ints:
    """Return the link of each row of the table `links`; PlanRejected where its load is not that of flows."""
    links = plan.links
    place = _require_each_link(problem, links, "links")
    claimed = np.zeros(len(load))
    claimed[place] = links["load_mbps"].to_numpy(float)
    wrong = np.flatnonzero(differs(claimed, load, load.max(initial=0.0)))
    if len(wrong):
        first = int(wrong[0])
        raise PlanRejected(
            f"links: {problem.link_labels[first]} has load_mbps {claimed[first]:.6g}, "
            f"its flows add up to {load[first]:.6g} Mbit/s"
        )
    return place


def _find_false_utilization(problem: Traffic, plan: Routing, place: Ints, load: Floats) -> Violations:
    """Return the links whose utilization in the table `links` is not their load over capacity.

    place  (rows,) the link of each row
    """
    claimed = np.zeros(len(load))
    claimed[place] = plan.links["utilization"].to_numpy(float)
    true = load / problem.capacity_mbps
    wrong = differs(claimed, true, true.max(initial=0.0))
    return Violations.of(
        "utilization",
        where=[problem.link_labels[link] for link in np.flatnonzero(wrong)],
        amount=claimed[wrong],
        allowed=true[wrong],
        unit="",
    )


def _identify_commodities(problem: Traffic, flows: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return the commodity of each row, and the demand or (flows per target) class and target of each."""
    target = _require_nodes(problem, flows["target"], "target")
    require_classes(problem, flows, "flows")
    of_class = problem.find_classes(flows)
    if "source" not in flows:
        nodes = len(problem.nodes)
        if of_class is None:
            names, commodity = index_distinct(target, nodes)
        else:
            names, commodity = index_distinct(of_class * nodes + target, nodes * len(problem.class_table))
        return commodity, names
    demand = problem.demands_between(_require_nodes(problem, flows["source"], "source"), target, of_class)
    unknown = np.flatnonzero(demand < 0)
    if len(unknown):
        row = int(unknown[0])
        name = f"{flows['source'].iloc[row]}->{flows['target'].iloc[row]}"
        raise PlanRejected(f"flows row {row + 1}: {name} is no demand of the problem")
    return demand, np.arange(len(problem.demands))


def _require_nodes(problem: Traffic, names: pd.Series, column: str) -> Ints:
    places = problem.find_nodes(names)
    if (places < 0).any():
        row = int(np.flatnonzero(places < 0)[0])
        raise PlanRejected(f"flows row {row + 1}: {column} '{names.iloc[row]}' is no node of the network")
    return places


def _served_by_demand(problem: Traffic, flow: sp.csr_array) -> Floats:
    """Return the traffic of each demand that arrives, (K,), Mbit/s, from the flow of each, (K, E).

    PlanRejected where a node loses traffic, makes traffic up, or sends more than the demand's rate. Flows are
    as precise as a demand's largest flow on a link.
    """
    surplus = (flow @ problem.incidence.T).tocoo()  # (K, N): what each node injects
    demand, node, amount = surplus.row, surplus.col.astype(np.int64), surplus.data
    at_source = node == problem.source[demand]  # only the demand's own source may inject traffic
    at_target = node == problem.target[demand]  # follows from the other nodes, since surpluses sum to 0
    allowed = np.where(at_source, problem.rate_mbps[demand], 0.0)
    tolerance = TOLERANCE * _largest_in_row(flow)[demand]
    wrong = ~at_target & ((amount < -tolerance) | (amount > allowed + tolerance))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[np.argmax(np.abs(amount[wrong]))])
        what = problem.demand_labels[demand[first]]
        rate = float(allowed[first]) if at_source[first] else None
        raise _refuse_balance(problem, what, int(node[first]), float(amount[first]), rate)
    served = np.zeros(len(problem.demands))
    served[demand[at_source]] = np.clip(amount[at_source], 0.0, None)
    return served


def _served_to_targets(problem: Traffic, flow: sp.csr_array, names: Ints) -> tuple[Floats, Floats]:
    """Return the traffic of each demand that arrives, and what passes its source to its target, (K,) Mbit/s.

    PlanRejected as for flows of each demand. Flows to a target, (C, E), are as precise as what passes the
    node, or as the smallest demand to that target.
    """
    nodes, demands = len(problem.nodes), len(problem.demands)
    row = look_up(problem.commodity, names, np.arange(len(names)))
    smallest = _smallest_demands(problem, row, len(names))
    served, passes = np.zeros(demands), np.zeros(demands)
    for first, surplus, passing in sum_at_nodes(flow, problem.tail, problem.head, nodes):
        count = len(surplus)
        known = np.flatnonzero((row >= first) & (row < first + count))
        place = (row[known] - first) * nodes + problem.source[known]
        here = np.arange(count)
        target = names[first : first + count] % nodes
        served[known], passes[known] = surplus.ravel()[place], passing.ravel()[place]
        surplus[here, target] = 0.0  # follows from the other nodes, since surpluses sum to 0
        tolerance = TOLERANCE * (passing + smallest[first : first + count, None])
        upper = tolerance.copy()
        # other nodes' traffic must not hide that a node sends more than its small demand
        rate = problem.rate_mbps[known]
        upper.ravel()[place] = rate + allowance(rate, passes[known])
        wrong = (surplus < -tolerance) | (surplus > upper)
        if wrong.any():
            worst, node = np.unravel_index(int(np.argmax(np.where(wrong, np.abs(surplus), 0.0))), wrong.shape)
            what = f"to {problem.nodes['node'].iloc[target[worst]]}"
            if problem.has_classes:
                what += f" ({problem.class_table['class'].iloc[names[first + worst] // nodes]})"
            k = known[place == worst * nodes + node]
            allowed = float(problem.rate_mbps[k[0]]) if len(k) else None
            raise _refuse_balance(problem, what, int(node), float(surplus[worst, node]), allowed)
    return np.clip(served, 0.0, None), passes


def _refuse_balance(
    problem: Traffic, what: str, node: int, amount: float, allowed: float | None
) -> PlanRejected:
    """Return the error that a node injects an amount, Mbit/s.

    what     flows, in words
    allowed  rate of the demand that begins there, Mbit/s; None where none does
    """
    where = problem.nodes["node"].iloc[node]
    if allowed is not None and amount > 0:
        fault = f"{amount:.6g} Mbit/s are sent, the demand is {allowed:.6g} Mbit/s"
    else:
        fault = f"{abs(amount):.6g} Mbit/s {'are lost' if amount < 0 else 'appear from nowhere'}"
    return PlanRejected(f"flows {what}: at {where} {fault}")


def _smallest_demands(problem: Traffic, row: Ints, count: int) -> Floats:
    """Return the smallest positive rate of each commodity, (count,); 0 for none.

    row  (K,) commodity of each demand, -1 for none
    """
    wanted = np.flatnonzero((problem.rate_mbps > 0) & (row >= 0))
    smallest = np.full(count, np.inf)
    np.minimum.at(smallest, row[wanted], problem.rate_mbps[wanted])
    return np.where(np.isfinite(smallest), smallest, 0.0)


def _correct_rounding(problem: Traffic, served: Floats, passing: Floats) -> tuple[Floats, Floats]:
    """Return served rates, (K,), moved within rounding errors to the share of their commodity; and terms.

    passing  (K,) traffic to the target that enters and leaves the source of each demand, Mbit/s
    terms    (K,) sum of the absolute terms that a served rate and what a plan lists as shed are computed from

    A node's surplus is the difference of the traffic that leaves and enters it; where much traffic
    passes through, the surplus of a demand millions of times smaller is lost to rounding.
    """
    of = problem.commodity
    count = len(problem.nodes) * max(len(problem.class_table), 1)
    wanted_in_all = sum_by_index(of, problem.rate_mbps, count)
    served_in_all = sum_by_index(of, served, count)
    share = np.divide(served_in_all, wanted_in_all, out=np.zeros(count), where=wanted_in_all > 0)
    error = ROUNDING * passing
    # beside this error, that of what the plan sheds: it was computed from the same terms, and rounded up
    return np.clip(share[of] * problem.rate_mbps, served - error, served + error), 3 * passing
