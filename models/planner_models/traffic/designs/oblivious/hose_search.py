"""Search for the best fixed shares under the hose model, over all routes: shares and a bound at any time.

The primal-dual method (`primal_dual`) makes points; from each one follow shares that are whole, whose worst
load is found by transportation problems, and lengths of links for each demand. A length is the part of a
matrix within the limits of nodes, so that the shortest paths are a bound (`fixed_shares`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.contract.progress import report
from planner.search.deadline import Deadline
from planner.search.tolerances import NEGLIGIBLE, SOLVED_SHARE
from planner_models.flows.path_flow_program import find_paths
from planner_models.graphs.shortest_path_trees import Graph
from planner_models.traffic.designs.oblivious.demand_sets import HoseLimits
from planner_models.traffic.designs.oblivious.primal_dual import Point, PrimalDual
from planner_models.traffic.designs.oblivious.shares import Shares, better_shares, shortest_paths
from planner_models.traffic.plan.failure_outcomes import list_paths
from planner_models.traffic.problem.problem import Traffic

FIRST_CHECK: Final = 100  # iterations
MORE_BETWEEN_CHECKS: Final = 0.4  # of the iterations so far
MAX_ITERATIONS: Final = 1_000_000
SMALLEST_SHARE: Final = SOLVED_SHARE  # of a demand on a link; less is none
SMALLEST_PRICE: Final = NEGLIGIBLE  # of the largest; less is none
SMALLEST_PATH: Final = 1e-5  # of a demand on a path


def search(
    problem: Traffic, hose: HoseLimits, wanted: Bools, *, gap: float, deadline: Deadline
) -> Shares | None:
    """Search to a relative gap, or until a deadline; None where that comes first.

    problem  with the largest rate of each demand
    wanted   (K,) demands to route, which have a path
    """
    rows = np.flatnonzero(wanted)
    graph = Graph.of(len(problem.nodes), problem.tail, problem.head)
    first = _shortest_shares(problem, wanted)
    method = PrimalDual(problem, hose, rows, first[rows].toarray())
    best: Shares | None = None
    bound, iterations = 0.0, 0
    share = first
    while True:
        load, matrices, names = hose.find_worst(share)
        best = better_shares(best, share, load / problem.capacity_mbps, matrices, names)
        report("worst_utilization", best.utilization, bound)
        is_late = deadline.is_over
        if is_late or best.utilization - bound <= gap * best.utilization or iterations >= MAX_ITERATIONS:
            return replace(best, bound=min(bound, best.utilization))
        more = max(FIRST_CHECK, int(MORE_BETWEEN_CHECKS * iterations))
        method.run(more, deadline)
        iterations += more
        length = _lengths(problem, hose, rows, method.point)
        if length is not None:
            ends = problem.source.astype(np.int32), problem.target.astype(np.int32)
            shortest, _, _ = shortest_paths(graph, length, rows, *ends)
            bound = max(bound, float(shortest.sum()))
        share = _whole_shares(problem, rows, method.point.x, first)


def _shortest_shares(problem: Traffic, is_demand: Bools) -> sp.csr_array:
    """Return the shares of shortest paths, (K, E)."""
    paths = find_paths(problem.with_rates(np.where(is_demand, problem.rate_mbps, 0.0)), count=1)
    entries = (paths.demand, np.arange(len(paths.demand)))
    of_demand = sp.csr_array((np.ones(len(paths.demand)), entries), shape=(len(is_demand), len(paths.demand)))
    return sp.csr_array(of_demand @ paths.uses)


def _whole_shares(problem: Traffic, rows: Ints, share: Floats, first: sp.csr_array) -> sp.csr_array:
    """Return shares (K, E) of the paths in nearly whole ones, scaled up to 1; else those of `first`.

    rows   (n,) demands of the rows of `share`, (n, E)
    """
    flow = sp.csr_array(np.where(share > SMALLEST_SHARE, share, 0.0))
    demand, rate, start, link = list_paths(
        flow.indptr.astype(np.int64),
        flow.indices.astype(np.int64),
        flow.data.copy(),
        problem.tail,
        problem.head,
        problem.source[rows],
        problem.target[rows],
        np.full(len(rows), SMALLEST_PATH),
        len(problem.nodes),
    )
    total = np.bincount(demand, weights=rate, minlength=len(rows))
    shape = (len(problem.demands), len(demand))
    by_path = sp.csr_array((rate / total[demand], (rows[demand], np.arange(len(demand)))), shape=shape)
    uses = sp.csr_array((np.ones(len(link)), link, start), shape=(len(demand), len(problem.links)))
    is_missing = np.zeros(len(problem.demands))
    is_missing[rows[total <= 0]] = 1.0
    return sp.csr_array(by_path @ uses + sp.diags_array(is_missing) @ first)


def _lengths(problem: Traffic, hose: HoseLimits, rows: Ints, point: Point) -> Floats | None:
    """Return lengths of links for each demand, (K, E), with prices times capacities that add up to 1.

    None where no link has a price.
    """
    price = np.maximum(point.mu, 0.0)  # reflected points may leave their range
    price[price <= SMALLEST_PRICE * price.max()] = 0.0
    total = float(price @ problem.capacity_mbps)
    if total <= 0:
        return None
    unit = float(problem.capacity_mbps.mean())
    length = np.zeros((len(problem.demands), len(problem.links)))
    for e in np.flatnonzero(price).tolist():
        matrix = np.zeros(len(problem.demands))
        matrix[rows] = np.maximum(point.lam[:, e], 0.0) * unit / price[e]
        length[:, e] = hose.fill(matrix) * price[e] / total
    return length
