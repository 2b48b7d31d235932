"""Failure detectors of groups: SWIM, and the leases of Kubernetes' nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.membership.designs import raft
from planner_models.membership.designs.decision import UNSAFE, decide, lack_of_hosts
from planner_models.membership.designs.groups import join_by_gossip
from planner_models.membership.designs.reported import NO_MANAGERS
from planner_models.membership.designs.rules import current_counts, nearest_leader, spread
from planner_models.membership.plan.plan import EVICT_RULE, REACTION_RULE, MembershipPlan, Placement
from planner_models.membership.plan.watching import swim_suspicion_s
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import NODE, SWIM


def plan_swim(problem: Membership, *, options: Options = Options()) -> Decision[MembershipPlan]:
    """Declare members down after a probe and a suspicion that they do not refute, without managers.

    What members say of each other is no definitive report: one that is cut off leads on beside the next. The
    suspicion grows with the group, see the table `gossip`; joins spread by gossip.

    source  Das, Gupta and Motivala 2002 (SWIM); HashiCorp memberlist: defaults
    """
    return decide(problem, place_swim, guarantees=UNSAFE, extras=join_by_gossip(problem), options=options)


def place_swim(problem: Membership, service: Service) -> Placement | str:
    """Return f+1 members that watch each other by SWIM, or the reason why there are none."""
    if service.is_byzantine:
        return raft.place(problem, service)
    members = spread(problem, service.pair)
    if sum(members.values()) < service.pair:
        return lack_of_hosts(sum(members.values()), service.pair)
    watcher = problem.watcher(SWIM)
    return Placement(
        members=members,
        managers={},
        leader=nearest_leader(problem, members, 1),
        rule=REACTION_RULE,
        quorum=1,
        kind=SWIM,
        interval_s=watcher.interval_s,
        timeout_s=swim_suspicion_s(watcher.timeout_s, problem.group.members),
    )


def plan_kubernetes_nodes(
    problem: Membership,
    *,
    eviction_s: Annotated[
        float,
        Field(
            ge=0, le=86_400, description="time for which pods of a node that is not ready are tolerated, s"
        ),
    ] = 300.0,
    options: Options = Options(),
) -> Decision[MembershipPlan]:
    """Start a pod on another node after its node was not ready for some time, as Kubernetes does.

    Nodes renew leases every 10 s at managers, the control plane; after 50 s without, a node is not ready and
    its pods get no traffic. A pod that is cut off runs on beside the next one. Pauses of the control plane
    count as those of nodes.

    source  Kubernetes: node-monitor-grace-period, tolerationSeconds of not-ready
    """

    def place_node(problem: Membership, service: Service) -> Placement | str:
        placement = place_evicted(problem, service)
        if isinstance(placement, str) or placement.rule != EVICT_RULE:
            return placement
        return replace(placement, wait_s=eviction_s)

    return decide(problem, place_node, guarantees=UNSAFE, options=options)


def place_evicted(problem: Membership, service: Service) -> Placement | str:
    """Return f+1 nodes that a pod may run on, and the managers, or the reason why there are none."""
    if service.is_byzantine:
        return raft.place(problem, service)
    if service.managers == 0:
        return NO_MANAGERS
    members = spread(problem, service.pair)
    if sum(members.values()) < service.pair:
        return lack_of_hosts(sum(members.values()), service.pair)
    _, managers, _ = current_counts(problem, service)
    watcher = problem.watcher(NODE)
    return Placement(
        members=members,
        managers=managers or spread(problem, service.managers),
        leader=nearest_leader(problem, members, 1),
        rule=EVICT_RULE,
        quorum=1,
        kind=NODE,
        interval_s=watcher.interval_s,
        timeout_s=watcher.timeout_s,
    )
