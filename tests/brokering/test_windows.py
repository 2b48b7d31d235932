"""Markets over windows: series for the command line, bills so far, CDNs that learn by the round."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from planner import rolling
from planner.errors import InputError
from planner.options import Options
from planner.run import evaluate, roll
from planner.scenario import Entry, load
from planner_models.brokering import SYSTEM, Assignment, billing, measure, windows
from planner_models.brokering.generate import world
from tests.brokering.markets import market as make

DAY = """
system = "brokering"
[problem]
source = "{source}"
{more}
windows = 4
[designs.marketplace]
[designs.learning_bidders]
step = 0.2
[solver]
gap = 0.01
"""


def test_a_day_is_rolled_billed_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    toml = tmp_path / "day.toml"
    toml.write_text(DAY.format(source="day", more="clients = 400\nplaces = 30"))
    scenario = load(toml)
    series = [problem for _, problem in windows.day(windows=4, clients=400, places=30)]
    done = list(rolling.start(scenario, out=tmp_path / "out"))
    assert [window.label for window in done[:4]] == ["00h00", "06h00", "12h00", "18h00"]
    assert not any(window.exit_code for window in done)
    plans = [
        Assignment(
            assignments=pd.read_parquet(
                tmp_path / f"out/marketplace/windows/{w.label}/plan/assignments.parquet"
            )
        )
        for w in done[:4]
    ]
    told = done[3].run["metrics"]
    for rule, name in (("bits", "bits"), ("95th percentile", "95th")):
        bill = billing.bill(series, plans, rule=rule)  # type: ignore[arg-type]
        # prices that are derived follow each window's clients; windows before are at the last one's
        assert told[f"billed_by_{name}_per_hour"] == pytest.approx(bill["amount"].sum() / 4, rel=0.05)
    assert told["billed_by_95th_per_hour"] > told["billed_by_bits_per_hour"]
    again = list(rolling.start(scenario, out=tmp_path / "out"))
    assert all(window.kept for window in again)
    assert [window.run["metrics"] for window in again] == [window.run["metrics"] for window in done]


def test_bills_of_contracts_are_the_same_window_by_window_and_over_all() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Lyon", 60.0, 0.3)],
        contracts=[("x", "world", 0.2), ("y", "world", 0.5)],
    )
    counts = [10, 30, 20, 50, 10]
    series = [problem.serving(np.array([count])) for count in counts]
    entry = Entry(label="m", design=SYSTEM.design("marketplace"))
    runs = list(roll(SYSTEM, series, entry))
    plans = [run.plan for run in runs]
    for rule, name in (("bits", "bits"), ("95th percentile", "95th")):
        bill = billing.bill(series, plans, rule=rule)  # type: ignore[arg-type]
        hourly = bill["amount"].sum() / len(counts)
        assert runs[-1].metrics[f"billed_by_{name}_per_hour"] == pytest.approx(hourly)
    assert runs[0].metrics["billed_by_bits_per_hour"] == pytest.approx(10 * 0.45 * 0.2)
    assert runs[-1].metrics["billed_by_95th_per_hour"] == pytest.approx(50 * 0.45 * 0.2)


def test_a_day_of_your_own_tables_and_measured_windows(tmp_path: Path) -> None:
    problem = make([("Lyon", 1000.0, 100)], [("a", "x", "Lyon", 200.0, 0.1)])
    for folder in ("day", "measured/monday", "measured/tuesday"):
        (tmp_path / folder).mkdir(parents=True)
        for name, frame in problem.to_tables().items():
            frame.to_csv(tmp_path / folder / f"{name}.csv", index=False)
    toml = tmp_path / "mine.toml"
    toml.write_text(DAY.format(source="day_of_tables", more='path = "day"\nswing = 0.8'))
    make_series = load(toml).make_series
    assert make_series is not None
    totals = {label: one.size()["clients"] for label, one in make_series()}
    assert len(totals) == 4
    assert 20 <= min(totals.values()) < max(totals.values()) <= 100
    toml.write_text(DAY.format(source="windows", more='path = "measured"').replace("windows = 4\n", ""))
    make_series = load(toml).make_series
    assert make_series is not None
    assert [label for label, _ in make_series()] == ["monday", "tuesday"]
    with pytest.raises(InputError, match="has no folders with the tables of a window"):
        windows.of_tables(path=tmp_path / "day")


def test_bidders_learn_from_window_to_window_and_in_rounds() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 10.5, 0.1), ("b", "y", "Lyon", 20.0, 0.2)],
        scores=[("Lyon", "a", 5.0), ("Lyon", "b", 5.0)],
    )
    entry = Entry(label="l", design=SYSTEM.design("learning_bidders"), parameters={"step": 0.2})
    runs = list(roll(SYSTEM, [problem] * 6, entry))
    markups = [run.plan.offers.set_index("cluster")["markup"] for run in runs]
    assert [round(float(one["a"]), 3) for one in markups[:4]] == [1.0, 1.2, 1.44, 1.728]
    assert (pd.concat(markups) >= 1).all()
    assert runs[3].metrics["bids_per_hour"] == pytest.approx(10 * 0.45 * 0.1 * 1.2**3)
    # six rounds in one window end where six windows do
    at_once = Entry(
        label="l", design=SYSTEM.design("learning_bidders"), parameters={"step": 0.2, "rounds": 6}
    )
    last = evaluate(SYSTEM, problem, at_once)
    assert last.plan.offers.equals(runs[-1].plan.offers)
    assert last.plan.assignments.equals(runs[-1].plan.assignments)


def test_careful_bidders_promise_less_and_plans_keep_the_promise() -> None:
    problem = world(clients=400, places=30, seed=2)
    entry = Entry(
        label="l", design=SYSTEM.design("learning_bidders"), parameters={"caution": 1.0, "rounds": 3}
    )
    run = evaluate(SYSTEM, problem, entry, options=Options(gap=0.01))
    promise = run.plan.offers["promise"].to_numpy(float)
    assert (promise >= 0.1).all()
    assert (promise < 1).any()
    assert measure(problem, run.plan, None)["congested_percent"] == 0
