r"""Primal-dual hybrid gradient method for fixed shares under the hose model, on its dual form over links.

With the share x of each demand k, from s to t, on each link e, and dual variables p and q of the
transportation problem of each link (`fixed_shares`):

    min U  s.t.  x_k is a unit flow from s to t,   x_ke <= p_se + q_te,
                 sum_v (egress_v p_ve + ingress_v q_ve) <= c_e U,   x, p, q >= 0

The program has as many rows as demands times links, too many for a simplex method or an interior point.
This method takes a step in all of them in one pass. The steps are those of a diagonal preconditioner;
iterates are reflected and pulled to the start of their epoch (Halpern), and a new epoch starts when the step
has become much shorter. From any point follow shares that are
whole, whose worst load is found by transportation problems, and lengths of links for each demand. A length is
the part of a matrix within the limits of nodes, so that the shortest paths are a bound (`fixed_shares`).

source  Chambolle and Pock 2011; Pock and Chambolle 2011 (preconditioner); Applegate et al. 2021 (restarts);
        Lu and Yang 2024 (Halpern)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python
from planner.contract.progress import report
from planner.search.deadline import Deadline
from planner.search.tolerances import NEGLIGIBLE, SOLVED_SHARE
from planner_models.flows.flow_decomposition import decompose_flow
from planner_models.flows.path_flow_program import find_paths
from planner_models.graphs.shortest_path_trees import Graph
from planner_models.traffic.designs.oblivious.demand_sets import (
    HoseLimits,
    Shares,
    better_shares,
    shortest_paths,
)
from planner_models.traffic.problem.problem import Traffic

SUFFICIENT_DECREASE: Final = 0.2  # of the step's length: an epoch ends
NECESSARY_DECREASE: Final = 0.8  # an epoch ends where the length grows again
LONGEST_EPOCH: Final = 0.36  # of all iterations
SMOOTHING_FACTOR: Final = 0.5  # of the primal weight, by which steps of both sides are balanced
FIRST_CHECK: Final = 100  # iterations
MORE_BETWEEN_CHECKS: Final = 0.4  # of the iterations so far
MAX_ITERATIONS: Final = 1_000_000
SMALLEST_SHARE: Final = SOLVED_SHARE  # of a demand on a link; less is none
SMALLEST_PRICE: Final = NEGLIGIBLE  # of the largest; less is none
SMALLEST_PATH: Final = 1e-5  # of a demand on a path


class _Network(NamedTuple):
    """Links and demands as arrays: N nodes, E links, K demands."""

    tail: Ints
    head: Ints
    source: Ints
    target: Ints
    egress: Floats  # (N,) over the mean capacity
    ingress: Floats
    capacity: Floats  # (E,) over the mean capacity
    p_step: Floats  # (N, E) steps of the preconditioner
    q_step: Floats
    mu_step: Floats  # (E,)
    pi_step: Floats  # (N,)


class Point(NamedTuple):
    """A primal and a dual point.

    x (K, E), p and q (N, E), u (1,); lam (K, E) of shares, mu (E,) of links, pi (K, N) of flows
    """

    x: Floats
    p: Floats
    q: Floats
    u: Floats
    lam: Floats
    mu: Floats
    pi: Floats

    def copy(self) -> Point:
        """Return the point in arrays of its own."""
        return Point(*(array.copy() for array in self))


class PrimalDual:
    """The method for demands `wanted`, (K,) rows of the problem's demands.

    point  the present one
    """

    def __init__(self, problem: Traffic, hose: HoseLimits, demand_rows: Ints, share: Floats) -> None:
        """Start from shares, (K, E)."""
        unit = float(problem.capacity_mbps.mean())
        nodes, links, demands = len(problem.nodes), len(problem.links), len(demand_rows)
        tail, head = problem.tail.astype(np.int64), problem.head.astype(np.int64)
        source, target = (
            problem.source[demand_rows].astype(np.int64),
            problem.target[demand_rows].astype(np.int64),
        )
        egress, ingress = hose.egress_mbps / unit, hose.ingress_mbps / unit
        capacity = problem.capacity_mbps / unit
        degree = np.bincount(tail, minlength=nodes) + np.bincount(head, minlength=nodes)
        starts = np.bincount(source, minlength=nodes).astype(float)
        ends = np.bincount(target, minlength=nodes).astype(float)
        self._u_step = 1.0 / capacity.sum()
        self._network = _Network(
            tail=tail,
            head=head,
            source=source,
            target=target,
            egress=egress,
            ingress=ingress,
            capacity=capacity,
            p_step=np.ascontiguousarray(
                np.broadcast_to(1.0 / np.maximum(starts + egress, 1e-9)[:, None], (nodes, links))
            ),
            q_step=np.ascontiguousarray(
                np.broadcast_to(1.0 / np.maximum(ends + ingress, 1e-9)[:, None], (nodes, links))
            ),
            mu_step=1.0 / (egress.sum() + ingress.sum() + capacity),
            pi_step=1.0 / np.maximum(degree, 1),
        )
        self.point = Point(
            x=share,
            p=np.zeros((nodes, links)),
            q=np.zeros((nodes, links)),
            u=np.zeros(1),
            lam=np.zeros((demands, links)),
            mu=np.zeros(links),
            pi=np.zeros((demands, nodes)),
        )
        self._start = self.point.copy()
        self._sums = np.zeros((2, nodes, links))
        self._weight = 1.0
        self._epoch = self._done = 0
        self._first = self._last = np.inf

    def run(self, iterations: int, deadline: Deadline) -> bool:
        """Take iterations; return False where the time is up."""
        for _ in range(iterations):
            if deadline.is_over:
                return False
            primal, dual = _iterate(
                self._network, self._u_step, self._weight, self._epoch, self.point, self._start, self._sums
            )
            self._done += 1
            self._epoch += 1
            length = float(np.sqrt(self._weight * primal + dual / self._weight))
            if self._epoch == 1:
                self._first = self._last = length
            is_shorter = length <= SUFFICIENT_DECREASE * self._first
            is_turning = length <= NECESSARY_DECREASE * self._first and length > self._last
            if self._epoch > 1 and (is_shorter or is_turning or self._epoch >= LONGEST_EPOCH * self._done):
                self._restart()
            self._last = length
        return True

    def _restart(self) -> None:
        """Start an epoch from the present point, with the weight that balances the progress of both sides."""
        primal, dual = _distance(self._network, self._u_step, self.point, self._start)
        if primal > 0 and dual > 0:
            balance = 0.5 * np.log(dual / primal)
            self._weight = float(
                np.exp(SMOOTHING_FACTOR * balance + (1 - SMOOTHING_FACTOR) * np.log(self._weight))
            )
        self._start = self.point.copy()
        self._epoch = 0


X_STEP: Final = 1.0 / 3.0  # a share is in its row and in the balances of two nodes
LAM_STEP: Final = 1.0 / 3.0  # a row has a share and two variables of nodes


@run_small_in_python(max_elements=5_000)
@njit(cache=True)
def _iterate(net, u_step, weight, epoch, point, start, sums):  # type: ignore[no-untyped-def]
    """Take one step; return the squared lengths of its primal and its dual part.

    sums  (2, N, E) of lam over the demands from, and to, each node; kept up to date
    """
    x, p, q, u, lam, mu, pi = point
    demands, links = x.shape
    nodes = p.shape[0]
    primal = dual = 0.0
    keep, pull = (epoch + 1.0) / (epoch + 2.0), 1.0 / (epoch + 2.0)
    ahead = np.empty((2, nodes, links))  # 2 T(p) - p
    load = np.zeros(links)
    total = 0.0
    for e in range(links):
        total += mu[e] * net.capacity[e]
    new = max(u[0] - u_step / weight * (1.0 - total), 0.0)
    moved = new - u[0]
    primal += moved * moved / u_step
    u_ahead = new + moved
    u[0] = keep * (u[0] + 2.0 * moved) + pull * start.u[0]
    for v in range(nodes):
        for e in range(links):
            new = p[v, e] - net.p_step[v, e] / weight * (net.egress[v] * mu[e] - sums[0, v, e])
            new = min(max(new, 0.0), 1.0)
            moved = new - p[v, e]
            primal += moved * moved / net.p_step[v, e]
            ahead[0, v, e] = new + moved
            load[e] += net.egress[v] * (new + moved)
            p[v, e] = keep * (p[v, e] + 2.0 * moved) + pull * start.p[v, e]
            new = q[v, e] - net.q_step[v, e] / weight * (net.ingress[v] * mu[e] - sums[1, v, e])
            new = min(max(new, 0.0), 1.0)
            moved = new - q[v, e]
            primal += moved * moved / net.q_step[v, e]
            ahead[1, v, e] = new + moved
            load[e] += net.ingress[v] * (new + moved)
            q[v, e] = keep * (q[v, e] + 2.0 * moved) + pull * start.q[v, e]
    sums[:] = 0.0
    balance = np.empty(nodes)
    for k in range(demands):
        s, t = net.source[k], net.target[k]
        balance[:] = 0.0
        for e in range(links):
            a, b = net.tail[e], net.head[e]
            new = x[k, e] - X_STEP / weight * (lam[k, e] - pi[k, a] + pi[k, b])
            new = min(max(new, 0.0), 1.0)
            moved = new - x[k, e]
            primal += moved * moved / X_STEP
            forward = new + moved
            x[k, e] = keep * (x[k, e] + 2.0 * moved) + pull * start.x[k, e]
            balance[a] += forward
            balance[b] -= forward
            new = max(lam[k, e] + LAM_STEP * weight * (forward - ahead[0, s, e] - ahead[1, t, e]), 0.0)
            moved = new - lam[k, e]
            dual += moved * moved / LAM_STEP
            later = keep * (lam[k, e] + 2.0 * moved) + pull * start.lam[k, e]
            lam[k, e] = later
            sums[0, s, e] += later
            sums[1, t, e] += later
        for v in range(nodes):
            supply = 1.0 if v == s else (-1.0 if v == t else 0.0)
            moved = net.pi_step[v] * weight * (supply - balance[v])
            dual += moved * moved / net.pi_step[v]
            pi[k, v] = keep * (pi[k, v] + 2.0 * moved) + pull * start.pi[k, v]
    for e in range(links):
        new = max(mu[e] + net.mu_step[e] * weight * (load[e] - net.capacity[e] * u_ahead), 0.0)
        moved = new - mu[e]
        dual += moved * moved / net.mu_step[e]
        mu[e] = keep * (mu[e] + 2.0 * moved) + pull * start.mu[e]
    return primal, dual


def _distance(net: _Network, u_step: float, here: Point, there: Point) -> tuple[float, float]:
    """Return the squared distances of the primal and the dual parts of two points."""
    primal = (
        float(((here.x - there.x) ** 2).sum()) / X_STEP
        + float(((here.p - there.p) ** 2 / net.p_step).sum())
        + float(((here.q - there.q) ** 2 / net.q_step).sum())
        + float(((here.u - there.u) ** 2).sum()) / u_step
    )
    dual = (
        float(((here.lam - there.lam) ** 2).sum()) / LAM_STEP
        + float(((here.mu - there.mu) ** 2 / net.mu_step).sum())
        + float(((here.pi - there.pi) ** 2 / net.pi_step).sum())
    )
    return primal, dual


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
    demand, rate, start, link = decompose_flow(problem, flow, rows, np.full(len(rows), SMALLEST_PATH))
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
