r"""Fixed shares of each demand over its paths with the least worst utilization over a set of matrices.

    min U  s.t.  sum_p x_kp = 1 for each demand k,
                 sum_k d_k sum_{p uses e} x_kp <= c_e U  for each link e and each matrix d of the set

Rows are added where a matrix of the set overloads a link (cutting planes), or stand for all matrices of the
hose model at once (its dual form); over all routes, the hose model has a method of its own (`hose_search`).
Paths are added where they are shorter than those so far under the dual
prices y (column generation). Any prices y >= 0 of pairs (e, d) with sum y c_e = 1 prove that no shares have a
worst utilization below the sum over demands of their shortest path, where link e is sum_d y_ed d_k long for
demand k.

source  worst case over all traffic: Applegate and Cohen 2003; over the hose model: Ben-Ameur and Kerivin 2005
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.program_builder import ProgramBuilder, Variables
from planner.contract.progress import report
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import INTERIOR_POINT, SOLVER
from planner_models.flows.path_flow_program import CandidatePaths, find_paths
from planner_models.graphs.shortest_path_trees import Graph
from planner_models.traffic.designs.oblivious import hose_search
from planner_models.traffic.designs.oblivious.demand_sets import (
    DemandSet,
    HoseLimits,
    Shares,
    better_shares,
    shortest_paths,
)
from planner_models.traffic.problem.problem import Traffic

DEFAULT_GAP: Final = INTERIOR_POINT  # relative, where options give none
FIRST_PATHS: Final = 3  # shortest paths of each demand that the search starts from
MAX_ROUNDS: Final = 2_000
CUT_TOLERANCE: Final = SOLVER  # relative; links overloaded by less get no row
PRICE_TOLERANCE: Final = SOLVER  # relative; new paths must be shorter by that much


def search(
    problem: Traffic, demands: DemandSet, wanted: Bools, found: CandidatePaths | None, options: Options
) -> Shares | None:
    """Search for the best shares; None where the time limit comes before any.

    problem  with the largest rate of each demand
    wanted   (K,) demands to route, which have a path
    found    the paths that they may take; None for all
    """
    deadline = Deadline.of(options)
    gap = DEFAULT_GAP if options.gap is None else options.gap
    if isinstance(demands, HoseLimits) and found is None:
        return hose_search.search(problem, demands, wanted, gap=gap, deadline=deadline)
    paths = _Paths(problem, wanted, found)
    master = _HoseMaster(problem, demands) if isinstance(demands, HoseLimits) else _MatrixMaster(problem)
    best: Shares | None = None
    bound, added = 0.0, 1
    share = paths.share(paths.first_of_each())
    for _ in range(MAX_ROUNDS):
        load, matrices, names = demands.find_worst(share)
        utilization = load / problem.capacity_mbps
        best = better_shares(best, share, utilization, matrices, names)
        report("worst_utilization", best.utilization, bound)
        is_late = deadline.is_over
        if is_late or best.utilization - bound <= gap * best.utilization:
            break
        if not master.add(utilization, matrices) and not added:
            break
        solved = master.solve(paths, deadline.options(replace(options, gap=None), minimum_s=1e-2))
        if solved is None:
            break
        weight, length = solved
        share = paths.share(weight)
        added = 0
        if length is not None:  # some demand loads a link
            shortest, added = paths.price(length)
            bound = max(bound, shortest)
    if best is None:
        return None
    return replace(best, bound=min(bound, best.utilization))


class _MatrixMaster:
    """The program over the paths so far, with a row for each pair of a link and a matrix that overloads it.

    link (R,), matrix (R, K) of each pair
    """

    def __init__(self, problem: Traffic) -> None:
        self.capacity_mbps = problem.capacity_mbps
        self.link: Ints = np.zeros(0, dtype=np.int64)
        self.matrix: Floats = np.zeros((0, len(problem.demands)))
        self.value = 0.0

    def add(self, utilization: Floats, matrices: Floats) -> bool:
        """Add the worst matrices (E, K) of links loaded more than known; return whether any is new."""
        over = np.flatnonzero(utilization > self.value * (1 + CUT_TOLERANCE))
        existing = {(e, row.tobytes()) for e, row in zip(self.link.tolist(), self.matrix, strict=True)}
        new = [e for e in over.tolist() if (e, matrices[e].tobytes()) not in existing]
        self.link = np.r_[self.link, np.array(new, dtype=np.int64)]
        self.matrix = np.vstack([self.matrix, matrices[new]])
        return bool(new)

    def solve(self, paths: _Paths, options: Options) -> tuple[Floats, Floats | None] | None:
        """Return weights of the paths (P,) and lengths (K, E) by the dual prices; None without a solution."""
        on_link = sp.csc_array(paths.uses)[:, self.link].T.tocoo()
        load = on_link.data * self.matrix[on_link.row, paths.demand[on_link.col]]
        size, count = len(self.link), paths.count
        m, x = _start(paths)
        utilization = m.variables("utilization", cost=1.0)
        _serve_whole(m, paths, x)
        worst = (x[on_link.col] * load).sum_by(on_link.row, size)
        m.constrain("worst", worst - utilization * self.capacity_mbps[self.link], upper=0.0)
        solution = backends.solve(m.build(), options)
        if solution.x is None or solution.row_duals is None:
            return None
        self.value = float(solution.x[-1])
        price = np.maximum(-solution.row_duals[len(paths.wanted) :], 0.0)
        scale = float(price @ self.capacity_mbps[self.link])
        if scale <= 0:
            return solution.x[:count], None
        entries = (self.link, np.arange(size))
        by_link = sp.csr_array((price / scale, entries), shape=(len(self.capacity_mbps), size))
        return solution.x[:count], np.ascontiguousarray((by_link @ self.matrix).T)


class _HoseMaster:
    """The program over the paths so far for all matrices of the hose model at once, by its dual form:

        sum_v (egress_v p_ev + ingress_v q_ev) <= c_e U,  p_es + q_et >= share of s -> t on e,  p, q >= 0

    The left side is the dual of the transportation problem of link e, so that it bounds its worst load.
    """

    def __init__(self, problem: Traffic, hose: HoseLimits) -> None:
        self.problem, self.hose = problem, hose

    def add(self, utilization: Floats, matrices: Floats) -> bool:  # noqa: ARG002
        """Return that there is nothing to add: all matrices are in the program."""
        return False

    def solve(self, paths: _Paths, options: Options) -> tuple[Floats, Floats | None] | None:
        """Return weights of the paths (P,) and lengths (K, E) by the dual prices; None without a solution.

        The interior point is the faster one here, from tens of links on.
        """
        options = backends.prefer_interior_point(options)
        problem, hose, count = self.problem, self.hose, paths.count
        links, nodes = len(problem.links), len(problem.nodes)
        uses = paths.uses.tocoo()
        key, row = np.unique(paths.demand[uses.row] * links + uses.col, return_inverse=True)
        demand, link = np.divmod(key, links)
        size = len(key)
        m, x = _start(paths)
        p = m.variables("egress", (links, nodes))
        q = m.variables("ingress", (links, nodes))
        utilization = m.variables("utilization", cost=1.0)
        _serve_whole(m, paths, x)
        share = (x[uses.row] * uses.data).sum_by(row, size)
        prices = p[link, problem.source[demand]] + q[link, problem.target[demand]]
        m.constrain("cover", share - prices, upper=0.0)
        load = (p * hose.egress_mbps + q * hose.ingress_mbps).sum(axis=1)
        m.constrain("limit", load - utilization * problem.capacity_mbps, upper=0.0)
        solution = backends.solve(m.build(), options)
        if solution.x is None or solution.row_duals is None:
            return None
        price = np.maximum(-solution.row_duals[len(paths.wanted) :], 0.0)
        flow, price = price[:size], price[size:]
        scale = float(price @ problem.capacity_mbps)
        if scale <= 0:
            return solution.x[:count], None
        length = np.zeros((len(problem.demands), links))
        length[demand, link] = flow / scale
        # of a matrix within the limits: what the paths so far do not use of them counts for other paths
        for e in np.flatnonzero(price > 0).tolist():
            weight = price[e] / scale
            length[:, e] = weight * hose.fill(length[:, e] / weight)
        length[:, price <= 0] = 0.0
        return solution.x[:count], length


def _start(paths: _Paths) -> tuple[ProgramBuilder, Variables]:
    """Return a program with a weight for each path."""
    m = ProgramBuilder(name="traffic fixed shares")
    return m, m.variables("weight", paths.count)


def _serve_whole(m: ProgramBuilder, paths: _Paths, weight: Variables) -> None:
    """Add that paths serve each demand whole."""
    row = np.searchsorted(paths.wanted, paths.demand)
    m.constrain("whole", weight.sum_by(row, len(paths.wanted)), equal=1.0)


class _Paths:
    """The paths so far, a column each: demand (P,), and the links that each uses."""

    def __init__(self, problem: Traffic, is_demand: Bools, paths: CandidatePaths | None) -> None:
        self.problem, self.is_fixed = problem, paths is not None
        first = find_paths(problem, count=FIRST_PATHS) if paths is None else paths
        path_rows = np.flatnonzero(is_demand[first.demand])
        self.demand = first.demand[path_rows]
        self.uses = sp.csr_array(first.uses[path_rows])
        self.wanted = np.flatnonzero(is_demand)
        self.graph = Graph.of(len(problem.nodes), problem.tail, problem.head)

    @property
    def count(self) -> int:
        return len(self.demand)

    def first_of_each(self) -> Floats:
        """Return the share 1 for the first path of each demand, (P,)."""
        weight = np.zeros(self.count)
        weight[np.unique(self.demand, return_index=True)[1]] = 1.0
        return weight

    def share(self, weight: Floats) -> sp.csr_array:
        """Return the share of each demand on each link, (K, E), of weights of the paths (P,)."""
        weight = np.clip(weight, 0.0, None)
        total = np.bincount(self.demand, weights=weight, minlength=len(self.problem.demands))
        weight = np.divide(
            weight, total[self.demand], out=np.zeros(len(weight)), where=total[self.demand] > 0
        )
        entries = (self.demand, np.arange(len(weight)))
        by_path = sp.csr_array((weight, entries), shape=(len(total), len(weight)))
        return sp.csr_array(by_path @ self.uses)

    def price(self, length: Floats) -> tuple[float, int]:
        """Add shorter paths under lengths (K, E); return the sum of shortest lengths, and their number."""
        cost = np.asarray((self.uses.multiply(length[self.demand])).sum(axis=1)).ravel()
        cheapest = np.full(len(self.problem.demands), np.inf)
        np.minimum.at(cheapest, self.demand, cost)
        if self.is_fixed:
            return float(cheapest[self.wanted].sum()), 0
        problem = self.problem
        shortest, start, link = shortest_paths(
            self.graph,
            length,
            self.wanted,
            problem.source.astype(np.int32),
            problem.target.astype(np.int32),
        )
        value = float(shortest.sum())
        threshold = PRICE_TOLERANCE * value / max(len(shortest), 1)
        new = np.flatnonzero(shortest < cheapest[self.wanted] - threshold)
        if len(new):
            hops = np.diff(start)[new]
            links = np.concatenate([link[start[i] : start[i + 1]] for i in new.tolist()])
            uses = sp.csr_array(
                (np.ones(len(links)), links, np.r_[0, np.cumsum(hops)]), shape=(len(new), len(problem.links))
            )
            self.uses = sp.csr_array(sp.vstack([self.uses, uses]))
            self.demand = np.r_[self.demand, self.wanted[new]]
        return value, len(new)
