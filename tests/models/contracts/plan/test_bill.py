"""Bills by hand, and the designs' own amounts against them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.contracts import Month, bill
from planner_models.contracts.designs import free_windows, optimum
from planner_models.contracts.designs.program import Region
from planner_models.contracts.plan.plan import read_loads
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE
from tests.models.contracts.months import make, months


def test_bills_of_known_loads() -> None:
    load = np.arange(1.0, 41.0)[:, None]  # of 40 windows, two are free: the 38th largest is billed
    for billing, volume in ((MEAN, 20.5), (PERCENTILE, 38.0), (PEAK, 40.0)):
        problem = make([40.0] * 40, [("x", billing, 2.0, 50.0, 30.0)], [("x", 35.0, 1.0)])
        row = bill(problem, load).iloc[0]
        assert row["volume_mbps"] == pytest.approx(volume)
        billed = max(volume, 30.0)
        assert row["billed_mbps"] == pytest.approx(billed)
        assert row["amount"] == pytest.approx(2.0 * min(billed, 35.0) + max(billed - 35.0, 0.0))
        assert row["unused"] == pytest.approx(2.0 * max(30.0 - volume, 0.0))
    assert row["free_windows"] == 0


def test_amounts_are_whole_cents() -> None:
    problem = make([1.0], [("x", PEAK, 0.125, 9.0, 0.0)])
    row = bill(problem, np.array([[1.0]])).iloc[0]
    assert (row["amount"], row["computed"]) == (0.13, 0.125)


@settings(max_examples=15)
@given(months(windows=30))
def test_the_designs_amounts_agree_to_the_cent(problem: Month) -> None:
    plan = optimum.plan_by_peak(problem).plan
    assert plan is not None
    load = read_loads(problem, plan)
    cost = free_windows.load_cost(Region.of(problem, 0), load)
    assert cost == pytest.approx(bill(problem, load)["computed"].sum(), abs=1e-6)
    assert round(cost, 2) == pytest.approx(
        bill(problem, load)["amount"].sum(), abs=0.005 * len(problem.names) + 0.005
    )
