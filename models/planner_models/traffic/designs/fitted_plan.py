"""Primal heuristic for delivered traffic: plans within capacities, from any plan that overloads links.

What arrives of a plan under the fluid rule, where overloaded links drop their excess, is itself a plan within
the capacities: each flow is reduced to its part that arrives. What is not sent then fills residual capacity,
target by target, over shortest paths.

First plans of large networks are equal-cost multipath, reduced to the capacities of the links.

Each link passes a share of the traffic that would arrive, and a demand is sent at the smallest share of the
links that it takes, so that links before a bottleneck carry no traffic that it drops. Shares begin at
capacity over load; as traffic before and behind a bottleneck leaves residual capacity, they rise for some
rounds, and what exceeds a capacity then is cut off.

A round passes once over the next hops to each target, where a search for better routes passes over the links
of the path of each demand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Floats, Ints
from planner.compiled import njit
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.search.deadline import Deadline
from planner.search.tolerances import NEGLIGIBLE, ROUNDING
from planner_models.flows import next_hops, split_ratios
from planner_models.flows.link_flow_program import METRIC_OF, Objective
from planner_models.flows.next_hops import NextHops
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.delivery import delivered_rates, surviving_flow
from planner_models.traffic.plan.plan import Routing, routing_by_target
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic

FILL_S: Final = 0.5  # most seconds for filling residual capacity
MIN_RESIDUAL: Final = NEGLIGIBLE  # of a capacity; less is rounding
MAX_FLOWS: Final = 2_000_000  # rows of a plan up to which it is reduced and filled
ROUNDS: Final = 2  # in which shares rise; more deliver hardly more
MIN_SHARE: Final = NEGLIGIBLE  # that a link passes of what would arrive
BACKEND: Final = "equal-cost multipath"


def fit_plan(problem: Traffic, plan: Routing | None) -> Routing | None:
    """Return a plan within the capacities: the better of `plan` and equal-cost multipath, reduced and filled.

    None where both are too large for that.
    """
    best: sp.csr_array | None = None
    best_delivered = -1.0
    for candidate in (plan, _route_by_ecmp(problem)):
        if candidate is None or len(candidate.flows) > MAX_FLOWS:
            continue
        flow = verify_flow(problem, candidate)
        delivered = float(delivered_rates(problem, flow).sum())
        if delivered > best_delivered:
            row = np.searchsorted(problem.targets, problem.target if flow.by_demand else flow.commodity)
            surviving = surviving_flow(problem, flow).tocoo()
            shape = (len(problem.targets), len(problem.links))
            best = sp.csr_array((surviving.data, (row[surviving.row], surviving.col)), shape=shape)
            best_delivered = delivered
    if best is None:
        return None
    fitted = routing.routing_by_target(problem, _fill_capacity(problem, best, Deadline.after(FILL_S)))
    sent = verify_flow(
        problem, fitted
    ).served_mbps  # what of small demands is sent, beside much other traffic
    return replace(fitted, shed=routing.list_shed(problem, sent))


def _route_by_ecmp(problem: Traffic) -> Routing | None:
    """Return the plan of equal-cost multipath; None where it may have too many flows."""
    if len(problem.targets) * len(problem.links) > MAX_FLOWS:
        return None
    ratios = split_ratios.split_evenly(problem, split_ratios.shortest_path_links(problem))
    return routing.routing_by_target(
        problem, split_ratios.apply_ratios_by_target(problem, ratios, problem.rate_mbps)
    )


def _fill_capacity(problem: Traffic, flow_mbps: sp.csr_array, deadline: Deadline) -> sp.csr_array:
    """Return the flow per target, (D, E), with demand that was not sent on residual capacity."""
    flow = flow_mbps.tocsr()
    surplus = (flow @ problem.incidence.T).tocsr()
    demands = np.flatnonzero(problem.rate_mbps > 0)
    row = problem.target_row[demands]
    sent = np.asarray(surplus[row, problem.source[demands]]).ravel()
    missing = sp.csr_array(
        (np.maximum(problem.rate_mbps[demands] - sent, 0.0), (row, problem.source[demands])),
        shape=(len(problem.targets), len(problem.nodes)),
    )
    residual = problem.capacity_mbps - np.asarray(flow.sum(axis=0)).ravel()
    in_all = np.asarray(missing.sum(axis=1)).ravel()
    rows: list[Ints] = []
    links: list[Ints] = []
    amounts: list[Floats] = []
    for d in np.argsort(-in_all, kind="stable").tolist():
        if in_all[d] <= 0 or deadline.is_over:
            break
        link, amount = _fill_tree(problem, int(problem.targets[d]), missing[[d]].toarray().ravel(), residual)
        residual[link] -= amount
        rows.append(np.full(len(link), d))
        links.append(link)
        amounts.append(amount)
    if not rows:
        return flow
    entries = (np.concatenate(rows), np.concatenate(links))
    return sp.csr_array(flow + sp.csr_array((np.concatenate(amounts), entries), shape=flow.shape))


def _fill_tree(problem: Traffic, target: int, demand_mbps: Floats, residual: Floats) -> tuple[Ints, Floats]:
    """Return links of the tree of shortest paths over residual capacity, and their additional load.

    A node sends the smallest share of what it wants that the links of its path have left for all.
    """
    count = len(problem.nodes)
    usable = np.flatnonzero(residual > MIN_RESIDUAL * problem.capacity_mbps)
    order = usable[np.lexsort((problem.weight[usable], problem.head[usable], problem.tail[usable]))]
    key = problem.tail[order] * count + problem.head[order]
    first = np.r_[True, key[1:] != key[:-1]][: len(key)]
    key, link = key[first], order[first]
    graph = sp.csr_array(
        (problem.weight[link], (problem.head[link], problem.tail[link])), shape=(count, count)
    )
    distance, after = dijkstra(graph, indices=target, return_predecessors=True)
    nodes = np.argsort(distance, kind="stable")
    nodes = nodes[np.isfinite(distance[nodes]) & (nodes != target)]
    if not len(nodes):
        return link[:0], residual[:0]
    following = after[nodes]
    way = link[np.searchsorted(key, nodes * count + following)]
    load = demand_mbps.copy()
    for node, later in zip(nodes[::-1].tolist(), following[::-1].tolist(), strict=True):
        load[later] += load[node]
    share = np.ones(count)
    fits = np.minimum(1.0, residual[way] / np.maximum(load[nodes], 1e-300))
    for index, (node, later) in enumerate(zip(nodes.tolist(), following.tolist(), strict=True)):
        share[node] = min(share[later], fits[index])
    carried = demand_mbps * share
    for node, later in zip(nodes[::-1].tolist(), following[::-1].tolist(), strict=True):
        carried[later] += carried[node]
    used = carried[nodes] > 0
    return way[used], carried[nodes][used]


def fit_ecmp(problem: Traffic) -> tuple[Routing, float]:
    """Return the plan of equal-cost multipath within the capacities, and its delivery, Mbit/s.

    Its flows are per target. The problem must have a demand with a rate, and paths for all of them.
    """
    hops, rate, capacity = next_hops.find_next_hops(problem), problem.rate_mbps, problem.capacity_mbps
    load, sent = next_hops.sum_loads(hops, rate), rate
    if (load > capacity * (1 + ROUNDING)).any():
        passed = np.minimum(1.0, capacity / np.maximum(load, capacity))
        for _ in range(ROUNDS):
            load = next_hops.sum_loads(hops, rate * _smallest_on_way(hops, passed))
            # links that have residual capacity pass more; overloaded ones less
            passed = np.clip(passed * capacity / np.maximum(load, MIN_SHARE * capacity), MIN_SHARE, 1.0)
        sent = rate * _smallest_on_way(hops, passed)
        load = next_hops.sum_loads(hops, sent)
        sent = sent * _smallest_on_way(hops, np.minimum(1.0, capacity / np.maximum(load, capacity)))
    return _list_flows(problem, hops, sent), float(sent.sum())


def route(problem: Traffic, objective: Objective) -> Decision[Routing]:
    """Return the decision for an objective other than cost, of equal-cost multipath, with a bound.

    No routing sends more from a node, or to one, than the capacity of its links. The bound on the utilization
    is also that of the Lagrangian relaxation of the capacities with the weights of links as lengths: traffic
    times distance, over capacity times weight.
    """
    guarantees = {"capacity", "demand"}
    if objective in ("delivered", "total"):
        plan, value = fit_ecmp(problem)
        bound = max(
            min(float(np.minimum(rate, capacity).sum()) for rate, capacity in _sum_at_ends(problem)), value
        )
    else:
        hops = next_hops.find_next_hops(problem)
        load = next_hops.sum_loads(hops, problem.rate_mbps)
        busiest = float((load / problem.capacity_mbps).max())
        lower = float(problem.weight @ load) / float(problem.weight @ problem.capacity_mbps)
        for rate, capacity in _sum_at_ends(problem):
            lower = max(lower, float((rate[rate > 0] / capacity[rate > 0]).max()))
        lower = min(lower, busiest)
        value, bound = (busiest, lower) if objective == "utilization" else (1 / busiest, 1 / lower)
        share = min(1.0, value) if objective == "concurrent" else 1.0
        plan = _list_flows(problem, hops, share * problem.rate_mbps)
        if objective == "utilization" or share < 1:
            guarantees = {"demand"} if objective == "utilization" else {"capacity"}
    proof = Proof(
        status=Status.OPTIMAL if abs(bound - value) <= ROUNDING * bound else Status.FEASIBLE,
        objective=value,
        bound=bound,
        metric=METRIC_OF[objective],
        backend=BACKEND,
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset(guarantees))


def _sum_at_ends(problem: Traffic) -> list[tuple[Floats, Floats]]:
    """Return rates and capacities that leave each node, (N,) Mbit/s, and those that enter it."""
    ends = ((problem.source, problem.tail), (problem.target, problem.head))
    count = len(problem.nodes)
    return [
        (sum_by_index(start_node, problem.rate_mbps, count), sum_by_index(end, problem.capacity_mbps, count))
        for start_node, end in ends
    ]


def route_in_time(
    problem: Traffic, objective: Objective, limit_s: float, needed_s: float
) -> Decision[Routing]:
    """Return the decision of `route` for a search that has no plan within its time limit.

    needed_s  CPU seconds until the search has a plan
    """
    decision = route(problem, objective)
    if decision.proof.status is Status.OPTIMAL and objective != "delivered":
        return decision  # for "delivered", the search would also minimize the utilization
    reason = (
        f"the search for better routes of {len(problem.demands):,} demands has a plan after about "
        f"{needed_s:.0f} s, the time limit is {limit_s:g} s: all traffic takes shortest paths"
    )
    return replace(decision, proof=replace(decision.proof, reasons=(reason,)))


def _list_flows(problem: Traffic, hops: NextHops, sent_mbps: Floats) -> Routing:
    """Return the plan of demands that are sent at these rates, (K,) Mbit/s."""
    if not problem.has_classes:
        return routing_by_target(problem, next_hops.flow_by_target(hops, sent_mbps, is_split=True))
    flows, commodities = [], []
    for of_class in range(len(problem.class_table)):
        sent = np.where(problem.class_of == of_class, sent_mbps, 0.0)
        flows.append(next_hops.flow_by_target(hops, sent, is_split=True))
        commodities.append(of_class * len(problem.nodes) + hops.targets)
    return routing_by_target(problem, sp.vstack(flows, format="csr"), np.concatenate(commodities))


def _smallest_on_way(hops: NextHops, share: Floats) -> Floats:
    """Return the smallest share, (E,), of the links that each demand takes, (K,); 1 without a rate."""
    smallest = np.ones(len(hops.source))
    _find_smallest(hops, share, smallest)
    return smallest


@njit(cache=True)
def _find_smallest(hops, share, smallest):  # type: ignore[no-untyped-def]
    node, link, first_link = hops.node, hops.link, hops.first_link
    on_way = np.ones(hops.nodes)
    for d in range(len(hops.targets)):
        on_way[hops.targets[d]] = 1.0
        for i in range(hops.first_node[d + 1] - 1, hops.first_node[d] - 1, -1):
            narrowest = 1.0
            for e in link[first_link[i] : first_link[i + 1]]:
                narrowest = min(narrowest, share[e], on_way[hops.head[e]])
            on_way[node[i]] = narrowest
        for k in hops.demand[hops.first_demand[d] : hops.first_demand[d + 1]]:
            smallest[k] = on_way[hops.source[k]]
