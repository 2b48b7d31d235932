"""Burst prices, credits and months in part, against bills computed by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.arrays import Floats
from planner.errors import InputError
from planner_models.contracts import SYSTEM, Month, bill, check
from planner_models.contracts.plan.plan import make_plan
from planner_models.contracts.problem.adjustments import adjust
from planner_models.contracts.problem.terms import take_off_credit

ROW = {
    "cdn": "A",
    "region": "EU",
    "billing": "95th percentile",
    "price_per_mbps": 2.0,
    "capacity_mbps": 1e3,
    "commitment_mbps": 50.0,
}
MBPS = np.random.default_rng(7).permutation(np.arange(61.0, 101.0))  # 40 windows


def month(tiers: pd.DataFrame | None = None, **terms: object) -> Month:
    traffic = pd.DataFrame({"window": range(1, 41), "region": "EU", "traffic_mbps": MBPS})
    tables = {"traffic": traffic, "contracts": pd.DataFrame([{**ROW, **terms}])}
    return Month.from_tables(tables if tiers is None else {**tables, "tiers": tiers})


def amount(problem: Month) -> float:
    """Return the bill where the only contract carries all that it may."""
    return float(bill(problem, problem.most_mbps)["amount"].sum())


def test_traffic_above_the_commitment_has_its_own_price() -> None:
    problem = month(burst_price_per_mbps=3.0)
    assert amount(problem) == 2.0 * 50 + 3.0 * (98 - 50)  # 2 of 40 windows are free
    assert amount(adjust(problem, price_factors={"A": 2.0})) == 2 * amount(problem)
    assert amount(adjust(problem, commitment_scale=0.0)) == 3.0 * 98  # all traffic is above no commitment
    assert amount(month(burst_price_per_mbps=float("nan"))) == 2.0 * 98


def test_a_burst_price_may_be_of_a_gigabyte() -> None:
    volumes = {
        "billing": "mean",
        "price_per_mbps": float("nan"),
        "price_per_gb": 0.02,
        "commitment_mbps": 0.0,
    }
    problem = month(**volumes, burst_price_per_gb=0.05, commitment_gb=1e4)
    carried_gb = MBPS.mean() * 30 * 86_400 / 8_000
    assert amount(problem) == pytest.approx(0.02 * 1e4 + 0.05 * (carried_gb - 1e4), abs=0.005)


def test_a_credit_is_taken_off_the_bill_down_to_nothing() -> None:
    assert amount(month(credit=30.0)) == 2.0 * 98 - 30
    assert amount(month(credit=1_000.0)) == 0.0
    row = bill(month(credit=30.0), np.zeros((40, 1))).iloc[0]
    assert (row["amount"], row["unused"]) == (2.0 * 50 - 30, 2.0 * 50 - 30)


def test_a_percentile_is_that_of_the_windows_in_force() -> None:
    problem = month(first_window=11, last_window=30)
    inside = np.sort(MBPS[10:30])  # 20 windows: 1 is free, and half of the price is paid
    assert problem.unbilled_windows.tolist() == [1]
    assert amount(problem) == 0.5 * 2.0 * inside[-2]
    assert problem.most_mbps[:10].max() == problem.most_mbps[30:].max() == 0.0
    violations = check(problem, make_plan(problem, MBPS[:, None])).frame
    outside = np.concatenate([np.arange(1, 11), np.arange(31, 41)])
    named = violations[violations["limit"] == "capacity"]["where"].tolist()
    assert named == [f"A, window {window}" for window in outside]


def test_a_mean_is_that_of_all_windows() -> None:
    problem = month(billing="mean", commitment_mbps=0.0, first_window=11, last_window=30)
    assert amount(problem) == pytest.approx(2.0 * MBPS[10:30].sum() / 40, abs=0.005)


def test_the_optimum_knows_the_terms() -> None:
    problem = month(burst_price_per_mbps=3.0, credit=30.0)
    decision = SYSTEM.design("optimum").run(problem)
    assert decision.proof.ranks[1].objective == decision.proof.ranks[1].bound == 2.0 * 50 + 3.0 * 48 - 30


@pytest.mark.parametrize(
    ("terms", "fault"),
    [
        (
            {"first_window": 50},
            (
                "contracts row 1: is in force in no window; first_window to last_window must contain one "
                "of 1 to 40"
            ),
        ),
        ({"first_window": 1.5}, "contracts row 1: first_window is 1.5, must be a whole number"),
        ({"credit": -1.0}, "contracts row 1: credit is -1.0, must be at least 0"),
        (
            {"burst_price_per_mbps": 1.0, "burst_price_per_gb": 1.0},
            "contracts row 1: has both burst_price_per_mbps and burst_price_per_gb; keep one",
        ),
        (
            {"burst_price_per_gb": 1.0},
            (
                "contracts row 1: burst_price_per_gb is of a volume, but billing is '95th percentile': write "
                "billing 'mean', or burst_price_per_mbps"
            ),
        ),
        (
            {
                "burst_price_per_mbps": 1.0,
                "tiers": pd.DataFrame(
                    [{"cdn": "A", "region": "EU", "above_mbps": 70.0, "price_per_mbps": 1.0}]
                ),
            },
            (
                "contracts row 1: has burst_price_per_mbps and rows in table tiers; write the burst price as "
                "a tier from the commitment"
            ),
        ),
    ],
)
def test_faulty_terms_are_named(terms: dict[str, object], fault: str) -> None:
    with pytest.raises(InputError) as error:
        month(**terms)  # type: ignore[arg-type]
    assert fault in error.value.faults, error.value.faults


def price_of(volume: float, volumes: Floats, prices: Floats) -> float:
    """Return the price of a volume, one step after the other."""
    ends = [*volumes[1:].tolist(), np.inf]
    steps = zip(volumes.tolist(), ends, prices.tolist(), strict=True)
    return sum(max(min(volume, end) - start, 0.0) * price for start, end, price in steps)


@pytest.mark.parametrize("seed", range(200))
def test_every_volume_costs_the_credit_less_but_at_least_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    volumes = np.concatenate([[0.0], np.cumsum(rng.integers(1, 9, count - 1))])
    prices, credit = rng.integers(0, 4, count).astype(float), float(rng.integers(0, 30))
    changed = take_off_credit(volumes, prices, credit)
    for volume in (0.0, 1.0, 2.5, 7.0, 20.0, 100.0):
        assert price_of(volume, *changed) == pytest.approx(
            max(price_of(volume, volumes, prices) - credit, 0.0)
        )
