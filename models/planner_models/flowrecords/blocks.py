"""Blocks of a file, expanded where it is in gzip or Zstandard, up to a limit."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import pyarrow as pa

from planner.errors import InputError
from planner.io.text_files import require_file

BLOCK_BYTES: Final = 1 << 23
MAX_BYTES: Final = 1 << 38
"""Bytes of a file once it is expanded."""
GZIP: Final = b"\x1f\x8b"
ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"


@contextmanager
def open_expanded(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, and expand it where it begins as gzip or Zstandard.

    raises  InputError where it cannot be read or expanded
    """
    require_file(path)
    try:
        with path.open("rb") as file:
            begin = file.read(4)
            file.seek(0)
            if begin.startswith(GZIP):
                with gzip.open(file) as expanded:
                    yield cast("BinaryIO", expanded)
            elif begin == ZSTANDARD:
                with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as expanded:
                    yield cast("BinaryIO", expanded)
            else:
                yield file
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise InputError(f"{path.name}: cannot be read ({' '.join(str(error).split())[:120]})") from None


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield a file in blocks; raise InputError where it expands to more than MAX_BYTES."""
    total = 0
    with open_expanded(path) as file:
        while block := file.read(BLOCK_BYTES):
            total += len(block)
            if total > MAX_BYTES:
                raise InputError(f"{path.name}: expands to over {MAX_BYTES >> 30:,} GiB; split it")
            yield block
