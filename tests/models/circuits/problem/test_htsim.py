"""Flow files of htsim: units, racks of hosts, windows, notes, and rows that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner.contract.notes import notes_of
from planner.errors import InputError
from planner_models.circuits import Circuits
from planner_models.circuits.problem import readers

ROWS = "0 7 15000 0\n3\t9 200000  1200\n\n5 2 1500 2500\n"


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


FIELDS = "must be four numbers: source, target, bytes, start in ns"


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
