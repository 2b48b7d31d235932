"""Texts that a spreadsheet may take for formulas, in every table that planner writes."""

from __future__ import annotations

import time
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.table import Table, label, number
from planner.contract.tables import validate
from planner.io.formulas import may_be_formula, quote_formulas, unquote_formulas
from planner.io.table_files import export_table, read_table, write_table, write_workbook
from planner_dashboard.own_data.limits import active_cells

ACTIVE = [
    "=1+1",
    "+x",
    "-x",
    "@x",
    "\tx",
    "\rx",
    "\nx",
    " =1",
    "\n =1",
    "\uff1d1",
    "\uff0bx",
    "\uff0dx",
    "\uff20x",
]
TEXTS = [*ACTIVE, "'=x", "''-", "-5", "+1e3", "plain", "'quoted'", "-", "'", "a=b", "' =1"]
PARTS = {"part": label("its name"), "mass_kg": number("its mass, kg", at_least=0)}


def is_active(cell: str) -> bool:
    """Return whether a spreadsheet may compute a cell; written apart from the code that it checks."""
    first = cell.lstrip(" ")[:1]
    if cell in ("-5", "+1e3"):
        return False
    return bool(first) and first in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path, compact: bool, suffix: str) -> None:
    table = Table(name="parts", about="a part", columns=PARTS, key=("part",), compact=compact)
    frame = validate(table, pd.DataFrame({"part": TEXTS, "mass_kg": 1.5}))
    path = tmp_path / f"parts.{suffix}"
    write_table(frame, path)
    cells = pd.read_csv(path, keep_default_na=False)["part"].astype(str).tolist()
    assert "-5" in cells, "a number stays one"
    assert not [cell for cell in cells if is_active(cell)]
    assert read_table(table, path)["part"].tolist() == TEXTS


def test_no_cell_and_no_header_of_an_export_is_a_formula(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=cmd": ACTIVE, "plain": 1.0})
    export_table(frame, tmp_path / "runs.csv", ".csv")
    read = pd.read_csv(tmp_path / "runs.csv", keep_default_na=False)
    assert list(read.columns) == ["'=cmd", "plain"]
    assert not [cell for cell in read["'=cmd"] if is_active(cell)]
    write_workbook({"runs": frame.iloc[[0, 1, 2, 3, 9]]}, tmp_path / "runs.xlsx")
    cells = [
        cell for row in openpyxl.load_workbook(tmp_path / "runs.xlsx")["runs"].iter_rows() for cell in row
    ]
    assert not [cell.value for cell in cells if cell.data_type == "f" or is_active(str(cell.value))]


@pytest.mark.parametrize("text", ACTIVE, ids=repr)
def test_uploads_refuse_what_files_quote(text: str) -> None:
    assert may_be_formula(text)
    assert active_cells(pd.DataFrame({"part": [text]}), "parts.csv")


def test_uploads_take_numbers_and_plain_names() -> None:
    frame = pd.DataFrame({"part": ["-5", "+1.5e3", "a-b", "x=1", "a@b", "d'Or"]})
    assert not active_cells(frame, "parts.csv")


def test_uploads_with_empty_cells_are_looked_through() -> None:
    faults = active_cells(pd.DataFrame({"part": ["a", None, "=1", float("nan")]}), "parts.csv")
    assert faults == ["parts.csv row 4: part is '=1', must be a plain name"]


def test_numbers_of_many_digits_take_linear_time() -> None:
    """A pattern that tried each split of the digits would take many minutes here."""
    digits, begin = "9" * 300_000, time.process_time()
    assert not may_be_formula(f"+{digits}.{digits}e{digits}")
    assert may_be_formula(f"+{digits}x")
    assert may_be_formula(f"+{digits}.{digits}x")
    assert time.process_time() - begin < 5


@given(st.lists(st.text(st.sampled_from("'=+-@1a\t\n\r \uff1d")), min_size=1, unique=True))
def test_quoted_formulas_are_read_back(names: list[str]) -> None:
    frame = pd.DataFrame({"part": pd.Series(names, dtype=str)})
    quoted = quote_formulas(frame)
    assert not [cell for cell in quoted["part"] if may_be_formula(cell)]
    assert unquote_formulas(quoted)["part"].tolist() == names
