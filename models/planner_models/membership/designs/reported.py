"""Fewer members, where managers or timeouts say who is up: leases, stopped hosts, and plain timeouts."""

from __future__ import annotations

from planner.contract.design import Decision
from planner.options import Options
from planner_models.membership.designs import raft
from planner_models.membership.designs.decision import SAFE, UNSAFE, decide, lack_of_hosts
from planner_models.membership.designs.rules import current_counts, nearest_leader, spread
from planner_models.membership.plan.plan import (
    KILL_RULE,
    MANAGER_RULE,
    REACTION_RULE,
    MembershipPlan,
    Placement,
)
from planner_models.membership.plan.watching import lease_load
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import HEARTBEAT, LEASE

NO_MANAGERS = "it has no managers: faults + 1 members would have two leaders"


def plan_leases(problem: Membership, *, options: Options = Options()) -> Decision[MembershipPlan]:
    """Give leases by managers to f+1 members: a leader stops by itself at the end of its lease.

    Watched processes beyond what the managers can receive are not watched.

    source  Hunt et al. 2010 (ZooKeeper, 4 s); Burrows 2006 (Chubby, 12 s)
    """
    return decide(problem, place_leases, guarantees=SAFE, options=options)


def plan_kill_host(problem: Membership, *, options: Options = Options()) -> Decision[MembershipPlan]:
    """Stop the host of a suspected member before another one of f+1 leads; one that is cut off blocks.

    source  Leners et al. 2011 (Falcon); Fetzer 2003 (STONITH)
    """
    return decide(problem, place_kill_host, guarantees=SAFE, options=options)


def plan_short_timeouts(problem: Membership, *, options: Options = Options()) -> Decision[MembershipPlan]:
    """React to a short silence of the leader, with f+1 members and no managers: two may lead.

    source  Leners et al. 2015, 7.1 (RAMCloud before Albatross)
    """
    return decide(problem, place_short_timeouts, guarantees=UNSAFE, options=options)


def place_leases(problem: Membership, service: Service) -> Placement | str:
    """Return the placement of one service with leases, or the reason why there is none."""
    watcher = problem.watcher(LEASE)
    result = _place_pair(problem, service, MANAGER_RULE, LEASE)
    if isinstance(result, str) or watcher.capacity_per_s is None:
        return result
    watched = float(result.size if service.targets is None else service.targets)
    follow = watcher.capacity_per_s / lease_load(1.0, result.timeout_s)
    return _set_unwatched(result, max(watched - follow, 0.0))


def place_kill_host(problem: Membership, service: Service) -> Placement | str:
    """Return the placement of one service with stopped hosts, or the reason why there is none."""
    return _place_pair(problem, service, KILL_RULE, HEARTBEAT)


def place_short_timeouts(problem: Membership, service: Service) -> Placement | str:
    """Return the placement of one service without managers, or the reason why there is none."""
    return _place_pair(problem, service, REACTION_RULE, HEARTBEAT)


def _set_unwatched(placement: Placement, unwatched: float) -> Placement:
    return Placement(**{**vars(placement), "unwatched": unwatched})


def _place_pair(problem: Membership, service: Service, rule: str, kind: str) -> Placement | str:
    """Return f+1 members, with managers unless they react alone; all that vote where members may lie."""
    if service.is_byzantine:
        return raft.place(problem, service)
    if rule != REACTION_RULE and service.managers == 0:
        return NO_MANAGERS
    members = spread(problem, service.pair)
    if sum(members.values()) < service.pair:
        return lack_of_hosts(sum(members.values()), service.pair)
    _, managers, _ = current_counts(problem, service)
    if rule == REACTION_RULE:
        managers = {}
    elif not managers:
        managers = spread(problem, service.managers)
    watcher = problem.watcher(kind)
    timeout = watcher.timeout_s
    if rule == REACTION_RULE:
        timeout = max(SHORT_INTERVALS * watcher.interval_s, watcher.interval_s)
    return Placement(
        members=members,
        managers=managers,
        leader=nearest_leader(problem, members, 1),
        rule=rule,
        quorum=1,
        kind=kind,
        interval_s=timeout / 3 if kind == LEASE else watcher.interval_s,
        timeout_s=timeout,
    )


SHORT_INTERVALS = 3.0
"""Intervals of silence after which a member without managers reacts."""
