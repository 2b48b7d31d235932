"""Check of a routing against the raw problem, independent of the design that made it."""

from __future__ import annotations

from planner.contract.plan import Violations
from planner_models.traffic.plan.flow_check import check_flow
from planner_models.traffic.plan.guarantees import check_guarantees
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic


def check(problem: Traffic, plan: Routing) -> Violations:
    """Return violations: links above their capacity, demands neither sent nor shed, false utilizations,
    traffic beyond latency limits or against rules, and demands that failures hit harder than guaranteed.

    raises  PlanRejected where the plan is no flow: an unknown link or demand, traffic that is lost or
            appears from nowhere or circles where no demand passes, more traffic than a demand's rate; or
            where its tables contradict each other: link totals, routes, weights, segments, shed, moved,
            guarantees, shares
    """
    flow = verify_flow(problem, plan)
    violations = check_flow(problem, plan, flow)
    return violations if plan.guarantees is None else violations + check_guarantees(problem, plan, flow)
