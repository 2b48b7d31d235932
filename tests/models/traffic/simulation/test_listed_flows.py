"""Flows that a file lists: who sends what when, in the fluid simulation and by packets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.contract.simulation import SimulationResult
from planner.errors import InputError
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation import run as simulation
from planner_models.traffic.simulation.listed_flows import read_flows

MBPS = 100.0


def two_paths(*, classes: bool = False) -> Traffic:
    """Return a source and a target with two paths of equal length, and a third node beside the source."""
    pairs = [("s", "x"), ("x", "a"), ("x", "b"), ("a", "y"), ("b", "y"), ("y", "t"), ("z", "x")]
    links = pd.DataFrame(pairs + [(head, tail) for tail, head in pairs], columns=["tail", "head"])
    rates = [1_000.0, 1_000.0, MBPS, MBPS, MBPS, 1_000.0, 1_000.0]
    demands = pd.DataFrame({"source": ["s", "z"], "target": ["t", "t"], "rate_mbps": [50.0, 50.0]})
    if classes:
        demands = demands.assign(**{"class": ["voice", "data"]})
    return Traffic(
        nodes=pd.DataFrame({"node": list("sxabytz")}),
        links=links.assign(capacity_mbps=rates * 2, latency_ms=0.01),
        demands=demands,
    )


def listed(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a file of flows from s to t."""
    pd.DataFrame([{"source": "s", "target": "t", "start_s": 0.0, **row} for row in rows]).to_csv(
        path, index=False
    )
    return path


def run(path: Path, **settings: Any) -> SimulationResult:
    """Return the simulation of the flows in a file, without a design."""
    result: SimulationResult = simulation.run(two_paths(), design=None, flows=path, until_s=0.2, **settings)
    return result


def test_fluid_flows_share_their_path_from_their_starts(tmp_path: Path) -> None:
    """Two flows on one path of 100 Mbit/s: the first is alone for 10 ms, then both have half of it."""
    rows = [
        {"size_bytes": 250_000},
        {"size_bytes": 125_000, "start_s": 0.01},
        {"size_bytes": 9e9, "start_s": 1},
    ]
    notes: list[str] = []
    with observe_notes(notes.append):
        flows = run(listed(tmp_path / "f.csv", rows), seed=3).tables["flows"]
    first = flows["end_s"].tolist()
    together = [0.03, 0.03]  # 125 kB each, at 50 Mbit/s after 10 ms
    apart = [0.02, 0.02]  # the hash gives them different paths
    assert first == pytest.approx(together) or first == pytest.approx(apart)
    assert flows["start_s"].tolist() == [0.0, 0.01]
    assert notes == ["f.csv: 1 of 3 flows start after the end of the simulation, 0.2 s, and are left out"]


def test_a_flow_of_udp_has_its_own_rate(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"size_bytes": 100_000, "control": "udp", "rate_mbps": 20.0},
        {"size_bytes": 100_000, "control": "udp"},
        {"size_bytes": 100_000, "control": "cubic", "start_s": 0.05},
        {"size_bytes": 100_000, "start_s": 0.1},
    ]
    result = run(listed(tmp_path / "f.csv", rows), model="packets", udp_mbps=40.0, control="bbr")
    flows = result.tables["flows"]
    assert flows["control"].tolist() == ["udp", "udp", "cubic", "bbr"]
    took = (flows["end_s"] - flows["start_s"]).to_numpy(float)
    assert took[:2] == pytest.approx([0.04, 0.02], rel=0.05)  # 800 kbit at 20 and 40 Mbit/s


@pytest.mark.parametrize("split", ["yes", "no"])
def test_a_flow_that_may_not_be_split_takes_one_path(tmp_path: Path, split: str) -> None:
    path = listed(tmp_path / "f.csv", [{"size_bytes": 300_000, "may_split": split}])
    result = run(path, model="packets", forwarding="scatter", decides="once")
    links = result.tables["links"].set_index(["tail", "head"])["sent"]
    sent = np.sort([links["x", "a"], links["x", "b"]])
    assert (sent[0] == 0) == (split == "no")


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"source": "ss"}, "f.csv row 2: 'ss' is no node; did you mean 's'?"),
        ({"source": "t", "target": "s"}, "f.csv row 2: there is no demand from t to s"),
        ({"rate_mbps": 5.0}, "f.csv row 2: rate_mbps is 5, must be blank where control is not udp"),
        (
            {"control": "udp", "rate_mbps": 2_000.0},
            "f.csv row 2: rate_mbps is 2000, must be at most that of the links of s, 1000",
        ),
        (
            {"control": "udp", "may_split": "yes"},
            "f.csv row 2: may_split is yes, must be no or blank where control is udp",
        ),
        (
            {"control": "vegas"},
            "f.csv row 2: control is 'vegas', must be one of reno, cubic, dctcp, bbr, udp",
        ),
        ({"size_bytes": 0}, "f.csv row 2: size_bytes is 0.0, must be greater than 0"),
        ({"class": "voice"}, "f.csv: has a column class, but demands have no classes"),
        ({"start_s": 7.0}, "f.csv: no flow starts before the end of the simulation, 1 s"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: dict[str, Any], fault: str) -> None:
    path = listed(tmp_path / "f.csv", [{"size_bytes": 1_000, **row}])
    with pytest.raises(InputError) as caught:
        read_flows(path, two_paths(), 1.0, by_packets=True)
    assert caught.value.faults[0].startswith(fault), caught.value.faults


def test_classes_tell_demands_apart(tmp_path: Path) -> None:
    problem = two_paths(classes=True)
    path = listed(tmp_path / "f.csv", [{"size_bytes": 1_000}])
    with pytest.raises(InputError, match="has no column class, but demands have classes"):
        read_flows(path, problem, 1.0, by_packets=True)
    path = listed(tmp_path / "f.csv", [{"size_bytes": 1_000, "class": "data"}])
    with pytest.raises(InputError, match="there is no demand from s to t of class data"):
        read_flows(path, problem, 1.0, by_packets=True)
    path = listed(tmp_path / "f.csv", [{"size_bytes": 1_000, "source": "z", "class": "data"}])
    assert read_flows(path, problem, 1.0, by_packets=True).demand.tolist() == [1]


def test_a_list_excludes_random_flows_and_says_what_fluid_flows_do_not_use(tmp_path: Path) -> None:
    path = listed(tmp_path / "f.csv", [{"size_bytes": 1_000, "control": "reno"}])
    with pytest.raises(InputError, match="flows is a file, which excludes load, sigma"):
        run(path, load=0.5, sigma=1.0)
    notes: list[str] = []
    with observe_notes(notes.append):
        run(path)
    assert notes == ['f.csv: control is for model = "packets", and not used here']
