"""Drawings of plans, and what pages of elements show."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.drawing import NetworkMap
from planner.contract.studies import Decided
from planner.options import Options
from planner_models.brokering import SYSTEM, Brokering
from planner_models.brokering.plan import presentation
from planner_models.brokering.plan.presentation import CDNS, CLUSTERS, PLACES
from planner_models.brokering.problem import generators
from planner_models.brokering.problem.adjustments import adjust
from tests.models.brokering.markets import market, markets


def picture(problem: Brokering, design: str = "brokered") -> NetworkMap:
    design_ = SYSTEM.design(design)
    first = presentation.draw(problem, design_.run(design_.observe(problem)).plan)[0]
    assert isinstance(first, NetworkMap)
    return first


@given(markets())
@settings(max_examples=6, deadline=None)
def test_clients_lose_what_metrics_count(problem: Brokering) -> None:
    design_ = SYSTEM.design("brokered")
    plan = design_.run(design_.observe(problem)).plan
    metrics = SYSTEM.plan.measure(problem, plan, None)
    drawn = picture(problem)
    is_place = drawn.nodes["element"] == ""
    assert drawn.nodes["lost"][~is_place].sum() == metrics["congested"]
    assert drawn.nodes["lost"][is_place].sum() == metrics["shed"]


def test_clusters_of_one_place_stand_apart() -> None:
    problem = market(
        [("Lyon", 1000.0, 10)],
        [(f"x{i}", f"cdn{i}", "Lyon", 60.0, 0.1) for i in range(9)]
        + [("clients in Lyon", "y", "Oslo", 1.0, 0.1)],
    )
    drawn = picture(problem)
    assert not drawn.nodes[["latitude", "longitude"]].round(6).duplicated().any()
    assert drawn.nodes["node"].is_unique
    assert drawn.nodes["label"].tolist()[-1] == "Lyon"


@pytest.mark.slow
def test_large_maps_say_what_they_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generators.world(clients=200, places=12, seed=1)
    everything = picture(problem)
    assert everything.title == "Clusters by load, and flows to clients elsewhere"
    monkeypatch.setattr(presentation, "MAX_PAIRS", 2)
    drawn = picture(problem)
    count = len(everything.links)
    assert drawn.title == f"Clusters by load, and flows to clients elsewhere, the 2 largest of {count}"
    assert drawn.links["width"].tolist() == everything.links["width"].tolist()[:2]


def test_a_map_without_a_plan_has_no_flows() -> None:
    (drawn,) = SYSTEM.problem.draw(generators.world(clients=200, places=12, seed=1))
    assert len(drawn.links) == 0
    assert drawn.nodes["value"].isna().all()


OPTIONS = Options(threads=1)


def decide(problem: Brokering, design: str = "omniscient") -> Decided:
    design_ = SYSTEM.design(design)
    decision = design_.run(design_.observe(problem), options=OPTIONS)
    metrics = SYSTEM.plan.measure(problem, decision.plan, None)
    return Decided(design=design_, parameters={}, decision=decision, metrics=metrics)


def short() -> Brokering:
    """Return a market in which x1 is full, and some clients have no cluster."""
    return market(
        [("Lyon", 1000.0, 10), ("Oslo", 500.0, 4)],
        [("x1", "x", "Lyon", 6.0, 0.1), ("y1", "y", "Oslo", 2.0, 0.2)],
    )


@given(markets(), st.data())
@settings(max_examples=4, deadline=None)
def test_failing_never_helps_and_doubling_never_hurts(problem: Brokering, data: st.DataObject) -> None:
    before = decide(problem).metrics
    served, cost = before["served"] or 0.0, before["weighted_cost"] or 0.0
    for kind in (CLUSTERS, CDNS):
        name = data.draw(st.sampled_from(list(kind.names(problem))))
        for action in kind.actions:
            after = decide(adjust(problem, **action.apply({}, name))).metrics
            better = action.role == "upgrade" or action.name.startswith("Lower")
            if after["served"] == served:
                change = (after["weighted_cost"] or 0.0) - cost
                assert (change if better else -change) <= 1e-6 * max(1.0, cost), action.name
            else:
                assert ((after["served"] or 0.0) > served) == better, action.name


@given(markets(), st.data())
@settings(max_examples=8, deadline=None)
def test_users_sum_to_the_load(problem: Brokering, data: st.DataObject) -> None:
    decided = decide(problem, "brokered")
    for kind, label in ((CLUSTERS, "Traffic of this broker"), (CDNS, "Traffic of this broker")):
        name = data.draw(st.sampled_from(list(kind.names(problem))))
        report = kind.describe(problem, decided, name, OPTIONS)
        load = next(fact.value for fact in report.facts if fact.label == label)
        for section in report.sections:
            assert section.frame["load_mbps"].sum() == pytest.approx(load, abs=1e-9)
    name = data.draw(st.sampled_from(list(PLACES.names(problem))))
    report = PLACES.describe(problem, decided, name, OPTIONS)
    facts = {fact.label: fact.value for fact in report.facts}
    served = report.sections[0].frame["clients"].sum()
    assert served + facts["Clients without a cluster"] == facts["Clients"]


def test_upgrades_are_bounded_by_the_clients_without_service() -> None:
    problem = short()
    decided = decide(problem)
    (double,) = CLUSTERS.with_role("upgrade")
    missing = (decided.metrics["clients"] or 0.0) - (decided.metrics["served"] or 0.0)
    assert missing > 0
    ranking = CLUSTERS.ranking(problem, decided, double, OPTIONS)
    assert set(ranking.values()) == {missing}
    served = decide(adjust(problem, capacity_factors={"x1": 2.0})).metrics["served"] or 0.0
    assert 0 < served - (decided.metrics["served"] or 0.0) <= missing
    assert CLUSTERS.adds(problem, double, "x1") == "6 Mbit/s"
    plenty = adjust(problem, capacity_scale=100.0)
    assert CLUSTERS.ranking(plenty, decide(plenty), double, OPTIONS) == {}


def test_a_full_cluster_has_a_price() -> None:
    problem = adjust(short(), capacity_factors={"y1": 10.0})
    report = CLUSTERS.describe(problem, decide(problem), "x1", OPTIONS)
    facts = {fact.label: fact.value for fact in report.facts}
    assert facts["Load"] == pytest.approx(100.0)
    assert facts["CDN"] == "x"
    assert float(facts["Gain by 1 Gbit/s more (weighted cost)"] or 0.0) > 0
