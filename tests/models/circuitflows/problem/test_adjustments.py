"""Adjustments of nights and rates: their effects, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError
from planner_models.circuitflows import SYSTEM, FlowsInTime, measure
from planner_models.circuitflows.designs import operation, upper_bound
from planner_models.circuitflows.problem import generators


@pytest.fixture(scope="module")
def small() -> FlowsInTime:
    return generators.mixed(racks=4, rings=1, hosts=4, horizon_us=20_000.0, seed=3)


def test_only_the_given_adjustments_change(small: FlowsInTime) -> None:
    other = SYSTEM.problem.adjust(small, night_us=200.0, circuit_scale=0.5, packet_scale=2.0)
    assert other.of("night_us") == other.week.night_us == 200.0
    np.testing.assert_array_equal(other.circuit_mbps, small.circuit_mbps / 2)
    np.testing.assert_array_equal(other.packet_mbps, small.packet_mbps * 2)
    assert other.flows.equals(small.flows)
    assert other.network.drop(columns="night_us").equals(small.network.drop(columns="night_us"))


def test_longer_nights_leave_less_day(small: FlowsInTime) -> None:
    duty = [
        measure(one, operation.run_fixed_schedule(one, shifts=(1, 2)).plan, None)["duty_cycle"]
        for one in (small, SYSTEM.problem.adjust(small, night_us=200.0))
    ]
    assert duty == pytest.approx([1 - 2 * 20 / 2_000, 1 - 2 * 200 / 2_000])


def test_without_a_packet_switch_only_circuits_deliver(small: FlowsInTime) -> None:
    alone = SYSTEM.problem.adjust(small, packet_scale=0.0)

    def delivered(problem: FlowsInTime, *shifts: int) -> float:
        return (
            measure(problem, operation.run_fixed_schedule(problem, shifts=shifts).plan, None)["delivered_gb"]
            or 0.0
        )

    # 1 and 3 of 4 racks are there and back: replies need a way too
    assert 0 < delivered(alone, 1, 3) < delivered(small, 1, 3)
    assert delivered(alone, 1, 3) <= upper_bound.max_delivered_gb(alone) * (1 + 1e-9)
    assert delivered(alone, 1) == 0


def test_a_night_that_does_not_fit_the_week_is_one_line(small: FlowsInTime) -> None:
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(small, night_us=3_000.0)
    assert caught.value.faults == ("problem: night_us is 3000, must be less than week_us, 2000",)
