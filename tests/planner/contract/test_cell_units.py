"""Units within cells, durations, and other values of pandas: read in the unit of the column, or refused."""

from __future__ import annotations

import datetime
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.cell_units import read_amounts, unclear_unit
from planner.contract.columns import match_columns
from planner.contract.notes import observe_notes
from planner.contract.table import Table, label, number
from planner.contract.tables import validate
from planner.errors import InputError

TABLE = Table(
    name="t",
    about="",
    columns={
        "arrival_s": number("a", at_least=0, at_most=1e9),
        "rate_mbps": number("r", optional=True, default=1.0, at_most=1e12),
        "name": label("n", optional=True),
        "price_per_mbps": number("p", optional=True),
        "price_per_gb": number("p", optional=True, counts_by_1024=True),
    },
)


def read(**columns: Any) -> tuple[pd.DataFrame, list[str]]:
    notes: list[str] = []
    with observe_notes(notes.append):
        frame = validate(TABLE, pd.DataFrame(columns))
    return frame, notes


HALF_MINUTE = pd.Timedelta("30s")


@pytest.mark.parametrize(
    "values",
    [
        [HALF_MINUTE, HALF_MINUTE],
        pd.Series([HALF_MINUTE, 30.0], dtype=object),
        np.array([30_000, 30_000], dtype="timedelta64[ms]"),
        [datetime.timedelta(seconds=30), "30000 ms"],
        [Decimal(30), Decimal("30.0")],
        pd.array([30, 30], dtype="Int64"),
        pd.array([30, 30], dtype="int64[pyarrow]"),
        pd.Categorical([30, 30]),
        pd.Categorical(["30", "0.5 min"]),
        ["30", "3e1"],
    ],
)
def test_half_a_minute_in_any_type_is_thirty_seconds(values: Any) -> None:
    assert read(arrival_s=values)[0]["arrival_s"].tolist() == [30.0, 30.0]


def test_durations_do_not_depend_on_the_unit_of_the_header() -> None:
    frame, _ = read(**{"Arrival (ms)": [HALF_MINUTE, HALF_MINUTE]})
    assert frame["arrival_s"].tolist() == [30.0, 30.0]


@pytest.mark.parametrize(
    ("cell", "mbps"),
    [
        ("10G", 1e4),
        ("10 Gbit/s", 1e4),
        ("10Gbps", 1e4),
        ("1 GB/s", 8e3),
        ("500k", 0.5),
        ("2 Tb/s", 2e6),
        ("7", 7),
    ],
)
def test_rates_have_their_units_in_cells(cell: str, mbps: float) -> None:
    frame, notes = read(arrival_s=[1.0], rate_mbps=[cell])
    assert frame["rate_mbps"].tolist() == [mbps]
    assert any(f"'{cell}'" in note for note in notes) == (cell != "7")
    assert any(note.startswith("assumed: t: ") for note in notes) == (cell in ("10G", "500k"))


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        (
            "arrival_s",
            pd.Timestamp("2024-01-01"),
            "the time 2024-01-01 00:00:00, must be a number or a duration: s",
        ),
        (
            "arrival_s",
            np.datetime64("2024-01-01"),
            "the time 2024-01-01 00:00:00, must be a number or a duration",
        ),
        ("arrival_s", datetime.time(3, 4), "the time 03:04:00, must be a number or a duration: subtract the"),
        ("arrival_s", True, "'True', must be a number"),
        ("arrival_s", 1j, "'1j', must be a number"),
        (
            "rate_mbps",
            "10 gb/s",
            "'10 gb/s', must be a number: is it in Gbit/s or GB/s? write the number in Mbit",
        ),
        ("rate_mbps", "10 m", "'10 m', must be a number in Mbit/s, or one with its unit, such as 10 Mbit/s"),
        ("rate_mbps", "n/a", "'n/a', must be a number; leave the row out, or write one"),
        ("rate_mbps", None, "empty; write 1, the default"),
        ("rate_mbps", np.inf, "inf, must be a finite number; for no limit write 1e+12"),
        ("rate_mbps", "inf", "inf, must be a finite number; for no limit write 1e+12"),
        ("rate_mbps", "Unlimited", "'Unlimited', must be a number; for no limit write 1e+12"),
        ("rate_mbps", pd.Timedelta("3s"), "the time 0 days 00:00:03, must be a number"),
    ],
)
def test_what_is_no_number_is_refused_with_what_to_write(column: str, value: Any, fault: str) -> None:
    with pytest.raises(InputError) as error:
        read(**{"arrival_s": [1.0], "name": ["a"], column: [value]})
    assert error.value.faults[0].startswith(f"t row 1: {column} is {fault}")


@pytest.mark.parametrize(
    "text", ["9" * 300_000 + "!", "1 M" + " " * 300_000 + "b", "." + "1" * 300_000 + ".x"]
)
def test_long_cells_are_refused_in_linear_time(text: str) -> None:
    """A pattern that tried each split of the digits or spaces would take many minutes here."""
    begin = time.process_time()
    assert read_amounts("rate_mbps", pd.Series([text], dtype=object))[1] == []
    assert unclear_unit("rate_mbps", text) is None
    assert time.process_time() - begin < 5


def test_what_is_written_in_place_is_read() -> None:
    frame, _ = read(
        arrival_s=pd.to_datetime(["2024-01-01 01:00", "2024-01-01 00:00"]) - pd.Timestamp("2024-01-01")
    )
    assert frame["arrival_s"].tolist() == [3600.0, 0.0]
    assert read(arrival_s=[1.0], rate_mbps=["1e+12"])[0]["rate_mbps"].tolist() == [1e12]
    assert read(arrival_s=[1.0], rate_mbps=["10 Mbit/s"])[0]["rate_mbps"].tolist() == [10.0]


def test_frames_that_are_no_plain_tables() -> None:
    twice = pd.DataFrame([[1.0, 2.0]], columns=["arrival_s", "arrival_s"])
    with pytest.raises(InputError, match="t: column 'arrival_s' occurs twice; keep one"):
        validate(TABLE, twice)
    levels = pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("arrival", "s"), ("more", "x")]))
    with pytest.raises(InputError, match="t: its columns have 2 levels, must have one") as error:
        validate(TABLE, levels)
    advice = error.value.faults[0].partition("must have one: ")[2]
    exec(advice, {"frame": levels})
    assert validate(TABLE, levels)["arrival_s"].tolist() == [1.0]
    indexed = pd.DataFrame({"name": ["a"]}, index=pd.Index([3.0], name="arrival_s"))
    assert validate(TABLE, indexed)["arrival_s"].tolist() == [3.0]


def test_names_of_whole_numbers_have_no_point() -> None:
    assert read(arrival_s=[1.0, 2.0], name=[1.0, 20.0])[0]["name"].tolist() == ["1", "20"]
    assert read(arrival_s=[1.0], name=[1.5])[0]["name"].tolist() == ["1.5"]


@pytest.mark.parametrize(
    ("given", "ours", "factor"),
    [
        ("price_per_gbps", "price_per_mbps", 1 / 1000),
        ("Price ($/Gbps)", "price_per_mbps", 1 / 1000),
        ("Price (EUR/Mbit/s)", "price_per_mbps", 1),
        ("price_usd_per_kbps", "price_per_mbps", 1000),
        ("Price ($/GB)", "price_per_gb", 1),
        ("Price per TB", "price_per_gb", 1 / 1024),
        ("Rate (Gbps)", "rate_mbps", 1000),
    ],
)
def test_prices_of_larger_units_are_divided(given: str, ours: str, factor: float) -> None:
    match = match_columns(TABLE, ["arrival_s", given], where="t")
    assert match.names[ours] == given
    assert float(match.factors.get(ours, 1)) == factor


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("8 vCPU", 8.0), ("500m", 0.5), ("2 cores", 2.0), ("1.5 CPUs", 1.5), ("8 GB", "8 GB"), ("m", "m")],
)
def test_cells_of_cpus_may_say_so(text: str, cpus: object) -> None:
    read, notes = read_amounts("vcpus_min", pd.Series([text, 4.0]))
    assert read.tolist() == [cpus, 4.0]
    assert bool(notes) == isinstance(cpus, float)


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("Storage ($/GB-month)", "storage_usd_gb_month"),
        ("$/GB", "usd_per_gb"),
        ("reads/s", "reads_per_s"),
        ("PUT ($)", "put_usd"),
        ("Price per hour ($)", "price_per_h"),
        ("vCPU", "vcpus_min"),
    ],
)
def test_signs_in_names_are_read_as_words(given: str, ours: str) -> None:
    columns = {name: number("a", optional=True) for name in ("storage_usd_gb_month", "usd_per_gb")}
    columns |= {name: number("a", optional=True) for name in ("reads_per_s", "put_usd", "price_per_h")}
    columns["vcpus_min"] = number("a", optional=True, other_names=("vcpu",))
    match = match_columns(Table(name="t", about="", columns=columns), [given], where="t")
    assert match.names == {ours: given}
    assert not match.factors


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("storage_usd_gb_month", "$0.023 per GB", 0.023),
        ("storage_usd_gb_month", "0.023 USD/GB-month", 0.023),
        ("storage_usd_gb_month", "$0.023 per GB per month", 0.023),
        ("usd_per_gb", "$0.02/GB", 0.02),
        ("put_usd", "$5.00 per million requests", 5e-6),
        ("put_usd", "0.05 per 10,000", 5e-6),
        ("get_usd", "$0.0004 per 1k requests", 4e-7),
        ("server_usd_month", "$150/mo", 150.0),
        ("server_usd_month", "$0.2 per hour", None),
        ("usd_per_gb", "$0.02 per TB", None),
        ("usd_per_gb", "$0.02/GB-month", None),
        ("put_usd", "$5 per GB", None),
        ("put_usd", "5 per", None),
    ],
)
def test_prices_say_what_they_are_of(name: str, text: str, expected: float | None) -> None:
    values, notes = read_amounts(name, pd.Series([text]))
    assert values.iloc[0] == (text if expected is None else pytest.approx(expected, rel=1e-12))
    assert bool(notes) == (expected is not None)


@pytest.mark.parametrize(
    ("text", "mbps"),
    [
        ("STM-1", 155.52),
        ("STM-16", 2_488.32),
        ("stm64", 9_953.28),
        ("STM-0", 51.84),
        ("OC-48", 2_488.32),
        ("OC192c", 9_953.28),
        ("2xE1", 4.096),
        ("DS3", 44.736),
        ("T1", 1.544),
    ],
)
def test_lines_are_read_by_their_level(text: str, mbps: float) -> None:
    frame, notes = read(arrival_s=[1.0], rate_mbps=[text])
    assert frame["rate_mbps"].tolist() == pytest.approx([mbps])
    assert text in notes[0]


@pytest.mark.parametrize("text", ["STM-17", "OC-2", "E9", "T16", "OC", "STM-"])
def test_levels_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=f"rate_mbps is '{text}', must be a number"):
        read(arrival_s=[1.0], rate_mbps=[text])
