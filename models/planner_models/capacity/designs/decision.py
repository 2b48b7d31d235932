"""Decisions from purchases: the plan with its routes, and its proof in the two ranks of the headline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.contract.proof import RankProof, relative_gap
from planner.formatting import amount_of
from planner.options import Options
from planner.search.judged import judged, undecided
from planner.search.tolerances import ROUNDING
from planner_models.capacity.plan.metrics import measure
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import FITS
from planner_models.capacity.routing import make_plan

BUDGET_SCOPE: Final = "plans within the budget"
EQUAL: Final = ROUNDING


@dataclass(frozen=True, kw_only=True)
class Proven:
    """Bounds and backend of a decision's proof.

    least_unserved  bound of the worst shed rate, Mbit/s; None for unknown
    least_cost      bound of the total cost among plans that reach that rate; None for unknown
    gap             relative gap of the cost at which a plan counts as optimal
    is_cut          whether a time limit ended the search
    """

    least_unserved: float | None = None
    least_cost: float | None = None
    gap: float = 0.0
    backend: str | None = None
    is_cut: bool = False

    def rank(self, offered: float, delivered: float, cost: float) -> tuple[RankProof, ...]:
        """Return the proofs of delivered traffic and of cost, or of the first alone; () for none."""
        if self.least_unserved is None:
            return ()
        upper = max(offered - self.least_unserved, delivered)
        if upper - delivered <= FITS * offered:
            upper = delivered
        of_traffic = RankProof("delivered_mbps", delivered, upper)
        if self.least_cost is None or upper != delivered:
            return (of_traffic,)
        lower = min(self.least_cost, cost)
        lower = cost if cost - lower <= EQUAL * max(abs(cost), 1.0) else lower
        return of_traffic, RankProof("total_cost", cost, lower)


UNPROVEN: Final = Proven()


def decide(
    problem: CapacityPlanning,
    counts: Floats,
    *,
    options: Options,
    guarantees: frozenset[str] | None = None,
    proven: Proven = UNPROVEN,
) -> Decision[Purchases]:
    """Return the decision to buy (Y, M) modules in each year.

    options  where service is "all", a plan that leaves demand unserved is none
    """
    plan = make_plan(problem, counts)
    figures = measure(problem, plan, None)
    offered, delivered = float(figures["offered_mbps"] or 0.0), float(figures["delivered_mbps"] or 0.0)
    cost = float(figures["total_cost"] or 0.0)
    delivers_all = offered - delivered <= problem.rounding_share * offered
    if options.service == "all" and not delivers_all:
        unserved = amount_of(offered - delivered, offered, "Mbit/s")
        reason = f"the purchases that were found leave {unserved} unserved in the worst case"
        return Decision(plan=None, proof=undecided(reason))
    ranks = proven.rank(offered, delivered, cost)
    has_both = len(ranks) == 2
    is_optimal = has_both and (relative_gap(cost, ranks[1].bound) or 0.0) <= max(proven.gap, EQUAL)
    of_plan = ranks[1:] if delivers_all else ranks[:1]
    sense, objective, metric = _aim_of(delivers_all, cost, delivered)
    proof = judged(
        sense,
        objective,
        of_plan[0].bound if of_plan else None,
        is_optimal=is_optimal,
        metric=metric,
        ranks=ranks if has_both else (),
        bound_scope=None if problem.budget is None else BUDGET_SCOPE,
        backend=proven.backend,
        is_cut=proven.is_cut,
    )
    return Decision(plan=plan, proof=proof, guarantees=guarantees)


def _aim_of(delivers_all: bool, cost: float, delivered: float) -> tuple[Literal["min", "max"], float, str]:
    """Return sense, value and metric of the objective: the cost of all demand, else delivered traffic."""
    return ("min", cost, "cost_of_all") if delivers_all else ("max", delivered, "delivered_mbps")
