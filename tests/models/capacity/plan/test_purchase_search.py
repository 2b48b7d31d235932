"""The search over purchases where links need thousands of modules, and within budgets."""

from __future__ import annotations

import pandas as pd
import pytest

from planner_models.capacity.plan import purchase_search
from planner_models.capacity.plan.purchase_search import PurchaseSearch, purchase_cost
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
    monkeypatch.setattr(purchase_search, "SHED_AT_ONCE", 0.0)
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
