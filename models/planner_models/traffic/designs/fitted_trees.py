"""First plans of large networks: traffic on shortest-path trees, reduced to what the links carry.

All traffic to a target follows one tree. Each link passes a share of the traffic that would arrive, and a
demand is sent at the smallest share of the links on its path, so that links before the bottleneck carry no
traffic that it drops. Shares begin at capacity over load; as traffic before and behind a bottleneck leaves
residual capacity, they rise for some rounds, and what exceeds a capacity then is cut off.

That takes a pass over the tree of each target a round, where a search for better routes passes over the links
of the path of each demand.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import njit
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner_models.traffic.designs.link_flow_program import METRIC_OF, Objective
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.indexing import index_distinct, sum_by_index
from planner_models.traffic.problem.problem import Traffic

ROUNDS: Final = 2  # in which shares rise; more deliver hardly more
MIN_SHARE: Final = 1e-9  # that a link passes of what would arrive
BACKEND: Final = "shortest-path trees"


class Trees(NamedTuple):
    """The nodes that traffic to each target passes, with the links by which it leaves them.

    Where demands have classes, each class has trees of its own.

    commodity  (C,) class and target of each tree, as in `problem.commodity`, ascending
    first      (C + 1,) places of tree c are first[c] : first[c + 1], each before the one that it leads to
    link       (P,) link by which traffic leaves each place
    after      (P,) place that the link leads to, -1 for the target
    amount     (P,) Mbit/s that begins there
    """

    commodity: Ints
    first: Ints
    link: Ints
    after: Ints
    amount: Floats


def find_trees(problem: Traffic) -> Trees:
    """Return the trees of shortest paths by `weight`; among equal paths by the first link in the table."""
    has_rate, nodes = problem.rate_mbps > 0, len(problem.nodes)
    commodity, row = index_distinct(problem.commodity[has_rate], nodes * max(len(problem.class_table), 1))
    distance = problem.distance
    if problem.has_classes:
        distance = distance[np.searchsorted(problem.targets, commodity % nodes)]
    leaving = np.argsort(problem.tail, kind="stable")
    first = np.searchsorted(problem.tail[leaving], np.arange(len(problem.nodes) + 1)).astype(np.int64)
    place = row * nodes + problem.source[has_rate]
    amount = sum_by_index(place, problem.rate_mbps[has_rate], distance.size).reshape(distance.shape)
    return Trees(commodity, *_find_trees(distance, problem.weight, problem.head, leaving, first, amount))


def fit_trees(problem: Traffic) -> tuple[Routing, float]:
    """Return the plan of traffic on shortest-path trees within the capacities, and what it delivers, Mbit/s.

    Its flows are per target.
    """
    trees, capacity = find_trees(problem), problem.capacity_mbps
    passed = whole = np.ones(len(capacity))
    load, flow = _send(problem, trees, passed, whole)
    if (load > capacity).any():
        passed = np.minimum(1.0, capacity / np.maximum(load, capacity))
        for _ in range(ROUNDS):
            load, _ = _send(problem, trees, passed, whole)
            # links that have residual capacity pass more; overloaded ones less
            passed = np.clip(passed * capacity / np.maximum(load, MIN_SHARE * capacity), MIN_SHARE, 1.0)
        load, _ = _send(problem, trees, passed, whole)
        load, flow = _send(problem, trees, passed, np.minimum(1.0, capacity / np.maximum(load, capacity)))
    return _list_flows(problem, trees, flow), float(flow[trees.after < 0].sum())


def route(problem: Traffic, objective: Objective) -> Decision[Routing]:
    """Return the decision for an objective other than cost, of shortest-path trees, with a bound.

    The bound on the utilization is that of the Lagrangian relaxation of the capacities with the weights of
    links as lengths: traffic times distance, over capacity times weight. Delivered traffic is at most all.
    """
    guarantees = {"capacity", "demand"}
    if objective in ("delivered", "total"):
        plan, value = fit_trees(problem)
        bound = max(float(problem.rate_mbps.sum()), value)
    else:
        trees, whole = find_trees(problem), np.ones(len(problem.links))
        load, flow = _send(problem, trees, whole, whole)
        busiest = float((load / problem.capacity_mbps).max())
        least = float(problem.weight @ load) / float(problem.weight @ problem.capacity_mbps)
        value, bound = (busiest, least) if objective == "utilization" else (1 / busiest, 1 / least)
        share = min(1.0, value) if objective == "concurrent" else 1.0
        plan = _list_flows(problem, trees, share * flow)
        if objective == "utilization" or share < 1:
            guarantees = {"demand"} if objective == "utilization" else {"capacity"}
    proof = Proof(
        status=Status.FEASIBLE, objective=value, bound=bound, metric=METRIC_OF[objective], backend=BACKEND
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset(guarantees))


def _send(problem: Traffic, trees: Trees, passed: Floats, cut: Floats) -> tuple[Floats, Floats]:
    """Return the load of each link, (E,), and the traffic that leaves each place, (P,), Mbit/s.

    A demand is sent at the smallest share passed on its path times the smallest cut there.

    passed, cut  (E,) shares of traffic on each link
    """
    load, flow = np.zeros(len(problem.links)), np.zeros(len(trees.link))
    _send_over_trees(trees, passed, cut, load, flow)
    return load, flow


def _list_flows(problem: Traffic, trees: Trees, flow: Floats) -> Routing:
    """Return the plan of the traffic that leaves each place, (P,) Mbit/s."""
    shape = (len(trees.commodity), len(problem.links))
    by_tree = sp.csr_array((flow, trees.link, trees.first), shape=shape)
    return routing.routing_by_target(problem, by_tree, trees.commodity)


# --- compiled -----------------------------------------------------------------------------


@njit(cache=True)
def _find_trees(distance, weight, head, leaving, first_leaving, amount):  # type: ignore[no-untyped-def]  # noqa: C901 - one compiled loop
    """Return the places of all targets: where each begins, and link, next place and amount of each."""
    nodes = distance.shape[1]
    first = np.zeros(len(distance) + 1, dtype=np.int64)
    link, after = np.empty(distance.size, dtype=np.int64), np.empty(distance.size, dtype=np.int64)
    begins = np.empty(distance.size)
    way, children = np.full(nodes, -1), np.zeros(nodes, dtype=np.int64)
    used, place = np.empty(nodes, dtype=np.int64), np.full(nodes, -1)
    total = 0
    for row in range(len(distance)):
        to_target, size = distance[row], 0
        for source in range(nodes):
            if amount[row, source] <= 0.0:
                continue
            v = source
            while way[v] < 0 and to_target[v] > 0.0:  # on to a node that is known, or the target
                nearest = np.inf
                for i in range(first_leaving[v], first_leaving[v + 1]):
                    e = leaving[i]
                    if to_target[head[e]] + weight[e] < nearest:
                        nearest = to_target[head[e]] + weight[e]
                        way[v] = e
                used[size] = v
                size += 1
                v = head[way[v]]
                children[v] += 1
        begin, done = total, total
        for i in range(size):
            if children[used[i]] == 0:
                link[total] = used[i]
                total += 1
        while done < total:  # `link` holds the node of each place, until its links are written
            v = head[way[link[done]]]
            done += 1
            children[v] -= 1
            if children[v] == 0 and way[v] >= 0:
                link[total] = v
                total += 1
        for p in range(begin, total):
            place[link[p]] = p
        for p in range(begin, total):
            v = link[p]
            begins[p], after[p] = amount[row, v], place[head[way[v]]]
        for p in range(begin, total):
            link[p] = way[link[p]]
        for i in range(size):
            way[used[i]], place[used[i]] = -1, -1
        first[row + 1] = total
    return first, link[:total].copy(), after[:total].copy(), begins[:total].copy()


@njit(cache=True)
def _send_over_trees(trees, passed, cut, load, flow):  # type: ignore[no-untyped-def]
    """Write the traffic that leaves each place, at the share that its path passes; add it to the loads."""
    count = len(trees.link)
    share, fit = np.empty(count), np.empty(count)
    for p in range(count - 1, -1, -1):
        e, q = trees.link[p], trees.after[p]
        share[p], fit[p] = passed[e], cut[e]
        if q >= 0:
            share[p], fit[p] = min(share[q], share[p]), min(fit[q], fit[p])
    for p in range(count):
        flow[p] += trees.amount[p] * share[p] * fit[p]
        load[trees.link[p]] += flow[p]
        if trees.after[p] >= 0:
            flow[trees.after[p]] += flow[p]
