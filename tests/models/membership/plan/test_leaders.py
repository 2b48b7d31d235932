"""Failures of leaders in the long run, and timelines of cuts, beside simulated years and closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.contract.units import MONTH_S
from planner_models.membership.designs.fenced import plan_fenced
from planner_models.membership.designs.raft import plan as plan_raft
from planner_models.membership.designs.reported import plan_kill_host, plan_short_timeouts
from planner_models.membership.plan.check import ServicePlan, read_plan
from planner_models.membership.plan.evaluation import evaluate
from planner_models.membership.plan.leaders import evaluate_long_run, follow_failures
from planner_models.membership.plan.timeline import (
    LEADS,
    LEADS_TOO,
    cut_site,
    draw_cut,
    excludes_leader,
    follow_cut,
)
from planner_models.membership.problem.generators import regions
from planner_models.membership.problem.problem import Membership
from planner_models.membership.simulation.replay import union_s
from planner_models.membership.simulation.study import run_services

DISTANCE = 0.04
"""Of the closed form from 3,000 simulated years: about 2,000 failovers or more, and overlaps."""


def uneven_problem(seed: int) -> tuple[Membership, ServicePlan]:
    """Return regions whose sites fail at very different rates, with members as usual."""
    rng = np.random.default_rng(seed)
    problem = regions(regions=seed % 3 + 1, zones=3, hosts=2, faults=1 + seed % 2, loss=0.0, seed=seed)
    factors = rng.lognormal(0.0, 1.2, len(problem.sites))
    sites = problem.sites.assign(fails_per_month=problem.sites["fails_per_month"] * factors)
    problem = replace(problem, sites=sites)
    plan = plan_raft(problem).plan
    assert plan is not None
    return problem, read_plan(problem, plan)[0]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_failures_of_every_leader_are_those_of_simulated_years(seed: int) -> None:
    problem, item = uneven_problem(seed)
    months = 36_000
    run = run_services(problem, [item], months * MONTH_S, np.random.default_rng(seed))[0]
    long_run = follow_failures(problem, item.placement)
    assert long_run.failovers == pytest.approx(len(run.failovers[0]) / months, rel=DISTANCE)
    assert long_run.share.sum() == pytest.approx(1.0)
    closed = evaluate_long_run(problem, item.service, item.placement)
    seconds = (run.down_s - union_s(run.unserved)) / months
    assert closed.total - closed.no_quorum == pytest.approx(seconds, rel=DISTANCE)


def test_where_all_members_fail_alike_the_first_leader_says_all() -> None:
    problem = regions(regions=1, zones=3, hosts=1, faults=1)
    is_zone = problem.sites["kind"].isin(["zone", "host"])
    rate = problem.sites["fails_per_month"].where(is_zone, 0.0)
    problem = replace(problem, sites=problem.sites.assign(fails_per_month=rate))
    plan = plan_raft(problem).plan
    assert plan is not None
    item = read_plan(problem, plan)[0]
    first, later = (form(problem, item.service, item.placement) for form in (evaluate, evaluate_long_run))
    assert later.total == pytest.approx(first.total)


def split_brain() -> Membership:
    problem = regions(regions=1, zones=3, hosts=2, faults=1, managers=3, loss=0.0)
    return replace(problem, services=problem.services.assign(protocol="definitive"))


def test_two_leaders_of_a_cut_are_those_of_the_closed_form() -> None:
    problem = split_brain()
    plan = plan_short_timeouts(problem).plan
    assert plan is not None
    item = read_plan(problem, plan)[0]
    frame = follow_cut(problem, item)
    assert frame is not None
    both = frame[frame["what"] == LEADS_TOO]
    site = cut_site(problem, item.placement)
    assert site is not None
    rate = float(problem.tree.rate[site])
    expected = evaluate(problem, item.service, item.placement).two_leaders
    assert rate * float((both["to_s"] - both["from_s"]).sum()) == pytest.approx(expected)
    drawing = draw_cut(problem, item)
    assert drawing is not None
    assert set(drawing.frame["lane"]) == set(frame["member"])


def test_only_fences_exclude_a_leader_that_is_cut_off() -> None:
    problem = split_brain()
    excluded = [
        excludes_leader(problem, read_plan(problem, plan)[0])
        for plan in (plan_fenced(problem).plan, plan_raft(problem).plan, plan_short_timeouts(problem).plan)
        if plan is not None
    ]
    assert excluded == [True, False, False]


def test_no_two_members_lead_at_a_time_by_quorums_or_where_hosts_are_stopped() -> None:
    problem = split_brain()
    for plan in (plan_raft(problem).plan, plan_kill_host(problem).plan):
        assert plan is not None
        frame = follow_cut(problem, read_plan(problem, plan)[0])
        assert frame is not None
        leads = frame[frame["what"].str.startswith("leads")]
        assert len(leads) <= 1
        assert set(leads["what"]) <= {LEADS}
