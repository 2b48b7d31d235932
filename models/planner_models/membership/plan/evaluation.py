"""Seconds that a placement is down in a month, by cause, and the load of its failure detection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.units import MONTH_S
from planner_models.membership.plan.availability import live_distribution, used_sites
from planner_models.membership.plan.plan import (
    FENCE_RULE,
    KILL_RULE,
    MAJORITY_RULE,
    REACTION_RULE,
    Placement,
)
from planner_models.membership.plan.watching import (
    detection_s,
    false_alarm_rates,
    lease_load,
    paused_alarms,
)
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import LEASE
from planner_models.membership.problem.tree import SiteTree


@dataclass(frozen=True, kw_only=True)
class Downtime:
    """Seconds in a month without service, by cause, and the alarms behind them.

    no_quorum     too few members or managers are up, or a suspected host cannot be stopped
    detection     failures of the leader are not suspected yet
    failover      the next leader takes over after failures
    false_alarms  the next leader takes over though the leader was up
    alarms        false alarms in a month
    two_leaders   seconds in a month in which two members lead
    cut_off       seconds in a month in which working processes are kept from serving
    """

    no_quorum: float
    detection: float
    failover: float
    false_alarms: float
    alarms: float
    two_leaders: float
    cut_off: float

    @property
    def total(self) -> float:
        """Seconds in a month without service."""
        return self.no_quorum + self.detection + self.failover + self.false_alarms


def served_states(rule: str, members: int, quorum: int, managers: int) -> Bools:
    """Return whether a service is up with each number of live members and managers, (N + 1, G + 1).

    By majority a quorum must be up. With managers a single member suffices, where it is known that the others
    are down: all members are up, or a majority of managers reports. By reaction a single one always does.
    """
    live, reporting = np.arange(members + 1)[:, None], np.arange(managers + 1)[None]
    if rule == MAJORITY_RULE:
        return np.broadcast_to(live >= quorum, (members + 1, managers + 1))
    if rule == REACTION_RULE:
        return np.broadcast_to(live >= 1, (members + 1, managers + 1))
    return np.asarray((live == members) | ((live >= 1) & (reporting >= managers // 2 + 1)))


def unserved_share(tree: SiteTree, placement: Placement) -> float:
    """Return the share of time in which a placement cannot serve, for all failures of sites.

    Where a host must be stopped before another one leads, a member that is cut off blocks the service.
    """
    managers = placement.managers if placement.rule not in (MAJORITY_RULE, REACTION_RULE) else {}
    served = served_states(placement.rule, placement.size, placement.quorum, sum(managers.values()))
    if placement.rule != KILL_RULE:
        states = live_distribution(tree, placement.members, managers)
        return float(states[~served].sum())
    cuts = used_sites(tree, placement.members) & ~tree.is_host
    reachable = float(np.prod(1.0 - tree.down[cuts]))
    states = live_distribution(tree, placement.members, managers, always_up=cuts)
    return 1.0 - reachable * float(states[served].sum())


def followers_of(placement: Placement) -> dict[int, int]:
    """Return the number of members but the leader, by site."""
    followers = dict(placement.members)
    followers[placement.leader] -= 1
    return {site: count for site, count in followers.items() if count}


def watchers_of(problem: Membership, placement: Placement) -> dict[int, int]:
    """Return the number of processes that watch the leader, by site: all others, or the nearest manager.

    Where members are fenced, the switch of the leader's own site watches its host.
    """
    if placement.rule in (MAJORITY_RULE, REACTION_RULE):
        return followers_of(placement)
    if not placement.managers:
        return {}
    if placement.rule == FENCE_RULE:
        return {placement.leader: 1}
    rtt_ms, numbers = problem.delay_matrix.rtt_ms, problem.leaf_number
    row = rtt_ms[numbers[placement.leader]]
    return {min(placement.managers, key=lambda site: (float(row[numbers[site]]), site)): 1}


def monthly_alarms(
    problem: Membership, leader: int, watchers: Mapping[int, int], interval_s: float, timeouts_s: Floats
) -> Floats:
    """Return false alarms about a leader in a month, (T,): those of each watcher, and those by its pauses.

    watchers  number of processes that watch the leader, by site
    """
    if not watchers:
        return np.zeros(len(timeouts_s))
    delays, numbers = problem.delay_matrix, problem.leaf_number
    pair = numbers[leader], numbers[list(watchers)]
    rates = false_alarm_rates(interval_s, timeouts_s, delays.loss[pair], delays.spread_s[pair])
    counts = np.array(list(watchers.values()), dtype=float)
    alarms = MONTH_S * (counts @ rates)
    return np.asarray(alarms + paused_alarms(problem.site_pauses[leader], interval_s, timeouts_s))


def evaluate(problem: Membership, service: Service, placement: Placement) -> Downtime:
    """Return the seconds in a month that a placement is down, by cause."""
    tree = problem.tree
    rate = float(tree.leaf_rate[placement.leader])
    watchers = watchers_of(problem, placement)
    detect = detection_s(placement.interval_s, placement.timeout_s) if watchers else 0.0
    detect += report_s(problem, placement)
    alarms = float(
        monthly_alarms(
            problem,
            placement.leader,
            watchers,
            placement.interval_s,
            np.array([placement.timeout_s]),
        )[0]
    )
    failover = service.failover_s
    both = 0.0
    if placement.rule == REACTION_RULE:
        both = alarms * failover + _cut_seconds(tree, placement, detect + failover)
    stopped = float(tree.repair_s[placement.leader]) if placement.rule == KILL_RULE else failover
    return Downtime(
        no_quorum=MONTH_S * unserved_share(tree, placement) + unfenced_s(tree, placement),
        detection=rate * detect,
        failover=rate * failover,
        false_alarms=alarms * failover,
        alarms=alarms,
        two_leaders=both,
        cut_off=alarms * stopped,
    )


def report_s(problem: Membership, placement: Placement) -> float:
    """Return the time from a suspicion until members know, s, where managers fence before they report.

    A majority of managers agrees, the fence stands, and the report reaches the nearest member.
    """
    if placement.rule != FENCE_RULE:
        return 0.0
    agreed = fastest_majority_ms(problem, placement.managers)
    return placement.fence_s + agreed / 1e3


def fastest_majority_ms(problem: Membership, managers: Mapping[int, int]) -> float:
    """Return the shortest round-trip time from a manager to a majority of them, ms."""
    quorum = sum(managers.values()) // 2 + 1
    return min((commit_time_ms(problem, managers, site, quorum) for site in managers), default=0.0)


def unfenced_s(tree: SiteTree, placement: Placement) -> float:
    """Return the seconds in a month in which a leader that is cut off cannot be fenced, so that none leads.

    A cut that finds no free epoch is not made, and lasts until the repair.
    """
    if placement.rule != FENCE_RULE or placement.unmade_cuts == 0:
        return 0.0
    return placement.unmade_cuts * _cut_seconds(tree, placement, 0.0)


def _cut_seconds(tree: SiteTree, placement: Placement, until_next_s: float) -> float:
    """Return seconds in a month in which a leader that is cut off leads on beside the next one."""
    seconds = 0.0
    for site in tree.paths[placement.leader]:
        is_apart = any(site not in tree.paths[other] for other in placement.members)
        if is_apart and not tree.is_host[site]:
            seconds += float(tree.rate[site]) * max(float(tree.repair_s[site]) - until_next_s, 0.0)
    return seconds


def commit_time_ms(problem: Membership, members: Mapping[int, int], leader: int, quorum: int) -> float:
    """Return the round-trip time from the leader to the nearest members that make a quorum with it, ms."""
    numbers = problem.leaf_number
    to_members = sorted(
        float(problem.delay_matrix.rtt_ms[numbers[leader], numbers[site]])
        for site, count in members.items()
        for _ in range(count - (site == leader))
    )
    return to_members[quorum - 2] if quorum >= 2 else 0.0


def longest_rtt_s(problem: Membership, placement: Placement) -> float:
    """Return the longest round-trip time from the leader to a process that watches it, s; 0 without any."""
    numbers = problem.leaf_number
    row = problem.delay_matrix.rtt_ms[numbers[placement.leader]]
    return max((float(row[numbers[site]]) / 1e3 for site in watchers_of(problem, placement)), default=0.0)


def watch_messages(service: Service, placement: Placement) -> float:
    """Return the messages of failure detection in a second."""
    watched = placement.size if service.targets is None else service.targets
    if placement.kind == LEASE:
        return lease_load(max(watched - placement.unwatched, 0.0), placement.timeout_s)
    if placement.managers and placement.rule not in (MAJORITY_RULE, REACTION_RULE):
        return max(watched - placement.unwatched, 0.0) / placement.interval_s
    return (placement.size - 1) / placement.interval_s
