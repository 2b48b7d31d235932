"""Multicasts: their faults in one line each, as arrays, as unicast, scaled and without failed racks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner import InputError
from planner_models.circuits import Circuits
from planner_models.circuits.information import observe_demand, observe_multicasts, observe_queues
from planner_models.circuits.problem.adjustments import adjust
from planner_models.circuits.problem.generators import replicas
from tests.models.circuits.multicast_cases import make_problem

PROBLEM = make_problem(
    4, [(0, [1, 2], 100.0), (3, [0, 1], 30.0)], demands=[(0, 1, 10.0), (2, 3, 5.0)], window_us=40.0
)
assert PROBLEM.multicasts is not None
TABLE = PROBLEM.multicasts


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target_rack": "r0"}, "multicasts row 2: source_rack and target_rack are both 'r0', must differ"),
        (
            {"source_rack": "r3"},
            "multicasts row 2: source_rack is 'r3', must be 'r0' as in the other rows of multicast 'm0'",
        ),
        (
            {"bits": 50.0},
            "multicasts row 2: bits is 50, must be 100 as in the other rows of multicast 'm0'",
        ),
        ({"bits": 0.0}, "multicasts row 2: bits is 0.0, must be greater than 0"),
        ({"target_rack": "r7"}, "multicasts row 2: target_rack 'r7' is no rack of the network"),
    ],
)
def test_faults_are_one_line_each(changes: dict[str, Any], message: str) -> None:
    frame = TABLE.copy()
    for column, value in changes.items():
        frame.loc[1, column] = value
    with pytest.raises(InputError) as caught:
        replace(PROBLEM, multicasts=frame)
    assert str(caught.value).startswith(message)


def test_a_target_is_in_a_multicast_once() -> None:
    with pytest.raises(InputError, match="multicasts row 5"):
        replace(PROBLEM, multicasts=pd.concat([TABLE, TABLE.iloc[[0]]], ignore_index=True))


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ({"circuit_targets": 0}, "switch row 1: circuit_targets is 0.0, must be at least 1"),
        ({"circuit_targets": 1.5}, "switch row 1: circuit_targets is 1.5, must be a whole number"),
        ({"circuit_targets": 2_000}, "switch: circuit_targets is 2,000, must be at most 1,024"),
        ({"dark": "changed"}, "switch: dark is changed, must be all where circuit_targets is 2"),
    ],
)
def test_switches_that_cannot_be(switch: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(PROBLEM, switch=PROBLEM.switch.assign(**switch))
    assert str(caught.value).startswith(message)


def test_coflows_and_multicasts_exclude_each_other() -> None:
    coflows = pd.DataFrame({"coflow": ["a"], "source_rack": ["r2"], "target_rack": ["r3"], "bits": [5.0]})
    with pytest.raises(InputError, match="coflows: must be absent where there are multicasts"):
        replace(PROBLEM, coflows=coflows)


def test_copies_are_demand() -> None:
    expected = np.zeros((4, 4))
    expected[0, 1], expected[0, 2], expected[2, 3], expected[3, :2] = 110.0, 100.0, 5.0, 30.0
    assert (PROBLEM.bits == expected).all()
    assert PROBLEM.uses_multicast_circuits
    alone = PROBLEM.as_unicast()
    assert (alone.bits == expected).all()
    assert alone.multicasts is None
    assert not alone.uses_multicast_circuits
    assert alone.as_unicast() is alone
    again = Circuits.from_tables(PROBLEM.to_tables())
    assert (again.bits == expected).all()


def test_failed_racks_are_no_targets() -> None:
    failed = PROBLEM.fail(["r2"])
    assert [sorted(targets) for targets in failed.multicast_demands.targets] == [[1], [0, 1]]
    assert failed.unreachable_bits[0, 2] == 100.0
    assert len(PROBLEM.fail(["r3"]).multicast_demands) == 1


def test_adjustments_scale_all_copies_alike() -> None:
    scaled = adjust(PROBLEM, scale=0.5, circuit_targets=1, demand_factors={"r2->r3": 2.0})
    assert scaled.bits[0].tolist() == [0.0, 55.0, 50.0, 0.0]
    assert scaled.bits[2, 3] == 5.0
    assert not scaled.uses_multicast_circuits
    with pytest.raises(InputError, match="demand_factors: 'r0->r1' has data of a multicast"):
        adjust(PROBLEM, demand_factors={"r0->r1": 2.0})
    assert not adjust(PROBLEM, scale=0.0).bits.any()


def test_observations_see_multicasts_or_copies() -> None:
    assert observe_multicasts(PROBLEM) is PROBLEM
    assert observe_demand(PROBLEM).multicasts is None
    assert observe_queues(PROBLEM, depth_packets=1, packet_bytes=5.0).bits.max() == 40.0
    noisy = observe_multicasts(PROBLEM, noise=0.5, seed=1)
    assert noisy.multicasts is not None
    assert noisy.multicasts.groupby("multicast")["bits"].nunique().tolist() == [1, 1]
    assert (noisy.multicasts["bits"] != TABLE["bits"]).all()
    coarse = observe_multicasts(PROBLEM, granularity_bytes=10.0)
    assert coarse.multicasts is not None
    assert coarse.multicasts["bits"].tolist() == [160.0, 160.0, 80.0, 80.0]


def test_replicas_go_to_other_racks() -> None:
    problem = replicas(racks=5, writers=2, blocks=9, copies=3, block_mb=1.0)
    multicasts = problem.multicast_demands
    assert set(multicasts.source.tolist()) == {0, 1}
    assert (multicasts.is_target.sum(axis=1) == 3).all()
    assert not multicasts.is_target[np.arange(len(multicasts)), multicasts.source].any()
    assert multicasts.bits.sum() == 9 * 8e6
    with pytest.raises(InputError, match="copies is 5, must be at most the number of other racks, 4"):
        replicas(racks=5, copies=5)
    with pytest.raises(InputError, match="writers is 6, must be at most racks, 5"):
        replicas(racks=5, writers=6)
