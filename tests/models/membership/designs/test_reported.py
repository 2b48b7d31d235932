"""Designs of practice: leases, stopped hosts and plain timeouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.contract.units import MONTH_S
from planner.options import Options
from planner_models.membership import SYSTEM, Membership, MembershipPlan, check, measure
from planner_models.membership.designs import DESIGNS, raft, reported
from planner_models.membership.plan.check import read_plan
from planner_models.membership.plan.evaluation import evaluate, served_states
from planner_models.membership.plan.plan import MANAGER_RULE, Placement
from planner_models.membership.problem.adjustments import adjust
from planner_models.membership.problem.generators import regions, small
from planner_models.membership.problem.problem import Service


def plan_of(problem: Membership, name: str) -> MembershipPlan:
    plan: MembershipPlan | None = SYSTEM.design(name).run(problem).plan
    assert plan is not None
    return plan


def binomial(count: int, down: float) -> np.ndarray:
    states = np.ones(1)
    for _ in range(count):
        states = np.convolve(states, [down, 1 - down])
    return states


@pytest.mark.parametrize(
    ("faults", "managers", "share"),
    [(1, 3, 1.1e-4), (2, 3, 9.9e-6), (3, 3, 1.2e-5), (1, 5, 1.0e-4), (2, 5, 1.3e-6), (3, 5, 4.0e-7)],
)
def test_reports_pay_with_enough_managers_only(faults: int, managers: int, share: float) -> None:
    states = np.outer(binomial(faults + 1, 0.01), binomial(managers, 0.01))
    served = served_states(MANAGER_RULE, faults + 1, 1, managers)
    assert float(states[~served].sum()) == pytest.approx(share, rel=0.05)


def test_two_members_may_lead_with_short_timeouts_only() -> None:
    problem = regions()
    for name in ("raft", "leases", "kill_host", "planned", "short_timeouts"):
        plan = plan_of(problem, name)
        seconds = measure(problem, plan, None)["two_leaders_s"]
        broken = set(check(problem, plan).frame["limit"])
        if name == "short_timeouts":
            assert seconds is not None
            assert seconds > 0
            assert broken == {"one_leader"}
        else:
            assert seconds == 0
            assert "one_leader" not in broken


def test_members_of_today_stay_where_they_are() -> None:
    problem = small()
    plan = raft.plan(problem).plan
    assert plan is not None
    assert plan.members["site"].tolist() == ["east a", "east a", "east b"]


def test_managers_shed_targets_beyond_their_capacity() -> None:
    problem = adjust(small(), target_scale=10.0)
    plan = reported.plan_leases(problem).plan
    assert plan is not None
    assert measure(problem, plan, None)["unwatched"] == pytest.approx(250.0)
    refused = reported.plan_leases(problem, options=Options(service="all"))
    assert refused.plan is None
    assert "too small for 250 of the watched processes" in refused.proof.reasons[0]


def test_without_managers_there_are_no_reports() -> None:
    problem = small()
    changed = replace(problem, services=problem.services.assign(managers=0.0))
    decision = reported.plan_leases(changed)
    assert decision.proof.reasons == ("store: it has no managers: faults + 1 members would have two leaders",)


def test_a_cut_blocks_where_hosts_must_be_stopped() -> None:
    problem: Membership = regions()
    blocked, reported_s = (
        measure(problem, plan_of(problem, name), None)["no_quorum_s"] for name in ("kill_host", "leases")
    )
    assert blocked is not None
    assert reported_s is not None
    assert blocked > 3 * reported_s


def test_no_service_is_down_for_more_than_a_month() -> None:
    """100,000 failures of a leader, each with its detection, add up to more than a month has."""
    problem = small()
    often = replace(problem, sites=problem.sites.assign(fails_per_month=1e5, repair_s=30.0))
    for design in DESIGNS:
        plan = design.run(often).plan
        if plan is None:
            continue
        metrics = measure(often, plan, None)
        assert metrics["down_s_per_month"] <= MONTH_S * (1 + 1e-12), design.name
        assert metrics["two_leaders_s"] <= MONTH_S * 365 / 30 * (1 + 1e-12), design.name
        parts = evaluate(often, *plan_parts(often, plan))
        assert parts.no_quorum + parts.detection + parts.failover + parts.false_alarms <= MONTH_S * (1 + 1e-9)
        proof = design.run(often).proof
        if proof.bound is not None and proof.metric == "down_s_per_month":
            assert proof.bound <= metrics["down_s_per_month"] * (1 + 1e-9)


def plan_parts(problem: Membership, plan: MembershipPlan) -> tuple[Service, Placement]:
    item = read_plan(problem, plan)[0]
    return item.service, item.placement
