"""Groups that find each other: tables of a plan, their check by counting, and their metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.contract.plan import Violations
from planner.errors import PlanRejected, did_you_mean
from planner_models.membership.plan.plan import SEEDS, SPREAD, MembershipPlan
from planner_models.membership.problem.problem import Group, Membership
from planner_models.membership.protocols.discovery import rendezvous_rounds
from planner_models.membership.protocols.gossip import Gossip, expected_knowers, missed_share

METRICS: tuple[str, ...] = ("join_s", "join_rounds", "join_messages", "join_busiest", "missed")


@dataclass(frozen=True, kw_only=True)
class Joining:
    """Rounds and messages in which a group finds each other: see the plan's table `gossip`."""

    protocol: str
    fan_out: int
    rounds: int
    messages: float
    busiest: float


def as_gossip(group: Group) -> Gossip:
    """Return the gossip of a group."""
    return Gossip(members=group.members, fan_out=group.fan_out, retransmit=group.retransmit, loss=group.loss)


def tabulate_seeds(problem: Membership, counts: Mapping[int, int]) -> pd.DataFrame:
    """Return the table of seeds, from their number by site."""
    rows = [(problem.site_names[site], float(count)) for site, count in sorted(counts.items())]
    return pd.DataFrame(rows, columns=list(SEEDS.columns))


def tabulate_joining(group: Group, joining: Joining) -> pd.DataFrame:
    """Return the table `gossip` of a plan."""
    row = (
        joining.protocol,
        float(joining.fan_out),
        group.interval_s * 1e3,
        float(group.retransmit),
        float(joining.rounds),
        joining.messages,
        joining.busiest,
    )
    return pd.DataFrame([row], columns=list(SPREAD.columns))


def gossip_rounds(group: Group) -> int:
    """Return the rounds until all but half a member know news, in the mean."""
    return max(len(expected_knowers(as_gossip(group))) - 1, 1)


def check_joining(problem: Membership, plan: MembershipPlan) -> Violations:
    """Return joins that seeds cannot serve; raises PlanRejected for rounds that no group can keep.

    A process that knows a name sends it to `busiest` others in a round at most, so that those that know it
    are multiplied by no more than `busiest` + 1 in each.
    """
    if plan.gossip is None or plan.seeds is None:
        if plan.gossip is not None or plan.seeds is not None:
            raise PlanRejected("gossip and seeds: a plan has both of them, or none")
        return Violations()
    for row, site in enumerate(plan.seeds["site"].astype(str), start=1):
        if site not in problem.site_index:
            raise PlanRejected(
                f"seeds row {row}: '{site}' is no site{did_you_mean(site, problem.site_index)}"
            )
    if len(plan.gossip) != 1:
        raise PlanRejected(f"gossip: has {len(plan.gossip)} rows, must have one")
    group, line = problem.group, plan.gossip.iloc[0]
    rounds, busiest = int(line["rounds"]), float(line["busiest"])
    fewest = math.log(group.members) / math.log(busiest + 1)
    if rounds < fewest - 1e-9:
        raise PlanRejected(
            f"gossip: rounds is {rounds}; with {busiest:,.0f} messages of a process in a round, "
            f"{group.members:,} processes need {math.ceil(fewest)}"
        )
    expected = {"gossip": gossip_rounds(group)}
    if line["protocol"] == "rendezvous":
        expected["rendezvous"] = rendezvous_rounds(group.members, int(line["fan_out"]))
    _require_messages(group, rounds, busiest, float(line["messages"]))
    needed = expected.get(str(line["protocol"]), rounds)
    if needed != rounds:
        raise PlanRejected(f"gossip: rounds is {rounds}, {line['protocol']} takes {needed}")
    served = float(plan.seeds["count"].sum()) * group.syncs_per_s
    over = ["seeds"] if group.joins_per_s > served * (1 + 1e-9) else []
    return Violations.of(
        "joins",
        where=over,
        amount=np.array([group.joins_per_s] * len(over)),
        allowed=np.array([served] * len(over)),
        unit="joins/s",
    )


def _require_messages(group: Group, rounds: int, busiest: float, messages: float) -> None:
    """Raise PlanRejected for fewer messages than processes that hear, and more than all can send."""
    fewest, largest = group.members - 1.0, rounds * group.members * max(busiest, group.retransmit)
    if not fewest * (1 - 1e-9) <= messages <= largest * (1 + 1e-9):
        raise PlanRejected(
            f"gossip: messages is {messages:,.0f}, must be {fewest:,.0f} to {largest:,.0f} for "
            f"{group.members:,} processes, {rounds} rounds and {busiest:,.0f} messages of one in a round"
        )


def join_metrics(problem: Membership, plan: MembershipPlan) -> dict[str, float | None]:
    """Return the metrics of a group; None for a plan without one.

    By gossip a process waits for a sync with a seed behind those that join in the same second, then the news
    of it spread; without seeds none joins, and the time is None. By all other protocols the whole group finds
    each other at once.
    """
    if plan.gossip is None or plan.seeds is None or not len(plan.gossip):
        return dict.fromkeys(METRICS)
    group, line = problem.group, plan.gossip.iloc[0]
    rounds, interval_s = float(line["rounds"]), float(line["interval_ms"]) / 1e3
    is_gossip = line["protocol"] == "gossip"
    served = float(plan.seeds["count"].sum()) * group.syncs_per_s
    waits = 0.0 if not is_gossip else group.joins_per_s / served if served else math.inf
    return {
        "join_s": waits + rounds * interval_s if math.isfinite(waits) else None,
        "join_rounds": rounds,
        "join_messages": float(line["messages"]),
        "join_busiest": float(line["busiest"]),
        "missed": group.members * missed_share(as_gossip(group)) if is_gossip else 0.0,
    }
