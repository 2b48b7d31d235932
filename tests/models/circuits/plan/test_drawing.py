"""Drawings: elements that exist, bounds on what is drawn, and time that merged bars do not change."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.contract.drawing import Distribution, NetworkMap, Timeline
from planner_models.circuits import SYSTEM, Circuits
from planner_models.circuits.plan.drawing import MOST_BARS, MOST_LANES, SEVERAL, draw, draw_timeline
from planner_models.circuits.plan.elements import list_pairs, list_racks
from planner_models.circuits.problem import generators
from planner_models.circuits.problem.drawing import MOST_PAIRS, draw_demand


@pytest.mark.parametrize("design", ["solstice", "strobe", "packet_only"])
def test_drawings_name_elements_of_the_problem(design: str) -> None:
    problem = SYSTEM.problem.adjust(generators.rings(racks=6, count=2), fail_racks=("r2",))
    plan = SYSTEM.design(design).decide(problem).plan
    assert plan is not None
    shown = draw(problem, plan)
    assert isinstance(shown[0], NetworkMap if design == "packet_only" else Timeline)
    assert isinstance(shown[-1], Distribution)
    pairs = set(list_pairs(problem))
    for drawing in shown[:-1]:
        if isinstance(drawing, Timeline):
            assert drawing.kind == "rack pair"
            assert set(drawing.frame["element"]) <= pairs | {""}
        else:
            assert isinstance(drawing, NetworkMap)
            assert (drawing.link_kind, drawing.node_kind) == ("rack pair", "rack")
            assert set(drawing.links["element"]) <= pairs
            assert drawing.nodes["node"].tolist() == [name for name in list_racks(problem) if name != "r2"]
            assert not {"r2"} & {*drawing.links["tail"], *drawing.links["head"]}
            assert drawing.nodes["lost"].iloc[1] * 1e6 >= problem.unreachable_bits[1].sum()


def test_the_demand_is_drawn_without_a_plan() -> None:
    (drawing,) = draw_demand(generators.rings(racks=6, count=2))
    assert isinstance(drawing, NetworkMap)
    assert drawing.links["value"].isna().all()
    assert len(drawing.links) == 12
    assert not drawing.nodes.duplicated(["x", "y"]).any()


def test_of_many_racks_those_with_the_most_left_over_are_drawn() -> None:
    problem = generators.skewed(racks=64, load=1.5, seed=1)
    plan = SYSTEM.design("solstice").decide(problem).plan
    assert plan is not None
    timeline, ring, _ = draw(problem, plan)
    assert isinstance(timeline, Timeline)
    assert timeline.title == "Circuits by sending rack, the 40 of 64 racks with the most left over"
    assert timeline.frame["lane"].nunique() <= MOST_LANES
    assert isinstance(ring, NetworkMap)
    assert len(ring.links) == MOST_PAIRS
    assert "the 200 pairs with the most demand of" in ring.title
    assert ring.links["width"].min() * 1e6 >= np.sort(problem.bits, axis=None)[-MOST_PAIRS] * (1 - 1e-12)


def test_short_circuits_are_one_bar_and_all_the_time_is_drawn() -> None:
    problem = Circuits.from_matrix(1e6 * (1 - np.eye(8)), window_us=None)
    days, length = 2_000, 1.0
    numbers = np.repeat(np.arange(days), 8)
    source = np.tile(np.arange(8), days)
    target = (source + 1 + numbers % 7) % 8
    long = numbers == 0
    frame = pd.DataFrame(
        {
            "day": numbers + 1,
            "start_us": 100.0 + 2.0 * numbers,
            "duration_us": np.where(long, 90.0, length),
            **problem.name_pairs(source, target),
        }
    )
    frame.loc[long, "start_us"] = 0.0
    drawing = draw_timeline(
        problem, frame, demand=problem.bits, remaining=0 * problem.bits, note=lambda i, j: f"{i} to {j}"
    )
    shown = drawing.frame
    assert drawing.title == "Circuits by sending rack; short circuits together"
    assert len(shown) <= 1.1 * MOST_BARS
    assert shown["lane"].unique().tolist() == [f"r{i}" for i in range(8)]
    assert (shown["end"] >= shown["start"]).all()
    assert set(shown.loc[shown["what"] == SEVERAL, "element"]) == {""}
    single = shown[shown["what"] != SEVERAL]
    assert (single["element"] == single["lane"] + "->" + single["what"]).all()
    for _, lane in shown.groupby("lane"):
        assert lane["start"].is_monotonic_increasing
        assert (lane["start"].iloc[0], lane["end"].max()) == (0.0, 100.0 + 2.0 * (days - 1) + length)
    total = shown.loc[shown["what"] == SEVERAL, "note"].str.split(" ").str[0].astype(float).sum()
    remainder = (single["end"] - single["start"]).sum()
    assert total + remainder == pytest.approx(frame["duration_us"].sum())
