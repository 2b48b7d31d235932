"""Simulation of designs with plain parameters: the shipped scenario, failures and bad parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner import Options
from planner.contract.drawing import NetworkMap
from planner.contract.simulation import SimulationResult
from planner.errors import InputError
from planner.scenarios.scenario import load
from planner_models.livevideo import SYSTEM, LiveVideo, Trees, check
from planner_models.livevideo.problem import generators
from planner_models.livevideo.simulation.control import METRICS
from planner_models.livevideo.simulation.study import SIMULATION, run

OPTIONS = Options(time_limit_s=5, threads=1, gap=1e-2)


def simulate(
    problem: LiveVideo, name: str, information: dict[str, Any] | None = None, **parameters: Any
) -> SimulationResult:
    return run(
        problem,
        design=SYSTEM.design(name),
        information=information or {},
        decision_parameters={},
        options=OPTIONS,
        **parameters,
    )


@pytest.mark.slow
def test_the_shipped_scenario_shows_who_reacts_to_the_failure() -> None:
    scenario = load("livevideo/testbed_failure", changes={"problem.videos": 30, "problem.link_mbps": 15})
    assert [entry.design.name for entry in scenario.designs] == list(SIMULATION.designs)
    problem = scenario.make_problem()
    results = {name: simulate(problem, name, **scenario.simulation) for name in SIMULATION.designs}
    for name, result in results.items():
        assert set(result.metrics) == {metric.name for metric in METRICS}, name
        check(problem, Trees(trees=result.tables["trees"]))  # PlanRejected where these are no trees
        clients = result.tables["clients"]
        assert len(clients) == len(problem.requests)
        # a client watches no longer than since it joined, and stalls no longer than it watches
        since_s = 60.0 - clients["asked_s"] - clients["join_s"].fillna(np.inf).clip(upper=60.0)
        assert (clients["watched_s"] <= since_s.clip(lower=0.0) + 1.0).all(), name
        assert (clients["stalled_s"] <= clients["watched_s"] + 1e-9).all(), name
    central, hybrid = results["centralized"].metrics, results["hybrid"].metrics
    assert central["join_s"] is not None
    assert hybrid["join_s"] is not None
    assert hybrid["join_s"] < 1 < central["join_s"]
    assert hybrid["served"] == 1.0


@pytest.mark.slow
def test_a_simulation_repeats_by_its_seed() -> None:
    problem = generators.ec2_testbed(videos=20, link_mbps=5.0)
    item, same, other = (simulate(problem, "hybrid", loss=0.5, seed=seed) for seed in (1, 1, 2))
    assert item.metrics == same.metrics
    for name, table in item.tables.items():
        pd.testing.assert_frame_equal(table, same.tables[name])
    assert not item.tables["clients"].equals(other.tables["clients"])


def test_a_simulation_without_requests_has_unknown_metrics() -> None:
    problem = generators.ec2_testbed(videos=5)
    empty = simulate(problem.with_requests(problem.requests.iloc[:0]), "hybrid")
    assert empty.metrics == dict.fromkeys(metric.name for metric in METRICS)


def test_a_failed_cluster_carries_nothing_until_it_recovers() -> None:
    problem = generators.ec2_testbed(videos=20)
    failed = simulate(problem, "distributed", fail_clusters=("R1",), fail_s=5.0)
    assert "R1" not in set(failed.tables["trees"]["tail"])
    recovered = simulate(problem, "distributed", fail_clusters=("R1",), fail_s=5.0, recover_s=8.0)
    assert "R1" in set(recovered.tables["trees"]["tail"])
    degraded = simulate(problem, "distributed", degrade_links=("S1->R1", "S2->R1"), fail_s=5.0)
    assert "R1" not in set(degraded.tables["trees"]["tail"])


def test_clusters_that_are_cut_off_are_not_served_centrally() -> None:
    problem = generators.ec2_testbed(videos=20)
    cut = simulate(problem, "centralized", cut_off=("R1", "R2"), computing_s=1.0)
    assert cut.metrics["served"] == 0.0
    assert simulate(problem, "centralized", computing_s=1.0).metrics["served"] > 0.0  # type: ignore[operator]


def test_bad_parameters_are_one_line_each() -> None:
    problem = generators.ec2_testbed(videos=5)
    with pytest.raises(InputError) as caught:
        simulate(
            problem,
            "hybrid",
            information={"age_s": 5.0},
            cut_off=("R9",),
            degrade_links=("S1-R1",),
            fail_s=9.0,
            recover_s=3.0,
        )
    assert caught.value.faults == (
        "hybrid: age_s has no effect in a simulation: age follows from its periods and delays",
        "simulation.recover_s is 3, must be above fail_s, 9",
        "simulation.cut_off: 'R9' is unknown",
        "simulation.degrade_links: 'S1-R1' is unknown; did you mean 'S1->R1'?",
    )


def test_frames_show_the_failed_cluster_while_it_is_down() -> None:
    problem = generators.ec2_testbed(videos=20)
    result = simulate(
        problem, "hybrid", fail_clusters=("R1",), fail_s=5.0, recover_s=9.0, until_s=20.0, frames=True
    )
    assert [frame.label for frame in result.frames][:3] == ["0 s", "0.5 s", "1 s"]
    for frame in result.frames:
        assert isinstance(frame.drawing, NetworkMap)
        is_down = 5.0 <= frame.time_s < 9.0
        assert ("R1" in set(frame.drawing.nodes["node"])) != is_down, frame.label
        ends = {*frame.drawing.links["tail"], *frame.drawing.links["head"]}
        assert ("R1" in ends) != is_down, frame.label
        assert (frame.drawing.whole is not None) == is_down
    last = result.frames[-1]
    assert last.value == pytest.approx(result.metrics["average_bitrate_kbps"])
