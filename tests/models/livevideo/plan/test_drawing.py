"""Pictures of distribution trees: tiers, joined client groups, and clients that lose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from planner.contract.drawing import NetworkMap
from planner_models.livevideo import SYSTEM, LiveVideo
from planner_models.livevideo.plan.drawing import draw
from planner_models.livevideo.problem import drawing as problem_drawing
from planner_models.livevideo.problem import generators
from planner_models.livevideo.problem.adjustments import adjust
from tests.models.livevideo.networks import problems


def picture(instance: LiveVideo, design: str = "vdn") -> NetworkMap:
    first = draw(instance, SYSTEM.design(design).run(instance).plan)[0]
    assert isinstance(first, NetworkMap)
    return first


@given(problems())
@settings(max_examples=5, deadline=None)
def test_clients_lose_what_metrics_count(instance: LiveVideo) -> None:
    for design in ("vdn", "cdn"):
        plan = SYSTEM.design(design).run(instance).plan
        metrics = SYSTEM.plan.measure(instance, plan, None)
        drawn = picture(instance, design)
        losses = ("unserved_clients", "lower_bitrate_clients", "degraded_clients")
        lost = sum(metrics[name] or 0.0 for name in losses)
        assert drawn.nodes["lost"].sum() == pytest.approx(lost)
        assert drawn.links["width"].sum() == pytest.approx(metrics["traffic_mbps"])


@pytest.mark.parametrize("places", [True, False])
def test_many_groups_are_joined_near_clusters(monkeypatch: pytest.MonkeyPatch, places: bool) -> None:
    monkeypatch.setattr(problem_drawing, "MOST_GROUPS", 5)
    instance = generators.heavy_tail(videos=12, edges=4, sources=1, reflectors=3, groups=30, seed=1)
    if not places:
        tables = instance.to_tables()
        clusters = tables["clusters"].drop(columns=["latitude", "longitude"])
        instance = LiveVideo.from_tables({**tables, "clusters": clusters})
    drawn = picture(instance)
    groups = drawn.nodes[drawn.nodes["group"] == "group"]
    assert len(groups) <= 4
    more = groups["label"].str.extract(r" and (\d+) more$")[0].fillna(0).astype(int)
    assert len(groups) + more.sum() == 30
    assert (groups["element"] == "").all()
    metrics = SYSTEM.plan.measure(instance, SYSTEM.design("vdn").run(instance).plan, None)
    assert drawn.links["width"].sum() == pytest.approx(metrics["traffic_mbps"])
    assert len(draw(instance, SYSTEM.design("vdn").run(instance).plan)) == (3 if places else 2)


def test_nodes_stay_where_they_are_after_a_failure() -> None:
    instance = generators.heavy_tail(videos=12, edges=4, sources=1, reflectors=3, groups=90, seed=1)
    failed = adjust(instance, fail_clusters=(SYSTEM.problem.elements[1].names(instance)[-1],))
    before, after = picture(instance).nodes, picture(failed).nodes
    columns = ["node", "x", "y"]
    assert before[columns].equals(after[columns])
    assert not before[["x", "y"]].duplicated().any()


def test_a_picture_without_a_plan_has_capacities() -> None:
    (drawn,) = SYSTEM.problem.draw(generators.ec2_testbed())
    assert drawn.links["value"].isna().all()
    assert drawn.nodes["value"].isna().all()
    assert drawn.links["note"].iloc[0] == f"{drawn.links['width'].iloc[0]:g} Mbit/s"
