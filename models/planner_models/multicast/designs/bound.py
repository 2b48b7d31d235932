"""Lower bounds on host traffic: a linear relaxation, and the tables of edge switches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner_models.multicast.designs.partitioned import BOUND_SCOPE, METRIC, selection_model
from planner_models.multicast.plan.meta_groups import extra_mbps_bound
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.table_limits import build_limits
from planner_models.multicast.problem.problem import Multicast


def bound_host_traffic(problem: Multicast, *, options: Options = Options()) -> Decision[Channels]:
    """Return no plan, but a bound that no plan with partitions in turn beats, whatever edge switches share.

    The better of two bounds: the linear relaxation of the groups that core and aggregation tables hold,
    and the least extra traffic that tables of edge switches cause.
    """
    solution = backends.solve(relaxation_model(problem), options)
    least = edge_table_bound_mbps(problem)
    best = least if solution.bound is None else max(least, solution.bound)
    proof = Proof(
        status=Status.UNDECIDED,
        bound=best,
        metric=METRIC,
        bound_scope=f"{BOUND_SCOPE}, entries shared by edge switches" if best > least else None,
        backend=solution.backend,
    )
    return Decision(plan=None, proof=proof)


def relaxation_model(problem: Multicast) -> LinearProgram:
    """Return the linear program: groups may be stored in part, and edge switches hold all."""
    limits = build_limits(problem, problem.aggregation_copies, layers=("core", "aggregation"))
    return replace(selection_model(problem, limits), integer=None)


def edge_table_bound_mbps(problem: Multicast) -> float:
    """Return a bound on host traffic: at each edge switch all port sets beyond its table cost extra.

    A group is then either carried to one port too many, or by unicast, which adds its rate for all
    members but one; that is divided evenly over its edge switches.
    """
    edge, group, masks = problem.at_edge
    rate, members = problem.rate_mbps, problem.member_counts
    reached = problem.edges_in_pod.sum(axis=1)
    weight = rate * np.minimum(1.0, (members - 1) / reached)
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    extra = sum(
        extra_mbps_bound(masks[a:b], weight[group[a:b]], size)
        for size, (a, b) in zip(problem.free("edge").tolist(), pairwise(start), strict=True)
        if b - a > size
    )
    return float(rate @ (1 + members)) + extra
