"""Majorities where they are today, or where guides put them: with the usual timeout, or a fitted one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.membership.designs.decision import SAFE, decide, lack_of_hosts
from planner_models.membership.designs.rules import nearest_leader, practice_members
from planner_models.membership.plan.plan import MAJORITY_RULE, MembershipPlan, Placement
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import HEARTBEAT, PHI
from planner_models.membership.protocols.gossip import phi_timeout_s

LEAST_DEVIATION_S: Final = 0.1
"""Least standard deviation of intervals that Akka's failure detector fits."""


def plan(problem: Membership, *, options: Options = Options()) -> Decision[MembershipPlan]:
    """Leave members where they are, or spread 2f+1 over the zones of a region, with the usual timeout.

    source  Ongaro and Ousterhout 2014; etcd, Consul and Kubernetes: defaults and guides
    """
    return decide(problem, place, guarantees=SAFE, options=options)


def plan_phi(
    problem: Membership,
    *,
    threshold: Annotated[
        float, Field(gt=0, le=100, description="phi: minus the logarithm of the probability of a false alarm")
    ] = 8.0,
    pause_s: Annotated[
        float, Field(ge=0, le=3600, description="pause of a process that is accepted, s")
    ] = 3.0,
    options: Options = Options(),
) -> Decision[MembershipPlan]:
    """Leave members as `raft` does, and suspect a leader after the silence that phi-accrual finds unlikely.

    Intervals between heartbeats that arrive are taken as normal, with the mean and deviation of the worst
    watcher. Real ones are not: a lost heartbeat doubles an interval, so that false alarms are more than phi
    says. A timeout in the table `watchers` is kept.

    source  Hayashibara et al. 2004; Akka: defaults
    """

    def place_phi(problem: Membership, service: Service) -> Placement | str:
        placement = place(problem, service)
        return (
            placement if isinstance(placement, str) else _fit_timeout(problem, placement, threshold, pause_s)
        )

    return decide(problem, place_phi, guarantees=SAFE, options=options)


def _fit_timeout(problem: Membership, placement: Placement, threshold: float, pause_s: float) -> Placement:
    """Return a placement with the timeout at which phi reaches its threshold for every watcher."""
    watcher, delays, numbers = problem.watcher(PHI), problem.delay_matrix, problem.leaf_number
    timeout_s = watcher.timeout_s
    if watcher.is_usual:
        pairs = [(numbers[placement.leader], numbers[site]) for site in placement.members]
        loss = max(float(delays.loss[pair]) for pair in pairs)
        spread_s = max(float(delays.spread_s[pair]) for pair in pairs)
        mean_s = watcher.interval_s / (1 - loss)
        variance = watcher.interval_s**2 * loss / (1 - loss) ** 2 + 2 * spread_s**2
        deviation_s = max(math.sqrt(variance), LEAST_DEVIATION_S)
        timeout_s = pause_s + phi_timeout_s(mean_s, deviation_s, threshold)
    return replace(placement, kind=PHI, interval_s=watcher.interval_s, timeout_s=timeout_s)


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
