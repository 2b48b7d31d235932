"""Seconds that a placement is down in a month, by cause, and the load of its failure detection."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.units import MONTH_S
from planner_models.membership.plan.availability import live_distribution, used_sites
from planner_models.membership.plan.plan import (
    AGREEMENT_RULES,
    EVICT_RULE,
    FENCE_RULE,
    KILL_RULE,
    QUORUM_RULES,
    REACTION_RULE,
    RULES_WITHOUT_MANAGERS,
    Placement,
)
from planner_models.membership.plan.watching import (
    detection_s,
    false_alarm_rates,
    lease_load,
    paused_alarms,
    swim_detection_s,
    swim_lost_alarms,
    swim_paused_alarms,
)
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import LEASE, ROUND, SWIM
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

    Causes are counted one by one; where they add up to more than a month, those beside missing quorums are
    reduced in proportion (`within_a_month`).
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

    def within_a_month(self) -> Downtime:
        """Return the same with no more seconds than a month has, of any kind."""
        watching = self.detection + self.failover + self.false_alarms
        no_quorum = min(self.no_quorum, MONTH_S)
        share = min(1.0, (MONTH_S - no_quorum) / watching) if watching > 0 else 1.0
        return replace(
            self,
            no_quorum=no_quorum,
            detection=share * self.detection,
            failover=share * self.failover,
            false_alarms=share * self.false_alarms,
            two_leaders=min(self.two_leaders, MONTH_S),
            cut_off=min(self.cut_off, MONTH_S),
        )


def served_states(rule: str, members: int, quorum: int, managers: int) -> Bools:
    """Return whether a service is up with each number of live members and managers, (N + 1, G + 1).

    By quorums one must be up. With managers a single member suffices, where it is known that the others
    are down: all members are up, or a majority of managers reports. By reaction a single one always does.
    """
    live, reporting = np.arange(members + 1)[:, None], np.arange(managers + 1)[None]
    if rule in QUORUM_RULES:
        return np.broadcast_to(live >= quorum, (members + 1, managers + 1))
    if rule == REACTION_RULE:
        return np.broadcast_to(live >= 1, (members + 1, managers + 1))
    return np.asarray((live == members) | ((live >= 1) & (reporting >= managers // 2 + 1)))


def unserved_share(tree: SiteTree, placement: Placement) -> float:
    """Return the share of time in which a placement cannot serve, for all failures of sites.

    Where a host must be stopped before another one leads, a member that is cut off blocks the service.
    """
    managers = placement.managers if placement.rule not in RULES_WITHOUT_MANAGERS else {}
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

    Witnesses do not: they never lead.

    Where members are fenced, the switch of the leader's own site watches its host. Nobody watches where
    members agree in rounds.
    """
    if placement.rule in AGREEMENT_RULES:
        return {}
    if placement.rule in RULES_WITHOUT_MANAGERS:
        followers = followers_of(placement)
        return {site: count for site, count in followers.items() if not problem.is_witness[site]}
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
    loss, spread_s = delays.loss[pair], delays.spread_s[pair]
    if len(timeouts_s) == 1:
        ways = zip(loss.tolist(), spread_s.tolist(), strict=True)
        rates = np.array([[_alarm_rate(interval_s, float(timeouts_s[0]), *way)] for way in ways])
    else:
        rates = false_alarm_rates(interval_s, timeouts_s, loss, spread_s)
    counts = np.array(list(watchers.values()), dtype=float)
    alarms = MONTH_S * (counts @ rates)
    return np.asarray(alarms + paused_alarms(problem.site_pauses[leader], interval_s, timeouts_s))


@functools.lru_cache(maxsize=4_096)
def _alarm_rate(interval_s: float, timeout_s: float, loss: float, spread_s: float) -> float:
    """Return false alarms in a second of one way of heartbeats: many services have the same."""
    ways = np.array([loss]), np.array([spread_s])
    return float(false_alarm_rates(interval_s, np.array([timeout_s]), *ways)[0, 0])


@dataclass(frozen=True, kw_only=True)
class Alarms:
    """False alarms about a leader in a month.

    by_loss    by messages that are lost or late
    by_pauses  by pauses of the leader; of the manager that hears of it too, where it is started elsewhere
    down_s     seconds without service that they cause
    """

    by_loss: float
    by_pauses: float
    down_s: float

    @property
    def total(self) -> float:
        """All alarms in a month."""
        return self.by_loss + self.by_pauses


def count_false_alarms(problem: Membership, service: Service, placement: Placement) -> Alarms:
    """Return the false alarms about the leader of a placement."""
    watchers = watchers_of(problem, placement)
    if not watchers:
        return Alarms(by_loss=0.0, by_pauses=0.0, down_s=0.0)
    interval_s, timeout_s = placement.interval_s, placement.timeout_s
    pauses = problem.site_pauses[placement.leader]
    if placement.kind == SWIM:
        by_pauses = swim_paused_alarms(pauses, interval_s, timeout_s)
        loss = mean_loss(problem, placement)
        by_loss = swim_lost_alarms(loss, interval_s, timeout_s, suspicion_messages(problem))
        return Alarms(by_loss=by_loss, by_pauses=by_pauses, down_s=(by_loss + by_pauses) * service.failover_s)
    timeout = np.array([timeout_s])
    every = float(monthly_alarms(problem, placement.leader, watchers, interval_s, timeout)[0])
    paused = float(paused_alarms(pauses, interval_s, timeout)[0])
    if placement.rule != EVICT_RULE:
        return Alarms(by_loss=every - paused, by_pauses=paused, down_s=every * service.failover_s)
    by_site = [pauses, *(problem.site_pauses[site] for site in watchers)]
    longest_s = placement.wait_s + service.failover_s
    alarms, down_s = 0.0, 0.0
    for per_month, mean_s in (pause for of_site in by_site for pause in of_site):
        count = float(paused_alarms([(per_month, mean_s)], interval_s, timeout)[0])
        alarms += count
        down_s += count * mean_s * -math.expm1(-longest_s / mean_s)
    late_s = (every - paused) * min(interval_s / 2, longest_s)
    return Alarms(by_loss=every - paused, by_pauses=alarms, down_s=down_s + late_s)


def mean_loss(problem: Membership, placement: Placement) -> float:
    """Return the share of messages between the leader and its followers that are lost, in the mean."""
    followers, numbers = followers_of(placement), problem.leaf_number
    if not followers:
        return 0.0
    row = problem.delay_matrix.loss[numbers[placement.leader]]
    lost = sum(count * float(row[numbers[site]]) for site, count in followers.items())
    return lost / sum(followers.values())


def suspicion_messages(problem: Membership) -> float:
    """Return the messages of gossip about a suspicion that are sent to the suspected member, in the mean."""
    group = problem.group
    return group.retransmit * math.ceil(math.log10(group.members + 1)) * group.members / (group.members - 1)


def detection_of(problem: Membership, placement: Placement) -> float:
    """Return the mean time from a failure of the leader until members know, s; 0 where nobody leads."""
    if placement.rule in AGREEMENT_RULES or not watchers_of(problem, placement):
        return report_s(problem, placement)
    if placement.kind == SWIM:
        return swim_detection_s(placement.interval_s, placement.timeout_s, problem.group.members)
    detect = detection_s(placement.interval_s, placement.timeout_s)
    return detect + placement.wait_s + report_s(problem, placement)


def evaluate(problem: Membership, service: Service, placement: Placement) -> Downtime:
    """Return the seconds in a month that a placement is down, by cause."""
    tree = problem.tree
    rate = 0.0 if placement.rule in AGREEMENT_RULES else float(tree.leaf_rate[placement.leader])
    detect = detection_of(problem, placement)
    alarms = count_false_alarms(problem, service, placement)
    failover = service.failover_s
    both = 0.0
    if placement.rule == REACTION_RULE:
        both = alarms.down_s + _cut_seconds(tree, placement, detect + failover)
    elif placement.rule == EVICT_RULE:
        both = _cut_seconds(tree, placement, detect + failover)
    cut_off = alarms.down_s
    if placement.rule == KILL_RULE:
        cut_off = alarms.total * float(tree.repair_s[placement.leader])
    return Downtime(
        no_quorum=MONTH_S * unserved_share(tree, placement) + unfenced_s(tree, placement),
        detection=rate * detect,
        failover=rate * failover,
        false_alarms=alarms.down_s,
        alarms=alarms.total,
        two_leaders=both,
        cut_off=cut_off,
    ).within_a_month()


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


def decision_ms(problem: Membership, placement: Placement) -> float:
    """Return the time until members have decided, ms: a round trip to a quorum, or all rounds.

    A round lasts half of the longest round-trip time between two members.
    """
    if placement.rule not in AGREEMENT_RULES:
        return commit_time_ms(problem, placement.members, placement.leader, placement.quorum)
    return placement.rounds * round_ms(problem, placement.members)


def round_ms(problem: Membership, members: Mapping[int, int]) -> float:
    """Return half of the longest round-trip time between two members, ms."""
    sites = problem.leaf_number[[site for site, count in members.items() if count]]
    rtt = problem.delay_matrix.rtt_ms[np.ix_(sites, sites)].copy()
    alone = [count < 2 for count in members.values() if count]
    np.fill_diagonal(rtt, np.where(alone, 0.0, np.diag(rtt)))
    return float(rtt.max()) / 2


def longest_rtt_s(problem: Membership, placement: Placement) -> float:
    """Return the longest round-trip time from the leader to a process that watches it, s; 0 without any."""
    numbers = problem.leaf_number
    row = problem.delay_matrix.rtt_ms[numbers[placement.leader]]
    return max((float(row[numbers[site]]) / 1e3 for site in watchers_of(problem, placement)), default=0.0)


def watch_messages(problem: Membership, service: Service, placement: Placement) -> float:
    """Return the messages of failure detection in a second."""
    watched = placement.size if service.targets is None else service.targets
    if placement.kind == ROUND:
        return 0.0
    if placement.kind == SWIM:  # a probe and its answer
        return 2 * problem.group.members / placement.interval_s
    if placement.kind == LEASE:
        return lease_load(max(watched - placement.unwatched, 0.0), placement.timeout_s)
    if placement.managers and placement.rule not in RULES_WITHOUT_MANAGERS:
        return max(watched - placement.unwatched, 0.0) / placement.interval_s
    return (placement.size - 1) / placement.interval_s
