"""Checks of text files before anything parses them: existing, readable, UTF-8, no overlong line."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError, did_you_mean
from planner.io.number_texts import long_number

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


class NotUtf8(InputError):
    """A text in another encoding than UTF-8."""


def require_text(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES, name: str | None = None) -> None:
    """Raise InputError unless `path` is a UTF-8 text file with lines of at most `max_line_bytes`.

    Reads the file once in blocks, so that a file of one endless line needs no memory.

    name  of the file in errors; default: its own
    """
    require_file(path)
    try:
        _check_blocks(path, max_line_bytes, name or path.name)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _check_blocks(path: Path, max_line_bytes: int, name: str) -> None:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    line, length = 1, 0
    with path.open("rb") as file:
        first, is_ascii = True, True
        while block := file.read(1 << 18):
            if first and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise NotUtf8(f"{name}: is UTF-16 text, must be saved as UTF-8")
            if b"\0" in block:
                raise InputError(f"{name}: is a binary file, must be text")
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                row = line + block[: max(error.start, 0)].count(b"\n")
                byte = error.object[error.start]
                fault = f"{name} row {row}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
                beside = block.decode("utf-8-sig" if first else "utf-8", errors="replace")
                is_mixed = not is_ascii or not beside.replace("\ufffd", "").isascii()
                raise (InputError if is_mixed else NotUtf8)(fault) from None
            first = False
            is_ascii = is_ascii and text.isascii()
            ends = np.concatenate([[-length - 1], _line_ends(block), [len(block)]])
            if np.diff(ends).max() - 1 > max_line_bytes:
                raise InputError(f"{name}: has a line of over {max_line_bytes:,} bytes; is it a table?")
            length = int(ends[-1] - ends[-2] - 1)
            line += len(ends) - 2
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise InputError(f"{name} row {line}: ends within a UTF-8 character; is it whole?") from None


WESTERN: Final = "cp1252"
NOT_WESTERN: Final = re.compile(
    r"[^\W\d_a-zA-Z]{3}|[^\W\d_][\u00a1-\u00a9\u00ab-\u00b1\u00b4\u00b6\u00b8\u00b9\u00bb-\u00bf\u00d7\u00f7]"
    r"|[\u00a1-\u00a9\u00ab-\u00b1\u00b4\u00b6\u00b8\u00b9\u00bb-\u00bf\u00d7\u00f7][^\W\d_]"
)
"""Other encodings as they look when read as Western European: accents in a row, symbols within words."""


@contextlib.contextmanager
def open_as_utf8(
    path: Path,
    encoding: str | None,
    *,
    name: str,
    hint: str,
    folder: Path,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[tuple[Path, str]]:
    """Yield a text file as UTF-8, itself or a copy in `folder`, and its encoding.

    Text without a byte order mark that is not UTF-8 is Western European (cp1252) where it looks like it.

    encoding  as the user gives it; None: to be found
    hint      how the user can give it
    raises    InputError where the file is no text, or in another encoding
    """
    if encoding is None or codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        try:
            require_text(path, name=name, max_line_bytes=max_line_bytes)
        except NotUtf8:
            if encoding is not None:
                raise
        else:
            yield path, "utf-8"
            return
    selected = encoding or _guess_encoding(path)
    copy = folder / "utf-8.csv"
    try:
        with (
            path.open(encoding=selected, newline="") as source,
            copy.open("w", encoding="utf-8", newline="") as out,
        ):
            while text := source.read(1 << 18):
                if selected == WESTERN and encoding is None:
                    _require_western(text, name, hint)
                out.write(text)
    except (UnicodeError, OSError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "it has bytes that are no letter"
        raise InputError(
            f"{name}: cannot be read as {selected} ({reason}); save it as UTF-8, or {hint}"
        ) from None
    require_text(copy, name=name, max_line_bytes=max_line_bytes)
    yield copy, selected


def _guess_encoding(path: Path) -> str:
    """Return UTF-16 for a text with its byte order mark, else Western European."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else WESTERN


def _require_western(text: str, name: str, hint: str) -> None:
    """Raise InputError with the first word that a Western European text would not have."""
    odd = NOT_WESTERN.search(text)
    if odd is not None:
        words = re.finditer(r"[^\s,;|]+", text)
        shown = next(word[0] for word in words if word.end() >= odd.end())[:40]
        raise InputError(
            f"{name}: is not UTF-8, and '{shown}' is no Western European text (cp1252); "
            f"save it as UTF-8, or {hint}"
        )


def read_text(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> str:
    """Return the UTF-8 text of a file without byte order mark; raise InputError for other files.

    Refuses numbers of thousands of digits too, which readers would convert.
    """
    require_text(path, max_line_bytes=max_line_bytes)
    text = path.read_text(encoding="utf-8-sig")
    if long_number(text) is not None:
        for row, line in enumerate(text.split("\n"), start=1):
            if (fault := long_number(line)) is not None:
                raise InputError(f"{path.name} row {row}: {fault}")
    return text


def _line_ends(block: bytes) -> NDArray[np.int64]:
    return np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
