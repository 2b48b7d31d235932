"""Decisions from placements: their plan, guarantees and proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.options import Options
from planner.search.judged import feasible, infeasible
from planner_models.membership.designs.groups import Extras, join_by_gossip
from planner_models.membership.plan.evaluation import decision_ms
from planner_models.membership.plan.plan import MembershipPlan, Placement, make_plan
from planner_models.membership.problem.problem import Membership, Service

SAFE: frozenset[str] = frozenset({"hosts", "quorums", "one_leader", "capacity"})
"""Guarantees of rules that never have two leaders, and do not look at limits."""
UNSAFE: frozenset[str] = frozenset({"hosts", "quorums", "capacity"})
"""Guarantees of rules by which two members may lead."""


Place = Callable[[Membership, Service], Placement | str]
"""Returns the placement of a service, or the reason why there is none."""


def decide(
    problem: Membership,
    rule: Place,
    *,
    guarantees: frozenset[str] | None = None,
    extras: Extras | None = None,
    options: Options = Options(),
) -> Decision[MembershipPlan]:
    """Return the decision of a rule that places each service by itself, without a bound."""
    placements: dict[str, Placement] = {}
    reasons = []
    for service in problem.service_list:
        result = rule(problem, service)
        if isinstance(result, str):
            reasons.append(f"{service.name}: {result}")
        else:
            placements[service.name] = result
    if reasons:
        return Decision(plan=None, proof=infeasible(*reasons))
    return conclude(problem, placements, feasible(), guarantees=guarantees, extras=extras, options=options)


def conclude(
    problem: Membership,
    placements: Mapping[str, Placement],
    proof: Proof,
    *,
    guarantees: frozenset[str] | None = None,
    extras: Extras | None = None,
    options: Options = Options(),
) -> Decision[MembershipPlan]:
    """Return the decision of placements; none where all targets must be watched and some are not."""
    unwatched = {name: item.unwatched for name, item in placements.items() if item.unwatched > 0}
    if unwatched and options.service == "all":
        reasons = [
            f"{name}: the capacity of managers is too small for {count:,.0f} of the watched processes"
            for name, count in unwatched.items()
        ]
        return Decision(plan=None, proof=infeasible(*reasons))
    commit_ms = {name: decision_ms(problem, item) for name, item in placements.items()}
    tables = vars(extras or Extras())
    if problem.gossip is not None and len(problem.gossip) and tables["gossip"] is None:
        joins = join_by_gossip(problem)  # a group is there whatever its services do
        tables = {**tables, "seeds": joins.seeds, "gossip": joins.gossip}
    plan = replace(make_plan(problem, placements, commit_ms), **tables)
    return Decision(plan=plan, proof=proof, guarantees=guarantees)


def lack_of_hosts(count: int, size: int) -> str:
    """Return the reason why members have no sites."""
    return f"the sites have hosts for {count} members, {size} are needed"
