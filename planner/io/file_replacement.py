"""Files that are written completely or not at all: beside their place first, then renamed."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_numbers: Final = itertools.count()


@contextlib.contextmanager
def replace_file(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yield the path of a partial file; where the block succeeds, it takes the place of `path`.

    A link stays a link, and a device or a pipe, such as /dev/stdout, is written itself.

    durable  wait until the content is on the disk, so that a power cut leaves the old file or the new one
    raises   OSError that names the file
    """
    place = path.resolve() if path.is_symlink() else path
    if place.exists() and not place.is_file():
        yield place
        return
    partial = place.with_name(f".{os.getpid()}-{next(_numbers)}.partial")
    try:
        yield partial
        if durable:
            sync(partial)
        partial.replace(place)
        if durable:
            sync(place.parent)
    except OSError as error:
        if error.filename is None or str(error.filename) == str(partial):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def replace_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a text file in UTF-8, completely or not at all; raise OSError that names the file."""
    with replace_file(path, durable=durable) as partial:
        partial.write_text(text, encoding="utf-8")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk, where the system can do so."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)
