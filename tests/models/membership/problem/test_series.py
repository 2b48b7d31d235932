"""Months of a trace of incidents: rates that are known by then, beside counts by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.contract.units import DAY_S, MONTH_S
from planner.errors import InputError
from planner.io.table_files import write_table
from planner_models.membership.problem.generators import small
from planner_models.membership.problem.series import Incidents, incidents

TRACE = """site,start,end
east a,86400,90000
west a,864000,867600
east a,2600000,2603600
west,2700000,9000000
"""


def windows_of(folder: Path, trace: str = TRACE, **options: float) -> Incidents:
    (folder / "tables").mkdir()
    for name, frame in small().to_tables().items():
        write_table(frame, folder / "tables" / f"{name}.csv")
    (folder / "incidents.csv").write_text(trace)
    return incidents(path=folder / "tables", trace=folder / "incidents.csv", **options)


def test_rates_are_those_of_the_incidents_before_a_window(tmp_path: Path) -> None:
    series = windows_of(tmp_path, prior_months=12.0)
    problems = dict(series)
    assert len(series) == len(problems) == 4
    assert list(problems) == ["day 0000", "day 0030", "day 0060", "day 0090"]
    before = small()
    first = problems["day 0000"].sites["fails_per_month"].to_numpy(float)
    assert first == pytest.approx(before.sites["fails_per_month"].to_numpy(float))
    row = before.site_names.index("east a")
    rate, repair_s = (float(before.sites[name].iloc[row]) for name in ("fails_per_month", "repair_s"))
    later = problems["day 0060"].sites.iloc[row]
    assert later["fails_per_month"] == pytest.approx((12 * rate + 2) / 14)
    assert later["repair_s"] == pytest.approx((12 * rate * repair_s + 7_200) / (12 * rate + 2))


def test_a_site_that_is_out_for_a_whole_window_is_lost_in_it(tmp_path: Path) -> None:
    series = windows_of(tmp_path)
    lost = [
        [name for name, is_lost in zip(problem.site_names, problem.is_lost, strict=True) if is_lost]
        for _, problem in series
    ]
    assert lost == [[], [], ["west", "west a"], []]


def test_without_prior_months_incidents_alone_count(tmp_path: Path) -> None:
    series = windows_of(tmp_path, prior_months=0.0, days=15.0)
    rate, repair_s = series.rates_at(MONTH_S)
    names = series.problem.site_names
    assert rate[names.index("east a")] == pytest.approx(1.0)
    assert repair_s[names.index("east a")] == pytest.approx(3_600.0)
    assert rate[names.index("east b")] == 0.0
    assert len(series) == -(-9_000_000 // (15 * DAY_S))


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("site,start,end\n", "incidents.csv: has no incidents, must have at least one"),
        ("site,start,end\neat a,0,1\n", "incidents.csv row 1: 'eat a' is no site; did you mean 'east a'?"),
        ("site,start,end\neast a,5,1\n", "incidents.csv row 1: end is 1, must be at least the start, 5"),
        (
            "site,start,end\neast a,0,1\neast a,1e12,1e12\n",
            "incidents.csv: has 385,803 windows of 30 days, must have at most 10,000; set more days",
        ),
    ],
)
def test_traces_that_are_none_are_refused(tmp_path: Path, trace: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        windows_of(tmp_path, trace)
    assert str(error.value) == message
