"""Damaged and hostile files that tests write."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow
from pyarrow import feather

from tests.planner.io.spreadsheets import sheet


def write_feather_of_far_texts(path: Path) -> None:
    """Write a Feather file whose second text begins far outside of the buffer of texts."""
    names = ["a", "b", "a", "b"]
    columns = {"tail": names, "head": names[::-1], "capacity_mbps": [1.0, 2.0, 3.0, 4.0]}
    feather.write_feather(pyarrow.table(columns), str(path), compression="uncompressed")
    offsets, far = (np.array([0, second, 2, 3, 4], np.int32).tobytes() for second in (1, 9_000_000))
    content = path.read_bytes()
    assert content.count(offsets) == 2
    path.write_bytes(content.replace(offsets, far, 1))


def write_damaged_feather(path: Path) -> None:
    """Write a Feather file whose description for pandas lacks the types of its columns."""
    column = b'{"name": "tail", "field_name": "tail", "pandas_type": "unicode"}'
    described = b'{"columns": [' + column + b'], "index_columns": []}'
    right = {"tail": ["a", "b"], "head": ["b", "a"], "capacity_mbps": [1500.0, 2000.0]}
    content = pyarrow.table(right).replace_schema_metadata({b"pandas": described})
    feather.write_feather(content, str(path))


def write_bomb(path: Path) -> None:
    """Write a workbook of a few kilobytes with a cell in the last row and column."""
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active["A1"], book.active["XFD1048576"] = "tail", 2
    book.save(path)


def write_entity(path: Path) -> None:
    """Write a workbook whose sheet names a file of the machine."""
    made = path.with_name("plain.xlsx")
    sheet(["tail", "head", "capacity_mbps"], ["a", "b", 1])(made)  # type: ignore[operator]
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(path, "w") as new:
        for share in old.namelist():
            text = old.read(share)
            if share == "xl/worksheets/sheet1.xml":
                head = b'<!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/passwd">]>'
                text = text.replace(b"<worksheet", head + b"<worksheet", 1).replace(b">b<", b">&secret;<")
            new.writestr(share, text)
    made.unlink()
