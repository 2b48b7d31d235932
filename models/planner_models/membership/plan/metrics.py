"""Metrics of system `membership`: the seconds that services are down in a month, and their causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from planner.contract.metrics import MONEY, Headline, less, neither
from planner.contract.units import DAY_S, MONTH_S
from planner.formatting import amount, counted, number
from planner_models.membership.plan.check import PER_YEAR, ServicePlan, price_of, read_plan
from planner_models.membership.plan.evaluation import (
    Downtime,
    detection_of,
    evaluate,
    monthly_alarms,
    round_ms,
    watch_messages,
    watchers_of,
)
from planner_models.membership.plan.fences import fence_metrics
from planner_models.membership.plan.joining import METRICS as JOINS
from planner_models.membership.plan.joining import join_metrics
from planner_models.membership.plan.plan import AGREEMENT_RULES, MembershipPlan, Placement
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.schema import NODE, SWIM
from planner_models.membership.protocols.agreement import ROUNDS, values_sent

SOURCE: Final = "Leners et al. 2015"
METRICS: Final = (
    less(
        "down_s_per_month",
        "s a month",
        "time in a month that a service is down, in the mean; the first leader leads again when repaired",
        title="down",
    ),
    less(
        "two_leaders_s",
        "s a year",
        "time in a year in which two members lead, of all services",
        SOURCE,
        title="two leaders",
    ),
    less("false_alarms", "a day", "leaders suspected a day though they are up, of all services", SOURCE),
    less(
        "detect_s",
        "s",
        "time from a leader's failure to its suspicion, in the mean",
        SOURCE,
        title="detection",
    ),
    less(
        "commit_ms", "ms", "time until a quorum has a decision, of the slowest service", title="commit time"
    ),
    less("price", MONEY, "price of all members and managers for a month"),
    less("cost", MONEY, "price, and cost of the seconds down, for a month"),
    neither("members", "members", "members that decide, of all services"),
    neither("zones", "zones", "zones with members of a service, in the mean"),
    neither("regions", "regions", "regions with members of a service, in the mean"),
    less(
        "no_quorum_s",
        "s a month",
        "time in a month with too few members or managers up, in the mean",
        title="without quorum",
    ),
    less(
        "cut_off_s", "s a month", "time in a month that working members are cut off", SOURCE, title="cut off"
    ),
    less("unwatched", "targets", "processes that managers cannot watch, because their capacity is short"),
    less(
        "rules_most", "rules", "rules of fences at the switch with most of them", SOURCE, title="fence rules"
    ),
    less(
        "cut_beside",
        "processes",
        "processes that a fence cuts beside a suspected one, mean over ports",
        SOURCE,
        title="cut beside suspected",
    ),
    less("fence_ms", "ms", "time until the slowest fence stands", SOURCE, title="fence stands"),
    less(
        "excluded_switches",
        "switches",
        "switches that are excluded whole because their rules do not fit",
        SOURCE,
        title="excluded switches",
    ),
    less("no_epoch_share", "", "share of cuts that find no free epoch", SOURCE, title="cuts without epoch"),
    less(
        "decision_messages",
        "messages",
        "messages for a decision, of all services",
        "Abraham and Dolev 2015",
        title="messages of a decision",
    ),
    less(
        "decision_values",
        "values",
        "values that a member sends to each other one for a decision, of the service with most; unknown for "
        "polynomial protocols",
        "Abraham and Dolev 2015",
        title="values of a decision",
    ),
    less(
        "join_s",
        "s",
        "time until all processes of a group know one that joins, or all know each other",
        "Haeupler and Malkhi 2015",
        title="join",
    ),
    less(
        "join_rounds",
        "rounds",
        "rounds until then",
        "Haeupler and Malkhi 2015",
        title="rounds of a join",
    ),
    less(
        "join_messages",
        "messages",
        "messages until then",
        "Haeupler and Malkhi 2015",
        title="messages of a join",
    ),
    less(
        "join_busiest",
        "messages",
        "most messages that a process sends or answers in a round",
        "Haeupler and Malkhi 2015",
        title="messages of the busiest process",
    ),
    less("missed", "processes", "processes that gossip never reaches, in the mean"),
    less(
        "messages_per_s",
        "messages/s",
        "messages of failure detection in a second",
        title="detection messages",
    ),
    less("bytes_per_s", "bytes/s", "bytes of failure detection in a second", title="detection bytes"),
)
YEAR_DAYS: Final = 365.25
MAX_YEARS: Final = 1_000_000
"""Years between two false alarms beyond which their number says no more."""
HEADLINE_TABLE: Final = (
    "down_s_per_month",
    "two_leaders_s",
    "false_alarms",
    "detect_s",
    "commit_ms",
    "price",
    "members",
    "unwatched",
)


def say_details(problem: Membership, plan: MembershipPlan) -> list[str]:
    """Return sentences on a plan of one service: its members, cheaper ones, and other timeouts."""
    items = read_plan(problem, plan)
    if len(items) != 1:
        return []
    item = items[0]
    sentences = [f"{say_places(problem, item.placement)}{say_cheaper(plan)}"]
    sentences += [
        text
        for text in (say_timeouts(problem, item), say_rounds(problem, item), say_joins(problem, plan))
        if text
    ]
    both = evaluate(problem, item.service, item.placement).two_leaders
    if both == 0:
        sentences.append("Two leaders: never")
    return sentences


def say_places(problem: Membership, placement: Placement) -> str:
    """Return the number of members, and their numbers by site: `5 members, 2+2+1 in 3 regions`."""
    words = counted(placement.size, "members")
    voters = sum(count for site, count in placement.members.items() if problem.is_witness[site])
    if voters:
        words += f" ({counted(voters, 'witnesses')})"
    for kind in ("region", "zone", "host"):
        by_site: Counter[int] = Counter()
        for site, count in placement.members.items():
            by_site[problem.site_above(site, kind)] += count
        if len(by_site) > 1 or kind == "host":
            parts = "+".join(str(count) for count in sorted(by_site.values(), reverse=True))
            return f"{words}, {parts} in {counted(len(by_site), f'{kind}s')}"
    return words


def say_cheaper(plan: MembershipPlan) -> str:
    """Return the fewest seconds down of cheaper members: `; nothing cheaper is below 31 s a month`."""
    if plan.cheaper is None or not len(plan.cheaper):
        return ""
    return f"; nothing cheaper is below {number(float(plan.cheaper['down_s'].min()))} s a month (proven)"


def say_rounds(problem: Membership, item: ServicePlan) -> str:
    """Return the rounds of a decision beside members that lie, and those of the worst case."""
    placement, faults = item.placement, item.service.faults
    if placement.rule not in AGREEMENT_RULES:
        return ""
    length = amount(round_ms(problem, placement.members), "ms")
    words = f"A decision takes {counted(placement.rounds, 'rounds')} of {length}"
    largest = ROUNDS[placement.rule](faults, faults)
    return (
        f"{words}; {largest} beside {counted(faults, 'members')} that lie"
        if largest > placement.rounds
        else words
    )


def say_joins(problem: Membership, plan: MembershipPlan) -> str:
    """Return the time until all processes of a group know one that joins, or each other."""
    seconds = join_metrics(problem, plan)["join_s"]
    return (
        ""
        if seconds is None
        else f"All {problem.group.members:,} processes know a join after {number(seconds)} s"
    )


def say_timeouts(problem: Membership, item: ServicePlan) -> str:
    """Return the false alarms of the timeout, and those of a shorter one."""
    placement = item.placement
    watchers = watchers_of(problem, placement)
    if not watchers or placement.kind in (SWIM, NODE):
        return ""
    shorter = max(placement.timeout_s - placement.interval_s, placement.interval_s)
    timeouts = np.array([placement.timeout_s, shorter])
    alarms = monthly_alarms(problem, placement.leader, watchers, placement.interval_s, timeouts)
    daily = alarms * DAY_S / MONTH_S
    words = f"Timeout {amount(placement.timeout_s * 1e3, 'ms')}: {_say_alarms(float(daily[0]))}"
    if shorter < placement.timeout_s:
        words += f"; {amount(shorter * 1e3, 'ms')}: {_say_alarms(float(daily[1]))}"
    return words


def _say_alarms(alarms: float) -> str:
    """Return false alarms a day in words; of less than one, the time between two of them."""
    if alarms >= 1 or alarms == 0:
        return f"{number(alarms)} false {'alarm' if alarms == 1 else 'alarms'} a day"
    days = 1 / alarms
    if days > MAX_YEARS * YEAR_DAYS:
        return f"less than one false alarm in {MAX_YEARS:,} years"
    between = f"{number(days / YEAR_DAYS)} years" if days > 2 * YEAR_DAYS else f"{number(days)} days"
    return f"one false alarm in {between}"


HEADLINE: Final = Headline(
    metric="down_s_per_month",
    verb="is down {}",
    then="price",
    then_words="for",
    losses={"two_leaders_s": "has two leaders for {}", "unwatched": "cannot watch {}"},
    worst=("two_leaders_s",),
    cost="down_s_per_month",
    table=HEADLINE_TABLE,
    details=say_details,
    required={"one_leader": "two_leaders_s"},
)
LIMITS: Final = {
    "hosts": "sites with more members than hosts",
    "data": "services with too many witnesses",
    "joins": "groups with more joins than seeds can serve",
    "quorums": "services whose quorums may not meet",
    "one_leader": "services with two leaders",
    "commit": "services with late decisions",
    "price": "services over their price",
    "timeout": "services with too short a timeout",
    "rules": "switches with too many rules",
    "names": "names that are too long",
    "capacity": "services with overloaded managers",
}


def measure(
    problem: Membership,
    plan: MembershipPlan,
    previous: MembershipPlan | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric."""
    items = read_plan(problem, plan)
    return measure_services(problem, items) | fence_metrics(problem, plan) | join_metrics(problem, plan)


def measure_services(problem: Membership, items: Sequence[ServicePlan]) -> dict[str, float | None]:
    """Return a value for every metric of the placements of all services; those of fences have none."""
    down = [evaluate(problem, item.service, item.placement) for item in items]
    price = sum(price_of(problem, item.placement) for item in items)
    cost = price + sum(
        item.service.down_cost_per_s * item_down.total for item, item_down in zip(items, down, strict=True)
    )
    messages = [watch_messages(problem, item.service, item.placement) for item in items]
    sent = sum(
        rate * problem.watcher(item.placement.kind).bytes for rate, item in zip(messages, items, strict=True)
    )
    return {
        **_downtime_metrics(problem, items, down),
        "commit_ms": max(item.commit_ms for item in items),
        "price": price,
        "cost": cost,
        "members": float(sum(item.placement.size for item in items)),
        "zones": _mean_sites(problem, items, "zone"),
        "regions": _mean_sites(problem, items, "region"),
        "unwatched": sum(item.placement.unwatched for item in items),
        "messages_per_s": sum(messages),
        "bytes_per_s": sent,
        **_decision_metrics(items),
        **dict.fromkeys(("rules_most", "cut_beside", "fence_ms", "excluded_switches", "no_epoch_share")),
        **dict.fromkeys(JOINS),
    }


def _decision_metrics(items: Sequence[ServicePlan]) -> Mapping[str, float | None]:
    """Return the messages and values of a decision: to a quorum and back, or in rounds to all."""
    messages, values = [], []
    for item in items:
        placement, others = item.placement, item.placement.size - 1
        is_agreement = placement.rule in AGREEMENT_RULES
        messages.append(placement.rounds * placement.size * others if is_agreement else 2 * others)
        values.append(values_sent(placement.rule, placement.size, placement.rounds) if is_agreement else 1.0)
    counted_values = [value for value in values if value is not None]
    return {
        "decision_messages": float(sum(messages)),
        "decision_values": max(counted_values) if len(counted_values) == len(values) else None,
    }


def _downtime_metrics(
    problem: Membership, items: Sequence[ServicePlan], down: Sequence[Downtime]
) -> Mapping[str, float | None]:
    detect = [detection_of(problem, item.placement) for item in items]
    return {
        "down_s_per_month": float(np.mean([item_down.total for item_down in down])),
        "two_leaders_s": PER_YEAR * sum(item_down.two_leaders for item_down in down),
        "false_alarms": sum(item_down.alarms for item_down in down) * DAY_S / MONTH_S,
        "detect_s": float(np.mean(detect)),
        "no_quorum_s": float(np.mean([item_down.no_quorum for item_down in down])),
        "cut_off_s": sum(item_down.cut_off for item_down in down),
    }


def _mean_sites(problem: Membership, items: Sequence[ServicePlan], kind: str) -> float:
    counts = [len({problem.site_above(site, kind) for site in item.placement.members}) for item in items]
    return float(np.mean(counts))
