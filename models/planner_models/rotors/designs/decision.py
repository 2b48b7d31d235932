"""Decisions of system `rotors` from circuits and traffic, with their proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.formatting import amount
from planner.options import Options
from planner.search.judged import gap_of, infeasible, judged, undecided
from planner.search.tolerances import INTERIOR_POINT
from planner_models.rotors.plan.plan import Paths, Routing, make_plan
from planner_models.rotors.plan.timetable import Timetable
from planner_models.rotors.problem.problem import RotorNetwork


@dataclass(frozen=True, kw_only=True)
class Proven:
    """Bounds and backend of a decision's proof.

    bound    Mbit/s that no routing over the plans of `scope` delivers more than; None for unknown
    backend  solver of the bound
    """

    bound: float | None = None
    scope: str | None = None
    backend: str | None = None


UNPROVEN: Final = Proven()


def decide(
    problem: RotorNetwork,
    timetable: Timetable,
    paths: Paths,
    *,
    options: Options,
    expander: Floats | None = None,
    proven: Proven = UNPROVEN,
) -> Decision[Routing]:
    """Return the decision for some circuits and the traffic over them.

    expander  (n, n) urgent traffic that does not wait, Mbit/s
    """
    bound, scope = proven.bound, proven.scope
    plan = make_plan(problem, timetable, paths, expander)
    delivered = float(plan.routes["rate_mbps"].sum() + plan.expander["rate_mbps"].sum())
    if bound is not None:
        bound = min(bound, float(problem.demand_mbps.sum()))
    lost = float(plan.unserved["rate_mbps"].sum())
    if options.service == "all" and lost > 0:
        return Decision(plan=None, proof=_prove_short(problem, lost, bound, scope))
    proof = judged(
        "max",
        delivered,
        bound,
        gap=gap_of(options, default=INTERIOR_POINT, minimum=INTERIOR_POINT),
        consistency=INTERIOR_POINT,
        bound_scope=scope,
        metric="delivered_mbps",
        backend=proven.backend,
    )
    return Decision(plan=plan, proof=proof)


def _prove_short(problem: RotorNetwork, lost: float, bound: float | None, scope: str | None) -> Proof:
    """Return the proof that not all demand is delivered, or that this plan does not."""
    offered = float(problem.offered_mbps.sum())
    if bound is not None and bound < offered * (1 - INTERIOR_POINT):
        within = f" over {scope}" if scope else ""
        reason = (
            f"no routing{within} delivers more than {amount(bound, 'Mbit/s')} of {amount(offered, 'Mbit/s')}"
        )
        return infeasible(reason)
    reason = f"this plan leaves {amount(lost, 'Mbit/s')} unserved; another may deliver all"
    return undecided(reason)
