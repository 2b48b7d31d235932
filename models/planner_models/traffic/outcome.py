"""From what a search of our own found to a decision: used by `columns` and `fptas`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import scipy.sparse as sp

from planner.errors import InputError
from planner.options import Options
from planner.proof import Proof, Status, relative_gap
from planner.system import Decision
from planner_models.traffic import routing
from planner_models.traffic.edges import METRIC_OF, Objective
from planner_models.traffic.problem import Traffic
from planner_models.traffic.rooted import Mix, Rooted, Ways
from planner_models.traffic.routing import Routing

LEAST_GAP: Final = 1e-9  # what rounding leaves to be told apart


def decided(
    rooted: Rooted, objective: Objective, *, mix: Mix | Ways | None, bound: float, gap: float, backend: str
) -> Decision[Routing]:
    """The decision for objective "concurrent" or "utilization".

    mix    None where there was no time for one
    bound  no routing has a smaller utilization
    gap    relative gap at which a plan counts as optimal
    """
    metric = METRIC_OF[objective]
    if mix is None:
        return Decision(plan=None, proof=Proof(status=Status.UNDECIDED, metric=metric, backend=backend))
    plan = rooted.plan(mix)
    # of the plan itself: what the search believed it to be does not count
    busiest = float(plan.links["utilization"].max())
    share = min(1.0, 1.0 / busiest) if objective == "concurrent" else 1.0
    if share < 1.0:
        plan = scaled(plan, share)
    value = 1.0 / busiest if objective == "concurrent" else busiest
    # rounding may put the two a hair on the wrong sides of each other
    bound = busiest if busiest * (1 - LEAST_GAP) < bound < busiest * (1 + LEAST_GAP) else bound
    limit = (1.0 / bound if bound > 0 else None) if objective == "concurrent" else bound
    reached = relative_gap(value, limit)
    optimal = reached is not None and reached <= max(gap, LEAST_GAP)
    proof = Proof(
        status=Status.OPTIMAL if optimal else Status.FEASIBLE,
        objective=value,
        bound=limit,
        metric=metric,
        backend=backend,
    )
    if objective == "utilization":
        keeps = {"demand"}
    else:
        keeps = {"capacity", "demand"} if share == 1 else {"capacity"}
    return Decision(plan=plan, proof=proof, keeps=frozenset(keeps))


def scaled(plan: Routing, share: float) -> Routing:
    """The plan with all rates times `share`."""
    flows = plan.flows.assign(rate_mbps=plan.flows["rate_mbps"] * share)
    links = plan.links.assign(
        load_mbps=plan.links["load_mbps"] * share, utilization=plan.links["utilization"] * share
    )
    return Routing(flows=flows, links=links)


def without_demand(problem: Traffic, objective: Objective) -> Decision[Routing]:
    """Where nobody wants anything, nothing is carried; only its growth has no limit."""
    metric = METRIC_OF[objective]
    if objective == "concurrent":
        reasons = ("no demand has a rate above 0",)
        return Decision(plan=None, proof=Proof(status=Status.UNBOUNDED, metric=metric, reasons=reasons))
    empty = sp.coo_array((len(problem.demands), len(problem.links)))
    proof = Proof(status=Status.OPTIMAL, metric=metric)
    if objective != "cost":
        proof = replace(proof, objective=0.0, bound=0.0)
    return Decision(plan=routing.by_pair(problem, empty), proof=proof)


def require_own_solver(method: str, options: Options) -> None:
    """InputError for options that name another solver, which `method` would have to ignore."""
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': '{method}' is a solver of its own, leave it out")
    if options.algorithm != "auto":
        raise InputError(
            f"algorithm is '{options.algorithm}': '{method}' solves no linear program with it, leave it out"
        )
