"""What the child process that reads a workbook is asked for, and for how long its answers are kept."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from planner.contract.table import Table, label, number
from planner.errors import InputError
from planner.io import workbooks
from planner.io.table_files import read_table

PARTS = Table(
    name="parts",
    about="a part",
    columns={"part": label("its name"), "mass_kg": number("its mass, kg", at_least=0, may_be_blank=True)},
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that the child process gets, in order."""
    commands: list[str] = []
    run = subprocess.run

    def note(words: list[str], **options: Any) -> Any:
        commands.append(words[3])
        return run(words, **options)

    monkeypatch.setattr(workbooks.subprocess, "run", note)
    return commands


def save(path: Path, *rows: tuple[Any, ...]) -> Path:
    book = openpyxl.Workbook()
    for row in (("part", "mass_kg"), *rows):
        book.active.append(row)  # type: ignore[union-attr]
    book.save(path)
    return path


def test_a_small_workbook_is_read_once_until_it_changes(tmp_path: Path, asked: list[str]) -> None:
    path = save(tmp_path / "parts.xlsx", ("gear", 2.0))
    for _ in range(2):
        assert read_table(PARTS, path)["mass_kg"].tolist() == [2.0]
        workbooks.forget_workbooks()
    assert sorted(asked) == ["formats", "read", "sheets"]
    save(path, ("gear", 3.0), ("axle", 10.0))
    assert read_table(PARTS, path)["mass_kg"].tolist() == [3.0, 10.0]


def test_many_cells_are_forgotten(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbooks, "MAX_KNOWN_CELLS", 3)
    path = save(tmp_path / "parts.xlsx", ("gear", 2.0))
    for _ in range(2):
        read_table(PARTS, path)
        workbooks.forget_workbooks()
    assert asked.count("read") == 2


def test_only_sheets_with_formulas_or_errors_are_asked_for_what_is_typed(
    tmp_path: Path, asked: list[str]
) -> None:
    plain = save(tmp_path / "plain.xlsx", ("axle", 1.0), ("gear", None))
    assert read_table(PARTS, plain)["mass_kg"].isna().tolist() == [False, True]
    assert "cells" not in asked
    for typed, line in (
        ("=1+1", "is the formula =1+1 without a value"),
        ("#N/A", "is #N/A, must have a value"),
    ):
        path = save(tmp_path / f"typed{len(asked)}.xlsx", ("axle", 1.0), ("gear", typed))
        with pytest.raises(InputError, match="mass_kg") as caught:
            read_table(PARTS, path)
        assert line in str(caught.value)
        assert asked[-1] == "cells"
