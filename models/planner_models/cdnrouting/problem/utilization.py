"""The smallest utilization of the busiest link that clusters and routes together allow."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Ints
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.proof import Status
from planner.errors import InputError, SolverFailure
from planner_models.cdnrouting.problem.problem import Delivery


def smallest_utilization(problem: Delivery) -> float:
    """Return the least load over capacity of the busiest link that serves all traffic.

    A linear program over the flow to each target on each link, (T * E), the traffic of each group from each
    cluster that may serve it, (P,), and the utilization.

    raises  InputError where clusters or paths are too few for all traffic
    """
    network, unit = problem.network, max(float(problem.group_mbps.max(initial=0.0)), 1e-300)
    nodes, links, targets = len(problem.nodes), len(network.tail), len(network.targets)
    group, cluster = np.nonzero(problem.allowed)
    pairs, flows = len(group), targets * links
    link, pair = np.arange(links), np.arange(pairs)
    out = sp.coo_array((np.ones(links), (network.tail, link)), shape=(nodes, links))
    into = sp.coo_array((np.ones(links), (network.head, link)), shape=(nodes, links))
    balance = sp.csr_array(sp.kron(sp.eye_array(targets), out - into))
    is_free = np.ones((targets, nodes), dtype=bool)
    is_free[np.arange(targets), network.targets] = False  # traffic leaves the network at its target
    rows = np.flatnonzero(is_free)
    fixed = problem.background.ravel()[rows] / unit
    of_group = sp.coo_array((np.ones(pairs), (group, pair)), shape=(len(problem.groups), pairs))
    of_cluster = sp.coo_array((np.ones(pairs), (cluster, pair)), shape=(len(problem.clusters), pairs))
    requested = problem.group_mbps / unit
    no_pair = sp.csr_array((links, pairs))
    capacity = sp.csr_array(-network.capacity[:, None] / unit)

    def widen(
        left: sp.csr_array | None, right: sp.csr_array, last: sp.csr_array | None = None
    ) -> sp.csr_array:
        height = right.shape[0]
        left = sp.csr_array((height, flows)) if left is None else left
        last = sp.csr_array((height, 1)) if last is None else last
        return sp.csr_array(sp.hstack([left, right, last]))

    program = LinearProgram.build(
        cost=np.append(np.zeros(flows + pairs), 1.0),
        rows=[
            Rows(
                "node",
                widen(balance[rows], -_supply(problem, group, cluster)[rows]),
                lower=fixed,
                upper=fixed,
            ),
            Rows(
                "link",
                widen(sp.csr_array(sp.hstack([sp.eye_array(links)] * targets)), no_pair, capacity),
                upper=0.0,
            ),
            Rows("group", widen(None, sp.csr_array(of_group)), lower=requested, upper=requested),
            Rows("cluster", widen(None, sp.csr_array(of_cluster)), upper=problem.capacity_mbps / unit),
        ],
        name="smallest utilization",
    )
    solution = backends.solve(program)
    if solution.status is Status.INFEASIBLE:
        raise InputError("utilization: clusters or paths are too few for all traffic")
    if solution.status is not Status.OPTIMAL or solution.objective is None:
        raise SolverFailure(f"smallest utilization: {solution.status}")
    return float(solution.objective)


def _supply(problem: Delivery, group: Ints, cluster: Ints) -> sp.csr_array:
    """Return the traffic to each target that starts at each node for a unit of each pair, (T * N, P)."""
    nodes, targets = len(problem.nodes), len(problem.network.targets)
    ends, starts = problem.target_share, problem.source_share
    row, column, share = [], [], []
    for pair, (g, s) in enumerate(zip(group.tolist(), cluster.tolist(), strict=True)):
        end = slice(ends.indptr[g], ends.indptr[g + 1])
        start = slice(starts.indptr[s], starts.indptr[s + 1])
        amount = np.multiply.outer(ends.data[end], starts.data[start])
        row.append(np.add.outer(ends.indices[end] * nodes, starts.indices[start]).ravel())
        column.append(np.full(amount.size, pair))
        share.append(amount.ravel())
    if not row:
        return sp.csr_array((targets * nodes, 0))
    entries = np.concatenate(share), (np.concatenate(row), np.concatenate(column))
    return sp.csr_array(sp.coo_array(entries, shape=(targets * nodes, len(group))))
