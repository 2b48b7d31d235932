"""No run delivers more than the bound: in theory, by brute force, and in runs that try."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Status
from planner_models.circuitflows import SYSTEM, FlowsInTime, check, measure
from planner_models.circuitflows.designs import upper_bound
from planner_models.circuitflows.plan.plan import HostSettings, Operation
from planner_models.circuitflows.plan.plan import settings_table as setting
from planner_models.circuitflows.problem import generators
from planner_models.packets.controls import CONTROLS
from tests.models.circuitflows.runs import run_design


def played_out(start: list[float], size: list[float], rate: float, end: float) -> float:
    """Return what a link serves that is never idle while there is work, from event to event."""
    time = waiting = result = 0.0
    for index in sorted({*[s for s in start if s < end], end}):
        result += min(waiting, rate * (index - time))
        waiting = max(0.0, waiting - rate * (index - time))
        waiting += sum(b for s, b in zip(start, size, strict=True) if s == index and index < end)
        time = index
    return result


@settings(max_examples=100, deadline=None)
@given(
    work=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 30)), max_size=6),
    rate=st.sampled_from([0.5, 2.0, 7.0]),
)
def test_a_links_bound_is_what_it_serves_without_idling(work: list[tuple[int, int]], rate: float) -> None:
    start, size = [float(s) for s, _ in work], [float(b) if s < 10 else 0.0 for s, b in work]
    upper = upper_bound.max_served_bytes(np.array(start), np.array(size), rate, 10.0)
    assert upper == pytest.approx(played_out(start, size, rate, 10.0), abs=1e-9)


def flows(rows: list[tuple[str, str, int, float, float]], horizon_us: float) -> FlowsInTime:
    """Three racks of two hosts: 800 bytes/us a host, 1000 over a circuit, 500 over the packet switch."""
    base = generators.mixed(racks=3, hosts=2, rings=1, horizon_us=horizon_us)
    columns = ["source_rack", "target_rack", "host", "start_us", "bytes"]
    frame = pd.DataFrame(rows, columns=columns)
    frame = frame.assign(flow=[f"f{i}" for i in range(len(rows))], after="none", host=frame["host"] * 1.0)
    racks = base.racks.assign(circuit_mbps=8_000.0, packet_mbps=4_000.0)
    return replace(base, racks=racks, flows=frame, network=base.network.assign(host_mbps=6_400.0))


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        ([("r0", "r1", 1, 0.0, 5e5)], 5e5),  # all of it
        ([("r0", "r1", 1, 0.0, 5e6)], 8e5),  # its host's link
        ([("r0", "r1", 1, 600.0, 5e6)], 3.2e5),  # ... for as long as there is anything
        ([("r0", "r1", 1, 0.0, 1e5), ("r0", "r1", 1, 600.0, 5e6)], 4.2e5),  # one after the other
        ([("r0", "r1", 1, 2_000.0, 5e6)], 0.0),  # too late
        ([("r0", "r1", 1, 0.0, 5e6), ("r0", "r2", 2, 0.0, 5e6)], 1.5e6),  # the rack's way out
        ([("r0", "r2", 1, 0.0, 5e6), ("r1", "r2", 1, 0.0, 5e6)], 1.5e6),  # the rack's way in
        ([("r0", "any", 1, 0.0, 5e6), ("r1", "r2", 1, 0.0, 5e6)], 1.6e6),  # wherever it is placed
    ],
)  # fmt: skip
def test_bounds_by_hand(rows: Any, most: float) -> None:
    assert upper_bound.max_delivered_gb(flows(rows, 1_000.0)) == pytest.approx(most / 1e9)


def test_hosts_without_a_limit_are_limited_by_their_rack() -> None:
    problem = flows([("r0", "r1", 1, 0.0, 5e6)], 1_000.0)
    free = replace(problem, network=problem.network.assign(host_mbps=0.0))
    assert upper_bound.max_delivered_gb(free) == pytest.approx(1.5e6 / 1e9)


def test_a_flow_alone_comes_near_its_bound() -> None:
    """One flow with a circuit to itself: TCP's start and the delays are all that is missing."""
    problem = flows([("r0", "r1", 1, 0.0, 5e7)], 20_000.0)
    run = run_design(problem, "fixed", queue_packets=128)
    assert 0.9 < run.metrics["delivered_gb"] / upper_bound.max_delivered_gb(problem) < 1


@st.composite
def operations(draw: st.DrawFn, problem: FlowsInTime) -> Operation:
    """Days at random with nights between, queues of any size, and any settings of TCP."""
    n, end = len(problem.racks), problem.of("horizon_us")
    night, shortest = problem.of("night_us"), problem.of("shortest_day_us")
    time, rows, day = 0.0, [], 0
    while time + night + shortest < end:
        length = shortest + draw(st.floats(0.0, 3_000.0))
        time += night + draw(st.sampled_from([0.0, 0.0, 100.0]))
        shift, day = draw(st.integers(1, n - 1)), day + 1
        rows += [(day, time, length, f"r{i}", f"r{(i + shift) % n}") for i in range(n)]
        time += length
    columns = ["day", "start_us", "duration_us", "source_rack", "target_rack"]
    return Operation(
        configurations=pd.DataFrame([row for row in rows if row[1] < end], columns=columns),
        queues=pd.DataFrame({"at_us": [], "source_rack": [], "target_rack": [], "packets": []}),
        settings=setting(
            queue_packets=draw(st.sampled_from([4, 64, 1_024])),
            hosts=HostSettings(
                alpha=draw(st.sampled_from([1.0, 4.0])),
                beta=draw(st.sampled_from([0.5, 1.0])),
                control=draw(st.sampled_from(CONTROLS)),
            ),
        ),
        placement=pd.DataFrame({"flow": [], "target_rack": []}),
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(data=st.data(), rings=st.integers(1, 2), seed=st.integers(0, 3))
def test_no_operation_beats_the_bound(data: st.DataObject, rings: int, seed: int) -> None:
    problem = generators.mixed(
        racks=4, rings=rings, hosts=2, big_share=0.9, small_share=0.9, horizon_us=8_000.0, seed=seed
    )
    plan = data.draw(operations(problem))
    assert not len(check(problem, plan))
    delivered = measure(problem, plan, None)["delivered_gb"]
    assert delivered is not None
    assert delivered <= upper_bound.max_delivered_gb(problem)


@pytest.mark.parametrize(
    "design", [field for field in SYSTEM.designs if field.name != "resize_tuned"], ids=lambda d: d.name
)
def test_designs_come_with_the_bound(design: Any) -> None:
    problem = generators.mixed(racks=4, rings=1, hosts=4, horizon_us=20_000.0, seed=1)
    run = run_design(problem, design.name)
    upper = upper_bound.max_delivered_gb(problem)
    assert 0.1 * upper < run.metrics["delivered_gb"] <= upper
    if run.decision.proof.metric == "delivered_gb":
        assert run.decision.proof.bound == upper


def test_a_run_that_delivers_everything_is_proven_optimal() -> None:
    problem = flows([("r0", "r1", 1, 0.0, 1e5)], 10_000.0)
    run = run_design(problem, "packet_only")
    assert run.metrics["delivered_gb"] == pytest.approx(1e-4)
    assert run.decision.proof.status is Status.OPTIMAL


def test_a_faster_packet_switch_breaks_the_network_and_not_the_bound() -> None:
    """The plan comes with the bound of the other network, which is no bound here."""
    problem = generators.mixed(racks=4, rings=1, hosts=4, horizon_us=20_000.0, seed=1)
    run = run_design(problem, "packet_only", packet_mbps=80_000.0)
    assert set(run.violations.frame["limit"]) == {"packet_rate"}
    assert len(run.violations) == 4
    assert run.decision.proof.bound_scope == "a packet switch of 80000 Mbit/s"
    assert run.metrics["delivered_gb"] <= run.decision.proof.bound
    slower = run_design(problem, "packet_only", packet_mbps=5_000.0)
    assert not len(slower.violations)
