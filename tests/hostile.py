"""Hostile values, and damage to bytes, texts, tables and documents; all drawn from a given generator."""

from __future__ import annotations

import copy
import random
from typing import Any, Final

import numpy as np
import pandas as pd

NUMBERS: Final = (
    *(0, -0.0, 1, -1, 2, 0.5, 1e-300, -1e-300, 5e-324, 1e-9, 1e9, 1e10, 1e15, 1e18, 1e300, 1.7e308, -1e308),
    *(float("inf"), float("-inf"), float("nan"), 2**31, 2**31 - 1, 2**53 + 1, 2**63, 2**64, -(2**63), 1e308),
    *(0.1 + 0.2, 1 + 1e-12, 1e-5, 3, 64, 1000, 1e6),
)
TEXTS: Final = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "a\nb",
        "\r",
        "\x00",
        "\x1b[31mred\x1b[0m",
        "\x07",
        "‮abc",
        "\u200b",
        "é",
        "e\u0301",
    ),
    *(
        "NA",
        "nan",
        "null",
        "None",
        "true",
        "inf",
        "-inf",
        "1e309",
        "0x10",
        "1_000",
        "١٢",
        "1,5",
        "1;5",
        "'",
        '"',
    ),
    *(
        ".",
        "..",
        "../x",
        "../../x",
        "/etc/passwd",
        "/dev/null",
        "~",
        "~/x",
        "a/b",
        "a\\b",
        "C:\\x",
        "x" * 300,
    ),
    *(
        "=1+1",
        "+1",
        "-1",
        "@x",
        "<script>alert(1)</script>",
        "<a href='x'>y</a>",
        "%s",
        "{x}",
        "${x}",
        "$(x)",
    ),
    *(
        "; DROP TABLE runs",
        "--out",
        "-x",
        "9" * 400,
        "[" * 3000,
        "🎉",
        "\U0010ffff",
        "source",
        "a,b",
        '"a""b',
    ),
)
TOKENS: Final = (
    *(
        b"",
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\n",
        b"\r\n",
        b",",
        b'"',
        b"'",
        b"[",
        b"]",
        b"{",
        b"}",
        b"=",
        b"#",
    ),
    *(
        b"-1",
        b"0",
        b"nan",
        b"inf",
        b"1e309",
        b"1e-320",
        b"9" * 400,
        b"99999999999",
        b"2147483648",
        b"1e10",
        b"-0",
    ),
    *(b"<!ENTITY a SYSTEM 'file:///etc/passwd'>", b"&a;", b"<", b">", b"()", b"(", b")", b"  ", b"\t", b"a"),
)


def value(draw: random.Random) -> Any:
    """Return a hostile value of a document or a cell."""
    kind = draw.random()
    if kind < 0.45:
        return draw.choice(NUMBERS)
    if kind < 0.85:
        return draw.choice(TEXTS)
    return draw.choice([True, False, [], [1], ["a"], [[]], {}, {"a": 1}, [1, "a"], [None], [0.0] * 3])


def damage_bytes(draw: random.Random, content: bytes) -> bytes:
    """Return the content with a few bytes, pieces or numbers changed, moved, doubled or cut."""
    made = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        position = draw.randrange(len(made) + 1)
        length = draw.choice([1, 1, 4, 16, 100])
        match draw.randrange(6):
            case 0:
                made[position : position + 1] = bytes([draw.randrange(256)])
            case 1:
                made[position:position] = draw.choice(TOKENS)
            case 2:
                del made[position : position + length]
            case 3:
                made[position:position] = made[position : position + length]
            case 4:
                made = made[:position] if draw.random() < 0.5 else made
            case _:
                made = bytearray(_replace_word(draw, bytes(made)))
    return bytes(made)


def _replace_word(draw: random.Random, content: bytes) -> bytes:
    """Return the content with one word between separators replaced by a hostile one."""
    starts = [index for index, byte in enumerate(content) if byte in b' ,\n<>="()']
    if not starts:
        return content
    start = draw.choice(starts) + 1
    end = next((position for position in starts if position >= start), len(content))
    token = draw.choice(TOKENS) if draw.random() < 0.5 else str(value(draw)).encode("utf-8", "replace")
    return content[:start] + token + content[end:]


def damage_table(draw: random.Random, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with cells, rows or columns changed."""
    made = frame.astype(object).reset_index(drop=True)
    for _ in range(draw.choice([1, 1, 2, 3])):
        rows, columns = made.shape
        match draw.randrange(9):
            case 0 if columns:
                name = draw.choice(list(made.columns))
                made = made.drop(columns=[name])
            case 1 if rows:
                made = made.drop(index=draw.randrange(rows)).reset_index(drop=True)
            case 2 if rows:
                again = made.iloc[[draw.randrange(rows)]]
                made = pd.concat([made, again], ignore_index=True)
            case 3 if columns and draw.random() < 0.3:
                names = {draw.choice(list(made.columns)): draw.choice(TEXTS)}
                made = made.rename(columns=names)
                made = made.loc[:, ~made.columns.duplicated()]
            case 4 if draw.random() < 0.2:
                made = made.iloc[:0]
            case 5 if rows and columns:
                name = draw.choice(list(made.columns))
                made[name] = [value(draw)] * rows
            case _ if rows and columns:
                row, name = draw.randrange(rows), draw.choice(list(made.columns))
                cells = made[name].astype(object).tolist()
                cells[row] = _other_cell(draw, cells, cells[row])
                made[name] = pd.Series(cells, dtype=object)
    return made


def _other_cell(draw: random.Random, column: list[Any], old: Any) -> Any:
    """Return another value for a cell: hostile, of another row, or near the old number."""
    kind = draw.random()
    if kind < 0.25:
        return draw.choice(column)
    if isinstance(old, int | float | np.number) and not isinstance(old, bool):
        if kind < 0.5:
            return float(old) * draw.choice([-1, 0.5, 2, 1e3, 1e-3, 1 + 1e-9])
        if kind < 0.6:
            return float(old) + draw.choice([1, -1, 0.5])
        return draw.choice(NUMBERS) if kind < 0.95 else draw.choice(TEXTS)
    return draw.choice(TEXTS) if kind < 0.9 else draw.choice(NUMBERS)


def damage_document(draw: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """Return a TOML document with values, keys and sections changed."""
    made = copy.deepcopy(document)
    for _ in range(draw.choice([1, 1, 2, 3])):
        table = made
        while True:
            deeper = [item for item in table.values() if isinstance(item, dict)]
            if not deeper or draw.random() < 0.3:
                break
            table = draw.choice(deeper)
        keys = list(table)
        match draw.randrange(5):
            case 0 if keys:
                del table[draw.choice(keys)]
            case 1 if keys:
                key = draw.choice(keys)
                table[draw.choice(TEXTS)] = table.pop(key)
            case 2:
                table[draw.choice(TEXTS)] = value(draw)
            case _ if keys:
                table[draw.choice(keys)] = value(draw)
    return made
