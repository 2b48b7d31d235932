"""Maps of markets: clusters by load, flows to clients, and clients that lose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from planner.contract.drawing import NetworkMap
from planner_models.brokering import SYSTEM, Brokering
from planner_models.brokering.plan import drawing
from planner_models.brokering.problem import generators
from tests.models.brokering.markets import market, markets


def picture(problem: Brokering, design: str = "brokered") -> NetworkMap:
    design_ = SYSTEM.design(design)
    first = drawing.draw(problem, design_.run(design_.observe(problem)).plan)[0]
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
    monkeypatch.setattr(drawing, "MAX_PAIRS", 2)
    drawn = picture(problem)
    count = len(everything.links)
    assert drawn.title == f"Clusters by load, and flows to clients elsewhere, the 2 largest of {count}"
    assert drawn.links["width"].tolist() == everything.links["width"].tolist()[:2]


def test_a_map_without_a_plan_has_no_flows() -> None:
    (drawn,) = SYSTEM.problem.draw(generators.world(clients=200, places=12, seed=1))
    assert len(drawn.links) == 0
    assert drawn.nodes["value"].isna().all()
