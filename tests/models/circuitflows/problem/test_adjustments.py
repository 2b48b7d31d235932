"""Adjustments of nights and rates: their effects, and what is refused."""

from __future__ import annotations

from dataclasses import replace

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
        measure(item, operation.run_fixed_schedule(item, shifts=(1, 2)).plan, None)["duty_cycle"]
        for item in (small, SYSTEM.problem.adjust(small, night_us=200.0))
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


def test_flows_of_a_failed_rack_never_begin(small: FlowsInTime) -> None:
    problem = SYSTEM.problem.adjust(small, fail_racks=("r1",))
    lost = problem.flows.query("source_rack == 'r1' or target_rack == 'r1'")["bytes"].sum() / 1e9
    full = upper_bound.max_delivered_gb(small)
    for design in ("fixed", "data_units", "packet_only"):
        decision = SYSTEM.design(design).decide(problem)
        assert decision.plan is not None
        assert not len(SYSTEM.plan.check(problem, decision.plan))
        metrics = measure(problem, decision.plan, None)
        assert metrics["offered_gb"] == pytest.approx(small.flows["bytes"].sum() / 1e9)
        assert metrics["undelivered_gb"] >= lost * (1 - 1e-9)  # type: ignore[operator]
        assert decision.proof.bound is not None
        assert metrics["delivered_gb"] <= decision.proof.bound < full  # type: ignore[operator]


def test_every_rack_may_fail(small: FlowsInTime) -> None:
    problem = SYSTEM.problem.adjust(small, fail_racks=tuple(small.names))
    metrics = measure(problem, operation.run_fixed_schedule(problem).plan, None)
    assert metrics["delivered_gb"] == 0


@pytest.mark.parametrize("design", ["hdfs_random", "rehdfs", "placement_optimum"])
def test_blocks_go_to_racks_that_work(design: str) -> None:
    writes = generators.dfsio(racks=4, writers=2, file_mb=2.0, block_mb=1.0, horizon_us=20_000.0)
    problem = SYSTEM.problem.adjust(writes, fail_racks=("r2",))
    plan = SYSTEM.design(design).decide(problem).plan
    assert plan is not None
    placed = problem.flows.merge(plan.placement, on="flow", suffixes=("", "_placed"))
    working = placed[placed["source_rack"] != "r2"]
    assert "r2" not in set(working["target_rack_placed"])
    metrics = measure(problem, plan, None)
    assert metrics["undelivered_gb"] >= 4 / 1e3 - 1e-9  # type: ignore[operator]
    alone = SYSTEM.problem.adjust(writes, fail_racks=("r1", "r2", "r3"))
    if design != "placement_optimum":
        assert measure(alone, SYSTEM.design(design).decide(alone).plan, None)["delivered_gb"] == 0
    else:
        with pytest.raises(InputError, match="racks_each is 1, there are 0 other racks"):
            SYSTEM.design(design).decide(alone)


def test_flows_wait_for_those_before_what_is_left_out() -> None:
    writes = generators.dfsio(racks=3, writers=1, file_mb=3.0, block_mb=1.0, horizon_us=20_000.0)
    flows = writes.flows.copy()
    flows.loc[1, "target_rack"] = "r1"
    chain = replace(writes, flows=flows)
    changed = SYSTEM.problem.adjust(chain, demand_factors={"r0->r1": 0.0, "r1->any": 2.0})
    assert changed.flows["flow"].tolist() == [name for name in flows["flow"] if name != "r0w0b1"]
    assert changed.flows.set_index("flow")["after"]["r0w0b2"] == "r0w0b0"
    assert (changed.flows.groupby("source_rack")["bytes"].max() == [1e6, 2e6, 1e6]).all()
    with pytest.raises(InputError, match="every flow is left out"):
        SYSTEM.problem.adjust(writes, demand_factors=dict.fromkeys(["r0->any", "r1->any", "r2->any"], 0.0))


def test_factors_change_what_they_name(small: FlowsInTime) -> None:
    changed = SYSTEM.problem.adjust(
        small, scale=2.0, demand_factors={"r0->r1": 3.0}, packet_factors={"r1": 0.5}
    )
    ratio = changed.flows["bytes"] / small.flows["bytes"]
    current = (small.flows["source_rack"] == "r0") & (small.flows["target_rack"] == "r1")
    assert (ratio[current] == 6).all()
    assert (ratio[~current] == 2).all()
    np.testing.assert_array_equal(changed.packet_mbps, small.packet_mbps * [1, 0.5, 1, 1])
