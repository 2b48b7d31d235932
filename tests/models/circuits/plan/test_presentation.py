"""Drawings of plans, and what pages of elements show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.drawing import Distribution, NetworkMap, Timeline
from planner.contract.elements import ElementReport
from planner.contract.studies import Decided
from planner.errors import InputError
from planner.options import Options
from planner_models.circuits import SYSTEM, Circuits, measure
from planner_models.circuits.designs import optimum
from planner_models.circuits.plan.presentation import (
    ELEMENTS,
    MOST_BARS,
    MOST_LANES,
    SEVERAL,
    draw,
    draw_timeline,
    list_pairs,
    list_racks,
)
from planner_models.circuits.plan.service import Service
from planner_models.circuits.problem import generators
from planner_models.circuits.problem.drawing import MOST_PAIRS, draw_demand
from tests.models.circuits.demands import problems


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


PAIR, RACK = ELEMENTS


def decide(problem: Circuits, name: str = "solstice") -> Decided:
    design = SYSTEM.design(name)
    decision = design.decide(problem)
    metrics = measure(problem, decision.plan, None)
    return Decided(design=design, parameters={}, decision=decision, metrics=metrics)


def facts(report: ElementReport) -> dict[str, Any]:
    return {fact.label: fact.value for fact in report.facts}


def served_mbps(problem: Circuits) -> float:
    objective = optimum.schedule(problem, steps=200).proof.objective
    assert objective is not None
    return objective


def test_names_are_unique_even_of_racks_with_arrows() -> None:
    names = ["a", "a->b", "b", "b->c", "'a", "c"]
    bits = 1.0 - np.eye(len(names))
    problem = Circuits.from_matrix(pd.DataFrame(bits, index=names, columns=names))
    pairs = PAIR.names(problem)
    assert len(set(pairs)) == len(names) * (len(names) - 1)
    source, target = problem.rows_of(problem.demands)
    assert [problem.find_pair(name) for name in pairs] == list(zip(source, target, strict=True))
    changed = SYSTEM.problem.adjust(problem, demand_factors={"'a->b'->c": 3.0})
    assert changed.bits[1, 5] == 3.0
    assert changed.bits.sum() == problem.bits.sum() + 2.0


@pytest.mark.slow
@settings(max_examples=15)
@given(problems(max_racks=4, plain=False), st.sampled_from(["solstice", "eclipse", "strobe", "packet_only"]))
def test_what_carries_pairs_and_what_uses_racks_adds_up(problem: Circuits, name: str) -> None:
    if not problem.bits.any():
        return
    decided = decide(problem, name)
    service = Service.of(problem, decided.decision.plan)  # type: ignore[arg-type]
    for pair in PAIR.names(problem):
        report = PAIR.describe(problem, decided, pair, Options())  # type: ignore[misc]
        result, (i, j) = facts(report), problem.find_pair(pair) or (-1, -1)
        carried = sum(section.frame["carried"].sum() for section in report.sections)
        assert len(report.sections) == (carried > 0)
        assert carried == pytest.approx(service.served_bits[i, j] / 1e6, rel=1e-5, abs=1e-12)
        assert result["Demand"] - result["Left over"] == pytest.approx(carried, rel=1e-5, abs=1e-12)
        assert ("Why" in result) == (result["Left over"] > 0)
    for rack in RACK.names(problem):
        report = RACK.describe(problem, decided, rack, Options())  # type: ignore[misc]
        result = facts(report)
        users = report.sections[0].frame
        assert users["wanted"].sum() == pytest.approx(result["Sends"] + result["Receives"])
        remaining = result["Left over, sent"] + result["Left over, received"]
        assert users["left_over"].sum() == pytest.approx(remaining)
        assert users["wanted"].is_monotonic_decreasing


def test_coflows_of_a_pair_add_up_to_its_demand() -> None:
    problem = generators.rings(racks=4)
    parts = [problem.demands.assign(coflow=name, bits=problem.demands["bits"] / 2) for name in "ab"]
    problem = replace(problem, coflows=pd.concat(parts, ignore_index=True))
    report = PAIR.describe(problem, decide(problem), "r0->r1", Options())  # type: ignore[misc]
    assert report.sections[1].frame["demand"].sum() == pytest.approx(facts(report)["Demand"])
    left_out = SYSTEM.problem.adjust(problem, demand_factors={"r0->r1": 0.0})
    assert len(left_out.coflows) == 6  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "name", "fault"),
    [
        (PAIR, "r0->r2", "r0->r2: no such rack pair; did you mean 'r1->r2'?"),
        (RACK, "r9", "r9: no such rack; valid: r0, r1, r2, r3"),
    ],
)
def test_unknown_names_are_one_line(kind: Any, name: str, fault: str) -> None:
    problem = generators.rings(racks=4)
    with pytest.raises(InputError) as caught:
        kind.describe(problem, decide(problem), name, Options())
    assert caught.value.faults == (fault,)


def test_a_bound_has_no_plan_to_describe() -> None:
    problem = generators.rings(racks=4)
    design = SYSTEM.design("bound")
    decided = Decided(design=design, parameters={}, decision=design.decide(problem), metrics={})
    with pytest.raises(InputError, match="bound: has no plan to describe"):
        RACK.describe(problem, decided, "r0", Options())  # type: ignore[misc]


@settings(max_examples=8)
@given(problems(max_racks=3, bounded=True), st.integers(0, 2))
def test_upgrades_never_hurt_the_optimum_and_failures_never_help(problem: Circuits, place: int) -> None:
    before = served_mbps(problem)
    rack = RACK.names(problem)[place % len(problem.racks)]
    for action in RACK.actions:
        after = served_mbps(SYSTEM.problem.adjust(problem, **action.apply({}, rack)))
        if action.role == "upgrade":
            assert after >= before * (1 - 1e-6)
        else:
            assert after <= before * (1 + 1e-6)


@settings(max_examples=6)
@given(problems(max_racks=3, bounded=True))
def test_no_upgrade_gains_more_than_its_rank_says(problem: Circuits) -> None:
    decided = decide(problem, "optimum")
    for action in RACK.with_role("upgrade"):
        ranks = RACK.ranking(problem, decided, action, Options())  # type: ignore[misc]
        for rack in RACK.names(problem):
            bound = ranks.get(rack, 0.0)
            assert bound is not None
            gain = served_mbps(SYSTEM.problem.adjust(problem, **action.apply({}, rack)))
            assert gain - decided.metrics["served_mbps"] <= bound + 1e-6  # type: ignore[operator]


def test_racks_with_the_most_left_over_come_first() -> None:
    bits = np.zeros((4, 4))
    bits[0, 1] = bits[2, 3] = 1e9
    bits[2, 1] = 2e9
    problem = Circuits.from_matrix(bits)
    ranks = RACK.ranking(problem, decide(problem), RACK.actions[2], Options())  # type: ignore[misc]
    assert set(list(ranks)[:2]) == {"r1", "r2"}
    faster = RACK.actions[1]
    assert not RACK.ranking(problem, decide(problem), faster, Options())  # type: ignore[misc]
    item = SYSTEM.problem.adjust(problem, circuit_factors={"r1": 2.0})
    assert list(RACK.ranking(item, decide(item), faster, Options())) == ["r2", "r0"]  # type: ignore[misc]
