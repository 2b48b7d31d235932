"""Inputs made to stop a reader: deep numbers, half characters, open quotes, wide ranges, packed files."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
from pyarrow import feather, parquet

DIGITS: Final = (400, 1_001, 4_301, 5_000, 20_000)
RANGES: Final = (
    "ip_src=10.0.0.1-10.255.255.254,ip_dst=10.0.0.1-10.255.255.254,tcp_src=1-65534,tcp_dst=1-65534",
    "ip,nw_src=10.0.0.1-10.255.255.254,tp_src=1-65534,tp_dst=1-65534",
    *(",".join(f"reg{index}=1-4294967294" for index in range(count)) for count in (1, 3, 6)),
)
FAR: Final = ((1_048_576, 16_384), (1_048_576, 3), (5, 16_384), (20_000, 60))
"""Rows and columns of a lonely cell of a workbook."""
MANY: Final = 400_000
"""Equal rows of a packed file, which unpack to more than the limit where their texts are long."""
MANY_SHORT: Final = 20_000
"""Equal rows of a packed file with short texts; each is read and checked."""


def deep_number(draw: random.Random, content: bytes) -> bytes:
    """Return the content with one of its numbers replaced by one of many digits."""
    positions = list(re.finditer(rb"\d+", content))
    digits = draw.choice([b"9", b"1", b"0"]) * draw.choice(DIGITS)
    if not positions:
        return content + digits
    position = draw.choice(positions)
    return content[: position.start()] + digits + content[position.end() :]


def open_quote(draw: random.Random, content: bytes) -> bytes:
    """Return the content with a quote that nothing closes, and many lines behind."""
    position = draw.randrange(len(content) + 1)
    return (
        content[:position]
        + draw.choice([b'"', b"'", b'""', b'"a""'])
        + content[position:] * draw.choice([1, 50])
    )


def long_line(draw: random.Random, content: bytes) -> bytes:
    """Return the content with a part repeated without a line end."""
    position = draw.randrange(len(content) + 1)
    return content[:position] + draw.choice([b"a", b",", b";", b" ", b"("]) * draw.choice([70_000, 1_100_000])


def half_character(draw: random.Random, content: bytes) -> bytes:
    """Return the content with half a character, as an escape or as bytes."""
    position = draw.randrange(len(content) + 1)
    return (
        content[:position] + draw.choice([rb"\ud800", rb"\udfff\ud800", b"\xed\xa0\x80"]) + content[position:]
    )


def wide_range(draw: random.Random, content: bytes) -> bytes:
    """Return the content with a field replaced by ranges that stand for many entries."""
    positions = list(re.finditer(rb"[^,\s\"]+", content))
    if not positions:
        return content
    position = draw.choice(positions)
    return (
        content[: position.start()] + b'"' + draw.choice(RANGES).encode() + b'"' + content[position.end() :]
    )


OF_BYTES: Final[tuple[Callable[[random.Random, bytes], bytes], ...]] = (
    deep_number,
    open_quote,
    long_line,
    half_character,
    wide_range,
)


def sparse_workbook(draw: random.Random, frame: pd.DataFrame) -> tuple[bytes, str]:
    """Return a workbook of a table with a lonely cell far away, or with blank cells."""
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append([str(name) for name in frame])
    for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False):
        sheet.append([None if draw.random() < 0.1 else value for value in row])
    sheet.cell(*draw.choice(FAR), value=draw.choice(["x", 1, "=1+1"]))
    content = io.BytesIO()
    book.save(content)
    return content.getvalue(), "xlsx"


def json_of_halves(draw: random.Random, frame: pd.DataFrame) -> tuple[bytes, str]:
    """Return records in which one name or value has half a character, or a number of many digits."""
    records = json.loads(frame.to_json(orient="records"))
    text = json.dumps(records)
    change = draw.choice([half_character, deep_number])
    return change(draw, text.encode()), draw.choice(["json", "jsonl"])


def packed_rows(draw: random.Random, frame: pd.DataFrame) -> tuple[bytes, str]:
    """Return a packed file of many equal rows, or of many equal long texts."""
    suffix = draw.choice(["parquet", "feather", "csv.gz"])
    if suffix == "csv.gz":
        text = frame.to_csv(index=False)
        return gzip.compress(text.encode() + text.encode()[-40:] * draw.choice([10, 20_000])), suffix
    rows = draw.choice([10, MANY])
    texts = draw.choice(["a", "x" * 10_000, "x" * (2 << 20)])
    if len(texts) == 1 or all(frame[name].dtype.kind in "iuf" for name in frame):
        rows = min(rows, MANY_SHORT)
    index = np.zeros(rows, np.int32)
    columns: dict[str, Any] = {}
    for name in frame:
        item = texts if frame[name].dtype.kind not in "iuf" else float(draw.choice([1, 0, 1e308]))
        columns[str(name)] = pa.DictionaryArray.from_arrays(pa.array(index), pa.array([item]))
    content = io.BytesIO()
    if suffix == "parquet":
        parquet.write_table(pa.table(columns), content, compression="zstd")
    else:
        feather.write_feather(pa.table(columns), content, compression="zstd")
    return content.getvalue(), suffix


OF_TABLES: Final[tuple[Callable[[random.Random, pd.DataFrame], tuple[bytes, str]], ...]] = (
    sparse_workbook,
    json_of_halves,
    packed_rows,
)


def craft_table(draw: random.Random, frame: pd.DataFrame) -> tuple[bytes, str]:
    """Return the content of a crafted file of a table, and its ending."""
    if draw.random() < 0.5:
        content = frame.to_csv(index=False).encode("utf-8", "surrogatepass")
        return draw.choice(OF_BYTES)(draw, content), "csv"
    return draw.choice(OF_TABLES)(draw, frame)


def craft_tables(draw: random.Random, tables: Mapping[str, pd.DataFrame]) -> dict[str, bytes]:
    """Return the files of tables by their names, one of them crafted."""
    selected = draw.choice(sorted(tables))
    content, suffix = craft_table(draw, tables[selected])
    files = {f"{name}.csv": frame.to_csv(index=False).encode() for name, frame in tables.items()}
    del files[f"{selected}.csv"]
    return files | {f"{selected}.{suffix}": content}
