"""Windows with gaps and times, and prices of volumes, against bills computed by hand."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from planner.arrays import Floats
from planner.contract.notes import notes_of
from planner.errors import InputError
from planner_models.contracts import SYSTEM, Month, bill, check
from planner_models.contracts.plan.plan import make_plan, read_loads
from planner_models.contracts.problem.adjustments import adjust
from planner_models.contracts.problem.volumes import take_off_credit

MBPS = np.random.default_rng(5).integers(100, 200, 40).astype(float)
ONE = {"cdn": "A", "region": "EU", "billing": "95th percentile", "price_per_mbps": 1.0, "capacity_mbps": 1e3}


def month(windows: object, mbps: np.ndarray = MBPS) -> Month:
    traffic = pd.DataFrame({"window": windows, "region": "EU", "traffic_mbps": mbps})
    return Month.from_tables({"traffic": traffic, "contracts": pd.DataFrame([ONE])})


def bill_of(problem: Month) -> float:
    """Return the bill where the only contract carries everything."""
    return float(bill(problem, problem.traffic_mbps)["amount"].sum())


THIRD_LARGEST = float(np.sort(MBPS)[-3])  # 2 of 40 windows are free


@pytest.mark.parametrize(
    "windows",
    [
        np.arange(1, 41),
        np.arange(5, 205, 5),
        np.arange(0, 40),
        1711843200 + 300 * np.arange(40),
        pd.date_range("2024-03-31", periods=40, freq="5min"),
        pd.date_range("2024-03-31", periods=40, freq="5min").astype(str),
        pd.date_range("2024-01-01", periods=40, freq="MS"),
    ],
)
def test_the_numbering_of_windows_does_not_change_the_bill(windows: object) -> None:
    problem = month(windows)
    assert problem.windows == 40
    assert bill_of(problem) == THIRD_LARGEST
    shuffled = np.random.default_rng(1).permutation(40)
    assert bill_of(month(pd.Series(windows)[shuffled], MBPS[shuffled])) == THIRD_LARGEST
    again = Month.from_tables(problem.to_tables())
    assert again.windows == 40
    plan = make_plan(problem, problem.traffic_mbps)
    assert read_loads(again, plan).tolist() == problem.traffic_mbps.tolist()
    assert plan.loads["window"].tolist() == problem.window_numbers.tolist()


def test_a_missing_window_is_no_window_of_zero_traffic() -> None:
    selected = np.delete(np.arange(40), 17)
    problem = month(selected + 1, MBPS[selected])
    assert problem.windows == 39  # of which 1 is free
    assert bill_of(problem) == np.sort(MBPS[selected])[-2]
    assert notes_of(problem) == [
        "warning: traffic: 1 window is missing (18): the 39 windows with rows count, no zeros are added"
    ]
    assert not notes_of(month(np.arange(1, 41)))


def test_a_region_without_rows_in_a_window_is_asked_about() -> None:
    rows = [(1, "EU", 5.0), (2, "EU", 6.0), (2, "US", 7.0)]
    traffic = pd.DataFrame(rows, columns=["window", "region", "traffic_mbps"])
    contracts = pd.DataFrame([ONE, {**ONE, "region": "US"}])
    with pytest.raises(InputError) as error:
        Month.from_tables({"traffic": traffic, "contracts": contracts})
    (fault,) = error.value.faults
    assert fault == (
        "traffic: region 'US' has no row in 1 of 2 windows (1): write 0 where it has no traffic, or leave "
        "these windows out of all regions"
    )
    with_zero = pd.concat([traffic, pd.DataFrame([(1, "US", 0.0)], columns=traffic.columns)])
    assert Month.from_tables({"traffic": with_zero, "contracts": contracts}).windows == 2
    without = traffic[traffic["window"] == 2]
    assert Month.from_tables({"traffic": without, "contracts": contracts}).windows == 1


def table(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


BY_VOLUME = {
    "contracts": table("cdn,region,billing,Price ($/GB),Capacity (Gbit/s)\ncf,US,mean,0.085,10\n"),
    "traffic": table("window,region,Traffic (GB)\n1,US,51200\n"),
    "tiers": table("cdn,region,Above (TB),Price ($/GB)\ncf,US,10,0.080\ncf,US,50,0.060\n"),
}


def test_prices_of_a_gigabyte_with_tiers_in_terabytes() -> None:
    problem = Month.from_tables(BY_VOLUME)
    by_hand = 10 * 1024 * 0.085 + 40 * 1024 * 0.080
    assert bill_of(problem) == pytest.approx(by_hand) == pytest.approx(4147.20)
    decision = SYSTEM.design("optimum").run(problem)
    assert decision.proof.ranks[1].objective == pytest.approx(4147.20, abs=0.005)
    by_1024, month = [note for note in notes_of(problem) if note.startswith("assumed")]
    assert by_1024.startswith(
        "assumed: tiers: column 'Above (TB)' counts 1,024 GB as a TB, as price lists do"
    )
    assert month.startswith("assumed: traffic: the window lasts 30 days; two or more times in column window")


def test_tiers_in_gigabytes_count_as_written() -> None:
    tiers = table("cdn,region,Above (GB),Price ($/GB)\ncf,US,10000,0.080\ncf,US,50000,0.060\n")
    problem = Month.from_tables({**BY_VOLUME, "tiers": tiers})
    assert bill_of(problem) == pytest.approx(10_000 * 0.085 + 40_000 * 0.080 + 1_200 * 0.060)


def test_times_tell_how_long_windows_are() -> None:
    traffic = pd.DataFrame(
        {"window": pd.date_range("2024-03-01", periods=24, freq="h"), "region": "US", "traffic_mbps": 80.0}
    )
    contracts = table("cdn,region,billing,price_per_gb,price_per_mbps,capacity_mbps\ncf,US,mean,0.5,,100\n")
    problem = Month.from_tables({"traffic": traffic, "contracts": contracts})
    assert bill_of(problem) == pytest.approx(0.5 * 80 * 86_400 / 8_000)
    by_rate = contracts.assign(price_per_gb=np.nan, price_per_mbps=0.5 * 86_400 / 8_000)
    assert bill_of(Month.from_tables({"traffic": traffic, "contracts": by_rate})) == bill_of(problem)


@pytest.mark.parametrize(
    ("contract", "fault"),
    [
        (
            "billing,price_per_gb\n95th percentile,1",
            "contracts row 1: price_per_gb is of a volume, but billing is",
        ),
        (
            "billing,price_per_gb,price_per_mbps\nmean,1,1",
            "contracts row 1: has both price_per_mbps and price_per_gb",
        ),
        ("billing,price_per_gb,price_per_mbps\nmean,,", "contracts row 1: price_per_mbps is empty"),
        ("billing,min_share\nmean,0.1", "contracts: column 'price_per_mbps' or 'price_per_gb' is missing"),
    ],
)
def test_unclear_prices_are_refused(contract: str, fault: str) -> None:
    contracts = table(contract).assign(cdn="A", region="US", capacity_mbps=10.0)
    traffic = BY_VOLUME["traffic"]
    with pytest.raises(InputError) as error:
        Month.from_tables({"traffic": traffic, "contracts": contracts})
    assert error.value.faults[0].startswith(fault)


ROW = {
    "cdn": "A",
    "region": "EU",
    "billing": "95th percentile",
    "price_per_mbps": 2.0,
    "capacity_mbps": 1e3,
    "commitment_mbps": 50.0,
}
MBPS_TERMS = np.random.default_rng(7).permutation(np.arange(61.0, 101.0))  # 40 windows


def terms_month(tiers: pd.DataFrame | None = None, **terms: object) -> Month:
    traffic = pd.DataFrame({"window": range(1, 41), "region": "EU", "traffic_mbps": MBPS_TERMS})
    tables = {"traffic": traffic, "contracts": pd.DataFrame([{**ROW, **terms}])}
    return Month.from_tables(tables if tiers is None else {**tables, "tiers": tiers})


def amount(problem: Month) -> float:
    """Return the bill where the only contract carries all that it may."""
    return float(bill(problem, problem.most_mbps)["amount"].sum())


def test_traffic_above_the_commitment_has_its_own_price() -> None:
    problem = terms_month(burst_price_per_mbps=3.0)
    assert amount(problem) == 2.0 * 50 + 3.0 * (98 - 50)  # 2 of 40 windows are free
    assert amount(adjust(problem, price_factors={"A": 2.0})) == 2 * amount(problem)
    assert amount(adjust(problem, commitment_scale=0.0)) == 3.0 * 98  # all traffic is above no commitment
    assert amount(terms_month(burst_price_per_mbps=float("nan"))) == 2.0 * 98


def test_a_burst_price_may_be_of_a_gigabyte() -> None:
    volumes = {
        "billing": "mean",
        "price_per_mbps": float("nan"),
        "price_per_gb": 0.02,
        "commitment_mbps": 0.0,
    }
    problem = terms_month(**volumes, burst_price_per_gb=0.05, commitment_gb=1e4)
    carried_gb = MBPS_TERMS.mean() * 30 * 86_400 / 8_000
    assert amount(problem) == pytest.approx(0.02 * 1e4 + 0.05 * (carried_gb - 1e4), abs=0.005)


def test_a_credit_is_taken_off_the_bill_down_to_nothing() -> None:
    assert amount(terms_month(credit=30.0)) == 2.0 * 98 - 30
    assert amount(terms_month(credit=1_000.0)) == 0.0
    row = bill(terms_month(credit=30.0), np.zeros((40, 1))).iloc[0]
    assert (row["amount"], row["unused"]) == (2.0 * 50 - 30, 2.0 * 50 - 30)


def test_a_percentile_is_that_of_the_windows_in_force() -> None:
    problem = terms_month(first_window=11, last_window=30)
    inside = np.sort(MBPS_TERMS[10:30])  # 20 windows: 1 is free, and half of the price is paid
    assert problem.unbilled_windows.tolist() == [1]
    assert amount(problem) == 0.5 * 2.0 * inside[-2]
    assert problem.most_mbps[:10].max() == problem.most_mbps[30:].max() == 0.0
    violations = check(problem, make_plan(problem, MBPS_TERMS[:, None])).frame
    outside = np.concatenate([np.arange(1, 11), np.arange(31, 41)])
    named = violations[violations["limit"] == "capacity"]["where"].tolist()
    assert named == [f"A, window {window}" for window in outside]


def test_a_mean_is_that_of_all_windows() -> None:
    problem = terms_month(billing="mean", commitment_mbps=0.0, first_window=11, last_window=30)
    assert amount(problem) == pytest.approx(2.0 * MBPS_TERMS[10:30].sum() / 40, abs=0.005)


def test_the_optimum_knows_the_terms() -> None:
    problem = terms_month(burst_price_per_mbps=3.0, credit=30.0)
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
        terms_month(**terms)  # type: ignore[arg-type]
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
