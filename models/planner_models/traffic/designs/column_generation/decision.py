"""Decisions of the solvers of our own, column generation and the approximation scheme."""

from __future__ import annotations

from dataclasses import replace

import scipy.sparse as sp

from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner.search.judged import judged, optimal, undecided
from planner_models.flows.link_flow_program import METRIC_OF, Objective
from planner_models.flows.problem import MIN_GAP
from planner_models.traffic.designs.column_generation.reduced_problem import FlowSplit, ReducedProblem
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic


def make_decision(
    reduced: ReducedProblem,
    objective: Objective,
    *,
    split: FlowSplit | None,
    bound: float,
    gap: float,
    backend: str,
) -> Decision[Routing]:
    """Return the decision for objective "concurrent" or "utilization".

    split  None where the search ended before it had one, or for its bound alone
    bound  lower bound on the utilization of all routings
    gap    relative gap at which a plan counts as optimal
    """
    metric = METRIC_OF[objective]
    if split is None:
        limit = None if bound <= 0 else 1.0 / bound if objective == "concurrent" else bound
        proof = undecided(bound=limit, metric=metric, backend=backend)
        return Decision(plan=None, proof=proof)
    plan = reduced.make_plan(split)
    # the objective value is that of the plan itself, not the one that the search computed
    utilization = float(plan.links["utilization"].max())
    share = min(1.0, 1.0 / utilization) if objective == "concurrent" else 1.0
    if share < 1.0:
        plan = scale_plan(reduced.problem, plan, share)
    value = 1.0 / utilization if objective == "concurrent" else utilization
    # rounding may put the bound on the wrong side of the value
    if utilization * (1 - MIN_GAP) < bound < utilization * (1 + MIN_GAP):
        bound = utilization
    limit = (1.0 / bound if bound > 0 else None) if objective == "concurrent" else bound
    proof = judged(
        "max" if objective == "concurrent" else "min",
        value,
        limit,
        gap=max(gap, MIN_GAP),
        metric=metric,
        backend=backend,
    )
    if objective == "utilization":
        guarantees = {"demand"}
    else:
        guarantees = {"capacity", "demand"} if share == 1 else {"capacity"}
    return Decision(plan=plan, proof=proof, guarantees=frozenset(guarantees))


def scale_plan(problem: Traffic, plan: Routing, share: float) -> Routing:
    """Return the plan, which serves all demands, with all rates multiplied by `share`."""
    flows = plan.flows.assign(rate_mbps=plan.flows["rate_mbps"] * share)
    links = plan.links.assign(
        load_mbps=plan.links["load_mbps"] * share, utilization=plan.links["utilization"] * share
    )
    return Routing(flows=flows, links=links, shed=routing.list_shed(problem, share * problem.rate_mbps))


def decide_without_demand(problem: Traffic, objective: Objective) -> Decision[Routing]:
    """Return the decision for a problem in which no demand has a rate: an empty plan, which is optimal.

    Its concurrent flow has no limit, and so no value.
    """
    empty = sp.coo_array((len(problem.demands), len(problem.links)))
    proof = optimal(metric=METRIC_OF[objective])
    if objective not in ("concurrent", "cost"):
        proof = replace(proof, objective=0.0, bound=0.0)
    return Decision(plan=routing.routing_by_demand(problem, empty), proof=proof)


def refuse_solver_options(method: str, options: Options) -> None:
    """Raise InputError for options that name another solver, which `method` would ignore."""
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': '{method}' is a solver of its own, leave it out")
    if options.algorithm != "auto":
        raise InputError(
            f"algorithm is '{options.algorithm}': '{method}' solves no linear program with it, leave it out"
        )
