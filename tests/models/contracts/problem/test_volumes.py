"""Windows with gaps and times, and prices of volumes, against bills computed by hand."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import notes_of
from planner.errors import InputError
from planner_models.contracts import SYSTEM, Month, bill
from planner_models.contracts.plan.plan import make_plan, read_loads

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
