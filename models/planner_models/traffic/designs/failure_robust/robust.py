"""The most traffic that survives every failure of a set by rerouting, whatever the routes: admitted rates.

Under re-optimised restoration a routing can change with every failure; what is decided before is how much
of each demand is admitted. So the plan says how much, such that after each failure a controller finds routes
for all of it (`survivable_rates`), and routes it now with the least utilization of the busiest link. No
scheme that delivers in every failure what it admits can admit more, local restoration such as `ffc` neither.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import Field

from planner.arrays import Floats
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status, relative_gap
from planner.errors import InputError
from planner.options import Options
from planner_models.traffic.designs import optimum
from planner_models.traffic.designs.column_generation import column_generation
from planner_models.traffic.designs.column_generation.decision import (
    MIN_GAP,
    decide_without_demand,
    refuse_solver_options,
)
from planner_models.traffic.designs.column_generation.reduced_problem import ReducedProblem
from planner_models.traffic.designs.failure_robust.plans import add_guarantees, resolve_source
from planner_models.traffic.designs.failure_robust.survivable_rates import (
    DEFAULT_GAP,
    SurvivableRates,
    list_outages,
)
from planner_models.traffic.designs.restricted_routes.limits import RouteLimits
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan.plan import Routing, list_shed
from planner_models.traffic.problem.failure_sets import FailureSet, FailuresParameter, build_failure_set
from planner_models.traffic.problem.problem import Traffic

BACKEND: Final = "cutting planes over failures"
SCOPE: Final = "plans whose traffic survives every failure of the set"

AdmissionObjective = Annotated[
    Literal["delivered", "concurrent"],
    Field(description="delivered: the most traffic; concurrent: the same share of all demands, the largest"),
]


@shed_unreachable
def route(
    problem: Traffic,
    *,
    failures: FailuresParameter = None,
    objective: AdmissionObjective = "delivered",
    options: Options = Options(),
) -> Decision[Routing]:
    """Admit the most traffic that a controller can reroute in every failure of a set, over all routes.

    Stops at `options.gap`, by default 1e-6; at a time limit it returns the incumbent with its bound. A
    failure that leaves a demand without a path does not limit it: nothing could serve it then.

    returns  Decision with a Routing whose table `guarantees` lists the admitted rates; the bound holds for
             all plans whose traffic survives every failure
    raises   InputError for a backend or an algorithm, since it is its own solver, and for latency limits or
             rules, which rerouting over all routes does not keep
    source   Kelley 1960 (cutting planes); Onaga and Kakusho 1971 (metric inequalities)
    """
    refuse_solver_options("robust", options)
    if RouteLimits.of(problem) is not None:
        raise InputError(
            "robust: demands have latency limits or rules, which it does not know; design ffc keeps them"
        )
    if not len(problem.targets):
        return decide_without_demand(problem, "total")
    until = None if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    source = resolve_source(problem, failures)
    known = build_failure_set(problem, source)
    gap = DEFAULT_GAP if options.gap is None else options.gap
    if objective == "concurrent":
        best, bound = _grow_together(problem, known, gap, until)
    else:
        search = SurvivableRates(problem, known)
        search.run(options, until)
        best, bound = search.best, search.bound
    value = None if best is None else float(best.sum())
    reached = relative_gap(value, bound)
    is_optimal = reached is not None and reached <= max(gap, MIN_GAP)
    proof = Proof(
        status=Status.UNDECIDED if best is None else Status.OPTIMAL if is_optimal else Status.FEASIBLE,
        objective=value,
        bound=bound,
        bound_scope=SCOPE if objective == "delivered" else f"{SCOPE}, the same share of all demands",
        metric="delivered_mbps",
        backend=BACKEND,
    )
    if best is None:
        return Decision(plan=None, proof=proof)
    missing = float(problem.rate_mbps.sum()) - float(best.sum())
    if options.service == "all" and missing > gap * bound:
        share = bound / float(problem.rate_mbps.sum())
        is_proven = share < 1 - optimum.FIT_TOLERANCE
        reason = f"at most {share:.4%} of all traffic survives every failure of the set"
        return Decision(
            plan=None,
            proof=Proof(
                status=Status.INFEASIBLE if is_proven else Status.UNDECIDED,
                reasons=(reason,) if is_proven else (),
            ),
        )
    plan = _route_now(problem, best)
    plan = add_guarantees(problem, plan, best, failures=source, at_once=1, restoration="reroute")
    return Decision(plan=plan, proof=proof)


def _route_now(problem: Traffic, rate_mbps: Floats) -> Routing:
    """Return the routing of these rates, (K,) Mbit/s, without failures: the least busiest link."""
    with progress.ignore():
        plan = optimum.route(problem.with_rates(rate_mbps), objective="utilization").plan
    assert plan is not None, "the rates can be routed"
    return replace(plan, shed=list_shed(problem, rate_mbps))


def _grow_together(
    problem: Traffic, failures: FailureSet, gap: float, until: float | None
) -> tuple[Floats | None, float]:
    """Return the rates of the largest share that all demands get alike, (K,), and a bound on their total."""
    share = most = 1.0
    offered = float(problem.rate_mbps.sum())
    for down in list_outages(problem, failures):
        left = problem.without_links(down).routable
        if not len(left.links) or not len(left.targets):
            continue
        found = column_generation.search(ReducedProblem.of(left), gap=gap, until=until)
        if found.split is None:
            return None, most * offered
        share = min(share, 1 / found.utilization if found.utilization > 0 else 1.0)
        most = min(most, 1 / found.bound if found.bound > 0 else 1.0)
    return share * problem.rate_mbps, max(share, most) * offered
