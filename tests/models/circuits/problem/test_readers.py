"""Demand from files, whole and by windows, and files that are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import planner
from planner.contract.notes import notes_of, observe_notes
from planner.errors import InputError
from planner_models.circuits import Circuits
from planner_models.circuits.problem import readers
from planner_models.circuits.problem.readers import read_coflow_parts

ROWS = "0 7 15000 0\n3\t9 200000  1200\n\n5 2 1500 2500\n"
FIELDS = "must be four numbers: source, target, bytes, start in ns"


@pytest.mark.parametrize("ending", [".csv", ".npy", ".parquet"])
def test_a_matrix_from_a_file(tmp_path: Path, ending: str) -> None:
    bits = np.array([[0.0, 3.0], [5.0, 0.0]])
    path = tmp_path / f"demand{ending}"
    if ending == ".csv":
        np.savetxt(path, bits, delimiter=",")
    elif ending == ".npy":
        np.save(path, bits)
    else:
        pd.DataFrame(bits, columns=["a", "b"]).to_parquet(path)
    notes: list[str] = []
    with observe_notes(notes.append):
        np.testing.assert_array_equal(readers.read_matrix(path=path).bits, bits)
    said = f"assumed: {path.name}: entries are bits, from the rack of the row to that of the column"
    assert notes == [said]


def test_files_without_a_matrix_are_refused(tmp_path: Path) -> None:
    words = tmp_path / "words.csv"
    words.write_text("0,x\n1,0\n")
    with pytest.raises(InputError, match=r"words.csv row 1 column 2: nan"):
        readers.read_matrix(path=words)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("0,1\n1\n")
    with pytest.raises(InputError, match="no matrix"):
        readers.read_matrix(path=ragged)
    with pytest.raises(InputError, match="no such file"):
        readers.read_matrix(path=tmp_path / "absent.npy")
    (tmp_path / "empty.csv").write_text("\n")
    with pytest.raises(InputError, match="is empty"):
        readers.read_matrix(path=tmp_path / "empty.csv")
    for name, bits, fault in (
        ("cube", np.zeros((2, 2, 2)), "must be square"),
        ("complex", np.zeros((2, 2), dtype=complex), "complex numbers"),
        ("words", np.array([["a", "b"], ["c", "d"]]), "no matrix of numbers"),
    ):
        np.save(tmp_path / f"{name}.npy", bits)
        with pytest.raises(InputError, match=fault):
            readers.read_matrix(path=tmp_path / f"{name}.npy")


def test_a_matrix_larger_than_any_network_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A sparse file of a few kilobytes on the disk, and a header that says more than the file has."""
    path = tmp_path / "m.npy"
    size = 40_000
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size}, {size}), }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    with pytest.raises(InputError, match=r"m.npy: is no matrix of numbers"):
        readers.read_matrix(path=path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + 8 * size * size)
    with pytest.raises(InputError, match=r"has shape \(40000, 40000\), must have at most 4,096 racks"):
        readers.read_matrix(path=path)


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((2, 2)))
    content = (tmp_path / "m.npy").read_bytes()
    (tmp_path / "m.npy").write_bytes(content.replace(b"(2, 2)", b"(2, 2["))
    with pytest.raises(InputError, match=r"m.npy: is no matrix of numbers"):
        readers.read_matrix(path=tmp_path / "m.npy")


def test_coflows_of_a_window(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text("4 3\n1 0 2 0 1 1 2:4.0\n2 50 1 3 2 3:9.0 0:1.0\n3 900 1 0 1 1:7\n")
    bits = readers.read_coflows(path=trace, start_ms=0, length_ms=100).bits
    expected = np.zeros((4, 4))
    expected[0, 2] = expected[1, 2] = 16e6  # 4 MB in halves
    expected[3, 0] = 8e6  # what rack 3 sends itself is left out
    np.testing.assert_allclose(bits, expected)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "row 1"),
        ("4 2\n1 0 1 0 1 1:2\n", "is it whole"),
        ("4 1\n1 0 2 0 1 1:2\n", "row 2: must be id"),
        ("4 1\n1 0 1 0 1 7:2\n", "row 2: rack 7, must be from 0 to 3"),
        ("4 1\n1 0 1 0 1 1:-2\n", "must be at least 0"),
    ],
)
def test_a_broken_trace_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text(text)
    with pytest.raises(InputError, match=fault):
        readers.read_coflows(path=trace)


TRACE = "4 3\n1 0 2 0 1 1 2:4.0\n2 50 1 3 2 3:9.0 0:1.0\n3 900 1 0 1 1:7\n"


def test_a_trace_of_coflows_window_by_window(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text(TRACE)
    notes: list[str] = []
    with observe_notes(notes.append):
        series = readers.read_coflow_windows(path=trace, length_ms=100)
    (note,) = notes
    assert note.startswith(
        "warning: trace.txt: 8 of 10 windows have no traffic between racks that starts in it "
        "(100 to 900 ms): they count as windows without demand"
    )
    made = dict(series)
    assert len(series) == len(made) == 10
    assert [label for label, problem in made.items() if problem.bits.any()] == ["000ms", "900ms"]
    item = made["000ms"]
    assert item.coflows is not None
    assert item.coflows["coflow"].tolist() == ["coflow 1", "coflow 1", "coflow 2"]
    np.testing.assert_array_equal(item.bits, readers.read_coflows(path=trace, length_ms=100).bits)
    assert sum(problem.bits.sum() for problem in made.values()) == pytest.approx((4 + 1 + 7) * 8e6)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_trace_of_flows(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame(
        {
            "start_us": [10.0, 0.0, 250.0, 30.0],
            "source_rack": ["a10", "a2", "a2", "a2"],
            "target_rack": ["a2", "a10", "a10", "a2"],
            "bytes": [100.0, 50.0, 25.0, 5.0],
        }
    )
    path = tmp_path / f"flows{ending}"
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    full = readers.read_flows(path=path)
    assert full.names.tolist() == ["a2", "a10"]
    np.testing.assert_allclose(full.bits, [[0, 600], [800, 0]])
    share = readers.read_flows(path=path, start_us=5, length_us=100)
    np.testing.assert_allclose(share.bits, [[0, 0], [800, 0]])
    notes: list[str] = []
    with observe_notes(notes.append):
        windows = dict(readers.read_flow_windows(path=path, length_us=100))
    assert [note for note in notes if "1 of 3 windows have no traffic between racks" in note]
    later: list[str] = []
    with observe_notes(later.append):
        readers.read_flow_windows(path=path, length_us=100, start_us=200)
    assert not [note for note in later if "windows have no traffic" in note]
    assert list(windows) == ["000us", "100us", "200us"]
    assert windows["000us"].coflows is not None
    assert windows["000us"].coflows["coflow"].tolist() == ["flow 2", "flow 1"]  # in order of time
    np.testing.assert_allclose(sum(problem.bits for problem in windows.values()), full.bits)


def test_a_list_of_pairs_with_rates_of_its_racks(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("source_rack,target_rack,bits\na,b,5\nb,c,7\n")
    (tmp_path / "racks.csv").write_text("rack,circuit_mbps,packet_mbps\na,10,1\nb,20,2\nc,40,4\n")
    alike = readers.read_pairs(path=tmp_path / "pairs.csv")
    np.testing.assert_allclose(alike.bits, [[0, 5, 0], [0, 0, 7], [0, 0, 0]])
    differ = readers.read_pairs(path=tmp_path / "pairs.csv", racks=tmp_path / "racks.csv")
    assert differ.circuit_mbps[1, 2] == 20  # the slower end
    assert differ.packet_mbps.tolist() == [1, 2, 4]


def pairs(path: Path) -> Any:
    return readers.read_pairs(path=path)


def flows(path: Path) -> Any:
    return readers.read_flows(path=path)


@pytest.mark.parametrize(
    ("read", "text", "fault"),
    [
        (pairs, "source_rack,target_rack,bits\na,b,-5\n", "row 2: bits is -5.0, must be at least 0"),
        (pairs, "source_rack,target_rack,bits\na,b,nan\n", "must be a finite number"),
        (pairs, "source_rack,target_rack,bits\na,a,5\n", "must differ"),
        (pairs, "source_rack,target_rack,bits\na,b,5\na,b,6\n", "is there already in row 2"),
        (pairs, "source_rack,target_rack\na,b\n", "column 'bits' is missing"),
        (pairs, "", "is empty"),
        (flows, "start_us,source_rack,target_rack,bytes\n-1,a,b,5\n", "start_us is -1.0, must be at least 0"),
        (flows, "start_us,source_rack,target_rack,bytes\n0,a,b,0\n", "bytes is 0.0, must be greater than 0"),
        (flows, "start_us,source_rack,target_rack,bytes\n", "holds no rows"),
        (flows, "start_us;source_rack,target_rack,bytes\n0;a,b,1\n", "may be separated by"),
    ],
)
def test_tables_that_are_no_demand(
    tmp_path: Path, read: Callable[[Path], Any], text: str, fault: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read(path)
    assert fault in str(caught.value)


def test_racks_of_a_trace_must_be_known(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("start_us,source_rack,target_rack,bytes\n0,a,bb,5\n")
    (tmp_path / "racks.csv").write_text("rack,circuit_mbps,packet_mbps\na,10,1\nb,10,1\n")
    with pytest.raises(InputError, match="target_rack 'bb' is no rack of the network"):
        readers.read_flows(path=tmp_path / "flows.csv", racks=tmp_path / "racks.csv")


def test_a_trace_cut_too_fine_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text(TRACE)
    with pytest.raises(InputError, match="must be at most 1,000,000"):
        len(readers.read_coflow_windows(path=trace, length_ms=1e-6))


@pytest.mark.skipif("PLANNER_TRACES" not in os.environ, reason="PLANNER_TRACES names no folder of traces")
def test_the_real_trace_is_read() -> None:
    path = Path(os.environ["PLANNER_TRACES"]) / "coflow" / "FB2010-1Hr-150-0.txt"
    made = readers.read_coflows(path=path, length_ms=60_000)
    assert made.size()["racks"] == 150
    assert made.size()["pairs"] > 100


@pytest.mark.parametrize("first", ["9" * 5000 + " 1", "1 " + "9" * 5000, "\u00b2 1"])
def test_numbers_that_are_none_in_a_header_are_refused(tmp_path: Path, first: str) -> None:
    (tmp_path / "trace.txt").write_text(f"{first}\n1 0 1 1 1 2:5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"trace\.txt row 1"):
        read_coflow_parts(tmp_path / "trace.txt")


def write(folder: Path, text: str = ROWS) -> Path:
    path = folder / "flows.htsim"
    path.write_text(text)
    return path


def bits(problem: Circuits) -> dict[tuple[str, str], float]:
    """Return the demand of each pair of racks that has some."""
    rows = problem.demands[["source_rack", "target_rack", "bits"]].itertuples(index=False)
    return {(source, target): amount for source, target, amount in rows}


def test_bytes_and_nanoseconds(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert bits(readers.read_flows(path=path)) == {
        ("0", "7"): 120_000.0,
        ("3", "9"): 1_600_000.0,
        ("5", "2"): 12_000.0,
    }
    windows = dict(readers.read_flow_windows(path=path, length_us=1.0))
    assert [list(bits(window)) for window in windows.values()] == [[("0", "7")], [("3", "9")], [("5", "2")]]


def test_hosts_share_racks(tmp_path: Path) -> None:
    problem = readers.read_flows(path=write(tmp_path), hosts_per_rack=4)
    assert bits(problem) == {("0", "1"): 120_000.0, ("0", "2"): 1_600_000.0, ("1", "0"): 12_000.0}
    with pytest.raises(InputError, match=r"hosts_per_rack: is of \.htsim files; flows\.csv names racks"):
        readers.read_flows(path=tmp_path / "flows.csv", hosts_per_rack=4)


def test_what_is_assumed_is_said(tmp_path: Path) -> None:
    write(tmp_path)
    scenario = tmp_path / "s.toml"
    text = 'system = "circuits"\n[problem]\nsource = "flows"\npath = "flows.htsim"\n{}\n[designs.solstice]\n'
    scenario.write_text(text.format(""))
    columns = "assumed: flows.htsim: columns are source, target, bytes and start in ns"
    assert notes_of(planner.solve(scenario).problem) == [
        columns + "; each number is a rack, unless hosts_per_rack says how many hosts share one"
    ]
    scenario.write_text(text.format("hosts_per_rack = 4"))
    assert notes_of(planner.solve(scenario).problem) == [columns]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0 1 10 0\n0 1 10\n", f"flows.htsim row 2: has 3 fields, {FIELDS}"),
        ("Nodes 16\n", f"flows.htsim row 1: has 2 fields, {FIELDS}"),
        (
            "source target bytes start\n",
            "flows.htsim row 1: source is 'source', must be the number of a host",
        ),
        ("0 1 ten 0\n", f"flows.htsim row 1: is '0 1 ten 0', {FIELDS}"),
        ("0 1 0 0\n", "flows.htsim row 1: bytes is 0, must be greater than 0"),
        ("0 1 nan 0\n", "flows.htsim row 1: bytes is nan, must be greater than 0"),
        ("0 1 10 -5\n", "flows.htsim row 1: start is -5 ns, must be at least 0"),
        ("# nothing\n", "flows.htsim: has no flow"),
    ],
)
def test_other_rows_are_refused(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(InputError) as result:
        readers.read_flows(path=write(tmp_path, text))
    assert result.value.faults == (line,)
