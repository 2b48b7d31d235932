"""Bills over a series of windows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.runs.rolling import roll
from planner.scenarios.scenario import load
from planner_models.brokering import SYSTEM, Assignment, Brokering, measure
from planner_models.brokering.plan import billing
from tests.models.brokering.markets import CITIES, markets
from tests.models.brokering.markets import market as make

CONTINENT = {"FR": "EU", "IT": "EU", "NO": "EU", "BR": "SA", "ES": "EU"}


def test_bills_by_the_bit_and_by_the_95th_percentile() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Lyon", 60.0, 0.1)],
        contracts=[("x", "world", 0.2), ("y", "world", 0.5)],
        bids=[("Lyon", "a")],
    )
    counts = [10] * 18 + [20, 40]  # of 20 windows one is free
    problems = [problem.with_client_counts(np.array([count])) for count in counts]
    plans = [Assignment(assignments=share.clients.assign(cluster="a")) for share in problems]
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


def ledger(problem: Brokering, plan: Assignment, continent: dict[str, str]) -> dict[tuple[str, str], Decimal]:
    """Return what each contract costs in an hour, row by row; without a contract, under the CDN's name."""
    cdn_of = dict(zip(problem.clusters["cluster"], problem.clusters["cdn"], strict=True))
    country = dict(zip(problem.locations["location"], problem.locations["country"], strict=True))
    clusters = {row["cluster"]: row for row in problem.clusters.to_dict("records")}
    assert problem.contracts is not None
    terms = {(row["cdn"], row["region"]): row for row in problem.contracts.to_dict("records")}
    sent = dict.fromkeys(terms, Decimal(0))
    owed: dict[tuple[str, str], Decimal] = {}
    derived = dict(zip(problem.cdn_names, problem.derived_price, strict=True))
    hour = Decimal(problem.terms.units_per_mbps_hour)
    for row in plan.assignments.to_dict("records"):
        cdn, position = cdn_of[row["cluster"]], country[row["location"]]
        mbps = Decimal(row["clients"]) * Decimal(row["bitrate_kbps"]) / 1000
        holds = [item for item in (position, continent[position], "world") if (cdn, item) in terms]
        if holds:
            sent[cdn, holds[0]] += mbps
            continue
        cluster = clusters[row["cluster"]]
        price = cluster["bandwidth_cost"] + cluster["colocation_cost"]
        if not any(owner == cdn for owner, _ in terms):
            price = derived[cdn]
        owed[cdn, ""] = owed.get((cdn, ""), Decimal(0)) + mbps * Decimal(price) * hour
    for key, row in terms.items():
        owed[key] = max(sent[key], Decimal(row["commitment_mbps"])) * Decimal(row["price"]) * hour
    return owed


@st.composite
def contracts(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw contracts of three CDNs, for some regions."""
    pairs = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["cdn0", "cdn1", "cdn2"]), st.sampled_from(["world", "EU", "FR", "SA"])
            ),
            min_size=1,
            unique=True,
        )
    )
    return [
        {
            "cdn": cdn,
            "region": region,
            "price": draw(st.integers(1, 90)) / 100,
            "commitment_mbps": float(draw(st.sampled_from([0, 0, 3, 500]))),
        }
        for cdn, region in pairs
    ]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(problem=markets(), rows=contracts(), choice=st.randoms(use_true_random=False))
def test_the_reported_cost_is_the_bill_of_separate_code_to_the_cent(
    problem: Brokering, rows: list[dict[str, Any]], choice: Any
) -> None:
    rows = [row for row in rows if row["cdn"] in problem.cdn_names]
    if not rows:
        return
    held = replace(problem, contracts=pd.DataFrame(rows))
    clusters = [choice.choice(list(held.clusters["cluster"])) for _ in range(len(held.clients))]
    plan = Assignment(assignments=held.clients.assign(cluster=clusters))
    owed = sum(ledger(held, plan, CONTINENT).values())
    reported = measure(held, plan, None)["cost_per_hour"]
    assert reported is not None
    assert abs(Decimal(reported) - owed) < Decimal("0.005")
    lower = replace(held, contracts=pd.DataFrame(rows).assign(commitment_mbps=0.0))
    less = measure(lower, plan, None)["cost_per_hour"]
    assert less is not None
    assert less <= reported + 1e-9
    assert {country for country, *_ in CITIES.values()} <= set(CONTINENT)


def test_a_commitment_of_a_region_is_not_met_by_traffic_of_another_one() -> None:
    problem = make(
        [("Lyon", 1000.0, 10), ("Recife", 1000.0, 30)],
        [("a", "x", "Lyon", 60.0, 0.1)],
        contracts=[("x", "EU", 0.2), ("x", "world", 0.5)],
    )
    assert problem.contracts is not None
    committed = replace(problem, contracts=problem.contracts.assign(commitment_mbps=[25.0, 0.0]))
    plan = Assignment(assignments=committed.clients.assign(cluster="a"))
    bill = billing.bill([committed], [plan])
    assert bill["amount"].tolist() == pytest.approx([25 * 0.45 * 0.2, 30 * 0.45 * 0.5])
    assert bill["unused"].tolist() == pytest.approx([15 * 0.45 * 0.2, 0.0])
    assert billing.hourly_cost(committed, plan) == pytest.approx(bill["amount"].sum())


@pytest.mark.slow
def test_the_shipped_example_reports_the_bill_and_saves_what_the_bill_saves() -> None:
    problem = load("brokering/own_data").make_problem()
    assert isinstance(problem, Brokering)
    continent = dict.fromkeys(problem.locations["country"], "EU") | {"US": "NA", "CA": "NA", "SN": "AF"}
    result = planner.compare("brokering/own_data")
    for run in result.runs:
        owed = sum(ledger(problem, run.plan, continent).values())
        reported = run.metrics["cost_per_hour"]
        assert reported is not None
        assert abs(Decimal(reported) - owed) < Decimal("0.005")
    assert SYSTEM.plan.headline is not None
    assert "cost_per_hour" in SYSTEM.plan.headline.table
