"""The plan of system `membership`: members with their sites, the protocol, and the failure detection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, validate_tables
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.schema import (
    EXCLUDED,
    GRANULARITIES,
    LEADER,
    MANAGER,
    MAX_MEMBERS,
    MAX_MS,
    MEMBER,
    NAME_BITS,
    ROLES,
    ROUND,
    WATCHER_KINDS,
    WITNESS,
)

MAJORITY_RULE, MANAGER_RULE, KILL_RULE, REACTION_RULE = "majority", "managers", "kill", "reaction"
FENCE_RULE, EVICT_RULE = "fence", "evict"
AGREEMENT_RULES: Final = ("psl", "bgp", "gm", "early")
"""Byzantine agreement in rounds, in which nobody leads: PSL80, BGP92, GM98, and Abraham and Dolev 2015."""
RULES: Final = (
    MAJORITY_RULE,
    MANAGER_RULE,
    KILL_RULE,
    REACTION_RULE,
    FENCE_RULE,
    EVICT_RULE,
    *AGREEMENT_RULES,
)
"""Who may lead: whom a quorum elects; whom a majority of managers reports as last; the same after the other
hosts are stopped; whoever suspects the leader; whom managers report after the others are fenced; whom they
start elsewhere some time after they lost sight of the leader; and nobody, where members agree in rounds."""
QUORUM_RULES: Final = (MAJORITY_RULE, *AGREEMENT_RULES)
"""Rules by which a quorum of members must be up."""
RULES_WITHOUT_MANAGERS: Final = (*QUORUM_RULES, REACTION_RULE)
RULES_WITH_TWO_LEADERS: Final = (REACTION_RULE, EVICT_RULE)
"""Rules by which the next leader may serve beside one that is cut off."""
JOINS: Final = ("gossip", "rendezvous", "clusters", "name_dropper", "flooding")
"""How processes of a group find each other: by news of joins, or all at once from whom they know."""
SERVICE: Final = label("name of the service")

MEMBERS: Final = Table(
    name="members",
    about="members and managers of a service at a site",
    columns={
        "service": SERVICE,
        "site": label("site of the members"),
        "role": choice("leader, member, manager, or a witness that only votes", ROLES),
        "count": number("members there", at_least=1, at_most=MAX_MEMBERS, whole=True),
    },
    key=("service", "site", "role"),
)
PROTOCOL: Final = Table(
    name="protocol",
    about="who may lead a service, and the members that must agree",
    columns={
        "service": SERVICE,
        "name": choice("who may lead", RULES),
        "n": number("members that decide", at_least=1, at_most=MAX_MEMBERS, whole=True),
        "quorum": number("members that must agree", at_least=1, at_most=MAX_MEMBERS, whole=True),
        "rounds": number("rounds of messages for a decision", at_least=1, at_most=1e6, whole=True),
        "commit_ms": number("time until a quorum has a decision, ms", at_least=0, at_most=1e12),
    },
    key=("service",),
)
WATCH: Final = Table(
    name="watch",
    about="failure detection of a service",
    columns={
        "service": SERVICE,
        "kind": choice("kind of the detector; round: members agree in rounds", (*WATCHER_KINDS, ROUND)),
        "interval_ms": number("time between two messages, ms", more_than=0, at_most=MAX_MS),
        "timeout_ms": number("silence after which a process is suspected, ms", more_than=0, at_most=MAX_MS),
        "wait_ms": number(
            "time from there until the next one is started, ms",
            at_least=0,
            at_most=MAX_MS,
            optional=True,
            default=0.0,
        ),
    },
    key=("service",),
)
CHEAPER: Final = Table(
    name="cheaper",
    about="least seconds down that cheaper members of a service reach, by their number; proven",
    columns={
        "service": SERVICE,
        "members": number("members that decide", at_least=1, at_most=MAX_MEMBERS, whole=True),
        "price": number("their price for a month", at_least=0),
        "down_s": number("least seconds down in a month", at_least=0),
    },
    key=("service", "members"),
    may_be_empty=True,
)
SHED: Final = Table(
    name="shed",
    about="watched processes that managers cannot follow, because their capacity is short",
    columns={
        "service": SERVICE,
        "targets": number("processes that are not watched", more_than=0, at_most=1e9),
    },
    key=("service",),
    may_be_empty=True,
)
FENCES: Final = Table(
    name="fences",
    about="how a port is fenced, with the rules that this takes there",
    columns={
        "switch": label("name of the switch"),
        "port": label("name of the port"),
        "by": choice(
            "what each rule stops; excluded: the whole switch is, because its rules do not fit",
            (*GRANULARITIES, EXCLUDED),
        ),
        "rules": number("rules at the port", at_least=0, at_most=1e7, whole=True),
    },
    key=("switch", "port"),
    may_be_empty=True,
)
NAMES: Final = Table(
    name="naming",
    about="bits of the names of processes, and the epochs that a cut takes: one row",
    columns={
        "bits_of_epoch": number("bits of the epoch", at_least=0, at_most=NAME_BITS, whole=True),
        "bits_of_app": number("bits of the application", at_least=0, at_most=NAME_BITS, whole=True),
        "bits_of_local": number("bits of processes on a host", at_least=0, at_most=NAME_BITS, whole=True),
        "epochs_per_cut": number("epochs that a cut needs free", at_least=1, at_most=1e7, whole=True),
    },
    may_be_empty=True,
)
SEEDS: Final = Table(
    name="seeds",
    about="seeds at a site, which processes of a group join at",
    columns={
        "site": label("site of the seeds"),
        "count": number("seeds there", at_least=1, at_most=1e5, whole=True),
    },
    key=("site",),
    may_be_empty=True,
)
SPREAD: Final = Table(
    name="gossip",
    about="how processes of a group find each other: one row",
    columns={
        "protocol": choice("how they do", JOINS),
        "fan_out": number("others that one sends to in a round", at_least=1, at_most=1e7, whole=True),
        "interval_ms": number("length of a round, ms", more_than=0, at_most=MAX_MS),
        "retransmit": number("messages for each news, see the problem's table", at_least=1, at_most=1e4),
        "rounds": number("rounds until all know all", at_least=1, at_most=1e7, whole=True),
        "messages": number("messages until then", at_least=1, at_most=1e18),
        "busiest": number(
            "most messages that a process sends or answers in a round", at_least=1, at_most=1e18
        ),
    },
    may_be_empty=True,
)
PLAN_TABLES: Final = (MEMBERS, PROTOCOL, WATCH, CHEAPER, SHED, FENCES, NAMES, SEEDS, SPREAD)


@dataclass(frozen=True, kw_only=True, eq=False)
class MembershipPlan:
    """Members with their sites, the protocol and the failure detection of each service.

    members   service, site, role, count
    protocol  service, name, n, quorum, rounds, commit_ms
    watch     service, kind, interval_ms, timeout_ms
    cheaper   service, members, price, down_s; None: nothing cheaper was searched
    shed      service, targets; None: all are watched
    fences    switch, port, by, rules; None: no ports are fenced
    naming    bits_of_epoch, bits_of_app, bits_of_local, epochs_per_cut; None: names have no epochs
    seeds     site, count; None: no group is planned
    gossip    protocol, fan_out, interval_ms, retransmit, rounds, messages, busiest; None: the same
    """

    members: pd.DataFrame
    protocol: pd.DataFrame
    watch: pd.DataFrame
    cheaper: pd.DataFrame | None = None
    shed: pd.DataFrame | None = None
    fences: pd.DataFrame | None = None
    naming: pd.DataFrame | None = None
    seeds: pd.DataFrame | None = None
    gossip: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)


@dataclass(frozen=True, kw_only=True, eq=False)
class Placement:
    """Sites of the members of one service, and their failure detection.

    members      number of members by site, the leader among them
    managers     number of managers by site
    leader       site of the leader
    rule         who may lead, see `RULES`
    quorum       members that must agree
    kind         of the failure detector
    unwatched    processes that managers cannot follow
    fence_s      time until a fence stands, s
    unmade_cuts  share of cuts of larger sites that cannot be made because no epoch is free
    wait_s       time from a suspicion until the next one is started, s
    rounds       rounds of messages for a decision
    """

    members: Mapping[int, int]
    managers: Mapping[int, int]
    leader: int
    rule: str
    quorum: int
    kind: str
    interval_s: float
    timeout_s: float
    unwatched: float = 0.0
    fence_s: float = 0.0
    unmade_cuts: float = 0.0
    wait_s: float = 0.0
    rounds: int = 1

    @property
    def size(self) -> int:
        """Members that decide."""
        return sum(self.members.values())


def make_plan(
    problem: Membership,
    placements: Mapping[str, Placement],
    commit_ms: Mapping[str, float],
) -> MembershipPlan:
    """Return the plan of placements, by service, with the time until a quorum has a decision."""
    members, protocol, watch, shed = [], [], [], []
    for service, placement in placements.items():
        members += [(service, *row) for row in _tabulate_members(problem, placement)]
        rounds, commit = placement.rounds, commit_ms[service]
        protocol.append((service, placement.rule, placement.size, placement.quorum, rounds, commit))
        times_s = (placement.interval_s, placement.timeout_s, placement.wait_s)
        watch.append((service, placement.kind, *(seconds * 1e3 for seconds in times_s)))
        if placement.unwatched > 0:
            shed.append((service, placement.unwatched))
    return MembershipPlan(
        members=pd.DataFrame(members, columns=list(MEMBERS.columns)),
        protocol=pd.DataFrame(protocol, columns=list(PROTOCOL.columns)),
        watch=pd.DataFrame(watch, columns=list(WATCH.columns)),
        shed=pd.DataFrame(shed, columns=list(SHED.columns)) if shed else None,
    )


def _tabulate_members(problem: Membership, placement: Placement) -> list[tuple[str, str, float]]:
    """Return site, role and count of members and managers: the leader first."""
    rows = [(problem.site_names[placement.leader], LEADER, 1.0)]
    for site, count in sorted(placement.members.items()):
        followers = count - (site == placement.leader)
        if followers:
            role = WITNESS if problem.is_witness[site] else MEMBER
            rows.append((problem.site_names[site], role, float(followers)))
    rows += [
        (problem.site_names[site], MANAGER, float(count))
        for site, count in sorted(placement.managers.items())
        if count
    ]
    return rows


def from_tables(problem: Membership, tables: Mapping[str, pd.DataFrame]) -> MembershipPlan:  # noqa: ARG001
    """Return the plan in some tables; raises InputError with every error in them."""
    frames = validate_tables(PLAN_TABLES, tables, required=("members", "protocol", "watch"))
    return MembershipPlan(**frames)
