"""Failures by analysis: next leaders, and seconds down beside the enumeration of all failures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import planner
from planner.contract.units import MONTH_S
from planner.errors import InputError
from planner.options import Options
from planner_models.membership import Membership
from planner_models.membership.designs.raft import plan as plan_raft
from planner_models.membership.plan.check import read_plan
from planner_models.membership.plan.failures import analyse_failures, default_sets, find_failures
from planner_models.membership.problem.generators import small
from planner_models.membership.simulation.study import YEAR_S, run_services, tabulate_services
from tests.models.membership.failures import live_probabilities
from tests.models.membership.problems import memberships


@settings(max_examples=15)
@given(memberships())
def test_time_without_quorum_after_each_failure_is_that_of_the_enumeration(problem: Membership) -> None:
    plan = plan_raft(problem).plan
    assert plan is not None
    totals = plan.members.groupby("site")["count"].sum()
    members = {str(site): int(count) for site, count in totals.items()}
    possible = find_failures(problem, default_sets(problem))
    analysis = analyse_failures(problem, plan, "raft", {}, possible, None, Options())
    assert analysis is not None
    outcomes, _ = analysis.evaluate(np.arange(len(possible.failures)))
    quorum = sum(members.values()) // 2 + 1
    for failure, outcome in zip(possible.failures, outcomes, strict=True):
        lost = [problem.site_index.get_loc(name) for name in failure.adjustments["lost"]]
        alive = {
            site: count
            for site, count in members.items()
            if not set(lost) & set(problem.tree.paths[problem.row_of(site)])
        }
        if sum(alive.values()) < quorum:
            expected = MONTH_S
        else:
            states = live_probabilities(problem, alive)
            expected = MONTH_S * sum(share for live, share in states.items() if live < quorum)
        assert outcome.metrics["no_quorum_s"] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_nearest_live_member_leads_and_a_lost_region_leaves_none() -> None:
    result = planner.failures(small(), design="raft")
    leaders = result.sections[0].frame.set_index("failure")["leader of store"]
    assert leaders["cloud"] == leaders["east"] == "none"
    assert leaders["east a"] == "none"
    assert leaders["east b"] == "east a"
    assert {failure.kind for failure in result.failures} == {"site", "shared risk"}
    assert all(failure.busiest is None for failure in result.failures)


def test_a_witness_keeps_the_quorum_and_does_not_lead() -> None:
    problem = small()
    cells = ["yes" if name == "east b" else "" for name in problem.site_names]
    assert problem.current is not None
    problem = replace(
        problem,
        current=problem.current.assign(site=["west a", "east a", "east b"]),
        sites=problem.sites.assign(witness=cells),
    )
    result = planner.failures(problem, design="raft")
    leaders = result.sections[0].frame.set_index("failure")["leader of store"]
    assert leaders["west a"] == "east a"
    assert leaders["east a"] == "west a"
    assert leaders["east b"] == "west a"
    plan = plan_raft(problem).plan
    assert plan is not None
    replayed = replace(problem, events=None)
    runs = run_services(replayed, read_plan(replayed, plan), 300 * YEAR_S, np.random.default_rng(1))
    row = tabulate_services(replayed, runs, 300 * YEAR_S).iloc[0]
    assert row["failovers"] == pytest.approx(row["closed_failovers"], rel=0.1)
    assert row["down_s"] == pytest.approx(row["closed_down_s"], rel=0.1)


def test_restorations_of_traffic_are_refused() -> None:
    with pytest.raises(InputError, match=r"restoration is local, must be none \(members stay\)"):
        planner.failures(small(), design="raft", restoration="local")
