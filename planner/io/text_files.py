"""Checks of text files before anything parses them: existing, readable, UTF-8, no overlong line."""

from __future__ import annotations

import codecs
import itertools
import os
from pathlib import Path
from typing import Final

import numpy as np

from planner.errors import InputError, did_you_mean

MAX_LINE_BYTES: Final = 1 << 20  # no useful table or network file has a longer line


def require_file(path: Path) -> None:
    """Raise InputError unless `path` is a readable file."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    if not path.exists():
        siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        near = did_you_mean(path.name, siblings)
        raise InputError(f"{path}: no such file" + (near if "'" in near else ""))
    if not path.is_file():
        raise InputError(f"{path}: is a device or a pipe, must be a file")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: may not be read")


def require_text(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
    """Raise InputError unless `path` is a UTF-8 text file with lines of at most `max_line_bytes`.

    Reads the file once in blocks, so that a file of one endless line needs no memory.
    """
    require_file(path)
    try:
        _check_blocks(path, max_line_bytes)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _check_blocks(path: Path, max_line_bytes: int) -> None:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    line, length = 1, 0
    with path.open("rb") as file:
        first = True
        while block := file.read(1 << 18):
            if first and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise InputError(f"{path.name}: is UTF-16 text, must be saved as UTF-8")
            first = False
            if b"\0" in block:
                raise InputError(f"{path.name}: is a binary file, must be text")
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                row = line + block[: max(error.start, 0)].count(b"\n")
                byte = error.object[error.start]
                raise InputError(
                    f"{path.name} row {row}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
                ) from None
            ends = [-length - 1, *_line_ends(block), len(block)]
            longest = max(b - a - 1 for a, b in itertools.pairwise(ends))
            if longest > max_line_bytes:
                raise InputError(f"{path.name}: has a line of over {max_line_bytes:,} bytes; is it a table?")
            length = ends[-1] - ends[-2] - 1
            line += len(ends) - 2
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise InputError(f"{path.name} row {line}: ends within a UTF-8 character; is it whole?") from None


def read_text(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> str:
    """Return the UTF-8 text of a file without byte order mark; raise InputError for other files."""
    require_text(path, max_line_bytes=max_line_bytes)
    return path.read_text(encoding="utf-8-sig")


def _line_ends(block: bytes) -> list[int]:
    return np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")).tolist()
