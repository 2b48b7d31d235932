"""Bills over a series of windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.runs.rolling import roll
from planner_models.brokering import Assignment
from planner_models.brokering.plan import billing
from tests.models.brokering.markets import market as make


def test_bills_by_the_bit_and_by_the_95th_percentile() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Lyon", 60.0, 0.1)],
        contracts=[("x", "world", 0.2), ("y", "world", 0.5)],
        bids=[("Lyon", "a")],
    )
    counts = [10] * 18 + [20, 40]  # of 20 windows one is free
    problems = [problem.with_client_counts(np.array([count])) for count in counts]
    plans = [Assignment(assignments=part.clients.assign(cluster="a")) for part in problems]
    bits = billing.bill(problems, plans).set_index("cdn")
    assert bits.loc["x", "amount"] == pytest.approx(sum(counts) * 0.45 * 0.2)
    peak = billing.bill(problems, plans, rule="95th percentile").set_index("cdn")
    assert peak.loc["x", "billed_mbps"] == 20
    assert peak.loc["x", "amount"] == pytest.approx(20 * 0.45 * 0.2 * 20)
    assert peak.loc["y", "amount"] == 0


def test_a_commitment_is_paid_for_in_any_case() -> None:
    problem = make([("Lyon", 1000.0, 10)], [("a", "x", "Lyon", 60.0, 0.1)], contracts=[("x", "world", 0.2)])
    assert problem.contracts is not None
    committed = replace(problem, contracts=problem.contracts.assign(commitment_mbps=25.0))
    plan = Assignment(assignments=committed.clients.assign(cluster="a"))
    bill = billing.bill([committed], [plan])
    assert bill["billed_mbps"].tolist() == [25.0]
    assert bill["amount"].tolist() == pytest.approx([25 * 0.45 * 0.2])


def test_bills_of_contracts_are_the_same_window_by_window_and_over_all() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Lyon", 60.0, 0.3)],
        contracts=[("x", "world", 0.2), ("y", "world", 0.5)],
    )
    counts = [10, 30, 20, 50, 10]
    series = [problem.with_client_counts(np.array([count])) for count in counts]
    runs = list(roll(series, designs="marketplace"))
    plans = [run.plan for run in runs]
    for rule, name in (("bits", "bits"), ("95th percentile", "95th")):
        bill = billing.bill(series, plans, rule=rule)  # type: ignore[arg-type]
        hourly = bill["amount"].sum() / len(counts)
        assert runs[-1].run["metrics"][f"billed_by_{name}_per_hour"] == pytest.approx(hourly)
    assert runs[0].run["metrics"]["billed_by_bits_per_hour"] == pytest.approx(10 * 0.45 * 0.2)
    assert runs[-1].run["metrics"]["billed_by_95th_per_hour"] == pytest.approx(50 * 0.45 * 0.2)
