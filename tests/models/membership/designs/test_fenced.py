"""Fenced members beside the enumeration of all places of members and managers."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings

from planner.errors import InputError
from planner.search.deadline import NEVER
from planner_models.membership import Membership, check, measure
from planner_models.membership.designs.fenced import (
    Effects,
    FencedSearch,
    make_fenced,
    plan_fenced,
    plan_fenced_planned,
)
from planner_models.membership.plan.evaluation import evaluate
from planner_models.membership.problem.generators import small
from tests.models.membership.failures import placements
from tests.models.membership.problems import memberships


@settings(max_examples=12)
@given(memberships())
def test_no_places_are_below_the_bound_and_the_search_is_near_the_best(problem: Membership) -> None:
    service = problem.service_list[0]
    search = FencedSearch(problem, service, Effects(), trials=500, deadline=NEVER)
    result = search.run()
    if isinstance(result, str):
        assert "the sites have hosts for" in result
        return
    seconds = []
    every = [
        [{problem.row_of(name): count for name, count in row.items()} for row in placements(problem, size)]
        for size in (service.pair, service.managers)
    ]
    for members, managers in itertools.islice(itertools.product(*every), 0, None, 3):
        for leader in members:
            placement = make_fenced(problem, members, managers, leader, Effects())
            seconds.append(evaluate(problem, service, placement).total)
    down = evaluate(problem, service, result).total
    assert search.bound_s <= min(seconds) * (1 + 1e-9) + 1e-9
    assert search.bound_s <= down * (1 + 1e-9) + 1e-9


def test_planned_fences_are_no_worse_than_those_of_albatross() -> None:
    problem = small()
    problem = replace(problem, services=problem.services.drop(columns="most_price_per_month"))
    plans = [design(problem).plan for design in (plan_fenced, plan_fenced_planned)]
    down = []
    for plan in plans:
        assert plan is not None
        assert not len(check(problem, plan).of_limits(["rules", "names", "one_leader"]))
        down.append(measure(problem, plan, None)["down_s_per_month"] or 0.0)
    assert down[1] <= down[0] * (1 + 1e-9)


def test_managers_are_needed() -> None:
    problem = small()
    services = problem.services.assign(managers=0.0)
    without = Membership(sites=problem.sites, services=services, delays=problem.delays)
    for design in (plan_fenced, plan_fenced_planned):
        assert "it has no managers" in design(without).proof.reasons[0]
    with pytest.raises(InputError, match="there would be two leaders"):
        Membership(sites=problem.sites, services=services.assign(protocol="definitive"))
