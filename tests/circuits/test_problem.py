"""What is no problem is refused in one line, and tables make the same problem again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from planner import InputError
from planner_models.circuits import Circuits, generate, readers

RATES = {"circuit_mbps": 10.0, "packet_mbps": 1.0}


def problem(bits: object, **switch: float | None) -> Circuits:
    times: dict[str, float | None] = {"night_us": 1.0, "window_us": 50.0, **switch}
    return Circuits.from_matrix(np.array(bits, dtype=float), **RATES, **times)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bits", "fault"),
    [
        ([[0, 1, 2], [1, 0, 3]], "must be square"),
        ([[0, np.nan], [1, 0]], "row 1 column 2: nan, must be a finite number"),
        ([[0, 1], [-1, 0]], "row 2 column 1: -1, must be at least 0"),
        ([[0, 1], [1, 5]], "row 2 column 2: 5, must be 0"),
    ],
)
def test_a_matrix_that_is_no_demand(bits: object, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        problem(bits)
    assert len(caught.value.faults) == 1
    assert fault in caught.value.faults[0]


@pytest.mark.parametrize(
    ("switch", "fault"),
    [
        ({"night_us": 50.0}, "night_us is 50, must be less than window_us, 50"),
        ({"shortest_day_us": 49.5}, "shortest_day_us is 49.5, must with the night of 1 fit window_us, 50"),
        ({"night_us": -1.0}, "must be at least 0"),
    ],
)
def test_times_that_do_not_fit(switch: dict[str, float], fault: str) -> None:
    with pytest.raises(InputError) as caught:
        problem([[0, 1], [1, 0]], **switch)
    assert fault in str(caught.value)


def test_unknown_racks_and_loops_are_named_with_their_rows() -> None:
    tables = generate.rings(racks=3).to_tables()
    tables["demands"] = pd.DataFrame(
        [("r0", "r9", 1.0), ("r1", "r1", 1.0)], columns=["source_rack", "target_rack", "bits"]
    )
    with pytest.raises(InputError) as caught:
        Circuits.from_tables(tables)
    unknown, loop = caught.value.faults
    assert "demands row 1: target_rack 'r9' is no rack" in unknown
    assert "demands row 2: source_rack and target_rack are both 'r1'" in loop


def test_several_switches_are_refused() -> None:
    tables = generate.rings(racks=3).to_tables()
    tables["switch"] = pd.concat([tables["switch"]] * 2, ignore_index=True)
    with pytest.raises(InputError, match="has 2 rows, must have one"):
        Circuits.from_tables(tables)


@pytest.mark.parametrize("bounded", [True, False])
def test_tables_make_the_same_problem(bounded: bool) -> None:
    made = generate.skewed(racks=6, large=1, small=2, bounded=bounded)
    again = Circuits.from_tables(made.to_tables())
    np.testing.assert_array_equal(made.bits, again.bits)
    assert (made.night_us, made.window_us) == (again.night_us, again.window_us)


def test_skewed_demand_fills_every_rack_to_its_load() -> None:
    made = generate.skewed(racks=64, load=0.8, noise=0.0)
    whole = 0.8 * 100_000 * 2_000
    np.testing.assert_allclose(made.bits.sum(axis=0), whole)
    np.testing.assert_allclose(made.bits.sum(axis=1), whole)
    assert (np.diag(made.bits) == 0).all()
    large = np.where(made.bits >= 0.17 * whole, made.bits, 0).sum() / made.bits.sum()
    assert 0.69 < large < 0.76  # some small flows lie on large ones


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
    np.testing.assert_array_equal(readers.matrix(path=path).bits, bits)


def test_files_that_hold_no_matrix(tmp_path: Path) -> None:
    words = tmp_path / "words.csv"
    words.write_text("0,x\n1,0\n")
    with pytest.raises(InputError, match=r"words.csv row 1 column 2: nan"):
        readers.matrix(path=words)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("0,1\n1\n")
    with pytest.raises(InputError, match="no matrix"):
        readers.matrix(path=ragged)
    with pytest.raises(InputError, match="no such file"):
        readers.matrix(path=tmp_path / "absent.npy")


def test_coflows_of_a_window(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text("4 3\n1 0 2 0 1 1 2:4.0\n2 50 1 3 2 3:9.0 0:1.0\n3 900 1 0 1 1:7\n")
    bits = readers.coflow(path=trace, start_ms=0, length_ms=100).bits
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
def test_a_trace_that_is_none(tmp_path: Path, text: str, fault: str) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text(text)
    with pytest.raises(InputError, match=fault):
        readers.coflow(path=trace)


@pytest.mark.skipif("PLANNER_TRACES" not in os.environ, reason="PLANNER_TRACES names no folder of traces")
def test_the_real_trace_is_read() -> None:
    path = Path(os.environ["PLANNER_TRACES"]) / "coflow" / "FB2010-1Hr-150-0.txt"
    made = readers.coflow(path=path, length_ms=60_000)
    assert made.size()["racks"] == 150
    assert made.size()["pairs"] > 100
