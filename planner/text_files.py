"""Text files, made sure of before anything reads them: there, readable, UTF-8, with lines of sane length."""

from __future__ import annotations

import codecs
import itertools
import os
from pathlib import Path
from typing import Final

import numpy as np

from planner.errors import InputError, did_you_mean

LONGEST_LINE: Final = 1 << 20  # bytes; no table or network file of use has a longer one


def require_file(path: Path) -> None:
    """InputError unless `path` is a file that can be read."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    if not path.exists():
        siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        near = did_you_mean(path.name, siblings)
        raise InputError(f"{path}: no such file" + (near if "'" in near else ""))
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: may not be read")


def require_text(path: Path, *, longest_line: int = LONGEST_LINE) -> None:
    """InputError unless `path` is a UTF-8 text file without lines of absurd length.

    Reads the file once in blocks, so that a file of one endless line costs no memory.
    """
    require_file(path)
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
                bad = line + block[: max(error.start, 0)].count(b"\n")
                byte = error.object[error.start]
                raise InputError(
                    f"{path.name} row {bad}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
                ) from None
            ends = [-length - 1, *_line_ends(block), len(block)]
            longest = max(b - a - 1 for a, b in itertools.pairwise(ends))
            if longest > longest_line:
                raise InputError(f"{path.name}: has a line of over {longest_line:,} bytes; is it a table?")
            length = ends[-1] - ends[-2] - 1
            line += len(ends) - 2
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise InputError(f"{path.name} row {line}: ends within a UTF-8 character; is it whole?") from None


def read_text(path: Path, *, longest_line: int = LONGEST_LINE) -> str:
    """The UTF-8 text of a file (a byte order mark is dropped); InputError for anything else."""
    require_text(path, longest_line=longest_line)
    return path.read_text(encoding="utf-8-sig")


def _line_ends(block: bytes) -> list[int]:
    return np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")).tolist()
