"""Signalling for a week's circuits, counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.signalling import Signalling, no_signalling
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.circuits import SYSTEM, Circuits
from planner_models.circuits.designs import equal_days
from planner_models.circuits.information import signalling
from planner_models.circuits.plan.plan import Day, make_plan
from planner_models.circuits.problem import generators


def problem(bits: list[list[float]], **switch: Any) -> Circuits:
    return Circuits.from_matrix(
        np.array(bits),
        circuit_mbps=1_000.0,
        packet_mbps=10.0,
        night_us=10.0,
        window_us=10_000.0,
        **switch,
    )


@pytest.fixture
def three() -> Circuits:
    """r0 -> r1 has 3.5 MB, r1 -> r2 has 1 MB, r2 -> r0 a single bit."""
    return problem([[0, 28e6, 0], [0, 0, 8e6], [1, 0, 0]])


DAYS = [
    Day(duration_us=100.0, target=np.array([1, 2, -1])),
    Day(duration_us=50.0, target=np.array([1, -1, -1])),
]
# to each of both switches: two lengths, three circuits with two ends each
SCHEDULE = 2 * (2 * 8 + 3 * 2 * 4)
REPORTS = 3 * (4 + 8)


def test_queues_are_reported_rack_by_rack(three: Circuits) -> None:
    plan, _, _ = make_plan(three, DAYS)
    assert signalling.count_queue_reports(three, plan) == Signalling(messages=3 + 2, bytes=REPORTS + SCHEDULE)


def test_each_data_unit_is_reported(three: Circuits) -> None:
    """Four units, one and one, each with two ends and a size."""
    plan, _, _ = make_plan(three, DAYS)
    assert signalling.count_data_units(three, plan) == Signalling(
        messages=6 + 3 + 2, bytes=6 * 16 + REPORTS + SCHEDULE
    )


def test_no_more_units_are_reported_than_connections_hand_over() -> None:
    large = problem([[0, 8e9], [0, 0]])
    plan, _, _ = make_plan(large, [])
    assert signalling.count_data_units(large, plan) == Signalling(messages=16 + 2, bytes=16 * 16 + 12)


def test_whole_transfers_are_reported_once_and_parts_of_coflows_each(three: Circuits) -> None:
    plan, _, _ = make_plan(three, DAYS)
    assert signalling.count_transfers(three, plan) == Signalling(
        messages=3 + 3 + 2, bytes=3 * 16 + REPORTS + SCHEDULE
    )
    parts = pd.DataFrame(
        [("a", "r0", "r1", 20e6), ("b", "r0", "r1", 8e6), ("a", "r1", "r2", 8e6), ("b", "r2", "r0", 1.0)],
        columns=["coflow", "source_rack", "target_rack", "bits"],
    )
    tables = {**three.to_tables(), "coflows": parts}
    assert signalling.count_transfers(Circuits.from_tables(tables), plan).messages == 4 + 3 + 2


def test_each_circuit_switch_gets_its_own_days() -> None:
    two = problem([[0, 8e6], [8e6, 0]], circuit_switches=2)
    swap = np.array([1, 0])
    plan, _, _ = make_plan(
        two, [Day(duration_us=9.0, target=swap), Day(duration_us=9.0, target=swap, switch=1)]
    )
    said = 2 * (2 * 8 + 4 * 2 * 4)
    assert signalling.count_queue_reports(two, plan) == Signalling(messages=2 + 3, bytes=2 * 12 + said)


def test_without_circuits_only_reports_are_sent(three: Circuits) -> None:
    plan, _, _ = make_plan(three, [])
    assert signalling.count_queue_reports(three, plan) == Signalling(messages=3, bytes=REPORTS)
    assert (
        equal_days.count_requests(three, plan)
        == no_signalling(three, plan)
        == Signalling(messages=0, bytes=0)
    )


def test_requests_grants_and_accepts_are_counted() -> None:
    """r0 asks r1 and r2, r1 asks r2: three requests, then two grants, to r0 from r1 and from r2.

    r0 accepts r1. In the second iteration r1 asks r2, which grants, and r1 accepts. In the second day
    what is left is r0 -> r2: a request, a grant, an accept.
    """
    demand = problem([[0, 4e6, 4e6], [0, 0, 4e6], [0, 0, 0]])
    design = SYSTEM.design("islip")
    run = evaluate(SYSTEM, demand, Entry(label="islip", design=design, parameters={"day_us": 4_000.0}))
    assert run.plan.configurations["day"].nunique() == 2
    assert run.metrics["messages"] == (3 + 2 + 1) + 3 + 3
    assert run.metrics["signalling_bytes"] == 4 * run.metrics["messages"]


@pytest.mark.parametrize(
    "design", [field for field in SYSTEM.designs if field.name != "bound"], ids=lambda d: d.name
)
def test_every_design_declares_its_signalling(design: Any) -> None:
    demand = generators.skewed(racks=8, large=2, small=2, window_us=500.0, seed=1)
    run = evaluate(SYSTEM, demand, Entry(label=design.name, design=design))
    alone = design.name in ("strobe", "fixed", "packet_only")
    assert (run.metrics["messages"] == 0) == (run.metrics["signalling_bytes"] == 0) == alone
