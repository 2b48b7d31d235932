"""The search over purchases where links need thousands of modules, and within budgets."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from planner import clock
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.capacity.designs import greedy
from planner_models.capacity.designs.greedy import PurchaseSearch, purchase_cost
from tests.models.capacity.networks import ring

MANY = 20_000.0  # modules of 10 Mbit/s


def test_thousands_of_modules_take_few_linear_programs() -> None:
    problem = ring(demands=[("a", "c", 10 * MANY)])
    search = PurchaseSearch.start(problem)
    search.climb()
    assert search.fits(0, [0])
    assert search.counts.sum() == len(search.steps) >= MANY - 1
    assert search.programs < MANY / 10


def test_modules_bought_at_once_are_those_bought_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ring(demands=[("a", "c", 3_000.0)])
    search = PurchaseSearch.start(problem)
    search.climb()
    monkeypatch.setattr(greedy, "SHED_AT_ONCE", 0.0)
    slow = PurchaseSearch.start(problem)
    slow.climb()
    assert search.counts.tolist() == slow.counts.tolist()
    assert search.programs < slow.programs


@pytest.mark.parametrize("budget", [0.0, 4.0, 1_000.0, 31_999.0])
def test_modules_bought_at_once_keep_the_budget(budget: float) -> None:
    problem = ring(
        demands=[("a", "c", 10 * MANY)],
        network=pd.DataFrame({"budget": [budget]}),
    )
    search = PurchaseSearch.start(problem)
    search.climb()
    assert purchase_cost(problem, search.counts) <= budget * (1 + 1e-9)
    assert purchase_cost(problem, search.counts) >= budget - 4.0  # less than a further module


def test_purchases_at_the_time_limit_are_the_first_of_those_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = ring(demands=[("a", "c", 300.0), ("b", "a", 170.0)])
    free = PurchaseSearch.start(problem)
    free.climb()
    assert not free.is_cut
    bought = []
    for readings in range(6):
        clock_s = itertools.count(0.5)
        monkeypatch.setattr(clock, "now", lambda clock_s=clock_s: float(next(clock_s)))
        search = PurchaseSearch.start(problem, deadline=Deadline(0.0, float(readings)))
        search.climb()
        search.drop()
        assert search.is_cut
        assert search.steps == free.steps[: len(search.steps)]
        bought.append(len(search.steps))
    assert bought[0] == 0
    assert bought == sorted(bought)
    assert bought[-1] > 0
    monkeypatch.undo()
    decision = greedy.plan(problem, options=Options(time_limit_s=1e-9))
    assert decision.proof.is_cut
    assert decision.plan is not None
    assert decision.plan.purchases.empty
    assert greedy.plan(problem, options=Options(service="all", time_limit_s=1e-9)).plan is None
