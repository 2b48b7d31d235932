"""Primal heuristic for delivered traffic: plans within capacities, from any plan that overloads links.

What arrives of a plan under the fluid rule, where overloaded links drop their excess, is itself a plan within
the capacities: each flow is reduced to its part that arrives. What is not sent then fills residual capacity,
target by target, over shortest paths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Floats, Ints
from planner.search.deadline import Deadline
from planner.search.tolerances import NEGLIGIBLE
from planner_models.flows import split_ratios
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.delivery import delivered_rates, surviving_flow
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic

FILL_S: Final = 0.5  # most seconds for filling residual capacity
MIN_RESIDUAL: Final = NEGLIGIBLE  # of a capacity; less is rounding
MAX_FLOWS: Final = 2_000_000  # rows of a plan up to which it is reduced and filled


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
