"""What circuits to several racks carry is added up once, and plans that cannot be are rejected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner import PlanRejected
from planner_models.circuits import Circuits, Schedule, check
from planner_models.circuits.information import realize
from planner_models.circuits.plan.check import derive_carried
from planner_models.circuits.plan.multicast_plan import MulticastDay, make_plan
from planner_models.circuits.plan.transmissions import measure_union
from tests.models.circuits.multicast_cases import make_problem

PROBLEM = make_problem(4, [(0, [1, 2, 3], 100.0)], packet_mbps=0.0, window_us=40.0)


def made(problem: Circuits = PROBLEM, *transmissions: tuple[int, float, float]) -> Schedule:
    """Return the plan of a day to racks 1 and 2, and one to racks 2 and 3, of 10 us each."""
    first, second = np.array([-1, 0, 0, -1]), np.array([-1, -1, 0, 0])
    days = [
        MulticastDay(duration_us=10.0, source=first, transmissions=((0, 0.0, 100.0),)),
        MulticastDay(duration_us=10.0, source=second, transmissions=transmissions),
    ]
    return make_plan(problem, days)[0]


def test_data_that_a_rack_has_counts_once() -> None:
    carried = derive_carried(PROBLEM, made(PROBLEM, (0, 20.0, 60.0), (0, 60.0, 40.0)))
    assert carried.circuit_bits[0].tolist() == [0.0, 100.0, 100.0, 80.0]


def test_a_circuit_to_one_rack_carries_what_its_pair_still_needs() -> None:
    day = MulticastDay(duration_us=10.0, source=np.array([-1, 0, 0, -1]), transmissions=((0, 0.0, 70.0),))
    alone = MulticastDay(duration_us=5.0, source=np.array([-1, -1, 0, -1]))
    plan = make_plan(PROBLEM, [day, alone])[0]
    assert derive_carried(PROBLEM, plan).circuit_bits[0].tolist() == [0.0, 70.0, 100.0, 0.0]


def test_a_day_carries_no_more_than_its_time() -> None:
    plan = made(PROBLEM, (0, 0.0, 60.0), (0, 30.0, 70.0))
    violations = check(PROBLEM, plan)
    assert violations.of_limits(["transmission"]).frame["where"].tolist() == ["day 2 from r0"]
    assert derive_carried(PROBLEM, plan).circuit_bits[0, 3] == pytest.approx(70.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"multicast": "m9"}, "transmissions row 1: 'm9' is no multicast between racks that work"),
        ({"first_bit": 50.0}, "transmissions row 1: ends at bit 150, multicast 'm0' has 100"),
        ({"day": 3}, "transmissions row 1: rack 'r0' has no circuit to several racks in day 3"),
        ({"bits": np.nan}, "transmissions row 1: first_bit and bits must be finite and at least 0"),
    ],
)
def test_transmissions_that_cannot_be_are_rejected(changes: dict[str, Any], message: str) -> None:
    plan = made()
    assert plan.transmissions is not None
    frame = plan.transmissions.assign(**changes)
    with pytest.raises(PlanRejected, match="^" + message.replace("(", r"\(")):
        check(PROBLEM, replace(plan, transmissions=frame))


def test_a_sender_has_no_more_targets_than_its_circuit_reaches() -> None:
    plan = make_plan(
        make_problem(4, [(0, [1, 2, 3], 100.0)], window_us=40.0, circuit_targets=3),
        [MulticastDay(duration_us=10.0, source=np.array([-1, 0, 0, 0]))],
    )[0]
    with pytest.raises(PlanRejected, match="rack 'r0' sends over 3 circuits in day 1, must be at most 2"):
        check(PROBLEM, plan)


def test_a_rack_receives_from_one_sender() -> None:
    plan = made()
    twice = plan.configurations.iloc[[0]].assign(source_rack="r3")
    frame = pd.concat([plan.configurations, twice], ignore_index=True)
    with pytest.raises(PlanRejected, match="rack 'r1' receives over two circuits in day 1"):
        check(PROBLEM, replace(plan, configurations=frame, ports=None))


def test_what_is_planned_beyond_the_end_of_the_true_data_is_left_out() -> None:
    truth = make_problem(4, [(0, [1, 2, 3], 60.0)], packet_mbps=0.0, window_us=40.0)
    plan = realize(truth, PROBLEM, made(PROBLEM, (0, 70.0, 30.0)))
    assert plan.transmissions is not None
    assert plan.transmissions["bits"].tolist() == [60.0]
    assert not len(check(truth, plan))


def test_the_union_of_intervals_counts_each_bit_once() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        ends = np.sort(rng.integers(0, 30, (int(rng.integers(1, 8)), 2)), axis=1)
        covered = {bit for first, last in ends.tolist() for bit in range(first, last)}
        assert measure_union([(float(a), float(b)) for a, b in ends]) == len(covered)
