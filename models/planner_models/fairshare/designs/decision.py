"""Decisions of system `fairshare` from replicas and rates, with their proof."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.formatting import amount
from planner.options import Options
from planner.search.judged import infeasible, judged, undecided
from planner.search.tolerances import SOLVER
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.metrics import LIMITS, keeps_reserved, least_share
from planner_models.fairshare.plan.plan import FAIR_QUEUING, PLANNED, Replicas, Sharing, make_plan, place_as
from planner_models.fairshare.plan.service import Served, fit_rates
from planner_models.fairshare.problem.problem import SharedStore, find_memory_shortage
from planner_models.fairshare.problem.tables import add_up

PLACES: Final = frozenset({"placed", "pinned"})
"""Constraints that hold only where memory and nodes are enough for all replicas."""
RESERVED: Final = frozenset({"reserved"})
"""Constraint that holds only where nodes, and the rates of a design, are enough for all reserved rates."""
EQUAL: Final = SOLVER

Previous = Decision[Sharing] | None
"""The decision in place, whose replicas are where data lies now."""


def start_from(problem: SharedStore, previous: Previous) -> SharedStore:
    """Return the problem with the replicas of the decision in place; unchanged where there is none."""
    return problem if previous is None or previous.plan is None else place_as(problem, previous.plan)


def decide(
    problem: SharedStore,
    replicas: Replicas,
    served: Served,
    weight: Floats,
    *,
    options: Options,
    queueing: str = FAIR_QUEUING,
    replica_choice: str = PLANNED,
    bound: float | None = None,
    scope: str | None = None,
    backend: str | None = None,
) -> Decision[Sharing]:
    """Return the decision for replicas, their service, and local weights.

    bound  least share that no plan of `scope` exceeds; None for unknown
    """
    fair, kops = fair_share_kops(problem), fit_rates(problem, replicas, served.kops)
    rate = add_up(problem.tenant[replicas.partition], weights=kops, minlength=len(problem.tenants))
    if options.service == "all":
        short = _prove_short(problem, replicas, rate, bound if scope is None else None)
        if short is not None:
            return Decision(plan=None, proof=short)
    plan = make_plan(
        problem, replicas, kops, served.split, weight, fair_share_kops=fair, queueing=queueing,
        replica_choice=replica_choice,
    )  # fmt: skip
    objective = least_share(rate, fair)
    gap = EQUAL if options.gap is None else max(options.gap, EQUAL)
    if bound is not None:
        bound = max(min(bound, 1.0), objective)
    is_optimal = bound is not None and bound - objective <= max(gap, 1e-4) * max(bound, 1e-9)
    proof = judged(
        "max",
        objective,
        bound,
        is_optimal=is_optimal,
        bound_scope=scope if bound is not None else None,
        metric="min_share",
        backend=backend,
    )
    placed = np.bincount(replicas.partition, minlength=len(problem.partitions))
    is_complete = bool((placed >= problem.wanted_replicas).all())
    unkept = (frozenset() if is_complete else PLACES) | (
        frozenset() if keeps_reserved(problem, rate) else RESERVED
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset(LIMITS) - unkept if unkept else None)


def _prove_short(problem: SharedStore, replicas: Replicas, rate: Floats, bound: float | None) -> Proof | None:
    """Return the proof that not all demand can be served, or that this plan does not; None where it is."""
    demand = problem.demand_of_tenant
    need = problem.per_op.T @ demand
    have = problem.capacity.sum(axis=0)
    reasons = [
        f"all tenants want {amount(float(need[r]), _unit(problem, r))} of {problem.resource_names[r]}; "
        f"all nodes have {amount(float(have[r]), _unit(problem, r))}"
        for r in np.flatnonzero(need > have * (1 + 1e-9)).tolist()
    ]
    shortage = find_memory_shortage(problem)
    if shortage is not None:
        reasons.insert(0, shortage)
    if reasons:
        return infeasible(*reasons)
    placed = np.bincount(replicas.partition, minlength=len(problem.partitions))
    missing = int(np.maximum(problem.wanted_replicas - placed, 0).sum())
    if missing:
        return undecided(f"{missing} replicas have no place found")
    unmet = demand - rate
    if unmet.max(initial=0.0) <= 1e-6 * float(demand.max(initial=0.0)):
        return None
    row = int(unmet.argmax())
    words = (
        f"tenant '{problem.tenant_names[row]}' wants {amount(float(demand[row]), 'kops')} and is served "
        f"{amount(float(rate[row]), 'kops')}"
    )
    if bound is not None and bound < 1 - 1e-6:
        return infeasible(words + "; no plan serves all")
    return undecided(words + "; another plan may serve all")


def _unit(problem: SharedStore, resource: int) -> str:
    return "kops" if resource == 0 else problem.resource_names[resource]
