"""Simulation by a scenario's parameters: fluid flows, tables, metrics, frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.drawing import NetworkMap
from planner.contract.simulation import SimulationResult
from planner.errors import InputError
from planner.options import Options
from planner.runs.simulate import simulate
from planner_models.traffic import SYSTEM
from planner_models.traffic.problem import generators
from planner_models.traffic.simulation import run as simulation
from planner_models.traffic.simulation.flow_arrivals import read as read_sizes
from planner_models.traffic.simulation.flow_network import FLOWS, PROGRESS
from planner_models.traffic.simulation.packet_level_simulation import PACKET_METRICS


def run(name: str = "localflow", **parameters: Any) -> SimulationResult:
    return simulation.run(
        generators.fat_tree(k=4, seed=1),
        design=SYSTEM.design(name),
        information={},
        decision_parameters={},
        options=Options(),
        **{"until_s": 0.2, "interval_s": 0.02, **parameters},
    )


@pytest.mark.parametrize("arrivals", ["closed_loop", "poisson"])
def test_traffic_is_conserved_and_tables_are_as_declared(arrivals: str) -> None:
    result = run(arrivals=arrivals, load=0.3)
    flows, progress = result.tables["flows"], result.tables["progress"]
    assert list(flows) == list(FLOWS.columns)
    assert list(progress) == list(PROGRESS.columns)
    assert progress["sent_mbit"].iloc[-1] == pytest.approx(flows["sent_bytes"].sum() * 8e-6)
    ended = flows["end_s"].notna()
    assert flows.loc[ended, "sent_bytes"].to_numpy() == pytest.approx(flows.loc[ended, "size_bytes"])
    assert (flows["sent_bytes"] <= flows["size_bytes"] * (1 + 1e-9)).all()
    assert result.metrics["ended_flows"] == ended.sum()
    assert result.metrics["active_flows"] == (~ended).sum()
    assert result.metrics["throughput_mbps"] == pytest.approx(progress["sent_mbit"].iloc[-1] / 0.2)


def test_equal_seeds_give_equal_runs_and_others_differ() -> None:
    item, two, other = run(seed=3), run(seed=3), run(seed=4)
    pd.testing.assert_frame_equal(item.tables["flows"], two.tables["flows"])
    assert item.metrics == two.metrics
    assert not np.array_equal(item.tables["flows"]["size_bytes"], other.tables["flows"]["size_bytes"])


def test_metrics_are_those_declared() -> None:
    assert set(run(warm_up_s=0.1).metrics) == {metric.name for metric in simulation.METRICS}


def test_fluid_flows_have_no_metrics_of_packets() -> None:
    metrics = run(until_s=0.02).metrics
    assert [metrics[metric.name] for metric in PACKET_METRICS] == [None] * len(PACKET_METRICS)


@pytest.mark.slow
def test_the_shipped_scenario_compares_its_designs() -> None:
    result = simulate("traffic/flow_simulation", designs=["ecmp_hash", "localflow"])
    assert [single.error for single in result.runs] == [None, None]
    throughput = [single.result.metrics["throughput_mbps"] for single in result.runs if single.result]
    assert throughput[1] is not None
    assert throughput[0] is not None
    assert throughput[1] > throughput[0]


def test_frames_show_what_links_carried_since_the_frame_before() -> None:
    result = run(frames=True, settle_s=0.001)
    frames, problem = result.frames, generators.fat_tree(k=4, seed=1)
    index, sent = (result.tables["progress"][name].to_numpy() for name in ("at_s", "sent_mbit"))
    mean = np.diff(np.interp([0.0, *(frame.time_s for frame in frames)], index, sent))
    length = np.diff([0.0, *(frame.time_s for frame in frames)])
    assert [frame.value for frame in frames] == pytest.approx(mean / length, abs=1e-6)
    first = np.array([str(node) for node in problem.nodes["node"]])[np.unique(problem.source)]
    for frame in frames:
        assert isinstance(frame.drawing, NetworkMap)
        links = frame.drawing.links
        # the traffic of flows leaves their sources over the links out of these
        out = links[links["tail"].astype(str).isin(first)]
        assert (out["value"] * out["width"] / 100).sum() == pytest.approx(frame.value, rel=1e-6)


def test_sizes_are_those_of_a_file(tmp_path: Path) -> None:
    """The largest distance of the distributions is below the 1% limit of Kolmogorov and Smirnov."""
    path = tmp_path / "sizes.txt"
    path.write_text("1000 0\n10000 0.5\n1000000 0.9\n10000000 1\n")
    sizes = simulation.OfferedFlows(sizes=path).read_sizes()
    drawn = np.sort(sizes.sample(np.random.default_rng(3), 5_000))
    expected = np.array([read_sizes(path).share_below(size) for size in drawn])
    steps = np.arange(len(drawn) + 1) / len(drawn)
    distance = max(np.abs(expected - steps[1:]).max(), np.abs(expected - steps[:-1]).max())
    assert distance < 1.63 / np.sqrt(len(drawn))
    with pytest.raises(InputError, match="sizes is a file, which excludes median_bytes and sigma"):
        simulation.OfferedFlows(sizes=path, sigma=1.0).read_sizes()
    with pytest.raises(InputError, match="sizes is a file, which excludes size_records"):
        simulation.OfferedFlows(sizes=path, size_records=path).read_sizes()
