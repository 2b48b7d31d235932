"""Bills by hand, and the designs' own amounts against them."""

from __future__ import annotations

import csv
import math
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import planner
from planner_models.contracts import Month, bill
from planner_models.contracts.designs import free_windows, optimum
from planner_models.contracts.designs.program import Region
from planner_models.contracts.plan.plan import Loads, read_loads
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE
from tests.models.contracts.months import make, months

STORY = Path(__file__).parents[4] / "data" / "scenarios" / "contracts" / "own_data"


def bill_of_files(folder: Path, loads: list[tuple[str, str, float]]) -> Decimal:
    """Return the sum of the bills of (cdn, region, load) rows by the CSV files alone, in whole cents."""
    tables = {path.stem: list(csv.DictReader(path.read_text().splitlines())) for path in folder.glob("*.csv")}
    windows = len({row["window"] for row in tables["traffic"]})
    total = Decimal(0)
    for row in tables["contracts"]:
        ordered = sorted(mbps for cdn, region, mbps in loads if (cdn, region) == (row["cdn"], row["region"]))
        ordered = [0.0] * (windows - len(ordered)) + ordered
        billed = {
            "mean": math.fsum(ordered) / windows,
            "95th percentile": ordered[windows - windows * 5 // 100 - 1],
            "peak": ordered[-1],
        }[row["billing"]]
        billed = max(billed, float(row["commitment_mbps"]))
        steps = [(0.0, float(row["price_per_mbps"]))] + [
            (float(tier["above_mbps"]), float(tier["price_per_mbps"]))
            for tier in tables["tiers"]
            if (tier["cdn"], tier["region"]) == (row["cdn"], row["region"])
        ]
        amount = Decimal(0)
        for (start, price), (end, _) in zip(steps, [*steps[1:], (math.inf, 0.0)], strict=True):
            amount += Decimal(max(min(billed, end) - start, 0.0)) * Decimal(price)
        total += amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
    return total


def test_the_bill_of_the_story_is_that_of_its_files_to_the_cent() -> None:
    for design in ("commitments_first", "cheapest_first"):
        run = planner.solve("contracts/own_data", design=design)
        assert isinstance(run.plan, Loads)
        rows = [(row.cdn, row.region, float(row.load_mbps)) for row in run.plan.loads.itertuples()]
        assert run.metrics["bill"] == float(bill_of_files(STORY, rows))


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


@pytest.mark.slow
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
