"""Decisions from next hops of routers that know their own group of nodes well, and others by summaries."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.search.judged import feasible, undecided
from planner_models.flows import split_ratios
from planner_models.flows.split_ratios import WEIGHT_TOLERANCE
from planner_models.graphs.distances import find_distances
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.tables import lightest_links


def read_groups(problem: Traffic) -> tuple[Ints, list[str]]:
    """Return the row of each node's group, (N,), and the names of groups; without the column all have one."""
    if "group" not in problem.nodes:
        return np.zeros(len(problem.nodes), dtype=np.int64), [""]
    row, names = pd.factorize(problem.nodes["group"].astype(object).fillna("").astype(str), sort=True)
    return np.asarray(row, dtype=np.int64), [str(name) for name in names]


def distances_over(problem: Traffic, links: Bools, targets: Ints) -> Floats:
    """Return the weight of the shortest path to each target, (D, N), over some of the links, (E,)."""
    tail, head, weight = problem.tail[links], problem.head[links], problem.weight[links]
    if not len(targets) or not len(tail):
        distance = np.full((len(targets), len(problem.nodes)), np.inf)
        distance[np.arange(len(targets)), targets] = 0.0
        return distance
    return find_distances(lightest_links(len(problem.nodes), tail, head, weight), targets)


def links_on_way(problem: Traffic, links: Bools, distance: Floats) -> Bools:
    """Return the mask of the links, (E,), on a path of least cost by the distances of nodes, (N,)."""
    away, near = distance[problem.tail], distance[problem.head]
    with np.errstate(invalid="ignore"):  # inf - inf where neither end has a way
        excess = near + problem.weight - away
    return np.asarray(
        links & np.isfinite(near) & np.isfinite(away) & (excess <= WEIGHT_TOLERANCE * np.abs(away))
    )


def decide_by_next_hops(problem: Traffic, uses: Bools, *, must_serve: bool) -> Decision[Routing]:
    """Return the plan of traffic that splits evenly over the next hops of each node, as ECMP does.

    Traffic that routers would drop, where they have no next hop, is not sent and listed as shed.

    uses        (D, E) whether traffic to a target leaves a node by a link
    must_serve  whether a plan that leaves out traffic is none
    """
    links = sp.coo_array(uses.astype(float))
    arrives = arriving_share(problem, links)
    demands = np.flatnonzero(problem.rate_mbps > 0)
    served = np.zeros(len(problem.rate_mbps))
    served[demands] = (
        problem.rate_mbps[demands] * (arrives[problem.target_row[demands], problem.source[demands]])
    )
    lost = float(problem.rate_mbps.sum() - served.sum())
    if must_serve and lost > split_ratios.NOISE * float(problem.rate_mbps.sum()):
        return Decision(plan=None, proof=undecided(f"its routers drop {lost:.6g} Mbit/s for want of a route"))
    weight = arrives[links.row, problem.head[links.col]]
    kept = weight > 0
    flow = sp.coo_array((weight[kept], (links.row[kept], links.col[kept])), shape=links.shape)
    ratios = split_ratios.compute_ratios(problem, flow)
    plan = routing.routing_by_demand(problem, split_ratios.apply_ratios(problem, ratios, served))
    return Decision(plan=plan, proof=feasible(), guarantees=frozenset({"demand"}))


def arriving_share(problem: Traffic, links: sp.coo_array) -> Floats:
    """Return the share of traffic from each node that arrives at each target, (D, N).

    links  (D, E) next hops, over which nodes split evenly; traffic that circles does not arrive
    """
    targets, count = len(problem.targets), len(problem.nodes)
    leaves = links.row * count + problem.tail[links.col]
    enters = links.row * count + problem.head[links.col]
    ends = np.arange(targets) * count + problem.targets
    share = 1.0 / np.maximum(np.bincount(leaves, minlength=targets * count), 1)[leaves]
    arrives = np.zeros(targets * count)
    arrives[ends] = 1.0
    for _ in range(count):
        further = sum_by_index(leaves, share * arrives[enters], targets * count)
        further[ends] = 1.0
        if (further == arrives).all():
            break
        arrives = further
    return arrives.reshape(targets, count)
