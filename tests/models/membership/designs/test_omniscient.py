"""The bound for all rules: no rule on a random problem is below it, and enumeration of places gives it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from planner.contract.units import MONTH_S
from planner_models.membership import Membership
from planner_models.membership.designs.fenced import plan_fenced_planned
from planner_models.membership.designs.omniscient import bound_all
from planner_models.membership.designs.planned import plan
from planner_models.membership.designs.reported import plan_kill_host, plan_leases, plan_short_timeouts
from planner_models.membership.information import observe
from planner_models.membership.plan.availability import live_distribution
from planner_models.membership.plan.metrics import measure
from planner_models.membership.problem.generators import regions, small
from tests.models.membership.failures import placements
from tests.models.membership.problems import memberships


@settings(max_examples=15)
@given(memberships())
def test_no_rule_is_below_the_bound(problem: Membership) -> None:
    problem = replace(problem, services=problem.services.assign(managers=1.0))
    bound = bound_all(problem).proof.bound
    assert bound is not None
    for design in (plan, plan_short_timeouts, plan_leases, plan_kill_host, plan_fenced_planned):
        decision = design(problem)
        if decision.plan is not None:
            down = measure(problem, decision.plan, None)["down_s_per_month"]
            assert down is not None
            assert down >= bound * (1 - 1e-9)


@settings(max_examples=15)
@given(memberships())
def test_enumeration_of_places_gives_the_bound(problem: Membership) -> None:
    service = problem.service_list[0]
    leaves = [leaf for leaf in problem.leaves.tolist() if problem.tree.capacity[leaf] > 0]
    none_up = min(
        float(
            live_distribution(problem.tree, {problem.row_of(name): count for name, count in row.items()})[
                0
            ].sum()
        )
        for row in placements(problem, service.size)
    )
    failovers = min(float(problem.tree.leaf_rate[leaf]) for leaf in leaves) * service.failover_s
    assert bound_all(problem).proof.bound == pytest.approx(MONTH_S * none_up + failovers, rel=1e-6)


def test_a_problem_without_hosts_has_no_bound() -> None:
    problem = small()
    full = replace(problem, sites=problem.sites.assign(state="lost"))
    decision = bound_all(full)
    assert decision.proof.bound is None
    assert "hosts for 0 members" in decision.proof.reasons[0]


def test_old_noisy_and_coarse_rates_are_other_rates() -> None:
    problem = regions(managers=3)
    rate = problem.sites["fails_per_month"].to_numpy(float)
    assert np.array_equal(observe(problem, coarse=0.5).sites["fails_per_month"].to_numpy(float), rate)
    for changes in ({"age_s": 86_400.0}, {"noise": 0.35}):
        observed = observe(problem, **changes).sites["fails_per_month"].to_numpy(float)  # type: ignore[arg-type]
        assert not np.allclose(observed, rate)
    hosts_only = observe(problem, coarse=2.0).sites
    assert set(hosts_only.loc[hosts_only["fails_per_month"] > 0, "kind"]) == {"host"}


def test_the_bound_covers_the_members_that_reports_need() -> None:
    """One voting member is asked for; with definitive reports, one fault needs two."""
    problem = small()
    problem = replace(
        problem, services=problem.services.assign(faults=1.0, members=1.0, managers=3.0), current=None
    )
    bound, leases = bound_all(problem).proof.bound, plan_leases(problem).plan
    assert bound is not None
    assert leases is not None
    assert (measure(problem, leases, None)["down_s_per_month"] or 0.0) >= bound
