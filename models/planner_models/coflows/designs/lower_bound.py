"""A bound on all schedules over circuit switches and the packet switch together."""

from __future__ import annotations

from planner.contract.design import Decision
from planner.search.judged import undecided
from planner_models.coflows.designs.decision import METRIC
from planner_models.coflows.plan.lower_bounds import mean_completion_bound_ms
from planner_models.coflows.plan.plan import Service
from planner_models.coflows.problem.problem import CoflowsInTime


def bound_schedules(problem: CoflowsInTime) -> Decision[Service]:
    """Return a lower bound on the mean completion time of every schedule, and no plan.

    Each port works as one machine on the coflows that use it, and no coflow is faster than alone.

    source  Goemans et al. 2002, the mean busy time relaxation, with a machine for each port
    """
    bound = mean_completion_bound_ms(problem)
    return Decision(plan=None, proof=undecided(bound=bound, metric=METRIC))
