"""Parquet and Feather files: what they hold, and files of a few kilobytes that unpack to gigabytes."""

from __future__ import annotations

import contextlib
import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from planner.contract.table import Table, label, number
from planner.errors import InputError
from planner.io import arrow_files
from planner.io.arrow_files import arrow_columns, measure_arrow, read_parquet_parts
from planner.io.table_files import read_table
from planner.scenarios.catalogue import find_system
from tests.planner.io.hostile_files import write_damaged_feather

PARTS = Table(
    name="parts",
    about="a part",
    columns={"part": label("its name"), "mass_kg": number("its mass, kg", at_least=0)},
)
COMPACT = Table(name="parts", about="a part", columns=PARTS.columns, compact=True)
MANY = 2_000_000
LIMIT = 64 << 20
"""Bytes in memory in place of 2 GiB, so that bombs are written soon."""
LONG = "x" * 100_000


def coded(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def equal_numbers(rows: int) -> pa.Table:
    numbers = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([1.0]))
    return pa.table({"part": coded("a", rows).cast(pa.string()), "mass_kg": numbers})


def long_texts(rows: int) -> pa.Table:
    return pa.table({"part": coded(LONG, rows), "mass_kg": np.ones(rows)})


def wide_numbers(rows: int) -> pa.Table:
    columns = {f"x{index}": pa.nulls(rows, pa.float64()) for index in range(900)}
    return pa.table({"part": coded("a", rows), "mass_kg": np.ones(rows), **columns})


def write_parquet(content: pa.Table, path: Path, **options: Any) -> None:
    parquet.write_table(content, path, compression="zstd", **options)


def write_feather(content: pa.Table, path: Path) -> None:
    feather.write_feather(content, str(path), compression="zstd")


def write_prefixed(content: pa.Table, path: Path) -> None:
    """Write texts as the letters in which each differs from the text before."""
    content = content.append_column("mass_kg", pa.array(np.ones(len(content))))
    parquet.write_table(
        content, path, use_dictionary=False, column_encoding={"part": "DELTA_BYTE_ARRAY"}, compression="zstd"
    )


BOMBS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "equal numbers": (
        "parts.parquet",
        lambda path: write_parquet(wide_numbers(12_000), path),
    ),
    "equal numbers in Feather": ("parts.feather", lambda path: write_feather(wide_numbers(12_000), path)),
    "equal long texts": ("parts.parquet", lambda path: write_parquet(long_texts(1_000), path)),
    "equal long texts in Feather": ("parts.feather", lambda path: write_feather(long_texts(1_000), path)),
    "texts that differ in nothing": (
        "parts.parquet",
        lambda path: write_prefixed(pa.table({"part": [LONG] * 800}), path),
    ),
    "dates": (
        "parts.parquet",
        lambda path: write_parquet(
            pa.table({"part": coded("a", MANY), "mass_kg": pa.nulls(MANY, pa.date32())}), path
        ),
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("table", [PARTS, COMPACT], ids=["plain", "compact"])
def test_a_small_file_that_unpacks_to_gigabytes_is_refused_before_it_is_read(
    bomb: str, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_files, "MAX_DECODED", LIMIT)
    name, write = BOMBS[bomb]
    write(tmp_path / name)
    assert (tmp_path / name).stat().st_size < LIMIT / 100
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match=rf"^{name}: unpacks to [0-9,]+ MiB, must be at most 64 MiB$"):
        read_table(table, tmp_path / name)
    assert pa.total_allocated_bytes() - before < LIMIT / 10


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_the_size_of_a_file_is_known_from_its_header(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"parts.{suffix}"
    content = pa.table({"part": coded("abc", 1000), "mass_kg": np.arange(1000.0)})
    (write_parquet if suffix == "parquet" else write_feather)(content, path)
    size = measure_arrow(path)
    assert (size.columns, size.rows) == (2, 1000)
    assert size.decoded >= 1000 * (4 + 8)
    assert arrow_columns(path) == ["part", "mass_kg"]


def test_each_buffer_of_feather_is_measured_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight texts of 10 MB: only the length before each buffer tells."""
    monkeypatch.setattr(arrow_files, "MAX_DECODED", LIMIT)
    zeros = pa.py_buffer(bytes(10 << 20))
    offsets = pa.py_buffer(np.array([0, 10 << 20], np.int64).tobytes())
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, zeros])
    content = pa.table({"part": pa.chunked_array([text] * 8), "mass_kg": [1.0] * 8})
    write_feather(content, tmp_path / "parts.feather")
    with pytest.raises(InputError, match="unpacks to 80 MiB"):
        arrow_columns(tmp_path / "parts.feather")


def test_a_text_longer_than_a_line_is_refused(tmp_path: Path) -> None:
    write_parquet(pa.table({"part": ["x" * (2 << 20)], "mass_kg": [1.0]}), tmp_path / "parts.parquet")
    with pytest.raises(InputError, match=r"has a text of 2,097,152 bytes, must have at most 1,048,576"):
        read_table(PARTS, tmp_path / "parts.parquet")


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize(
    "texts",
    [
        pa.array(["a", "b"]),
        pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"], pa.string_view()),
        pa.array([b"a", b"b"]),
        pa.array(["a", "b"]).dictionary_encode(),
    ],
    ids=lambda texts: str(texts.type)[:12],
)
@pytest.mark.parametrize("table", [PARTS, COMPACT], ids=["plain", "compact"])
def test_texts_of_any_type_are_read(texts: pa.Array, suffix: str, table: Table, tmp_path: Path) -> None:
    content = pa.table({"part": texts, "mass_kg": pa.array([decimal.Decimal("1.5"), decimal.Decimal("2.5")])})
    path = tmp_path / f"parts.{suffix}"
    (write_parquet if suffix == "parquet" else write_feather)(content, path)
    frame = read_table(table, path)
    assert frame["part"].tolist() == ["a", "b"]
    assert frame["mass_kg"].tolist() == [1.5, 2.5]


def test_an_index_of_pandas_is_a_column_where_it_has_a_name(tmp_path: Path) -> None:
    frame = pd.DataFrame({"part": ["a", "b"], "mass_kg": [1.0, 2.0]})
    frame.set_index("part").to_parquet(tmp_path / "parts.parquet")
    assert read_table(PARTS, tmp_path / "parts.parquet")["part"].tolist() == ["a", "b"]
    frame.set_axis([5, 9]).to_parquet(tmp_path / "parts.parquet")
    assert arrow_columns(tmp_path / "parts.parquet") == ["part", "mass_kg"]


def test_lists_in_columns_that_are_not_read_do_not_matter(tmp_path: Path) -> None:
    content = pa.table({"part": ["a"], "mass_kg": [1.0], "more": [[1, 2]]})
    write_parquet(content, tmp_path / "parts.parquet")
    assert len(read_table(PARTS, tmp_path / "parts.parquet")) == 1


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    for suffix, write in (("parquet", write_parquet), ("feather", write_feather)):
        write(pa.table({"part": [b"\xff\xfe"], "mass_kg": [1.0]}), tmp_path / f"parts.{suffix}")
        with pytest.raises(InputError, match="has names that are not UTF-8 text"):
            read_table(PARTS, tmp_path / f"parts.{suffix}")


def test_dates_where_numbers_must_be_are_named(tmp_path: Path) -> None:
    content = pa.table({"part": ["a"], "mass_kg": [datetime.date(2026, 1, 2)]})
    write_parquet(content, tmp_path / "parts.parquet")
    with pytest.raises(InputError, match="mass_kg is the time 2026-01-02, must be a number"):
        read_table(PARTS, tmp_path / "parts.parquet")


def test_parts_of_a_file_are_read_one_after_the_other(tmp_path: Path) -> None:
    content = pa.table({"part": coded("a", 1000), "mass_kg": np.arange(1000.0)})
    write_parquet(content, tmp_path / "parts.parquet")
    parts = list(read_parquet_parts(tmp_path / "parts.parquet", 300))
    assert [len(share) for share in parts] == [300, 300, 300, 100]
    assert pd.concat(parts)["mass_kg"].tolist() == list(range(1000))


def test_a_damaged_feather_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "parts.feather"
    write_feather(pa.table({"part": ["a", "b"], "mass_kg": [1.0, 2.0]}), path)
    content = bytearray(path.read_bytes())
    for cut in (8, 40, 200, 300):
        path.write_bytes(content[:cut])
        with pytest.raises(InputError, match=r"^parts\.feather: "):
            read_table(PARTS, path)
    for index in range(8, len(content), 5):
        path.write_bytes(bytes([*content[:index], 0xFF, *content[index + 1 :]]))
        with contextlib.suppress(InputError):
            read_table(PARTS, path)


def test_a_damaged_description_for_pandas_does_not_matter(tmp_path: Path) -> None:
    write_damaged_feather(tmp_path / "links.feather")
    links = next(table for table in find_system("traffic").problem.tables if table.name == "links")
    assert read_table(links, tmp_path / "links.feather")["capacity_mbps"].tolist() == [1500.0, 2000.0]
