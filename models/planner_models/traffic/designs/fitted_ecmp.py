"""First plans of large networks: equal-cost multipath, reduced to the capacities of the links.

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

from planner.arrays import Floats
from planner.compiled import njit
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.search.tolerances import NEGLIGIBLE, ROUNDING
from planner_models.flows import next_hops
from planner_models.flows.link_flow_program import METRIC_OF, Objective
from planner_models.flows.next_hops import NextHops
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan.plan import Routing, routing_by_target
from planner_models.traffic.problem.problem import Traffic

ROUNDS: Final = 2  # in which shares rise; more deliver hardly more
MIN_SHARE: Final = NEGLIGIBLE  # that a link passes of what would arrive
BACKEND: Final = "equal-cost multipath"


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


# --- compiled -----------------------------------------------------------------------------


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
