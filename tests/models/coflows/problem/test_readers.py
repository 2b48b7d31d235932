"""Traces of the coflow benchmark, and flow files of htsim."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import InputError
from planner_models.coflows.problem.readers import read_htsim, read_trace

TEXT = "3 3\n1 0 2 0 1 1 2:6.0\n2 500 1 0 1 0:1.0\n3 900 1 2 2 0:1.0 1:2.0\n"


def test_a_trace_has_arrivals_and_equal_parts(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(TEXT)
    problem = read_trace(path=path)
    assert problem.coflows.to_numpy().tolist() == [["coflow 1", 0.0], ["coflow 3", 900.0]]
    assert problem.flows.to_numpy().tolist() == [
        ["coflow 1", "r0", "r2", 3e6],
        ["coflow 1", "r1", "r2", 3e6],
        ["coflow 3", "r2", "r0", 1e6],
        ["coflow 3", "r2", "r1", 2e6],
    ]
    assert read_trace(path=path, start_ms=800.0).coflows["arrival_ms"].tolist() == [100.0]
    with pytest.raises(InputError, match="no coflow arrives from 100 ms to 200 ms"):
        read_trace(path=path, start_ms=100.0, length_ms=100.0)


@pytest.mark.slow
@pytest.mark.skipif("PLANNER_TRACES" not in os.environ, reason="needs PLANNER_TRACES")
def test_the_facebook_trace_has_all_coflows_that_leave_their_rack() -> None:
    problem = read_trace(path=Path(os.environ["PLANNER_TRACES"]) / "coflow" / "FB2010-1Hr-150-0.txt")
    assert problem.size() == {"racks": 150, "coflows": 523, "flows": 701_486}


def test_flows_of_htsim_are_coflows_by_themselves_or_by_their_target(tmp_path: Path) -> None:
    path = tmp_path / "flows.htsim"
    path.write_text("0 7 15000 0\n3 7 200000 1200\n5 4 1500 2500\n1 6 900 500000\n")
    each = read_htsim(path=path, hosts_per_rack=2)  # the third stays in its rack
    assert each.coflows["arrival_ms"].tolist() == pytest.approx([0.0, 0.0012, 0.5])
    assert each.flows.to_numpy().tolist() == [
        ["c1", "0", "3", 15000.0],
        ["c2", "1", "3", 200000.0],
        ["c3", "0", "3", 900.0],
    ]
    groups = read_htsim(path=path, hosts_per_rack=2, group="target")
    assert groups.flows["coflow"].tolist() == ["c1", "c1", "c2"]
    with pytest.raises(InputError, match="has no flow between two racks; hosts_per_rack is 100"):
        read_htsim(path=path, hosts_per_rack=100)
    path.write_text("0 1 2\n")
    with pytest.raises(InputError, match="row 1: has 3 fields, must be four numbers"):
        read_htsim(path=path)
