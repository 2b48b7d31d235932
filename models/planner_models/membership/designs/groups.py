"""Groups that gossip: tables of a plan beside its members, and joins by gossip, the usual way."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from planner_models.membership.designs.rules import spread
from planner_models.membership.plan.joining import Joining, gossip_rounds, tabulate_joining, tabulate_seeds
from planner_models.membership.problem.problem import Group, Membership


@dataclass(frozen=True, kw_only=True, eq=False)
class Extras:
    """Tables of a plan beside its members; see `MembershipPlan`."""

    cheaper: pd.DataFrame | None = None
    fences: pd.DataFrame | None = None
    naming: pd.DataFrame | None = None
    seeds: pd.DataFrame | None = None
    gossip: pd.DataFrame | None = None


def make_extras(problem: Membership, joining: Joining) -> Extras:
    """Return the tables of a group: its seeds, over the zones of a region, and the way of joining."""
    group = problem.group
    counts = spread(problem, group.seeds) or {int(problem.leaves[0]): group.seeds}
    missing = group.seeds - sum(counts.values())
    first = min(counts)
    counts[first] += max(missing, 0)  # further seeds beside the first, on hosts of other processes
    return Extras(seeds=tabulate_seeds(problem, counts), gossip=tabulate_joining(group, joining))


def join_by_gossip(problem: Membership) -> Extras:
    """Return the seeds of a group and the spread of joins by gossip, with its usual settings."""
    return make_extras(problem, count_gossip(problem.group))


def count_gossip(group: Group) -> Joining:
    """Return the rounds and messages in which a join is known to all by gossip."""
    each = group.retransmit * len(str(group.members))
    return Joining(
        protocol="gossip",
        fan_out=group.fan_out,
        rounds=gossip_rounds(group),
        messages=float(group.members * each),
        busiest=float(group.fan_out),
    )
