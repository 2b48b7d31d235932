"""Check that tables are a plan: members at sites with hosts, quorums that meet, limits that hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.plan import Violations
from planner.contract.tolerances import EXACT, differs, exceeds
from planner.errors import PlanRejected, did_you_mean
from planner_models.membership.plan.evaluation import evaluate, longest_rtt_s, watch_messages
from planner_models.membership.plan.fences import check_fences, check_naming, fence_effects
from planner_models.membership.plan.joining import check_joining
from planner_models.membership.plan.plan import (
    AGREEMENT_RULES,
    FENCE_RULE,
    MAJORITY_RULE,
    QUORUM_RULES,
    RULES_WITH_TWO_LEADERS,
    RULES_WITHOUT_MANAGERS,
    MembershipPlan,
    Placement,
)
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import LEADER, LEASE, MANAGER, WITNESS
from planner_models.membership.protocols.agreement import ROUNDS

PER_YEAR: Final = 365 / 30
"""Months in a year."""
Row = dict[Hashable, Any]


@dataclass(frozen=True, kw_only=True)
class ServicePlan:
    """The rows of one service, as a placement, with its commit time."""

    service: Service
    placement: Placement
    commit_ms: float


def read_plan(problem: Membership, plan: MembershipPlan) -> list[ServicePlan]:
    """Return the placement of each service; raises PlanRejected where the tables are no plan."""
    _require_names(problem, plan)
    rows = {
        name: _rows_by_service(frame)
        for name, frame in plan.to_tables().items()
        if "service" in frame.columns
    }
    fences = fence_effects(problem, plan) if (plan.protocol["name"] == FENCE_RULE).any() else (0.0, 0.0)
    return [_read_service(problem, service, rows, fences) for service in problem.service_list]


def _rows_by_service(frame: pd.DataFrame) -> dict[str, list[Row]]:
    """Return the rows of each service, in their order."""
    rows: dict[str, list[Row]] = {}
    for row in frame.to_dict("records"):
        rows.setdefault(str(row["service"]), []).append(row)
    return rows


def _require_names(problem: Membership, plan: MembershipPlan) -> None:
    """Raise PlanRejected for services and sites that are none, and for services without a row."""
    services = dict.fromkeys(service.name for service in problem.service_list)
    for name, frame in plan.to_tables().items():
        for row, service in enumerate(frame["service"].astype(str) if "service" in frame else ()):
            if service not in services:
                hint = did_you_mean(service, list(services))
                raise PlanRejected(f"{name} row {row + 1}: '{service}' is no service{hint}")
    for row, site in enumerate(plan.members["site"].astype(str)):
        if site not in problem.site_index:
            hint = did_you_mean(site, problem.site_index)
            raise PlanRejected(f"members row {row + 1}: '{site}' is no site{hint}")
        if problem.tree.children[problem.row_of(site)]:
            raise PlanRejected(
                f"members row {row + 1}: '{site}' has other sites in it, members cannot be there"
            )


def _read_service(
    problem: Membership,
    service: Service,
    tables: Mapping[str, Mapping[str, list[Row]]],
    fences: tuple[float, float],
) -> ServicePlan:
    """Return the placement of a service from the rows of each table by service.

    fences  seconds until a fence is made, and the share of cuts that are not made
    """
    members: dict[int, int] = {}
    managers: dict[int, int] = {}
    leaders = []
    for row in tables["members"].get(service.name, []):
        site, number = problem.row_of(str(row["site"])), int(row["count"])
        counts = managers if row["role"] == MANAGER else members
        counts[site] = counts.get(site, 0) + number
        _require_role(problem, service, site, str(row["role"]))
        if row["role"] == LEADER:
            leaders += [site] * number
    if len(leaders) != 1:
        raise PlanRejected(f"members: service '{service.name}' has {len(leaders)} leaders, must have one")
    protocol, watch = (_row_of(tables[name], name, service) for name in ("protocol", "watch"))
    count = sum(members.values())
    if int(protocol["n"]) != count:
        raise PlanRejected(
            f"protocol: n of service '{service.name}' is {protocol['n']:g}, its members are {count}"
        )
    if int(protocol["quorum"]) > count:
        raise PlanRejected(
            f"protocol: quorum of service '{service.name}' is {protocol['quorum']:g}, must be at most {count}"
        )
    fence_s, unmade_cuts = fences if protocol["name"] == FENCE_RULE else (0.0, 0.0)
    return ServicePlan(
        service=service,
        placement=Placement(
            members=members,
            managers=managers,
            leader=leaders[0],
            rule=str(protocol["name"]),
            quorum=int(protocol["quorum"]),
            kind=str(watch["kind"]),
            interval_s=float(watch["interval_ms"]) / 1e3,
            timeout_s=float(watch["timeout_ms"]) / 1e3,
            unwatched=float(sum(row["targets"] for row in tables.get("shed", {}).get(service.name, []))),
            fence_s=fence_s,
            unmade_cuts=unmade_cuts,
            wait_s=float(watch.get("wait_ms", 0.0)) / 1e3,
            rounds=int(protocol["rounds"]),
        ),
        commit_ms=float(protocol["commit_ms"]),
    )


def _require_role(problem: Membership, service: Service, site: int, role: str) -> None:
    """Raise PlanRejected for a witness where members store data, and for other roles where they do not."""
    if problem.is_witness[site] != (role == WITNESS):
        rule = "only votes" if problem.is_witness[site] else "is no witness"
        raise PlanRejected(
            f"members: service '{service.name}' has a {role} at '{problem.site_names[site]}', where a member "
            f"{rule}"
        )


def _row_of(rows: Mapping[str, list[Row]], name: str, service: Service) -> Row:
    """Return the row of a service; raises PlanRejected where there is none."""
    if service.name not in rows:
        raise PlanRejected(f"{name}: has no row of service '{service.name}'")
    return rows[service.name][0]


def check(problem: Membership, plan: MembershipPlan) -> Violations:
    """Return the constraint violations of the plan, by name.

    hosts       more members at a site than it has hosts
    data        too few members store data: a quorum may have witnesses alone
    quorums     two quorums may share no correct member, or fewer members than the faults need
    one_leader  two members may lead, seconds in a year
    commit      a quorum has a decision later than the limit, ms
    price       members cost more than the limit
    timeout     a timeout is shorter than the interval, or than the longest round-trip time, ms
    rules       a switch has more rules of fences than its capacity
    names       bits of names exceed those that a name has, or give too few applications
    joins       processes join faster than seeds can serve them, 1/s
    capacity    watched processes send more than managers can receive, messages in a second

    raises  PlanRejected where the tables name what is not there, or contradict each other or the delays
    """
    violations = Violations()
    for item in read_plan(problem, plan):
        _check_commit_time(problem, item)
        for limit, amount, allowed, unit in (
            *_quorum_amounts(item),
            *_witness_amounts(problem, item),
            *_limit_amounts(problem, item),
            *_watch_amounts(problem, item),
        ):
            if exceeds(amount, allowed, relative=EXACT):
                violations += Violations.of(
                    limit, where=[item.service.name], amount=[amount], allowed=allowed, unit=unit
                )
        violations += _check_hosts(problem, item)
    return (
        violations + check_fences(problem, plan) + check_naming(problem, plan) + check_joining(problem, plan)
    )


Amounts = list[tuple[str, float, float, str]]


def _check_commit_time(problem: Membership, item: ServicePlan) -> None:
    """Raise PlanRejected where the time until a quorum has a decision is not that of the delays."""
    if item.placement.rule in AGREEMENT_RULES:
        _check_rounds(problem, item)
        return
    row = problem.delay_matrix.rtt_ms[problem.leaf_number[item.placement.leader]]
    times = [0.0]
    for site, count in item.placement.members.items():
        times += [float(row[problem.leaf_number[site]])] * (count - (site == item.placement.leader))
    commit = sorted(times[1:])[item.placement.quorum - 2] if item.placement.quorum > 1 else 0.0
    if differs(item.commit_ms, commit):
        raise PlanRejected(
            f"protocol: commit_ms of service '{item.service.name}' is {item.commit_ms:.9g}, the delays make "
            f"it {commit:.9g}"
        )


def _check_rounds(problem: Membership, item: ServicePlan) -> None:
    """Raise PlanRejected where rounds are too few for any number of liars, or do not last as delays say."""
    placement, faults = item.placement, item.service.faults
    rounds = {ROUNDS[placement.rule](liars, faults) for liars in range(faults + 1)}
    if placement.rounds not in rounds:
        raise PlanRejected(
            f"protocol: rounds of service '{item.service.name}' are {placement.rounds}, must be "
            f"{min(rounds)} to {max(rounds)} for up to {faults} members that lie"
        )
    numbers = problem.leaf_number
    units = [numbers[site] for site, count in placement.members.items() for _ in range(count)]
    longest = max(
        (float(problem.delay_matrix.rtt_ms[pair]) for pair in itertools.combinations(units, 2)), default=0.0
    )
    if differs(item.commit_ms, placement.rounds * longest / 2):
        raise PlanRejected(
            f"protocol: commit_ms of service '{item.service.name}' is {item.commit_ms:.9g}, the delays make "
            f"it {placement.rounds * longest / 2:.9g}"
        )


def _quorum_amounts(item: ServicePlan) -> Amounts:
    """Return the amounts by which quorums may miss each other, and members are too few for the faults."""
    service, placement = item.service, item.placement
    count, faults = placement.size, service.faults
    if placement.rule in QUORUM_RULES:
        may_lie = service.is_byzantine or placement.rule in AGREEMENT_RULES
        shared = faults + 1 if may_lie else 1
        needed = math.ceil((count + shared) / 2)
        fewest = 3 * faults + 1 if may_lie else 1
        return [
            ("quorums", float(needed - placement.quorum), 0.0, "members"),
            ("quorums", float(fewest - count), 0.0, "members"),
        ]
    return [("quorums", float(faults + 1 - count), 0.0, "members")]


def _witness_amounts(problem: Membership, item: ServicePlan) -> Amounts:
    """Return the members that store no data: fewer than a quorum, and two members have data."""
    placement = item.placement
    count = sum(number for site, number in placement.members.items() if problem.is_witness[site])
    is_plain = placement.rule == MAJORITY_RULE and not item.service.is_byzantine
    allowed = max(min(placement.quorum - 1, placement.size - 2), 0) if is_plain else 0
    return [("data", float(count), float(allowed), "witnesses")]


def _limit_amounts(problem: Membership, item: ServicePlan) -> Amounts:
    """Return the amounts that the limits of a service are for."""
    service, placement = item.service, item.placement
    both = evaluate(problem, service, placement).two_leaders * PER_YEAR
    amounts: Amounts = []
    if placement.rule in RULES_WITH_TWO_LEADERS and placement.size > 1:
        amounts.append(("one_leader", max(both, 1e-9), 0.0, "s a year"))
    if placement.rule not in RULES_WITHOUT_MANAGERS and not placement.managers:
        amounts.append(("one_leader", 1.0, 0.0, "s a year"))
    if service.commit_limit_ms is not None:
        amounts.append(("commit", item.commit_ms, service.commit_limit_ms, "ms"))
    if service.price_limit is not None:
        amounts.append(("price", price_of(problem, placement), service.price_limit, ""))
    return amounts


def _watch_amounts(problem: Membership, item: ServicePlan) -> Amounts:
    """Return the times that a timeout must not be below, and the load of managers."""
    placement = item.placement
    shortest = max(placement.interval_s, longest_rtt_s(problem, placement)) if placement.size > 1 else 0.0
    amounts: Amounts = [("timeout", (shortest - placement.timeout_s) * 1e3, 1e-9 * shortest * 1e3, "ms")]
    capacity = problem.watcher(placement.kind).capacity_per_s
    if capacity is not None and placement.kind == LEASE:
        amounts.append(("capacity", watch_messages(problem, item.service, placement), capacity, "messages/s"))
    return amounts


def _check_hosts(problem: Membership, item: ServicePlan) -> Violations:
    """Return the sites with more members, or more managers, than hosts."""
    violations = Violations()
    for counts in (item.placement.members, item.placement.managers):
        sites = np.array(sorted(counts), dtype=np.int64)
        amount = np.array([counts[site] for site in sites.tolist()], dtype=float)
        capacity = problem.tree.capacity[sites].astype(float)
        over = np.flatnonzero(amount > capacity)
        violations += Violations.of(
            "hosts",
            where=[f"{item.service.name} at {problem.site_names[int(sites[row])]}" for row in over],
            amount=amount[over],
            allowed=capacity[over],
            unit="members",
        )
    return violations


def price_of(problem: Membership, placement: Placement) -> float:
    """Return the price of members and managers for a month."""
    counts = (*placement.members.items(), *placement.managers.items())
    return float(sum(count * problem.price[site] for site, count in counts))
