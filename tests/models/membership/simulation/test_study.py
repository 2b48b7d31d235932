"""A run of failures beside the closed forms, and recorded events beside what they say by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.contract.units import MONTH_S
from planner.errors import InputError
from planner_models.membership import Membership
from planner_models.membership.designs.raft import plan as plan_raft
from planner_models.membership.designs.reported import plan_kill_host, plan_leases, plan_short_timeouts
from planner_models.membership.plan.check import read_plan
from planner_models.membership.problem.generators import service_row, site_row, small
from planner_models.membership.simulation.heartbeats import Beats, count_alarms
from planner_models.membership.simulation.outages import Outages, draw_outages, join_outages
from planner_models.membership.simulation.replay import union_s
from planner_models.membership.simulation.study import YEAR_S, run_services, tabulate_services


def three_zones(*, failover_s: float = 0.3) -> Membership:
    rows = [site_row("cloud", "region", fails_per_month=0.3)]
    for letter in "abc":
        rows.append(site_row(letter, "zone", "cloud", fails_per_month=3.0))
        rows.append(site_row(f"{letter} hosts", "host", letter, hosts=2.0, fails_per_month=9.0))
    pauses = pd.DataFrame([("cloud", 4_000.0, 0.5)], columns=["site", "per_month", "mean_s"])
    services = pd.DataFrame([service_row(faults=1.0, failover_s=failover_s)])
    return Membership(sites=pd.DataFrame(rows), services=services, pauses=pauses)


@pytest.mark.parametrize("design", [plan_raft, plan_leases, plan_kill_host, plan_short_timeouts])
def test_a_long_run_has_the_seconds_of_the_closed_forms(design: object) -> None:
    problem = three_zones()
    plan = design(problem).plan  # type: ignore[operator]
    runs = run_services(problem, read_plan(problem, plan), 100 * YEAR_S, np.random.default_rng(1))
    row = tabulate_services(problem, runs, 100 * YEAR_S).iloc[0]
    assert row["no_quorum_s"] == pytest.approx(row["closed_no_quorum_s"], rel=0.15)
    assert row["down_s"] == pytest.approx(row["closed_down_s"], rel=0.15)
    assert row["false_alarms"] == pytest.approx(row["closed_false_alarms"], rel=0.05)
    assert row["two_leaders_s"] == pytest.approx(row["closed_two_leaders_s"], rel=0.15, abs=1e-9)


def test_recorded_events_are_replayed_second_by_second() -> None:
    rows = [
        (100.0, "a", "down"),
        (400.0, "b", "down"),
        (1_000.0, "a", "up"),
        (1_500.0, "b", "up"),
        (2_000.0, "c", "flap"),
    ]
    problem = replace(
        three_zones(failover_s=2.0), events=pd.DataFrame(rows, columns=["at_s", "site", "what"])
    )
    plan = plan_raft(problem).plan
    assert plan is not None
    run = run_services(problem, read_plan(problem, plan), 2_000.0, np.random.default_rng(0))[0]
    assert [side.tolist() for side in run.unserved] == [[400.0], [1_000.0]]
    leader = problem.site_names[run.item.placement.leader]
    assert leader == "a hosts"
    start, end = (float(side[0]) for side in run.failovers)
    assert start == 100.0
    assert 102.9 <= end <= 103.0


def test_a_simulation_reports_runs_months_and_heartbeats() -> None:
    result = planner.simulate(
        "membership/split_brain",
        designs="short_timeouts,fenced",
        changes={"simulation.years": 2, "simulation.heartbeats": 100_000},
    )
    metrics = {run.label: run.result.metrics for run in result.runs if run.result is not None}
    assert (metrics["short_timeouts"]["two_leaders_s"] or 0.0) > 0
    assert metrics["fenced"]["two_leaders_s"] == 0
    tables = result.runs[0].result
    assert tables is not None
    assert len(tables.tables["months"]) == 25
    assert tables.tables["heartbeats"]["heartbeats"].tolist() == [100_000.0]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(1, 9)), min_size=1, max_size=12))
def test_joined_outages_cover_the_same_seconds(rows: list[tuple[int, int, int]]) -> None:
    owner = np.array([row[0] for row in rows])
    start = np.array([float(row[1]) for row in rows])
    end = start + np.array([float(row[2]) for row in rows])
    joined = join_outages([Outages(owner=owner, start=start, end=end)], 100.0)
    for number in range(3):
        covered = {second for o, s, e in zip(owner, start, end, strict=True) if o == number
                   for second in range(int(s), int(e))}  # fmt: skip
        rows_of = joined.owner == number
        assert (joined.end - joined.start)[rows_of].sum() == len(covered)
        assert union_s((joined.start[rows_of], joined.end[rows_of])) == len(covered)
        rows_given = owner == number
        assert union_s((start[rows_given], end[rows_given])) == len(covered)


def test_outages_are_down_as_long_as_their_rate_says() -> None:
    rate, repair = np.array([3.0, 0.0, 30.0]), np.array([3_600.0, 100.0, 86_400.0])
    outages = draw_outages(rate, repair, 500 * MONTH_S, np.random.default_rng(0))
    seconds = np.bincount(outages.owner, outages.end - outages.start, 3) / (500 * MONTH_S)
    assert seconds == pytest.approx(rate * repair / (MONTH_S + rate * repair), rel=0.1)
    assert seconds[1] == 0


def test_heartbeats_raise_no_alarm_without_loss_delay_and_pauses() -> None:
    rng = np.random.default_rng(0)
    assert count_alarms(Beats(interval_s=0.1, loss=0.0, spread_s=0.0), 0.15, 1_000, rng) == 0
    assert count_alarms(Beats(interval_s=0.1, loss=0.5, spread_s=0.0), 0.15, 1_000, rng) > 100


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([(5.0, "east a", "down"), (4.0, "east a", "up")], "at_s is 4, must be at least that of"),
        ([(5.0, "east a", "up")], "'east a' is up already"),
        ([(5.0, "nowhere", "down")], "no site of the table sites"),
    ],
)
def test_wrong_events_are_refused(rows: list[tuple[float, str, str]], text: str) -> None:
    with pytest.raises(InputError, match=text):
        replace(small(), events=pd.DataFrame(rows, columns=["at_s", "site", "what"]))
