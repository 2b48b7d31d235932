"""Designs, the protocol's messages, profits, bills and time: known answers and invariants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from planner.errors import PlanRejected
from planner.explain import explain
from planner.run import compare, evaluate
from planner.scenario import Entry, load
from planner_models.brokering import (
    SYSTEM,
    Assignment,
    Brokering,
    billing,
    check,
    learning,
    market,
    measure,
    profit,
    protocol,
    sees,
    several,
    windows,
)
from planner_models.brokering.generate import world
from tests.brokering.markets import market as make
from tests.brokering.markets import markets


def test_fig_3_7_flat_prices_lose_money_and_bids_earn() -> None:
    result = compare("brokering/fig_3_7", designs=["brokered", "marketplace"])
    flat, bids = (profit.by_cdn(run.problem, run.plan).set_index("cdn") for run in result.runs)
    # X serves only Reykjavik, 100 Mbit/s at 0.20; it is paid 1.2 times its average cost 0.03111
    assert flat.loc["X", "traffic_mbps"] == 100
    assert flat.loc["X", "cost_per_hour"] == pytest.approx(100 * 0.45 * 0.20)
    assert flat.loc["X", "price_to_cost"] == pytest.approx(1.2 * (50 * 0.20 + 400 * 0.01) / 450 / 0.20)
    assert flat.loc["X", "profit_at_flat_price"] < 0
    # with bids its cheap clusters serve everyone, and it earns 20% of its cost
    assert bids.loc["X", "traffic_mbps"] == 900
    assert bids.loc["X", "profit_at_cluster_price"] == pytest.approx(0.2 * 0.45 * (100 * 0.20 + 800 * 0.01))


def test_two_brokers_overbook_and_transactions_do_not() -> None:
    """Capacity 10, and two brokers that would each send 9 (3.4.2)."""
    problem = make(
        [("Lyon", 1000.0, 18)],
        [("good", "x", "Lyon", 10.0, 0.1), ("poor", "y", "Lyon", 100.0, 0.1)],
        scores=[("Lyon", "good", 1.0), ("Lyon", "poor", 50.0)],
    )
    alone = several.assign(problem, brokers=2, deal_seed=4)
    assert alone.plan is not None
    assert check(problem, alone.plan).frame["limit"].tolist() == ["capacity"]
    together = several.commit(problem, brokers=2, deal_seed=4)
    assert together.plan is not None
    assert together.plan.rounds is not None
    assert not len(check(problem, together.plan))
    assert together.plan.rounds["withdrawn"].tolist() == [2, 0]
    worth = measure(problem, together.plan, None)
    assert worth["rounds"] == 2
    assert worth["withdrawn"] == 2


@settings(max_examples=12)
@given(markets(tight=False))
def test_transactions_never_overbook(problem: Brokering) -> None:
    decision = several.commit(problem, brokers=3)
    if decision.plan is not None:
        assert not len(check(problem, decision.plan))


def test_a_composed_protocol_is_the_design_it_spells() -> None:
    problem = world(clients=500, places=40, seed=2)
    for bids, price, capacity, twin in (
        (1, "contract", "guessed", sees.brokered(problem)),
        (100, "cluster", "total", sees.best_lookup(problem)),
        (100, "cluster", "free", sees.marketplace(problem)),
    ):
        made = sees.protocol(problem, bids=bids, price=price, capacity=capacity)  # type: ignore[arg-type]
        assert np.array_equal(made.offered, twin.offered)
        assert np.array_equal(made.price[made.offered], twin.price[twin.offered])
        assert np.array_equal(made.free_mbps, twin.free_mbps)


def test_messages_have_the_formats_of_3_6_1() -> None:
    problem = make(
        [("Lyon", 1000.0, 10), ("Oslo", 500.0, 4)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2)],
    )
    believed = sees.marketplace(problem)
    told = protocol.shares(problem)
    assert list(told) == ["share_id", "location", "isp", "content_id", "data_size", "client_count"]
    offers = protocol.bids(believed, told)
    assert list(offers) == ["cluster_id", "share_id", "performance_estimate", "capacity", "price"]
    assert len(offers) == 4
    plan = market.assign(believed).plan
    assert plan is not None
    used = protocol.accepts(believed, told, plan)
    assert list(used) == list(offers)
    assert used["capacity"].sum() == pytest.approx(12.0)
    keys = set(zip(offers["cluster_id"], offers["share_id"], strict=True))
    assert keys >= set(zip(used["cluster_id"], used["share_id"], strict=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster": "zz"}, "assignments row 1: 'zz' is no cluster"),
        ({"clients": 0.5}, "assignments row 1: clients is 0.5, must be a whole number, 0 or more"),
        (
            {"clients": 11.0},
            "assignments: 11 clients of Lyon/isp/news at 1000 kbit/s are assigned, there are 10",
        ),
        ({"bitrate_kbps": 7.0}, "assignments row 1: Lyon/isp/news at 7 kbit/s are no clients"),
        ({"cluster": "b"}, "assignments row 1: cluster 'b' is not on offer to 'Lyon'"),
    ],
)
def test_what_is_no_plan_is_rejected(change: dict[str, object], message: str) -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2)],
        bids=[("Lyon", "a")],
    )
    plan = market.assign(problem).plan
    assert plan is not None
    with pytest.raises(PlanRejected) as caught:
        check(problem, Assignment(assignments=plan.assignments.assign(**change)))
    assert str(caught.value).startswith(message)


def test_limits_that_a_plan_breaks_are_counted() -> None:
    problem = make([("Lyon", 1000.0, 10)], [("a", "x", "Lyon", 8.0, 0.1)], background_mbps=[1.0])
    frame = problem.clients.assign(cluster="a")
    broken = check(problem, Assignment(assignments=frame)).frame
    assert broken[["limit", "amount", "allowed"]].to_numpy().tolist() == [["capacity", 11.0, 8.0]]
    few = check(problem, Assignment(assignments=frame.assign(clients=7.0))).frame
    assert few[["limit", "amount", "allowed"]].to_numpy().tolist() == [["demand", 7.0, 10.0]]


def test_metrics_of_a_plan_known_by_heart() -> None:
    problem = make(
        [("Lyon", 2000.0, 3), ("Oslo", 1000.0, 2)],
        [("a", "x", "Lyon", 12.0, 0.1), ("b", "y", "Oslo", 1.0, 0.2)],
        scores=[("Lyon", "a", 5.0), ("Lyon", "b", 9.0), ("Oslo", "a", 8.0), ("Oslo", "b", 2.0)],
        background_mbps=[3.0, 0.0],
    )
    frame = problem.clients.assign(cluster=["a", "b"])
    worth = measure(problem, Assignment(assignments=frame), None)
    # one of Oslo's clients finds no room in b, and moves to a
    assert worth["objective"] == pytest.approx(3 * 5 + 2 + 8 + 0.45 * (6 * 0.1 + 0.2 + 0.1))
    assert worth["median_cost"] == 0.1
    assert worth["median_score"] == 5
    assert worth["median_load_percent"] == pytest.approx((75 + 200) / 2)
    assert worth["congested_percent"] == pytest.approx(40)
    assert worth["moved_between_clusters_percent"] is None
    later = problem.clients.assign(cluster=["a", "a"])
    moved = measure(problem, Assignment(assignments=later), Assignment(assignments=frame))
    assert moved["moved_between_clusters_percent"] == pytest.approx(25)  # 2 of 8 Mbit/s
    assert moved["moved_between_cdns_percent"] == pytest.approx(25)


def test_countries_and_cdns_add_up_to_the_same() -> None:
    problem = world(clients=500, places=40, seed=2)
    plan = market.assign(sees.brokered(problem)).plan
    assert plan is not None
    by_cdn, by_country = profit.by_cdn(problem, plan), profit.by_country(problem, plan)
    for column in ("traffic_mbps", "cost_per_hour", "profit_at_flat_price", "profit_at_cluster_price"):
        assert by_cdn[column].sum() == pytest.approx(by_country[column].sum())
    assert (by_cdn["profit_at_cluster_price"] >= 0).all()


def test_bills_by_the_bit_and_by_the_95th_percentile() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Lyon", 60.0, 0.1)],
        contracts=[("x", "world", 0.2), ("y", "world", 0.5)],
        bids=[("Lyon", "a")],
    )
    counts = [10] * 18 + [20, 40]  # of 20 windows one is free
    problems = [problem.serving(np.array([count])) for count in counts]
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


def test_a_day_has_fewer_clients_at_night() -> None:
    problem = make([("Lyon", 1000.0, 1000)], [("a", "x", "Lyon", 6000.0, 0.1)])
    totals = [
        part.size()["clients"]
        for part in (one for _, one in windows.Day(problem=problem, windows=24, swing=0.5))
    ]
    assert max(totals) == pytest.approx(1000, rel=0.01)
    assert min(totals) == pytest.approx(500, rel=0.01)
    assert next(iter(windows.Day(problem=problem, windows=3, swing=0.0)))[1].size()["clients"] == 1000


def test_bidders_raise_what_is_wanted_and_never_go_below_cost() -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 10.5, 0.1), ("b", "y", "Lyon", 20.0, 0.2)],
        scores=[("Lyon", "a", 5.0), ("Lyon", "b", 5.0)],
    )
    tables = learning.play([problem] * 20, step=0.2)
    assert len(tables["rounds"]) == 20
    x = tables["cdns"][tables["cdns"]["cdn"] == "x"]
    assert (x["profit"] >= -1e-9).all()
    # x fills up at its cost, asks for more, and earns, until y's cost undercuts it
    assert 10 * 0.45 * 0.1 * (1.2**3 - 1) <= x["profit"].max() <= 10 * 0.45 * (0.2 - 0.1)
    assert x["traffic_mbps"].min() == 0
    still = learning.play([problem] * 4, step=0.0)
    assert still["rounds"]["moved_between_cdns_percent"].tolist()[1:] == [0.0, 0.0, 0.0]


def test_own_data_two_files_edited_and_the_money_saved_in_one_line(tmp_path: Path) -> None:
    scenario = load("brokering/own_data")
    folder = tmp_path / "own_data"
    folder.mkdir()
    for name, frame in scenario.make_problem().to_tables().items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    before = tmp_path / "yesterday"
    before.mkdir()
    run = compare(scenario, designs=["own_prices"]).runs[0]
    run.plan.assignments.to_csv(before / "assignments.csv", index=False)

    prices = pd.read_csv(folder / "contracts.csv")
    prices.loc[(prices["cdn"] == "Crest") & (prices["region"] == "EU"), "price"] = 0.005
    prices.to_csv(folder / "contracts.csv", index=False)
    scores = pd.read_csv(folder / "scores.csv")
    scores.loc[(scores["location"] == "Paris") & (scores["cluster"] == "crest-mrs"), "score"] = 7.0
    scores.to_csv(folder / "scores.csv", index=False)
    toml = tmp_path / "mine.toml"
    toml.write_text(scenario.to_toml(scenario.folder))
    told = explain(toml, previous=before)
    assert told.explanation is not None
    first = told.explanation.sentences[0]
    assert first.startswith("The plan costs EUR ")
    assert "it saves EUR " in first
    assert told.run.plan.diff(run.plan)["clients"].abs().sum() > 0


def test_explain_says_what_room_is_worth_and_which_cdn_is_missed() -> None:
    told = explain("brokering/own_data", design="marketplace")
    assert told.explanation is not None
    titles = [section.title for section in told.explanation.sections]
    assert titles == ["what changes", "full clusters", "without a CDN"]
    without = told.explanation.sections[2].frame
    assert set(without["cdn"]) == {"Acme", "Bolt", "Crest"}  # all of them are tried
    assert f"Without {without['cdn'].iloc[0]} the broker loses most" in told.explanation.sentences[2]
    full = told.explanation.sections[1].frame
    # prices fall as room grows: a whole Gbit/s is worth at most what the margin says
    assert (full["gain_of_a_gbps"] <= full["worth_per_gbps"] * (1 + 1e-9)).all()
    assert (full["gain_of_a_gbps"] >= -1e-6).all()


def test_every_design_names_its_metrics() -> None:
    problem = world(clients=300, places=30, seed=5)
    names = {metric.name for metric in SYSTEM.metrics}
    for design in SYSTEM.designs:
        run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
        assert run.plan is not None
        assert set(run.metrics) == names
