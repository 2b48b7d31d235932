"""Elements of runs: exact names, flows that add up, and bounds on the gain of upgrades."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.drawing import NetworkMap, Timeline
from planner.contract.elements import ElementReport
from planner.contract.studies import Decided
from planner.errors import InputError
from planner.options import Options
from planner_models.circuitflows import SYSTEM, FlowsInTime
from planner_models.circuitflows.plan.presentation import ELEMENTS, choose_first_weeks, draw, draw_flows
from planner_models.circuitflows.plan.service import Service
from planner_models.circuitflows.problem import generators

PAIR, RACK = ELEMENTS


@pytest.fixture(scope="module")
def mixed() -> FlowsInTime:
    return generators.mixed(racks=4, rings=1, hosts=4, horizon_us=20_000.0, seed=3)


@pytest.fixture(scope="module")
def writes() -> FlowsInTime:
    return generators.dfsio(racks=4, writers=2, file_mb=8.0, block_mb=4.0, horizon_us=5_000.0)


def decide(problem: FlowsInTime, name: str, **parameters: Any) -> Decided:
    design = SYSTEM.design(name)
    decision = design.decide(problem, **parameters)
    metrics = SYSTEM.plan.measure(problem, decision.plan, None)
    return Decided(design=design, parameters=parameters, decision=decision, metrics=metrics)


def facts(report: ElementReport) -> dict[str, Any]:
    return {fact.label: fact.value for fact in report.facts}


@pytest.mark.parametrize("name", ["mixed", "writes"])
def test_flows_of_pairs_and_pairs_of_racks_add_up(name: str, request: pytest.FixtureRequest) -> None:
    problem: FlowsInTime = request.getfixturevalue(name)
    decided = decide(problem, "fixed" if name == "mixed" else "hdfs_random")
    service = Service.of(problem, decided.decision.plan)  # type: ignore[arg-type]
    names = PAIR.names(problem)
    assert len(set(names)) == len(names) == (12 if name == "mixed" else 4)
    total = 0.0
    for pair in names:
        report = PAIR.describe(problem, decided, pair, Options())  # type: ignore[misc]
        users = report.sections[0].frame
        assert users["wanted"].sum() == pytest.approx(facts(report)["Data"])
        assert users["left"].sum() == pytest.approx(facts(report)["Not delivered"])
        assert users["wanted"].is_monotonic_decreasing
        total += float(users["delivered"].sum())
    assert total / 1e3 == pytest.approx(decided.metrics["delivered_gb"])
    for rack in RACK.names(problem):
        report = RACK.describe(problem, decided, rack, Options())  # type: ignore[misc]
        result, users = facts(report), report.sections[0].frame
        assert users["wanted"].sum() == pytest.approx(result["Sends"] + result["Receives"])
        remaining = result["Not delivered, sent"] + result["Not delivered, received"]
        assert users["left"].sum() == pytest.approx(remaining)
    assert service.wanted_bytes.sum() / 1e9 == pytest.approx(decided.metrics["offered_gb"])


@pytest.mark.parametrize("name", ["mixed", "writes"])
def test_drawings_name_elements_of_the_problem(name: str, request: pytest.FixtureRequest) -> None:
    problem: FlowsInTime = request.getfixturevalue(name)
    decided = decide(problem, "fixed" if name == "mixed" else "hdfs_random")
    pairs = set(PAIR.names(problem))
    timeline, ring = draw(problem, decided.decision.plan)[:2]  # type: ignore[arg-type]
    (alone,) = draw_flows(problem)
    assert isinstance(timeline, Timeline)
    assert set(timeline.frame["element"]) <= pairs | {""}
    assert (timeline.frame["element"] != "").any()
    for drawing in (ring, alone):
        assert isinstance(drawing, NetworkMap)
        assert set(drawing.links["element"]) <= pairs
    assert isinstance(alone, NetworkMap)
    assert ("flows to any rack have no link" in alone.title) == (name == "writes")
    assert len(alone.links) == (12 if name == "mixed" else 0)
    assert "sends 0 bits" not in set(alone.nodes["note"])


def test_of_a_long_run_the_first_whole_weeks_are_drawn() -> None:
    problem = generators.strobe(racks=4, horizon_us=360_000.0)  # weeks of three days of 200 us
    days = pd.DataFrame({"start_us": np.repeat(20.0 + 200.0 * np.arange(1_800), 4)})
    shown, title = choose_first_weeks(problem, days)
    assert title == "Circuits by sending rack, the first 24 of 360 ms"
    assert len(shown) == 40 * 12


def test_no_upgrade_delivers_more_than_its_rank_says(mixed: FlowsInTime) -> None:
    before = decide(mixed, "fixed")
    action = RACK.with_role("upgrade")[1]
    ranks = RACK.ranking(mixed, before, action, Options())  # type: ignore[misc]
    assert set(ranks) == set(RACK.names(mixed))
    for rack, bound in list(ranks.items())[:2]:
        faster = SYSTEM.problem.adjust(mixed, **action.apply({}, rack))
        after = decide(faster, "fixed").metrics["delivered_gb"]
        assert after is not None
        assert bound is not None
        assert after - before.metrics["delivered_gb"] <= bound  # type: ignore[operator]


def test_unknown_names_are_one_line(mixed: FlowsInTime) -> None:
    with pytest.raises(InputError) as caught:
        PAIR.describe(mixed, decide(mixed, "fixed"), "r0->any", Options())  # type: ignore[misc]
    (fault,) = caught.value.faults
    assert fault.startswith("r0->any: no such rack pair; valid: r0->r1, r0->r2, ")


def test_what_is_not_delivered_is_left(mixed: FlowsInTime) -> None:
    decided = decide(mixed, "packet_only")
    service = Service.of(mixed, decided.decision.plan)  # type: ignore[arg-type]
    assert service.left_bytes.sum() / 1e9 == pytest.approx(decided.metrics["undelivered_gb"])
    assert not service.up_us.any()
    assert np.isfinite(service.delivered_bytes).all()
