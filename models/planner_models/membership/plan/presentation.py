"""Presentation of plans of system `membership`: drawings, and elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact
from planner.contract.studies import Decided, Section
from planner.contract.units import MONTH_S
from planner.formatting import amount, counted
from planner.options import Options
from planner_models.membership.plan.check import ServicePlan, read_plan
from planner_models.membership.plan.evaluation import (
    commit_time_ms,
    evaluate,
    monthly_alarms,
    watchers_of,
)
from planner_models.membership.plan.plan import AGREEMENT_RULES, MembershipPlan
from planner_models.membership.plan.timeline import draw_cut
from planner_models.membership.problem.drawing import SITE, draw_sites
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.schema import KINDS, NODE, SWIM

CAUSES: Final = ("no_quorum", "detection", "failover", "false_alarms")
CAUSE_WORDS: Final = {
    "no_quorum": "missing quorum",
    "detection": "detection",
    "failover": "failover",
    "false_alarms": "false alarms",
}
POINTS: Final = 60
NOBODY: Final = "nobody leads, a quorum agrees"


def draw(problem: Membership, plan: MembershipPlan) -> Sequence[Drawing]:
    """Draw members on their sites, seconds down by cause and by timeout, and who leads after a cut."""
    items = read_plan(problem, plan)
    members: dict[int, int] = {}
    for item in items:
        for site, count in item.placement.members.items():
            members[site] = members.get(site, 0) + count
    drawings: list[Drawing] = [
        draw_sites(
            problem,
            "Members, and who leads if a site fails",
            members,
            _notes(problem, items),
            [item.placement.leader for item in items if item.placement.rule not in AGREEMENT_RULES],
        ),
        draw_causes(problem, items),
    ]
    more = (draw_cut(problem, items[0]), draw_timeouts(problem, items[0]))
    return [*drawings, *(drawing for drawing in more if drawing is not None)]


def next_leader(problem: Membership, item: ServicePlan, failed: int) -> int | None:
    """Return the site of the leader while a site is down; None where there is no quorum then."""
    placement = item.placement
    alive = {
        site: count for site, count in placement.members.items() if failed not in problem.tree.paths[site]
    }
    if sum(alive.values()) < placement.quorum:
        return None
    if placement.leader in alive:
        return placement.leader
    may_lead = [site for site in sorted(alive) if not problem.is_witness[site]]
    return min(
        may_lead, key=lambda site: commit_time_ms(problem, alive, site, placement.quorum), default=None
    )


def say_leader(problem: Membership, item: ServicePlan, failed: int) -> str | None:
    """Return the site of the leader while a site is down, in words; None where there is no quorum then."""
    leader = next_leader(problem, item, failed)
    if leader is None:
        return None
    return NOBODY if item.placement.rule in AGREEMENT_RULES else problem.site_names[leader]


def _notes(problem: Membership, items: Sequence[ServicePlan]) -> Mapping[int, str]:
    """Return the leader while each site is down, in words."""
    notes: dict[int, str] = {}
    for site in range(len(problem.sites)):
        texts = []
        for item in items if len(items) <= 3 else ():
            leader = say_leader(problem, item, site)
            who = "no quorum" if leader is None else NOBODY if leader == NOBODY else f"'{leader}' leads"
            texts.append(f"if it fails: {who}" if len(items) == 1 else f"{item.service.name}: {who}")
        notes[site] = "; ".join(texts)
    return notes


def draw_causes(problem: Membership, items: Sequence[ServicePlan]) -> Curve:
    """Return bars of the seconds down in a month by cause, the mean over services."""
    parts = [evaluate(problem, item.service, item.placement) for item in items]
    seconds = [float(np.mean([getattr(item_down, cause) for item_down in parts])) for cause in CAUSES]
    frame = pd.DataFrame({"cause": [CAUSE_WORDS[cause] for cause in CAUSES], "seconds_down": seconds})
    return Curve(title="Time down in a month by cause", frame=frame, units={"seconds_down": "s"}, bars=True)


def draw_timeouts(problem: Membership, item: ServicePlan) -> Curve | None:
    """Return seconds down in a month against the timeout, by cause; None where nobody watches."""
    placement, service = item.placement, item.service
    watchers = watchers_of(problem, placement)
    if not watchers or placement.kind in (SWIM, NODE):
        return None
    timeouts = np.geomspace(placement.interval_s, max(10.0, 4 * placement.timeout_s), POINTS)
    alarms = monthly_alarms(problem, placement.leader, watchers, placement.interval_s, timeouts)
    rate = float(problem.tree.leaf_rate[placement.leader])
    detect = rate * np.maximum(timeouts - placement.interval_s / 2, 0.0)
    frame = pd.DataFrame(
        {
            "timeout": timeouts * 1e3,
            "detection": np.clip(detect, 1e-6, MONTH_S),
            "false_alarms": np.clip(alarms * service.failover_s, 1e-6, MONTH_S),
        }
    )
    return Curve(
        title="Time down in a month against the timeout",
        frame=frame,
        units={"timeout": "ms", "detection": "s", "false_alarms": "s"},
        log_x=True,
        log_y=True,
    )


def seconds_by_kind(problem: Membership, item: ServicePlan) -> dict[str, float]:
    """Return the seconds without quorum that each kind of site causes: those that its failures add."""
    total = evaluate(problem, item.service, item.placement).no_quorum
    seconds = {}
    for number, kind in enumerate(KINDS):
        is_kind = problem.kind == number
        if is_kind.any():
            rate = np.where(is_kind, 0.0, problem.sites["fails_per_month"].to_numpy(float))
            better = replace(problem, sites=problem.sites.assign(fails_per_month=rate))
            seconds[kind] = total - evaluate(better, item.service, item.placement).no_quorum
    return seconds


def name_sites(problem: Membership) -> Sequence[str]:
    """Return the names of all sites."""
    return problem.site_names


def describe_site(
    problem: Membership,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return failures and members of a site, and who leads while it is down."""
    site = problem.site_names.index(SITES.require(problem, name))
    tree = problem.tree
    facts = [
        Fact(label="Kind", value=KINDS[int(problem.kind[site])]),
        Fact(label="Failures in a month", value=float(tree.rate[site])),
        Fact(label="Time to repair", value=float(tree.repair_s[site]), unit="s"),
    ]
    rows = []
    for item in read_plan(problem, decided.plan):
        here = sum(count for leaf, count in item.placement.members.items() if site in tree.paths[leaf])
        rows.append((item.service.name, here, say_leader(problem, item, site) or "none"))
    frame = pd.DataFrame(rows, columns=["service", "members_here", "leader_while_it_is_down"])
    return ElementReport(
        facts=tuple(facts), sections=(Section(title="Services while the site is down", frame=frame),)
    )


SITES: Final = ElementKind[Membership](
    name=SITE,
    names=name_sites,
    actions=(
        Action(name="Fail", state="failed", parameter="lost", role="failure"),
        Action(
            name="Halve its failures",
            state="with half the failures",
            parameter="rate_sites",
            value=0.5,
            role="upgrade",
        ),
    ),
    describe=describe_site,
)


def name_services(problem: Membership) -> Sequence[str]:
    """Return the names of all services."""
    return [item.name for item in problem.service_list]


def describe_service(
    problem: Membership,
    decided: Decided,
    name: str,
    options: Options,  # noqa: ARG001 - the signature of `describe`
) -> ElementReport:
    """Return the members of a service, its seconds down, and the sites of its members."""
    SERVICES.require(problem, name)
    item = next(item for item in read_plan(problem, decided.plan) if item.service.name == name)
    placement = item.placement
    facts = (
        Fact(label="Members", value=counted(placement.size, "members")),
        Fact(label="Managers", value=counted(sum(placement.managers.values()), "managers")),
        Fact(
            label="Down in a month",
            value=amount(evaluate(problem, item.service, placement).total, "s"),
        ),
    )
    roles = (("member", placement.members), ("manager", placement.managers))
    rows = [
        (problem.site_names[site], role, float(count))
        for role, counts in roles
        for site, count in sorted(counts.items())
    ]
    frame = pd.DataFrame(rows, columns=["site", "role", "members_here"])
    return ElementReport(facts=facts, sections=(Section(title="Sites of the service", frame=frame),))


SERVICES: Final = ElementKind[Membership](
    name="service",
    names=name_services,
    actions=(
        Action(
            name="Tolerate one more failure",
            state="with one more failure tolerated",
            parameter="more_faults",
            value=1,
            role="upgrade",
        ),
        Action(
            name="Add two managers",
            state="with two managers more",
            parameter="more_managers",
            value=2,
            role="upgrade",
        ),
    ),
    describe=describe_service,
)


def name_empty_sites(problem: Membership) -> Sequence[str]:
    """Return the names of the sites that could have members, and have no hosts."""
    return [problem.site_names[leaf] for leaf in problem.leaves.tolist() if not problem.tree.capacity[leaf]]


EMPTY_SITES: Final = ElementKind[Membership](
    name="site without hosts",
    names=name_empty_sites,
    actions=(Action(name="Add a witness", state="with a witness", parameter="witnesses", role="upgrade"),),
)
ELEMENTS: Final = (SITES, SERVICES, EMPTY_SITES)
