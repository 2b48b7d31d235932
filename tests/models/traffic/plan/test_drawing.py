"""Pictures of routings: what links drop, what nodes do not send, and what is left out of large ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner.contract.drawing import NetworkMap
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.plan.drawing import draw
from planner_models.traffic.problem import drawing as problem_drawing
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.adjustments import adjust
from tests.models.traffic.networks import both_ways, network, problems


def picture(problem: Traffic, design: str) -> NetworkMap:
    plan = SYSTEM.design(design).run(problem).plan
    first = draw(problem, plan)[0]
    assert isinstance(first, NetworkMap)
    return first


@given(problems())
@settings(max_examples=12, deadline=None)
def test_links_and_nodes_lose_what_does_not_arrive(problem: Traffic) -> None:
    for design in ("ecmp", "optimum"):
        plan = SYSTEM.design(design).run(problem).plan
        metrics = SYSTEM.plan.measure(problem, plan, None)
        drawn = picture(problem, design)
        assert drawn.links["lost"].sum() == pytest.approx(metrics["lost_mbps"], abs=1e-6)
        assert drawn.nodes["lost"].sum() == pytest.approx(metrics["shed_mbps"], abs=1e-5)


def test_senders_that_slow_down_lose_at_their_nodes() -> None:
    problem = adjust(network([("a", "b", 4.0)], [("a", "b", 10.0)]), overload="max-min")
    drawn = picture(problem, "ecmp")
    assert drawn.links["lost"].tolist() == [0.0]
    assert drawn.nodes["lost"].tolist() == pytest.approx([6.0, 0.0])
    assert drawn.nodes["lost_as"].tolist() == ["not served (capacity)", ""]


def test_a_picture_without_a_plan_has_no_values() -> None:
    (drawn,) = SYSTEM.problem.draw(generators.germany50())
    assert isinstance(drawn, NetworkMap)
    assert drawn.links["value"].isna().all()
    assert drawn.links["element"].iloc[0] == "Aachen<->Koeln"
    assert drawn.links["note"].iloc[0].endswith("bit/s")


def test_links_side_by_side_share_an_element() -> None:
    twins = [("a", "b", 1.0), ("a", "b", 2.0)]
    drawn = picture(network(both_ways(twins), [("a", "b", 1.0)]), "ecmp")
    assert sorted(drawn.links["element"]) == ["a<->b#1", "a<->b#1", "a<->b#2", "a<->b#2"]


@pytest.mark.parametrize("preset", ["fat_tree", "oversubscribed_fat_tree", "vl2"])
def test_fabrics_are_drawn_in_tiers(preset: str) -> None:
    problem = generators.PRESETS[preset]()
    (drawn,) = SYSTEM.problem.draw(problem)
    nodes = drawn.nodes.set_index("node")
    assert not nodes[["x", "y"]].round(9).duplicated().any()
    height = nodes["y"].groupby(nodes.index.str.split("-").str[0]).agg(["min", "max"])
    tiers = (
        ["host", "edge", "aggregation", "core"]
        if "fat" in preset
        else ["host", "tor", "aggregation", "intermediate"]
    )
    ordered = height.loc[tiers]
    assert (ordered["max"].to_numpy()[:-1] < ordered["min"].to_numpy()[1:]).all()
    # hosts stand near their switch
    host, switch = (
        nodes.loc[problem.links[end][: len(problem.nodes) // 8], "x"].to_numpy() for end in ("tail", "head")
    )
    assert np.abs(host - switch).max() <= 0.5


def test_large_pictures_say_what_they_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_drawing, "MOST_LINKS", 4)
    drawn = picture(
        network(both_ways([("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 3.0)]), [("a", "b", 1.0)]), "ecmp"
    )
    assert len(drawn.links) == 4
    assert drawn.title == "Links by utilization, the first 4 of 6"
    assert ("a", "b") in set(zip(drawn.links["tail"], drawn.links["head"], strict=True))


def test_a_network_without_links_is_drawn() -> None:
    problem = adjust(network([("a", "b", 4.0)], [("a", "b", 10.0)]), fail_links=("a->b",))
    drawn = picture(problem, "optimum")
    assert drawn.nodes["lost"].tolist() == [10.0, 0.0]
    assert drawn.nodes["lost_as"].tolist() == ["lost (no path)", ""]


def test_words_tell_want_of_capacity_from_failures() -> None:
    links = both_ways([("a", "b", 4.0), ("b", "c", 4.0)])
    problem = network(links, [("a", "b", 10.0), ("b", "a", 1.0), ("a", "c", 0.5)])
    short = picture(problem, "optimum").nodes.set_index("node")
    assert short["lost_as"].to_dict() == {"a": "not served (capacity)", "b": "", "c": ""}
    cut = picture(adjust(problem, fail_links=("b<->c",)), "optimum").nodes.set_index("node")
    assert cut["lost_as"].to_dict() == {"a": "not served (capacity, no path)", "b": "", "c": ""}
    plan = SYSTEM.design("ecmp").run(network(links, [("a", "c", 1.0)])).plan
    failed = adjust(network([*links, ("a", "c", 4.0)], [("a", "c", 1.0)]), fail_links=("b->c",))
    (first, *_) = draw(failed, SYSTEM.plan.from_tables(failed, plan.to_tables()))
    assert isinstance(first, NetworkMap)
    assert first.nodes.set_index("node")["lost_as"].to_dict() == {"a": "lost (failure)", "b": "", "c": ""}


def test_a_link_that_is_full_but_for_rounding_is_not_over_its_capacity() -> None:
    problem = network([("a", "b", 0.1 + 0.2)], [("a", "b", 0.3)])
    assert picture(problem, "optimum").links["value"].tolist() == pytest.approx([100.0])
    problem = network([("a", "b", 0.3)], [("a", "b", 0.3 * (1 + 1e-9))])
    assert picture(problem, "ecmp").links["value"].tolist() == [100.0]
