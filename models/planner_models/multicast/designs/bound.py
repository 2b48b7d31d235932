"""The design that makes no plan: lower bounds on host traffic."""

from __future__ import annotations

from dataclasses import replace

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import undecided
from planner_models.multicast.designs.partitioned import (
    BOUND_SCOPE,
    METRIC,
    selection_model,
    widen_bound,
)
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.table_limits import build_limits
from planner_models.multicast.problem.problem import Multicast


def bound_host_traffic(problem: Multicast, *, options: Options = Options()) -> Decision[Channels]:
    """Return no plan, but a bound that no plan with partitions in turn beats, whatever edge switches share.

    The better of two bounds: the linear relaxation of the groups that core and aggregation tables hold, and
    the least that full tables add in any plan.
    """
    deadline = Deadline.of(options)
    solution = backends.solve(relaxation_model(problem), options)
    proof = undecided(bound=solution.bound, metric=METRIC, backend=solution.backend)
    scope = f"{BOUND_SCOPE}, entries shared by edge switches"
    return Decision(plan=None, proof=widen_bound(problem, proof, scope, deadline=deadline))


def relaxation_model(problem: Multicast) -> LinearProgram:
    """Return the linear program: groups may be stored in part, and edge switches hold all."""
    limits = build_limits(problem, problem.aggregation_copies, layers=("core", "aggregation"))
    about = "host traffic, where groups may be stored in part and edge switches hold all: a lower bound"
    return replace(selection_model(problem, limits), integer=None).describe(about)
