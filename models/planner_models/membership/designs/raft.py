"""Majorities where they are today, or where guides put them, with the usual timeout."""

from __future__ import annotations

from planner.contract.design import Decision
from planner.options import Options
from planner_models.membership.designs.decision import SAFE, decide, lack_of_hosts
from planner_models.membership.designs.rules import nearest_leader, practice_members
from planner_models.membership.plan.plan import MAJORITY_RULE, MembershipPlan, Placement
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import HEARTBEAT


def plan(problem: Membership, *, options: Options = Options()) -> Decision[MembershipPlan]:
    """Leave members where they are, or spread 2f+1 over the zones of a region, with the usual timeout.

    source  Ongaro and Ousterhout 2014; etcd, Consul and Kubernetes: defaults and guides
    """
    return decide(problem, place, guarantees=SAFE, options=options)


def place(problem: Membership, service: Service) -> Placement | str:
    """Return the placement of one service, or the reason why there is none."""
    members, leader = practice_members(problem, service, service.size)
    count = sum(members.values())
    if count == 0 or (count < service.size and problem.current_members(service.name) is None):
        return lack_of_hosts(count, service.size)
    quorum = service.quorum(count)
    watcher = problem.watcher(HEARTBEAT)
    return Placement(
        members=members,
        managers={},
        leader=nearest_leader(problem, members, quorum) if leader is None else leader,
        rule=MAJORITY_RULE,
        quorum=quorum,
        kind=HEARTBEAT,
        interval_s=watcher.interval_s,
        timeout_s=watcher.timeout_s,
    )
